"""Tree: the listed files of one root, folder by folder, read from the disk and nowhere else.

A folder is watched before it is read, so that nothing can happen in between. What a folder holds is decided
by the rules that count in it; tracked files hidden by a rule, or by lying in a repository of their own, are
kept because `settle` is told of them. Symbolic links are listed and not followed. Names that are not UTF-8
are left out, with all below them: JSON cannot carry them.

It runs in one thread at a time and knows neither the event loop nor who asks. It is told what may have changed.
"""

import logging
import os
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ide_bridge.workspace.ignore import Rules
from ide_bridge.workspace.replacing import UNFINISHED
from ide_bridge.workspace.repository import Repository, Standing, find, git_folder, is_exhaustion, read_rules

__all__ = ["Delta", "Tree", "Watching"]

logger = logging.getLogger(__name__)


class Watching(Protocol):
    """Who is told which folders are in the tree."""

    def add(self, path: str) -> object:
        """Watch a folder of the tree from now on; the result stands for this one watch."""

    def remove(self, watches: Iterable[object]) -> None:
        """End watches that `add` returned."""


class Delta(NamedTuple):
    """Files that joined and left the list, as paths relative to the root."""

    created: set[str]
    deleted: set[str]

    def joined(self, files: Iterable[str]) -> None:
        """Take note of files that are listed from now on; those that had left are back."""
        files = set(files)
        back = files & self.deleted
        self.deleted.difference_update(back)
        self.created.update(files - back)

    def left(self, files: Iterable[str]) -> None:
        """Take note of files that are listed no more."""
        files = set(files)
        brief = files & self.created
        self.created.difference_update(brief)
        self.deleted.update(files - brief)

    def then(self, later: "Delta") -> "Delta":
        """Join what happened with what happened afterwards."""
        created = (self.created - later.deleted) | (later.created - self.deleted)
        deleted = (self.deleted - later.created) | (later.deleted - self.created)
        return Delta(created, deleted)


class _Folder:
    """One folder that was entered; its files and folders are named by path, folders with whether hidden."""

    __slots__ = ("files", "folders", "hidden", "rules", "watches")

    def __init__(self, rules: Rules, *, hidden: bool, watches: list[object]) -> None:
        self.rules = rules
        self.hidden = hidden
        self.watches = watches
        self.files: list[str] = []
        self.folders: dict[str, bool] = {}


class Tree:
    """The index of one root; paths in it are relative, those of folders end in ``/``, the root's is empty."""

    def __init__(self, root: str, watching: Watching | None = None) -> None:
        self.root = root
        self.repository: Repository | None = None
        self.unsettled = False
        self._watching = watching
        self._top_place = ""
        self._standing = Standing()
        self._folders: dict[str, _Folder] = {}
        self._forced: set[str] = set()
        self._forced_folders: set[str] = set()
        self._unreadable: set[str] = set()
        self._stopped = False

    def build(self) -> None:
        """Read everything, anew if need be."""
        self._drop("")
        self.repository = find(self.root)
        self._top_place, self._standing = "", Standing()
        if self.repository is not None:
            self._top_place = _place(self.repository.top, self.root)
            self._standing = self.repository.standing(self._top_place, self.is_stopped)
        self._walk([("", self._standing.rules, self._standing.hidden)])
        self.unsettled = self.repository is not None

    def rescan(self, folders: Iterable[str], replaced: Iterable[str] = ()) -> Delta:
        """Read some folders anew; those `replaced` may be other folders than before, with all below them."""
        delta = Delta(set(), set())
        for folder in replaced:
            delta.left(self._drop(folder))
        # From the top down, because a folder is judged by what its parent says now.
        for folder in sorted({_outside_git(path) for path in (*folders, *map(_parent, replaced))}):
            self._rescan(folder, delta)
        return delta

    def settle(self, tracked: set[str]) -> Delta:
        """Keep every tracked file, whatever the rules say of it."""
        forced = tracked.copy()
        for folder in self._folders.values():
            forced.difference_update(folder.files)
        forced |= self._forced & tracked
        moved = forced ^ self._forced
        self._forced = forced
        self._forced_folders = {folder for path in forced for folder in _above(path)}
        self.unsettled = False
        return self.rescan({folder for path in moved for folder in ("", *_above(path))})

    def paths(self) -> list[str]:
        """Return every listed file, sorted by code point."""
        files = [path for folder in self._folders.values() for path in folder.files]
        files.sort()
        return files

    def listed(self, paths: Iterable[str]) -> set[str]:
        """Return those of the paths that are listed files."""
        asked: dict[str, set[str]] = {}
        for path in paths:
            asked.setdefault(_parent(path), set()).add(path)
        known = ((self._folders.get(folder), files) for folder, files in asked.items())
        return {path for folder, files in known if folder is not None for path in files.intersection(folder.files)}

    def sources(self) -> list[str]:
        """Name the files outside the tree whose change may change all of it."""
        if self.repository is not None:
            return self.repository.sources(self._top_place, self.is_stopped)
        # A repository that is being made becomes one piece by piece.
        return [os.path.join(self.root, ".git", part) for part in ("HEAD", "objects", "refs")]

    @property
    def is_missing(self) -> bool:
        """Whether the root was not there when it was last looked at; then only `build` will do."""
        return "" not in self._folders

    @property
    def index(self) -> str | None:
        """The file in which git notes what is tracked."""
        return None if self.repository is None else os.path.join(self.repository.git_dir, "index")

    def stop(self) -> None:
        """Give up reading the disk; may be called in any thread."""
        self._stopped = True

    def is_stopped(self) -> bool:
        """Whether what is read is of no use any more."""
        return self._stopped

    def close(self) -> None:
        """Forget everything and end the watches."""
        self._drop("")

    def _rescan(self, path: str, delta: Delta) -> None:
        before = self._folders.get(path)
        parent = self._folders.get(_parent(path)) if path else None
        if before is None or (path and (parent is None or path not in parent.folders)):
            return
        rules = parent.rules if parent else self._standing.rules
        hidden = parent.folders[path] if parent else self._standing.hidden
        after = self._read(path, rules, hidden=hidden)
        delta.left(self._outdated(path, before, after))
        if after is not None:
            delta.joined(after.files)
            new = [
                (child, after.rules, flag) for child, flag in after.folders.items() if child not in self._folders
            ]
            delta.joined(self._walk(new))

    def _outdated(self, path: str, before: _Folder, after: _Folder | None) -> list[str]:
        """Put `after` in the place of `before`; drop, and return, the files that have to be found again."""
        if after is None:
            return self._drop(path)
        gone = before.files
        self._unwatch([before])
        self._folders[path] = after
        same = before.rules == after.rules and before.hidden == after.hidden
        self.unsettled = self.unsettled or (not same and self.repository is not None)
        for child, hidden in before.folders.items():
            if not same or after.folders.get(child) != hidden:
                gone = [*gone, *self._drop(child)]
        return gone

    def _walk(self, start: list[tuple[str, Rules, bool]]) -> list[str]:
        """Enter folders and all below them; return the files found."""
        found: list[str] = []
        while start and not self._stopped:
            path, rules, hidden = start.pop()
            folder = self._read(path, rules, hidden=hidden)
            if folder is not None:
                self._folders[path] = folder
                found += folder.files
                start += [(child, folder.rules, flag) for child, flag in folder.folders.items()]
        return found

    def _read(self, path: str, rules: Rules, *, hidden: bool) -> _Folder | None:
        """Read one folder; None when it is not there. Raises `OSError` when the system cannot tell."""
        place = f"{self.root}/{path}"
        watches = [self._watching.add(path)] if self._watching else []
        folder = _Folder(rules, hidden=hidden, watches=watches)
        try:
            files, folders = _entries(place)
        except PermissionError:
            self._tell_unreadable(place)
            return folder
        except (OSError, ValueError) as error:
            self._unwatch([folder])
            if isinstance(error, OSError) and is_exhaustion(error):
                raise
            return None
        self._judge(folder, path, files, folders)
        return folder

    def _judge(self, folder: _Folder, path: str, files: list[str], folders: list[str]) -> None:
        """Fill a folder with those of its entries that are listed."""
        if ".git/" in folders or ".git" in files or self._standing.ignore_case:
            self._meet_git(folder, path)
            files = [name for name in files if not self._is_git(name)]
            folders = [name for name in folders if not self._is_git(name[:-1])]
        if ".gitignore" in files and not folder.hidden:
            content = read_rules(f"{self.root}/{path}.gitignore", follow=False)
            folder.rules = self._ruled(folder.rules, content, path)
        entries = files + folders
        place = self._top_place + path
        out = set(entries) if folder.hidden else folder.rules.hidden(place, entries, self.is_stopped)
        if out:
            files = [name for name in files if name not in out or path + name in self._forced]
            folders = [name for name in folders if name not in out or path + name in self._forced_folders]
        folder.files = [path + name for name in files]
        folder.folders = {path + name: name in out for name in folders}

    def _is_git(self, name: str) -> bool:
        return name == ".git" or (self._standing.ignore_case and name.lower() == ".git")

    def _meet_git(self, folder: _Folder, path: str) -> None:
        """Take note of a ``.git``: inside a work tree it marks another one.

        git does not enter that, unless it tracks files in there itself.
        """
        git_dir = git_folder(f"{self.root}/{path}.git")
        if git_dir is None and self._watching is not None and path:
            # It may be in the making, piece by piece.
            folder.watches.append(self._watching.add(f"{path}.git/"))
            git_dir = git_folder(f"{self.root}/{path}.git")
        if git_dir is None:
            return
        if self.repository is None:
            content = read_rules(os.path.join(git_dir, "info", "exclude"))
            folder.rules = self._ruled(folder.rules, content, path)
        elif self._top_place + path and path not in self._forced_folders:
            folder.hidden = True

    def _ruled(self, rules: Rules, content: bytes, path: str) -> Rules:
        return rules.with_file(content, self._top_place + path, ignore_case=self._standing.ignore_case)

    def _drop(self, path: str) -> list[str]:
        """Forget a folder and all below it; return the files it had."""
        files: list[str] = []
        dropped: list[_Folder] = []
        stack = [path]
        while stack:
            folder = self._folders.pop(stack.pop(), None)
            if folder is not None:
                dropped.append(folder)
                files += folder.files
                stack += folder.folders
        self._unwatch(dropped)
        return files

    def _unwatch(self, folders: list[_Folder]) -> None:
        if self._watching is not None and folders:
            self._watching.remove([watch for folder in folders for watch in folder.watches])

    def _tell_unreadable(self, place: str) -> None:
        if place not in self._unreadable:
            self._unreadable.add(place)
            logger.warning("%s may not be read and is left out of the file list", place)


def _entries(place: str) -> tuple[list[str], list[str]]:
    """Read the names of files and links, and of folders, with a slash; what is no text is left out."""
    files: list[str] = []
    folders: list[str] = []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(f"{entry.name}/")
    names = "/".join(files + folders)
    if UNFINISHED in names:
        files = [name for name in files if not name.endswith(UNFINISHED)]
    if not names.isascii():
        return list(filter(_is_text, files)), list(filter(_is_text, folders))
    return files, folders


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parent(path: str) -> str:
    return path[: path.rfind("/", 0, -1) + 1]


def _outside_git(path: str) -> str:
    """Name the folder to look at when something happened in `path`: nothing below a ``.git`` is in the tree."""
    at = f"/{path}".find("/.git/")
    return path if at == -1 else path[:at]


def _above(path: str) -> list[str]:
    """List the folders a file lies in, the root left out."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) + "/" for count in range(len(parts))]


def _place(top: str, folder: str) -> str:
    relative = os.path.relpath(folder, top).replace(os.sep, "/")
    return "" if relative == "." else f"{relative}/"
