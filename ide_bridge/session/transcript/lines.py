"""The lines of a file that grows: backwards from its end, and forwards from where one left off.

A line may be long, and half of the last one may be missing. One over the limit is stepped over, not kept.

It does not know what a line says.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["LINE_LIMIT", "Line", "lines_after", "lines_before", "read_at"]

LINE_LIMIT = 128 * 1024 * 1024
_BLOCK = 256 * 1024


class Line(NamedTuple):
    """Where a line begins, what it says, whether it has an end yet, and where the next one begins."""

    place: int
    data: bytes
    whole: bool
    after: int


def lines_before(file: int, end: int, *, block: int = _BLOCK) -> Iterator[Line]:
    """The lines up to a place, the last one first; that one may lack its end."""
    rest = _Rest()
    whole = False
    while end > 0:
        start = max(0, end - block)
        data = read_at(file, start, end - start)
        if len(data) < end - start:
            return  # somebody has cut the file: who reads it will begin anew
        pieces = data.split(b"\n")
        end = start
        at = start + len(data)
        for piece in reversed(pieces[1:]):
            at -= len(piece)
            yield from rest.line(at, piece, whole=whole)
            whole = True
            at -= 1
        rest.before(pieces[0])
    yield from rest.line(0, b"", whole=whole)


def read_at(file: int, place: int, size: int) -> bytes:
    """So many bytes from a place on; fewer only at the end of the file. Windows has no ``pread``."""
    os.lseek(file, place, os.SEEK_SET)
    return os.read(file, size)


class _Rest:
    """What is known of a line whose beginning is still to come."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def before(self, data: bytes) -> None:
        self._size += len(data)
        self._parts = [data, *self._parts] if self._size <= LINE_LIMIT else []

    def line(self, place: int, beginning: bytes, *, whole: bool) -> Iterator[Line]:
        self.before(beginning)
        data = b"".join(self._parts)
        self._parts, self._size = [], 0
        if data:
            yield Line(place, data, whole, place + len(data) + whole)


def lines_after(file: int, start: int, *, block: int = _BLOCK) -> Iterator[Line]:
    """The whole lines from a place on; one over the limit says nothing."""
    parts: list[bytes] = []
    size = 0
    at = start
    while data := read_at(file, at, block):
        at += len(data)
        *lines, last = data.split(b"\n")
        for piece in lines:
            parts.append(piece)
            size += len(piece)
            after = start + size + 1
            yield Line(start, b"".join(parts) if size <= LINE_LIMIT else b"", True, after)
            start = after
            parts, size = [], 0
        size += len(last)
        parts = [*parts, last] if size <= LINE_LIMIT else []
