"""What one client has seen: the state in which it last read or wrote each file.

A client that writes has decided on the grounds of what it read. If the file is another by then, somebody's work
would be lost, so the write is made to expect that state. The memory is bounded: the oldest entry goes first,
and a file that was forgotten is written as one that was never read.

A link and its target are one file: writes are remembered under the real path and looked up under both.

It does not know clients, contents, or how a file is replaced.
"""

import asyncio
import itertools
from collections import OrderedDict
from weakref import WeakValueDictionary

from ide_bridge.workspace.beneath import real_path
from ide_bridge.workspace.files import Stamp
from ide_bridge.workspace.places import Place

__all__ = ["Seen"]

LIMIT = 4096


Turns = WeakValueDictionary[str, asyncio.Lock]


class Seen:
    """The stamps of the files one client knows."""

    def __init__(self, limit: int = LIMIT, turns: "Turns | None" = None) -> None:
        self._limit = limit
        self._numbers = itertools.count()
        self._stamps: OrderedDict[str, tuple[int, Stamp]] = OrderedDict()
        self._turns = Turns() if turns is None else turns

    def __len__(self) -> int:
        return len(self._stamps)

    def read(self, place: Place, stamp: Stamp) -> None:
        """The client was given the text of this state."""
        self._note(place.path, stamp)

    def written(self, place: Place, stamp: Stamp) -> None:
        """The client itself brought the file into this state."""
        self._note(real_path(place.path), stamp)

    def missing(self, place: Place) -> None:
        """The client was told that there is no such file, so it may make one."""
        for path in (place.path, real_path(place.path)):
            self._stamps.pop(path, None)

    def expected(self, place: Place) -> Stamp | None:
        """The state the client believes the file to be in; ``None`` when it has no idea."""
        paths = {place.path, real_path(place.path)}
        newest = max((self._stamps[path] for path in paths if path in self._stamps), default=None)
        return None if newest is None else newest[1]

    def for_another(self) -> "Seen":
        """The memory of another client of the same workspace."""
        return Seen(self._limit, self._turns)

    def turn(self, place: Place) -> asyncio.Lock:
        """One write after another, of all clients: the second must find out that the first was there."""
        return self._turns.setdefault(real_path(place.path), asyncio.Lock())

    def _note(self, path: str, stamp: Stamp) -> None:
        self._stamps[path] = next(self._numbers), stamp
        self._stamps.move_to_end(path)
        if len(self._stamps) > self._limit:
            self._stamps.popitem(last=False)
