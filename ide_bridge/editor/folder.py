"""The folder editor: a plain folder seen as an editor.

What changed lately in the workspace counts as open, the newest first; the newest is the current file. So a
client sees what the user works on, whatever he works with.

It does not know buffers, selections or diffs, and it does no watching of its own: the workspace's listing
tells what changes.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from ide_bridge.editor.interface import Editor
from ide_bridge.model import OpenFile
from ide_bridge.workspace.listing import Change, Listing

__all__ = ["FolderEditor"]

OPEN_LIMIT = 20


class FolderEditor(Editor):
    """Files changed lately, as if they were open."""

    name = "Folder"

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._recent: OrderedDict[str, None] = OrderedDict()
        self._unsubscribe: Callable[[], None] | None = None

    async def start(self) -> None:
        """Follow the changes of the workspace from now on."""
        self._unsubscribe = self._listing.subscribe(self._see)

    async def close(self) -> None:
        """Follow them no more."""
        if self._unsubscribe is not None:
            self._unsubscribe()

    def open_files(self) -> Sequence[OpenFile]:
        """The files changed lately that are still there, the newest first."""
        return [OpenFile(path, active=number == 0) for number, path in enumerate(self._still_there())]

    def current_file(self) -> OpenFile | None:
        """The file that changed last."""
        newest = next(self._still_there(), None)
        return None if newest is None else OpenFile(newest, active=True)

    def _still_there(self) -> Iterator[str]:
        return filter(os.path.isfile, reversed(self._recent))

    def _see(self, change: Change) -> None:
        if change.kind == "deleted":
            self._recent.pop(change.path, None)
            return
        self._recent[change.path] = None
        self._recent.move_to_end(change.path)
        while len(self._recent) > OPEN_LIMIT:
            self._recent.popitem(last=False)
