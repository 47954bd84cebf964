"""The person at an editor, who may do what every editor lets a person do.

The checks of an editor need somebody who selects, types and decides. Each kind of editor has its own: one that
presses real keys, one that asks a program to act, one that asks you.

It does not know what is checked.
"""

from typing import Protocol

from ide_bridge.model import Position

__all__ = ["Cannot", "Person"]


class Cannot(Exception):
    """This person, or this editor, has no way to do that; what needs it is not checked."""


class Person(Protocol):
    """Every method returns when it is done. Lines and columns count from 0, columns in code points."""

    async def open(self, path: str) -> None:
        """Visit a file and look at it."""

    async def place(self, line: int, column: int) -> None:
        """Put the cursor somewhere in the file looked at, and select nothing."""

    async def select(self, start: Position, end: Position) -> None:
        """Select characters of the file looked at; `end` is not part of it."""

    async def select_lines(self, first: int, last: int) -> None:
        """Select whole lines of the file looked at, the last one included."""

    async def type(self, text: str) -> None:
        """Insert text at the cursor, without saving."""

    async def save(self) -> None:
        """Save the file looked at."""

    async def close(self) -> None:
        """Close the file looked at, and what is unsaved in it."""

    async def split(self) -> None:
        """Open another window on the file looked at."""

    async def tab(self) -> None:
        """Open another tab, or what the editor has in its place, on the file looked at."""

    async def scratch(self) -> None:
        """Look at a buffer that has no name."""

    async def mention(self, first: int | None = None, last: int | None = None) -> None:
        """Hand the file looked at, or some of its lines, to the client."""

    async def find(self, path: str, line: int, message: str) -> None:
        """Have the editor find an error on a line, in its first two columns, as its linter would."""

    async def keep(self, diff: int, contents: str | None = None) -> None:
        """Keep a diff, perhaps after making its text another."""

    async def reject(self, diff: int) -> None:
        """Close the window of a diff."""

    async def text(self, path: str) -> str:
        """What the editor shows of an open file, saved or not."""

    async def cursor(self) -> Position:
        """Where the cursor is in the file looked at."""

    async def layout(self) -> object:
        """The windows and what is in them, to compare with another time."""

    async def quit(self) -> None:
        """End the editor, and throw away what is unsaved."""
