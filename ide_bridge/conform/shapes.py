"""What messages of the link look like, to the letter.

The bridge is lenient with what it is sent; who writes a plug-in wants to know what is not as it should be.

It does not know when a message is sent, nor by whom.
"""

import os
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw

from ide_bridge.editor.link import LINK_VERSION

__all__ = ["ANSWERS", "EVENTS", "REQUESTS", "misfit"]

Count = Annotated[int, Meta(ge=0)]


class _Place(msgspec.Struct):
    line: Count
    column: Count


class _File(msgspec.Struct):
    path: str

    def __post_init__(self) -> None:
        if not os.path.isabs(self.path):
            raise ValueError(f"the path {self.path!r} is not absolute")


class _OpenFile(_File):
    active: bool
    dirty: bool
    language: str
    lines: Count


class _Current(_File):
    pass


class _Selected(_File, rename="camel"):
    text: str
    start: _Place
    end: _Place
    start_line_text: str | None = None
    end_line_text: str | None = None

    def __post_init__(self) -> None:
        _File.__post_init__(self)
        if (self.start.line, self.start.column) > (self.end.line, self.end.column):
            raise ValueError("the selection ends before it starts")


class _Problem(msgspec.Struct):
    start: _Place
    end: _Place
    severity: Literal["error", "warning", "info", "hint"]
    message: str
    source: str | None = None
    code: str | int | None = None


class _Problems(_File):
    diagnostics: list[_Problem]
    fresh: bool


class _Saved(msgspec.Struct):
    saved: bool


class _Closed(msgspec.Struct):
    closed: bool


class _Buffer(msgspec.Struct):
    text: str
    dirty: bool


class _Files(msgspec.Struct):
    paths: list[str]


class _Mentioned(_File, rename="camel"):
    start_line: Count | None = None
    end_line: Count | None = None

    def __post_init__(self) -> None:
        _File.__post_init__(self)
        if (self.start_line is None) != (self.end_line is None):
            raise ValueError("startLine and endLine come together or not at all")


class _Decided(msgspec.Struct, rename="camel"):
    diff: int
    decision: Literal["kept", "rejected"]
    contents: str | None = None
    contents_file: str | None = None

    def __post_init__(self) -> None:
        if self.decision == "kept" and self.contents is None and self.contents_file is None:
            raise ValueError("a diff that is kept comes with its contents")


class _Hello(msgspec.Struct):
    link: int
    editor: Annotated[str, Meta(min_length=1)]
    version: str
    features: list[Literal["selection", "diagnostics", "diff", "focus", "dirty"]]
    folders: list[str]
    pid: Annotated[int, Meta(gt=0)]

    def __post_init__(self) -> None:
        if self.link != LINK_VERSION:
            raise ValueError(f"it speaks version {self.link} of the link, and this is version {LINK_VERSION}")
        if strange := [folder for folder in self.folders if not os.path.isabs(folder)]:
            raise ValueError(f"the folder {strange[0]!r} is not absolute")


Shapes = Mapping[str, msgspec.json.Decoder[object]]


def _shape(kind: object) -> msgspec.json.Decoder[object]:
    return msgspec.json.Decoder(kind)


_nothing = _shape(dict[str, object] | None)
_file = _shape(_Current)

ANSWERS: Shapes = {
    "openFiles": _shape(list[_OpenFile]),
    "currentFile": _shape(_Current | None),
    "selection": _shape(_Selected | None),
    "diagnostics": _shape(list[_Problems]),
    "openFile": _nothing,
    "showDiff": _nothing,
    "closeDiff": _nothing,
    "saveFile": _shape(_Saved),
    "closeFile": _shape(_Closed),
    "readBuffer": _shape(_Buffer | None),
}

REQUESTS: Shapes = {"hello": _shape(_Hello), **dict.fromkeys(("status", "share", "choose"), _nothing)}

EVENTS: Shapes = {
    "selectionChanged": _shape(_Selected),
    **dict.fromkeys(("fileOpened", "fileClosed", "fileSaved", "fileFocused"), _file),
    "diagnosticsChanged": _shape(_Files),
    "mentioned": _shape(_Mentioned),
    "diffDecided": _shape(_Decided),
}


def misfit(shapes: Shapes, method: str, value: Raw | bytes) -> str:
    """What is wrong with a message, in words; nothing if it fits, or if its shape is anything."""
    if method not in shapes:
        return ""
    try:
        shapes[method].decode(value)
    except msgspec.MsgspecError as error:
        return str(error).replace("`", "'").replace("Object missing", "missing").replace(" - at '$", " at '")
    return ""
