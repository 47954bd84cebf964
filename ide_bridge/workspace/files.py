"""The files of a workspace as text: read whole, written whole.

It does not know about unsaved buffers, clients or threads: every call is synchronous and short for a short
file, and a caller who must not wait looks at `OpenText.size`, or at the length of what it writes, and sends
long ones to a thread.
"""

import contextlib
import os
import re
from types import TracebackType
from typing import Self

from ide_bridge.errors import FileProblem, InvalidParams
from ide_bridge.workspace.beneath import Spot
from ide_bridge.workspace.guard import Guard, file_problem
from ide_bridge.workspace.places import Place
from ide_bridge.workspace.replacing import Old, Stamp, replace

__all__ = ["READ_LIMIT", "WRITE_LIMIT", "Files", "OpenText", "Stamp"]

MIB = 1024 * 1024
READ_LIMIT = 10 * MIB
WRITE_LIMIT = 32 * MIB
_CHUNK = 1 * MIB
_BINARY_SAMPLE = 8 * 1024

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BARE_LF = re.compile(rb"(?<!\r)\n")


class OpenText:
    """A file held open to be read once; `read` closes it, as does leaving a ``with``.

    Reading may happen in a thread, and whoever waits for it may be cancelled and close the file meanwhile.
    A descriptor closed under a reader could already belong to another file, so whoever takes it first, reader
    or closer, closes it, and the other finds nothing (`list.pop` is one step for every thread).
    """

    __slots__ = ("_held", "size", "stamp")

    def __init__(self, descriptor: int, info: os.stat_result) -> None:
        self._held = [descriptor]
        self.size = info.st_size
        self.stamp = Stamp.of(info)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self) -> str:
        """Return the text and close the file."""
        try:
            descriptor = self._held.pop()
        except IndexError:
            raise ValueError("the file was read or closed before") from None
        try:
            return _decode(_read_all(descriptor, self.size))
        except OSError as error:
            raise file_problem("read", error) from error
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the file unless it is being read or was closed before."""
        with contextlib.suppress(IndexError):
            os.close(self._held.pop())


class Files:
    """Reading and writing text beneath the roots of a guard."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def open_text(self, place: Place) -> OpenText:
        """Open a file for reading, and learn its size before its contents."""
        descriptor, info = self._guard.open_file(place, os.O_RDONLY)
        if info.st_size > READ_LIMIT:
            os.close(descriptor)
            raise _too_large("read", info.st_size, READ_LIMIT)
        return OpenText(descriptor, info)

    def read(self, place: Place) -> str:
        """Return the text of a file, a byte order mark included, so that writing it back changes nothing."""
        return self.open_text(place).read()

    def write(self, place: Place, content: str, *, expected: Stamp | None = None) -> Stamp:
        """Make `content` the text of a file, whole or not at all (`replacing` has the exceptions).

        Parent folders are made. Text whose lines end in LF takes on CRLF if every line of the old file ends
        so. With `expected`, the stamp of what was read, a file that changed since is left alone.
        """
        data = _encode(content)
        try:
            with self._guard.enter(place) as spot:
                old = Old.find(spot.folder, spot.name)
                if old is not None and old.info.st_nlink > 1:
                    self._guard.check_names(spot.place, old.info)
                if old is not None and b"\n" in data and b"\r" not in data and _is_crlf(spot, old):
                    data = data.replace(b"\n", b"\r\n")
                return replace(spot.folder, spot.name, data, old, expected)
        except OSError as error:
            raise file_problem("write", error) from error


def _read_all(descriptor: int, size: int) -> bytes:
    """Read to the end, wherever that is by now; files of some file systems say that their size is 0."""
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    chunks = [data]
    total = len(data)
    while chunk := os.read(descriptor, _CHUNK):
        chunks.append(chunk)
        total += len(chunk)
        if total > READ_LIMIT:
            raise _too_large("read", total, READ_LIMIT)
    return b"".join(chunks)


def _decode(data: bytes) -> str:
    if data.startswith(_UTF16_MARKS):
        raise FileProblem("failed to read file: Not UTF-8 text (UTF-16 by its byte order mark)")
    if data.find(b"\0", 0, _BINARY_SAMPLE) >= 0:
        raise FileProblem("failed to read file: Not a text file (binary)")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FileProblem(f"failed to read file: Not UTF-8 text (byte {error.start})") from None


def _encode(content: str) -> bytes:
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise InvalidParams(
            f"the content is not valid Unicode (half of a surrogate pair at {error.start})"
        ) from None
    if len(data) > WRITE_LIMIT:
        raise _too_large("write", len(data), WRITE_LIMIT)
    return data


def _too_large(verb: str, size: int, limit: int) -> FileProblem:
    rounded_up = -(-size // MIB)
    return FileProblem(
        f"failed to {verb} file: File too large ({rounded_up} MiB, the limit is {limit // MIB} MiB)"
    )


def _is_crlf(spot: Spot, old: Old) -> bool:
    """Whether the old file has lines and all of them end in CRLF; not asked of what we would never write."""
    if old.info.st_size > WRITE_LIMIT:
        return False
    try:
        descriptor = spot.folder.open(spot.name, os.O_RDONLY)
    except PermissionError:
        return False
    try:
        return _has_only_crlf(descriptor)
    finally:
        os.close(descriptor)


def _has_only_crlf(descriptor: int) -> bool:
    found = False
    before = b""
    while chunk := os.read(descriptor, _CHUNK):
        chunk = before + chunk
        if _BARE_LF.search(chunk):
            return False
        found = found or b"\n" in chunk
        before = chunk[-1:]
    return found
