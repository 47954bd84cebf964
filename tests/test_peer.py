import json
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ide_bridge.errors import InvalidRequest
from ide_bridge.wire.peer import Failure, Notification, Peer, Refused, Request, Response

IDS = [1, 0, -7, 2**53 + 1, 2**64, 1.5, "a", "", "7", "a\tb\u00a0", None]


def wire(**members):
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def refusal(incoming):
    assert isinstance(incoming, Refused)
    reply = json.loads(incoming.reply)
    assert reply.keys() == {"jsonrpc", "id", "error"}
    return reply["error"]["code"], reply["id"]


def plain(incoming):
    """What came in, with its raw parts read, so that it can be compared."""
    match incoming:
        case Request(id=request_id, method=method, params=params):
            return ("request", request_id, method, read(params))
        case Notification(method=method, params=params):
            return ("notification", method, read(params))
        case Refused(reply=reply):
            answer = json.loads(reply)
            answers = answer if isinstance(answer, list) else [answer]
            return ("refused", *((one["error"]["code"], one["id"]) for one in answers))
    raise AssertionError(incoming)


def read(raw):
    return None if raw is None else json.loads(bytes(raw))


RECEIVED = [
    (wire(id=1, method="m"), [("request", 1, "m", None)]),
    (wire(id=1, method="m", params={"a": 1}), [("request", 1, "m", {"a": 1})]),
    (wire(id=1, method="m", params=[1]), [("request", 1, "m", [1])]),
    (b' { "params" :  {} , "method":"m","id":1,"jsonrpc":"2.0"} ', [("request", 1, "m", {})]),
    (wire(id=1, method="m", extra=True), [("request", 1, "m", None)]),
    (wire(method="m"), [("notification", "m", None)]),
    (wire(method="m", params=[]), [("notification", "m", [])]),
    (b"", [("refused", (-32700, None))]),
    (b"{", [("refused", (-32700, None))]),
    (b"\xff", [("refused", (-32700, None))]),
    (b'{"id":1}{"id":2}', [("refused", (-32700, None))]),
    (b"[" * 100_000, [("refused", (-32700, None))]),
    (b'{"jsonrpc":"2.0","id":4,"method":"m","params":[NaN]}', [("refused", (-32700, 4))]),
    (b'{"jsonrpc":"2.0","id":NaN,"method":"m"}', [("refused", (-32700, None))]),
    (b'{"jsonrpc":"2.0","id":1e999,"method":"m"}', [("refused", (-32700, None))]),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', [("refused", (-32700, None))]),
    (b"1", [("refused", (-32600, None))]),
    (b'"text"', [("refused", (-32600, None))]),
    (b"null", [("refused", (-32600, None))]),
    (b"{}", [("refused", (-32600, None))]),
    (wire(id=True, method="m"), [("refused", (-32600, None))]),
    (wire(id=[1], method="m"), [("refused", (-32600, None))]),
    (wire(id={}, method="m"), [("refused", (-32600, None))]),
    (b"[]", [("refused", (-32600, None))]),
    (b"[1,[]]", [("refused", (-32600, None), (-32600, None))]),
    (json.dumps([{}] * 1001).encode(), [("refused", (-32600, None))]),
]


@pytest.mark.parametrize(("message", "expected"), RECEIVED)
def test_receive(message, expected):
    assert [plain(incoming) for incoming in Peer().receive(message)] == expected


@pytest.mark.parametrize("request_id", IDS)
@pytest.mark.parametrize(
    "wrong",
    [
        {"jsonrpc": "1.0", "method": "m"},
        {"jsonrpc": 2.0, "method": "m"},
        {"jsonrpc": None, "method": "m"},
        {"method": 5},
        {"method": None},
        {},
        {"method": "m", "params": 7},
        {"method": "m", "params": None},
        {"method": "m", "params": "text"},
    ],
)
def test_a_wrong_request_keeps_its_id(request_id, wrong):
    (incoming,) = Peer().receive(wire(id=request_id, **wrong))
    assert refusal(incoming) == (-32600, request_id)
    assert type(refusal(incoming)[1]) is type(request_id)


DEEP = {
    "params": b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}',
    "wrong request": b'{"jsonrpc":"2.0","id":1,"method":5,"params":%b}',
    "id": b'{"jsonrpc":"2.0","id":%b,"method":"m"}',
    "error": b'{"jsonrpc":"2.0","id":1,"error":%b}',
    "batch": b'[{"jsonrpc":"2.0","id":1,"method":"m","params":%b}]',
    "wrong element": b'[{"jsonrpc":"2.0","id":1,"method":5,"params":%b}]',
    "element": b"[7,%b]",
    "nothing but depth": b"%b",
}


@pytest.mark.parametrize("shape", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_no_depth_makes_a_peer_raise(shape, opening, closing):
    """The parser counts our own calls as depth too: what one of them can read is too deep for the next."""
    peer = Peer()
    for depth in range(1, sys.getrecursionlimit() + 10):
        peer.receive(shape % (opening * depth + b"1" + closing * depth))
    (incoming,) = peer.receive(shape % (opening * 5000 + b"1" + closing * 5000))
    assert plain(incoming)[1][0] == -32700


def test_a_request_without_version_is_refused():
    (incoming,) = Peer().receive(b'{"id":3,"method":"m"}')
    assert refusal(incoming) == (-32600, 3)


def test_the_id_of_a_huge_unreadable_message_is_not_searched_for():
    message = b'{"jsonrpc":"2.0","id":3,"method":5,"params":["' + b"x" * 1024 * 1024 + b'"]}'
    (incoming,) = Peer().receive(message)
    assert refusal(incoming) == (-32600, None)


@pytest.mark.parametrize("request_id", IDS)
def test_answers_carry_the_id_of_their_request(request_id):
    peer = Peer()
    (request,) = peer.receive(wire(id=request_id, method="m"))
    assert json.loads(peer.result(request, [1])) == {"jsonrpc": "2.0", "id": request_id, "result": [1]}
    failure = {"code": -1, "message": "no"}
    assert json.loads(peer.error(request, Failure(-1, "no"))) == {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": failure,
    }
    assert peer.drop(request) is None


def test_refuse_without_a_request():
    reply = json.loads(Peer().refuse(InvalidRequest("too large")))
    assert reply == {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "too large"}}


def batch_of(peer, *elements):
    return peer.receive(json.dumps(elements).encode())


def call(request_id, method="m"):
    return {"jsonrpc": "2.0", "id": request_id, "method": method}


def test_the_answers_of_a_batch_leave_together():
    peer = Peer()
    first, note, second = batch_of(peer, call(1), {"jsonrpc": "2.0", "method": "n"}, call("b"))
    assert note == Notification("n")
    assert peer.error(second, Failure(-1, "no")) is None
    answers = json.loads(peer.result(first, True))
    assert [answer["id"] for answer in answers] == ["b", 1]


def test_a_wrong_element_has_its_own_error():
    peer = Peer()
    wrong = [{"jsonrpc": "2.0", "id": 1.5, "method": 5}, 7, {"id": "v", "method": "m"}]
    first, second = batch_of(peer, call(1), *wrong, call(2))
    assert peer.result(first, None) is None
    answers = json.loads(peer.result(second, None))
    assert {(answer["id"], answer.get("error", {}).get("code")) for answer in answers} == {
        (1, None),
        (2, None),
        (1.5, -32600),
        (None, -32600),
        ("v", -32600),
    }


def test_a_batch_of_notifications_is_not_answered():
    note = {"jsonrpc": "2.0", "method": "n"}
    assert batch_of(Peer(), note, note) == [Notification("n"), Notification("n")]


def test_responses_in_a_batch_find_their_question():
    peer = Peer()
    asked, _ = peer.request("q")
    stray = {"jsonrpc": "2.0", "id": 99, "result": 1}
    response, request = batch_of(peer, {"jsonrpc": "2.0", "id": asked, "result": 5}, stray, call(1))
    assert (response.id, read(response.result)) == (asked, 5)
    assert [answer["id"] for answer in json.loads(peer.result(request, 1))] == [1]


def test_a_batch_of_responses_is_not_answered():
    assert batch_of(Peer(), {"jsonrpc": "2.0", "id": 1, "result": 1}, {"id": [], "error": 1}) == []


def test_the_largest_batch_is_taken():
    assert len(batch_of(Peer(), *map(call, range(1000)))) == 1000


def test_a_dropped_element_leaves_the_others_answered():
    peer = Peer()
    first, second = batch_of(peer, call(1), call(2))
    assert peer.result(first, 1) is None
    assert [answer["id"] for answer in json.loads(peer.drop(second))] == [1]


def test_a_batch_dropped_whole_is_not_answered():
    peer = Peer()
    first, second = batch_of(peer, call(1), call(2))
    assert (peer.drop(first), peer.drop(second)) == (None, None)


def test_questions_have_integer_ids_of_their_own():
    peer = Peer()
    (first, message), (second, _) = peer.request("q", {"a": 1}), peer.request("q")
    assert json.loads(message) == {"jsonrpc": "2.0", "method": "q", "params": {"a": 1}, "id": first}
    assert first != second


def test_a_notification_has_no_id():
    assert json.loads(Peer().notification("n", [1])) == {"jsonrpc": "2.0", "method": "n", "params": [1]}
    assert json.loads(Peer().notification("n")) == {"jsonrpc": "2.0", "method": "n"}


@pytest.mark.parametrize(
    ("members", "result", "error"),
    [
        ({"result": [1]}, [1], None),
        ({"result": None}, None, None),
        ({"result": 1, "error": None}, 1, None),
        ({"error": {"code": 5, "message": "no", "data": 1}}, None, Failure(5, "no", 1)),
        ({"error": {"code": "five"}}, None, "cannot be read"),
        ({"error": "no"}, None, "cannot be read"),
    ],
)
def test_a_response_answers_its_question_once(members, result, error):
    peer = Peer()
    asked, _ = peer.request("q")
    (response,) = peer.receive(wire(id=asked, **members))
    assert isinstance(response, Response)
    assert (response.id, read(response.result)) == (asked, result)
    assert error in response.error.message if isinstance(error, str) else response.error == error
    assert peer.receive(wire(id=asked, **members)) == []


@pytest.mark.parametrize("request_id", [2, 1.0, "1", None, True, [1]])
@pytest.mark.parametrize("members", [{"result": 1}, {"error": {"code": 1, "message": "m"}}, {"error": None}])
def test_stray_and_wrong_responses_are_dropped(request_id, members):
    peer = Peer()
    peer.request("q")
    assert peer.receive(wire(id=request_id, **members)) == []


def test_a_forgotten_question_takes_no_answer():
    peer = Peer()
    asked, _ = peer.request("q")
    peer.forget(asked)
    assert peer.receive(wire(id=asked, result=1)) == []


def test_what_we_refuse_with_is_never_answered_by_another_peer():
    for message, _ in RECEIVED:
        for incoming in Peer().receive(message):
            if isinstance(incoming, Refused):
                assert Peer().receive(incoming.reply) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.sampled_from(IDS) | JSON,
        "method": st.just("m") | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@settings(max_examples=300, deadline=None)
@given(MESSAGE | st.lists(MESSAGE | JSON, max_size=4) | JSON)
def test_every_json_value_is_taken_and_every_request_answered_once(value):
    peer = Peer()
    peer.request("q")
    replies = []
    for incoming in peer.receive(msgspec.json.encode(value)):
        if isinstance(incoming, Request):
            replies.append(peer.result(incoming, None))
        elif isinstance(incoming, Refused):
            replies.append(incoming.reply)
    assert len([reply for reply in replies if reply is not None]) <= 1


@given(st.sampled_from(IDS), st.text(), st.none() | st.lists(JSON) | st.dictionaries(st.text(), JSON))
def test_a_request_survives_the_wire(request_id, method, params):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    (request,) = Peer().receive(msgspec.json.encode(message))
    given_params = None if request.params is None else msgspec.json.decode(request.params)
    assert (request.id, request.method, given_params) == (request_id, method, params)
