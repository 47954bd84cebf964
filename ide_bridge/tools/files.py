"""The six methods of a workspace: read, write, list, and what is open.

Paths in results are as ``listFiles`` prints them. A file with unsaved changes in an editor is answered from its
buffer, because that is what the user sees, and is never overwritten behind his back. Neither is a file that
changed on disk since the client read it.

It does not know how a client asked: as a method or as a tool.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from contextlib import suppress
from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from ide_bridge.answers import Answer, settled, then
from ide_bridge.errors import FileProblem
from ide_bridge.model import OpenFile
from ide_bridge.tools.registry import Context, tool
from ide_bridge.wire.dispatch import NoParams
from ide_bridge.workspace.files import OpenText
from ide_bridge.workspace.places import Place
from ide_bridge.workspace.workspace import IN_PLACE_LIMIT, Workspace

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
        await _to_the_end(_write(context, place, params.content))
    return True


@tool("listFiles", ListFiles, says=lambda params: f"lists {params.pattern or 'all files'}")
def list_files(context: Context, params: ListFiles) -> Answer[Raw]:
    """List the files of the workspace, without what git ignores."""
    listing = context.workspace.listing
    known = listing.encoded_at_hand(params.pattern)
    return then(listing.encoded(params.pattern) if known is None else known, Raw)


@tool("getWorkspaceInfo", NoParams, says=lambda _: "asks about the workspace")
def get_workspace_info(context: Context, _: NoParams) -> Answer[dict[str, object]]:
    """Tell the name, path, number of files and type of the workspace."""
    workspace = context.workspace
    known = workspace.listing.count_at_hand()
    count: Answer[int] = workspace.listing.count() if known is None else known
    return then(count, lambda files: _info(workspace, files))


@tool("getOpenFiles", NoParams, says=lambda _: "asks which files are open")
def get_open_files(context: Context, _: NoParams) -> Answer[list[str]]:
    """List the files that are open in the editor, or that changed lately in a plain folder."""
    return then(context.editor.open_files(), lambda files: _shown(context.workspace, files))


@tool("getCurrentFile", NoParams, says=lambda _: "asks for the current file")
def get_current_file(context: Context, _: NoParams) -> Answer[str | None]:
    """Name the file the user looks at, or null."""
    return then(context.editor.current_file(), lambda file: _shown_one(context.workspace, file))


TOOLS = (read_file, write_file, list_files, get_workspace_info, get_open_files, get_current_file)


def _info(workspace: Workspace, files: int) -> dict[str, object]:
    info: dict[str, object] = {
        "name": workspace.name,
        "path": workspace.path,
        "fileCount": files,
        "type": workspace.kind,
    }
    if len(workspace.folders) > 1:
        info["folders"] = workspace.folders
    return info


def _shown(workspace: Workspace, files: Sequence[OpenFile]) -> list[str]:
    return [path for file in files if (path := _shown_one(workspace, file)) is not None]


def _shown_one(workspace: Workspace, file: OpenFile | None) -> str | None:
    return workspace.shown(file.path) if file is not None and workspace.sharing.permits(file.path) else None


async def _read_as_seen(context: Context, place: Place) -> str:
    if (buffer := await _unsaved(context, place)) is not None:
        with suppress(FileProblem), _open(context, place) as on_disk:
            context.seen.read(place, on_disk.stamp)  # once it is saved it is another file, with perhaps more in it
        context.share("buffer", place.path)
        return buffer
    text = _read_from_disk(context, place)
    return await settled(text)


def _read_from_disk(context: Context, place: Place) -> str | Awaitable[str]:
    with _open(context, place) as text:
        # Who says that it is empty may be a file of the system's own, which is made while it is read.
        if text.size > IN_PLACE_LIMIT or not text.size:
            return _read_large(context, place)
        content = text.read()
    context.seen.read(place, text.stamp)
    context.share("file", place.path)
    return content


async def _read_large(context: Context, place: Place) -> str:
    """Open the file anew: who is cancelled before the first step could not close what was opened before it."""
    text = _open(context, place)
    known = context.seen.expected(place)
    content = await context.workspace.read_large(text)
    if context.seen.expected(place) == known:  # else the client has written meanwhile, and knows better
        context.seen.read(place, text.stamp)
    context.share("file", place.path)
    return content


def _open(context: Context, place: Place) -> OpenText:
    try:
        return context.workspace.open_text(place)
    except FileProblem as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            context.seen.missing(place)
        raise


async def _write(context: Context, place: Place, content: str) -> None:
    stamp = await context.workspace.write(
        place, content, expected=context.seen.expected(place), client=context.client_name
    )
    context.seen.written(place, stamp)
    context.problems.written(place.path)


async def _to_the_end(work: Coroutine[object, object, None]) -> None:
    """Finish what a thread cannot leave half done, also for who is cancelled: it will have happened."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        with suppress(Exception, asyncio.CancelledError):
            task.result()
        raise


async def _unsaved(context: Context, place: Place) -> str | None:
    if "dirty" not in context.editor.features:
        return None
    context.workspace.sharing.permit(place)
    return await settled(context.editor.read_buffer(place.path))
