"""The editor under examination, with the person at it and a fresh folder of files.

Checks ask the editor and wait for its events through it, so that every wait has an end and every disappointment
is told in words. Between two checks it puts away what the first has left.

It does not know what is demanded, nor how the editor was started.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from ide_bridge.answers import Answer, settled
from ide_bridge.conform.person import Cannot, Person
from ide_bridge.conform.record import EVENT_SECONDS, E, Record
from ide_bridge.conform.verdict import Nonconforming, Refused, demand
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import Unsupported
from ide_bridge.model import Diff, FileEvent, OpenFile, Position, Range, Selection

__all__ = ["Line", "Subject", "span"]

T = TypeVar("T")

POLL_SECONDS = 0.01
QUIET_SECONDS = 0.1


class Line(Protocol):
    """The link to the editor, for checks of the link itself."""

    @property
    def complaints(self) -> list[str]:
        """What the other end sent that is not the link protocol, in words."""

    async def ask(self, method: str, params: object) -> object:
        """Ask; raises ``Nonconforming`` when no answer comes, and its ``Refused`` when it is an error."""

    async def refusal(self, method: str, params: object) -> int | None:
        """Ask what should be refused; gives the code of the error, ``None`` when it was granted."""

    async def burst(self, requests: Sequence[tuple[str, object]]) -> tuple[list[int], list[int]]:
        """Ask everything at once; gives the ids as they were asked, and in the order of the answers."""

    def notify(self, method: str, params: object = None, *, key: str | None = None) -> None:
        """Tell."""

    def introduction(self) -> list[str]:
        """What is wrong with how the other end introduced itself."""


def span(start_line: int, start: int, end_line: int, end: int) -> Range:
    """A range in four numbers."""
    return Range(Position(start_line, start), Position(end_line, end))


class Subject:
    """One living editor."""

    def __init__(self, editor: Editor, person: Person, root: Path, line: Line | None = None) -> None:
        self.editor = editor
        self.person = person
        self.line = line
        self.folder = root
        self._root = root
        self._record = Record(editor)
        self._lost = False
        self._number = 0
        self._diffs = 0
        self._shown: set[int] = set()

    @property
    def gone(self) -> bool:
        """Whether the editor has left, or is of no more use."""
        return self._record.over or self._lost

    async def close(self) -> None:
        """Let go of the editor."""
        await self._record.close()

    def begin(self) -> None:
        """Give the next check a folder of its own, and no past."""
        self._number += 1
        self.folder = Path(tempfile.mkdtemp(prefix="check-", dir=self._root))
        self.forget()
        if self.line is not None:
            self.line.complaints.clear()

    async def tidy(self) -> None:
        """Close what the last check left open, and throw away what is unsaved; who fails at that is given up."""
        try:
            for number in sorted(self._shown):
                await settled(self.editor.close_diff(number))
            for file in await self.open_files():
                await self._put_away(file)
        except (Cannot, Refused, Unsupported):  # the next check has files of its own
            pass
        except Exception:  # noqa: BLE001 - somebody else's code, and the check has told what is wrong with it
            self._lost = True
        self._shown.clear()

    async def _put_away(self, file: OpenFile) -> None:
        if file.dirty:
            await self.person.open(file.path)
            await self.person.close()
        else:
            await settled(self.editor.close_file(file.path))

    # -- files on the disk ---------------------------------------------------------------------------------

    def file(self, name: str = "notes.txt", text: str = "one\ntwo\nthree\n") -> str:
        """Put a file into the folder of this check; gives its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return os.path.realpath(path)

    def on_disk(self, path: str) -> str:
        """What a file holds, to the byte."""
        return Path(path).read_bytes().decode()

    # -- what the editor is asked --------------------------------------------------------------------------

    async def open_files(self) -> Sequence[OpenFile]:
        """The open files that lie where this editor is examined."""
        files = await settled(self.editor.open_files())
        for file in files:
            demand(
                os.path.isabs(file.path), f"Expected only absolute paths among the open files; {file.path!r} came"
            )
        return [file for file in files if file.path.startswith(str(self._root) + os.sep)]

    async def open_paths(self) -> list[str]:
        """Their paths."""
        return [file.path for file in await self.open_files()]

    async def listed(self, path: str) -> OpenFile:
        """What is told of one open file."""
        found = [file for file in await self.open_files() if file.path == path]
        demand(found, f"Expected {path} among the open files; they are {await self.open_paths()}")
        return found[0]

    async def current_path(self) -> str | None:
        """The path of the current file."""
        current = await settled(self.editor.current_file())
        return None if current is None else current.path

    async def selection(self) -> Selection | None:
        """What is selected."""
        return await settled(self.editor.selection())

    async def open_file(self, path: str, where: Range | None = None, *, focus: bool = True) -> None:
        """Have a file opened, and see it among the open ones."""
        await settled(self.editor.open_file(path, where, focus=focus))
        await self.until(
            lambda: self._is_listed(path), f"{path} among the open files once it was opened", self.open_paths
        )

    async def text(self, path: str) -> str:
        """What the editor shows of an open file."""
        try:
            return await self.person.text(path)
        except Cannot:
            if self.line is None:
                raise
        answer = await self.line.ask("readBuffer", {"path": path})
        if isinstance(answer, dict):
            return str(answer.get("text"))
        raise Cannot("nobody tells what the editor shows of a file without unsaved changes")

    async def read_buffer(self, path: str) -> str | None:
        """The unsaved text of a file."""
        return await settled(self.editor.read_buffer(path))

    async def make_dirty(self, path: str, typed: str = "unsaved ") -> str:
        """Open a file and type at its start; gives what the editor should show then."""
        await self.person.open(path)
        await self.person.place(0, 0)
        await self.person.type(typed)
        wanted = typed + self.on_disk(path)
        await self.until(
            lambda: self._has_buffer(path, wanted),
            f"{wanted!r} as the unsaved text of {path}",
            lambda: self.read_buffer(path),
        )
        return wanted

    async def show(self, path: str, contents: str, *, number: int | None = None) -> int:
        """Show a diff; gives its number."""
        if number is None:
            self._diffs += 1
            number = 1000 * self._number + self._diffs
        self._shown.add(number)
        title = f"✻ [Claude Code] {os.path.basename(path)} ({number})"
        await settled(self.editor.show_diff(Diff(number, path, title, contents)))
        return number

    async def close_diff(self, number: int) -> None:
        """Close a diff from outside."""
        await settled(self.editor.close_diff(number))

    # -- what happens --------------------------------------------------------------------------------------

    def forget(self) -> None:
        """What was reported so far is of no interest."""
        self._record.forget()

    def since(self, kind: type[E]) -> list[E]:
        """What was reported of a kind, from the beginning of the check or what was last forgotten."""
        return self._record.since(kind)

    async def event(self, kind: type[E], fits: Callable[[E], bool], expected: str) -> E:
        """Wait for an event; ``expected`` says in words for which."""
        return await self._record.first(kind, fits, expected)

    async def file_event(self, kind: Literal["opened", "closed", "saved", "focused"], path: str) -> None:
        """Wait until something was reported of a file."""
        await self.event(
            FileEvent, lambda event: (event.kind, event.path) == (kind, path), f"the event that {path} was {kind}"
        )

    async def end(self) -> None:
        """Wait until the editor is gone."""
        await self._record.end()

    async def until(
        self, fits: Callable[[], Answer[bool]], expected: str, instead: Callable[[], Answer[object]]
    ) -> None:
        """Ask again and again until it is as expected; else tell what is there ``instead``."""
        deadline = time.monotonic() + EVENT_SECONDS
        while not await settled(fits()):
            if time.monotonic() > deadline:
                raise Nonconforming(f"Expected {expected}; what came is {await settled(instead())!r}.")
            await asyncio.sleep(POLL_SECONDS)

    async def quiet(self) -> None:
        """Give the editor time to report what it should not."""
        await self.open_files()  # what it said before this answer is here now
        await asyncio.sleep(QUIET_SECONDS)

    async def _is_listed(self, path: str) -> bool:
        return path in await self.open_paths()

    async def _has_buffer(self, path: str, text: str) -> bool:
        return await self.read_buffer(path) == text
