"""The audit log: one line for everything that leaves for a client, in the state folder of the workspace.

A line says when, to whom, what and of which file, never its contents::

    2026-03-01T09:30:00.125+01:00 <tab> claude-code 2 <tab> selection <tab> /home/you/notes/a.md <tab> 3-5

Names come from outside and are escaped, so a line is always one line. The log is private (0600) and bounded: a
full one becomes ``audit.log.1``, in place of the one before.

It does not know what may be shared. A log that cannot be written stops nobody; it is said once.
"""

import contextlib
import logging
import os
from datetime import UTC, datetime

from ide_bridge.errors import SetupProblem
from ide_bridge.home import private_folder

__all__ = ["LOG_NAME", "OLDER_NAME", "SIZE_LIMIT", "Audit"]

logger = logging.getLogger(__name__)

LOG_NAME = "audit.log"
OLDER_NAME = "audit.log.1"
SIZE_LIMIT = 1024 * 1024
_FIELD_LIMIT = 4096
_FLAGS = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
)


class Audit:
    """The log of one workspace; without a folder nothing is kept."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: int | None = None
        self._warned = False

    def share(self, who: str, what: str, path: str, lines: tuple[int, int] | None = None) -> None:
        """Note that a client was given something; `lines` count from 0, the last one included."""
        if self._folder is None:
            return
        span = "" if lines is None else f"{lines[0] + 1}-{lines[1] + 1}"
        now = datetime.now(UTC).astimezone().isoformat(timespec="milliseconds")
        line = "\t".join((now, *map(_escaped, (who, what, path)), span)).rstrip("\t") + "\n"
        try:
            self._append(self._folder, line.encode())
        except (OSError, SetupProblem) as problem:
            self.close()
            self._warn(problem)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, folder: str, line: bytes) -> None:
        if self._file is None:
            self._file = _open(folder)
        found = os.fstat(self._file)
        if found.st_nlink == 0 or found.st_size + len(line) > SIZE_LIMIT:
            self.close()
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
