"""A terminal that a test reads and types into: one program in tmux, on a tmux server of its own.

It does not know which program that is, and never meets the user's own tmux.
"""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

from tests.fakes.programs import program

__all__ = ["Terminal"]

COLUMNS, LINES = 120, 40
POLL = 0.1


class Terminal:
    """Runs ``command`` with exactly ``environment`` until ``close``, or until a ``with`` block ends."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        tmux = program("tmux")
        # Not under tmp_path: the path of a Unix socket may have 107 bytes only.
        self._private = Path(tempfile.mkdtemp(prefix="tmux-"))
        self._tmux_command = [tmux, "-u", "-f", "/dev/null", "-S", str(self._private / "socket")]
        variables = [f"{name}={value}" for name, value in {"TERM": "tmux-256color", **environment}.items()]
        self._tmux(
            "start-server", ";",
            "set-option", "-g", "remain-on-exit", "on", ";",  # the last screen of a crash is the best report
            "set-option", "-g", "status", "off", ";",
            "set-option", "-g", "default-terminal", "tmux-256color", ";",
            "set-option", "-s", "escape-time", "0", ";",
            "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "-c", str(folder),
            program("env"), "-i", *variables, *command,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the program (``env`` becomes it)."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def type(self, text: str) -> None:
        """Types the text as it is."""
        self._tmux("send-keys", "-l", "--", text)

    def send(self, *keys: str) -> None:
        """Presses keys by tmux's names for them: Enter, Escape, Down, C-c."""
        self._tmux("send-keys", "--", *keys)

    def screen(self) -> str:
        """What a person would see now, without the blanks at the line ends."""
        return self._tmux("capture-pane", "-p")

    def shows(self, wanted: str | re.Pattern[str]) -> bool:
        """Whether the text or the pattern is on the screen now."""
        return re.search(_pattern(wanted), self.screen()) is not None

    def wait_for(self, wanted: str | re.Pattern[str], seconds: float = 30) -> str:
        """The first screen that shows the text or the pattern; fails with the last screen seen."""
        deadline = time.monotonic() + seconds
        while not re.search(_pattern(wanted), screen := self.screen()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{_pattern(wanted).pattern!r} not shown within {seconds:g} s:\n{screen}")
            time.sleep(POLL)
        return screen

    def wait_until_gone(self, unwanted: str | re.Pattern[str], seconds: float = 30) -> None:
        """Returns when the text or the pattern is not on the screen (any more); fails with the last one seen."""
        deadline = time.monotonic() + seconds
        while re.search(_pattern(unwanted), screen := self.screen()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{_pattern(unwanted).pattern!r} still shown after {seconds:g} s:\n{screen}")
            time.sleep(POLL)

    def press_until(self, key: str, wanted: str | re.Pattern[str], seconds: float = 30) -> str:
        """Presses the key, again every second, until it shows: a dialog that just appeared may be deaf."""
        deadline = time.monotonic() + seconds
        while True:
            self.send(key)
            try:
                return self.wait_for(wanted, seconds=1)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise

    def close(self) -> None:
        """Ends the program, its children and the tmux server; the second time it does nothing."""
        if not self._private.exists():
            return
        family = self._family()
        self._tmux("kill-server")
        _, stubborn = psutil.wait_procs(family, timeout=5)
        for process in stubborn:
            process.kill()
        psutil.wait_procs(stubborn, timeout=5)
        shutil.rmtree(self._private)

    def _family(self) -> list[psutil.Process]:
        if self._tmux("display-message", "-p", "#{pane_dead}").strip() == "1":
            return []  # the number may be somebody else's by now
        try:
            leader = psutil.Process(self.pid)
            return [leader, *leader.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._tmux_command, *arguments],
            capture_output=True,
            encoding="utf-8",
            timeout=20,
            env={"PATH": ""},
        )
        assert done.returncode == 0, f"tmux {arguments[0]}: {done.stderr.strip()}"
        return done.stdout


def _pattern(wanted: str | re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(re.escape(wanted)) if isinstance(wanted, str) else wanted
