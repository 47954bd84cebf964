"""Ignore rules: which entries of a folder are hidden by the rule files that count there.

A whole folder is asked about at once, so that the usual answer (nothing is hidden) costs one search per rule
file, not one per entry. Names are compared as git does, byte by byte: text is taken as Latin-1 of the bytes.

No other thread runs while an expression is being matched. Somebody else may have written the rules and the
names, so many of either are taken some at a time, and `Stopped` is asked in between.

Nothing here reads a file, knows where rule files lie, or that tracked files count in spite of any rule.
Parents are never looked at: who hides a folder does not enter it.
"""

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from ide_bridge.workspace.globs import Glob, translate

__all__ = ["NO_RULES", "RULE_LENGTH", "RULE_LIMIT", "RuleFile", "Rules", "Stopped", "parse"]

logger = logging.getLogger(__name__)

RULE_LIMIT = 10_000
RULE_LENGTH = 4096

_PART_LENGTH = 4096
"""Rules are joined to expressions of about this length; those of an ordinary file are one expression."""

_EFFORT = 1024 * 1024
"""Names times rules, in characters, that are matched in one go: a few milliseconds even in a bad case."""

_ENTRIES = 256
"""How many paths are looked at before `Stopped` is asked."""

Stopped: TypeAlias = Callable[[], bool]
"""Says whether nobody wants the answer any more; what is returned then is of no use."""


class _Part(NamedTuple):
    """Some rules as one expression, and how much text it may be given in one go."""

    pattern: re.Pattern[str]
    room: int
    signs: Sequence[bool] = ()


class RuleFile:
    """The rules of one file, compiled; the same text in two folders is compiled once (see `parse`)."""

    def __init__(self, globs: Sequence[Glob], *, ignore_case: bool) -> None:
        self._globs = globs
        self._flags = re.DOTALL | (re.IGNORECASE | re.ASCII if ignore_case else 0)
        self._by_depth: dict[int, list[_Part]] = {}
        self._paths = [glob for glob in globs if glob.hides and not glob.by_name]
        self.has_exceptions = not all(glob.hides for glob in globs)

    def named(self, joined: str, stopped: Stopped = bool) -> Iterator[str]:
        """Give the entries hidden by their name alone; `joined` is every entry between slashes."""
        for part in self._names:
            for text in _pieces(joined, part.room):
                if stopped():
                    return
                yield from part.pattern.findall(text)

    def placed(self, place: str, entries: Sequence[str], stopped: Stopped = bool) -> Iterator[str]:
        """Give the entries hidden by where they lie; `place` is their folder, relative to this file's."""
        if not self._paths:
            return
        depth = place.count("/")
        if depth not in self._by_depth:
            self._by_depth[depth] = self._whole([glob for glob in self._paths if glob.depth in (None, depth)])
        for part in self._by_depth[depth]:
            matches = part.pattern.fullmatch
            for start in range(0, len(entries), _ENTRIES):
                if stopped():
                    return
                yield from [entry for entry in entries[start : start + _ENTRIES] if matches(place + entry)]

    def verdict(self, path: str) -> bool | None:
        """Say whether the last rule that matches hides `path`; None when none matches."""
        for part in self._ordered:
            found = part.pattern.fullmatch(path)
            if found is not None and found.lastindex is not None:
                return part.signs[found.lastindex - 1]
        return None

    @cached_property
    def _names(self) -> list[_Part]:
        named = [glob for glob in self._globs if glob.hides and glob.by_name]
        return [_Part(self._search(globs), room) for globs, room in _parted(named)]

    @cached_property
    def _ordered(self) -> list[_Part]:
        """Try the last rule first, because the last that matches decides; its group tells which it was."""
        return [
            _Part(self._compiled("|".join(f"({_entry(glob)})" for glob in globs)), room, [g.hides for g in globs])
            for globs, room in _parted(self._globs[::-1])
        ]

    def _search(self, globs: Sequence[Glob]) -> re.Pattern[str]:
        either = "|".join(glob.body for glob in globs if not glob.folders_only)
        folders = "|".join(glob.body for glob in globs if glob.folders_only)
        choices = [*([f"(?:{either})/?"] if either else []), *([f"(?:{folders})/"] if folders else [])]
        return self._compiled(f"/({'|'.join(choices)})(?=/)")

    def _whole(self, globs: Sequence[Glob]) -> list[_Part]:
        return [_Part(self._compiled("|".join(map(_entry, part))), room) for part, room in _parted(globs)]

    def _compiled(self, expression: str) -> re.Pattern[str]:
        return re.compile(expression, self._flags)


def _parted(globs: Sequence[Glob]) -> Iterator[tuple[Sequence[Glob], int]]:
    """Cut a list of rules into some at a time; with each goes how much text they may be compared with at once."""
    start = length = 0
    for number, glob in enumerate(globs):
        if length and length + len(glob.body) > _PART_LENGTH:
            yield globs[start:number], _EFFORT // max(length, 1)
            start, length = number, 0
        length += len(glob.body)
    if start < len(globs):
        yield globs[start:], _EFFORT // max(length, 1)


def _pieces(joined: str, room: int) -> Iterator[str]:
    """Cut names between slashes into pieces of names between slashes, each about as long as there is room."""
    if len(joined) <= room:
        yield joined
        return
    start = 0
    while start < len(joined) - 1:
        # A name ends in two slashes if it is a folder's, so a piece ends at the last slash in a row.
        end = joined.find("/", start + room)
        end = len(joined) - 1 if end == -1 else end + joined.startswith("/", end + 1)
        yield joined[start : end + 1]
        start = end


class _Level(NamedTuple):
    rules: RuleFile
    base: str


class Rules:
    """Every rule file that counts in a folder, nearest first; shared by all folders with the same ones."""

    def __init__(self, levels: tuple[_Level, ...] = ()) -> None:
        self._levels = levels
        self._exceptions = any(level.rules.has_exceptions for level in levels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and self._levels == other._levels

    def __hash__(self) -> int:
        return hash(self._levels)

    def with_file(self, content: bytes, base: str, *, ignore_case: bool) -> "Rules":
        """Add a nearer rule file, which lies in folder `base` (``""`` or ending in a slash)."""
        parsed = parse(content, ignore_case=ignore_case) if content else None
        return self if parsed is None else Rules((_Level(parsed, _bytewise(base)), *self._levels))

    def hidden(self, place: str, entries: Sequence[str], stopped: Stopped = bool) -> set[str]:
        """Return those of a folder's entries that are hidden; folders among them end in a slash."""
        if not self._levels or not entries:
            return set()
        joined = f"/{'/'.join(entries)}/"
        if joined.isascii() and place.isascii():
            return self._hidden(place, entries, joined, stopped)
        known = {_bytewise(entry): entry for entry in entries}
        hidden = self._hidden(_bytewise(place), list(known), _bytewise(joined), stopped)
        return {known[entry] for entry in hidden}

    def _hidden(self, place: str, entries: Sequence[str], joined: str, stopped: Stopped) -> set[str]:
        found: set[str] = set()
        for rules, base in self._levels:
            found.update(rules.named(joined, stopped), rules.placed(place[len(base) :], entries, stopped))
        if not self._exceptions:
            return found
        return {entry for entry in found if not stopped() and self._verdict(place + entry)}

    def _verdict(self, path: str) -> bool:
        for rules, base in self._levels:
            verdict = rules.verdict(path[len(base) :])
            if verdict is not None:
                return verdict
        return False


NO_RULES = Rules()


@lru_cache(maxsize=256)
def parse(content: bytes, *, ignore_case: bool = False) -> RuleFile | None:
    """Compile the content of a rule file; None when it holds no rule."""
    lines = content.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    lines = [line for line in lines if line.rstrip("\r ") and line[0] != "#"]
    short = [line for line in lines if len(line) <= RULE_LENGTH]
    if len(short) < len(lines) or len(short) > RULE_LIMIT:
        _tell_cut()
    globs = [glob for line in short[:RULE_LIMIT] if (glob := translate(line.removesuffix("\r")))]
    return RuleFile(globs, ignore_case=ignore_case) if globs else None


@cache
def _tell_cut() -> None:
    """Warn, once, because a hostile repository may have any number of such files."""
    text = "Only the first %d rules of an ignore file count, and none of more than %d characters; one has more."
    logger.warning(text, RULE_LIMIT, RULE_LENGTH)


def _entry(glob: Glob) -> str:
    return f"(?:{glob.path}){'/' if glob.folders_only else '/?'}"


def _bytewise(text: str) -> str:
    return text if text.isascii() else os.fsencode(text).decode("latin-1")
