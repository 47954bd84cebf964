"""A channel over a pair of asyncio streams: messages in a framing, over a socket or a pipe.

It does not know what the messages mean or who sends them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from ide_bridge.errors import ParseError
from ide_bridge.wire.framing import Framing, TooLarge

__all__ = ["StreamChannel"]

_CHUNK = 64 * 1024
_CLOSE_SECONDS = 1.0


class StreamChannel:
    """Messages over a byte stream; a stream that cannot be read as frames ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, framing: Framing) -> None:
        self._reader = reader
        self._writer = writer
        self._framing = framing

    async def __aiter__(self) -> AsyncIterator[bytes | TooLarge]:
        """Give the messages of the other end until it is gone or speaks nonsense."""
        with suppress(ConnectionError, ParseError):
            while data := await self._reader.read(_CHUNK):
                for frame in self._framing.feed(data):
                    yield frame

    async def send(self, message: bytes) -> None:
        """Send one message; wait while the other end cannot keep up."""
        self._writer.write(self._framing.encode(message))
        await self._writer.drain()

    async def close(self, _code: int, _reason: str) -> None:
        """Close the stream. What the other end does not read in time is thrown away, or we would wait for ever."""
        self._writer.close()
        giving_up = asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._writer.transport.abort)
        with suppress(ConnectionError):
            await self._writer.wait_closed()
        giving_up.cancel()
