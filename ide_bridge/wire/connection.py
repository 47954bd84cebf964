"""A connection: a peer run over real I/O.

It reads messages from a channel, answers in place what can be answered at once, gives every other request a
task of its own, and ends them all when the channel ends. Notifications to the other end wait in a bounded
outbox: those with a key replace an older one with the same key, so a slow reader loses in-between news only;
one that reads nothing at all is closed.

It does not know what kind of channel it has, nor what any method means but ``notifications/cancelled``.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Raw

from ide_bridge.answers import dismiss
from ide_bridge.errors import Disconnected, InvalidRequest, RemoteError, Unsupported
from ide_bridge.wire.dispatch import Dispatcher, Outcome, settle_later
from ide_bridge.wire.framing import TooLarge
from ide_bridge.wire.peer import Failure, Id, Incoming, Notification, Peer, Refused, Request, Response

__all__ = ["Channel", "Connection"]

logger = logging.getLogger(__name__)

C = TypeVar("C")
Work = Coroutine[Any, Any, Any]
Inner = Awaitable[object] | None

IN_FLIGHT_LIMIT = 1024  # a whole batch must fit, for none of its elements is done before the last has begun
OUTBOX_LIMIT = 1000
UNSENT_LIMIT = 128 * 1024 * 1024
"""Of answers that nobody reads, this many bytes are kept."""


class Channel(Protocol):
    """Where messages come from and go to."""

    def __aiter__(self) -> AsyncIterator[bytes | TooLarge]:
        """Give the messages of the other end until it is gone."""

    async def send(self, message: bytes) -> None:
        """Send one message; wait while the other end cannot keep up."""

    async def close(self, code: int, reason: str) -> None:
        """Say goodbye; safe to call twice."""


class _Cancelled(msgspec.Struct, rename="camel"):
    request_id: Id


_decode_cancelled = msgspec.json.Decoder(_Cancelled).decode


class Connection(Generic[C]):
    """One conversation, from the first message to the last."""

    def __init__(self, channel: Channel, dispatcher: Dispatcher[C], context: C, *, last_id: int = 0) -> None:
        self.context = context
        self._channel = channel
        self._dispatcher = dispatcher
        self._peer = Peer(last_id)
        self._tasks: dict[asyncio.Task[None], Request | None] = {}
        self._asked: dict[int, asyncio.Future[Raw]] = {}
        self._outbox: OrderedDict[object, bytes] = OrderedDict()
        self._posting: asyncio.Task[None] | None = None
        self._unsent = 0
        self._closed = False

    async def run(self) -> None:
        """Hold the conversation until the other end is gone, then leave nothing behind."""
        try:
            async for message in self._channel:
                await self._receive(message)
        finally:
            await self._wind_up()

    async def request(self, method: str, params: object, *, timeout: float) -> Raw:  # noqa: ASYNC109 - a deadline of the protocol
        """Ask the other end; raises ``RemoteError``, ``Disconnected`` or ``TimeoutError``."""
        if self._closed:
            raise Disconnected("The other end is gone.")
        request_id, message = self._peer.request(method, params)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        try:
            async with asyncio.timeout(timeout):
                await self._send(message)
                return await answer
        finally:
            self._asked.pop(request_id, None)
            self._peer.forget(request_id)

    def notify(self, method: str, params: object = None, *, key: str | None = None) -> None:
        """Tell the other end when it can take it; a later one with the same key replaces this one."""
        if self._closed:
            return
        slot: object = object() if key is None else key
        self._outbox[slot] = self._peer.notification(method, params)
        if self._posting is None:
            self._posting = asyncio.create_task(self._post())
        elif len(self._outbox) > OUTBOX_LIMIT:
            self._hang_up()

    async def told(self) -> None:
        """Wait until the other end has taken every notification."""
        while self._posting is not None and not self._closed:
            await asyncio.shield(self._posting)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye. ``run`` then ends by itself."""
        await self._channel.close(code, reason)

    async def _receive(self, message: bytes | TooLarge) -> None:
        if isinstance(message, TooLarge):
            reason = InvalidRequest(f"The message is too large ({message.size:,} bytes).")
            return await self._send(self._peer.refuse(reason))
        for incoming in self._peer.receive(message):
            await self._take(incoming)
        return None

    async def _take(self, incoming: Incoming) -> None:
        match incoming:
            case Request():
                await self._serve(incoming)
            case Notification(method="notifications/cancelled", params=Raw() as params):
                self._cancel(params)
            case Notification():
                await self._dispatcher.tell(self.context, incoming)
            case Response():
                self._resolve(incoming)
            case Refused():
                await self._send(incoming.reply)

    async def _serve(self, request: Request) -> None:
        if len(self._tasks) >= IN_FLIGHT_LIMIT:
            refusal = Unsupported("Too many requests are open; wait for some answers first.")
            return await self._answer(request, Failure(refusal.code, str(refusal)))
        outcome = self._dispatcher.serve(self.context, request)
        if isinstance(outcome, Raw | Failure):
            return await self._answer(request, outcome)
        return self._own(self._serve_later(request, outcome), request, outcome)

    async def _serve_later(self, request: Request, served: Awaitable[object]) -> None:
        outcome = await settle_later(served)
        if (task := asyncio.current_task()) in self._tasks:
            self._tasks[task] = None  # too late to cancel: a whole batch may leave with this answer
        await self._answer(request, outcome)

    async def _answer(self, request: Request, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            reply = self._peer.error(request, outcome)
        else:
            reply = self._peer.result(request, outcome)
        if reply is not None:
            await self._send_answer(reply)

    async def _send_answer(self, reply: bytes) -> None:
        self._unsent += len(reply)
        try:
            if self._unsent > UNSENT_LIMIT:
                self._hang_up()
            else:
                await self._send(reply)
        finally:
            self._unsent -= len(reply)

    def _hang_up(self) -> None:
        """End a conversation whose other end asks and does not read."""
        self._outbox.clear()
        self._own(self._channel.close(1008, "You do not read."))

    async def _send(self, message: bytes) -> None:
        try:
            await self._channel.send(message)
        except ConnectionError:
            logger.debug("a message was lost: the other end is gone")

    def _cancel(self, params: Raw) -> None:
        try:
            cancelled = _decode_cancelled(params).request_id
        except (ValueError, RecursionError):
            return
        for task, request in self._tasks.items():
            if request is not None and request.id == cancelled and type(request.id) is type(cancelled):
                task.cancel()

    def _resolve(self, response: Response) -> None:
        answer = self._asked.get(response.id)
        if answer is None or answer.done():
            return
        if response.error is None:
            answer.set_result(response.result or Raw(b"null"))
        else:
            answer.set_exception(RemoteError(response.error.code, response.error.message))

    async def _post(self) -> None:
        while self._outbox:
            _, message = self._outbox.popitem(last=False)
            await self._send(message)
        self._posting = None

    def _own(self, work: Work, request: Request | None = None, inner: Inner = None) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = request
        task.add_done_callback(lambda _: self._disown(task, request, inner))

    def _disown(self, task: asyncio.Task[None], request: Request | None, inner: Inner) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled():
            if (error := task.exception()) is not None:
                logger.error("a request ended badly", exc_info=error)
            return
        dismiss(inner)  # a task cancelled before its first step never came to await it
        if request is not None and not self._closed and (reply := self._peer.drop(request)) is not None:
            self._own(self._send(reply))

    async def _wind_up(self) -> None:
        self._closed = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(Disconnected("The other end is gone."))
        tasks = [*self._tasks, *([self._posting] if self._posting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._channel.close(1001, "")
