"""The diagnostics tool: the problems the editor or a linter has found.

The CLI sends and expects raw ``file://`` URIs, nothing percent-encoded, so a file is named in the answer as it was
named in the question. Severities are in its words.

It does not know how the problems are found.
"""

import os
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ide_bridge.errors import BridgeError
from ide_bridge.model import Diagnostic, Position
from ide_bridge.positions import to_utf16
from ide_bridge.tools.problems import Known
from ide_bridge.tools.registry import Context, tool
from ide_bridge.workspace.workspace import Workspace

__all__ = ["TOOLS"]

_PREFIXES = ("file://", "_claude_fs_right:", "_claude_fs_left:")
_WORDS = {"error": "Error", "warning": "Warning", "info": "Info", "hint": "Hint"}
_FILES_LIMIT = 50
"""Of more files the columns are taken as they are: reading them all would take too long."""


class GetDiagnostics(msgspec.Struct):
    """The parameters of ``getDiagnostics``."""

    uri: Annotated[str | None, Meta(description="The file:// URI of a file; without, all files")] = None


class _Position(msgspec.Struct):
    line: int
    character: int


class _Range(msgspec.Struct):
    start: _Position
    end: _Position


class _Problem(msgspec.Struct):
    message: str
    severity: str
    range: _Range
    source: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


class _File(msgspec.Struct):
    uri: str
    diagnostics: list[_Problem]
    fresh: bool | UnsetType = UNSET


@tool(
    "getDiagnostics", GetDiagnostics, says=lambda params: f"asks for the problems of {params.uri or 'all files'}"
)
async def get_diagnostics(context: Context, params: GetDiagnostics) -> list[_File]:
    """Get the problems that the editor has found in one file, or in all."""
    if params.uri is None:
        return _by_file(context.workspace, await context.problems.of(None), {})
    path = _path(params.uri)
    known = await context.problems.of(path)
    if known == Known((), fresh=True) and "diagnostics" not in context.editor.features:
        return []
    context.problems.expect(path)
    return _by_file(context.workspace, known, {path: params.uri})


TOOLS = (get_diagnostics,)


def _path(uri: str) -> str:
    """Read a URI as the CLI writes it; as everybody else does if there is no such file."""
    raw = next((uri.removeprefix(prefix) for prefix in _PREFIXES if uri.startswith(prefix)), uri)
    if "%" in raw and not os.path.lexists(raw):
        return unquote(raw)
    return raw


def _by_file(workspace: Workspace, known: Known, uris: dict[str, str]) -> list[_File]:
    """Sort problems by file; a file that was asked about is named even when it has none."""
    files: dict[str, list[Diagnostic]] = {path: [] for path in uris}
    for diagnostic in known.diagnostics:
        if uris and diagnostic.path not in uris:
            continue
        files.setdefault(diagnostic.path, []).append(diagnostic)
    shared = {path: found for path, found in files.items() if workspace.sharing.permits(path)}
    reading = len(shared) <= _FILES_LIMIT
    return [
        _File(
            uris.get(path, f"file://{path}"),
            _written(found, _lines(workspace, path) if reading and found else None),
            UNSET if known.fresh else False,
        )
        for path, found in shared.items()
    ]


def _written(diagnostics: Sequence[Diagnostic], lines: Sequence[str] | None) -> list[_Problem]:
    return [
        _Problem(
            each.message,
            _WORDS[each.severity],
            _Range(_position(each.range.start, lines), _position(each.range.end, lines)),
            each.source or UNSET,
            each.code or UNSET,
        )
        for each in diagnostics
    ]


def _position(position: Position, lines: Sequence[str] | None) -> _Position:
    if lines is None or not 0 <= position.line < len(lines):
        return _Position(position.line, position.column)
    return _Position(position.line, to_utf16(lines[position.line], position.column))


def _lines(workspace: Workspace, path: str) -> Sequence[str] | None:
    """The lines of a file, where columns cannot be taken as they are."""
    try:
        text = workspace.files.read(workspace.locate(path))
    except BridgeError:
        return None
    return None if text.isascii() else text.split("\n")
