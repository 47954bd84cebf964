"""Ignore rules: which entries of a folder are hidden by the rule files that count there.

A whole folder is asked about at once, so that the usual answer (nothing is hidden) costs one search per rule
file, not one per entry. Names are compared as git does, byte by byte: text is taken as Latin-1 of the bytes.

Nothing here reads a file, knows where rule files lie, or that tracked files count in spite of any rule.
Parents are never looked at: who hides a folder does not enter it.
"""

import os
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from ide_bridge.workspace.globs import Glob, translate

__all__ = ["NO_RULES", "RuleFile", "Rules", "parse"]


class RuleFile:
    """The rules of one file, compiled; the same text in two folders is compiled once (see `parse`)."""

    def __init__(self, globs: Sequence[Glob], *, ignore_case: bool) -> None:
        self._globs = globs
        self._flags = re.DOTALL | (re.IGNORECASE | re.ASCII if ignore_case else 0)
        self._by_depth: dict[int, re.Pattern[str] | None] = {}
        self._names = self._search([glob for glob in globs if glob.hides and glob.by_name])
        self._paths = [glob for glob in globs if glob.hides and not glob.by_name]
        self.has_exceptions = not all(glob.hides for glob in globs)

    def named(self, joined: str) -> list[str]:
        """Return the entries hidden by their name alone; `joined` is every entry between slashes."""
        return self._names.findall(joined) if self._names else []

    def placed(self, place: str, entries: Sequence[str]) -> list[str]:
        """Return the entries hidden by where they lie; `place` is their folder, relative to this file's."""
        if not self._paths:
            return []
        depth = place.count("/")
        if depth not in self._by_depth:
            fitting = [glob for glob in self._paths if glob.depth in (None, depth)]
            self._by_depth[depth] = self._whole(fitting) if fitting else None
        pattern = self._by_depth[depth]
        return [entry for entry in entries if pattern.fullmatch(place + entry)] if pattern else []

    def verdict(self, path: str) -> bool | None:
        """Say whether the last rule that matches hides `path`; None when none matches."""
        found = self._ordered.fullmatch(path)
        return None if found is None or found.lastindex is None else self._signs[found.lastindex - 1]

    @cached_property
    def _signs(self) -> list[bool]:
        return [glob.hides for glob in reversed(self._globs)]

    @cached_property
    def _ordered(self) -> re.Pattern[str]:
        """Try the last rule first, because the last that matches decides; its group tells which it was."""
        return re.compile("|".join(f"({_entry(glob)})" for glob in reversed(self._globs)), self._flags)

    def _search(self, globs: Sequence[Glob]) -> re.Pattern[str] | None:
        either = "|".join(glob.body for glob in globs if not glob.folders_only)
        folders = "|".join(glob.body for glob in globs if glob.folders_only)
        choices = [*([f"(?:{either})/?"] if either else []), *([f"(?:{folders})/"] if folders else [])]
        return re.compile(f"/({'|'.join(choices)})(?=/)", self._flags) if choices else None

    def _whole(self, globs: Iterable[Glob]) -> re.Pattern[str]:
        return re.compile("|".join(map(_entry, globs)), self._flags)


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

    def hidden(self, place: str, entries: Sequence[str]) -> set[str]:
        """Return those of a folder's entries that are hidden; folders among them end in a slash."""
        if not self._levels or not entries:
            return set()
        joined = f"/{'/'.join(entries)}/"
        if joined.isascii() and place.isascii():
            return self._hidden(place, entries, joined)
        known = {_bytewise(entry): entry for entry in entries}
        return {known[entry] for entry in self._hidden(_bytewise(place), list(known), _bytewise(joined))}

    def _hidden(self, place: str, entries: Sequence[str], joined: str) -> set[str]:
        found: set[str] = set()
        for rules, base in self._levels:
            found.update(rules.named(joined), rules.placed(place[len(base) :], entries))
        if not self._exceptions:
            return found
        return {entry for entry in found if self._verdict(place + entry)}

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
    globs = [glob for line in lines if (glob := translate(line.removesuffix("\r")))]
    return RuleFile(globs, ignore_case=ignore_case) if globs else None


def _entry(glob: Glob) -> str:
    return f"(?:{glob.path}){'/' if glob.folders_only else '/?'}"


def _bytewise(text: str) -> str:
    return text if text.isascii() else os.fsencode(text).decode("latin-1")
