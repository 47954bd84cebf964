"""A terminal with two parts: what was printed, which stays, below it a few rows that are drawn again and again.

1. The rows below are taken away before anything is printed, and drawn again after it, in one write: what is being
   typed is never torn apart.
2. No row is as wide as the terminal, so that it never wraps by itself; where the window becomes narrower, it is
   counted how many rows they have become.
3. The terminal is given back as it was, however this ends.

It does not know what is shown. On a terminal that cannot move its cursor everything is printed, nothing drawn.
"""

import contextlib
import os
import re
import signal
import termios
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import RenderableType

__all__ = ["Ended", "Screen", "laid_out", "rendered"]

_PADDING = re.compile(r"[ \t]+((?:\x1b\[[\d;]*m)*)$", re.MULTILINE)
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"
# Cleared from the corner, tmux would keep the rows in its history.
_CLEAR_BELOW = "\r\x1b[K\x1b[C\x1b[J\r"
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_TELLING = (signal.SIGINT, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD)
_SMALLEST = 20


class Ended(BaseException):
    """A signal asks us to go; its number decides the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Place(NamedTuple):
    """A text in rows, and where the cursor is in them."""

    rows: list[str]
    row: int
    column: int

    def cropped(self, height: int) -> "Place":
        """As many rows as there is room for, those around the cursor."""
        first = max(0, min(self.row - height // 2, len(self.rows) - height))
        return Place(self.rows[first : first + height], self.row - first, self.column)


def laid_out(text: str, cursor: int, width: int) -> Place:
    """Put a text into rows of at most this width; the cursor is before the character with its number."""
    rows, row, column = [""], 0, 0
    used = 0
    for number, character in enumerate(text):
        if character != "\n" and used + cell_len(character) > width:
            rows.append("")
            used = 0
        if number == cursor:
            row, column = len(rows) - 1, used
        if character == "\n":
            rows.append("")
            used = 0
        else:
            rows[-1] += character
            used += cell_len(character)
    return Place(rows, row, column) if cursor < len(text) else Place(rows, len(rows) - 1, used)


def rendered(console: Console, what: "Sequence[RenderableType]") -> str:
    """What a console would print, without blanks at the line ends.

    The terminal wraps a text, so that it can be copied as it is; one that is not to be wrapped is cut.
    """
    return "".join(_rendered(console, each) for each in what)


def _rendered(console: Console, what: "RenderableType") -> str:
    cut = isinstance(what, Text) and bool(what.no_wrap)
    with console.capture() as captured:
        if isinstance(what, Text) and not cut:
            console.print(what, soft_wrap=True, highlight=False)
        else:
            console.print(what, no_wrap=cut, overflow="ellipsis" if cut else None, highlight=False)
    text = _PADDING.sub(r"\1", captured.get())
    return text if isinstance(what, Text) else text.strip("\n") + "\n"


class Screen:
    """The terminal, for as long as its ``with`` block runs."""

    def __init__(self, keyboard: int, console: Console) -> None:
        self._keyboard = keyboard
        self._console = console
        self._output = console.file.fileno()
        self.is_dumb = console.is_dumb_terminal
        self._before: list[int | list[bytes | int]] | None = None
        self._widths: list[int] = []
        self._cursor = (0, 0)
        self._drawn = False
        self._told = ""
        self._handlers: dict[int, object] = {}
        self._heard, self._wake = os.pipe()
        for end in (self._heard, self._wake):
            os.set_blocking(end, False)

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, _end) for number in _ENDING}
        self._handlers |= {number: signal.signal(number, _nothing) for number in _TELLING}
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        with contextlib.suppress(OSError, termios.error):  # the terminal may be gone
            self._give_back()
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as it was
        os.close(self._heard)
        os.close(self._wake)

    @property
    def width(self) -> int:
        """How much fits into a row that does not wrap."""
        return max(_SMALLEST, self._console.width) - 1

    @property
    def height(self) -> int:
        """How many rows there are."""
        return self._console.height

    @property
    def signals(self) -> int:
        """What a selector waits for, beside the keyboard."""
        return self._heard

    def take_signals(self) -> list[int]:
        """The signals that have come, and how often."""
        with contextlib.suppress(BlockingIOError):
            return list(os.read(self._heard, 4096))
        return []

    def print(self, what: "Sequence[RenderableType]") -> None:
        """Add to what stays."""
        if what:
            self._write(self._erased() + rendered(self._console, what))

    def draw(self, above: Sequence[Text], label: str, typed: str, cursor: int) -> None:
        """Have these rows at the end, and below them what is being typed."""
        place = laid_out(label + typed, len(label) + cursor, self.width).cropped(max(1, self.height // 2))
        room = max(1, self.height - 1 - len(place.rows))
        rows = [line for text in above for line in text.wrap(self._console, self.width)][-room:]
        text = "".join(rendered(self._console, [row]) for row in rows) + "\n".join(place.rows)
        up = len(place.rows) - 1 - place.row
        moves = (f"\x1b[{up}A" if up else "") + "\r" + (f"\x1b[{place.column}C" if place.column else "")
        self._write(self._erased() + text + moves)
        self._widths = [row.cell_len for row in rows] + [cell_len(row) for row in place.rows]
        self._cursor = (len(rows) + place.row, place.column)
        self._drawn = True

    def say_once(self, hint: str) -> None:
        """Print what a person must know, where nothing can be drawn."""
        if hint != self._told:
            self._told = hint
            self._write(f"{hint}\n" if hint else "")

    def clear(self) -> None:
        """Begin with an empty screen; what was printed is further up."""
        if not self.is_dumb:
            self._write(self._erased() + "\x1b[H\x1b[2J")

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Let another program have the terminal."""
        self._give_back()
        try:
            yield
        finally:
            self._take()

    def pause(self) -> None:
        """Stop, as the user asked with Ctrl-Z, and go on when he wants it."""
        with self.lent():
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, _nothing)

    def _take(self) -> None:
        if self.is_dumb:
            return
        self._before = termios.tcgetattr(self._keyboard)
        changed = [*self._before]
        changed[0] &= ~termios.ICRNL  # type: ignore[operator]  # Enter and Ctrl-J are two keys
        changed[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)  # type: ignore[operator]
        termios.tcsetattr(self._keyboard, termios.TCSADRAIN, changed)
        self._write(_PASTE_ON)

    def _give_back(self) -> None:
        if self._before is not None:
            termios.tcsetattr(self._keyboard, termios.TCSANOW, self._before)
            self._before = None
            self._write(self._erased() + _PASTE_OFF)

    def _erased(self) -> str:
        """What takes the rows away; the cursor is where they began then."""
        if not self._drawn:
            return ""
        self._drawn = False
        width = max(1, self._console.width)
        row, column = self._cursor
        up = sum(max(1, -(-cells // width)) for cells in self._widths[:row]) + column // width
        return (f"\x1b[{up}A" if up else "") + _CLEAR_BELOW

    def _write(self, text: str) -> None:
        rest = memoryview(text.encode(self._console.encoding, "replace"))
        while rest:
            rest = rest[os.write(self._output, rest) :]


def _end(number: int, _frame: "FrameType | None") -> None:
    raise Ended(number)


def _nothing(_number: int, _frame: "FrameType | None") -> None:
    """Being woken is enough."""
