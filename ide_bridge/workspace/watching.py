"""Watching: learns which folders may have changed, and leaves finding out what did to who reads the disk.

On Linux there is one inotify watch for each folder of a tree, through watchdog's own descriptor and its one
thread; watchdog's `Observer` would watch ignored folders too and hold back moves for half a second. Elsewhere
the `Observer` watches each root as a whole. What the kernel refuses to watch is polled, and `notice` says so.

It does not know rules, lists, git, or the event loop: what it learns it puts into a `Dirt`.
"""

import contextlib
import errno
import itertools
import logging
import os
import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from ide_bridge.workspace.dirt import Dirt
from ide_bridge.workspace.polling import Polled, Poller

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, ObservedWatch
    from watchdog.observers.inotify_c import CallbackId, InotifyEvent, InotifyFD, Mask, WatchDescriptor

__all__ = ["Ground", "InotifyWatcher", "ObserverWatcher", "Watcher", "open_watcher"]

logger = logging.getLogger(__name__)

_NOTICE = (
    "Some folders are looked at about once a second instead of being watched, because the limit {setting} is "
    "reached; `sudo sysctl {setting}={value}` raises it, then start the bridge again."
)
_LIMITS = {
    errno.ENOSPC: ("fs.inotify.max_user_watches", 1_048_576),
    errno.EMFILE: ("fs.inotify.max_user_instances", 1_024),
    errno.ENOMEM: ("fs.inotify.max_user_watches", 1_048_576),
}
_TELLING = (".gitignore", ".git")
"""Files whose content decides what is listed."""


class Watcher(Protocol):
    """One way of watching; `notice` tells the user what to do when it is not the best one."""

    notice: str | None

    def root(self, root: str, dirt: Dirt) -> "Ground":
        """Watch below a root, and put what is learnt into `dirt`."""

    def close(self) -> None:
        """End every watch and every thread."""


class Ground:
    """The watches below one root: of its folders, and of single files elsewhere that matter to it."""

    def __init__(self, root: str, dirt: Dirt, poller: Poller) -> None:
        self.path = root
        self.dirt = dirt
        self._poller = poller
        self._sources: list[Polled] = []
        # Only looking at its path shows a root that vanished and came back.
        self._root = poller.add(root, self._root_looked_at)

    def add(self, path: str) -> object:  # noqa: ARG002  the root as a whole is watched
        """Watch one folder of the tree."""
        return None

    def remove(self, watches: Iterable[object]) -> None:
        """End watches of folders."""

    def sources(self, files: Iterable[str], *, index: str | None) -> None:
        """Watch the files that rule over the whole tree, and git's index, instead of the former ones."""
        for polled in self._sources:
            self._poller.remove(polled)
        self._sources = [self._poller.add(path, lambda _: self.dirt.everything()) for path in files]
        if index is not None:
            self._sources.append(self._poller.add(index, lambda _: self.dirt.index()))

    def close(self) -> None:
        """End the watches that are not those of folders."""
        self.sources((), index=None)
        self._poller.remove(self._root)

    def _root_looked_at(self, replaced: bool) -> None:
        if replaced:
            self.dirt.everything()
        else:
            # A new folder may have got the number of the old one.
            self.dirt.folder("")


def open_watcher(*, interval: float = 1.0) -> Watcher:
    """Start the best way of watching this system has; `interval` is between two looks at what is polled."""
    return InotifyWatcher(interval=interval) if sys.platform == "linux" else ObserverWatcher(interval=interval)


# -- Linux -------------------------------------------------------------------------------------------------


class InotifyWatcher:
    """Watches folder by folder, and polls those that inotify has no room for."""

    def __init__(self, *, interval: float = 1.0) -> None:
        self.notice: str | None = None
        self.poller = Poller(interval)
        self._ids = itertools.count(1)
        self._inotify = self._open()
        self.poller.start()

    def root(self, root: str, dirt: Dirt) -> Ground:
        """Watch below a root."""
        return _InotifyGround(root, dirt, self)

    def watch(self, folder: str, callback: "_Callback") -> bool:
        """Begin a watch; False when that is refused."""
        if self._inotify is None:
            return False
        name = _as_id(next(self._ids))
        try:
            descriptor = self._inotify.add_callback(os.fsencode(folder), _mask(), callback, name)
        except OSError as error:
            self._refused(error)
            return False
        callback.watch = descriptor, name
        # watchdog takes a folder that may not be read for watched.
        return descriptor != -1

    def unwatch(self, callbacks: Iterable["_Callback"]) -> None:
        """End watches."""
        if self._inotify is not None:
            self._inotify.remove_callbacks([each.watch for each in callbacks if each.watch])

    def close(self) -> None:
        """End every watch and both threads."""
        self.poller.close()
        if self._inotify is not None:
            self._inotify.stop()
            self._inotify.join()

    def _open(self) -> "InotifyFD | None":
        from watchdog.observers.inotify_c import InotifyFD  # noqa: PLC0415  paid only when something is watched

        try:
            inotify = InotifyFD()
        except OSError as error:
            self._refused(error)
            return None
        inotify.start()
        return inotify

    def _refused(self, error: OSError) -> None:
        if error.errno in _LIMITS and self.notice is None:
            setting, value = _LIMITS[error.errno]
            self.notice = _NOTICE.format(setting=setting, value=value)
            logger.warning(self.notice)


class _InotifyGround(Ground):
    """The inotify watches below one root, with a poll in the place of each that was refused."""

    def __init__(self, root: str, dirt: Dirt, watcher: InotifyWatcher) -> None:
        super().__init__(root, dirt, watcher.poller)
        self._watcher = watcher
        self._index: _IndexCallback | None = None

    def add(self, path: str) -> "_FolderCallback | list[Polled]":
        callback = _FolderCallback(self.dirt, path)
        folder = f"{self.path}/{path}"
        if self._watcher.watch(folder, callback):
            return callback
        self._watcher.unwatch([callback])
        # A folder's time does not tell that a file in it was written to.
        rules = [self._poller.add(folder + name, callback.rules_looked_at) for name in _TELLING]
        return [self._poller.add(folder, callback.looked_at), *rules]

    def remove(self, watches: Iterable[object]) -> None:
        callbacks: list[_Callback] = []
        for watch in watches:
            if isinstance(watch, _Callback):
                callbacks.append(watch)
            elif isinstance(watch, list):
                for polled in watch:
                    self._poller.remove(polled)
        self._watcher.unwatch(callbacks)

    def sources(self, files: Iterable[str], *, index: str | None) -> None:
        super().sources(files, index=index)
        self._watcher.unwatch([self._index] if self._index else [])
        self._index = None
        if index is not None:
            # git puts a new index in the place of the old one, so it is its folder that has to be watched.
            self._index = _IndexCallback(self.dirt, os.fsencode(os.path.basename(index)))
            self._watcher.watch(os.path.dirname(index), self._index)


class _Callback:
    """What watchdog calls, in its thread, for one watch."""

    __slots__ = ("dirt", "watch")

    def __init__(self, dirt: Dirt) -> None:
        self.dirt = dirt
        self.watch: tuple[WatchDescriptor, CallbackId] | None = None

    def on_event(self, event: "InotifyEvent") -> None:
        raise NotImplementedError

    def on_watch_deleted(self, wd: "WatchDescriptor") -> None:
        """The folder is gone; that its parent is told of."""

    def on_queue_overflow(self) -> None:
        """The kernel lost events."""
        self.dirt.everything()


class _FolderCallback(_Callback):
    """Sorts the events of one folder by what they may have changed."""

    __slots__ = ("path",)

    def __init__(self, dirt: Dirt, path: str) -> None:
        super().__init__(dirt)
        self.path = path

    def on_event(self, event: "InotifyEvent") -> None:
        name = os.fsdecode(event.name)
        if not name:
            self.dirt.folder(self.path)
        elif name == ".git" and not self.path:
            self.dirt.everything()
        elif event.is_directory:
            self.dirt.replaced(f"{self.path}{name}/")
        elif not event.is_attrib:
            self._file(name, event)

    def _file(self, name: str, event: "InotifyEvent") -> None:
        if event.is_close_write or event.is_moved_to:
            self.dirt.written(self.path + name)
        if not event.is_close_write or name in _TELLING:
            self.dirt.folder(self.path)

    def looked_at(self, replaced: bool) -> None:
        """Take note of what a poll found, which is less than an event tells."""
        if replaced and self.path:
            self.dirt.replaced(self.path)
        else:
            self.dirt.folder(self.path)

    def rules_looked_at(self, _replaced: bool) -> None:
        """Take note that a file that decides over this folder may have changed."""
        self.dirt.folder(self.path)


class _IndexCallback(_Callback):
    """Waits for one file to be replaced."""

    __slots__ = ("_name",)

    def __init__(self, dirt: Dirt, name: bytes) -> None:
        super().__init__(dirt)
        self._name = name

    def on_event(self, event: "InotifyEvent") -> None:
        if event.name == self._name:
            self.dirt.index()


@cache
def _mask() -> "Mask":
    from watchdog.observers.inotify_c import InotifyConstants as Inotify  # noqa: PLC0415

    entries = Inotify.IN_CREATE | Inotify.IN_DELETE | Inotify.IN_MOVE | Inotify.IN_CLOSE_WRITE | Inotify.IN_ATTRIB
    self = Inotify.IN_DELETE_SELF | Inotify.IN_ONLYDIR | Inotify.IN_DONT_FOLLOW | Inotify.IN_EXCL_UNLINK
    return cast("Mask", entries | self)


def _as_id(number: int) -> "CallbackId":
    return cast("CallbackId", number)


# -- elsewhere ---------------------------------------------------------------------------------------------


class ObserverWatcher:
    """Watches each root as a whole, with what watchdog has for this system."""

    def __init__(self, *, interval: float = 1.0) -> None:
        from watchdog.observers import Observer  # noqa: PLC0415  paid only when something is watched

        self.notice: str | None = None
        self._poller = Poller(interval)
        self._observer = Observer()
        self._observer.start()
        self._poller.start()

    def root(self, root: str, dirt: Dirt) -> Ground:
        """Watch below a root."""
        return _ObserverGround(root, dirt, self._poller, self._observer)

    def close(self) -> None:
        """End every watch and every thread."""
        self._poller.close()
        self._observer.stop()
        self._observer.join()


class _ObserverGround(Ground):
    """The one recursive watch of a root, begun anew only when the root is another: in between nothing is heard."""

    def __init__(self, root: str, dirt: Dirt, poller: Poller, observer: "BaseObserver") -> None:
        super().__init__(root, dirt, poller)
        self._observer = observer
        self._watch: ObservedWatch | None = None
        self._outdated = False

    def add(self, path: str) -> None:
        if not path and (self._watch is None or self._outdated):
            self._outdated = False
            self._schedule()

    def close(self) -> None:
        super().close()
        self._unschedule()

    def _root_looked_at(self, replaced: bool) -> None:
        self._outdated = self._outdated or replaced
        super()._root_looked_at(replaced)

    def _schedule(self) -> None:
        from watchdog import events  # noqa: PLC0415

        self._unschedule()
        kinds: list[type[FileSystemEvent]] = [
            *(events.FileCreatedEvent, events.FileDeletedEvent, events.FileMovedEvent, events.FileModifiedEvent),
            *(events.DirCreatedEvent, events.DirDeletedEvent, events.DirMovedEvent),
        ]
        handler = events.FileSystemEventHandler()
        handler.on_any_event = self._happened  # type: ignore[method-assign]
        with contextlib.suppress(OSError):
            self._watch = self._observer.schedule(handler, self.path, recursive=True, event_filter=kinds)

    def _unschedule(self) -> None:
        if self._watch is not None:
            self._observer.unschedule(self._watch)
            self._watch = None

    def _happened(self, event: "FileSystemEvent") -> None:
        for path in filter(None, map(os.fsdecode, (event.src_path, event.dest_path))):
            relative = os.path.relpath(path, self.path).replace(os.sep, "/")
            if not relative.startswith("../"):
                self._note(relative, event)

    def _note(self, path: str, event: "FileSystemEvent") -> None:
        if path in (".", ".git"):
            self._outdated = self._outdated or path == "."
            self.dirt.everything()
        elif event.is_directory:
            self.dirt.replaced(f"{path}/")
        else:
            if event.event_type in ("modified", "moved"):
                self.dirt.written(path)
            if event.event_type != "modified" or path.rpartition("/")[2] in _TELLING:
                self.dirt.folder(path[: path.rfind("/") + 1])
