"""Journalled files: what is written, and what was there before, is noted in the journal.

The text before is read right before the write, and the change is noted once the write is done: what failed
leaves no trace. Writes to one file take turns, so that each finds what the one before has left.

It does not know how a change is kept or taken back, or who the client is beyond its name.
"""

import os
import threading
from typing import NamedTuple
from weakref import WeakValueDictionary

from ide_bridge.errors import BridgeError, FileProblem, NotShared
from ide_bridge.workspace.beneath import real_path
from ide_bridge.workspace.files import Files, Stamp
from ide_bridge.workspace.guard import Guard
from ide_bridge.workspace.journal import TOO_LARGE, Journal, Lost
from ide_bridge.workspace.places import Place, within

__all__ = ["Found", "JournalledFiles", "look"]


class Found(NamedTuple):
    """What a place holds: its bytes and their stamp, or neither if there is no file."""

    data: bytes | Lost | None
    stamp: Stamp | None


class JournalledFiles:
    """The files of a workspace, written with a note in its journal."""

    def __init__(self, guard: Guard, files: Files, journal: Journal) -> None:
        self._guard = guard
        self._files = files
        self._journal = journal
        self._lock = threading.Lock()
        self._turns: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def write(self, place: Place, content: str, *, expected: Stamp | None, client: str) -> Stamp:
        """Write as `Files.write` does, and note it."""
        path = real_path(place.path)
        turn = self._turn(path)
        with turn:
            before, made = self._before(place), _missing_folders(path)
            stamp = self._files.write(place, content, expected=expected)
            if (real := self._place_of(path)) is not None:
                after = self._written(content, stamp.size)
                self._journal.note(client, "writeFile", real, before, after, made=made)
        return stamp

    def expect(self, path: str, content: str, *, client: str) -> None:
        """Note a change that the client is about to make itself; a file elsewhere is none of our business."""
        place = self._place_of(real_path(path))
        if place is not None:
            before, made = self._before(place), _missing_folders(place.path)
            self._journal.note(client, "diff", place, before, self._encoded(content), made=made)

    def _turn(self, path: str) -> threading.Lock:
        with self._lock:
            return self._turns.setdefault(path, threading.Lock())

    def _place_of(self, path: str) -> Place | None:
        for root in self._guard.roots:
            if rest := within(path, root):
                return Place(root, rest.strip(os.sep).replace(os.sep, "/"))
        return None

    def _before(self, place: Place) -> bytes | Lost | None:
        try:
            return look(self._guard, place, self._journal.limits.text).data
        except NotShared:
            return Lost("the file is not shared, so there is no copy of it")
        except BridgeError:
            return Lost("the file could not be read, so there is no copy of it")

    def _written(self, content: str, size: int) -> bytes | Lost:
        """The bytes that `Files.write` made of a text: if there are more, it has given every line a CRLF."""
        data = self._encoded(content)
        return data if isinstance(data, Lost) or len(data) == size else data.replace(b"\n", b"\r\n")

    def _encoded(self, content: str) -> bytes | Lost:
        if len(content) > self._journal.limits.text:
            return Lost(TOO_LARGE)
        return content.encode(errors="replace")


def _missing_folders(path: str) -> int:
    """How many folders have to be made for a file."""
    count, folder = 0, os.path.dirname(path)
    while not os.path.isdir(folder) and folder != (folder := os.path.dirname(folder)):
        count += 1
    return count


def look(guard: Guard, place: Place, limit: int) -> Found:
    """Read a file up to `limit` bytes; a longer one is `Lost`."""
    try:
        descriptor, info = guard.open_file(place, os.O_RDONLY)
    except FileProblem as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            return Found(None, None)
        raise
    with open(descriptor, "rb") as file:
        data = file.read(limit + 1) if info.st_size <= limit else None
    return Found(Lost(TOO_LARGE) if data is None or len(data) > limit else data, Stamp.of(info))
