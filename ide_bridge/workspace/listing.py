"""Listing: the files of a workspace, listed as git would, and told of when they change.

This is the face the event loop sees; threads of its own do the reading. Before `start`, every question reads
the disk anew. After it, an answer is at hand until something stirs, and what stirs is looked at right away, so
that it is usually known before somebody asks.

It does not know how folders are read or watched, what a client is, or what may be shared.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ide_bridge.errors import Disconnected, FileProblem
from ide_bridge.workspace.dirt import Change
from ide_bridge.workspace.patterns import selector

if TYPE_CHECKING:
    from ide_bridge.workspace.index import Index
    from ide_bridge.workspace.watching import Watcher

__all__ = ["Change", "Listing"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CACHE_BYTES = 16 * 1024 * 1024
_CACHE_ENTRIES = 256
_TOLD_AT_ONCE = 256
_LONGEST_PAUSE = 1.0


class Listing:
    """The files of some roots, absolute and real; paths of the second and further ones begin with their name."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)
        self._since: float | None = time.time()
        self._index: Index | None = None
        self._future_index: Index | None = None
        self._watcher: Watcher | None = None
        self._pool = ThreadPoolExecutor(2, "ide-bridge-listing")
        self._turn = threading.Lock()
        self._reading = False
        self._changing = asyncio.Lock()
        self._closed = False
        self._took = 0.0
        self._queue_lock = threading.Lock()
        self._queued: dict[str, Future[bytes]] = {}
        self._encoded: dict[str, bytes] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._look: asyncio.TimerHandle | None = None
        self._subscribers: list[Callable[[Change], None]] = []

    @property
    def notice(self) -> str | None:
        """What the user should know when watching is not what it could be, and what to do."""
        return self._watcher.notice if self._watcher else None

    def encoded_at_hand(self, pattern: str = "") -> bytes | None:
        """Give what `encoded` would, if that needs no waiting."""
        return self._encoded.get(pattern) if self._is_fresh() else None

    def count_at_hand(self) -> int | None:
        """Give what `count` would, if that needs no waiting."""
        return len(self._index.paths) if self._index is not None and self._is_fresh() else None

    async def encoded(self, pattern: str = "") -> bytes:
        """List the files that `pattern` means, sorted, as a JSON array."""
        selector(pattern)
        known = self.encoded_at_hand(pattern)
        return known if known is not None else await self._queue(pattern)

    async def files(self, pattern: str = "") -> list[str]:
        """List the files that `pattern` means, sorted."""
        return await self._run(self._select, pattern)

    async def count(self) -> int:
        """Count all files."""
        known = self.count_at_hand()
        return known if known is not None else len(await self._run(self._select, ""))

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Have a function called, on the event loop, for every change of a listed file; returns how to end it."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def suspect(self, path: str) -> None:
        """Be told that a file was just written, so that the next answer has it."""
        for index in filter(None, (self._index, self._future_index)):
            index.suspect(path)

    async def prepare(self) -> None:
        """Load what the first answer will need, so that it need not wait for that."""
        await self._run(_load)

    async def start(self) -> None:
        """Begin to watch."""
        self._loop = asyncio.get_running_loop()
        await self._change()

    async def set_folders(self, folders: Sequence[str]) -> None:
        """Let folders join or leave."""
        self._folders = list(folders)
        await self._change()

    async def close(self) -> None:
        """End every watch and thread; a reading under way is given up."""
        self._closed = True
        if self._look is not None:
            self._look.cancel()
        for index in filter(None, (self._index, self._future_index)):
            index.stop()
        await asyncio.to_thread(self._close)

    # -- on the event loop ---------------------------------------------------------------------------------

    def _is_fresh(self) -> bool:
        return not (self._closed or self._index is None or self._reading or self._index.stirred)

    async def _change(self) -> None:
        """Turn to the folders as they are now; one change at a time, so that the last one stays."""
        async with self._changing:
            if not self._closed:
                await self._run(self._watch if self._loop else self._begin_anew, self._folders)

    async def _run(self, job: Callable[..., T], *arguments: object) -> T:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._pool, job, *arguments)

    def _queue(self, pattern: str) -> "asyncio.Future[bytes]":
        """Share a reading that has not begun yet among all who want the same."""
        self._check_open()
        with self._queue_lock:
            if pattern not in self._queued:
                self._queued[pattern] = self._pool.submit(self._encode, pattern)
            return asyncio.shield(asyncio.wrap_future(self._queued[pattern]))

    def _look_soon(self) -> None:
        """Look at what stirs at once, but for no more than half of the time."""
        if self._look is None and self._loop is not None and not self._closed:
            self._look = self._loop.call_later(min(self._took, _LONGEST_PAUSE), self._look_now)

    def _look_now(self) -> None:
        self._look = None
        if self._index is not None and self._index.watched and self._index.stirred and not self._closed:
            self._pool.submit(self._select, "")

    def _tell(self, changes: Sequence[Change]) -> None:
        """Tell subscribers; of many changes some at a time, so that others have their turn in between."""
        for change in changes[:_TOLD_AT_ONCE]:
            for callback in tuple(self._subscribers):
                callback(change)
        if len(changes) > _TOLD_AT_ONCE and self._loop is not None:
            self._loop.call_soon(self._tell, changes[_TOLD_AT_ONCE:])

    # -- in any thread -------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise Disconnected("The workspace is closed: start its bridge again.")

    def _stirred(self) -> None:
        self._soon(self._look_soon)

    def _soon(self, callback: Callable[..., object], *arguments: object) -> None:
        if self._loop is not None and not self._closed:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(callback, *arguments)

    # -- in a thread of our own ----------------------------------------------------------------------------

    def _encode(self, pattern: str) -> bytes:
        with self._queue_lock:
            del self._queued[pattern]
        with self._turn:
            index = self._refreshed()
            encoded = self._encoded.get(pattern)
            if encoded is None:
                encoded = msgspec.json.encode(selector(pattern)(index.paths))
                if index.watched:
                    self._remember(pattern, encoded)
            return encoded

    def _select(self, pattern: str) -> list[str]:
        with self._turn:
            return selector(pattern)(self._refreshed().paths)

    def _refreshed(self) -> "Index":
        if self._index is None:
            self._index = _new_index(self._folders, self._stirred)
        self._check_open()
        if self._index.stirred:
            self._refresh(self._index)
        self._check_open()  # a reading that was given up is incomplete
        return self._index

    def _refresh(self, index: "Index") -> None:
        began = time.monotonic()
        self._reading = True
        try:
            changes = index.refresh()
            self._encoded.clear()
        except FileProblem:
            self._took = _LONGEST_PAUSE
            raise
        finally:
            self._reading = False
        self._took = time.monotonic() - began
        self._soon(self._tell, changes)

    def _remember(self, pattern: str, encoded: bytes) -> None:
        self._encoded[pattern] = encoded
        size = sum(map(len, self._encoded.values()))
        for oldest in list(self._encoded)[:-1]:
            if size <= _CACHE_BYTES and len(self._encoded) <= _CACHE_ENTRIES:
                break
            size -= len(self._encoded.pop(oldest))

    def _begin_anew(self, folders: Sequence[str]) -> None:
        with self._turn:
            self._index = _new_index(folders, self._stirred)

    def _watch(self, folders: Sequence[str]) -> None:
        """Read all folders while watching them, then let that take the place of what was known so far."""
        with self._turn:
            pass  # who is being answered comes first
        if self._watcher is None:
            self._watcher = _new_watcher()
        index = self._future_index = _new_index(folders, self._stirred, self._watcher)
        if self._closed:
            index.stop()
        changes = self._first_changes(index)
        with self._turn:
            former, self._index = self._index, index
            self._encoded.clear()
            if former is not None:
                former.close()
        self._soon(self._tell, changes)
        self._stirred()

    def _first_changes(self, index: "Index") -> list[Change]:
        """Read all; if that fails for now, the index is left as one that has to be read."""
        try:
            changes = index.refresh(self._since)
        except FileProblem as problem:
            logger.warning("%s; it is tried again", problem)
            self._took = _LONGEST_PAUSE
            return []
        self._since = None
        return changes

    def _close(self) -> None:
        self._pool.shutdown()
        if self._index is not None:
            self._index.close()
        if self._watcher is not None:
            self._watcher.close()


def _load() -> None:
    from ide_bridge.workspace import index, watching  # noqa: F401, PLC0415  who only reads files needs neither

    selector("*")


def _new_index(folders: Sequence[str], wake: Callable[[], None], watcher: "Watcher | None" = None) -> "Index":
    from ide_bridge.workspace.index import Index  # noqa: PLC0415  see `_load`

    return Index(folders, wake, watcher)


def _new_watcher() -> "Watcher":
    from ide_bridge.workspace.watching import open_watcher  # noqa: PLC0415  see `_load`

    return open_watcher()
