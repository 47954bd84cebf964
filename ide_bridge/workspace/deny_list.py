"""A deny list: lines of gitignore in their order, and which of them keeps a path back.

Unlike git it compares without regard to case and to how Unicode spells a letter, because there are file systems
that open ``.env`` by the name ``.ENV``. As in git the last line that matches decides, ``!`` takes back what an
earlier line said, and what lies in a folder that is kept back cannot be let out again.

It does not know whose lines these are, what they are relative to, or what lies on the disk.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from ide_bridge.workspace.globs import translate

__all__ = ["DenyList"]


class DenyList:
    """Some lines, compiled when they are first asked; lines that mean nothing keep nothing back."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = tuple(lines)

    def find(self, path: str) -> int | None:
        """Return the number of the line that keeps the file `path` back, None when it may be seen."""
        if not self._lines:
            return None
        found = (self._decide(entry) for spelling in _spellings(path) for entry in _way(spelling))
        return next((number for number in found if number is not None), None)

    def _decide(self, entry: str) -> int | None:
        numbers, expression = self._compiled
        found = expression.fullmatch(entry)
        return None if found is None or found.lastindex is None else numbers[found.lastindex - 1]

    @cached_property
    def _compiled(self) -> tuple[list[int | None], re.Pattern[str]]:
        """One expression that tries the last line first; the group that matched tells which line it was."""
        numbers: list[int | None] = []
        groups: list[str] = []
        for number in reversed(range(len(self._lines))):
            glob = translate(unicodedata.normalize("NFC", self._lines[number]))
            if glob is not None:
                numbers.append(number if glob.hides else None)
                groups.append(f"({glob.path}{'/' if glob.folders_only else '/?'})")
        return numbers, re.compile("|".join(groups) or "(?!)", re.DOTALL | re.IGNORECASE)


def _way(path: str) -> Iterator[str]:
    """List the folders on the way down, each with its slash, then the file itself."""
    at = path.find("/")
    while at != -1:
        yield path[: at + 1]
        at = path.find("/", at + 1)
    yield path


def _spellings(path: str) -> Iterable[str]:
    """Spell a path as it is, and as a file system may read it: letters folded, unseen characters left out."""
    if path.isascii():
        return (path,)
    seen = "".join(letter for letter in path if unicodedata.category(letter) != "Cf")
    return {unicodedata.normalize("NFC", form): None for form in (path, seen.casefold())}
