"""The link: an editor's plug-in at the other end of a line, seen as an `Editor`.

A plug-in introduces itself with ``hello``, then both ends may ask. Nothing here waits for a person, and nothing
waits for long: every question has a deadline, and an editor that misses it is treated as one that cannot.
Plug-ins send what they see, in their own words; here it becomes what the rest of the house knows.

It does not know how the line is reached, or what becomes of an editor that has attached.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol, TypeVar, get_args

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from ide_bridge.editor.interface import Editor, Feature
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
_NO_PARAMS: dict[str, object] = {}


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

    def check(self) -> None:
        """Refuse a plug-in that speaks another version."""
        if self.link > LINK_VERSION:
            raise InvalidParams(
                f"The plug-in speaks version {self.link} of the link, ide-bridge only {LINK_VERSION}; "
                "upgrade ide-bridge."
            )
        if self.link < LINK_VERSION:
            raise InvalidParams(
                f"The plug-in speaks version {self.link} of the link, ide-bridge {LINK_VERSION}; "
                "upgrade the plug-in."
            )


class PathParams(msgspec.Struct):
    """A message about one file."""

    path: str


class SelectionParams(msgspec.Struct, rename="camel"):
    """A selection, as plug-ins tell it."""

    path: str
    start: Position
    end: Position
    text: str = ""
    start_line_text: str | None = None
    end_line_text: str | None = None

    def told(self) -> Selection:
        """The same in the words of the house."""
        where = Range(self.start, self.end)
        return Selection(self.path, self.text, where, self.start_line_text, self.end_line_text)


class PathsParams(msgspec.Struct):
    """A message about several files."""

    paths: tuple[str, ...]


class MentionedParams(msgspec.Struct, rename="camel"):
    """A mention, as plug-ins tell it."""

    path: str
    start_line: int | None = None
    end_line: int | None = None


class DecidedParams(msgspec.Struct):
    """A decision, as plug-ins tell it."""

    diff: int
    decision: Decision
    contents: str | None = None


class _Problem(msgspec.Struct):
    start: Position
    end: Position
    severity: Severity
    message: str
    source: str = ""
    code: str | int = ""


class _Problems(msgspec.Struct):
    path: str
    diagnostics: tuple[_Problem, ...] = ()
    fresh: bool = True


class _Saved(msgspec.Struct):
    saved: bool


class _Closed(msgspec.Struct):
    closed: bool


class _Buffer(msgspec.Struct):
    text: str
    dirty: bool


_anything: Decoder[object] = Decoder(object)
_open_files: Decoder[tuple[OpenFile, ...]] = Decoder(tuple[OpenFile, ...])
_open_file: Decoder[OpenFile | None] = Decoder(OpenFile | None)
_selection: Decoder[SelectionParams | None] = Decoder(SelectionParams | None)
_problems: Decoder[tuple[_Problems, ...]] = Decoder(tuple[_Problems, ...])
_buffer: Decoder[_Buffer | None] = Decoder(_Buffer | None)
_saved = Decoder(_Saved)
_closed = Decoder(_Closed)


class LinkEditor(Editor):
    """One attached plug-in."""

    def __init__(self, hello: Hello, line: Line) -> None:
        self.name = hello.editor or "Editor"
        self.version = hello.version
        self.pid = hello.pid
        self.folders = hello.folders
        self.features = frozenset(feature for feature in get_args(Feature) if feature in hello.features)
        self._line = line
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._files: tuple[OpenFile, ...] = ()

    # -- what the bridge asks ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing more will come from it."""
        self.leave()

    async def open_files(self) -> Sequence[OpenFile]:
        """What is open; what was open last, if the editor does not answer."""
        try:
            self._files = await self._ask("openFiles", _NO_PARAMS, _open_files)
        except Unsupported as problem:
            logger.info("%s", problem)
        return self._files

    async def current_file(self) -> OpenFile | None:
        """The file the user looks at."""
        return await self._ask("currentFile", _NO_PARAMS, _open_file)

    async def selection(self) -> Selection | None:
        """What is selected in it."""
        found = await self._ask("selection", _NO_PARAMS, _selection)
        return None if found is None else found.told()

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
        """Show a diff."""
        params = {"diff": diff.id, "path": diff.path, "title": diff.title, "contents": diff.contents}
        await self._ask("showDiff", params, _anything, seconds=SHOW_SECONDS)

    async def close_diff(self, diff_id: int) -> None:
        """Take a diff off the screen."""
        await self._ask("closeDiff", {"diff": diff_id}, _anything)

    async def read_buffer(self, path: str) -> str | None:
        """The unsaved text of a file."""
        found = await self._ask("readBuffer", {"path": path}, _buffer)
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
        self._events.put_nowait(SelectionChanged(params.told()))

    def file_event(self, kind: Literal["opened", "closed", "saved", "focused"], params: PathParams) -> None:
        """Something happened to a file."""
        self._events.put_nowait(FileEvent(kind, params.path))

    def diagnostics_changed(self, params: PathsParams) -> None:
        """Other problems were found."""
        self._events.put_nowait(DiagnosticsChanged(params.paths))

    def mentioned(self, params: MentionedParams) -> None:
        """The user hands something to a client."""
        self._events.put_nowait(Mentioned(params.path, params.start_line, params.end_line))

    def diff_decided(self, params: DecidedParams) -> None:
        """The user has decided."""
        self._events.put_nowait(DiffDecided(params.diff, params.decision, params.contents))

    def leave(self) -> None:
        """The line is gone."""
        self._events.put_nowait(None)

    def tell_clients(self, clients: Sequence[object]) -> None:
        """Tell it who is connected now."""
        self._line.notify("clientsChanged", {"clients": clients}, key="clients")

    def tell(self, level: Literal["error", "warning", "info"], text: str) -> None:
        """Have it show a sentence to its user."""
        self._line.notify("message", {"level": level, "text": text})

    async def _ask(self, method: str, params: object, kind: Decoder[T], *, seconds: float = ANSWER_SECONDS) -> T:
        try:
            return kind.decode(await self._line.request(method, params, timeout=seconds))
        except TimeoutError:
            raise Unsupported(f"{self.name} does not answer.") from None
        except RemoteError as error:
            raise Unsupported(f"{self.name} cannot do this: {error}") from None
        except msgspec.MsgspecError as error:
            raise Unsupported(f"{self.name} gave an answer that is not understood: {error}.") from None
        except BridgeError as error:
            raise Unsupported(f"{self.name} is gone.") from error


def _diagnostic(path: str, problem: _Problem) -> Diagnostic:
    where = Range(problem.start, problem.end)
    return Diagnostic(path, where, problem.severity, problem.message, problem.source, str(problem.code))
