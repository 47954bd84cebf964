"""A workspace: some folders, the guard around them, and what is in them.

It puts the rest of this room together. It does not know editors or clients.
"""

import asyncio
import os
from collections.abc import Sequence

from ide_bridge.workspace.files import Files, OpenText, Stamp
from ide_bridge.workspace.guard import Guard
from ide_bridge.workspace.listing import Listing
from ide_bridge.workspace.places import Place
from ide_bridge.workspace.sharing import Sharing

__all__ = ["IN_PLACE_LIMIT", "Workspace"]

IN_PLACE_LIMIT = 64 * 1024
"""A file up to this size is read at once; handing it to a thread would take longer."""


class Workspace:
    """The folders a bridge serves; the first one is what relative paths mean."""

    def __init__(self, *folders: str | os.PathLike[str], denied: Sequence[str] = ()) -> None:
        self.folders = [os.path.realpath(os.fspath(folder)) for folder in folders or (".",)]
        self.sharing = Sharing(denied)
        self.guard = Guard(self.folders, permit=self.sharing.permit)
        self.files = Files(self.guard)
        self.listing = Listing(self.folders)

    @property
    def path(self) -> str:
        """The first folder."""
        return self.folders[0]

    @property
    def name(self) -> str:
        """What people call it."""
        return os.path.basename(self.path) or self.path

    @property
    def kind(self) -> str:
        """``git`` for a git work tree, else ``folder``."""
        return "git" if os.path.lexists(os.path.join(self.path, ".git")) else "folder"

    def locate(self, path: str) -> Place:
        """Turn what a client calls a path into a place inside, or refuse it."""
        return self.guard.locate(path)

    def open_text(self, place: Place) -> OpenText:
        """Open a file to be read."""
        return self.files.open_text(place)

    async def read_large(self, text: OpenText) -> str:
        """Read in a thread what would hold up everyone else."""
        with text:
            return await asyncio.to_thread(text.read)

    async def write(self, place: Place, content: str, *, expected: Stamp | None = None) -> Stamp:
        """Make `content` the text of a file, if it is still in the expected state."""
        stamp = await asyncio.to_thread(self.files.write, place, content, expected=expected)
        self.listing.suspect(place.path)
        return stamp

    def shown(self, path: str) -> str | None:
        """How clients name a file: relative to its root, as ``listFiles`` prints it; ``None`` outside."""
        for number, root in enumerate(self.guard.roots):
            if path.startswith(root.path.rstrip(os.sep) + os.sep):
                relative = os.path.relpath(path, root.path).replace(os.sep, "/")
                return relative if number == 0 else f"{root.name}/{relative}"
        return None

    async def start(self) -> None:
        """Begin to watch."""
        await self.listing.start()

    async def close(self) -> None:
        """Let go of every watch and folder."""
        await self.listing.close()
