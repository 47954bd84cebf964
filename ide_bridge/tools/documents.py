"""Document tools: open a file, see what is open, save.

Names, arguments and texts are those of the VS Code extension.

It does not know how an editor does any of it.
"""

import os
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from ide_bridge.answers import settled, then
from ide_bridge.model import OpenFile, Position, Range
from ide_bridge.tools.registry import Context, tool
from ide_bridge.wire.dispatch import NoParams

__all__ = ["TOOLS", "span"]

_PLAIN = "plaintext"


class OpenFileParams(msgspec.Struct, rename="camel"):
    """The parameters of ``openFile``."""

    file_path: Annotated[str, Meta(description="Relative to the workspace, or absolute inside it")]
    preview: Annotated[bool, Meta(description="Open it as a preview, where the editor has such a thing")] = False
    start_text: Annotated[str, Meta(description="Where the selection begins: the first place with this text")] = ""
    end_text: Annotated[str, Meta(description="Where the selection ends: the next place with this text")] = ""
    select_to_end_of_line: Annotated[bool, Meta(description="Extend the selection to the end of its line")] = False
    make_frontmost: Annotated[bool, Meta(description="Give the file the focus")] = True


class Document(msgspec.Struct, rename="camel"):
    """The parameters of a tool about one document."""

    file_path: Annotated[str, Meta(description="Relative to the workspace, or absolute inside it")]


@tool("openFile", OpenFileParams, says=lambda params: f"opens {params.file_path}")
async def open_file(context: Context, params: OpenFileParams) -> str | dict[str, object]:
    """Open a file in the editor, and select what lies between two texts."""
    place = context.workspace.locate(params.file_path)
    with context.workspace.open_text(place) as text:
        content = text.read()
    buffer = await settled(context.editor.read_buffer(place.path)) if "dirty" in context.editor.features else None
    where = span(content if buffer is None else buffer, params)
    await settled(context.editor.open_file(place.path, where, focus=params.make_frontmost))
    if params.make_frontmost:
        return f"Opened file: {place.path}"
    opened = await _find(context, place.path)
    return {
        "success": True,
        "filePath": place.path,
        "languageId": (opened and opened.language) or _PLAIN,
        "lineCount": (opened and opened.lines) or content.count("\n") + 1,
    }


@tool("getOpenEditors", NoParams, says=lambda _: "asks which files are open")
def get_open_editors(context: Context, _: NoParams) -> object:
    """List the files that are open in the editor."""
    return then(context.editor.open_files(), lambda files: {"tabs": _tabs(context, files)})


@tool("getWorkspaceFolders", NoParams, says=lambda _: "asks for the folders of the workspace")
def get_workspace_folders(context: Context, _: NoParams) -> dict[str, object]:
    """List the folders of the workspace."""
    folders = context.workspace.folders
    return {
        "success": True,
        "folders": [
            {"name": os.path.basename(path) or path, "uri": f"file://{path}", "path": path} for path in folders
        ],
        "rootPath": folders[0],
    }


@tool("checkDocumentDirty", Document, says=lambda params: f"asks whether {params.file_path} is saved")
async def check_document_dirty(context: Context, params: Document) -> dict[str, object]:
    """Tell whether an open file has unsaved changes."""
    opened = await _find(context, _shared(context, params.file_path))
    if opened is None:
        return _not_open(params.file_path)
    return {"success": True, "filePath": params.file_path, "isDirty": opened.dirty, "isUntitled": False}


@tool("saveDocument", Document, says=lambda params: f"saves {params.file_path}")
async def save_document(context: Context, params: Document) -> dict[str, object]:
    """Save an open file."""
    path = _shared(context, params.file_path)
    if await _find(context, path) is None:
        return _not_open(params.file_path)
    saved = await settled(context.editor.save_file(path))
    message = "Document saved successfully" if saved else "Document was not saved"
    return {"success": saved, "filePath": params.file_path, "saved": saved, "message": message}


TOOLS = (open_file, get_open_editors, get_workspace_folders, check_document_dirty, save_document)


def span(content: str, params: OpenFileParams) -> Range | None:
    """Find what is to be selected: from the first text to the end of the next one after it."""
    start = content.find(params.start_text) if params.start_text else -1
    if start < 0:
        return None
    end = start + len(params.start_text)
    if params.end_text and (found := content.find(params.end_text, end)) >= 0:
        end = found + len(params.end_text)
    if params.select_to_end_of_line:
        line_end = content.find("\n", end)
        end = len(content) if line_end < 0 else line_end
    return Range(_position(content, start), _position(content, end))


def _position(content: str, offset: int) -> Position:
    line_start = content.rfind("\n", 0, offset) + 1
    return Position(content.count("\n", 0, offset), offset - line_start)


def _shared(context: Context, path: str) -> str:
    place = context.workspace.locate(path)
    context.workspace.sharing.permit(place)
    return place.path


async def _find(context: Context, path: str) -> OpenFile | None:
    return next((file for file in await settled(context.editor.open_files()) if file.path == path), None)


def _tabs(context: Context, files: Sequence[OpenFile]) -> list[dict[str, object]]:
    return [
        {
            "uri": f"file://{file.path}",
            "isActive": file.active,
            "label": os.path.basename(file.path),
            "languageId": file.language or _PLAIN,
            "isDirty": file.dirty,
        }
        for file in files
        if context.workspace.sharing.permits(file.path)
    ]


def _not_open(path: str) -> dict[str, object]:
    return {"success": False, "message": f"Document not open: {path}"}
