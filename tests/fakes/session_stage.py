"""A home in which ``claude`` is a CLI without a model, and the session commands are typed as a user types them.

It does not know what the commands do. The bridges that they start are stopped when its ``with`` block ends.
"""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.fakes import recorded_cli
from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.terminal import Terminal

__all__ = ["SessionStage"]

PATIENCE = 30.0
POLL = 0.02


class SessionStage:
    """One home and one project; terminals and commands in it."""

    def __init__(self, cli: Sequence[str] = recorded_cli.COMMAND, **variables: str) -> None:
        self._cli = cli
        self._variables = variables
        self._running = ExitStack()

    def __enter__(self) -> Self:
        self.home = self._running.enter_context(Home())
        self.project = self.folder("project")
        programs = self.folder("bin")
        claude = programs / "claude"
        claude.write_text(f'#!/bin/sh\nexec {shlex.join(self._cli)} "$@"\n', encoding="utf-8")
        claude.chmod(0o755)
        (programs / "ide-bridge").symlink_to(PROGRAM[0])
        path = f"{programs}:{self.home.environment['PATH']}"
        self.environment = self.home.environment | {"PATH": path} | self._variables
        self._running.callback(self.command, "stop", "--all")
        return self

    def __exit__(self, *_exception: object) -> None:
        self._running.close()

    def serve(self) -> BridgeProcess:
        """Have a bridge for the project."""
        return self._running.enter_context(BridgeProcess(self.project, self.environment))

    def folder(self, name: str) -> Path:
        """A folder in the home."""
        folder = self.home.path / name
        folder.mkdir()
        return folder

    def command(
        self, *words: str, given: str = "", folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run ``ide-bridge`` to its end; no traceback may be seen, and a failure has a reason."""
        done = subprocess.run(
            [*PROGRAM, *words],
            cwd=folder or self.project,
            env=self.environment,
            input=given,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 0 or done.stderr or done.stdout, done
        return done

    def session(self, *words: str, **options: Any) -> str:
        """What a session command prints that must succeed."""
        done = self.command("session", *words, **options)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def json(self, *words: str, **options: Any) -> Any:
        """The same, for programs."""
        return json.loads(self.session(*words, "--json", **options))

    def failure(self, *words: str, **options: Any) -> str:
        """The one sentence of a session command that fails."""
        done = self.command("session", *words, **options)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert done.stderr.startswith("ide-bridge: "), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.removeprefix("ide-bridge: ").strip()

    def start(self, *words: str, **options: Any) -> str:
        """Begin a session; gives its id."""
        session: str = self.json("start", *words, **options)["session"]
        return session

    def state(self, session: str) -> dict[str, Any]:
        """What the list says of a session now."""
        return next(each for each in self.json("list")["sessions"] if each["session"] == session)

    def wait_until(self, session: str, state: str) -> dict[str, Any]:
        """Returns when the session is in that state."""
        return self.wait_for(lambda: self.state(session), lambda found: found["state"] == state)

    def approval(self) -> dict[str, Any]:
        """The only open approval, when there is one."""
        return self.wait_for(lambda: self.json("approvals")["approvals"], lambda found: len(found) == 1)[0]

    def wait_for(self, look: Callable[[], Any], fits: Callable[[Any], bool]) -> Any:
        """What is seen as soon as it fits."""
        deadline = time.monotonic() + PATIENCE
        while not fits(found := look()):
            assert time.monotonic() < deadline, found
            time.sleep(POLL)
        return found

    def terminal(self, *words: str, folder: Path | None = None, **variables: str) -> Terminal:
        """A session command in a terminal of its own."""
        return self.shell(shlex.join([*PROGRAM, "session", *words]), folder=folder, **variables)

    def shell(self, script: str, *, folder: Path | None = None, **variables: str) -> Terminal:
        """A terminal in which a shell runs these lines; ``ide-bridge`` is on its PATH."""
        command = ["/bin/sh", "-c", f"trap : INT\n{script}"]  # Ctrl-C is for the command, not for its shell
        return self._running.enter_context(Terminal(command, folder or self.project, self.environment | variables))
