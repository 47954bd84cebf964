"""People for an editor that nobody drives yet: the program itself, or you.

A program may answer requests ``conform/<what a person does>``, such as ``conform/select {start, end}``. What it
does not answer is asked of the next person, or is not done.

It does not know what is checked.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from ide_bridge.conform.person import Cannot, Person
from ide_bridge.errors import Disconnected, MethodNotFound, RemoteError
from ide_bridge.model import Position

__all__ = ["Acting", "Actor", "Hand", "Nobody"]

ACT_SECONDS = 10.0


class Asking(Protocol):
    """A way to ask the program."""

    async def request(self, method: str, params: object, *, timeout: float) -> Raw:  # noqa: ASYNC109 - the deadline
        """Ask, and give the answer; raises ``RemoteError``, ``Disconnected`` or ``TimeoutError``."""


class Acting:
    """Every deed of a person as one call of `_act`, with its name and arguments."""

    async def _act(self, deed: str, **given: object) -> Any:  # noqa: ANN401 - what is given back depends on the deed
        raise NotImplementedError

    async def open(self, path: str) -> None:
        """Visit a file and look at it."""
        await self._act("open", path=path)

    async def place(self, line: int, column: int) -> None:
        """Put the cursor somewhere."""
        await self._act("place", line=line, column=column)

    async def select(self, start: Position, end: Position) -> None:
        """Select characters."""
        await self._act("select", start=start, end=end)

    async def select_lines(self, first: int, last: int) -> None:
        """Select whole lines."""
        await self._act("select_lines", first=first, last=last)

    async def type(self, text: str) -> None:
        """Insert text."""
        await self._act("type", text=text)

    async def save(self) -> None:
        """Save the file."""
        await self._act("save")

    async def close(self) -> None:
        """Close the file."""
        await self._act("close")

    async def split(self) -> None:
        """Open another window."""
        await self._act("split")

    async def tab(self) -> None:
        """Open another tab."""
        await self._act("tab")

    async def scratch(self) -> None:
        """Look at a buffer that has no name."""
        await self._act("scratch")

    async def mention(self, first: int | None = None, last: int | None = None) -> None:
        """Hand something to the client."""
        await self._act("mention", first=first, last=last)

    async def find(self, path: str, line: int, message: str) -> None:
        """Find an error."""
        await self._act("find", path=path, line=line, message=message)

    async def keep(self, diff: int, contents: str | None = None) -> None:
        """Keep a diff."""
        await self._act("keep", diff=diff, contents=contents)

    async def reject(self, diff: int) -> None:
        """Close the window of a diff."""
        await self._act("reject", diff=diff)

    async def text(self, path: str) -> str:
        """What the editor shows of a file."""
        return str(await self._act("text", path=path))

    async def cursor(self) -> Position:
        """Where the cursor is."""
        try:
            return msgspec.convert(await self._act("cursor"), Position)
        except msgspec.ValidationError as error:
            raise Cannot(f"where the cursor is was told in other words than line and column: {error}") from None

    async def layout(self) -> object:
        """The windows and what is in them."""
        return await self._act("layout")

    async def quit(self) -> None:
        """End the editor."""
        await self._act("quit")


class Nobody(Acting):
    """There is no person."""

    async def _act(self, deed: str, **_given: object) -> Any:  # noqa: ANN401
        raise Cannot(
            f"nobody is there to do it: the program does not answer conform/{deed}, and --by-hand was not given"
        )


class Actor(Acting):
    """The program itself; what it does not know how to do, somebody else is asked for."""

    def __init__(self, line: Asking, otherwise: Person) -> None:
        self._line = line
        self._otherwise = otherwise

    async def _act(self, deed: str, **given: object) -> Any:  # noqa: ANN401
        params = {name: value for name, value in given.items() if value is not None}
        try:
            answer = await self._line.request(f"conform/{deed}", params, timeout=ACT_SECONDS)
        except RemoteError as error:
            if error.remote_code == MethodNotFound.code:
                return await getattr(self._otherwise, deed)(**given)
            raise Cannot(f"the program says: {error}") from None
        except TimeoutError:
            raise Cannot(f"the program did not answer conform/{deed} within {ACT_SECONDS:g} s") from None
        except Disconnected:
            if deed == "quit":
                return None
            raise Cannot(f"the program was gone when it was asked for conform/{deed}") from None
        return msgspec.json.decode(answer)


_BY_HAND: dict[str, Callable[..., str]] = {
    "open": lambda path: f"open {path}",
    "place": lambda line, column: f"put the cursor on line {line + 1}, before character {column + 1}",
    "select": lambda start, end: (
        f"select from line {start.line + 1}, character {start.column + 1}, "
        f"up to but not including line {end.line + 1}, character {end.column + 1}"
    ),
    "select_lines": lambda first, last: f"select the whole lines {first + 1} to {last + 1}",
    "type": lambda text: f"insert {text!r} at the cursor, and do not save",
    "save": lambda: "save the file",
    "close": lambda: "close the file, and throw away what is unsaved in it",
    "split": lambda: "open another window on the same file",
    "tab": lambda: "open another tab on the same file",
    "scratch": lambda: "go to a new buffer without a name",
    "mention": lambda first, last: (
        "hand the file to the client"
        if first is None
        else f"hand the lines {first + 1} to {last + 1} to the client"
    ),
    "keep": lambda diff, contents: (
        f"keep diff {diff}"
        if contents is None
        else f"make the proposed text of diff {diff} {contents!r}, and keep it"
    ),
    "reject": lambda diff: f"close the window of diff {diff}",
    "quit": lambda: "quit the editor",
}


class Hand(Acting):
    """You, on the terminal."""

    def __init__(self, ask: Callable[[str], str]) -> None:
        self._ask = ask

    async def cursor(self) -> Position:
        """Ask where the cursor is."""
        told = await asyncio.to_thread(self._ask, "On which line and character is the cursor? (as 3:7) ")
        with suppress(ValueError):
            line, column = (int(number) - 1 for number in told.split(":"))
            return Position(line, column)
        raise Cannot("nobody told where the cursor is")

    async def _act(self, deed: str, **given: object) -> Any:  # noqa: ANN401
        if deed not in _BY_HAND:
            raise Cannot(
                f"this cannot be done by hand; a program that answers conform/{deed} can be checked for it"
            )
        told = await asyncio.to_thread(
            self._ask, f"In the editor: {_BY_HAND[deed](**given)}. Press Enter when done, or s to skip. "
        )
        if told.strip().lower().startswith("s"):
            raise Cannot("it was skipped")
