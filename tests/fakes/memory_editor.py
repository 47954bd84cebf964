"""An editor in memory: a real `Editor` whose user is the test."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from ide_bridge.editor.interface import Editor
from ide_bridge.model import (
    Diagnostic,
    DiagnosticsChanged,
    Diff,
    DiffDecided,
    Event,
    FileEvent,
    Mentioned,
    OpenFile,
    Position,
    Range,
    Selection,
    SelectionChanged,
)

__all__ = ["MemoryEditor", "span"]

PATIENCE = 10.0
POLL = 0.005


def span(start_line: int, start: int, end_line: int, end: int) -> Range:
    """A range in four numbers."""
    return Range(Position(start_line, start), Position(end_line, end))


class MemoryEditor(Editor):
    """What it is asked it remembers; what its user does it reports."""

    features = frozenset({"selection", "diagnostics", "diff", "focus", "dirty"})

    def __init__(self, name: str = "Memory") -> None:
        self.name = name
        self.files: dict[str, OpenFile] = {}
        self.buffers: dict[str, str] = {}
        self.selected: Selection | None = None
        self.found: dict[str, list[Diagnostic]] = {}
        self.diffs: dict[int, Diff] = {}
        self.closed_diffs: list[int] = []
        self.opened: list[tuple[str, Range | None, bool]] = []
        self.saved: list[str] = []
        self.reloaded: list[str] = []
        self.started = self.closed = 0
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()

    # -- what the bridge asks ------------------------------------------------------------------------------

    async def start(self) -> None:
        self.started += 1

    async def close(self) -> None:
        self.closed += 1

    async def open_files(self) -> Sequence[OpenFile]:
        return list(self.files.values())

    def selection(self) -> Selection | None:
        return self.selected

    async def diagnostics(self, path: str | None) -> Sequence[Diagnostic]:
        return [one for where, found in self.found.items() if path in (None, where) for one in found]

    def open_file(self, path: str, where: Range | None, *, focus: bool) -> None:
        self.opened.append((path, where, focus))
        self.files.setdefault(path, OpenFile(path, active=focus))

    def save_file(self, path: str) -> bool:
        self.saved.append(path)
        return path in self.files

    def close_file(self, path: str) -> bool:
        return self.files.pop(path, None) is not None

    async def show_diff(self, diff: Diff) -> None:
        self.diffs[diff.id] = diff

    async def close_diff(self, diff_id: int) -> None:
        self.closed_diffs.append(diff_id)
        self.diffs.pop(diff_id, None)

    def read_buffer(self, path: str) -> str | None:
        return self.buffers.get(path)

    def file_changed(self, path: str) -> None:
        self.reloaded.append(path)

    async def events(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            yield event

    # -- what its user does --------------------------------------------------------------------------------

    def report(self, event: Event) -> None:
        """Let something happen."""
        self._events.put_nowait(event)

    def select(
        self, path: str, text: str, where: Range, first_line: str | None = None, last_line: str | None = None
    ) -> None:
        """Select something."""
        self.selected = Selection(path, text, where, first_line, last_line)
        self.report(SelectionChanged(self.selected))

    def mention(self, path: str, start: int | None = None, end: int | None = None) -> None:
        """Hand a file, or lines of it, to the client."""
        self.report(Mentioned(path, start, end))

    async def shown(self, title: str) -> Diff:
        """See the diff with this title, as soon as it is on the screen."""
        async with asyncio.timeout(PATIENCE):
            while not (found := [diff for diff in self.diffs.values() if diff.title == title]):
                await asyncio.sleep(POLL)
        return found[0]

    def keep(self, diff: Diff, contents: str | None = None) -> None:
        """Keep a diff, perhaps changed."""
        del self.diffs[diff.id]
        self.report(DiffDecided(diff.id, "kept", contents))

    def reject(self, diff: Diff) -> None:
        """Close the window of a diff."""
        del self.diffs[diff.id]
        self.report(DiffDecided(diff.id, "rejected"))

    def find(self, path: str, *found: Diagnostic) -> None:
        """Find other problems in a file."""
        self.found[path] = list(found)
        self.report(DiagnosticsChanged((path,)))

    def focus(self, path: str) -> None:
        """Look at a file."""
        self.report(FileEvent("focused", path))

    def shut(self, path: str) -> None:
        """Close a file."""
        self.files.pop(path, None)
        self.report(FileEvent("closed", path))

    def quit(self) -> None:
        """Go away."""
        self._events.put_nowait(None)
