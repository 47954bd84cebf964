"""The journal: what clients changed in a workspace, with the text before and after, so that it can be taken back.

1. A change is up to three private files: ``<number>.before`` and ``<number>.after``, which anyone may compare
   with the tools he has, and ``<number>.json``, which comes last and in one step. Without it the others mean
   nothing. Where there was no file before, there is no ``.before``.
2. The oldest changes go first when there are too many or their texts take too much room. A change of a text
   that is too large, or that may not be copied, is noted without texts.
3. Taking a change back only marks it, so the same texts serve to make it again.
4. A journal that cannot be written is no reason to fail a client: the user is warned, once.

One process at a time adds changes; others may read and mark. Nothing is flushed to the disk: after a power cut
the newest change may be missing. It does not know how files of the workspace are read, written or compared.
"""

import contextlib
import json
import logging
import os
import threading
import time
from collections import deque
from typing import Literal, NamedTuple

import msgspec

from ide_bridge.errors import SetupProblem
from ide_bridge.home import private_folder
from ide_bridge.workspace.places import Place

__all__ = ["TOO_LARGE", "Entry", "Journal", "Limits", "Lost", "Side", "What"]

logger = logging.getLogger(__name__)

MIB = 1024 * 1024
TOO_LARGE = "the file is too large to be taken back"

What = Literal["writeFile", "diff"]
Side = Literal["before", "after"]


class Limits(NamedTuple):
    """How much is kept: changes, bytes of all texts together, bytes of one text."""

    changes: int = 200
    total: int = 64 * MIB
    text: int = 8 * MIB


LIMITS = Limits()


class Lost(NamedTuple):
    """Stands for a text of which there is no copy."""

    why: str


class Entry(msgspec.Struct, frozen=True):
    """One change of one file.

    ``path`` is where the file really lies, in the folder ``root`` of the workspace. ``lost`` says why there are
    no texts, ``undone`` when the change was taken back. ``made`` is how many of the folders above the file, the
    innermost first, were made for it.
    """

    number: int
    when: float
    client: str
    what: What
    root: str
    path: str
    new: bool
    lost: str = ""
    undone: float | None = None
    made: int = 0


class Journal:
    """The changes of one workspace, in a folder of its state that is made with the first of them."""

    def __init__(self, state: str, limits: Limits = LIMITS) -> None:
        self.folder = os.path.join(state, "journal")
        self.limits = limits
        self._turn = threading.Lock()
        self._sizes: deque[tuple[int, int]] | None = None
        self._total = 0
        self._warned = False

    def note(
        self,
        client: str,
        what: What,
        place: Place,
        before: bytes | Lost | None,
        after: bytes | Lost,
        *,
        made: int = 0,
    ) -> None:
        """Note that a client changed a file; ``before`` is None for one that was not there."""
        if isinstance(before, bytes) and before == after:
            return
        try:
            with self._turn:
                entry = Entry(0, time.time(), client, what, place.root.path, place.path, before is None, made=made)
                self._note(entry, self._kept(before), self._kept(after))
        except (OSError, SetupProblem) as error:
            self._warn(error)

    def entries(self) -> list[Entry]:
        """Every change, the newest first."""
        if not os.path.lexists(self.folder):
            return []
        names = map(os.path.splitext, os.listdir(private_folder(self.folder)))
        numbers = [int(stem) for stem, suffix in names if suffix == ".json" and stem.isdecimal()]
        found = map(self._read, sorted(numbers, reverse=True))
        return [entry for entry in found if entry is not None]

    def copy_of(self, entry: Entry, side: Side) -> str:
        """The path of the text before or after a change."""
        return self._path(entry.number, side)

    def text(self, entry: Entry, side: Side) -> bytes | Lost | None:
        """The text before or after a change; None if there was no file."""
        if entry.lost:
            return Lost(entry.lost)
        if side == "before" and entry.new:
            return None
        try:
            with open(self.copy_of(entry, side), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return Lost("newer changes have taken its place in the journal")

    def mark(self, entry: Entry, *, undone: bool) -> None:
        """Remember that a change was taken back, or made again."""
        self._write_entry(msgspec.structs.replace(entry, undone=time.time() if undone else None))

    def amend(self, entry: Entry, side: Side, text: bytes) -> None:
        """Replace the text before or after a change by what was found to be there."""
        self._write_whole(self.copy_of(entry, side), text)

    def _kept(self, text: bytes | Lost | None) -> bytes | Lost | None:
        return Lost(TOO_LARGE) if isinstance(text, bytes) and len(text) > self.limits.text else text

    def _note(self, entry: Entry, before: bytes | Lost | None, after: bytes | Lost | None) -> None:
        private_folder(self.folder)
        sizes = self._known_sizes()
        number = sizes[-1][0] + 1 if sizes else 1
        lost = next((text.why for text in (before, after) if isinstance(text, Lost)), "")
        texts: dict[Side, bytes | Lost | None] = {} if lost else {"before": before, "after": after}
        try:
            size = sum(
                self._write_text(number, side, text) for side, text in texts.items() if isinstance(text, bytes)
            )
            self._write_entry(msgspec.structs.replace(entry, number=number, lost=lost))
        except BaseException:
            self._drop(number)
            raise
        sizes.append((number, size))
        self._total += size
        self._trim(sizes)

    def _known_sizes(self) -> deque[tuple[int, int]]:
        """Number and size of every change, the oldest first; looked up once, for only we add any."""
        if self._sizes is None:
            sizes: dict[int, int] = {}
            with os.scandir(self.folder) as found:
                for file in found:
                    stem = file.name.partition(".")[0]
                    if stem.isdecimal():
                        sizes[int(stem)] = sizes.get(int(stem), 0) + file.stat(follow_symlinks=False).st_size
            self._sizes = deque(sorted(sizes.items()))
            self._total = sum(sizes.values())
        return self._sizes

    def _trim(self, sizes: deque[tuple[int, int]]) -> None:
        while len(sizes) > 1 and (len(sizes) > self.limits.changes or self._total > self.limits.total):
            number, size = sizes.popleft()
            self._total -= size
            self._drop(number)

    def _drop(self, number: int) -> None:
        for suffix in ("json", "before", "after", "json.new", "before.new", "after.new"):
            with contextlib.suppress(OSError):
                os.unlink(self._path(number, suffix))

    def _read(self, number: int) -> Entry | None:
        try:
            with open(self._path(number, "json"), "rb") as file:
                return msgspec.convert(json.loads(file.read()), Entry)
        except (OSError, ValueError, msgspec.ValidationError):  # gone meanwhile, or torn by a power cut
            return None

    def _write_entry(self, entry: Entry) -> None:
        # All ASCII: the name of a file need not be valid Unicode, and json can say even that.
        data = json.dumps(msgspec.to_builtins(entry)).encode()
        self._write_whole(self._path(entry.number, "json"), data)

    def _write_whole(self, path: str, data: bytes) -> None:
        _write_private(f"{path}.new", data)
        os.replace(f"{path}.new", path)

    def _write_text(self, number: int, side: Side, data: bytes) -> int:
        _write_private(self._path(number, side), data)
        return len(data)

    def _path(self, number: int, suffix: str) -> str:
        return os.path.join(self.folder, f"{number:08}.{suffix}")

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            why = error.strerror if isinstance(error, OSError) else error
            logger.warning("What clients change cannot be taken back: the journal %s fails (%s)", self.folder, why)


def _write_private(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
