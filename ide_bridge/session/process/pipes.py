"""The pipes to a process: read when wanted, written as fast as it reads, and its last words.

Nothing is read before it is asked for, and nothing is taken that cannot be written yet: whoever is slow makes the
other wait, and no memory fills up in between.

It does not know what the bytes mean, or what process is at the other end.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable

from ide_bridge.errors import Disconnected

__all__ = ["LastWords", "Sink", "Source"]

_CHUNK = 64 * 1024
_PIPE_LIMIT = 1024 * 1024  # what a pipe can hold at the most, unless root allows more
_LAST_WORDS = 4096
_FINISH_SECONDS = 1.0
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Source:
    """The end of a pipe that we read from."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._open = True
        self._rest = b""
        self._waiting: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()

    async def read(self) -> bytes:
        """What has come, as soon as there is something; nothing when no more will come."""
        while self._open:
            try:
                data = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                await self._until_readable()
                continue
            if data:
                await asyncio.sleep(0)  # a process that always has something to say must not keep others waiting
                return data
            self._close()
        data, self._rest = self._rest, b""
        return data

    def finish(self) -> None:
        """Take what there is, and no more: the process is gone, but what it has started may go on."""
        rest = bytearray()
        with contextlib.suppress(BlockingIOError):
            while self._open and len(rest) < _PIPE_LIMIT and (data := os.read(self._descriptor, _CHUNK)):
                rest += data
        self._rest += bytes(rest)
        self._close()

    def discard(self) -> None:
        """From now on throw away what comes, so that the process does not wait for a reader."""
        if self._open and self._waiting is None:
            self._loop.add_reader(self._descriptor, self._throw_away)

    def _throw_away(self) -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(self._descriptor, _CHUNK):
                self._close()

    async def _until_readable(self) -> None:
        self._waiting = self._loop.create_future()
        self._loop.add_reader(self._descriptor, _wake, self._waiting)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if self._open:
                self._loop.remove_reader(self._descriptor)

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            _wake(self._waiting)


class Sink:
    """The end of a pipe that we write to, one message after the other, each as a whole."""

    def __init__(self, descriptor: int, farewell: Callable[[], str]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._open = True
        self._farewell = farewell
        self._turn = asyncio.Lock()
        self._unsent = memoryview(b"")
        self._waiting: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        """Write all of it, at the pace of the reader.

        Broken off before the reader took anything, nothing is sent; once it has begun to, the rest follows.
        """
        async with self._turn:
            await self._until_written()
            if not self._open:
                raise Disconnected(self._farewell())
            self._unsent = memoryview(data)
            self._write()
            try:
                await self._until_written()
            except asyncio.CancelledError:
                if len(self._unsent) == len(data):
                    self._forget()
                raise
            if self._unsent:
                self._forget()
                raise Disconnected(self._farewell())

    async def close(self) -> None:
        """End the stream after what has been begun; a reader that has stopped reading is not waited for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_SECONDS), self._turn:
                await self._until_written()
        self.finish()

    def finish(self) -> None:
        """End the stream at once: those who still wait are told that the reader is gone."""
        if self._open:
            self._open = False
            self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)
            _wake(self._waiting)

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._descriptor, self._unsent) :]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._write)
            return
        except OSError:  # the other end is closed
            self.finish()
            return
        self._loop.remove_writer(self._descriptor)
        _wake(self._waiting)

    async def _until_written(self) -> None:
        while self._unsent and self._open:
            self._waiting = self._loop.create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None

    def _forget(self) -> None:
        self._unsent = memoryview(b"")
        if self._open:
            self._loop.remove_writer(self._descriptor)


class LastWords:
    """The end of a pipe that is always read, of which the last is kept."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._open = True
        self._kept = b""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._take)

    @property
    def text(self) -> str:
        """The last whole lines, without anything that could disturb a terminal."""
        lines = _COLOURS.sub("", self._kept.decode(errors="replace")).splitlines()
        shown = lines[1:] if len(self._kept) == _LAST_WORDS and len(lines) > 1 else lines
        printable = ("".join(letter for letter in line if letter.isprintable()).rstrip() for line in shown)
        return "\n".join(line for line in printable if line)

    def finish(self) -> None:
        """Take what there is, and no more."""
        taken = 0
        while self._open and taken < _PIPE_LIMIT and (size := self._take()):
            taken += size
        self._close()

    def _take(self) -> int:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return 0
        self._kept = (self._kept + data)[-_LAST_WORDS:]
        if not data:
            self._close()
        return len(data)

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)


def _wake(sleeper: asyncio.Future[None] | None) -> None:
    if sleeper is not None and not sleeper.done():
        sleeper.set_result(None)
