"""The run of a CLI: what is said to it while it lives, and who waits for its answers.

Lines leave in the order in which they were given, as fast as the CLI reads. Every request has a deadline: the
oldest CLIs say nothing at all to what they do not know.

It does not know what the CLI is asked for, or what it says by itself.
"""

import asyncio
import contextlib
from typing import Any, Protocol

from ide_bridge.errors import Disconnected, RemoteError, Unsupported
from ide_bridge.session.channel import Channel
from ide_bridge.session.control import Answered, Control, Failed
from ide_bridge.session.control.requests import Initialize, Request

__all__ = ["Process", "Run"]

OUTBOX_LIMIT = 1_000


class Process(Protocol):
    """What runs the CLI."""

    @property
    def pid(self) -> int:
        """The CLI's own."""

    @property
    def complaint(self) -> str:
        """What it said last on its error output."""

    async def wait(self) -> int:
        """Its exit code, when it has one."""

    async def end(self) -> int:
        """End it and all it started, in steps; gives the exit code."""


class Run:
    """The time of one CLI in a session."""

    def __init__(self, channel: Channel, process: Process, version: str) -> None:
        self.channel = channel
        self.process = process
        self.control = Control(_numbers(version))
        self.ready = False
        self.started = asyncio.Event()
        self.wanted = False
        self.ending = False
        self._is_over = False
        self.hellos: set[str] = set()
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}

    def send(self, line: bytes | None) -> None:
        """Put a line on its way, unless there is nothing to say."""
        if line is None:
            return
        if self._outbox.qsize() >= OUTBOX_LIMIT:
            raise Unsupported("The CLI does not read what it is sent; wait, or stop the session.")
        self._outbox.put_nowait(line)

    async def write(self) -> None:
        """Send what is to be sent, as fast as the CLI takes it."""
        with contextlib.suppress(Disconnected):
            while True:
                await self.channel.send(await self._outbox.get())

    async def ask(self, request: Request, seconds: float) -> dict[str, Any]:
        """Ask, and wait for the answer; a CLI may say nothing at all to what it does not know."""
        if self._is_over:
            raise Disconnected("The CLI is gone.")
        loop = asyncio.get_running_loop()
        request_id, line = self.control.request(request, until=loop.time() + seconds)
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._asked[request_id] = answer
        if isinstance(request, Initialize):
            self.hellos.add(request_id)
        self.send(line)
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            self.control.expire(loop.time())
            raise Unsupported("The CLI does not answer; it may not know what it was asked.") from None
        finally:
            self._asked.pop(request_id, None)

    def answered(self, event: Answered | Failed) -> None:
        """The CLI has answered."""
        answer = self._asked.get(event.request_id)
        if answer is None or answer.done():
            return
        if isinstance(event, Answered):
            answer.set_result(event.response)
        else:
            answer.set_exception(RemoteError(RemoteError.code, event.error))

    def unanswered(self) -> list[bytes]:
        """The requests that the CLI may not have."""
        lines = (self.control.again(request_id) for request_id in self._asked)
        return [line for line in lines if line is not None]

    def close(self) -> None:
        """It is over: nobody waits for an answer any more."""
        self._is_over = True
        self.started.set()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(Disconnected("The CLI is gone."))


def _numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch = (int(number) for number in version.split("."))
    return major, minor, patch
