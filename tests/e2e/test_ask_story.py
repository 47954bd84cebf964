"""One story in which a real Vim, or Neovim, asks the real CLI, watched on the editor's screen.

The bridge is started by the plug-in and by nobody else, and the CLI by the bridge; only the model is scripted.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.bridge_process import PROGRAM
from tests.fakes.claude_cli import KEY, NEWEST, Home, claude_command
from tests.fakes.editors import nvim, vim
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash, Edit
from tests.fakes.terminal import Terminal

pytestmark = pytest.mark.real_cli

POEM = "first line\nsecond line\nthird line\n"
EDITORS = {"Vim": vim, "Neovim": nvim}


@pytest.fixture
def environment(home: Home, api: MessagesApi, project: Path, isolation_refused: str | None) -> dict[str, str]:
    """All that the editor, its bridge and the CLI are told; the CLI lies where people have it."""
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    home.trust(project)
    programs = home.path / ".local" / "bin"
    programs.mkdir(parents=True)
    (command,) = claude_command(NEWEST)
    (programs / "claude").symlink_to(command)
    return home.environment | {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": api.url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    }


class Stage:
    """One editor after the other, in a project with a poem."""

    def __init__(self, title: str, project: Path, environment: dict[str, str]) -> None:
        self.title = title
        self.project = project
        self._environment = environment
        self.poem = project / "poem.txt"
        self.poem.write_text(POEM, encoding="utf-8")
        self.editor = self.start()

    def start(self) -> Terminal:
        """An editor that shows the poem, attached, and with room for a session below it."""
        command = EDITORS[self.title](Path(self._environment["HOME"]))
        self.editor = Terminal([*command, str(self.poem)], self.project, self._environment)
        self.editor.wait_for("first line")
        self.command("let g:ide_bridge_session_window = 'botright 28'")
        self.command("set laststatus=2 noshowmode")
        return self.editor

    def command(self, text: str) -> None:
        """Type a command."""
        self.editor.type(f":{text}")
        self.editor.send("Enter")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        self.editor.send(*keys)

    def sees(self, text: str | re.Pattern[str], seconds: float = 40) -> None:
        """Wait until something is on the screen."""
        self.editor.wait_for(text, seconds)

    def bridges(self) -> list[dict[str, int]]:
        """The bridges that run."""
        told: list[dict[str, int]] = json.loads(self.run("status", "--json"))["bridges"]
        return told

    def run(self, *words: str) -> str:
        """What a command of ours prints."""
        done = subprocess.run(
            [*PROGRAM, *words], cwd=self.project, env=self._environment, capture_output=True, timeout=30
        )
        return done.stdout.decode()

    def close(self) -> None:
        """Nothing of it goes on."""
        self.editor.close()
        self.run("stop", "--all")


@pytest.fixture(params=list(EDITORS))
def stage(request: pytest.FixtureRequest, project: Path, environment: dict[str, str]) -> Iterator[Stage]:
    stage = Stage(request.param, project, environment)
    try:
        yield stage
    finally:
        stage.close()


def until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def ask_in_window(stage: Stage, question: str) -> None:
    stage.press("Enter")
    stage.sees("Ask Claude:")
    stage.editor.type(question)
    stage.press("Enter")


def test_a_question_is_asked_and_what_it_needs_is_allowed_in_the_editor(stage: Stage, api: MessagesApi) -> None:
    api.script("what is this?", Bash("mkdir made"), "It is a poem.")
    api.script("another folder", Bash("mkdir refused"), "As you like.")
    api.script("give it a title", Edit(stage.poem, "first line", "Title\nfirst line"), "It has one now.")

    stage.press("g", "g", "V", "j")
    stage.command("IdeBridgeAsk what is this?")
    stage.sees("❯ what is this?")
    stage.sees("poem.txt, lines 1 to 2:")
    stage.sees(re.compile(r"\? Bash: mkdir made \[\w+\]"))
    stage.sees("waiting for you")
    assert not (stage.project / "made").exists()
    stage.press("C-w", "j")
    stage.editor.press_until("a", f"✓ Bash: mkdir made: allowed by {stage.title}")
    stage.sees("It is a poem.")
    stage.sees(re.compile("— done: .* s"))
    stage.sees("session/")
    assert (stage.project / "made").is_dir()

    ask_in_window(stage, "another folder")
    stage.sees(re.compile(r"\? Bash: mkdir refused \[\w+\]"))
    stage.editor.press_until("d", "Deny it, because:")
    stage.editor.type("no more folders")
    stage.press("Enter")
    stage.sees(f"✗ Bash: mkdir refused: denied by {stage.title} (no more folders)")
    stage.sees("As you like.")
    assert not (stage.project / "refused").exists()

    ask_in_window(stage, "give it a title")
    stage.sees(re.compile(r"\? Edit: .*poem.txt \[\w+\]"))
    stage.editor.press_until("=", "ide-bridge://after/")
    stage.sees("Title")
    stage.press("q")
    stage.sees("= show the change")
    stage.editor.press_until("a", "It has one now.")
    assert stage.poem.read_text(encoding="utf-8") == "Title\n" + POEM


def test_a_session_is_resumed_after_its_bridge_was_killed_and_outlives_the_editor(
    stage: Stage, api: MessagesApi
) -> None:
    api.script("one folder", Bash("mkdir never"), "Never said.")
    api.script("are you there?", "I am back.")

    stage.command("IdeBridgeAsk one folder")
    stage.sees(re.compile(r"\? Bash: mkdir never \[\w+\]"))
    (bridge,) = stage.bridges()
    os.kill(bridge["pid"], signal.SIGKILL)
    stage.sees("! The session is lost: its bridge is gone.")
    stage.press("C-w", "j")
    ask_in_window(stage, "are you there?")
    stage.sees("I am back.")
    assert not (stage.project / "never").exists()

    stage.press("Escape")
    stage.command("qa!")
    until(lambda: not stage.bridges()[0]["editors"], "the editor is still attached")
    stage.editor.close()
    stage.start()
    stage.command("IdeBridgeSessions")
    stage.sees(re.compile("idle .* one folder"))
    stage.press("Enter")
    stage.sees("I am back.")
