import asyncio
import contextlib
import json
import sys

import msgspec
import pytest

from ide_bridge.errors import Disconnected, FileProblem, RemoteError
from ide_bridge.wire import connection as module
from ide_bridge.wire.connection import Connection
from ide_bridge.wire.dispatch import Dispatcher, Method, NoParams
from ide_bridge.wire.framing import TooLarge

SECRET = "/home/someone/secret"
END = None


class MemoryChannel:
    """The other end of a conversation, held by the test."""

    def __init__(self):
        self._inbox = asyncio.Queue()
        self._sent = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()
        self.gone = False
        self.defect = None
        self.closings = []

    async def __aiter__(self):
        while (message := await self._inbox.get()) is not END:
            yield message

    async def send(self, message):
        await self.reads.wait()
        if self.gone:
            raise ConnectionResetError
        if self.defect is not None:
            raise self.defect
        self._sent.put_nowait(message)

    async def close(self, code, reason):
        self.closings.append((code, reason))
        self._inbox.put_nowait(END)

    def say(self, message):
        self.say_bytes(message if isinstance(message, TooLarge) else json.dumps(message).encode())

    def say_bytes(self, message):
        self._inbox.put_nowait(message)

    async def hear(self):
        async with asyncio.timeout(5):
            return json.loads(await self._sent.get())

    def heard_nothing(self):
        return self._sent.empty()


class Number(msgspec.Struct):
    n: int


class Work:
    """Methods that wait until the test lets them go on, and remember how they ended."""

    def __init__(self):
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = []

    async def wait(self, _, number):
        self.started.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.ended.append(("cancelled", number.n))
            raise
        self.ended.append(("done", number.n))
        return number.n


def fail(error):
    raise error


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def channel():
    return MemoryChannel()


@pytest.fixture
async def connection(channel, work):
    dispatcher = Dispatcher(
        {
            "double": Method(Number, lambda _, number: number.n * 2),
            "wait": Method(Number, work.wait),
            "crash": Method(NoParams, lambda _, __: fail(RuntimeError(SECRET))),
            "problem": Method(NoParams, lambda _, __: fail(FileProblem("File not found"))),
        }
    )
    connection = Connection(channel, dispatcher, "me")
    running = asyncio.create_task(connection.run())
    yield connection
    await channel.close(0, "end of the test")
    async with asyncio.timeout(5):
        await running
    assert asyncio.all_tasks() == {asyncio.current_task()}, "a task outlived its connection"


def call(request_id, method, n=None):
    members = {} if n is None else {"params": {"n": n}}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **members}


def cancel(request_id):
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_what_needs_no_waiting_is_answered_in_order(connection, channel):
    for n in range(3):
        channel.say(call(n, "double", n))
    assert [await channel.hear() for _ in range(3)] == [
        {"jsonrpc": "2.0", "id": n, "result": n * 2} for n in range(3)
    ]


async def test_a_waiting_request_holds_up_nobody(connection, channel, work):
    channel.say(call("slow", "wait", 1))
    channel.say(call("quick", "double", 1))
    assert (await channel.hear())["id"] == "quick"
    work.go_on.set()
    assert await channel.hear() == {"jsonrpc": "2.0", "id": "slow", "result": 1}


async def test_a_batch_is_answered_once_all_its_elements_are(connection, channel, work):
    channel.say([call(1, "wait", 5), call(2, "double", 5), 7, {"jsonrpc": "2.0", "method": "double"}])
    await asyncio.wait_for(work.started.wait(), 5)
    assert channel.heard_nothing()
    work.go_on.set()
    assert {answer["id"]: answer.get("result") for answer in await channel.hear()} == {
        1: 5,
        2: 10,
        None: None,
    }


async def test_a_message_too_large_is_refused_and_the_conversation_goes_on(connection, channel):
    channel.say(TooLarge(70_000_000))
    refused = await channel.hear()
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert "70,000,000 bytes" in refused["error"]["message"]
    channel.say(call(1, "double", 2))
    assert (await channel.hear())["result"] == 4


async def test_errors_leak_nothing_and_end_nothing(connection, channel):
    for request in (
        call(1, "crash"),
        call(2, "problem"),
        call(3, "unknown"),
        {"id": 4},
        call(5, "double", 1),
    ):
        channel.say(request)
    answers = {answer["id"]: answer for answer in [await channel.hear() for _ in range(5)]}
    assert {key: answer.get("error", {}).get("code") for key, answer in answers.items()} == {
        1: -32603,
        2: -32603,
        3: -32601,
        4: -32600,
        5: None,
    }
    assert SECRET not in json.dumps(list(answers.values()))


# --- cancellation


async def test_a_cancelled_request_is_not_answered(connection, channel, work):
    channel.say(call(1, "wait", 1))
    await asyncio.wait_for(work.started.wait(), 5)
    channel.say(cancel(1))
    await until(lambda: work.ended)
    assert work.ended == [("cancelled", 1)]
    channel.say(call(2, "double", 1))
    assert (await channel.hear())["id"] == 2


async def test_a_request_cancelled_before_its_first_step_is_not_begun(connection, channel, work):
    channel.say(call(1, "wait", 1))
    channel.say(cancel(1))
    channel.say(call(2, "double", 1))
    assert (await channel.hear())["id"] == 2
    assert not work.started.is_set()


@pytest.mark.parametrize(
    "params", [{"requestId": "1"}, {"requestId": 1.0}, {"requestId": 2}, {"requestId": [1]}, {}]
)
async def test_only_the_request_that_is_named_is_cancelled(connection, channel, work, params):
    channel.say(call(1, "wait", 1))
    channel.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    await asyncio.wait_for(work.started.wait(), 5)
    work.go_on.set()
    assert (await channel.hear())["result"] == 1


@pytest.mark.parametrize("begun", [False, True])
async def test_a_batch_is_answered_without_its_cancelled_element(connection, channel, work, begun):
    channel.say([call(1, "wait", 1), call(2, "double", 1)])
    if begun:
        await asyncio.wait_for(work.started.wait(), 5)
    channel.say(cancel(1))
    assert await channel.hear() == [{"jsonrpc": "2.0", "id": 2, "result": 2}]


async def test_a_batch_that_is_already_leaving_cannot_be_cancelled(connection, channel, work):
    channel.say([call(1, "wait", 1), call(2, "double", 1)])
    await asyncio.wait_for(work.started.wait(), 5)
    channel.reads.clear()
    work.go_on.set()
    await until(lambda: work.ended)
    await until(lambda: None in connection._tasks.values())
    channel.say(cancel(1))
    channel.say({"jsonrpc": "2.0", "method": "unknown"})
    await until(channel._inbox.empty)
    channel.reads.set()
    assert {answer["id"] for answer in await channel.hear()} == {1, 2}


async def test_a_cancellation_of_any_depth_ends_nothing(connection, channel):
    for depth in range(sys.getrecursionlimit() - 60, sys.getrecursionlimit() + 10):
        nested = b"[" * depth + b"]" * depth
        params = b'{"requestId":1,"x":%b}' % nested
        channel.say_bytes(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}' % params)
    channel.say(call("last", "double", 1))
    while (heard := await channel.hear())["id"] != "last":
        assert heard["error"]["code"] == -32700


# --- limits


async def test_the_largest_batch_is_served_whole(connection, channel):
    channel.say([call(n, "double", n) for n in range(1000)])
    assert {answer["id"]: answer.get("result") for answer in await channel.hear()} == {
        n: n * 2 for n in range(1000)
    }


async def test_requests_over_the_limit_are_refused(connection, channel, work, monkeypatch):
    monkeypatch.setattr(module, "IN_FLIGHT_LIMIT", 3)
    for n in range(4):
        channel.say(call(n, "wait", n))
    refused = await channel.hear()
    assert (refused["id"], refused["error"]["code"]) == (3, -32603)
    work.go_on.set()
    assert {(await channel.hear())["id"] for _ in range(3)} == {0, 1, 2}
    channel.say(call(9, "double", 1))
    assert (await channel.hear())["id"] == 9


async def test_news_with_a_key_replaces_older_news(connection, channel):
    channel.reads.clear()
    connection.notify("first")
    await until(lambda: not connection._outbox)
    for n in range(100):
        connection.notify("selection", {"n": n}, key="selection")
        connection.notify("mention", {"n": n})
    channel.reads.set()
    heard = [await channel.hear() for _ in range(102)]
    assert [message["params"]["n"] for message in heard if message["method"] == "selection"] == [99]
    assert [message["params"]["n"] for message in heard if message["method"] == "mention"] == [*range(100)]


async def test_after_the_outbox_was_empty_news_flow_again(connection, channel):
    for n in range(3):
        connection.notify("news", [n])
        assert (await channel.hear())["params"] == [n]


async def test_who_reads_nothing_is_closed(connection, channel, monkeypatch):
    monkeypatch.setattr(module, "OUTBOX_LIMIT", 5)
    channel.reads.clear()
    for _ in range(5):
        connection.notify("news")
    assert channel.closings == []
    connection.notify("news")
    await until(lambda: channel.closings)
    assert channel.closings[0][0] == 1008
    assert not connection._outbox


# --- our own questions


async def test_a_question_is_answered(connection, channel):
    asking = asyncio.create_task(connection.request("openFiles", {}, timeout=5))
    question = await channel.hear()
    assert (question["method"], question["params"]) == ("openFiles", {})
    channel.say({"jsonrpc": "2.0", "id": question["id"], "result": ["a"]})
    assert msgspec.json.decode(await asking) == ["a"]


async def test_an_answer_without_a_result_is_null(connection, channel):
    asking = asyncio.create_task(connection.request("q", {}, timeout=5))
    question = await channel.hear()
    channel.say({"jsonrpc": "2.0", "id": question["id"], "error": None})
    assert msgspec.json.decode(await asking) is None


async def test_an_error_as_answer_is_raised(connection, channel):
    asking = asyncio.create_task(connection.request("q", {}, timeout=5))
    question = await channel.hear()
    channel.say({"jsonrpc": "2.0", "id": question["id"], "error": {"code": 5, "message": "no"}})
    with pytest.raises(RemoteError, match="no") as caught:
        await asking
    assert caught.value.remote_code == 5


async def test_a_question_has_a_deadline_and_its_late_answer_is_dropped(connection, channel):
    with pytest.raises(TimeoutError):
        await connection.request("q", {}, timeout=0.01)
    question = await channel.hear()
    channel.say({"jsonrpc": "2.0", "id": question["id"], "result": 1})
    channel.say(call(1, "double", 1))
    assert (await channel.hear())["id"] == 1
    assert connection._asked == {}
    assert connection._peer._asked == set()


async def test_the_deadline_holds_while_the_other_end_does_not_read(connection, channel):
    channel.reads.clear()
    with pytest.raises(TimeoutError):
        await connection.request("q", {}, timeout=0.01)
    assert connection._peer._asked == set()


async def test_an_answer_that_crosses_with_giving_up_is_dropped(connection, channel):
    asking = asyncio.create_task(connection.request("q", {}, timeout=5))
    question = await channel.hear()
    channel.say({"jsonrpc": "2.0", "id": question["id"], "result": 1})
    asking.cancel()
    channel.say(call(1, "double", 1))
    assert (await channel.hear())["id"] == 1
    assert asking.cancelled()


async def test_giving_up_a_question_while_the_connection_ends_is_no_accident(connection, channel):
    asking = asyncio.create_task(connection.request("q", {}, timeout=5))
    await channel.hear()
    channel.say_bytes(END)
    asking.cancel()
    await until(asking.done)
    assert asking.cancelled()


async def test_open_questions_end_with_the_connection(connection, channel):
    asking = asyncio.create_task(connection.request("q", {}, timeout=5))
    await channel.hear()
    await connection.close(1000, "bye")
    with pytest.raises(Disconnected):
        await asking
    with pytest.raises(Disconnected):
        await connection.request("q", {}, timeout=5)
    assert channel.closings[0] == (1000, "bye")


# --- the end


async def test_after_the_end_nobody_is_told_anything(connection, channel):
    await connection.close()
    await until(lambda: len(channel.closings) == 2)
    connection.notify("news")
    assert not connection._outbox
    assert connection._posting is None


async def test_the_end_cancels_what_still_runs(connection, channel, work):
    channel.say(call(1, "wait", 1))
    channel.say([call(2, "wait", 2), call(3, "double", 1)])
    await asyncio.wait_for(work.started.wait(), 5)
    channel.reads.clear()
    connection.notify("news")
    await connection.close()
    await until(lambda: len(channel.closings) == 2)
    assert sorted(work.ended) == [("cancelled", 1), ("cancelled", 2)]
    connection.notify("more news")
    assert channel.heard_nothing()


async def test_an_answer_nobody_can_take_any_more_is_no_accident(connection, channel, work, caplog):
    channel.gone = True
    channel.say(call(1, "double", 1))
    channel.say(call(2, "wait", 1))
    connection.notify("news")
    work.go_on.set()
    await until(lambda: work.ended)
    await connection.close()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_an_answer_that_cannot_be_sent_is_logged_and_ends_nothing(connection, channel, work, caplog):
    channel.defect = RuntimeError("a bug of the channel")
    channel.say(call(1, "wait", 1))
    work.go_on.set()
    await until(lambda: caplog.records)
    assert "a bug of the channel" in caplog.text
    channel.defect = None
    channel.say(call(2, "double", 1))
    assert (await channel.hear())["id"] == 2


async def test_a_cancelled_run_leaves_nothing_behind(channel, work):
    before = asyncio.all_tasks()
    connection = Connection(channel, Dispatcher({"wait": Method(Number, work.wait)}), None)
    running = asyncio.create_task(connection.run())
    channel.say(call(1, "wait", 1))
    await asyncio.wait_for(work.started.wait(), 5)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == before
    assert work.ended == [("cancelled", 1)]
    assert channel.closings == [(1001, "")]
