"""The tree of a transcript: which record follows which, and which way through it is alive.

1. A parent stands earlier in the file than its child. Of several records with its uuid the nearest earlier one is
   meant: a compaction may write what it kept a second time, below its own summary. So every way ends, whatever the
   file says, and it can be followed backwards while the beginning is still unread.
2. A record without a parent begins a conversation; after a compaction the logical parent is the one.
3. A parent that is not there (a line that was lost) leaves a gap: the way goes on at the record before.
4. The living branch is the one that ends in the newest record.
5. Calls that the model makes in one answer hang each from the one before, their results from the calls, and what
   follows from only one of the results: the others are *company*, off the way and yet part of it.

It does not know files: it is told of records from the end of a file towards its beginning, and of new ones.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from operator import neg

import msgspec

from ide_bridge.session.transcript.records import Head

__all__ = ["Kind", "Node", "Tree", "node_of"]


class Kind(IntEnum):
    """What a record is to the tree."""

    OTHER = 0
    PROMPT = 1
    ANSWER = 2
    RESULT = 3


class Node(msgspec.Struct, frozen=True, gc=False):
    """A record's place in the file and in the tree."""

    uuid: str
    parent: str | None
    place: int
    size: int
    kind: Kind


def node_of(head: Head, place: int, size: int) -> Node | None:
    """The node for a record; None for bookkeeping."""
    if not isinstance(head.uuid, str):
        return None
    parent = head.parentUuid if isinstance(head.parentUuid, str) else head.logicalParentUuid
    return Node(head.uuid, parent if isinstance(parent, str) else None, place, size, _kind(head))


def _kind(head: Head) -> Kind:
    if head.type == "assistant":
        return Kind.ANSWER
    if head.type != "user" or head.isMeta is True:
        return Kind.OTHER
    return Kind.RESULT if isinstance(head.sourceToolAssistantUUID, str) else Kind.PROMPT


class Tree:
    """The records known so far, numbered in the order of the file; those found by going back, below zero."""

    def __init__(self) -> None:
        self._new: list[Node] = []
        self._old: list[Node] = []
        self._numbers: dict[str, int] = {}
        self._repeated: dict[str, list[int]] = {}
        """Where a uuid is not unique: all its records, the newest first."""

    def __getitem__(self, number: int) -> Node:
        return self._new[number] if number >= 0 else self._old[-1 - number]

    @property
    def first(self) -> int:
        """The number of the oldest record known."""
        return -len(self._old)

    @property
    def newest(self) -> int | None:
        """The number of the newest record, in which the living branch ends."""
        return len(self._new) - 1 if self._new or self._old else None

    def append(self, node: Node) -> int:
        """Take in a record that was written after all others."""
        number = len(self._new)
        self._new.append(node)
        former = self._numbers.get(node.uuid)
        if former is not None:
            self._repeated.setdefault(node.uuid, [former]).insert(0, number)
        self._numbers[node.uuid] = number
        return number

    def prepend(self, node: Node) -> None:
        """Take in a record that stands before all others."""
        self._old.append(node)
        number = -len(self._old)
        latest = self._numbers.setdefault(node.uuid, number)
        if latest != number:
            self._repeated.setdefault(node.uuid, [latest]).append(number)

    def find(self, uuid: str, *, before: int | None = None) -> int | None:
        """The last record with this uuid, or the last before another record."""
        number = self._numbers.get(uuid)
        if number is None or before is None or number < before:
            return number
        repeated = self._repeated.get(uuid, [])
        earlier = bisect_right(repeated, -before, key=neg)
        return repeated[earlier] if earlier < len(repeated) else None

    def at(self, place: int) -> int | None:
        """The number of the record that begins at this place of the file."""
        low, high = self.first, len(self._new)
        while low < high:
            middle = (low + high) // 2
            if self[middle].place < place:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self._new) and self[low].place == place else None

    def company(self, way: Sequence[int], same_answer: Callable[[int, int], bool]) -> list[int]:
        """The company of a part of a way, which is given from its end to its beginning."""
        joined = set(way)
        found: list[int] = []
        for number in range(way[-1] + 1, way[0]) if way else ():
            kind = self[number].kind
            if number in joined or kind not in (Kind.ANSWER, Kind.RESULT):
                continue
            parent = self.find(self[number].parent or "", before=number)
            if parent not in joined or self[parent].kind != Kind.ANSWER:
                continue
            if kind == Kind.RESULT or same_answer(number, parent):
                joined.add(number)
                found.append(number)
        return found

    def leaves(self) -> list[int]:
        """The records that nothing follows, the newest first; right once all of the file is known."""
        everything = range(self.first, len(self._new))
        followed = {self.find(self[number].parent or "", before=number) for number in everything}
        return [number for number in reversed(everything) if number not in followed]

    def has_words(self, numbers: Iterable[int]) -> bool:
        """Whether anybody said anything in these records."""
        return any(self[number].kind in (Kind.PROMPT, Kind.ANSWER) for number in numbers)
