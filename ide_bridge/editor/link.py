"""The link: an editor's plug-in at the other end of a line, seen as an `Editor`.

A plug-in introduces itself with ``hello``, then both ends may ask. Nothing here waits for a person, and nothing
waits for long: every question has a deadline, and what an editor does not answer in time is answered by what was
last known of it. One that missed a deadline is given little more time until it says something again.

Plug-ins send what they see, in their own words; here it becomes what the rest of the house knows. What makes no
sense is dropped. Contents too large for an editor's own parser travel in a private file.

It does not know how the line is reached, or what becomes of an editor that has attached.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Annotated, Literal, Protocol, TypeVar, get_args

import msgspec
from msgspec import Meta, Raw
from msgspec.json import Decoder

from ide_bridge.editor.interface import Editor, Feature
from ide_bridge.editor.parcels import Parcels
from ide_bridge.errors import BridgeError, InvalidParams, RemoteError, Unsupported
from ide_bridge.model import (
    Decision,
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
    Severity,
)

__all__ = ["LINK_VERSION", "Hello", "Line", "LinkEditor"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

LINK_VERSION = 1
ANSWER_SECONDS = 1.0
SHOW_SECONDS = 4.0
HANGING_SECONDS = 0.05
_NO_PARAMS: dict[str, object] = {}

Number = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Line(Protocol):
    """The plug-in's end of a connection."""

    async def request(self, method: str, params: object, *, timeout: float) -> Raw:  # noqa: ASYNC109 - the deadline
        """Ask, and give the answer; raises ``RemoteError``, ``Disconnected`` or ``TimeoutError``."""

    def notify(self, method: str, params: object = None, *, key: str | None = None) -> None:
        """Tell, when it can be told."""


class Hello(msgspec.Struct):
    """How a plug-in introduces itself."""

    link: int
    editor: str
    version: str = ""
    features: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    pid: int | None = None
    accepts: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse a plug-in that speaks another version."""
        if self.link == LINK_VERSION:
            return
        older = "ide-bridge" if self.link > LINK_VERSION else "the plug-in"
        raise InvalidParams(
            f"The plug-in speaks version {self.link} of the link, ide-bridge {LINK_VERSION}; upgrade {older}."
        )


class Point(msgspec.Struct):
    """A place in a text, as plug-ins tell it."""

    line: Number
    column: Number

    def told(self) -> Position:
        """The same in the words of the house."""
        return Position(self.line, self.column)


class PathParams(msgspec.Struct):
    """A message about one file."""

    path: str

    def __post_init__(self) -> None:
        _check_paths((self.path,))


class SelectionParams(PathParams, rename="camel"):
    """A selection, as plug-ins tell it."""

    start: Point
    end: Point
    text: str = ""
    start_line_text: str | None = None
    end_line_text: str | None = None

    def told(self) -> Selection:
        """The same in the words of the house."""
        start, end = sorted((self.start.told(), self.end.told()))
        return Selection(self.path, self.text, Range(start, end), self.start_line_text, self.end_line_text)


class PathsParams(msgspec.Struct):
    """A message about several files."""

    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_paths(self.paths)


class MentionedParams(PathParams, rename="camel"):
    """A mention, as plug-ins tell it."""

    start_line: Number | None = None
    end_line: Number | None = None


class DecidedParams(msgspec.Struct, rename="camel"):
    """A decision, as plug-ins tell it."""

    diff: int
    decision: Decision
    contents: str | None = None
    contents_file: str | None = None


class _Problem(msgspec.Struct):
    start: Point
    end: Point
    severity: Severity
    message: str
    source: str | None = None
    code: str | int | None = None


class _Problems(PathParams):
    diagnostics: tuple[_Problem, ...] = ()
    fresh: bool = True


class _File(PathParams):
    active: bool = False
    dirty: bool = False
    language: str | None = None
    lines: Number = 0

    def told(self) -> OpenFile:
        return OpenFile(self.path, self.active, self.dirty, self.language or "", self.lines)


class _Saved(msgspec.Struct):
    saved: bool


class _Closed(msgspec.Struct):
    closed: bool


class _Buffer(msgspec.Struct):
    text: str
    dirty: bool


_anything: Decoder[object] = Decoder(object)
_open_files: Decoder[tuple[_File, ...]] = Decoder(tuple[_File, ...])
_open_file: Decoder[_File | None] = Decoder(_File | None)
_selection: Decoder[SelectionParams | None] = Decoder(SelectionParams | None)
_problems: Decoder[tuple[_Problems, ...]] = Decoder(tuple[_Problems, ...])
_buffer: Decoder[_Buffer | None] = Decoder(_Buffer | None)
_saved = Decoder(_Saved)
_closed = Decoder(_Closed)


class LinkEditor(Editor):
    """One attached plug-in."""

    def __init__(self, hello: Hello, line: Line) -> None:
        self.name = hello.editor.strip() or "Editor"
        self.version = hello.version
        self.pid = hello.pid
        self.folders = hello.folders
        self.features = frozenset(feature for feature in get_args(Feature) if feature in hello.features)
        self._line = line
        self._parcels = Parcels() if "contentsFile" in hello.accepts else None
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._hangs = False
        self._files: Sequence[OpenFile] = ()
        self._file: OpenFile | None = None
        self._selection: Selection | None = None

    # -- what the bridge asks ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing more will come from it."""
        self.leave()
        if self._parcels is not None:
            self._parcels.close()

    async def open_files(self) -> Sequence[OpenFile]:
        """What is open; what was open last, if the editor does not answer."""
        try:
            self._files = [file.told() for file in await self._ask("openFiles", _NO_PARAMS, _open_files)]
        except Unsupported as problem:
            logger.info("%s", problem)
        return self._files

    async def current_file(self) -> OpenFile | None:
        """The file the user looks at; the one he looked at last, if the editor does not answer."""
        try:
            found = await self._ask("currentFile", _NO_PARAMS, _open_file)
            self._file = None if found is None else found.told()
        except Unsupported as problem:
            logger.info("%s", problem)
        return self._file

    async def selection(self) -> Selection | None:
        """What is selected in it; what was last, if the editor does not answer."""
        if "selection" not in self.features:
            raise self._cannot("tell what is selected")
        try:
            found = await self._ask("selection", _NO_PARAMS, _selection)
            self._selection = None if found is None else found.told()
        except Unsupported as problem:
            logger.info("%s", problem)
        return self._selection

    async def diagnostics(self, path: str | None) -> Sequence[Diagnostic]:
        """The problems it knows."""
        params = _NO_PARAMS if path is None else {"path": path}
        found = await self._ask("diagnostics", params, _problems)
        return [_diagnostic(file.path, problem) for file in found for problem in file.diagnostics]

    async def open_file(self, path: str, where: Range | None, *, focus: bool) -> None:
        """Open a file."""
        span = {} if where is None else {"start": where.start, "end": where.end}
        await self._ask("openFile", {"path": path, **span, "focus": focus}, _anything)

    async def save_file(self, path: str) -> bool:
        """Save a file."""
        return (await self._ask("saveFile", {"path": path}, _saved)).saved

    async def close_file(self, path: str) -> bool:
        """Close a file."""
        return (await self._ask("closeFile", {"path": path}, _closed)).closed

    async def show_diff(self, diff: Diff) -> None:
        """Show a diff; one that was not shown in time is not to be shown later."""
        params = {"diff": diff.id, "path": diff.path, "title": diff.title, **self._packed(diff)}
        try:
            await self._ask("showDiff", params, _anything, seconds=SHOW_SECONDS)
        except Unsupported:
            with suppress(Unsupported):
                await self.close_diff(diff.id)
            raise

    async def close_diff(self, diff_id: int) -> None:
        """Take a diff off the screen."""
        if self._parcels is not None:
            self._parcels.discard(diff_id)
        await self._ask("closeDiff", {"diff": diff_id}, _anything)

    async def read_buffer(self, path: str) -> str | None:
        """The unsaved text of a file; an editor that does not answer has none that could be told."""
        try:
            found = await self._ask("readBuffer", {"path": path}, _buffer)
        except Unsupported as problem:
            logger.info("%s", problem)
            return None
        return found.text if found is not None and found.dirty else None

    def file_changed(self, path: str) -> None:
        """Have it load a file again that a client has written."""
        self._line.notify("fileChanged", {"path": path})

    async def events(self) -> AsyncIterator[Event]:
        """What its user does."""
        while (event := await self._events.get()) is not None:
            yield event

    # -- what the plug-in tells ----------------------------------------------------------------------------

    def selection_changed(self, params: SelectionParams) -> None:
        """The user selects something else, or moves the cursor."""
        self._selection = params.told()
        self._report(SelectionChanged(self._selection))

    def file_event(self, kind: Literal["opened", "closed", "saved", "focused"], params: PathParams) -> None:
        """Something happened to a file."""
        self._report(FileEvent(kind, params.path))

    def diagnostics_changed(self, params: PathsParams) -> None:
        """Other problems were found."""
        self._report(DiagnosticsChanged(params.paths))

    def mentioned(self, params: MentionedParams) -> None:
        """The user hands something to a client."""
        self._report(Mentioned(params.path, params.start_line, params.end_line))

    def diff_decided(self, params: DecidedParams) -> None:
        """The user has decided."""
        contents = params.contents
        if self._parcels is not None:
            if params.contents_file is not None:
                contents = self._parcels.receive(params.contents_file)
            self._parcels.discard(params.diff)
        self._report(DiffDecided(params.diff, params.decision, contents))

    def leave(self) -> None:
        """The line is gone."""
        self._events.put_nowait(None)

    def tell_clients(self, clients: Sequence[object]) -> None:
        """Tell it who is connected now."""
        self._line.notify("clientsChanged", {"clients": clients}, key="clients")

    def tell(self, level: Literal["error", "warning", "info"], text: str) -> None:
        """Have it show a sentence to its user."""
        self._line.notify("message", {"level": level, "text": text})

    # -- inside --------------------------------------------------------------------------------------------

    def _report(self, event: Event) -> None:
        self._hangs = False
        self._events.put_nowait(event)

    def _packed(self, diff: Diff) -> dict[str, object]:
        if self._parcels is not None and self._parcels.worth(diff.contents):
            return {"contentsFile": self._parcels.pack(diff.id, diff.contents)}
        return {"contents": diff.contents}

    async def _ask(self, method: str, params: object, kind: Decoder[T], *, seconds: float = ANSWER_SECONDS) -> T:
        try:
            seconds = HANGING_SECONDS if self._hangs else seconds
            answer = await self._line.request(method, params, timeout=seconds)
            self._hangs = False
            return kind.decode(answer)
        except TimeoutError:
            self._hangs = True
            raise Unsupported(f"{self.name} does not answer.") from None
        except RemoteError as error:
            self._hangs = False
            raise Unsupported(f"{self.name} cannot do this: {error}") from None
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unsupported(f"{self.name} gave an answer that is not understood: {error}.") from None
        except BridgeError as error:
            raise Unsupported(f"{self.name} is gone.") from error


def _check_paths(paths: Sequence[str]) -> None:
    for path in paths:
        if not os.path.isabs(path) or "\0" in path:
            raise ValueError(f"{path!r} is not an absolute path")


def _diagnostic(path: str, problem: _Problem) -> Diagnostic:
    start, end = sorted((problem.start.told(), problem.end.told()))
    code = "" if problem.code is None else str(problem.code)
    return Diagnostic(path, Range(start, end), problem.severity, problem.message, problem.source or "", code)
