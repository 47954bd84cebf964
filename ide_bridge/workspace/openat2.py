"""openat2: the one system call that refuses every link on the way by itself (Linux 5.6).

Python does not have it, so it is called through `ctypes`, whose import costs as much as the rest of the room;
hence this module is imported when the first file is opened.

It does not know roots or rules.
"""

import ctypes
import functools
import os
from collections.abc import Callable

__all__ = ["last_error", "openat2"]

_NUMBER = 437
_AT_FDCWD = -100
_NO_MAGICLINKS, _NO_SYMLINKS = 0x02, 0x04


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_SIZE = ctypes.sizeof(_OpenHow)


@functools.cache
def _system_call() -> Callable[..., int]:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.POINTER(_OpenHow), ctypes.c_size_t)
    call.restype = ctypes.c_long
    return call


@functools.lru_cache(maxsize=64)
def _how(flags: int, mode: int) -> _OpenHow:
    return _OpenHow(flags, mode if flags & os.O_CREAT else 0, _NO_SYMLINKS | _NO_MAGICLINKS)


def openat2(path: str, flags: int, mode: int = 0) -> int:
    """Return a descriptor, or -1 for whatever reason, also when any part of the absolute path is a link."""
    return _system_call()(_NUMBER, _AT_FDCWD, os.fsencode(path), _how(flags, mode), _SIZE)


def last_error() -> OSError:
    """Say why the last call in this thread returned -1."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
