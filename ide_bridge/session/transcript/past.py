"""The past sessions of a folder: which there are, and what they were about.

Of each file only the beginning and the end are looked at: the folder, the version and the first prompt are in the
one, titles in the other, for the CLI writes them again whenever it stops.

It does not know the tree; what a session says is not read here.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import msgspec

from ide_bridge.home import open_regular
from ide_bridge.session.transcript.places import is_session, project_folders
from ide_bridge.session.transcript.records import read_object, read_record
from ide_bridge.session.transcript.showing import show
from ide_bridge.session.transcript.shown import Command, Prompt

__all__ = ["Past", "past_session", "past_sessions"]

_WINDOW = 32 * 1024
_WIDE_WINDOW = 4 * 1024 * 1024
_TITLE_LIMIT = 200
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""From the kind of record to its member with a title, the best first."""
_BINARY = getattr(os, "O_BINARY", 0)


class Past(msgspec.Struct, frozen=True, rename="camel"):
    """A session that has a transcript; `changed` is when that was written last, in seconds."""

    session: str
    path: str
    folder: str
    title: str
    changed: float
    size: int
    version: str = ""


class _File(NamedTuple):
    session: str
    path: str
    changed: float
    size: int


class _Look(msgspec.Struct):
    type: Any = None
    cwd: Any = None
    version: Any = None
    isSidechain: Any = None  # noqa: N815 - the names are the CLI's
    customTitle: Any = None  # noqa: N815
    aiTitle: Any = None  # noqa: N815
    summary: Any = None
    lastPrompt: Any = None  # noqa: N815


_look = msgspec.json.Decoder(_Look)


def past_sessions(folder: str, *, limit: int = 50) -> list[Past]:
    """The sessions of a folder, the one written last first."""
    real = os.path.realpath(folder)
    found: dict[str, Past] = {}
    resolved = cache(os.path.realpath)
    for file in _files(folder):
        if len(found) >= limit:
            break
        past = None if file.session in found else _past(file, lambda cwd: resolved(cwd) == real)
        if past is not None:
            found[past.session] = past
    return list(found.values())


def past_session(path: str) -> Past | None:
    """The session of one transcript, whatever folder it belongs to; None if that cannot be told."""
    session, _ = os.path.splitext(os.path.basename(path))
    with suppress(OSError):
        status = os.stat(path)
        return _past(_File(session, path, status.st_mtime, status.st_size), lambda _folder: True)
    return None


def _files(folder: str) -> list[_File]:
    found = [file for place in project_folders(folder) for file in _files_in(place)]
    return sorted(found, key=lambda file: file.changed, reverse=True)


def _files_in(place: str) -> Iterator[_File]:
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                session, extension = os.path.splitext(entry.name)
                if extension == ".jsonl" and is_session(session) and entry.is_file():
                    status = entry.stat()
                    yield _File(session, entry.path, status.st_mtime, status.st_size)
    except OSError:
        return  # nobody has worked there, or nobody lets us look


def _past(file: _File, is_ours: Callable[[str], bool]) -> Past | None:
    """What a file tells of its session; None if it is one of another folder, or cannot be read."""
    try:
        ends = _ends(file, _WINDOW)
        if not any(isinstance(look.cwd, str) for _, look in ends):
            ends = _ends(file, _WIDE_WINDOW)  # a prompt with an image in it
    except OSError:
        return None
    folder = next((look.cwd for _, look in ends if isinstance(look.cwd, str)), None)
    if folder is None or not is_ours(folder):
        return None
    version = next((look.version for _, look in reversed(ends) if isinstance(look.version, str)), "")
    return Past(file.session, file.path, folder, _title(file.path, ends), file.changed, file.size, version)


def _ends(file: _File, window: int) -> list[tuple[bytes, _Look]]:
    """The whole lines at both ends of a file, each with what it tells."""
    descriptor = open_regular(file.path, os.O_RDONLY | _BINARY, follow=True)
    with open(descriptor, "rb") as opened:
        if file.size <= 2 * window:
            lines = opened.read(2 * window).split(b"\n")
        else:
            lines = opened.read(window).split(b"\n")[:-1]
            opened.seek(file.size - window)
            lines += opened.read(window).split(b"\n")[1:]
    return [(line, look) for line in lines if (look := _looked(line)) is not None]


def _looked(line: bytes) -> _Look | None:
    try:
        return _look.decode(line) if line else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _title(path: str, ends: list[tuple[bytes, _Look]]) -> str:
    titles = [*_given_titles(path, ends), *_first_words(ends)]
    last = [look.lastPrompt for _, look in reversed(ends) if isinstance(look.lastPrompt, str)]
    return next((short for title in [*titles, *last] if (short := " ".join(title.split())[:_TITLE_LIMIT])), "")


def _given_titles(path: str, ends: list[tuple[bytes, _Look]]) -> Iterator[str]:
    for kind, member in _TITLES.items():
        if kind == "custom-title":
            yield from _renamed(path)
        for _, look in reversed(ends):
            title = getattr(look, member) if look.type == kind else None
            if isinstance(title, str):
                yield title
                break


def _renamed(path: str) -> Iterator[str]:
    """The name that was given, which the CLI keeps beside the transcript as well."""
    try:
        with open(os.path.join(path.removesuffix(".jsonl"), "custom-title.json"), "rb") as file:
            title = read_object(file.read(_WINDOW)).get("customTitle")
    except OSError:
        return
    if isinstance(title, str):
        yield title


def _first_words(ends: list[tuple[bytes, _Look]]) -> Iterator[str]:
    """The first prompt, or the first command if nothing was asked."""
    commands: list[str] = []
    for line, look in ends:
        record = read_record(line) if look.type in ("user", "attachment") else None
        for thing in show(record) if record is not None else ():
            if isinstance(thing, Prompt):
                yield thing.text
                return
            if isinstance(thing, Command):
                commands.append(f"{thing.name} {thing.arguments}")
    yield from commands[:1]
