"""The log of a session: its numbered events, as many as fit.

1. Numbers begin at 1 and have no gaps; whoever knows the last number it has seen can go on from there.
2. The oldest events go when there are too many or they are too large together; who comes too late for them sees it
   by the numbers.
3. The pieces of a block are of no use once the whole block is there: who joins later gets only the block.

It does not know what the events mean to anyone, or how they travel.
"""

import asyncio

import msgspec
from msgspec import Raw

from ide_bridge.session import events

__all__ = ["Entry", "Log"]

COUNT_LIMIT = 20_000
SIZE_LIMIT = 4 * 1024 * 1024
_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True):
    """One event, ready to travel."""

    number: int
    event: Raw
    size: int
    is_raw: bool
    is_piece: bool


class Log:
    """The events of one session."""

    def __init__(self, *, count: int = COUNT_LIMIT, size: int = SIZE_LIMIT) -> None:
        self._entries: list[Entry] = []
        self._gone = 0  # as many at the head of the list are forgotten already
        self._count_limit = count
        self._size_limit = size
        self._size = 0
        self._last = 0
        self._whole_until = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self._last + 1

    @property
    def first(self) -> int:
        """The number of the oldest event that is kept."""
        return self.next - (len(self._entries) - self._gone)

    def add(self, event: events.Event) -> None:
        """Something happened."""
        self._last += 1
        encoded = _encode(event)
        is_raw, is_piece = isinstance(event, events.Message), isinstance(event, events.Text)
        self._entries.append(Entry(self._last, Raw(encoded), len(encoded), is_raw, is_piece))
        self._size += len(encoded)
        if isinstance(event, events.Said | events.Result | events.Ended):
            self._whole_until = self._last
        self._forget()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    def since(self, number: int, *, raw: bool, limit: int | None = None) -> list[Entry]:
        """The events from a number on that are still kept."""
        begin = self._gone + max(number - self.first, 0)
        end = None if limit is None else begin + limit
        return [entry for entry in self._entries[begin:end] if raw or not entry.is_raw]

    def story(self, *, raw: bool) -> list[Entry]:
        """All that is kept, without the pieces of what has been said whole since."""
        kept = self.since(0, raw=raw)
        return [entry for entry in kept if not entry.is_piece or entry.number > self._whole_until]

    async def reaches(self, number: int) -> None:
        """Wait until there is an event with this number."""
        while self._last < number:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting
            finally:
                self._waiting.discard(waiting)

    def _forget(self) -> None:
        while self.next - self.first > self._count_limit or (
            self._size > self._size_limit and self.first < self._last
        ):
            self._size -= self._entries[self._gone].size
            self._gone += 1
        if self._gone > len(self._entries) // 2:
            del self._entries[: self._gone]
            self._gone = 0
