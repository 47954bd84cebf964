"""The log of a session: its numbered events, as many as fit.

1. Numbers begin at 1 and have no gaps; whoever knows the last number it has seen can go on from there.
2. The oldest events go when there are too many or they are too large together; who comes too late for them sees it
   by the numbers.
3. The CLI's own words are kept apart, with a limit of their own: a picture in them pushes out no event.
4. The pieces of a block are of no use once the whole block is there: who joins later gets only the block.

It does not know what the events mean to anyone, or how they travel.
"""

import asyncio
import bisect
import heapq

import msgspec
from msgspec import Raw

from ide_bridge.session import events

__all__ = ["Entry", "Log"]

COUNT_LIMIT = 10_000
SIZE_LIMIT = 2 * 1024 * 1024
_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True):
    """One event, ready to travel."""

    number: int
    event: Raw
    size: int
    is_piece: bool


class Log:
    """The events of one session."""

    def __init__(self, *, count: int = COUNT_LIMIT, size: int = SIZE_LIMIT) -> None:
        self._told = _Newest(count, size)
        self._raw = _Newest(count, size)
        self._last = 0
        self._whole_until = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self._last + 1

    def add(self, event: events.Event) -> None:
        """Something happened."""
        self._last += 1
        encoded = _encode(event)
        entry = Entry(self._last, Raw(encoded), len(encoded), isinstance(event, events.Text))
        (self._raw if isinstance(event, events.Message) else self._told).add(entry)
        if isinstance(event, events.Result | events.Ended) or (isinstance(event, events.Said) and not event.agent):
            self._whole_until = self._last
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        self._waiting.clear()

    def since(self, number: int, *, raw: bool) -> list[Entry]:
        """The events from a number on that are still kept."""
        told = self._told.since(number)
        return list(heapq.merge(told, self._raw.since(number), key=_number)) if raw else told

    def story(self, *, raw: bool) -> list[Entry]:
        """All that is kept, without the pieces of what has been said whole since."""
        kept = self.since(0, raw=raw)
        return [entry for entry in kept if not entry.is_piece or entry.number > self._whole_until]

    def missing(self, number: int, *, raw: bool) -> int:
        """How many events from a number on are no longer kept."""
        return self._told.missing(number) + (self._raw.missing(number) if raw else 0)

    async def reaches(self, number: int) -> None:
        """Wait until there is an event with this number."""
        while self._last < number:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                await waiting
            finally:
                self._waiting.discard(waiting)


class _Newest:
    """As many entries as fit, and at least the newest."""

    def __init__(self, count: int, size: int) -> None:
        self._entries: list[Entry] = []
        self._forgotten: list[int] = []  # numbers, for as long as a watcher may ask what it has missed
        self._head = 0  # as many at the beginning of the list are forgotten already
        self._count_limit = count
        self._size_limit = size
        self._size = 0

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._size += entry.size
        while len(self._entries) - self._head > 1 and (
            len(self._entries) - self._head > self._count_limit or self._size > self._size_limit
        ):
            self._size -= self._entries[self._head].size
            self._forgotten.append(self._entries[self._head].number)
            self._head += 1
        if self._head > len(self._entries) // 2:
            del self._entries[: self._head]
            self._head = 0
        if len(self._forgotten) > 2 * self._count_limit:
            del self._forgotten[: self._count_limit]

    def since(self, number: int) -> list[Entry]:
        begin = bisect.bisect_left(self._entries, number, lo=self._head, key=_number)
        return self._entries[begin:]

    def missing(self, number: int) -> int:
        return len(self._forgotten) - bisect.bisect_left(self._forgotten, number)


def _number(entry: Entry) -> int:
    return entry.number
