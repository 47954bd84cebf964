"""The six methods of a workspace: read, write, list, and what is open.

Paths in results are as ``listFiles`` prints them. A file with unsaved changes in an editor is answered from its
buffer, because that is what the user sees, and is never overwritten behind his back. Neither is a file that
changed on disk since the client read it.

It does not know how a client asked: as a method or as a tool.
"""

import inspect
from collections.abc import Awaitable
from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from ide_bridge.errors import FileProblem
from ide_bridge.tools.registry import Context, tool
from ide_bridge.wire.dispatch import NoParams
from ide_bridge.workspace.files import OpenText, Stamp
from ide_bridge.workspace.places import Place

__all__ = ["TOOLS"]

PathParam = Annotated[str, Meta(description="Relative to the workspace, or absolute inside it")]


class ReadFile(msgspec.Struct):
    """The parameters of ``readFile``."""

    path: PathParam


class WriteFile(msgspec.Struct):
    """The parameters of ``writeFile``."""

    path: PathParam
    content: Annotated[str, Meta(description="The whole new text of the file")]


class ListFiles(msgspec.Struct):
    """The parameters of ``listFiles``."""

    pattern: Annotated[str, Meta(description="A gitignore pattern such as *.js or src/**; all without")] = ""


@tool("readFile", ReadFile, says=lambda params: f"reads {params.path}")
def read_file(context: Context, params: ReadFile) -> str | Awaitable[str]:
    """Read a text file of the workspace (UTF-8, up to 10 MiB)."""
    place = context.workspace.locate(params.path)
    if "dirty" in context.editor.features:
        return _read_as_seen(context, place)
    return _read_from_disk(context, place)


@tool("writeFile", WriteFile, says=lambda params: f"writes {params.path}")
async def write_file(context: Context, params: WriteFile) -> bool:
    """Write a text file of the workspace, making parent folders; the old file is replaced whole or not at all."""
    place = context.workspace.locate(params.path)
    if await _unsaved(context, place) is not None:
        raise FileProblem("failed to write file: It has unsaved changes in the editor; save or discard them first")
    async with context.seen.turn(place):
        stamp = await context.workspace.write(place, params.content, expected=context.seen.expected(place))
        context.seen.written(place, stamp)
    return True


@tool("listFiles", ListFiles, says=lambda params: f"lists {params.pattern or 'all files'}")
async def list_files(context: Context, params: ListFiles) -> Raw:
    """List the files of the workspace, without what git ignores."""
    return Raw(await context.workspace.listing.encoded(params.pattern))


@tool("getWorkspaceInfo", NoParams, says=lambda _: "asks about the workspace")
async def get_workspace_info(context: Context, _: NoParams) -> dict[str, object]:
    """Tell the name, path, number of files and type of the workspace."""
    workspace = context.workspace
    info: dict[str, object] = {
        "name": workspace.name,
        "path": workspace.path,
        "fileCount": await workspace.listing.count(),
        "type": workspace.kind,
    }
    if len(workspace.folders) > 1:
        info["folders"] = workspace.folders
    return info


@tool("getOpenFiles", NoParams, says=lambda _: "asks which files are open")
async def get_open_files(context: Context, _: NoParams) -> list[str]:
    """List the files that are open in the editor, or that changed lately in a plain folder."""
    shown = [context.workspace.shown(file.path) for file in await context.editor.open_files()]
    return [path for path in shown if path is not None]


@tool("getCurrentFile", NoParams, says=lambda _: "asks for the current file")
async def get_current_file(context: Context, _: NoParams) -> str | None:
    """Name the file the user looks at, or null."""
    current = await context.editor.current_file()
    return None if current is None else context.workspace.shown(current.path)


TOOLS = (read_file, write_file, list_files, get_workspace_info, get_open_files, get_current_file)


async def _read_as_seen(context: Context, place: Place) -> str:
    if (buffer := await _unsaved(context, place)) is not None:
        with suppress(FileProblem), _open(context, place) as on_disk:
            context.seen.read(place, on_disk.stamp)  # once it is saved it is another file, with perhaps more in it
        return buffer
    text = _read_from_disk(context, place)
    return await text if inspect.isawaitable(text) else text


def _read_from_disk(context: Context, place: Place) -> str | Awaitable[str]:
    text = _open(context, place)
    content = context.workspace.read(text)
    if isinstance(content, str):
        context.seen.read(place, text.stamp)
        return content
    return _read_large(context, place, text.stamp, content)


async def _read_large(context: Context, place: Place, stamp: Stamp, content: Awaitable[str]) -> str:
    before = context.seen.expected(place)
    text = await content
    if context.seen.expected(place) == before:  # else the client has written meanwhile, and knows better
        context.seen.read(place, stamp)
    return text


def _open(context: Context, place: Place) -> OpenText:
    try:
        return context.workspace.open_text(place)
    except FileProblem as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            context.seen.missing(place)
        raise


async def _unsaved(context: Context, place: Place) -> str | None:
    if "dirty" not in context.editor.features:
        return None
    context.workspace.sharing.permit(place)
    return await context.editor.read_buffer(place.path)
