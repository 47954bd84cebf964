"""What linters say, understood: lines as compilers write them, and the JSON of the common tools.

1. A line is ``file:line:column: message`` in one of its many dialects, or ``file(line,column): message``.
2. A document is the JSON of one tool: an array of problems, a report that holds them, or one object per line.
3. Whatever is neither is passed over. No output raises, and no position is negative.

Tools count from 1 or from 0, and their ends are inside or outside; a `Finding` counts as `model` does. Where a
tool counts bytes or UTF-16 units, its columns are taken as they are.

It does no I/O. It does not know which files there are, or what a relative path is relative to.
"""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from ide_bridge.model import Diagnostic, Position, Range, Severity

__all__ = ["Finding", "parse"]

MESSAGE_LIMIT = 4000
_NUMBER_LIMIT = 2**31 - 1

# Letters as rubocop and pylint begin their codes with them; numbers as eslint has them.
_SEVERITIES: dict[str, Severity] = {
    **dict.fromkeys(("error", "err", "fatal", "fatal error", "e", "f", "2"), "error"),
    **dict.fromkeys(("warning", "warn", "w", "1"), "warning"),
    **dict.fromkeys(("note", "info", "information", "remark", "convention", "refactor", "i", "c", "r"), "info"),
    **dict.fromkeys(("hint", "help", "style", "none", "0"), "hint"),
}

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PLACE = re.compile(
    r"""
    (?P<file>(?:[A-Za-z]:[\\/])?[^\s:][^:]*?)               # the colon of a drive belongs to the name
    [:(](?P<line>\d{1,9})
    (?:[:,](?P<column>\d{1,9})
        (?:-(?P<until>\d{1,9})|[:,](?P<end_line>\d{1,9})[:,](?P<end_column>\d{1,9}))?
    )?
    \)?:\s*(?P<rest>\S.*)
    """,
    re.VERBOSE,
)
_WORD_FIRST = re.compile(
    r"\[(?P<bracketed>\w+)\]\s"
    r"|(?P<word>fatal error|[A-Za-z]+)(?:\[(?P<tag>[\w:-]+)\]|\s(?P<number>[A-Z]+\d+))?:\s"
)
_CODE_FIRST = re.compile(r"(?P<code>[A-Z]{1,6}\d{1,5})(?P<colon>:)?\s(?:\[\*\]\s)?")
_CODE_LAST = re.compile(
    r"\s(?:\[(?:(?P<word>[A-Z][a-z]+)/)?(?P<rule>[\w./@:+=-]+)\]|\((?P<name>[a-z][\w./@-]*)\))$"
)

D = TypeVar("D")


class Finding(msgspec.Struct, frozen=True):
    """A problem as a linter told it; ``file`` is what the linter called the file."""

    file: str
    range: Range
    severity: Severity
    message: str
    code: str = ""

    def diagnostic(self, path: str, source: str) -> Diagnostic:
        """The same, once it is known which file is meant."""
        return Diagnostic(path, self.range, self.severity, self.message, source, self.code)


def parse(output: str) -> list[Finding]:
    """Understand the output of a linter, whichever it is."""
    output = _COLOURS.sub("", output)
    found = _from_document(output) or _from_lines(output.splitlines())
    return [finding for finding in found if finding.file and finding.message]


def _finding(
    file: str,
    start: tuple[int, int],
    end: tuple[int | None, int | None],
    severity: Severity,
    message: str,
    code: str | int | None,
) -> Finding:
    """Make a finding of positions that count from 0; what is missing at the end is as at the start."""
    first = _position(*start)
    last = _position(first.line if end[0] is None else end[0], first.column if end[1] is None else end[1])
    text = _CONTROLS.sub("", message[:MESSAGE_LIMIT]).strip()
    return Finding(file, Range(first, max(first, last)), severity, text, "" if code is None else str(code))


def _position(line: int, column: int) -> Position:
    return Position(min(max(line, 0), _NUMBER_LIMIT), min(max(column, 0), _NUMBER_LIMIT))


def _severity(word: str | int | None, default: Severity = "warning") -> Severity:
    return _SEVERITIES.get(str(word).lower(), default)


# -- lines -------------------------------------------------------------------------------------------------


class _Said(msgspec.Struct):
    """What follows the place in a line."""

    message: str
    severity: Severity | None = None
    code: str = ""
    from_zero: bool = False


def _from_lines(lines: Iterable[str]) -> Iterator[Finding]:
    for line in lines:
        place = _PLACE.match(line)
        if place is not None:
            yield _from_line(place)


def _from_line(place: re.Match[str]) -> Finding:
    said = _understood(place["rest"][:MESSAGE_LIMIT].rstrip())
    first = 0 if said.from_zero else 1
    start = int(place["line"]) - 1, int(place["column"] or first) - first
    # The last column is inside, counted from 1: just as many lie before the end.
    end_line, end_column = place["end_line"], place["until"] or place["end_column"]
    end = int(end_line) - 1 if end_line else None, int(end_column) if end_column else None
    return _finding(place["file"], start, end, _by_default(said), said.message, said.code)


def _by_default(said: _Said) -> Severity:
    """Who has rules with codes and no word for severity is a linter; who has neither is a compiler."""
    return said.severity or ("warning" if said.code else "error")


def _understood(rest: str) -> _Said:
    """Take severity and code off a message, where they stand first or last."""
    said = _Said(rest)
    _take_word(said)
    _take_first_code(said)
    _take_last_code(said)
    return said


def _take_word(said: _Said) -> None:
    found = _WORD_FIRST.match(said.message)
    severity = _SEVERITIES.get((found["word"] or found["bracketed"]).lower()) if found else None
    if found and severity:
        said.severity, said.code = severity, found["tag"] or found["number"] or ""
        said.message = said.message[found.end() :].lstrip()


def _take_first_code(said: _Said) -> None:
    found = None if said.code else _CODE_FIRST.match(said.message)
    if not found:
        return
    said.code, said.message = found["code"], said.message[found.end() :].lstrip()
    if found["colon"] and not said.severity:  # only pylint writes so, and it alone counts columns from 0
        said.from_zero = True
        said.severity = _severity(said.code[0])


def _take_last_code(said: _Said) -> None:
    found = None if said.code and not said.from_zero else _CODE_LAST.search(said.message)
    if not found or not found.start():
        return
    said.code, said.message = found["rule"] or found["name"], said.message[: found.start()]
    if found["word"] and not said.severity:
        said.severity = _severity(found["word"])


# -- documents ---------------------------------------------------------------------------------------------


class _Document(msgspec.Struct, rename="camel"):
    """JSON that holds findings; which tool wrote it is told by the members that must be there."""

    def findings(self) -> Iterator[Finding]:
        """Every problem in it."""
        raise NotImplementedError


class _Lines(_Document, kw_only=True):
    """A problem with its lines and columns side by side, as most tools tell it."""

    first_column: ClassVar[int] = 1
    message: str
    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None

    def found(self, file: str, severity: str | int, code: str | None) -> Finding:
        """The finding, counted from 0."""
        start = self.line - 1, self.column - self.first_column
        end = _less(self.end_line, 1), _less(self.end_column, self.first_column)
        return _finding(file, start, end, _severity(severity), self.message, code)


class _RuffPlace(msgspec.Struct):
    row: int
    column: int


class _Ruff(_Document, rename=None):
    """``ruff check --output-format json``, and ``json-lines``."""

    filename: str
    message: str
    location: _RuffPlace
    end_location: _RuffPlace
    code: str | None = None
    severity: str = "error"

    def findings(self) -> Iterator[Finding]:
        start, end = self.location, self.end_location
        where = (start.row - 1, start.column - 1), (end.row - 1, end.column - 1)
        yield _finding(self.filename, *where, _severity(self.severity), self.message, self.code)


class _EslintMessage(_Lines, kw_only=True):
    severity: int
    # Without a place it is about the run: "File ignored because …".
    line: int = 0
    column: int = 1
    rule_id: str | None = None


class _Eslint(_Document):
    """``eslint -f json``: a file with its problems."""

    file_path: str
    messages: list[_EslintMessage]

    def findings(self) -> Iterator[Finding]:
        return (said.found(self.file_path, said.severity, said.rule_id) for said in self.messages if said.line)


class _Pylint(_Lines):
    """``pylint -f json``."""

    first_column = 0
    path: str
    symbol: str
    type: str

    def findings(self) -> Iterator[Finding]:
        yield self.found(self.path, self.type, self.symbol)


class _Shellcheck(_Lines):
    """``shellcheck -f json``."""

    file: str
    level: str
    code: int

    def findings(self) -> Iterator[Finding]:
        yield self.found(self.file, self.level, f"SC{self.code}")


class _Mypy(_Lines, kw_only=True):
    """``mypy -O json``, one object per line."""

    first_column = 0
    file: str
    severity: str
    end_line: int | None = msgspec.field(default=None, name="end_line")
    end_column: int | None = msgspec.field(default=None, name="end_column")
    code: str | None = None

    def findings(self) -> Iterator[Finding]:
        yield self.found(self.file, self.severity, self.code)


class _PyrightPosition(msgspec.Struct, frozen=True):
    line: int = 0
    character: int = 0


class _PyrightRange(msgspec.Struct, frozen=True):
    start: _PyrightPosition
    end: _PyrightPosition


class _Pyright(_Document):
    """``pyright --outputjson``; lines and columns count from 0."""

    file: str
    message: str
    severity: str
    range: _PyrightRange = _PyrightRange(_PyrightPosition(), _PyrightPosition())
    rule: str | None = None

    def findings(self) -> Iterator[Finding]:
        start, end = self.range.start, self.range.end
        where = (start.line, start.character), (end.line, end.character)
        yield _finding(self.file, *where, _severity(self.severity), self.message, self.rule)


class _SarifText(msgspec.Struct):
    text: str = ""


class _SarifArtifact(msgspec.Struct, frozen=True):
    uri: str = ""


class _SarifRegion(msgspec.Struct, frozen=True, rename="camel"):
    start_line: int = 1
    start_column: int = 1
    end_line: int | None = None
    end_column: int | None = None


class _SarifPlace(msgspec.Struct, frozen=True, rename="camel"):
    artifact_location: _SarifArtifact = _SarifArtifact()
    region: _SarifRegion = _SarifRegion()


class _SarifLocation(msgspec.Struct, rename="camel"):
    physical_location: _SarifPlace = _SarifPlace()


class _Sarif(_Document):
    """A result in SARIF 2.1."""

    message: _SarifText
    locations: list[_SarifLocation] = []
    level: str = "warning"
    rule_id: str | None = None

    def findings(self) -> Iterator[Finding]:
        for place in (location.physical_location for location in self.locations[:1]):
            region, file = place.region, _from_uri(place.artifact_location.uri)
            start = region.start_line - 1, region.start_column - 1
            end = _less(region.end_line, 1), _less(region.end_column, 1)
            yield _finding(file, start, end, _severity(self.level), self.message.text, self.rule_id)


class _SarifRun(_Document):
    results: list[_Sarif] = []

    def findings(self) -> Iterator[Finding]:
        return _all_of(self.results)


class _Report(_Document):
    """An object that holds the problems: of ``pyright``, SARIF, ``pylint -f json2``, ``shellcheck -f json1``."""

    general_diagnostics: list[_Pyright] = []
    runs: list[_SarifRun] = []
    messages: list[_Pylint] = []
    comments: list[_Shellcheck] = []

    def findings(self) -> Iterator[Finding]:
        return _all_of([*self.general_diagnostics, *self.runs, *self.messages, *self.comments])


_PROBLEMS: tuple[type[_Document], ...] = (_Ruff, _Eslint, _Pylint, _Shellcheck, _Mypy)


def _from_document(output: str) -> list[Finding]:
    """Read output that is JSON; a greeting before it or a farewell after it does no harm."""
    lines = output.strip().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(("[", "{"))]
    ends = [number for number, line in enumerate(lines) if line.endswith(("]", "}"))]
    if not starts or not ends:
        return []
    whole = "\n".join(lines[starts[0] : ends[-1] + 1])
    return _from_whole(whole) or _from_each(lines[number] for number in starts)


def _from_whole(text: str) -> list[Finding]:
    report = _decoded(text, _Report)
    arrays = (_decoded(text, list[kind]) for kind in _PROBLEMS)  # type: ignore[valid-type]
    documents = [report] if report else next(filter(None, arrays), [])
    return list(_all_of(documents))


def _from_each(lines: Iterable[str]) -> list[Finding]:
    documents = (_decoded(line, kind) for line in lines for kind in _PROBLEMS)
    return list(_all_of(filter(None, documents)))


def _decoded(text: str, kind: type[D]) -> D | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _all_of(documents: Iterable[_Document]) -> Iterator[Finding]:
    return (finding for document in documents for finding in document.findings())


def _less(number: int | None, first: int) -> int | None:
    return None if number is None else number - first


def _from_uri(uri: str) -> str:
    """Read a URI as a path; a relative one stays relative."""
    try:
        path = unquote(urlsplit(uri).path if uri.startswith("file:") else uri)
    except ValueError:
        return ""
    return path[1:] if re.match(r"/[A-Za-z]:/", path) else path
