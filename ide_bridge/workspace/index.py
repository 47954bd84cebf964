"""Index: the listed files of every root, brought up to date from what may have changed.

A root that is watched is read once and afterwards only where something stirred; one that is not watched is
read anew each time. git is asked for the tracked files while the disk is being read.

It runs in one thread at a time and knows neither the event loop nor patterns nor who asks.
"""

import os
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ide_bridge.errors import FileProblem
from ide_bridge.workspace.dirt import Change, Dirt, Suspects
from ide_bridge.workspace.places import root_names
from ide_bridge.workspace.repository import find
from ide_bridge.workspace.tree import Delta, Tree
from ide_bridge.workspace.watching import Watcher

__all__ = ["Change", "Index"]

_FEW = 200
"""Up to so many changes are put into a sorted list one by one; more are sorted in."""


class Index:
    """The files of all roots. Those of the first are named as they are, others begin with their root's name."""

    def __init__(self, roots: Sequence[str], wake: Callable[[], None], watcher: Watcher | None = None) -> None:
        self.watched = watcher is not None
        self.paths: list[str] = []
        self._untold: list[Change] = []
        self._roots = [_RootIndex(root, wake, watcher) for root in roots]
        self._prefixes = ["", *(f"{name}/" for name in root_names(roots)[1:])][: len(roots)]

    @property
    def stirred(self) -> bool:
        """Whether something may have changed since the last `refresh`."""
        return not self.watched or any(root.dirt for root in self._roots)

    def refresh(self, since: float | None = None) -> list[Change]:
        """Read what may have changed, and tell what did; a first reading tells what changed after `since`.

        Raises `FileProblem` when the system is out of descriptors or the like; the next call tries again.
        """
        try:
            for root in self._roots:
                self._untold += root.refresh(since)
        except OSError as error:
            raise FileProblem(f"failed to list files: {error.strerror or error}") from error
        self.paths = self._roots[0].paths if len(self._roots) == 1 else self._merged()
        changes, self._untold = self._untold, []
        return changes

    def suspect(self, path: str) -> None:
        """Take note that a file was written, before a watch tells; may be called in any thread."""
        for root in self._roots:
            root.suspect(path)

    def stop(self) -> None:
        """Give up reading; may be called in any thread."""
        for root in self._roots:
            root.tree.stop()

    def close(self) -> None:
        """End the watches."""
        for root in self._roots:
            root.close()

    def _merged(self) -> list[str]:
        named = zip(self._roots, self._prefixes, strict=True)
        return sorted(prefix + path for root, prefix in named for path in root.paths)


class _RootIndex:
    """The sorted files of one root."""

    def __init__(self, root: str, wake: Callable[[], None], watcher: Watcher | None) -> None:
        self.dirt = Dirt(wake)
        self.paths: list[str] = []
        self._root = root
        self._ground = watcher.root(root, self.dirt) if watcher else None
        self.tree = Tree(root, self._ground)
        self._known = False

    def refresh(self, since: float | None) -> list[Change]:
        try:
            return self._refresh(since)
        except OSError:
            self.dirt.everything()  # what was taken for known may not be so
            raise

    def _refresh(self, since: float | None) -> list[Change]:
        if not self._known or self._ground is None:
            self._read_all()
            return self._changed_after(since) if self._known and since is not None else []
        if not self.dirt:
            return []
        suspects = self.dirt.take()
        delta = self._read(suspects)
        _apply(self.paths, delta)
        return self._told(delta, suspects)

    def suspect(self, path: str) -> None:
        inside = os.path.join(self._root, "")
        if path.startswith(inside):
            parts = path[len(inside) :].split(os.sep)
            # Every folder on the way may be new.
            for depth in range(len(parts)):
                self.dirt.folder("".join(f"{part}/" for part in parts[:depth]))

    def close(self) -> None:
        self.tree.close()
        if self._ground is not None:
            self._ground.close()

    def _read_all(self) -> None:
        self.dirt.take()
        self._with_tracked(self.tree.build)
        self.paths = self.tree.paths()
        self._known = self._ground is not None

    def _read(self, suspects: Suspects) -> Delta:
        if suspects.everything or self.tree.is_missing:
            before = set(self.paths)
            self._with_tracked(self.tree.build)
            after = set(self.tree.paths())
            return Delta(after - before, before - after)
        delta = self.tree.rescan(suspects.folders, suspects.replaced)
        repository = self.tree.repository
        if repository is not None and (suspects.index or self.tree.unsettled):
            delta = delta.then(self.tree.settle(repository.tracked(self._root, self.tree.is_stopped)))
        return delta

    def _with_tracked(self, read: Callable[[], None]) -> None:
        """Read the disk while git says what is tracked."""
        repository = find(self._root)
        if repository is None:
            read()
        else:
            with ThreadPoolExecutor(1) as pool:
                tracked = pool.submit(repository.tracked, self._root, self.tree.is_stopped)
                read()
                self.tree.settle(tracked.result())
        if self._ground is not None:
            self._ground.sources(self.tree.sources(), index=self.tree.index)

    def _told(self, delta: Delta, suspects: Suspects) -> list[Change]:
        """Put the changes in the order in which they were noticed."""
        written = self.tree.listed(suspects.written)
        changes = [Change(self._path(path), "deleted") for path in delta.deleted]
        changes += [Change(self._path(path), "created") for path in delta.created - written]
        for path in filter(written.__contains__, suspects.written):
            changes.append(Change(self._path(path), "created" if path in delta.created else "changed"))
        return changes

    def _changed_after(self, since: float) -> list[Change]:
        times = [(changed, path) for path in self.paths if (changed := _mtime(self._path(path))) >= since]
        return [Change(self._path(path), "changed") for _, path in sorted(times)]

    def _path(self, path: str) -> str:
        return os.path.join(self._root, path.replace("/", os.sep))


def _apply(paths: list[str], delta: Delta) -> None:
    """Change a sorted list by what joined and left it."""
    if len(delta.created) + len(delta.deleted) > _FEW:
        paths[:] = sorted(delta.created.union(paths) - delta.deleted)
        return
    for path in delta.deleted:
        at = bisect_left(paths, path)
        if paths[at : at + 1] == [path]:
            del paths[at]
    for path in delta.created:
        insort(paths, path)


def _mtime(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
