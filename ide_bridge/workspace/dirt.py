"""Dirt: what may have changed below one root since somebody last looked, and the change it turns out to be.

It does not know who watches, what the disk holds, or who will look; it calls `wake` when it stops being empty.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

__all__ = ["Change", "Dirt", "Suspects"]


class Change(NamedTuple):
    """What happened to a listed file, named by its absolute path."""

    path: str
    kind: Literal["created", "changed", "deleted"]


@dataclass
class Suspects:
    """What may have changed, by path below the root; those of folders end in a slash."""

    folders: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    written: dict[str, None] = field(default_factory=dict)
    index: bool = False
    everything: bool = False


class Dirt:
    """Collects suspects; every method may be called in any thread, `wake` is called in the caller's."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._suspects = Suspects()
        self._clean = True

    def __bool__(self) -> bool:
        return not self._clean

    def folder(self, path: str) -> None:
        """Files may have joined or left a folder."""
        with self._lock:
            self._suspects.folders.add(path)
        self._stir()

    def replaced(self, path: str) -> None:
        """A folder may be new, gone, or another one under the same name."""
        with self._lock:
            self._suspects.replaced.add(path)
        self._stir()

    def written(self, path: str) -> None:
        """A file has other content."""
        with self._lock:
            self._suspects.written.pop(path, None)
            self._suspects.written[path] = None
        self._stir()

    def index(self) -> None:
        """Other files may be tracked."""
        with self._lock:
            self._suspects.index = True
        self._stir()

    def everything(self) -> None:
        """Anything may have changed."""
        with self._lock:
            self._suspects.everything = True
        self._stir()

    def take(self) -> Suspects:
        """Hand over what was collected, and begin anew."""
        with self._lock:
            self._clean = True
            taken, self._suspects = self._suspects, Suspects()
        return taken

    def _stir(self) -> None:
        if self._clean:
            self._clean = False
            self._wake()
