"""A workspace: some folders, the guard around them, and what is in them.

It puts the rest of this room together. It does not know editors or clients.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Self

from ide_bridge.home import workspace_folder
from ide_bridge.settings import ApprovalPolicy, LiveSettings, Settings
from ide_bridge.workspace.audit import Audit
from ide_bridge.workspace.deny_rules import DenyRules
from ide_bridge.workspace.files import Files, OpenText, Stamp
from ide_bridge.workspace.guard import Guard
from ide_bridge.workspace.hidden import Hidden
from ide_bridge.workspace.journal import Journal
from ide_bridge.workspace.journalled import JournalledFiles
from ide_bridge.workspace.listing import Listing
from ide_bridge.workspace.places import Place
from ide_bridge.workspace.sharing import Sharing

__all__ = ["IN_PLACE_LIMIT", "Workspace"]

IN_PLACE_LIMIT = 64 * 1024
"""A file up to this size is read at once; handing it to a thread would take longer."""


class Workspace:
    """The folders a bridge serves; the first one is what relative paths mean.

    Without `settings` those hold that nobody has changed; `of_user` follows those of the user.
    """

    def __init__(
        self,
        *folders: str | os.PathLike[str],
        denied: Sequence[str] = (),
        settings: Settings | LiveSettings | None = None,
    ) -> None:
        self.folders = [os.path.realpath(os.fspath(folder)) for folder in folders or (".",)]
        self._settings = _asked(settings or Settings())
        self.approval_policy: Callable[[str], ApprovalPolicy] = (settings or Settings()).approval_policy
        """How the questions of a session in a folder are answered without a person."""
        self.sharing = Sharing(
            denied,
            settings=self._settings,
            roots=lambda: self.guard.roots,
            rules=DenyRules(lambda: self.guard.roots).find,
            ignored=Hidden(),
        )
        self.audit = Audit(workspace_folder(self.path))
        self.guard = Guard(self.folders, permit=self.sharing.permit, permit_writing=self.sharing.permit_writing)
        self.files = Files(self.guard)
        self._journalled: JournalledFiles | None = None
        self.listing = Listing(self.folders)

    @classmethod
    def of_user(cls, *folders: str | os.PathLike[str]) -> Self:
        """A workspace under the settings of the user, and those of the folders where they are stricter.

        Both are followed when they change.
        """
        settings = LiveSettings([os.path.realpath(os.fspath(folder)) for folder in folders])
        workspace = cls(*folders, settings=settings)
        settings.follow(lambda: [root.path for root in workspace.guard.roots])
        return workspace

    @property
    def settings(self) -> Settings:
        """What the user has decided, as it holds now."""
        return self._settings()

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

    async def set_folders(self, folders: Sequence[str]) -> None:
        """Let folders join or leave; the first one stays."""
        self.folders[:] = folders
        self.guard.set_folders(self.folders)
        await self.listing.set_folders(self.folders)

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

    def keep_journal(self, state: str) -> None:
        """From now on note in this state folder what clients change, so that it can be taken back."""
        self._journalled = JournalledFiles(self.guard, self.files, Journal(state))

    async def expect(self, path: str, content: str, *, client: str = "") -> None:
        """Note that a client is about to make `content` the text of a file, because the user kept its diff."""
        if self._journalled is not None:
            await asyncio.to_thread(self._journalled.expect, path, content, client=client)

    async def write(self, place: Place, content: str, *, expected: Stamp | None = None, client: str = "") -> Stamp:
        """Make `content` the text of a file, if it is still in the expected state."""
        stamp = await asyncio.to_thread(self._write, place, content, expected, client)
        self.listing.suspect(place.path)
        return stamp

    def _write(self, place: Place, content: str, expected: Stamp | None, client: str) -> Stamp:
        if self._journalled is None:
            return self.files.write(place, content, expected=expected)
        return self._journalled.write(place, content, expected=expected, client=client)

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
        """Let go of every watch, folder and log."""
        await self.listing.close()
        self.audit.close()


def _asked(settings: Settings | LiveSettings) -> Callable[[], Settings]:
    return settings if isinstance(settings, LiveSettings) else lambda: settings
