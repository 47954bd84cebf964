"""The audit log: one line for everything that leaves for a client, in the state folder of the workspace.

A line says when, to whom, what and of which file, never its contents::

    2026-03-01T09:30:00.125+01:00 <tab> claude-code 2 <tab> selection <tab> /home/you/notes/a.md <tab> 3-5

Names come from outside and are escaped, so a line is always one line. The log is private (0600) and bounded: a
full one becomes ``audit.log.1``, in place of the one before.

It does not know what may be shared. A log that cannot be written stops nobody; it is said once.
"""

import asyncio
import contextlib
import logging
import os
import time
from datetime import UTC, datetime
from typing import NamedTuple

from ide_bridge.errors import SetupProblem
from ide_bridge.home import private_folder

__all__ = ["LOG_NAME", "OLDER_NAME", "SIZE_LIMIT", "Audit"]

logger = logging.getLogger(__name__)

LOG_NAME = "audit.log"
OLDER_NAME = "audit.log.1"
SIZE_LIMIT = 1024 * 1024
_FIELD_LIMIT = 4096
_WRITE_SECONDS = 0.1
_AT_ONCE = 1000
_FLAGS = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


class _Share(NamedTuple):
    when: float
    who: str
    what: str
    path: str
    lines: tuple[int, int] | None

    def line(self) -> bytes:
        """How it stands in the log."""
        span = "" if self.lines is None else f"{self.lines[0] + 1}-{self.lines[1] + 1}"
        when = datetime.fromtimestamp(self.when, UTC).astimezone().isoformat(timespec="milliseconds")
        words = (when, *map(_escaped, (self.who, self.what, self.path)), span)
        return ("\t".join(words).rstrip("\t") + "\n").encode()


class Audit:
    """The log of one workspace; without a folder nothing is kept."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: int | None = None
        self._warned = False
        self._shares: list[_Share] = []
        self._writing: asyncio.TimerHandle | None = None

    def share(self, who: str, what: str, path: str, lines: tuple[int, int] | None = None) -> None:
        """Note that a client was given something; `lines` count from 0, the last one included.

        On an event loop it is written a moment later, so that no client waits for the disk.
        """
        self._shares.append(_Share(time.time(), who, what, path, lines))
        if len(self._shares) >= _AT_ONCE:
            self.write()
        elif self._writing is None:
            self._write_soon()

    def _write_soon(self) -> None:
        try:
            self._writing = asyncio.get_running_loop().call_later(_WRITE_SECONDS, self.write)
        except RuntimeError:  # nobody waits where there is no event loop
            self.write()

    def write(self) -> None:
        """Write what was noted so far."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        shares, self._shares = self._shares, []
        if self._folder is None:
            return
        try:
            for share in shares:
                self._append(self._folder, share.line())
        except (OSError, SetupProblem) as problem:
            self._let_go()
            self._warn(problem)

    def close(self) -> None:
        """Write the rest, and let go of the file."""
        self.write()
        self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, folder: str, line: bytes) -> None:
        if self._file is None:
            self._file = _open(folder)
        found = os.fstat(self._file)
        if found.st_nlink == 0 or found.st_size + len(line) > SIZE_LIMIT:
            self._let_go()
            if found.st_nlink:
                os.replace(os.path.join(folder, LOG_NAME), os.path.join(folder, OLDER_NAME))
            self._file = _open(folder)
        if os.write(self._file, line) < len(line):
            raise OSError("the disk is full")

    def _warn(self, problem: Exception) -> None:
        if not self._warned:
            self._warned = True
            reason = getattr(problem, "strerror", None) or problem
            logger.warning("What is shared is not noted, because %s cannot be written: %s", LOG_NAME, reason)


def _open(folder: str) -> int:
    file = os.open(os.path.join(private_folder(folder), LOG_NAME), _FLAGS, 0o600)
    with contextlib.suppress(AttributeError):  # Windows has no such modes
        os.fchmod(file, 0o600)
    return file


def _escaped(text: str) -> str:
    """Keep what can be seen; a name that is all too long is cut."""
    text = text[:_FIELD_LIMIT]
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(letter if _is_plain(letter) else _code(letter) for letter in text)


def _is_plain(letter: str) -> bool:
    return letter.isprintable() and letter != "\\"


def _code(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")
