"""Replacing a file's contents so that whoever looks, even after a crash, finds the old or the new text.

1. The new text goes to a temporary file in the same folder, is flushed, and is renamed over the old one.
   Mode, owner, group and (where Python can) extended attributes of the old file go along.
2. A file with several names (hard links), or whose owner or group we cannot give to another file, is
   overwritten in place, or else its other names would keep the old text, or it would change hands. Room on the
   disk is taken first, and if anything fails the old text is put back. A crash in the middle can tear such a
   file; until it is complete, the whole new text lies beside it in a copy
   ``.<pid>-<random>-<inode>.ide-bridge-tmp``, which only a later complete write of that file removes.
3. In a folder where we may not make files there is no copy either: a crash in the middle tears the file.
4. A temporary file of a process that no longer lives is removed at the next write in its folder.

It does not know paths, links or rules: it is given an open folder and a name that is no link.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import threading
from typing import NamedTuple

from ide_bridge.errors import FileProblem
from ide_bridge.workspace.beneath import Folder, irregular

__all__ = ["UNFINISHED", "Old", "Stamp", "replace"]

UNFINISHED = ".ide-bridge-tmp"
_LEFTOVER = re.compile(r"\.([0-9]+)-[0-9a-f]{8}(?:-([0-9]+))?\.ide-bridge-tmp")

_NOT_OFFERED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)

# Two threads that overwrite one file in place would mix their texts.
_in_place = threading.Lock()


class Stamp(NamedTuple):
    """What tells one state of a file on disk from another."""

    modified: int
    size: int
    inode: int

    @classmethod
    def of(cls, info: os.stat_result) -> "Stamp":
        """Take the stamp from what the system knows of a file."""
        return cls(info.st_mtime_ns, info.st_size, info.st_ino)


class Old(NamedTuple):
    """The file that is to be replaced."""

    info: os.stat_result
    attributes: dict[str, bytes]

    @classmethod
    def find(cls, folder: Folder, name: str) -> "Old | None":
        """Look at the file, if there is one, and make sure that we may write it."""
        try:
            info = folder.look_at(name)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(info.st_mode):
            raise irregular(info)
        descriptor = folder.open(name, os.O_WRONLY)
        try:
            return cls(os.fstat(descriptor), _attributes(descriptor))
        finally:
            os.close(descriptor)


def replace(folder: Folder, name: str, data: bytes, old: Old | None, expected: Stamp | None) -> Stamp:
    """Make `data` the contents of `name`; with `expected`, only if the file is still in that state."""
    temporary = f".{os.getpid()}-{secrets.token_hex(4)}{UNFINISHED}"
    try:
        descriptor = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if old else 0o666)
    except PermissionError:
        if old is None:
            raise
        _check(folder, name, expected)
        return _overwrite(folder, name, data)
    try:
        stamp, alike = _fill(descriptor, data, old)
        _check(folder, name, expected)
        if not (alike and _renamed(folder, temporary, name)):
            stamp = _overwrite_with_copy(folder, name, data, temporary)
    except BaseException:
        folder.remove(temporary)
        raise
    folder.sync()
    _sweep(folder, old.info.st_ino if old else stamp.inode)
    return stamp


def _fill(descriptor: int, data: bytes, old: Old | None) -> tuple[Stamp, bool]:
    """Write the temporary file and close it; also tell whether it may stand in for the old one."""
    try:
        _write_all(descriptor, data)
        alike = old is None or _take_after(descriptor, old)
        os.fsync(descriptor)
        return Stamp.of(os.fstat(descriptor)), alike
    finally:
        os.close(descriptor)


def _take_after(descriptor: int, old: Old) -> bool:
    """Give the new file everything of the old one but its contents; False if that cannot be done."""
    new = os.fstat(descriptor)
    if old.info.st_nlink > 1:
        return False
    if (new.st_uid, new.st_gid) != (old.info.st_uid, old.info.st_gid):
        try:
            os.fchown(descriptor, old.info.st_uid, old.info.st_gid)
        except PermissionError:
            return False
    for name, value in old.attributes.items():
        with contextlib.suppress(OSError):
            os.setxattr(descriptor, name, value)
    if hasattr(os, "fchmod"):  # last, for a change of owner takes bits away
        os.fchmod(descriptor, stat.S_IMODE(old.info.st_mode))
    return True


def _attributes(descriptor: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # not every file system has them
            for name in os.listxattr(descriptor):
                found[name] = os.getxattr(descriptor, name)
    return found


def _renamed(folder: Folder, temporary: str, name: str) -> bool:
    try:
        folder.rename(temporary, name)
    except OSError as error:
        if error.errno == errno.EBUSY:  # a file mounted by itself, as containers do, can only be overwritten
            return False
        raise
    return True


def _overwrite_with_copy(folder: Folder, name: str, data: bytes, temporary: str) -> Stamp:
    copy = temporary.removesuffix(UNFINISHED) + f"-{folder.look_at(name).st_ino}{UNFINISHED}"
    folder.rename(temporary, copy)
    folder.sync()
    try:
        stamp = _overwrite(folder, name, data)
    except _Torn:
        raise  # the copy is all there is
    except BaseException:
        folder.remove(copy)
        raise
    folder.remove(copy)
    return stamp


class _Torn(OSError):
    """Neither could the new text be written nor the old one put back."""


def _overwrite(folder: Folder, name: str, data: bytes) -> Stamp:
    with _in_place:
        old = _beginning(folder, name, len(data))
        descriptor = folder.open(name, os.O_WRONLY)
        try:
            before = os.fstat(descriptor)
            try:
                _put(descriptor, data)
            except OSError as error:
                _put_back(descriptor, old, before.st_size, error)
                raise
            os.ftruncate(descriptor, len(data))
            os.fsync(descriptor)
            return _marked(descriptor, before)
        finally:
            os.close(descriptor)


def _beginning(folder: Folder, name: str, length: int) -> bytes | None:
    """Read what will be overwritten; None when we may write the file but not read it."""
    try:
        descriptor = folder.open(name, os.O_RDONLY)
    except PermissionError:
        return None
    with open(descriptor, "rb") as file:
        return file.read(length)


def _put(descriptor: int, data: bytes) -> None:
    """Write over what is there, once there is room for all of it."""
    if data and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, len(data))
        except OSError as error:
            if error.errno not in _NOT_OFFERED:
                raise
    _write_all(descriptor, data)
    os.fsync(descriptor)


def _put_back(descriptor: int, old: bytes | None, size: int, reason: OSError) -> None:
    torn = _Torn(reason.errno, reason.strerror)
    try:
        if os.lseek(descriptor, 0, os.SEEK_CUR):
            if old is None:
                raise torn from reason
            os.lseek(descriptor, 0, os.SEEK_SET)
            _write_all(descriptor, old)
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    except OSError:
        raise torn from reason


def _marked(descriptor: int, before: os.stat_result) -> Stamp:
    """Take the stamp, and see to it that it is another: the clock of a file system may stand for milliseconds."""
    stamp = Stamp.of(os.fstat(descriptor))
    if stamp == Stamp.of(before) and os.utime in os.supports_fd:
        os.utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        stamp = Stamp.of(os.fstat(descriptor))
    return stamp


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _check(folder: Folder, name: str, expected: Stamp | None) -> None:
    if expected is None:
        return
    if not folder.has(name) or Stamp.of(folder.look_at(name)) != expected:
        raise FileProblem("failed to write file: The file changed on disk since it was read")


def _sweep(folder: Folder, inode: int) -> None:
    """Remove what dead processes left, except copies of files other than the one just written."""
    for name in folder.names():
        found = _LEFTOVER.fullmatch(name)
        if found and (found[2] is None or int(found[2]) == inode) and not _alive(int(found[1])):
            with contextlib.suppress(OSError):
                folder.remove(name)


def _alive(pid: int) -> bool:
    if os.name == "nt":  # a file in use cannot be removed there, so there is no need to know
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
