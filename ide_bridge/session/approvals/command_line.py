"""A command line as a shell may take it: whether it is one plain command, and what it may run.

1. To allow, a line must be plain: no character that joins, redirects, substitutes or groups, quoted or not. So
   nothing is ever allowed because a quote was read differently here than by the shell.
2. To deny, every command that can be seen in a line is looked at: behind separators, in substitutions, after
   assignments, words like ``sudo`` and ``xargs``, and in what is handed to another shell.

A line can hide what it runs (``$(printf rm)``, a variable, a script). So what is found tells what to deny, and
never that the rest is harmless.

It does not know rules, and runs nothing.
"""

import re
from collections.abc import Iterator, Sequence

__all__ = ["commands", "is_plain"]

_NOT_PLAIN = re.compile(r"[;&|`$()<>\x00-\x08\x0a-\x1f\x7f]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_TO_QUOTE = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BEFORE = frozenset(("!", "{", "if", "then", "elif", "else", "do", "while", "until", "time", "coproc"))
_CARRIERS = frozenset(
    (
        *(
            "sudo",
            "doas",
            "env",
            "command",
            "builtin",
            "exec",
            "eval",
            "nohup",
            "nice",
            "ionice",
            "stdbuf",
            "setsid",
        ),
        *(
            "timeout",
            "xargs",
            "parallel",
            "time",
            "watch",
            "strace",
            "busybox",
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
        ),
    )
)
_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "eval", "su", "ssh"))
_SEPARATORS = ";&|\n\r()`"
_DEEPEST = 4
_CARRIED_LIMIT = 32


def is_plain(line: str) -> bool:
    """Whether a shell runs one command and nothing else, whatever the words are."""
    return _NOT_PLAIN.search(line) is None


def commands(line: str, *, depth: int = 0) -> Iterator[str]:
    """Every command that a line is seen to run, its words with one space between them and without quotes."""
    reader = _Reader(line)
    for words in reader.parts():
        yield from _carried(words, depth)
    if depth < _DEEPEST:
        for text in reader.substituting:
            yield from commands(text, depth=depth + 1)


def _carried(words: Sequence[str], depth: int) -> Iterator[str]:
    """The command of some words, and those it may start in its turn."""
    start = next((at for at, word in enumerate(words) if not _stands_before(word)), len(words))
    words = words[start:]
    if not words:
        return
    yield from _spellings(words)
    carrier = next((at for at, word in enumerate(words) if _name(word) in _CARRIERS), None)
    if carrier is not None:  # which of the following words are its options cannot be known
        for at in range(carrier + 1, min(len(words), carrier + 1 + _CARRIED_LIMIT)):
            yield from _spellings(words[at:])
    if depth < _DEEPEST and any(_name(word) in _SHELLS for word in words):
        for word in words[1 : _CARRIED_LIMIT + 1]:
            yield from commands(word, depth=depth + 1)


def _stands_before(word: str) -> bool:
    return word in _BEFORE or _ASSIGNMENT.match(word) is not None


def _spellings(words: Sequence[str]) -> Iterator[str]:
    yield " ".join(words)
    if "/" in words[0]:
        yield " ".join((_name(words[0]), *words[1:]))


def _name(word: str) -> str:
    return word.rpartition("/")[2]


class _Reader:
    """Reads a line once, character by character, as a shell would, but never complains."""

    def __init__(self, line: str) -> None:
        self.substituting: list[str] = []
        """What stands in double quotes and may run something."""
        self._line = line
        self._at = 0
        self._word: list[str] | None = None
        self._words: list[str] = []
        self._skips = False

    def parts(self) -> Iterator[list[str]]:
        """The words of each simple command; where a redirection leads is left out."""
        while self._at < len(self._line):
            letter = self._line[self._at]
            self._at += 1
            if letter in _SEPARATORS:
                yield from self._part()
            else:
                self._take(letter)
        yield from self._part()

    def _take(self, letter: str) -> None:
        if letter in " \t":
            self._end_word()
        elif letter in "<>":
            self._redirect()
        elif letter in "'\"":
            self._quoted(letter)
        elif letter == "\\":
            self._escaped()
        elif letter == "#" and self._word is None:
            self._at = _find(self._line, "\n", self._at)
        else:
            self._add(letter)

    def _add(self, text: str) -> None:
        self._word = self._word or []
        self._word.append(text)

    def _end_word(self) -> None:
        if self._word is not None and not self._skips:
            self._words.append("".join(self._word))
        self._skips = self._skips and self._word is None
        self._word = None

    def _part(self) -> Iterator[list[str]]:
        self._end_word()
        words, self._words, self._skips = self._words, [], False
        if words:
            yield words

    def _redirect(self) -> None:
        if self._word is not None and "".join(self._word).isdigit():
            self._word = None
        self._end_word()
        while self._line[self._at : self._at + 1] in ("<", ">", "&", "|"):
            self._at += 1
        self._skips = True

    def _quoted(self, quote: str) -> None:
        if self._word and self._word[-1] == "$":  # $'…' and $"…"
            self._word.pop()
        start, end = self._at, self._closing(quote)
        text = self._line[start:end]
        self._at = end + 1
        if quote == '"':
            if "$(" in text or "`" in text:
                self.substituting.append(text)
            text = re.sub(r'\\([\\"$`])', r"\1", text)
        self._add(text)

    def _closing(self, quote: str) -> int:
        if quote == "'":
            return _find(self._line, quote, self._at)
        found = _TO_QUOTE.match(self._line, self._at)
        return len(self._line) if found is None else found.end()

    def _escaped(self) -> None:
        following = self._line[self._at : self._at + 1]
        self._at += 1
        if following != "\n":
            self._add(following)


def _find(text: str, what: str, start: int) -> int:
    found = text.find(what, start)
    return len(text) if found == -1 else found
