"""An attacker who swaps a file or folder for a link, over and over, as fast as the kernel can.

A process of its own (this file, run with the two names), so that it keeps no step with the one attacked.
"""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path

import pytest

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

needs_exchange = pytest.mark.skipif(sys.platform != "linux", reason="exchanging two names at once is Linux")


@contextmanager
def swapping(spot: Path, target: str) -> Iterator[None]:
    """Let `spot` be now what it is, now a link to `target`, and never absent."""
    aside = spot.with_name("aside")
    aside.symlink_to(target)
    with subprocess.Popen([sys.executable, __file__, spot, aside], stdout=subprocess.PIPE) as attacker:
        try:
            assert attacker.stdout is not None
            assert attacker.stdout.readline() == b"swapping\n"
            yield
            assert attacker.poll() is None
        finally:
            attacker.kill()


def attempts(seen: AbstractSet[object], wanted: AbstractSet[object], least: int) -> Iterator[int]:
    """Go on for `least` turns, and until all that is wanted was seen: a busy machine may favour one side."""
    deadline = time.monotonic() + 30
    turn = 0
    while turn < least or (not wanted <= seen and time.monotonic() < deadline):
        yield turn
        turn += 1


def _swap_for_ever(one: bytes, other: bytes) -> None:
    rename = ctypes.CDLL(None).renameat2
    print("swapping", flush=True)
    while rename(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE) == 0:
        pass


if __name__ == "__main__":
    _swap_for_ever(os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2]))
