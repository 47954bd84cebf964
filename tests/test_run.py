"""The run of a CLI: lines in order, answers to those who asked, and deadlines."""

import asyncio
import json

import pytest

from ide_bridge.errors import Disconnected, RemoteError, Unsupported
from ide_bridge.session.control import Answered, Failed
from ide_bridge.session.control.requests import Initialize, Interrupt
from ide_bridge.session.run import OUTBOX_LIMIT, Run


class Wire:
    """The way to a CLI that reads when it is let."""

    def __init__(self):
        self.lines = []
        self.may_read = asyncio.Event()
        self.may_read.set()

    async def send(self, data):
        await self.may_read.wait()
        self.lines.append(data)


@pytest.fixture
async def wire():
    return Wire()


@pytest.fixture
async def run(wire):
    run = Run(wire, None, "2.1.326")
    writing = asyncio.create_task(run.write())
    yield run
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)


async def sent(wire, count):
    async with asyncio.timeout(5):
        while len(wire.lines) < count:
            await asyncio.sleep(0)
    return [json.loads(line) for line in wire.lines]


async def test_lines_leave_in_order_and_nothing_is_nothing(run, wire):
    for line in (b'{"n":1}\n', None, b'{"n":2}\n'):
        run.send(line)
    assert await sent(wire, 2) == [{"n": 1}, {"n": 2}]


async def test_an_answer_comes_to_who_asked(run, wire):
    asking = asyncio.create_task(run.ask(Interrupt(), 5))
    (request,) = await sent(wire, 1)
    run.answered(Answered("of another", {}))
    run.answered(Answered(request["request_id"], {"still_queued": []}))
    assert await asking == {"still_queued": []}


async def test_a_refusal_is_raised_in_the_clis_words(run, wire):
    asking = asyncio.create_task(run.ask(Interrupt(), 5))
    (request,) = await sent(wire, 1)
    run.answered(Failed(request["request_id"], "Not now"))
    with pytest.raises(RemoteError, match="Not now"):
        await asking


async def test_a_silent_cli_is_told_of(run):
    with pytest.raises(Unsupported, match="does not answer"):
        await run.ask(Interrupt(), 0.05)
    assert run.unanswered() == []


async def test_what_is_not_answered_can_be_asked_again(run, wire):
    asking = asyncio.create_task(run.ask(Initialize(), 5))
    (request,) = await sent(wire, 1)
    assert [json.loads(line) for line in run.unanswered()] == [request]
    assert run.hellos == {request["request_id"]}
    run.close()
    with pytest.raises(Disconnected):
        await asking


async def test_a_cli_that_does_not_read_is_not_written_to_for_ever(run, wire):
    wire.may_read.clear()
    await asyncio.sleep(0)
    for _ in range(OUTBOX_LIMIT):
        run.send(b"{}\n")
    with pytest.raises(Unsupported, match="does not read"):
        run.send(b"{}\n")
