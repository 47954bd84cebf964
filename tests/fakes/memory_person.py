"""An editor in memory with real buffers, and the person at it.

The buffers are those of the example plug-in, reached without a link.

It does not know what is checked.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from ide_bridge.conform.people import Acting
from ide_bridge.conform.person import Cannot
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
from tests.fakes.memory_editor import MemoryEditor
from tests.fakes.plugin_process import Buffers

__all__ = ["BufferEditor", "MemoryPerson"]


class BufferEditor(MemoryEditor):
    """The verbs as they are asked of a Python adapter, answered by the buffers."""

    def __init__(self, name: str = "Memory") -> None:
        super().__init__(name)
        self.desk = Buffers(lambda method, params: self.report(_event(method, params)))

    async def open_files(self) -> Sequence[OpenFile]:
        return [msgspec.convert(file, OpenFile) for file in self.desk.open_files()]

    def selection(self) -> Selection | None:
        found = self.desk.selection()
        return None if found is None else _selection(found)

    async def diagnostics(self, path: str | None) -> Sequence[Diagnostic]:
        return [
            Diagnostic(file["path"], _range(problem), problem["severity"], problem["message"])
            for file in self.desk.diagnostics(path)
            for problem in file["diagnostics"]
        ]

    def open_file(self, path: str, where: Range | None, *, focus: bool) -> None:
        span = {} if where is None else msgspec.to_builtins(where)
        self.desk.open_file(path, focus=focus, **span)

    def save_file(self, path: str) -> bool:
        return self.desk.save_file(path)["saved"]

    def close_file(self, path: str) -> bool:
        return self.desk.close_file(path)["closed"]

    async def show_diff(self, diff: Diff) -> None:
        self.desk.show_diff(diff.id, diff.path, diff.contents, title=diff.title)

    async def close_diff(self, diff_id: int) -> None:
        self.desk.close_diff(diff_id)

    def read_buffer(self, path: str) -> str | None:
        found = self.desk.read_buffer(path)
        return found["text"] if found is not None and found["dirty"] else None

    def file_changed(self, path: str) -> None:
        self.desk.file_changed(path)


class MemoryPerson(Acting):
    """Acts on the buffers directly."""

    def __init__(self, editor: BufferEditor) -> None:
        self._editor = editor

    async def _act(self, deed: str, **given: object) -> Any:
        arguments = {name: msgspec.to_builtins(value) for name, value in given.items() if value is not None}
        try:
            done = getattr(self._editor.desk, deed)(**arguments)
        except KeyError as missing:
            raise Cannot(f"there is no {missing}") from None
        if deed == "quit":
            self._editor.quit()
        return done


def _event(method: str, params: dict[str, Any]) -> Event:
    match method:
        case "selectionChanged":
            return SelectionChanged(_selection(params))
        case "diagnosticsChanged":
            return DiagnosticsChanged(tuple(params["paths"]))
        case "mentioned":
            return Mentioned(params["path"], params.get("startLine"), params.get("endLine"))
        case "diffDecided":
            return msgspec.convert(params, DiffDecided)
        case _:
            return FileEvent(method.removeprefix("file").lower(), params["path"])


def _selection(told: dict[str, Any]) -> Selection:
    return Selection(told["path"], told["text"], _range(told), told["startLineText"], told["endLineText"])


def _range(told: dict[str, Any]) -> Range:
    return Range(msgspec.convert(told["start"], Position), msgspec.convert(told["end"], Position))
