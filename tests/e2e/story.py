"""What a story with the real CLI is played on: a home, a model, a bridge whose editor is driven, and a CLI.

A chapter finds one CLI connected and its prompt empty. The chapters share a run of the CLI, which is slow to
start; where one has left anything else behind, the next gets a new run, so that one failure does not become many.

It does not know the chapters.
"""

import re
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.fakes.claude_cli import Home, start_claude
from tests.fakes.driven_bridge import DrivenBridge
from tests.fakes.messages_api import MessagesApi
from tests.fakes.terminal import Terminal

__all__ = ["Story"]

EMPTY_PROMPT = re.compile(r"─\n❯[^\S\n]*\n─")
FLAGS = ("--ide", "--permission-mode=default", "--allowedTools=Read,mcp__ide__getDiagnostics")
SETTLING_SECONDS = 5.0
DEAF_SECONDS = 3.0


class Story:
    """Everything that takes part; its ``with`` block ends what it started."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._running = ExitStack()
        self._cli: Terminal | None = None
        self._files: list[Path] = []

    def __enter__(self) -> Self:
        self.home = self._running.enter_context(Home())
        self.api = self._running.enter_context(MessagesApi())
        self.project = self.home.path / "project"
        self.project.mkdir()
        self.start_bridge()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._running.close()

    @property
    def cli(self) -> Terminal:
        """The CLI that works in the project's folder."""
        assert self._cli is not None, "no chapter has begun"
        return self._cli

    def begin(self) -> None:
        """Brings about what every chapter relies on."""
        if not self.bridge.runs:
            self.start_bridge()
        for file in self._files:
            self.bridge.shut(file)
        if self._cli is None or not self._is_at_rest(self._cli):
            self.end_cli()
            self.begin_cli()

    def begin_cli(self) -> None:
        """Starts the CLI that works in the project's folder."""
        self._cli = self.start_cli(self.project)

    def end_cli(self) -> None:
        """Nobody is connected any more when this returns."""
        if self._cli is not None:
            self._cli.close()
            self._cli = None
        self.bridge.wait_for_clients(lambda clients: clients == [])

    def file(self, name: str, text: str) -> Path:
        """A file in the project."""
        path = self.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self._files.append(path)
        return path

    def start_bridge(self) -> None:
        """Serves the project, and is ready when it returns."""
        self.bridge = self._running.enter_context(DrivenBridge(self.project, self.home.environment))

    def kill_bridge(self) -> None:
        """Ends the bridge as a crash would, without a word."""
        assert self.bridge.stop(signal.SIGKILL) == -signal.SIGKILL

    def start_cli(self, folder: Path) -> Terminal:
        """A CLI that is connected and waits for a prompt."""
        started = start_claude(
            self.home, self.api.url, folder, *FLAGS, version=self.version, ENABLE_TOOL_SEARCH="false"
        )
        cli = self._running.enter_context(started)
        cli.wait_for("❯")
        self.wait_until_connected(cli)
        return cli

    def wait_until_connected(self, cli: Terminal) -> None:
        """Returns when the bridge knows this CLI."""
        self.bridge.wait_for_clients(lambda clients: _among(cli, clients))

    def submit(self, prompt: str, cli: Terminal | None = None) -> None:
        """Types a prompt behind whatever stands there already, and sends it to the model."""
        cli = cli or self.cli
        cli.type(prompt)
        cli.wait_for(prompt)
        cli.send("Enter")
        try:
            self.api.wait_until_told(prompt, DEAF_SECONDS)
        except AssertionError:
            cli.send("Enter")  # the key was lost: nothing else can have been answered with it
            self.api.wait_until_told(prompt)

    def _is_at_rest(self, cli: Terminal) -> bool:
        try:
            cli.wait_for(EMPTY_PROMPT, SETTLING_SECONDS)
        except AssertionError:
            return False
        return _among(cli, self.bridge.clients())


def _among(cli: Terminal, clients: list[dict[str, Any]]) -> bool:
    return cli.pid in [client["pid"] for client in clients]
