"""Watching: learns which folders may have changed, and leaves finding out what did to those who read the disk.

On Linux there is one inotify watch for each folder of a tree, through watchdog's own descriptor and its one
thread; watchdog's `Observer` would watch ignored folders too and hold back moves for half a second. Elsewhere
the `Observer` watches each root as a whole. What the kernel refuses to watch is polled, and `notice` says so.

It does not know rules, lists, or the event loop. A `Dirt` collects, in whatever thread, and calls once to say
that it is no longer empty.
"""

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Dirt", "Ground", "Poller", "Taken", "Watcher"]

logger = logging.getLogger(__name__)

_NOTICE = (
    "Some folders are looked at once in a while instead of being watched, because {reason}; "
    "raise it with `sudo sysctl fs.inotify.{setting}={value}` to see changes at once."
)


class Taken(NamedTuple):
    """What may have changed, by path below a root; folders end in a slash."""

    folders: set[str]
    replaced: set[str]
    written: set[str]
    index: bool
    everything: bool


class Dirt:
    """Collects what may have changed below one root; every method may be called in any thread."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._taken = _nothing()
        self._clean = True

    def __bool__(self) -> bool:
        return not self._clean

    def folder(self, path: str) -> None:
        """Files may have joined or left a folder."""
        self._note(self._taken.folders, path)

    def replaced(self, path: str) -> None:
        """A folder may be new, gone, or another one under the same name."""
        self._note(self._taken.replaced, path)

    def written(self, path: str) -> None:
        """A file has other content."""
        self._note(self._taken.written, path)

    def index(self) -> None:
        """Other files may be tracked."""
        with self._lock:
            self._taken = self._taken._replace(index=True)
        self._stir()

    def everything(self) -> None:
        """Anything may have changed."""
        with self._lock:
            self._taken = self._taken._replace(everything=True)
        self._stir()

    def take(self) -> Taken:
        """Hand over what was collected, and begin anew."""
        with self._lock:
            taken, self._taken, self._clean = self._taken, _nothing(), True
        return taken

    def _note(self, _place: set[str], path: str) -> None:
        with self._lock:
            _place.add(path)
        self._stir()

    def _stir(self) -> None:
        if self._clean:
            self._clean = False
            self._wake()


def _nothing() -> Taken:
    return Taken(set(), set(), set(), index=False, everything=False)
