from hypothesis import given, settings
from hypothesis import strategies as st

from ide_bridge.session.control import Answered, Broken, Control, Failed, Said, Withdrawn
from ide_bridge.session.control.questions import Asked
from ide_bridge.session.control.requests import Initialize, SetModel

SEEDS = [
    (
        b'{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash",'
        b'"input":{"command":"\\u20ac"},"tool_use_id":"t","permission_suggestions":[{"type":"setMode"}]}}'
    ),
    b'{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":"c","input":{}}}',
    b'{"type":"control_cancel_request","request_id":"r"}',
    (
        b'{"type":"control_response","response":{"subtype":"success","request_id":"ide-bridge-1","response":{},'
        b'"pending_permission_requests":[{"request_id":"p","request":{"subtype":"can_use_tool"}}]}}'
    ),
    b'{"type":"control_response","response":{"subtype":"error","request_id":"ide-bridge-2","error":"no"}}',
    b'{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.5,"errors":["x"],"uuid":"u"}',
    b'{"type":"stream_event","event":{"delta":{"text":"\xf0\x9f\x98\x80"}},"uuid":"u","session_id":"s"}',
    b'{"type":"system","subtype":"init","tools":["Bash"],"mcp_servers":[{"name":"m","status":"ok"}]}',
    b'{"type":"user","message":{"content":"cut \\ud83d"},"isReplay":true}',
]
ODD = [b"[", b"{", b"}", b'"', b"\\ud800", b"1e999", b"null", b"\n", b"\xff", b"9" * 30, b"7", b"[]"]


@st.composite
def damaged(draw):
    message = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(message)))
        end = draw(st.integers(start, min(start + 6, len(message))))
        message[start:end] = draw(st.binary(max_size=4) | st.sampled_from(ODD))
    return bytes(message)


said = st.lists(damaged() | st.binary(max_size=40), max_size=8).map(lambda lines: b"\n".join([*lines, b""]))


def controlling():
    control = Control(limit=400)
    control.request(Initialize(), until=1.0)
    control.request(SetModel("x"), until=1.0)
    return control


@st.composite
def cut(draw, data):
    places = sorted(draw(st.sets(st.integers(0, len(data)))))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@settings(max_examples=500, deadline=None)
@given(said, st.data())
def test_bytes_say_the_same_however_they_are_cut(said, data):
    whole, parts = controlling(), controlling()
    events = whole.receive(said)
    assert [event for part in data.draw(cut(said)) for event in parts.receive(part)] == events
    assert parts.open == whole.open


@settings(max_examples=500, deadline=None)
@given(st.lists(said | st.binary(max_size=60), max_size=4))
def test_no_bytes_make_a_controller_raise(chunks):
    control = controlling()
    for chunk in chunks:
        for event in control.receive(chunk):
            assert isinstance(event, Said | Asked | Withdrawn | Answered | Failed | Broken)
            if isinstance(event, Said):
                assert isinstance(event.message.fields, dict)
            elif isinstance(event, Answered | Failed):
                control.pending(event.pending)


@settings(max_examples=300, deadline=None)
@given(st.lists(said, max_size=4))
def test_every_open_question_can_be_answered_once(chunks):
    control = controlling()
    for chunk in chunks:
        control.receive(chunk)
    for request_id in list(control.open):
        ways = [control.allow(request_id, {}), control.answer(request_id, {}), control.refuse(request_id, "no")]
        assert sum(line is not None for line in ways) == 1
    assert not control.open
