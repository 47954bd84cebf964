"""Problems: what is known of diagnostics, and how new it is.

An answer never takes long: an editor that is slow is answered for with what it said last, marked as not fresh.
After a file was written there is something to wait for: that the change is noticed, and that the editor's own
checks settle; both only so long.

It does not know where diagnostics come from, or how a client wants them written.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ide_bridge.answers import settled
from ide_bridge.editor.interface import Editor
from ide_bridge.model import Diagnostic

__all__ = ["Known", "Problems"]

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 0.25
ASK_SECONDS = 10.0
NOTICE_SECONDS = 0.2
CHECK_SECONDS = 0.8
QUIET_SECONDS = 0.1
SETTLE_SECONDS = 1.5
EXPECTED_LIMIT = 100


class Known(NamedTuple):
    """The problems of some files, and whether the editor has just said so."""

    diagnostics: Sequence[Diagnostic]
    fresh: bool


class Problems:
    """What the editor says of problems."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._known: dict[str, Sequence[Diagnostic]] = {}
        self._asking: dict[str | None, asyncio.Task[Sequence[Diagnostic] | None]] = {}
        self._writes: dict[str, _Write] = {}
        self._telling: set[asyncio.Task[None]] = set()

    async def of(self, path: str | None) -> Known:
        """Give the problems of a file, or of all once recent writes have settled."""
        if "diagnostics" not in self._editor.features:
            return Known((), fresh=True)
        settled_down = await self._settle() if path is None else True
        task = self._asking.get(path)
        if task is None:
            task = self._asking[path] = asyncio.create_task(self._ask(path))
            task.add_done_callback(lambda _: self._asking.pop(path, None))
        done, _ = await asyncio.wait({task}, timeout=ANSWER_SECONDS)
        found = task.result() if done else None
        if found is None:
            return Known(self._last_known(path), fresh=False)
        return Known(found, settled_down)

    def expect(self, path: str) -> None:
        """A client is about to write this file."""
        if path not in self._writes:
            self._writes[path] = _Write()
        if len(self._writes) > EXPECTED_LIMIT:
            del self._writes[next(iter(self._writes))]

    def noticed(self, path: str) -> None:
        """A file has other contents; when that was expected, a client has written it."""
        if path in self._writes:
            self.written(path)

    def written(self, path: str) -> None:
        """A client has written a file: the editor is told, and its next word on it is waited for."""
        self.expect(path)
        self._writes[path].notice()
        task = asyncio.get_running_loop().create_task(self._tell(path))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def changed(self, paths: Iterable[str]) -> None:
        """The editor has found other problems in these files."""
        for path in paths:
            if (write := self._writes.get(path)) is not None:
                write.hear()

    async def close(self) -> None:
        """Ask and tell nothing any more."""
        tasks = [*self._asking.values(), *self._telling]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, path: str | None) -> Sequence[Diagnostic] | None:
        """Ask the editor; None when it has no answer."""
        try:
            async with asyncio.timeout(ASK_SECONDS):
                found = await settled(self._editor.diagnostics(path))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the editor, the last answer stands
            logger.info("the editor did not tell its diagnostics: %s", error)
            return None
        self._remember(path, found)
        return found

    def _remember(self, path: str | None, found: Sequence[Diagnostic]) -> None:
        files: dict[str, list[Diagnostic]] = {} if path is None else {path: []}
        for diagnostic in found:
            files.setdefault(diagnostic.path, []).append(diagnostic)
        if path is None:
            self._known.clear()
        self._known.update(files)

    def _last_known(self, path: str | None) -> Sequence[Diagnostic]:
        if path is not None:
            return self._known.get(path, ())
        return [diagnostic for found in self._known.values() for diagnostic in found]

    async def _settle(self) -> bool:
        """Wait until what was written lately has been checked; False when that took too long."""
        writes = dict(self._writes)
        waiting = [asyncio.create_task(write.settled()) for write in writes.values()]
        if not waiting:
            return True
        try:
            await asyncio.wait(waiting, timeout=SETTLE_SECONDS)
            return all(task.done() and task.result() for task in waiting)
        finally:
            for path, write in writes.items():
                if self._writes.get(path) is write:
                    del self._writes[path]
            for task in waiting:
                task.cancel()

    async def _tell(self, path: str) -> None:
        try:
            await settled(self._editor.file_changed(path))
        except Exception as error:  # noqa: BLE001 - an editor that is gone reloads nothing
            logger.debug("nobody was told of %s: %s", path, error)


class _Write:
    """One file that is about to be, or was just, written."""

    def __init__(self) -> None:
        self._noticed = asyncio.Event()
        self._heard = asyncio.Event()

    def notice(self) -> None:
        """It is on the disk."""
        self._noticed.set()

    def hear(self) -> None:
        """The editor says something about it; what it said before the write does not count."""
        if self._noticed.is_set():
            self._heard.set()

    async def settled(self) -> bool:
        """Wait until the editor has been quiet about it for a while; True when there was no write, too."""
        if not await _happens(self._noticed, NOTICE_SECONDS):
            return True
        if not await _happens(self._heard, CHECK_SECONDS):
            return False
        while True:
            self._heard.clear()
            if not await _happens(self._heard, QUIET_SECONDS):
                return True


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
