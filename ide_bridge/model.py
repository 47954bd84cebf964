"""The values that travel through the house: positions, selections, files, diagnostics, diffs, events.

All are frozen. Lines and columns count from 0, columns in code points; paths are absolute.

It does not know where a value comes from, or how a client wants it written.
"""

from typing import Literal

import msgspec

__all__ = [
    "Decision",
    "Diagnostic",
    "DiagnosticsChanged",
    "Diff",
    "DiffDecided",
    "Event",
    "FileEvent",
    "Mentioned",
    "OpenFile",
    "Position",
    "Range",
    "Selection",
    "SelectionChanged",
]

Decision = Literal["kept", "rejected"]
Severity = Literal["error", "warning", "info", "hint"]


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in a text."""

    line: int
    column: int


class Range(msgspec.Struct, frozen=True):
    """From one place to another; the end is not part of it."""

    start: Position
    end: Position


class Selection(msgspec.Struct, frozen=True):
    """What is selected in a file; an empty text means that there is only a cursor.

    ``first_line`` and ``last_line`` are the whole lines on which it begins and ends, as far as they are known.
    """

    path: str
    text: str
    range: Range
    first_line: str | None = None
    last_line: str | None = None


class OpenFile(msgspec.Struct, frozen=True):
    """A file an editor has open."""

    path: str
    active: bool = False
    dirty: bool = False
    language: str = ""
    lines: int = 0


class Diagnostic(msgspec.Struct, frozen=True):
    """A problem that an editor or a linter found."""

    path: str
    range: Range
    severity: Severity
    message: str
    source: str = ""
    code: str = ""


class Diff(msgspec.Struct, frozen=True):
    """A change proposed by a client, for a person to decide."""

    id: int
    path: str
    title: str
    contents: str


class SelectionChanged(msgspec.Struct, frozen=True):
    """The user selects something else, or moves the cursor; ``None``: no file has the focus."""

    selection: Selection | None


class FileEvent(msgspec.Struct, frozen=True):
    """Something happened to a file in the editor."""

    kind: Literal["opened", "closed", "saved", "focused"]
    path: str


class DiagnosticsChanged(msgspec.Struct, frozen=True):
    """The problems of these files may be others now."""

    paths: tuple[str, ...]


class Mentioned(msgspec.Struct, frozen=True):
    """The user hands a file, or lines of it, to the client."""

    path: str
    start_line: int | None = None
    end_line: int | None = None


class DiffDecided(msgspec.Struct, frozen=True):
    """The user kept a diff, perhaps with changes of his own, or rejected it."""

    diff: int
    decision: Decision
    contents: str | None = None


Event = SelectionChanged | FileEvent | DiagnosticsChanged | Mentioned | DiffDecided
