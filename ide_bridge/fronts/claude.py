"""The Claude Code front: the WebSocket at ``/`` that the CLI finds through the lock file.

It does not know what clients may ask; ``mcp`` has that.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from aiohttp import WSMsgType, web

from ide_bridge.fronts.client import Client, Clients
from ide_bridge.fronts.gate import HEADER_TOKEN, check_token, refuse_origin
from ide_bridge.fronts.tap import Line, Tap
from ide_bridge.wire.connection import Connection
from ide_bridge.wire.dispatch import Dispatcher
from ide_bridge.wire.framing import MESSAGE_LIMIT

__all__ = ["ClaudeFront"]

CLIENT_LIMIT = 64
_CLOSE_SECONDS = 1.0


class ClaudeFront:
    """Takes CLIs in, and holds their conversations until they or we leave."""

    def __init__(
        self, clients: Clients, dispatcher: Dispatcher[Client], token: Callable[[], str], tap: Tap
    ) -> None:
        self._clients = clients
        self._dispatcher = dispatcher
        self._token = token
        self._tap = tap
        self._connections: set[Connection[Client]] = set()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Put the socket at ``/``."""
        router.add_get("/", self._connect, allow_head=False)

    async def close(self) -> None:
        """Say goodbye to everyone. The CLI takes it as a lost connection, and tries to come back."""
        goodbyes = (connection.close(1001, "The bridge stops.") for connection in self._connections)
        await asyncio.gather(*goodbyes, return_exceptions=True)

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        refuse_origin(request)
        check_token(request, HEADER_TOKEN, self._token())
        socket = web.WebSocketResponse(
            protocols=("mcp",),
            compress=False,
            max_msg_size=MESSAGE_LIMIT,
            timeout=_CLOSE_SECONDS,
            decode_text=False,
        )
        if not socket.can_prepare(request).ok:
            raise web.HTTPUpgradeRequired(headers={"Upgrade": "websocket"}, text="A WebSocket is served here.\n")
        if len(self._clients) >= CLIENT_LIMIT:
            raise web.HTTPServiceUnavailable(text="Too many clients are connected.\n")
        await socket.prepare(request)
        await self._converse(request, socket)
        return socket

    async def _converse(self, request: web.Request, socket: "web.WebSocketResponse[bool]") -> None:
        client = self._clients.join()
        line = self._tap.connect(client.number, request.path, request.headers, socket.ws_protocol)
        channel = _WebSocketChannel(socket, request.transport, line)
        connection = Connection(channel, self._dispatcher, client)
        client.notify = connection.notify
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            self._clients.leave(client)


class _WebSocketChannel:
    """Messages over a WebSocket, undecoded: the JSON parser reads UTF-8 itself."""

    def __init__(
        self, socket: "web.WebSocketResponse[bool]", transport: asyncio.Transport | None, line: Line
    ) -> None:
        self._socket = socket
        self._transport = transport
        self._line = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for message in self._socket:
            if message.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
                data = message.data if isinstance(message.data, bytes) else bytes(message.data)
                self._line.received(data)
                yield data

    async def send(self, message: bytes) -> None:
        self._line.sent(message)
        await self._socket.send_frame(message, WSMsgType.TEXT)

    async def close(self, code: int, reason: str) -> None:
        said = self._socket.close_code  # by the other end, if that closed first
        self._line.close(code if said is None else said)
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._socket.close(code=code, message=reason.encode())
        except TimeoutError:
            # What the other end does not read is thrown away, or we would wait for ever.
            if self._transport is not None:
                self._transport.abort()
