"""Opening what lies beneath a root: folder by folder, never through a link unseen.

1. A folder is entered by its name in the folder before it, so a folder that is swapped for a link in
   between is noticed and not followed.
2. A link is read as text, and its target is walked like any other path, again from a root. So a link may
   lead anywhere in the workspace, also by an absolute path or to another root, and nowhere else; the magic
   links of `/proc` are text like any other.
3. Where the kernel can refuse every link by itself (`openat2`, Linux 5.6), a path without links is opened in
   one call. Whatever that call refuses is walked, so there is one set of rules for links and errors.

It does not know what may be shared or written: `allow` is asked with the place where all links have ended,
before anything there is opened or made. It raises plain `OSError`; the words for people are in `guard`.
"""

import contextlib
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import PurePath
from types import TracebackType
from typing import NamedTuple, Self

from ide_bridge.errors import PathRefused
from ide_bridge.workspace.places import Place, Root, normal_forms, within

__all__ = ["Folder", "Spot", "Walk", "Way", "best_way", "irregular", "open_without_links", "real_path"]

LINK_LIMIT = 40

# What a system lacks it also cannot be asked for. O_PATH lets us pass folders that we may not list.
_ENTER = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_ENTER_ROOT = _ENTER | getattr(os, "O_NOFOLLOW_ANY", 0)
# O_NONBLOCK: a FIFO must not hold us up before we see that it is one.
_OPEN = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_IS_LINK = (errno.ENOTDIR, errno.ELOOP, errno.EMLINK)

Allow = Callable[[Place], None]


class Way(Enum):
    """How a system lets us open things; tests run each way that works where they run."""

    KERNEL = "openat2"
    DESCRIPTORS = "openat"
    PATHS = "paths"
    """No descriptors of folders (Windows): checked before and after opening, so weaker against a swap."""


def _openat2(path: str, flags: int, mode: int = 0) -> int:
    from ide_bridge.workspace.openat2 import openat2  # noqa: PLC0415 - slow to import, see there

    return openat2(path, flags, mode)


@functools.cache
def best_way() -> Way:
    """Find out what this system offers; a sandbox may forbid what the kernel has."""
    if os.open not in os.supports_dir_fd:
        return Way.PATHS
    if sys.platform != "linux" or (descriptor := _openat2("/", _ENTER)) < 0:
        return Way.DESCRIPTORS
    os.close(descriptor)
    return Way.KERNEL


def open_without_links(root: str, relative: str, flags: int, mode: int) -> int:
    """Open a file in one call, or return -1 if that cannot be done; the walk then finds out why.

    A root is a real path: what is reached from it without a link and without ``..`` lies beneath it.
    """
    if ".." in relative:
        return -1  # most likely a name such as ``a..b``, which the walk can tell from a step upwards
    return _openat2(f"{root}/{relative}", flags | _OPEN, mode)


class Folder:
    """A folder held open. What is asked of it concerns one name directly inside, never a path."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, root: str, way: Way) -> None:
        self._path = root
        self._descriptor: int | None = None
        if way is Way.DESCRIPTORS:
            self._descriptor = os.open(root, _ENTER_ROOT)
        elif way is Way.KERNEL and (descriptor := _openat2(root, _ENTER)) >= 0:
            self._descriptor = descriptor
        elif way is Way.KERNEL:
            from ide_bridge.workspace.openat2 import last_error  # noqa: PLC0415 - slow to import, see there

            raise last_error()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self._path, name)

    def go_into(self, name: str) -> str | None:
        """Become the folder `name`; if that is a link, stay and return where it points."""
        if self._descriptor is None:
            return self._go_by_path(name)
        try:
            below = os.open(name, _ENTER, dir_fd=self._descriptor)
        except OSError as error:
            if error.errno in _IS_LINK and (target := self.link(name)) is not None:
                return target
            raise
        os.close(self._descriptor)
        self._descriptor = below
        return None

    def _go_by_path(self, name: str) -> str | None:
        path = self._at(name)
        if (target := self.link(name)) is not None:
            return target
        with os.scandir(path):  # raises what os.open would: absent, not a folder, not permitted
            self._path = path
        return None

    def link(self, name: str) -> str | None:
        """Where `name` points if it is a link."""
        try:
            return os.readlink(self._at(name), dir_fd=self._descriptor).removeprefix("\\\\?\\")
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def spelling(self, name: str) -> str:
        """`name`, or its other Unicode normal form if only that exists."""
        if name.isascii():
            return name
        return next((form for form in (name, *normal_forms(name)) if self.has(form)), name)

    def has(self, name: str) -> bool:
        """Whether anything of that name is here."""
        try:
            self.look_at(name)
        except FileNotFoundError:
            return False
        return True

    def look_at(self, name: str) -> os.stat_result:
        """Return what is known of `name` without opening or following it."""
        return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file, not a link, without waiting for anything."""
        descriptor = os.open(self._at(name), flags | _OPEN, mode, dir_fd=self._descriptor)
        if self._descriptor is None and not _is_real(self._at(name)):
            os.close(descriptor)
            raise _too_many_links()
        return descriptor

    def make_folder(self, name: str) -> bool:
        """Make a folder, durably; False when it is there already."""
        try:
            os.mkdir(self._at(name), dir_fd=self._descriptor)
        except FileExistsError:
            return False
        self.sync()
        return True

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._at(name), dir_fd=self._descriptor)

    def rename(self, old: str, new: str) -> None:
        """Give `old` the name `new`, replacing what had it."""
        os.replace(self._at(old), self._at(new), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove a file; gone already is fine."""
        try:
            os.unlink(self._at(name), dir_fd=self._descriptor)
        except FileNotFoundError:
            return

    def names(self) -> list[str]:
        """Everything in here, or nothing if we may not list it."""
        try:
            with self._listable() as listable:
                return os.listdir(listable)
        except PermissionError:
            return []

    def sync(self) -> None:
        """Make the names in here survive a power cut, if we may list it and its file system can."""
        with contextlib.suppress(OSError), self._listable() as listable:
            if isinstance(listable, int):
                os.fsync(listable)

    @contextlib.contextmanager
    def _listable(self) -> Iterator[int | str]:
        if self._descriptor is None:
            yield self._path
            return
        descriptor = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


class Spot(NamedTuple):
    """Where a path ends once its links are resolved: a name, not a link, in an open folder."""

    folder: Folder
    name: str
    place: Place


class _Route:
    """A walk under way: `done` is absolute and free of links, `ahead` is still to go, the next part last."""

    def __init__(self, place: Place) -> None:
        self.made: list[tuple[str, list[str]]] = []
        self.root = place.root
        self.done = _parts(place.root.path)
        self.ahead = place.relative.split("/")[::-1] if place.relative else []

    def settle(self, roots: Sequence[Root]) -> list[str]:
        """Take the steps that need no disk, upwards or outside of every root; return those below the root."""
        while self.ahead and (self.ahead[-1] == ".." or _root_of(self.done, roots) is None):
            part = self.ahead.pop()
            if part != "..":
                self.done.append(part)
            elif len(self.done) > 1:
                self.done.pop()
        found = _root_of(self.done, roots)
        if found is None:
            raise PathRefused("the path follows a link that leaves the workspace")
        if not self.ahead:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        self.root, below = found
        self.done = [*_parts(self.root.path), *below]
        return below

    def follow(self, target: str) -> None:
        parts = _parts(target)
        if os.path.isabs(target):
            self.done, parts = parts[:1], parts[1:]
        self.ahead.extend(reversed(parts))

    def place(self) -> Place:
        """Where the route ends if no link comes any more."""
        return Place(self.root, "/".join([*self._below(), *reversed(self.ahead)]))

    def note_made(self) -> None:
        """Take note that the next folder was not there before."""
        self.made.append((self.root.path, [*self._below(), self.ahead[-1]]))

    def _below(self) -> list[str]:
        return self.done[len(_parts(self.root.path)) :]


class Walk:
    """The way from a place to the spot where it ends, over links, within `roots`."""

    def __init__(self, roots: Sequence[Root], way: Way) -> None:
        self._roots = roots
        self._way = way

    @contextlib.contextmanager
    def to(self, place: Place, allow: Allow, *, make_parents: bool = False) -> Iterator[Spot]:
        """Hold open the folder in which `place` ends; folders made on the way stay only if nothing fails."""
        route = _Route(place)
        try:
            with self._hold(route, allow, make_parents=make_parents) as spot:
                yield spot
        except BaseException:
            self._remove(route.made)
            raise

    @contextlib.contextmanager
    def _hold(self, route: _Route, allow: Allow, *, make_parents: bool) -> Iterator[Spot]:
        for _ in range(LINK_LIMIT + 1):
            known = route.settle(self._roots)
            with Folder(route.root.path, self._way) as folder:
                for name in known:
                    if folder.go_into(name) is not None:
                        raise _too_many_links()
                if _descend(folder, route, allow if make_parents else None):
                    end = route.place()
                    allow(end)
                    yield Spot(folder, route.ahead[0], end)
                    return
        raise _too_many_links()

    def _remove(self, made: list[tuple[str, list[str]]]) -> None:
        """Remove folders again, unless somebody has put something there meanwhile."""
        for root, parts in reversed(made):
            self._remove_one(root, parts)

    def remove_empty(self, root: Root, parts: Sequence[str], count: int) -> None:
        """Remove a folder below a root, then the one above it, and so on; what is not empty stays."""
        for length in range(len(parts), max(len(parts) - count, 0), -1):
            self._remove_one(root.path, parts[:length])

    def _remove_one(self, root: str, parts: Sequence[str]) -> None:
        with contextlib.suppress(OSError), Folder(root, self._way) as folder:
            if all(folder.go_into(name) is None for name in parts[:-1]):
                folder.remove_folder(parts[-1])


def _descend(folder: Folder, route: _Route, allow_making: Allow | None) -> bool:
    """Go down until only the last name is ahead; False when the route bends: at a link, or upwards."""
    ahead = route.ahead
    while ahead[-1] != "..":
        name = ahead[-1] = folder.spelling(ahead[-1])
        if len(ahead) > 1:
            target = _go_into(folder, route, allow_making)
        elif (target := folder.link(name)) is None:
            return True
        ahead.pop()
        if target is not None:
            route.follow(target)
            return False
        route.done.append(name)
    return False


def _go_into(folder: Folder, route: _Route, allow_making: Allow | None) -> str | None:
    name = route.ahead[-1]
    try:
        return folder.go_into(name)
    except FileNotFoundError:
        # What is absent holds no links, so what is ahead is the rest of the place.
        if allow_making is None or ".." in route.ahead:
            raise
        allow_making(route.place())
        if folder.make_folder(name):
            route.note_made()
        return folder.go_into(name)


def _root_of(done: Sequence[str], roots: Sequence[Root]) -> tuple[Root, list[str]] | None:
    path = os.path.join(*done)
    for root in roots:
        if (rest := within(path, root)) is not None:
            return root, [part for part in rest.split(os.sep) if part]
    return None


def irregular(info: os.stat_result) -> OSError:
    """Return the error for something that is no regular file; a socket, when opened, says ENXIO by itself."""
    number = errno.EISDIR if stat.S_ISDIR(info.st_mode) else errno.ENXIO
    return OSError(number, os.strerror(number))


def _too_many_links() -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def real_path(path: str) -> str:
    """Resolve the links of a path, as far as they stand still; without a promise, for names only."""
    try:
        return os.path.realpath(path)
    except OSError:  # a link was put in place of something else between two looks
        return path


def _is_real(path: str) -> bool:
    return os.path.normcase(real_path(path)) == os.path.normcase(path)


def _parts(path: str) -> list[str]:
    if os.sep == "/" and path.startswith("//"):  # to PurePath two slashes are something else than one
        path = "/" + path.lstrip("/")
    return list(PurePath(path).parts)
