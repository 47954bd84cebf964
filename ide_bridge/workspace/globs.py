"""Globs: one gitignore line turned into a regular expression that cannot run away.

`pathspec` translates the line: anchors, ``*``, ``?``, ``**``, ``!``, the slash at the end. Two things are
done around it. Bracket expressions and whitespace at the end are put aside before and set in afterwards,
because pathspec reads them differently from git. And wildcards that could try every split of a long name are
made atomic: in a glob the earliest place where a piece fits is always good enough.

Nothing here knows files, folders on disk, or which of several rules wins.
"""

import re
from typing import NamedTuple

__all__ = ["Glob", "translate"]

_EITHER = "(?:(?P<ps_d>/)|$)"
_FOLDER = "(?P<ps_d>/)"
_ANYWHERE = "^(?:.+/)?"
_DEEPER = "(?:/.+)?"
_STAR = "[^/]*"
_PIECES = re.compile(r"\\.|\[\^/\][*+]?|\^\(\?:\.\+/\)\?|\(\?:/\.\+\)\?|.", re.DOTALL)

_AFTER_NAME = re.compile(r"(!?/?[^*?\[\\]*[^*?\[\\/])\*{2,}(?:/\*{2,})*(\\/(?=.)|/|$)", re.DOTALL)

# Lone surrogates stand for what was put aside: no line that came from a file or from JSON contains one.
_ASIDE = 0xD800
_ASIDE_LIMIT = 0x400

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\ \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\ \t\n\r\x0b\x0c",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Glob(NamedTuple):
    """A translated line.

    ``body`` matches a path relative to where the line stands, without the slash that ends a folder's; for a
    line that may match at any depth by the last name alone (``by_name``) it matches just that name.
    ``depth`` is how many folders deep a match must lie, None when that varies.
    """

    body: str
    hides: bool
    folders_only: bool
    by_name: bool
    depth: int | None

    @property
    def path(self) -> str:
        """The expression for a whole relative path."""
        return f"(?:[^/]++/)*{self.body}" if self.by_name else self.body


def translate(line: str) -> Glob | None:
    """Translate one line; None when git would let it match nothing (a comment, a blank, a broken one)."""
    from pathspec.patterns.gitignore import GitIgnorePatternError  # noqa: PLC0415  paid only when rules are read
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # noqa: PLC0415

    prepared = _put_aside(line)
    if prepared is None:
        return None
    text, aside = prepared
    try:
        regex, hides = GitIgnoreSpecPattern.pattern_to_regex(text)
    except GitIgnorePatternError:
        return None
    if regex is None or hides is None:
        return None
    glob = _glob(regex, hides, aside)
    return glob if glob.body else None  # nothing on disk has an empty name


def _glob(regex: str, hides: bool, aside: list[str]) -> Glob:
    body, folders_only = _without_end(regex)
    by_name, stretches = _stretches(body)
    simple = len(stretches) == 1 and len(stretches[0]) == 1
    body = _bounded(stretches, floating=by_name and not simple)
    varies = by_name or len(stretches) > 1 or ".+" in body or any(".*" in expression for expression in aside)
    depth = None if varies else len(stretches[0]) - 1
    body = re.sub("[\ud800-\udbff]", lambda found: aside[ord(found[0]) - _ASIDE], body)
    return Glob(body, hides, folders_only, by_name and simple, depth)


def _without_end(regex: str) -> tuple[str, bool]:
    """Take off how pathspec ends an expression; True when only folders match."""
    if regex in (".", _FOLDER):
        return f"{_ANYWHERE}[^/]+", regex == _FOLDER
    if regex == "/":
        return f"{_ANYWHERE}[^/]+/.+", False
    if regex.endswith(_EITHER):
        return regex.removesuffix(_EITHER), False
    if regex.endswith(_FOLDER):
        return regex.removesuffix(_FOLDER), True
    return f"{regex}.+", False


# -- bounded matching --------------------------------------------------------------------------------------


def _stretches(body: str) -> tuple[bool, list[list[list[str]]]]:
    """Cut an expression at every ``**`` into stretches, these at every ``/`` into segments of pieces."""
    pieces = _PIECES.findall(body)
    floating = pieces[0] == _ANYWHERE
    stretches: list[list[list[str]]] = [[[]]]
    for piece in pieces[1:]:
        if piece == _DEEPER:
            stretches.append([])
        elif piece == "/":
            stretches[-1].append([])
        else:
            stretches[-1][-1].append(piece)
    return floating, stretches


def _bounded(stretches: list[list[list[str]]], *, floating: bool) -> str:
    """Join the stretches so that each is tried at its earliest place only, the last one everywhere."""
    texts = ["/".join(map(_segment, stretch)) for stretch in stretches]
    if len(texts) == 1:
        return f"(?:[^/]++/)*{texts[0]}" if floating else texts[0]
    first = f"(?>(?:[^/]++/)*?{texts[0]}(?=/))" if floating else texts[0]
    middle = "".join(f"(?>(?:/[^/]++)*?/{text}(?=/))" for text in texts[1:-1])
    return f"{first}{middle}(?:/[^/]++)*/{texts[-1]}"


def _segment(pieces: list[str]) -> str:
    """Join the pieces of one path segment: all stars but the last settle for the earliest fit."""
    chunks = [""]
    stars = 0
    for piece in pieces:
        if piece != _STAR:
            chunks[-1] += piece
        elif not stars or chunks[-1]:
            chunks.append("")
            stars += 1
    if not stars:
        return chunks[0]
    earliest = "".join(f"(?>{_STAR}?{chunk})" for chunk in chunks[1:-1])
    return f"{chunks[0]}{earliest}{_STAR}{chunks[-1]}"


# -- what pathspec does not get to see ---------------------------------------------------------------------


def _put_aside(line: str) -> tuple[str, list[str]] | None:
    """Replace what pathspec would misread by stand-ins; None when the line can match nothing."""
    line = _trimmed(line.partition("\0")[0])
    if line.startswith("#"):
        return None
    text, aside, at = _name_and_stars(line)
    slashed = bool(aside)
    while at < len(line):
        taken = _take(line, at)
        if taken is None or len(aside) >= _ASIDE_LIMIT:
            return None
        plain, expression, end = taken
        if expression is not None:
            slashed = slashed or "/" in line[at:end]
            plain = chr(_ASIDE + len(aside))
            aside.append(expression)
        text, at = text + plain, end
    return _straightened(text, slashed=slashed), aside


def _name_and_stars(line: str) -> tuple[str, list[str], int]:
    """Read stars that follow a name and have the force of ``**`` all the same.

    git compares a path with what precedes the first wildcard and begins afresh there: ``a**/b`` means ``ab`` too.
    """
    found = _AFTER_NAME.match(line)
    if found is None or "/" not in line[:-1]:
        return "", [], 0
    name, slash = found.groups()
    if found.end() == len(line):
        return f"{name}{chr(_ASIDE)}{slash}", [".*"], len(line)
    return f"{name}{chr(_ASIDE)}", ["(?:.*/)?" if slash == "/" else ".*/"], found.end()


def _take(line: str, at: int) -> tuple[str, str | None, int] | None:
    """Read one element: its text, or the expression that replaces it, and where the next one begins."""
    if line[at] == "[":
        return _bracket(line, at + 1)
    if line[at] == "\\":
        if at + 1 == len(line):
            return None
        return _escaped(line, at)
    if at + 1 == len(line) and line[at].isspace():
        return "", re.escape(line[at]), at + 1
    return line[at], None, at + 1


def _escaped(line: str, at: int) -> tuple[str, str | None, int] | None:
    following = line[at + 1]
    if following == "/":
        return _escaped_slash(line, at)
    if following.isspace():
        return "", re.escape(following), at + 2
    return line[at : at + 2], None, at + 2


def _escaped_slash(line: str, at: int) -> tuple[str, str | None, int] | None:
    """An escaped slash has to be in the path: at neither end is one, and before it ``**`` is not nothing."""
    before = line[:at].removeprefix("!")
    if at + 2 == len(line) or before in ("", "/"):
        return None
    return "/*/" if re.search(r"(?:^|/)\*{2,}$", before) else "/", None, at + 2


def _trimmed(line: str) -> str:
    """Take off spaces at the end, which git does unless they are escaped (and only spaces)."""
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return line[: len(bare) + 1] if escapes % 2 and len(bare) < len(line) else bare


def _straightened(text: str, *, slashed: bool) -> str:
    """Spell the same rule in the way pathspec understands as git does."""
    sign = "!" if text.startswith("!") else ""
    rule = text.removeprefix("!")
    rule = re.sub(r"(^|/)\*{3,}(?=/|$)", r"\1**", rule)
    rule = re.sub(r"(?:/\*\*)+/$", "/**/*/", rule)
    if slashed and "/" not in rule[:-1]:
        rule = f"/{rule}"
    return sign + rule


def _bracket(line: str, at: int) -> tuple[str, str, int] | None:
    """Read a bracket expression whose ``[`` is passed; None when it never ends or names no known class."""
    negated = line[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while first or line[at : at + 1] != "]":
        taken = _member(line, at)
        if taken is None:
            return None
        item, at = taken
        items.append(item)
        first = False
    members = "".join(items)
    if negated:
        return "", f"[^/{members}]", at + 1
    return "", f"(?!/)[{members}]" if members else "(?!)", at + 1


def _member(line: str, at: int) -> tuple[str, int] | None:
    """Read one member: a class by name, a range, or a character; empty for a range that runs backwards."""
    if line.startswith("[:", at):
        end = line.find("]", at + 2)
        if end == -1:
            return None
        if end > at + 2 and line[end - 1] == ":":
            known = _CLASSES.get(line[at + 2 : end - 1])
            return None if known is None else (known, end + 1)
    low = _character(line, at)
    if low is None:
        return None
    start, at = low
    if line[at : at + 1] != "-" or line[at + 1 : at + 2] in ("]", ""):
        return re.escape(start), at
    high = _character(line, at + 1)
    if high is None:
        return None
    stop, at = high
    # git compares with both ends of a range as it goes, so the first one counts even when the range is empty.
    return (f"{re.escape(start)}-{re.escape(stop)}" if start <= stop else re.escape(start)), at


def _character(line: str, at: int) -> tuple[str, int] | None:
    at += line[at : at + 1] == "\\"
    return (line[at], at + 1) if at < len(line) else None
