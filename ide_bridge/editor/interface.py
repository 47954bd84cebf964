"""What an editor is: the verbs the bridge may ask of it, and the events it reports.

An adapter subclasses `Editor` and overrides what its editor can do; the rest answers honestly that it cannot.
What it is asked it may answer at once, with a plain function, or later, with an ``async`` one.
No method waits for a person: showing a diff returns once it is shown, and what the user decides is an event.

It does not know links, clients or tools.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Literal

from ide_bridge.answers import Answer, then
from ide_bridge.errors import Unsupported
from ide_bridge.model import Diagnostic, Diff, Event, OpenFile, Range, Selection

__all__ = ["Editor", "Feature"]

Feature = Literal["selection", "diagnostics", "diff", "focus", "dirty"]


class Editor:
    """The program with the buffers. ``name`` is what the user sees in ``/ide``."""

    name: str = "Editor"
    version: str = ""
    pid: int | None = None
    features: frozenset[Feature] = frozenset()

    async def start(self) -> None:
        """Get ready; called once, on the bridge's event loop, before anything else."""

    async def close(self) -> None:
        """Let go of everything; nothing is asked afterwards."""

    def open_files(self) -> Answer[Sequence[OpenFile]]:
        """The files that are open, the most recently used first."""
        return []

    def current_file(self) -> Answer[OpenFile | None]:
        """The file the user looks at."""
        return then(self.open_files(), lambda files: next((file for file in files if file.active), None))

    def selection(self) -> Answer[Selection | None]:
        """What is selected in the current file."""
        raise self._cannot("tell what is selected")

    def diagnostics(self, path: str | None) -> Answer[Sequence[Diagnostic]]:
        """The problems of one file, or of all."""
        raise self._cannot("tell diagnostics")

    def open_file(self, path: str, where: Range | None, *, focus: bool) -> Answer[None]:
        """Open a file, at a range if given."""
        raise self._cannot("open files")

    def save_file(self, path: str) -> Answer[bool]:
        """Save an open file; ``False`` when it is not open."""
        raise self._cannot("save files")

    def close_file(self, path: str) -> Answer[bool]:
        """Close an open file; ``False`` when it is not open."""
        raise self._cannot("close files")

    def show_diff(self, diff: Diff) -> Answer[None]:
        """Show a proposed change; the decision follows as `DiffDecided`."""
        raise self._cannot("show diffs")

    def close_diff(self, diff_id: int) -> Answer[None]:
        """Take a diff off the screen; one that is gone already is fine."""

    def read_buffer(self, path: str) -> Answer[str | None]:
        """The text of a file with unsaved changes; ``None`` when the disk has the truth."""
        return None

    def file_changed(self, path: str) -> Answer[None]:
        """A client has written this file: show what is in it now."""

    async def events(self) -> AsyncIterator[Event]:
        """What the user does, as it happens; ends when the editor goes away."""
        await asyncio.Event().wait()  # nothing to report, and no end
        nothing: tuple[Event, ...] = ()
        for event in nothing:
            yield event

    def _cannot(self, what: str) -> Unsupported:
        return Unsupported(f"{self.name} cannot {what}.")
