"""A backlog: what waits to be passed on, bounded by its size in bytes.

Whoever adds either waits for room or is told that there is none. One more than fits is let in, so that a message
larger than the whole backlog passes too. An entry stays the first until it is dropped, so that nothing is lost
between taking it up and having passed it on.

It does not know what is passed on, or to whom.
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

from ide_bridge.errors import Disconnected

__all__ = ["Backlog"]

T = TypeVar("T")


class Backlog(Generic[T]):
    """First in, first out; many may add, one takes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: deque[tuple[T, int]] = deque()
        self._size = 0
        self._closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()

    async def put(self, entry: T, size: int) -> None:
        """Add an entry when there is room. Raises ``Disconnected`` when nobody will take it any more."""
        while not self._closed and self._size >= self._limit:
            self._room.clear()
            await self._room.wait()
        if self._closed:
            raise Disconnected("The other end is gone.")
        self.add(entry, size)

    def offer(self, entry: T, size: int) -> bool:
        """Add an entry if there is room; whether there was."""
        if self._closed or self._size >= self._limit:
            return False
        self.add(entry, size)
        return True

    def add(self, entry: T, size: int) -> None:
        """Add an entry, room or not."""
        self._entries.append((entry, size))
        self._size += size
        self._filled.set()

    async def first(self) -> T | None:
        """Wait for the first entry; None when it is closed and all was taken."""
        while not self._entries:
            if self._closed:
                return None
            self._filled.clear()
            await self._filled.wait()
        return self._entries[0][0]

    def drop(self) -> None:
        """The first entry has been passed on."""
        _entry, size = self._entries.popleft()
        self._size -= size
        if self._size < self._limit:
            self._room.set()

    def close(self) -> None:
        """Let nothing more in; what is there can still be taken."""
        self._closed = True
        self._filled.set()
        self._room.set()
