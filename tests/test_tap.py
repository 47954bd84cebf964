"""The tap: what is offered, what is masked, and what a recording owes to one who is slow."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.bridge import Bridge
from ide_bridge.cli.reach import Conversation
from ide_bridge.fronts.tap import Recording, Tap
from ide_bridge.running import find
from tests.fakes.claude_client import TOKEN_HEADER, connect_to
from tests.fakes.surroundings import at_home

TOKEN = "0123456789abcdef" * 4
SPELLED = "".join(f"\\u{ord(letter):04x}" for letter in TOKEN)
HALF_SPELLED = TOKEN[:-1] + f"\\u00{ord(TOKEN[-1]):02X}"


async def eventually(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


def listening(tap):
    heard = []
    return heard, tap.listen(lambda direction, number, details: heard.append((direction, number, dict(details))))


def plain(heard):
    return [
        (direction, number, {name: bytes(value) if name == "msg" else value for name, value in details.items()})
        for direction, number, details in heard
    ]


def recorded(message):
    """What is offered of one message, as it would stand in a file."""
    tap = Tap(TOKEN)
    heard, _ = listening(tap)
    tap.connect(1, "/", {}, "mcp").received(message)
    return heard[-1][2]


def test_everyone_hears_everything_in_order():
    tap = Tap(TOKEN)
    heard, _ = listening(tap)
    others, _ = listening(tap)
    line = tap.connect(7, "/", {"Host": "127.0.0.1:1"}, "mcp")
    line.received(b"1")
    line.sent(b"2")
    line.close(1000)
    assert heard == others
    assert plain(heard) == [
        ("CONNECT", 7, {"path": "/", "headers": {"Host": "127.0.0.1:1"}}),
        ("OPEN", 7, {"subprotocol": "mcp"}),
        ("C>S", 7, {"msg": b"1"}),
        ("S>C", 7, {"msg": b"2"}),
        ("CLOSE", 7, {"code": 1000}),
    ]


def test_a_message_that_nobody_listens_to_is_not_even_looked_at():
    line = Tap(TOKEN).connect(1, "/", {}, None)
    line.received(None)
    line.sent(None)


def test_who_is_there_already_is_told_as_open_and_who_left_is_not():
    tap = Tap(TOKEN)
    tap.connect(1, "/", {}, "mcp")
    tap.connect(2, "/", {}, "mcp").close(1000)
    assert listening(tap)[0] == [("OPEN", 1, {"subprotocol": "mcp"})]


def test_who_listens_no_more_hears_no_more():
    tap = Tap(TOKEN)
    heard, stop = listening(tap)
    stop()
    stop()
    tap.connect(1, "/", {}, "mcp").received(b"1")
    assert heard == []


def test_a_connection_is_closed_once():
    tap = Tap(TOKEN)
    heard, _ = listening(tap)
    line = tap.connect(1, "/", {}, "mcp")
    line.close(1001)
    line.close(1006)
    assert heard[2:] == [("CLOSE", 1, {"code": 1001})]


def test_headers_that_carry_secrets_are_masked():
    tap = Tap(TOKEN)
    heard, _ = listening(tap)
    secret = {TOKEN_HEADER: TOKEN, "authorization": "Bearer other", "Cookie": "a=b", "X-Odd": f"<{TOKEN}> \udcff"}
    tap.connect(1, "/", secret, None)
    assert heard[0][2]["headers"] == {
        TOKEN_HEADER: "…",
        "authorization": "…",
        "Cookie": "…",
        "X-Odd": "<…> ?",
    }


@pytest.mark.parametrize("spelled", [TOKEN, SPELLED, HALF_SPELLED])
@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('"%s"', '"…"'),
        ('{"a": "x%sy\\n"}', '{"a":"x…y\\n"}'),
        ('{"%s": 1}', '{"…":1}'),
        ('{"a": "%s", "a": 1}', '{"a":"…","a":1}'),
    ],
)
def test_the_token_is_masked_however_it_is_spelled(message, shown, spelled):
    assert bytes(recorded((message % spelled).encode())["msg"]).decode() == shown


@pytest.mark.parametrize("spelled", [TOKEN, SPELLED])
def test_the_token_is_masked_in_what_is_no_json(spelled):
    assert recorded(f'{{"a": "{spelled}"'.encode()) == {"raw": '{"a": "…"'}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            ' {\n "a" : [1.000,\r\n\t123456789012345678901 ],\n "a": 1e2\n}',
            '{"a":[1.000,123456789012345678901],"a":1e2}',
        ),
        ('{"a": "é \\u00e9 \\u0061 \\\\u0061 \\n"}', '{"a":"é \\u00e9 \\u0061 \\\\u0061 \\n"}'),
        ('"\u2028 \u0085"', '"\u2028 \u0085"'),
    ],
)
def test_json_is_shown_on_one_line_with_its_oddities(message, shown):
    assert bytes(recorded(message.encode())["msg"]).decode() == shown


@pytest.mark.parametrize(
    "message", [b"", b"{", b'"a\nb"', b'"\xff"', b"1 2", b"[" * 100_000, b"NaN", b'{"a": "\x00"}']
)
def test_what_is_no_json_is_shown_as_text(message):
    assert recorded(message) == {"raw": message.decode(errors="replace")}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text() | st.just(TOKEN),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_a_recorded_message_means_what_the_message_meant(value, ascii_only, indent):
    message = json.dumps(value, ensure_ascii=ascii_only, indent=indent).replace(
        TOKEN, SPELLED if ascii_only else TOKEN
    )
    try:
        sent = message.encode()
    except UnicodeEncodeError:
        return
    shown = recorded(sent)
    if "raw" in shown:  # half of a surrogate pair
        assert TOKEN not in shown["raw"]
        return
    assert b"\n" not in bytes(shown["msg"])
    assert json.loads(bytes(shown["msg"])) == json.loads(json.dumps(value).replace(TOKEN, "…"))


class Receiver:
    """Takes a recording, as fast as it is allowed to."""

    def __init__(self, *, ready=True):
        self.records = []
        self.ready = asyncio.Event()
        if ready:
            self.ready.set()

    async def send(self, message):
        await self.ready.wait()
        notification = json.loads(message)
        assert notification["method"] == "wire"
        self.records.append(notification["params"])

    @property
    def said(self):
        return [record.get("msg", record["dir"]) for record in self.records]


async def test_a_recording_tells_all_of_it_with_the_time():
    tap, receiver = Tap(TOKEN), Receiver()
    recording = Recording(tap, receiver.send)
    line = tap.connect(3, "/", {}, "mcp")
    line.received(b'{"a": 1}')
    await eventually(lambda: len(receiver.records) == 3)
    line.sent(b"x")
    line.close(None)
    await recording.finish()
    assert all(0 <= record.pop("t") < 5000 for record in receiver.records)
    assert receiver.records == [
        {"dir": "CONNECT", "conn": 3, "path": "/", "headers": {}},
        {"dir": "OPEN", "conn": 3, "subprotocol": "mcp"},
        {"dir": "C>S", "conn": 3, "msg": {"a": 1}},
        {"dir": "S>C", "conn": 3, "raw": "x"},
        {"dir": "CLOSE", "conn": 3, "code": None},
    ]


async def test_who_is_slow_is_told_where_messages_are_missing_and_how_many():
    tap, receiver = Tap(TOKEN), Receiver(ready=False)
    line = tap.connect(1, "/", {}, None)
    recording = Recording(tap, receiver.send, limit=300)
    await asyncio.sleep(0)
    for number in range(50):
        line.received(b"%d" % number)
    receiver.ready.set()
    await eventually(lambda: "LOST" in receiver.said)
    line.received(b"50")
    line.received(b"51")
    await recording.finish()
    opened, *before, lost, after, last = receiver.said
    assert (opened, lost, after, last) == ("OPEN", "LOST", 50, 51)
    assert before == list(range(len(before)))
    assert len(before) + receiver.records[len(before) + 1]["count"] == 50


async def test_room_again_is_used_only_after_the_loss_was_told():
    tap, receiver = Tap(TOKEN), Receiver(ready=False)
    line = tap.connect(1, "/", {}, None)
    recording = Recording(tap, receiver.send, limit=100)
    await asyncio.sleep(0)
    for number in range(9):
        line.received(b"%d" % number)
    recording._size = 0  # as if what is under way had just arrived
    line.received(b"9")
    receiver.ready.set()
    await recording.finish()
    lost = receiver.said.index("LOST")
    assert receiver.said[lost + 1 :] == [9]
    assert receiver.said[1:lost] == list(range(lost - 1))
    assert receiver.records[lost]["count"] == 9 - (lost - 1)


async def test_one_message_over_the_limit_is_not_lost():
    tap, receiver = Tap(TOKEN), Receiver()
    recording = Recording(tap, receiver.send, limit=10)
    line = tap.connect(1, "/", {}, None)
    await eventually(lambda: receiver.records)
    line.received(b'"%s"' % (b"x" * 1000))
    await recording.finish()
    assert receiver.said[-1] == "x" * 1000


async def test_nobody_listens_for_one_who_is_gone():
    tap = Tap(TOKEN)

    async def gone(_message):
        raise ConnectionResetError

    line = tap.connect(1, "/", {}, None)
    recording = Recording(tap, gone)
    await eventually(recording._posting.done)
    assert not tap._listeners
    await recording.finish()
    stuck = Recording(tap, Receiver(ready=False).send)
    await asyncio.sleep(0)
    stuck.abandon()
    line.received(None)
    await asyncio.wait([stuck._posting], timeout=5)
    assert stuck._posting.cancelled()


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    (folder / "a").write_text("alive", encoding="utf-8")
    return folder


def params(frames):
    return [json.loads(frame)["params"] for frame in frames if b'"method":"wire"' in frame]


async def test_the_wire_of_a_bridge_is_recorded_over_its_private_socket(project):
    async with Bridge(project) as bridge, connect_to(bridge) as early:
        with await asyncio.to_thread(Conversation, find(str(project)), seconds=10) as conversation:
            await asyncio.to_thread(conversation.request, "record")
            async with connect_to(bridge) as client:
                assert await client.request("readFile", {"path": "a"}) == "alive"
            await eventually(lambda: len(bridge.clients) == 1)
            assert await early.request("ping") == {}
            await asyncio.to_thread(conversation.request, "record", {"on": False})
            assert await early.request("ping") == {}
            records = params(next(conversation.messages()))
    directions = [(record["conn"], record["dir"]) for record in records]
    assert directions[:5] == [(1, "OPEN"), (2, "CONNECT"), (2, "OPEN"), (2, "C>S"), (2, "S>C")]
    assert directions.count((1, "C>S")) == directions.count((1, "S>C")) == 1
    assert (2, "CLOSE") in directions
    assert records[1]["headers"][TOKEN_HEADER] == "…"
    assert records[4]["msg"] == {"jsonrpc": "2.0", "id": 0, "result": "alive"}


async def test_a_bridge_that_stops_tells_even_the_last_of_it(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        token = Path(bridge.token_file).read_text(encoding="ascii")
        with await asyncio.to_thread(Conversation, find(str(project)), seconds=10) as conversation:
            await asyncio.to_thread(conversation.request, "record")
            await client.say(f'"{token}"')
            closing = asyncio.create_task(client.closed())
            await bridge.stop()
            assert await closing == 1001
            frames = await asyncio.to_thread(lambda: [frame for some in conversation.messages() for frame in some])
    assert [record["dir"] for record in params(frames)] == ["OPEN", "C>S", "S>C", "CLOSE"]
    assert params(frames)[-1]["code"] == 1001
    assert token.encode() not in b"".join(frames)


async def test_a_bridge_that_stops_hands_over_what_a_slow_recorder_has_not_taken_yet(project):
    text = "x" * 5_000_000
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        with await asyncio.to_thread(Conversation, find(str(project)), seconds=10) as conversation:
            await asyncio.to_thread(conversation.request, "record")
            for _ in range(4):
                await client.notify("anything", {"text": text})
            assert await client.request("ping") == {}
            stopping = asyncio.create_task(bridge.stop())
            frames = await asyncio.to_thread(lambda: [frame for some in conversation.messages() for frame in some])
            await stopping
    assert [record["dir"] for record in params(frames)] == ["OPEN", *["C>S"] * 5, "S>C", "CLOSE"]


async def test_one_who_hangs_up_in_the_middle_is_forgotten(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        with await asyncio.to_thread(Conversation, find(str(project)), seconds=10) as conversation:
            await asyncio.to_thread(conversation.request, "record")
            await asyncio.to_thread(conversation.request, "record")
            assert len(bridge._local._recordings) == 1
        await eventually(lambda: not bridge._local._recordings)
        assert not bridge._front._tap._listeners
        assert await client.request("ping") == {}
