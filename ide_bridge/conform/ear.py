"""The ear: hears what a plug-in sends, and notes what is not the link protocol.

It stands between the stream and the connection. A connection forgives much, because a bridge must go on; here
every offence is put into words. What can be understood all the same is passed on.

It does not know what is asked, nor whether the plug-in does what it should.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ide_bridge.conform.shapes import EVENTS, REQUESTS, misfit
from ide_bridge.errors import ParseError
from ide_bridge.wire.framing import ContentLength, TooLarge

__all__ = ["Ear"]

_CHUNK = 64 * 1024
_CLOSE_SECONDS = 1.0


class _Message(msgspec.Struct):
    jsonrpc: str = ""
    id: object = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode = msgspec.json.Decoder(_Message).decode


class Ear:
    """A channel that listens closely: ``complaints`` in sentences, ``answered`` ids in their order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.complaints: list[str] = []
        self.answered: list[int] = []
        self.first: str | None = None
        self._reader = reader
        self._writer = writer
        self._framing = ContentLength()

    async def __aiter__(self) -> AsyncIterator[bytes | TooLarge]:
        """Give the messages of the plug-in until it is gone or speaks nonsense."""
        try:
            while data := await self._reader.read(_CHUNK):
                for frame in self._framing.feed(data):
                    self._hear(frame)
                    yield frame
        except ParseError as error:
            self.complaints.append(f"Its output cannot be read as messages with Content-Length headers: {error}")
        except ConnectionError:
            return

    async def send(self, message: bytes) -> None:
        """Send one message; wait while the plug-in cannot keep up."""
        self._writer.write(self._framing.encode(message))
        await self._writer.drain()

    async def close(self, _code: int, _reason: str) -> None:
        """Close the stream; what the plug-in does not read in time is thrown away."""
        self._writer.close()
        giving_up = asyncio.get_running_loop().call_later(_CLOSE_SECONDS, self._writer.transport.abort)
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            return
        finally:
            giving_up.cancel()

    def _hear(self, frame: bytes | TooLarge) -> None:
        if isinstance(frame, TooLarge):
            self.complaints.append(f"It sent a message of {frame.size} bytes, which is too large for the bridge.")
            return
        try:
            message = _decode(frame)
        except msgspec.MsgspecError as error:
            self.complaints.append(f"It sent a message that is no JSON-RPC: {error}.")
            return
        if self.first is None and isinstance(message.method, str):
            self.first = message.method if message.id is not UNSET else f"the notification {message.method}"
        if complaint := self._complaint(message):
            self.complaints.append(complaint)

    def _complaint(self, message: _Message) -> str:
        """What is wrong with a message, if anything is."""
        if message.jsonrpc != "2.0":
            return 'It sent a message without "jsonrpc": "2.0".'
        if message.id is not UNSET and type(message.id) is not int:
            return f"It sent a message with the id {message.id!r}; ids are integers."
        if isinstance(message.method, str):
            return self._told(message.method, message)
        return self._answer(message)

    def _told(self, method: str, message: _Message) -> str:
        asked = message.id is not UNSET
        shapes, others = (REQUESTS, EVENTS) if asked else (EVENTS, REQUESTS)
        if method in others:
            return f"It sent {method} as a {'request' if asked else 'notification'}, which it is not."
        if method not in shapes:
            kind = "request" if asked else "notification"
            return (
                "" if method.startswith("$/") else f"It sent the {kind} {method!r}, which the link does not have."
            )
        wrong = misfit(shapes, method, message.params if isinstance(message.params, Raw) else b"null")
        return f"It sent {method} with parameters that do not fit: {wrong}." if wrong else ""

    def _answer(self, message: _Message) -> str:
        if (message.result is UNSET) == (message.error is UNSET):
            return "It sent an answer that has not just one of result and error."
        if not isinstance(message.id, int):
            return "It sent an answer without an id."
        if message.id in self.answered:
            return f"It answered the request {message.id} twice."
        self.answered.append(message.id)
        return ""
