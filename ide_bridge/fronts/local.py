"""The private local socket: how this user's own commands and editors reach the bridge.

A Unix socket only we can open, checked once more by asking the system who is on the other end. It answers the
methods every client has, those that steer the bridge, and those of the link.

It does not know what a bridge is made of: all of them are given to it.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

import msgspec

from ide_bridge.fronts.client import Client
from ide_bridge.fronts.tap import Recording, Tap
from ide_bridge.wire.connection import Connection
from ide_bridge.wire.dispatch import Dispatcher
from ide_bridge.wire.framing import ContentLength
from ide_bridge.wire.streams import StreamChannel

__all__ = ["LocalFront", "Record"]

_FINISH_SECONDS = 1.0


class Record(msgspec.Struct):
    """The parameters of ``record``."""

    on: bool = True


class LocalFront:
    """Listens on the private socket."""

    def __init__(
        self,
        path: str,
        dispatcher: Dispatcher[Client],
        client: Callable[[], Client],
        left: Callable[[Client], None] = lambda _client: None,
    ) -> None:
        self._path = path
        self._dispatcher = dispatcher
        self._client = client
        self._left = left
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._channels: dict[Client, StreamChannel] = {}
        self._connections: dict[Client, Connection[Client]] = {}
        self._recordings: dict[Client, Recording] = {}

    async def start(self) -> None:
        """Open the socket, private from the first moment: its folder lets nobody else in."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        self._server = await asyncio.start_unix_server(self._accept, self._path)
        os.chmod(self._path, 0o600)

    async def restore(self) -> list[str]:
        """Open the socket again if someone deleted it; who is connected stays. Gives what was put back."""
        if os.path.exists(self._path):
            return []
        if self._server is not None:
            self._server.close()
        await self.start()
        return ["the private socket"]

    async def close(self) -> None:
        """Close it, and whatever is still being said."""
        if self._server is None:
            return
        self._server.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_SECONDS):
                await asyncio.gather(
                    *(recording.finish() for recording in self._recordings.values()),
                    *(connection.told() for connection in self._connections.values()),
                )
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(OSError):
            os.unlink(self._path)

    def line(self, client: Client) -> Connection[Client]:
        """The connection over which this one came."""
        return self._connections[client]

    async def record(self, client: Client, tap: Tap, *, on: bool) -> None:
        """Send the caller what is said to clients and by them; when it wants no more, first all there is."""
        recording = self._recordings.get(client)
        if on and recording is None:
            self._recordings[client] = Recording(tap, self._channels[client].send)
        elif recording is not None and not on:
            await recording.finish()
            self._recordings.pop(client, None)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or not _is_ours(writer.get_extra_info("socket")):
            writer.close()
            return
        self._tasks.add(task)
        client = self._client()
        channel = self._channels[client] = StreamChannel(reader, writer, ContentLength())
        connection = Connection(channel, self._dispatcher, client, last_id=_unlike_any_other())
        self._connections[client] = connection
        try:
            await connection.run()
        except asyncio.CancelledError:
            writer.close()
        finally:
            del self._channels[client], self._connections[client]
            self._left(client)
            if (recording := self._recordings.pop(client, None)) is not None:
                recording.abandon()
            self._tasks.discard(task)


def _unlike_any_other() -> int:
    """Where our ids begin: an answer to a bridge that died must not fit a question of the one after it."""
    return (1 + int.from_bytes(os.urandom(3))) << 7


def _is_ours(peer: socket.socket) -> bool:
    """Whether the other end runs as the same user, where the system tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, user, _group = struct.unpack("3i", credentials)
    return bool(user == os.getuid())
