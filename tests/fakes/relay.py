"""Both sides of the relay over real sockets: a CLI as ``--sdk-url`` makes it, and a front end.

It does not know the relay's insides: it has a port, and what the wire carries.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

__all__ = ["RelayEnd", "connect_cli", "connect_front_end"]

PATIENCE = 10.0
ENDED = {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR}


class RelayEnd:
    """One connection to the relay."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket
        self.unread: list[Any] = []

    async def say(self, *messages: Any) -> None:
        """Send each as a line of its own."""
        for message in messages:
            await self.socket.send_str(json.dumps(message) + "\n")

    async def hear(self, count: int = 1) -> list[Any]:
        """The next so many messages."""
        return [await self._next() for _ in range(count)]

    async def hear_until(self, wanted: Callable[[Any], bool]) -> list[Any]:
        """All messages up to the first that is wanted, and it."""
        heard = [await self._next()]
        while not wanted(heard[-1]):
            heard.append(await self._next())
        return heard

    async def closed(self) -> int | None:
        """Wait until the relay has hung up; gives the close code."""
        async with asyncio.timeout(PATIENCE):
            while (frame := await self.socket.receive()).type not in ENDED:
                pass
        return int(frame.data) if frame.type is WSMsgType.CLOSE else self.socket.close_code

    async def _next(self) -> Any:
        while not self.unread:
            frame = await self.socket.receive(PATIENCE)
            assert frame.type is WSMsgType.TEXT, f"not a message: {frame}"
            assert frame.data.endswith("\n"), "every message is a line"
            self.unread += map(json.loads, frame.data.splitlines())
        return self.unread.pop(0)


@asynccontextmanager
async def _connect(url: str, headers: dict[str, str]) -> AsyncIterator[RelayEnd]:
    async with ClientSession() as session, session.ws_connect(url, headers=headers, max_msg_size=0) as socket:
        yield RelayEnd(socket)


def connect_cli(port: int, *, last: str | None = None, **headers: str) -> Any:
    """Connect as a CLI does, for the first time or after it said `last`."""
    again = {} if last is None else {"X-Last-Request-Id": last}
    return _connect(f"http://127.0.0.1:{port}/", again | headers)


def connect_front_end(port: int, *, query: str = "", **headers: str) -> Any:
    """Connect as a front end does."""
    return _connect(f"http://127.0.0.1:{port}/ws{query}", headers)
