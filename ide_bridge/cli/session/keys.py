"""What a keyboard says and the line that is typed with it: bytes become keys, and keys become text.

1. A key is what it types (one character), or a name: ``enter``, ``left``, ``escape``, ``ctrl-d`` …
2. The byte of Escape also begins the sequences of other keys. Alone it is a key only once nothing has followed it:
   who reads the bytes says so with ``pause``.
3. What is pasted is text, whatever is in it: it answers no question and sends nothing.

It does not know where the bytes come from, or what a typed line is good for.
"""

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Key", "Keys", "TypedLine"]


class Key(NamedTuple):
    """One key, or one pasted text."""

    name: str
    text: str = ""


_NAMED = {
    "\r": "enter",
    "\n": "newline",
    "\x7f": "backspace",
    "\b": "backspace",
    "\t": "tab",
    "\x01": "home",
    "\x02": "left",
    "\x04": "ctrl-d",
    "\x05": "end",
    "\x06": "right",
    "\x0b": "erase-right",
    "\x0c": "redraw",
    "\x0e": "down",
    "\x10": "up",
    "\x15": "erase-left",
    "\x17": "erase-word",
}
_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "[H": "home",
    "[F": "end",
    "[1~": "home",
    "[7~": "home",
    "[4~": "end",
    "[8~": "end",
    "[3~": "delete",
    "[1;5C": "word-right",
    "[1;5D": "word-left",
    "[1;3C": "word-right",
    "[1;3D": "word-left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "OH": "home",
    "OF": "end",
    "\r": "newline",
    "\n": "newline",
    "b": "word-left",
    "f": "word-right",
    "\x7f": "erase-word",
}
_SEQUENCE = re.compile(r"\[[0-?]*[ -/]*[@-~]|O[ -~]|[^\[O]")
_PASTE, _PASTED = "\x1b[200~", "\x1b[201~"
_LONGEST_SEQUENCE = 32


class Keys:
    """Makes keys of bytes, wherever they are cut; a terminal that gives whole lines ends them as Ctrl-J does."""

    def __init__(self, *, in_lines: bool = False) -> None:
        self._in_lines = in_lines
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""

    def feed(self, data: bytes) -> list[Key]:
        """The keys that are complete now."""
        self._text += self._decoder.decode(data)
        keys: list[Key] = []
        while self._text and (key := self._next()) is not None:
            keys.append(key)
        return [key for key in keys if key.name]

    def pause(self) -> list[Key]:
        """Nothing has followed for a while: an Escape that came last was the key itself."""
        if not self._text or self._text.startswith(_PASTE):
            return []
        begun, self._text = self._text, ""
        return [Key("escape"), *self.feed(begun[1:].encode())]

    @property
    def is_in_doubt(self) -> bool:
        """Whether a pause would mean something."""
        return bool(self._text) and not self._text.startswith(_PASTE)

    def _next(self) -> Key | None:
        """The next key; one without a name is none that we know, None says that it is not complete."""
        if self._text[0] != "\x1b":
            return self._plain(self._taken(1))
        if self._text.startswith(_PASTE):
            return self._pasted()
        found = _SEQUENCE.match(self._text, 1, _LONGEST_SEQUENCE)
        if found is None:
            return self._unknown() if len(self._text) >= _LONGEST_SEQUENCE else None
        if found[0] == "\x1b":  # pressed twice: the first was the key itself
            return Key("escape", self._taken(1))
        self._taken(found.end())
        return Key(_SEQUENCES.get(found[0], ""))

    def _plain(self, character: str) -> Key:
        if character == "\n" and self._in_lines:
            return Key("enter")
        if character in _NAMED:
            return Key(_NAMED[character])
        return Key(character, character) if character.isprintable() else Key("")

    def _pasted(self) -> Key | None:
        end = self._text.find(_PASTED)
        if end < 0:
            return None
        text = self._taken(end + len(_PASTED))[len(_PASTE) : -len(_PASTED)]
        return Key("pasted", text.replace("\r\n", "\n").replace("\r", "\n"))

    def _unknown(self) -> Key:
        self._taken(1)
        return Key("")

    def _taken(self, count: int) -> str:
        taken, self._text = self._text[:count], self._text[count:]
        return taken


class TypedLine:
    """The text that is being typed, where the cursor is in it, and what was typed before."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.cursor = len(text)
        self._before: list[str] = []
        self._shown = 0
        self._unfinished = ""

    def press(self, key: Key) -> None:
        """A key that types, erases or moves; any other changes nothing."""
        if key.text and key.name != "escape":
            self._insert(key.text)
        elif (act := _ACTS.get(key.name)) is not None:
            act(self)

    def take(self) -> str:
        """The text, which is remembered; the line is empty then."""
        text = self.text
        self.remember(text)
        self.replace("")
        return text

    def remember(self, text: str) -> None:
        """Have it come again with the key for what was typed before."""
        if text.strip() and self._before[-1:] != [text]:
            self._before.append(text)
        self._shown = len(self._before)

    def replace(self, text: str) -> None:
        """Have another text there."""
        self.text, self.cursor = text, len(text)

    def _insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def _erase(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _word_left(self) -> int:
        return len(re.sub(r"\w*\W*$", "", self.text[: self.cursor]))

    def _word_right(self) -> int:
        found = re.compile(r"\W*\w*").match(self.text, self.cursor)
        return found.end() if found else self.cursor

    def _move(self, to: int) -> None:
        self.cursor = max(0, min(len(self.text), to))

    def _recall(self, step: int) -> None:
        if self._shown == len(self._before):
            self._unfinished = self.text
        shown = max(0, min(len(self._before), self._shown + step))
        if shown != self._shown:
            self._shown = shown
            self.replace(self._before[shown] if shown < len(self._before) else self._unfinished)


_ACTS: dict[str, Callable[[TypedLine], None]] = {
    "newline": lambda self: self._insert("\n"),
    "backspace": lambda self: self._erase(max(0, self.cursor - 1), self.cursor),
    "delete": lambda self: self._erase(self.cursor, self.cursor + 1),
    "erase-left": lambda self: self._erase(0, self.cursor),
    "erase-right": lambda self: self._erase(self.cursor, len(self.text)),
    "erase-word": lambda self: self._erase(self._word_left(), self.cursor),
    "left": lambda self: self._move(self.cursor - 1),
    "right": lambda self: self._move(self.cursor + 1),
    "home": lambda self: self._move(0),
    "end": lambda self: self._move(len(self.text)),
    "word-left": lambda self: self._move(self._word_left()),
    "word-right": lambda self: self._move(self._word_right()),
    "up": lambda self: self._recall(-1),
    "down": lambda self: self._recall(1),
}
