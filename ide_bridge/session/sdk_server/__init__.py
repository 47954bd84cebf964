"""The server for ``claude --sdk-url``: a path and a token per session, and a channel that outlives connections.

The CLI (up to 2.1.120; newer ones refuse a server on this machine by themselves) connects to ``/sdk/<session>``
with the bearer token that it finds in ``CLAUDE_CODE_SESSION_ACCESS_TOKEN``, and both speak NDJSON in text or
binary frames, cut anywhere. In hybrid mode it listens on the socket and speaks by POST. PROTOCOL.md, "The
--sdk-url server".

1. One CLI per session: whoever comes with the right token takes the place of the one before, whose loss we may not
   have noticed yet. What that one had said is read to its end first, so the order is kept.
2. What is said again after a reconnect or in a repeated POST is heard once (``seen``). A message is remembered
   when it has been given on, not before: what a POST could not bring in is taken when it is repeated.
3. What we send waits while the CLI is away. What was under way when the connection broke is sent again: everything
   we send has an id by which the CLI knows it.
4. Nobody can know whether what was sent last has arrived: a reader gets `Returned` when the CLI is back.
5. HTTP errors and the close code 4001 end the CLI. Until the channel is closed its session is never refused.

It does not know what the messages mean, or who started the CLI.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import msgspec
from aiohttp import WebSocketError, WSCloseCode, WSMsgType, web

from ide_bridge.errors import Disconnected
from ide_bridge.session.channel import Returned
from ide_bridge.session.sdk_server.backlog import Backlog
from ide_bridge.session.sdk_server.seen import Seen, mark_of
from ide_bridge.wire.framing import MESSAGE_LIMIT, Lines, TooLarge

__all__ = ["LAST_REQUEST", "SdkChannel", "SdkServer", "Wire", "upgrade"]

LAST_REQUEST = "X-Last-Request-Id"
_TOKEN_BYTES = 32
_INBOX_LIMIT = 4 * 1024 * 1024
_OUTBOX_LIMIT = 4 * 1024 * 1024
_CLOSE_SECONDS = 1.0
_POST_SECONDS = 5.0
_SESSION_ENDED = 4001

Admit = Callable[[web.Request, str], None]


class Wire:
    """One WebSocket: bytes both ways, and an end that does not keep us waiting.

    `overflowed` tells that it ended because of a frame over the limit.
    """

    def __init__(self, socket: "web.WebSocketResponse[bool]", transport: asyncio.Transport | None) -> None:
        self._socket = socket
        self._transport = transport
        self.overflowed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """What comes, frame by frame, until the other end is gone."""
        with suppress(ConnectionError):
            async for message in self._socket:
                if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
                    yield message.data if isinstance(message.data, bytes) else bytes(message.data)
                elif isinstance(message.data, WebSocketError):
                    self.overflowed = message.data.code == WSCloseCode.MESSAGE_TOO_BIG

    @property
    def response(self) -> web.StreamResponse:
        """What the handler returns when all was said."""
        return self._socket

    async def send(self, data: bytes) -> None:
        """Send one text frame; wait while the other end cannot keep up. Raises ``ConnectionError``."""
        await self._socket.send_frame(data, WSMsgType.TEXT)

    async def close(self, code: int, reason: str) -> None:
        """Say goodbye; what the other end does not read in time is thrown away, or we would wait for ever."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._socket.close(code=code, message=reason.encode())
        except (TimeoutError, ConnectionError):
            self.cut()

    def cut(self) -> None:
        """End it at once. What has come is still given."""
        if self._transport is not None:
            self._transport.abort()

    def cut_soon(self) -> None:
        """End it, if it has not ended by itself when all that was under way should have come or gone."""
        asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self.cut)


async def upgrade(request: web.Request, limit: int) -> Wire:
    """Make a WebSocket of a request, with messages up to the limit."""
    socket = web.WebSocketResponse(compress=False, max_msg_size=limit, timeout=_CLOSE_SECONDS, decode_text=False)
    if not socket.can_prepare(request).ok:
        raise web.HTTPUpgradeRequired(headers={"Upgrade": "websocket"}, text="A WebSocket is served here.\n")
    await socket.prepare(request)
    return Wire(socket, request.transport)


class SdkChannel:
    """The way to one CLI over a socket it may come back to. It ends when it is closed, never by itself.

    `unheard` is the uuid of the last thing the CLI says it said, if that never came. 2.1.120 says it again at
    once; 2.1.37 never does, and then what it said while it was away, a `result` too, is only in its transcript.
    """

    def __init__(self, session: str, forget: Callable[["SdkChannel"], None]) -> None:
        self.session = session
        self.token = secrets.token_hex(_TOKEN_BYTES)
        self.path = f"/sdk/{session}"
        self.unheard: str | None = None
        self._forget = forget
        self._seen = Seen()
        self._inbox: Backlog[bytes | Returned] = Backlog(_INBOX_LIMIT)
        self._outbox: Backlog[bytes] = Backlog(_OUTBOX_LIMIT)
        self._wire: Wire | None = None
        self._was_there = False
        self._is_over = False
        self._turn = asyncio.Lock()
        self._taking = asyncio.Lock()

    @property
    def is_connected(self) -> bool:
        """Whether the CLI is there now."""
        return self._wire is not None

    async def __aiter__(self) -> AsyncIterator[bytes | Returned]:
        """What the CLI says, in whole lines, until the channel is closed."""
        while (entry := await self._inbox.first()) is not None:
            self._inbox.drop()
            yield entry

    async def send(self, data: bytes) -> None:
        """Send whole lines, now or when the CLI is back; wait while too much is waiting already."""
        await self._outbox.put(data, len(data))

    async def close(self) -> None:
        """Send what still waits, and end the CLI: it will not come back."""
        self.end()
        async with self._turn:  # held for as long as a connection is, for which `end` has set a deadline
            pass

    def end(self) -> None:
        """The same without waiting for it."""
        if self._is_over:
            return
        self._is_over = True
        self._forget(self)
        self._inbox.close()
        self._outbox.close()
        if self._wire is not None:
            self._wire.cut_soon()

    async def serve(self, wire: Wire, last: str | None) -> None:
        """Speak over this connection until it ends or another takes its place."""
        previous, self._wire = self._wire, wire
        if previous is not None:
            previous.cut_soon()
        async with self._turn:
            if self._wire is wire:
                self.unheard = last if last is not None and last not in self._seen else None
                await self._speak(wire)
            else:
                wire.cut()

    async def take(self, line: bytes) -> None:
        """Give a message to the reader, unless it was given before. Raises ``Disconnected`` after the end."""
        mark = mark_of(line)
        async with self._taking:
            if mark is not None and mark in self._seen:
                return
            await self._inbox.put(line + b"\n", len(line))
            self._seen.add(mark)
            if mark == self.unheard:
                self.unheard = None

    async def _speak(self, wire: Wire) -> None:
        if self._was_there:
            self._inbox.add(Returned(), 0)
        self._was_there = True
        writing = asyncio.create_task(self._write(wire))
        try:
            await self._read(wire)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            if self._wire is wire:
                self._wire = None

    async def _read(self, wire: Wire) -> None:
        """Hear the CLI out. What is over the limit would come again after every reconnect, so it ends all."""
        lines = Lines(MESSAGE_LIMIT)
        async for data in wire:
            for line in lines.feed(data):
                if isinstance(line, TooLarge):
                    self.end()
                    continue
                with suppress(Disconnected):
                    await self.take(line)
        if wire.overflowed:
            self.end()

    async def _write(self, wire: Wire) -> None:
        """Send what waits; after the last of it, when no more can come, say goodbye."""
        try:
            while (data := await self._outbox.first()) is not None:
                await wire.send(data)
                self._outbox.drop()
            await wire.close(_SESSION_ENDED, "The session is over.")
        except ConnectionError:
            wire.cut()


class SdkServer:
    """The routes on which expected CLIs come in; `admit` raises for a request without the session's token."""

    def __init__(self, admit: Admit) -> None:
        self._admit = admit
        self._channels: dict[str, SdkChannel] = {}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Put the socket at ``/sdk/<session>``, and where hybrid mode looks for it and posts."""
        for path in ("/sdk/{session}", "/sdk/ws/{session}"):
            router.add_get(path, self._connect, allow_head=False)
        for path in ("/sdk/{session}/events", "/sdk/session/{session}/events"):
            router.add_post(path, self._post)

    def expect(self, session: str) -> SdkChannel:
        """From now on this session's CLI may connect. What was expected under that name before is forgotten."""
        self.forget(session)
        channel = self._channels[session] = SdkChannel(session, self._gone)
        return channel

    def forget(self, session: str) -> None:
        """Let this session's CLI in no more, and end it if it is there."""
        if (channel := self._channels.get(session)) is not None:
            channel.end()

    def _gone(self, channel: SdkChannel) -> None:
        if self._channels.get(channel.session) is channel:
            del self._channels[channel.session]

    def _admitted(self, request: web.Request) -> SdkChannel:
        """The channel that a request may use; a stranger does not learn which sessions there are."""
        channel = self._channels.get(request.match_info["session"])
        self._admit(request, secrets.token_hex(_TOKEN_BYTES) if channel is None else channel.token)
        if channel is None:
            raise web.HTTPNotFound(text="No such session is expected.\n")
        return channel

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        channel = self._admitted(request)
        wire = await upgrade(request, MESSAGE_LIMIT)
        await channel.serve(wire, request.headers.get(LAST_REQUEST))
        return wire.response

    async def _post(self, request: web.Request) -> web.Response:
        """Take what a hybrid CLI says. It repeats what was not answered with 200, and what was taken stays so."""
        channel = self._admitted(request)
        events = await _events(request)
        try:
            async with asyncio.timeout(_POST_SECONDS):
                for event in events:
                    await channel.take(event)
        except TimeoutError:
            raise web.HTTPServiceUnavailable(text="Too much is waiting; repeat it later.\n") from None
        except Disconnected:
            raise web.HTTPGone(text="The session is over.\n") from None
        return web.json_response({})


class _Posted(msgspec.Struct):
    events: list[msgspec.Raw]


_decode_posted = msgspec.json.Decoder(_Posted).decode


async def _events(request: web.Request) -> list[bytes]:
    """The messages in the body of a POST, each as one line."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MESSAGE_LIMIT:
            raise web.HTTPRequestEntityTooLarge(MESSAGE_LIMIT, len(body), text="That is too large.\n")
    try:
        return [msgspec.json.format(bytes(event), indent=-1) for event in _decode_posted(body).events]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise web.HTTPBadRequest(text='The body must be {"events": […]}.\n') from None
