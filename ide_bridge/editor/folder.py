"""The folder editor: a plain folder seen as an editor.

What changed lately in the workspace counts as open, the newest first; the newest is the current file. So a
client sees what the user works on, whatever he works with. Linters that the user configured find its problems.

It does not know buffers, selections or diffs, and it does no watching of its own: the workspace's listing
tells what changes.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ide_bridge.answers import Answer
from ide_bridge.editor.interface import Editor
from ide_bridge.model import Diagnostic, DiagnosticsChanged, Event, OpenFile
from ide_bridge.settings import Linter
from ide_bridge.workspace.listing import Change, Listing

if TYPE_CHECKING:
    from ide_bridge.editor.linters import Linters

__all__ = ["FolderEditor"]

OPEN_LIMIT = 20


class FolderEditor(Editor):
    """Files changed lately, as if they were open.

    Linters run in those of the ``folders`` in which a file lies; a list that changes is followed.
    """

    name = "Folder"

    def __init__(self, listing: Listing, linters: Sequence[Linter] = (), *, folders: Sequence[str] = ()) -> None:
        self._listing = listing
        self._recent: OrderedDict[str, None] = OrderedDict()
        self._unsubscribe: Callable[[], None] | None = None
        self._listeners: set[asyncio.Queue[Event | None]] = set()
        self._closed = False
        self._linters = _start_linters(linters, folders, listing, self._problems_changed) if linters else None
        if self._linters is not None:
            self.features = frozenset({"diagnostics"})

    async def start(self) -> None:
        """Follow the changes of the workspace from now on."""
        self._unsubscribe = self._listing.subscribe(self._see)

    async def close(self) -> None:
        """Follow them no more, and end what runs."""
        self._closed = True
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if self._linters is not None:
            await self._linters.close()
        self._report(None)

    def open_files(self) -> Sequence[OpenFile]:
        """The files changed lately that are still there, the newest first."""
        return [OpenFile(path, active=number == 0) for number, path in enumerate(self._still_there())]

    def current_file(self) -> OpenFile | None:
        """The file that changed last."""
        newest = next(self._still_there(), None)
        return None if newest is None else OpenFile(newest, active=True)

    def diagnostics(self, path: str | None) -> Answer[Sequence[Diagnostic]]:
        """What the linters have found."""
        return super().diagnostics(path) if self._linters is None else self._linters.diagnostics(path)

    def file_changed(self, path: str) -> None:
        """A client has written this file, and is done with it."""
        if self._linters is not None:
            self._linters.hurry(path)

    async def events(self) -> AsyncIterator[Event]:
        """When the linters have looked at files."""
        if self._closed:
            return
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._listeners.discard(queue)

    def _problems_changed(self, paths: tuple[str, ...]) -> None:
        if paths:
            self._report(DiagnosticsChanged(paths))

    def _report(self, event: Event | None) -> None:
        for listener in self._listeners:
            listener.put_nowait(event)

    def _still_there(self) -> Iterator[str]:
        return filter(os.path.isfile, reversed(self._recent))

    def _see(self, change: Change) -> None:
        self._note(change)
        if self._linters is not None:
            self._linters.see(change)

    def _note(self, change: Change) -> None:
        if change.kind == "deleted":
            self._recent.pop(change.path, None)
            return
        self._recent[change.path] = None
        self._recent.move_to_end(change.path)
        while len(self._recent) > OPEN_LIMIT:
            self._recent.popitem(last=False)


def _start_linters(
    linters: Sequence[Linter],
    folders: Sequence[str],
    listing: Listing,
    changed: Callable[[tuple[str, ...]], None],
) -> "Linters":
    from ide_bridge.editor.linters import Linters  # noqa: PLC0415 - most users have configured none

    return Linters(linters, folders, listing, changed)
