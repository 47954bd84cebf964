"""One story with a real editor and the real CLI, neither of which knows that a bridge is between them.

All of it is watched on two screens. The bridge is started by the editor's plug-in and by nobody else.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.bridge_process import PROGRAM
from tests.fakes.claude_cli import NEWEST, Home, start_claude
from tests.fakes.editors import emacs, nvim, vim
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Edit, Read
from tests.fakes.terminal import Terminal

pytestmark = pytest.mark.real_cli

FLAGS = ("--ide", "--permission-mode=default", "--allowedTools=Read")
POEM = "first line\nsecond line\nthird line\nfourth line\nfifth line\n"
AGAIN_SECONDS = 10


@dataclass
class Keys:
    """How one editor is started and used; each list is pressed key by key, by tmux's names."""

    title: str
    command: Callable[[Path], Sequence[str]]
    select_two: Sequence[str]
    select_three: Sequence[str]
    unselect: Sequence[str]
    change_and_keep: Sequence[str]
    reject: Sequence[str]
    quit: Sequence[str]


def _like_vim(title: str, command: Callable[[Path], Sequence[str]]) -> Keys:
    return Keys(
        title,
        command,
        select_two=["g", "g", "V", "j"],
        select_three=["g", "g", "V", "j", "j"],
        unselect=["Escape"],
        change_and_keep=[*":%s/Title/My title/", "Enter", *":w", "Enter"],
        reject=[*":q", "Enter"],
        quit=["Escape", *":qa!", "Enter"],
    )


EMACS = Keys(
    "Emacs",
    emacs,
    select_two=["M-<", "C-Space", "C-n", "C-e"],
    select_three=["M-<", "C-Space", "C-n", "C-n", "C-e"],
    unselect=["C-g"],
    change_and_keep=[*["C-x", "o"] * 2, "M-<", "C-k", *"My title", "C-c", "C-c"],
    reject=["C-c", "C-k"],
    quit=["C-x", "C-c"],
)
EDITORS = [_like_vim("Vim", vim), _like_vim("Neovim", nvim), EMACS]


@pytest.fixture(params=EDITORS, ids=lambda keys: keys.title)
def keys(request: pytest.FixtureRequest) -> Keys:
    return request.param


@pytest.fixture
def stage(isolation_refused: str | None) -> Iterator["Stage"]:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    with ExitStack() as running:
        stage = Stage(running)
        try:
            yield stage
        finally:
            stage.stop()


class Stage:
    """A home, a model, and terminals for an editor and a CLI."""

    def __init__(self, running: ExitStack) -> None:
        self._running = running
        self.home = running.enter_context(Home())
        self.api = running.enter_context(MessagesApi())
        self.project = self.home.path / "project"
        self.project.mkdir()
        self.poem = self.project / "poem.txt"
        self.poem.write_text(POEM, encoding="utf-8")

    def edit(self, keys: Keys) -> Terminal:
        command = [*keys.command(self.home.path), str(self.poem)]
        editor = self._running.enter_context(Terminal(command, self.project, self.home.environment))
        editor.wait_for("first line")
        self.wait_until(lambda bridge: keys.title in [one["name"] for one in bridge["editors"]])
        return editor

    def claude(self) -> Terminal:
        started = start_claude(self.home, self.api.url, self.project, *FLAGS, version=NEWEST)
        cli = self._running.enter_context(started)
        cli.wait_for("❯")
        self.wait_until(lambda bridge: cli.pid in [client["pid"] for client in bridge["clients"]])
        return cli

    def bridge(self) -> dict[str, Any]:
        bridges = json.loads(self._command("status", "--json"))["bridges"]
        return bridges[0] if bridges else {"editors": [], "clients": [], "pid": 0}

    def wait_until(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = 20) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while not wanted(bridge := self.bridge()):
            assert time.monotonic() < deadline, f"after {seconds:g} s the bridge is {bridge}"
            time.sleep(0.05)
        return bridge

    def propose(self, cli: Terminal, prompt: str) -> None:
        """Has the model put a line at the top of the file."""
        self.api.script(
            prompt, Read(self.poem), Edit(self.poem, "first line", "Title\nfirst line"), f"Done: {prompt}."
        )
        cli.type(prompt)
        cli.wait_for(prompt)
        cli.send("Enter")

    def stop(self) -> None:
        self._command("stop", "--all")

    def _command(self, *words: str) -> str:
        done = subprocess.run(
            [*PROGRAM, *words], env=self.home.environment, cwd=self.project, capture_output=True, timeout=20
        )
        return done.stdout.decode()


def press(terminal: Terminal, keys: Sequence[str]) -> None:
    for key in keys:
        terminal.send("Space" if key == " " else key)


def test_an_editor_and_claude(stage: Stage, keys: Keys) -> None:
    editor = stage.edit(keys)
    cli = stage.claude()

    press(editor, keys.select_two)
    cli.wait_for("⧉ 2 lines selected")
    press(editor, keys.unselect)

    stage.propose(cli, "give it a title")
    editor.wait_for("Title")
    cli.wait_for(f"Opened changes in {keys.title}")
    press(editor, keys.change_and_keep)
    cli.wait_for("Done: give it a title.")
    assert stage.poem.read_text(encoding="utf-8") == "My title\n" + POEM
    editor.wait_for("My title")

    stage.propose(cli, "and another one")
    editor.wait_for(re.compile(r"^.*\bTitle\b", re.MULTILINE))
    cli.wait_for(re.compile(r"Do you want to make this edit to\s+poem\.txt\?"))
    press(editor, keys.reject)
    cli.wait_for(re.compile(r"ejected update to\s+poem\.txt"))
    assert stage.poem.read_text(encoding="utf-8") == "My title\n" + POEM

    press(editor, keys.quit)
    stage.wait_until(lambda bridge: bridge["editors"] == [])
    assert cli.pid in [client["pid"] for client in stage.bridge()["clients"]]

    editor = stage.edit(keys)
    press(editor, keys.select_three)
    cli.wait_for("⧉ 3 lines selected")
    press(editor, keys.unselect)

    before = stage.bridge()["pid"]
    os.kill(before, signal.SIGKILL)
    killed = time.monotonic()
    stage.wait_until(lambda bridge: bridge["pid"] not in (0, before) and bool(bridge["clients"]), AGAIN_SECONDS)
    press(editor, keys.select_two)
    cli.wait_for("⧉ 2 lines selected", seconds=max(1.0, AGAIN_SECONDS - (time.monotonic() - killed)))
