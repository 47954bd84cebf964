"""Claude's own deny rules: the entries ``Read(PATTERN)`` of ``permissions.deny`` in its settings files.

1. The files are the user's, the administrator's, and the two of each folder of the workspace. Every rule of every
   file counts, so a workspace can deny more and never less.
2. ``//x`` is a path from the root of the file system, ``~/x`` from home. ``/x`` begins where the file belongs: at
   Claude's config folder for the user's, else at the workspace folder. ``x`` and ``./x`` lie in the workspace
   folder, at any depth if ``x`` is one name. ``x/**`` means the same as ``x``. All else is as in gitignore.
3. ``!x`` takes back what rules of the form ``x`` before it in the same file said, and nothing else.
4. A rule that goes through a link counts also for the place where the link leads.
5. ``Read`` alone, ``Read(*)`` and a wildcard for the tool's name deny all.

It does not know what is refused to whom, and of these files it understands nothing else.
"""

import logging
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ide_bridge.home import claude_folder
from ide_bridge.workspace.beneath import real_path
from ide_bridge.workspace.deny_list import DenyList
from ide_bridge.workspace.globs import translate
from ide_bridge.workspace.places import Place, Root
from ide_bridge.workspace.repository import find

__all__ = ["DenyRules", "managed_folder"]

logger = logging.getLogger(__name__)

_TRUSTED_SECONDS = 1.0
_SIZE_LIMIT = 1024 * 1024
_RULES_LIMIT = 2000
_RULE = re.compile(r"\s*([^()\s]+)\s*(?:\((.*)\)\s*)?", re.DOTALL)
_WILD = re.compile(r"[*?\[\\]")


class DenyRules:
    """The rules as the files have them now; changes are seen within a second."""

    def __init__(self, roots: Callable[[], Sequence[Root]], *, managed: str | None = None) -> None:
        self._roots = roots
        self._managed = managed_folder() if managed is None else managed
        self._files: dict[str, _File] = {}
        self._known: Sequence[Root] | None = None
        self._sources: list[_Source] = []
        self._until = 0.0
        self._find = _finder(())

    def find(self, place: Place) -> str | None:
        """Return the rule that denies a place, as its author wrote it."""
        roots = self._roots()
        if roots is not self._known or time.monotonic() > self._until:
            self._look(roots)
        return self._find(place.path)

    def _look(self, roots: Sequence[Root]) -> None:
        sources = list(_sources([root.path for root in roots], self._managed))
        files = {source.path: self._files.get(source.path) or _File(source.path) for source in sources}
        changed = [file.look() for file in files.values()]
        if any(changed) or sources != self._sources:
            self._find = _finder(tuple(_Rules(source, files[source.path].rules) for source in sources))
        self._files, self._sources = files, sources
        self._known, self._until = roots, time.monotonic() + _TRUSTED_SECONDS


# -- the files ---------------------------------------------------------------------------------------------


class _Source(NamedTuple):
    """A settings file, and the folders that ``/x`` and ``x`` mean in it."""

    path: str
    slash: tuple[str, ...]
    plain: tuple[str, ...]


def managed_folder() -> str:
    """Where an administrator puts the settings that hold for everyone on this machine."""
    if sys.platform == "darwin":
        return "/Library/Application Support/ClaudeCode"
    if sys.platform == "win32":
        return r"C:\Program Files\ClaudeCode"
    return "/etc/claude-code"


def _sources(folders: Sequence[str], managed: str) -> Iterator[_Source]:
    everywhere = tuple(folders)
    config = claude_folder()
    yield _Source(os.path.join(config, "settings.json"), (config,), everywhere)
    for path in (os.path.join(managed, "managed-settings.json"), *_drop_ins(managed)):
        yield _Source(path, everywhere, everywhere)
    for folder in folders:
        for path in dict.fromkeys(_own(folder)):
            yield _Source(path, (folder,), (folder,))


def _drop_ins(managed: str) -> list[str]:
    folder = os.path.join(managed, "managed-settings.d")
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return []


def _own(folder: str) -> Iterator[str]:
    yield os.path.join(folder, ".claude", "settings.json")
    yield os.path.join(folder, ".claude", "settings.local.json")
    repository = find(folder)
    if repository is not None:  # since 2.1.211 this one is kept at the top of the main work tree
        top = os.path.dirname(repository.common_dir)
        yield os.path.join(top, ".claude", "settings.local.json")


class _Permissions(msgspec.Struct):
    deny: tuple[object, ...] = ()


class _Contents(msgspec.Struct):
    permissions: _Permissions = msgspec.field(default_factory=_Permissions)


class _File:
    """One settings file: what it said when it could last be understood."""

    def __init__(self, path: str) -> None:
        self.rules: tuple[str, ...] = ()
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._warned = False

    def look(self) -> bool:
        """Read the file again if it is another one by now; say whether its rules changed."""
        seen = self._state()
        if seen == self._seen:
            return False
        self._seen = seen
        before = self.rules
        try:
            self.rules = () if seen is None else _read(self._path)
            self._warned = False
        except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
            self._warn(error)
        return self.rules != before

    def _state(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError):
            return ()
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            reason = error.strerror if isinstance(error, OSError) else error
            logger.warning("%s is not understood, its last known deny rules stay: %s", self._path, reason)


def _read(path: str) -> tuple[str, ...]:
    # Not blocking, because opening a pipe that bears the name would wait for its writer.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(_SIZE_LIMIT + 1)
    if len(content) > _SIZE_LIMIT:
        raise ValueError("it is larger than 1 MiB")
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        return ()
    deny = msgspec.json.decode(content, type=_Contents).permissions.deny
    return tuple(rule for rule in deny if isinstance(rule, str))


# -- the rules ---------------------------------------------------------------------------------------------


class _Lines:
    """Lines of gitignore, each with the rule it stands for."""

    def __init__(self, lines: Iterable[tuple[str, str]]) -> None:
        pairs = list(lines)
        self._list = DenyList([line for line, _ in pairs])
        self._rules = [rule for _, rule in pairs]

    def find(self, path: str) -> str | None:
        number = self._list.find(path)
        return None if number is None else self._rules[number]


class _Rules:
    """The rules of one file, ready to be asked."""

    def __init__(self, source: _Source, rules: Sequence[str]) -> None:
        patterns = [(pattern, rule) for rule in rules if (pattern := _pattern(rule)) is not None]
        self._all = next((rule for pattern, rule in patterns if pattern in ("", "*")), None)
        if len(patterns) > _RULES_LIMIT:  # nobody writes so many by hand; asking them all would hold up everyone
            self._all, patterns = f"more than {_RULES_LIMIT} Read rules", []
        plain = [(pattern, rule) for pattern, rule in patterns if not pattern.startswith(("/", "~/"))]
        others = [(pattern, rule) for pattern, rule in patterns if pattern.startswith(("/", "~/"))]
        self._relative = _Lines((_relative(pattern), rule) for pattern, rule in plain)
        self._absolute = _Lines(
            (line, rule) for pattern, rule in others for line in _absolute(pattern, source.slash)
        )
        self._starts = [folder.rstrip(os.sep) + os.sep for folder in source.plain]

    def find(self, path: str) -> str | None:
        if self._all is not None:
            return self._all
        inside = [path[len(start) :].replace(os.sep, "/") for start in self._starts if path.startswith(start)]
        found = (self._absolute.find(_from_root(path).lstrip("/")), *map(self._relative.find, inside))
        return next((rule for rule in found if rule is not None), None)


def _finder(files: Iterable[_Rules]) -> Callable[[str], str | None]:
    @lru_cache(maxsize=4096)
    def find_rule(path: str) -> str | None:
        return next((rule for rules in files if (rule := rules.find(path)) is not None), None)

    return find_rule


def _pattern(rule: str) -> str | None:
    """Return the pattern of a rule that is about reading; the empty one means all."""
    found = _RULE.fullmatch(rule)
    if found is None or "\0" in rule:  # which no file has in its name
        return None
    tool, pattern = found.groups()
    if pattern is None:
        return "" if fnmatchcase("Read", tool) else None
    return str(pattern) if tool == "Read" else None


def _relative(pattern: str) -> str:
    if pattern.startswith("!"):
        return pattern
    pattern = _without_stars(pattern.removeprefix("./"))
    return pattern if translate(pattern) is not None else "/" + _literal(pattern)


def _absolute(pattern: str, slash: Sequence[str]) -> Iterator[str]:
    """Turn a pattern into lines that count from the root of the file system."""
    if pattern.startswith("//"):
        folders: Sequence[str] = (os.sep,)
    else:
        folders = (os.path.expanduser("~"),) if pattern.startswith("~") else slash
    for folder in folders:
        yield from _anchored(folder, _without_stars(pattern).removeprefix("~"))


def _anchored(folder: str, pattern: str) -> Iterator[str]:
    """Write a pattern below a folder in full: as it is, by the real way there, and where it really ends."""
    parts = pattern.lstrip("/").split("/")
    plain = next((at for at, part in enumerate(parts) if _WILD.search(part)), len(parts))
    head = _native(os.path.join(folder, *parts[:plain]))
    parent, name = os.path.split(os.path.abspath(head))
    ways = (os.path.join(parent, name), os.path.join(real_path(parent), name), real_path(head))
    for place in dict.fromkeys(ways):
        line = "/".join([_literal(_from_root(place)), *parts[plain:]])
        yield line if translate(line) is not None else _literal(_from_root(os.path.join(place, *parts[plain:])))


def _without_stars(pattern: str) -> str:
    shorter = pattern.removesuffix("/**")
    return shorter if shorter.strip("/") else pattern


def _literal(text: str) -> str:
    return re.sub(r"[\\*?\[\]!# ]", r"\\\g<0>", text)


def _native(path: str) -> str:
    """Claude writes ``C:`` as ``/c``."""
    return re.sub(r"^[/\\]([A-Za-z])(?=[/\\]|$)", r"\1:\\", path) if os.name == "nt" else path


def _from_root(path: str) -> str:
    """Write an absolute path with slashes, the root as nothing, and a drive as Claude does."""
    drive, rest = os.path.splitdrive(path)
    return (f"/{drive[:1]}" if drive else "") + rest.replace(os.sep, "/").rstrip("/")
