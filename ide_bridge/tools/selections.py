"""Selections: the last thing the user selected, and how clients want it written.

Clients count columns in UTF-16 units. What lies before a selection is needed to count them; where the editor
did not say, the column is taken as it is.

It does not know who is told of a selection, or whether it may be.
"""

from ide_bridge.model import Position, Selection
from ide_bridge.positions import to_utf16

__all__ = ["TEXT_LIMIT", "Selections", "as_sent", "in_utf16"]

TEXT_LIMIT = 1_000_000
"""Of a longer text only the beginning is told: the CLI uses 2000 characters, and hangs up at 16 MiB."""


class Selections:
    """What was selected last, in whichever editor."""

    def __init__(self) -> None:
        self.latest: Selection | None = None

    def see(self, selection: Selection | None) -> None:
        """Something else is selected; None, that no file has the focus, leaves what was."""
        if selection is not None:
            self.latest = selection

    def forget(self, path: str) -> None:
        """A file was closed: what was selected in it is no longer to be seen."""
        if self.latest is not None and self.latest.path == path:
            self.latest = None


def as_sent(selection: Selection) -> dict[str, object]:
    """Write a selection as ``selection_changed`` and the tools have it."""
    start, end = in_utf16(selection)
    return {
        "text": selection.text[:TEXT_LIMIT],
        "filePath": selection.path,
        "selection": {"start": _position(start), "end": _position(end)},
    }


def in_utf16(selection: Selection) -> tuple[Position, Position]:
    """Give the ends of a selection with columns in UTF-16 units."""
    start, end = selection.range.start, selection.range.end
    first = start.column if selection.first_line is None else to_utf16(selection.first_line, start.column)
    return Position(start.line, first), Position(end.line, _last(selection, first))


def _last(selection: Selection, first: int) -> int:
    start, end = selection.range.start, selection.range.end
    if selection.last_line is not None:
        return to_utf16(selection.last_line, end.column)
    *lines, tail = selection.text.split("\n")
    if lines and len(tail) == end.column:
        return to_utf16(tail, len(tail))
    if not lines and start.line == end.line and len(tail) == end.column - start.column:
        return first + to_utf16(tail, len(tail))
    return end.column


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "character": position.column}
