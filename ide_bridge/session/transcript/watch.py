"""Watching transcripts: says at once when one was written to.

One observer serves all of them. What is watched is a transcript's folder, or, as long as that is missing, the
nearest folder above it that is there: the CLI makes both with the first prompt. Where the system refuses to watch,
the file is looked at once a second.

It does not know what is in a transcript.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import TYPE_CHECKING, cast

from ide_bridge.session.transcript import News, Transcript

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

__all__ = ["Watcher", "follow"]

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0


async def follow(transcript: Transcript, watcher: "Watcher") -> AsyncIterator[News]:
    """What is added to a transcript, from its last newest page on, until the watcher is closed."""
    woken = asyncio.Event()
    unwatch = watcher.watch(transcript.path, woken.set)
    try:
        while not watcher.closed:
            woken.clear()
            while (news := transcript.news()) is not None:
                yield news
            await woken.wait()
    finally:
        unwatch()


class Watcher:
    """All that is watched; it belongs to the event loop it was made in."""

    def __init__(self) -> None:
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self._observer: BaseObserver | None = None
        self._folders: dict[str, _Folder] = {}
        self._places: dict[str, _Place] = {}

    def watch(self, path: str, written: Callable[[], None]) -> Callable[[], None]:
        """Call `written`, in the event loop, when a file may have changed; gives what ends that."""
        where, name = os.path.split(os.path.abspath(path))
        folder = self._folders.get(where)
        if folder is None:
            folder = self._folders[where] = _Folder(self, where)
        folder.wanted.setdefault(name, []).append(written)

        def unwatch() -> None:
            if folder.forget(name, written) and self._folders.get(where) is folder:
                del self._folders[where]
                folder.close()

        return unwatch

    def close(self) -> None:
        """End every watch and the thread; whoever follows a transcript comes to the end."""
        self.closed = True
        folders, self._folders = self._folders, {}
        for folder in folders.values():
            folder.close()
            folder.tell_all()
        if self._observer is not None:
            self._observer.stop()
            self._observer.join()
            self._observer = None

    def hold(self, path: str, folder: "_Folder") -> bool:
        """Watch a folder that is there on behalf of one that may not be; False if the system refuses."""
        place = self._places.get(path)
        if place is None:
            place = _Place(path, self)
            handler = cast("FileSystemEventHandler", place)
            try:
                place.watch = self._started().schedule(handler, path, event_filter=_kinds())
            except OSError as error:
                logger.warning("%s cannot be watched and is looked at every second: %s", path, error.strerror)
                return False
            self._places[path] = place
        place.folders.append(folder)
        return True

    def release(self, path: str, folder: "_Folder") -> None:
        """No longer watch a folder on behalf of another."""
        place = self._places.get(path)
        if place is not None and folder in place.folders:
            place.folders.remove(folder)
            if not place.folders:
                self._end(place)

    def lost(self, place: "_Place") -> None:
        """A watched folder is gone, and the watch with it, even if there is one of that name again."""
        if self._places.get(place.path) is place:
            self._end(place)
            for folder in place.folders:
                folder.arm(lost=True)

    def soon(self, call: Callable[..., None], *arguments: object) -> None:
        """Call something in the event loop, from the observer's thread; the loop may have ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call, *arguments)

    def later(self, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Call something in a while."""
        return self._loop.call_later(_LOOK_SECONDS, call)

    def _end(self, place: "_Place") -> None:
        del self._places[place.path]
        if self._observer is not None and place.watch is not None:
            with contextlib.suppress(KeyError, OSError):  # the watch of a folder that is gone has ended by itself
                self._observer.unschedule(place.watch)

    def _started(self) -> "BaseObserver":
        if self._observer is None:
            from watchdog.observers import Observer  # noqa: PLC0415 - paid only when something is watched

            self._observer = Observer()
            self._observer.start()
        return self._observer


class _Place:
    """One watched folder; what happens in it is told to all who wait there."""

    def __init__(self, path: str, watcher: Watcher) -> None:
        self.path = path
        self.folders: list[_Folder] = []
        self.watch: ObservedWatch | None = None
        self._watcher = watcher

    def dispatch(self, event: "FileSystemEvent") -> None:
        """Sort out, in the observer's thread, what is of no interest: every file of the folder is heard of."""
        names = {os.path.basename(os.fsdecode(path)) for path in (event.src_path, event.dest_path) if path}
        if event.is_directory:
            gone = os.fsdecode(event.src_path) == self.path and event.event_type in ("deleted", "moved")
            self._watcher.soon(self._watcher.lost, self) if gone else self._watcher.soon(self._arm_all)
        elif any(name in folder.wanted for folder in tuple(self.folders) for name in names):
            self._watcher.soon(self._tell, names)

    def _arm_all(self) -> None:
        for folder in tuple(self.folders):
            folder.arm()

    def _tell(self, names: set[str]) -> None:
        for folder in tuple(self.folders):
            for name in names:
                folder.tell(name)


class _Folder:
    """A folder with transcripts, there or not, and who wants to know of which file in it."""

    def __init__(self, watcher: Watcher, path: str) -> None:
        self.wanted: dict[str, list[Callable[[], None]]] = {}
        self._watcher = watcher
        self._path = path
        self._held = ""
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self.arm()

    def arm(self, *, lost: bool = False) -> None:
        """Watch the folder, or the nearest above it; what appears meanwhile is not missed."""
        if lost:
            self._held = ""
        while not self._closed and self._held != (nearest := _nearest(self._path)):
            self._release()
            if not self._watcher.hold(nearest, self):
                self._timer = self._watcher.later(self._look)
                return
            self._held = nearest
            self.tell_all()

    def tell(self, name: str) -> None:
        """Tell those who want to know of this file."""
        for written in tuple(self.wanted.get(name, ())):
            written()

    def tell_all(self) -> None:
        """Tell everybody."""
        for name in tuple(self.wanted):
            self.tell(name)

    def forget(self, name: str, written: Callable[[], None]) -> bool:
        """Forget one who wanted to know; True if nobody is left."""
        listeners = self.wanted.get(name, [])
        if written in listeners:
            listeners.remove(written)
        if not listeners:
            self.wanted.pop(name, None)
        return not self.wanted

    def close(self) -> None:
        """End the watch."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._release()

    def _look(self) -> None:
        self.tell_all()
        self.arm()

    def _release(self) -> None:
        if self._held:
            self._watcher.release(self._held, self)
            self._held = ""


@cache
def _kinds() -> "list[type[FileSystemEvent]]":
    from watchdog import events  # noqa: PLC0415 - paid only when something is watched

    return [
        *(events.FileCreatedEvent, events.FileModifiedEvent, events.FileMovedEvent, events.FileDeletedEvent),
        *(events.DirCreatedEvent, events.DirMovedEvent, events.DirDeletedEvent),
    ]


def _nearest(folder: str) -> str:
    """The folder, or the nearest one above it that is there; the observer would not follow a link to it."""
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return os.path.realpath(folder)
