"""A program whose input and output are a terminal: what a person would see of it.

It does not know the program, and draws nothing: the screen is all that was ever written to it.
"""

import contextlib
import fcntl
import os
import pty
import selectors
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Pty"]

PATIENCE = 30.0


class Pty:
    """A program whose output is a terminal, wide enough that nothing wraps."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 50, 300, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.screen = ""

    def read_until(self, text: str) -> None:
        """Wait until the program has shown this."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.screen:
            assert self._read(deadline), f"ended without showing {text!r}:\n{self.screen}"

    def read_to_end(self) -> str:
        """Wait until the program has ended; give all it showed."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        self.process.wait(PATIENCE)
        return self.screen

    def close(self) -> None:
        """End the program if need be."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE)
        os.close(self._master)

    def _read(self, deadline: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._master, selectors.EVENT_READ)
            assert selector.select(max(0.0, deadline - time.monotonic())), f"nothing more came:\n{self.screen}"
        data = b""
        with contextlib.suppress(OSError):  # Linux says so when the last program at the other end is gone
            data = os.read(self._master, 65536)
        self.screen += data.decode().replace("\r\n", "\n")
        return bool(data)
