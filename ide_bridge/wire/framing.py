"""Framing: where one message ends and the next begins, in a stream of bytes.

Two ways: ``Content-Length`` headers, as language servers and our link use them, and one message per line
(NDJSON). Both are fed bytes cut anywhere and give back whole messages.

1. A message over the limit is never held in memory: its bytes are passed over, and ``TooLarge`` stands in its
   place, so that the conversation goes on.
2. What cannot be a frame raises ``ParseError``, and so does every later byte: nobody can know then where the
   next frame starts, and the stream must be closed. Messages that came whole before it are given first, and
   the call after that raises.

It does not know JSON, sockets, or who is speaking.
"""

from typing import Protocol

import msgspec

from ide_bridge.errors import ParseError

__all__ = ["MESSAGE_LIMIT", "ContentLength", "Framing", "Lines", "TooLarge"]

MESSAGE_LIMIT = 64 * 1024 * 1024
_HEADER_LIMIT = 4096
_HEADER_END = b"\r\n\r\n"


class TooLarge(msgspec.Struct, frozen=True):
    """Stands for a message that was passed over because it was over the limit."""

    size: int


Frame = bytes | TooLarge


class Framing(Protocol):
    """Turns a stream into messages, and a message into its bytes on the stream."""

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes from the stream; give the messages they complete."""

    def encode(self, message: bytes) -> bytes:
        """Wrap one message for the stream."""


class Lines:
    """One message per line."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes from the stream; give the messages they complete. Empty lines are nothing."""
        *ends, rest = data.split(b"\n")
        frames = [frame for end in ends if (frame := self._finish(end)) is not None]
        self._keep(rest)
        return frames

    def encode(self, message: bytes) -> bytes:
        """End the message with a newline. JSON encoders leave none inside."""
        return message + b"\n"

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _finish(self, end: bytes) -> Frame | None:
        self._keep(end)
        size, line = self._size, b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if size > self._limit:
            return TooLarge(size)
        return line.strip() or None


class ContentLength:
    """A header block that says how long the message is, then the message."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._body: int | None = None
        self._skip = 0
        self._broken: str | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes from the stream; give the messages they complete."""
        if self._broken is not None:
            raise ParseError(self._broken)
        self._buffer += data
        frames: list[Frame] = []
        try:
            while (frame := self._next()) is not None:
                frames.append(frame)
        except ParseError:
            if not frames:
                raise
        return frames

    def encode(self, message: bytes) -> bytes:
        """Put the header block before the message."""
        return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)

    def _next(self) -> Frame | None:
        if self._body is None:
            self._body = self._header()
            if self._body is None:
                return None
            self._skip = self._body if self._body > self._limit else 0
        return self._pass_over(self._body) if self._body > self._limit else self._take(self._body)

    def _take(self, size: int) -> Frame | None:
        if len(self._buffer) < size:
            return None
        body = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._body = None
        return body

    def _pass_over(self, size: int) -> Frame | None:
        passed = min(self._skip, len(self._buffer))
        del self._buffer[:passed]
        self._skip -= passed
        if self._skip:
            return None
        self._body = None
        return TooLarge(size)

    def _header(self) -> int | None:
        window = _HEADER_LIMIT + len(_HEADER_END)
        end = self._buffer.find(_HEADER_END, 0, window)
        if end < 0:
            if len(self._buffer) >= window:
                self._fail("The header block does not end.")
            return None
        block = bytes(self._buffer[:end])
        del self._buffer[: end + len(_HEADER_END)]
        return self._length(block)

    def _length(self, block: bytes) -> int:
        for line in block.split(b"\r\n"):
            name, _, value = line.partition(b":")
            digits = value.strip()
            if name.strip().lower() == b"content-length" and digits.isdigit() and len(digits) < 16:
                return int(digits)
        self._fail("The header block has no Content-Length.")
        raise AssertionError("unreachable")

    def _fail(self, reason: str) -> None:
        self._broken = reason
        self._buffer.clear()
        raise ParseError(reason)
