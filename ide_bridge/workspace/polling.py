"""Polling: notices that a path changed by looking at it again and again, for what cannot be watched.

A folder's time changes when an entry joins or leaves it, so looking at folders suffices for lists; that a file
was written to is not noticed. It does not know what the paths are or who asked for them to be watched.
"""

import os
import threading
import time
from collections.abc import Callable

__all__ = ["Polled", "Poller"]

# File times advance in steps, and a change within the step of the last look leaves no trace.
_COARSE = 2_000_000_000
_SHARE = 0.01


class Polled:
    """One path under observation; `tell` gets True when another file or folder has taken its place."""

    __slots__ = ("_seen", "_unsure", "path", "tell")

    def __init__(self, path: str, tell: Callable[[bool], None]) -> None:
        self.path = path
        self.tell = tell
        self._seen = _look(path)
        self._unsure = _recent(self._seen)

    def look(self) -> None:
        """Compare with the last look, and tell."""
        before, self._seen = self._seen, _look(self.path)
        changed = before != self._seen
        if changed or self._unsure:
            self._unsure = _recent(self._seen)
            self.tell(_identity(before) != _identity(self._seen))


class Poller:
    """Looks at paths in a thread of its own, which takes at most a hundredth of a processor."""

    def __init__(self, interval: float = 1.0) -> None:
        self._interval = interval
        self._polled: dict[int, Polled] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ide-bridge-poller", daemon=True)

    def start(self) -> None:
        """Begin looking."""
        self._thread.start()

    def add(self, path: str, tell: Callable[[bool], None]) -> Polled:
        """Look at a path from now on; what happens after this call is told."""
        polled = Polled(path, tell)
        with self._lock:
            self._polled[id(polled)] = polled
        return polled

    def remove(self, polled: Polled) -> None:
        """Look at it no longer."""
        with self._lock:
            self._polled.pop(id(polled), None)

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause = self._interval
        while not self._stopped.wait(pause):
            began = time.thread_time()
            with self._lock:
                everyone = list(self._polled.values())
            for polled in everyone:
                polled.look()
            pause = max(self._interval, (time.thread_time() - began) / _SHARE)


def _look(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _identity(seen: tuple[int, int, int] | None) -> tuple[int, int] | None:
    return seen and seen[:2]


def _recent(seen: tuple[int, int, int] | None) -> bool:
    return seen is not None and abs(time.time_ns() - seen[2]) < _COARSE
