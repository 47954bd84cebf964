"""Questions from a real Emacs, to the real CLI through a real bridge; only the model is scripted."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ide_bridge.model import Position
from tests.fakes.bridge_process import PROGRAM
from tests.fakes.claude_cli import KEY, NEWEST, Home, claude_command
from tests.fakes.emacs import EmacsPerson, emacs, lisp
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash, Edit

pytestmark = pytest.mark.real_cli

BUFFER = "(car (hash-table-values ide-bridge--session-buffers))"
PATIENCE = 40.0


@pytest.fixture
def environment(home: Home, api: MessagesApi, project: Path, isolation_refused: str | None) -> dict[str, str]:
    """All that the bridge and its CLI are told; the CLI lies where people have it."""
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    home.trust(project)
    (project / "one.py").write_text("first = 1\nsecond = 2\n", encoding="utf-8")
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


@pytest.fixture
async def person(environment: dict[str, str], project: Path) -> AsyncIterator[EmacsPerson]:
    """Somebody at an Emacs whose bridge is started by its plug-in."""
    async with emacs(project, environment, PROGRAM) as person:
        await person.open(str(project / "one.py"))
        try:
            yield person
        finally:
            stop = await asyncio.create_subprocess_exec(*PROGRAM, "stop", str(project), env=environment)
            await stop.wait()


async def seen(person: EmacsPerson, text: str) -> None:
    """Wait until something stands in the session's buffer."""
    there = f"(string-search {lisp(text)} (with-current-buffer {BUFFER} (buffer-string)))"
    await person.until(f"(and (featurep 'ide-bridge-session) {BUFFER} {there})", PATIENCE)


async def press(person: EmacsPerson, title: str, keys: str) -> None:
    """Wait for a question, and press keys in the session's window."""
    await seen(person, f"? {title}")
    await person.until("ide-bridge--approvals")
    await person.until("(< ide-bridge--moment (- (float-time) (plist-get (car ide-bridge--approvals) :came)))")
    await person.command(f"(pop-to-buffer {BUFFER}) (goto-char (point-max))")
    person.keys(keys)


async def idle(person: EmacsPerson, turns: int) -> None:
    """Wait for the end of so many turns."""
    ends = f'(with-current-buffer {BUFFER} (how-many "^── " (point-min) (point-max)))'
    await person.until(f"(= {turns} {ends})", PATIENCE)
    await person.until(f'(equal "idle" (buffer-local-value \'ide-bridge--session-state {BUFFER}))', PATIENCE)


async def shown(person: EmacsPerson) -> str:
    text = await person.eval(f"(with-current-buffer {BUFFER} (buffer-string))")
    assert isinstance(text, str)
    return text


async def test_a_question_from_emacs_is_answered_and_approved_there(
    person: EmacsPerson, api: MessagesApi, project: Path
) -> None:
    api.script("what is this?", Bash("mkdir made"), "It is *one*.")
    api.script("another folder", Bash("mkdir refused"), "As you like.")
    api.script("change it", Edit(project / "one.py", "first = 1", "first = 11"), "Changed.")
    await person.select(Position(0, 0), Position(1, 0))
    await person.command('(ide-bridge-ask "what is this?")')
    await press(person, "Bash: mkdir made", "a")
    await idle(person, 1)
    text = await shown(person)
    assert "```\nfirst = 1\n```" in text
    assert "✓ Bash: mkdir made" in text
    assert "was allowed by Emacs" in text
    assert text.count("It is *one*.") == 1
    assert (project / "made").is_dir()

    await person.command('(ide-bridge-ask "another folder")')
    await press(person, "Bash: mkdir refused", "d")
    await person.until("(active-minibuffer-window)")
    person.keys("no more folders\r")
    await idle(person, 2)
    assert "was denied by Emacs: no more folders" in await shown(person)
    assert "✗ Bash: mkdir refused" in await shown(person)
    assert not (project / "refused").exists()

    await person.command('(ide-bridge-ask "change it")')
    await press(person, "Edit: one.py", "=")
    await person.until("(derived-mode-p 'diff-mode)")
    assert "+first = 11" in await person.eval("(buffer-string)")
    person.keys("a")
    await idle(person, 3)
    assert (project / "one.py").read_text(encoding="utf-8") == "first = 11\nsecond = 2\n"
    assert await person.eval("(hash-table-count ide-bridge--session-buffers)") == 1


async def test_another_input_is_run_instead_and_a_turn_is_broken_off(
    person: EmacsPerson, api: MessagesApi, project: Path
) -> None:
    api.script("make a folder", Bash("mkdir wrong"), "There it is.")
    api.script("take your time", Bash("touch begun && sleep 300"), "Never said.")
    await person.command('(ide-bridge-ask "make a folder")')
    await press(person, "Bash: mkdir wrong", "e")
    await person.until('(string-prefix-p "*ide-bridge edit" (buffer-name))')
    await person.command('(search-forward "wrong") (replace-match "right")')
    person.keys("\x03\x03")
    await idle(person, 1)
    assert (project / "right").is_dir()
    assert not (project / "wrong").exists()
    await person.command('(ide-bridge-ask "take your time")')
    await press(person, "Bash: touch begun", "a")
    async with asyncio.timeout(PATIENCE):
        while not (project / "begun").exists():
            await asyncio.sleep(0.01)
    person.keys("\x03\x03")
    await idle(person, 2)
    assert "Never said." not in await shown(person)


async def test_a_session_goes_on_after_its_bridge_was_killed(
    person: EmacsPerson, api: MessagesApi, project: Path
) -> None:
    api.script("wait for me", Bash("mkdir never"), "Never said.")
    api.script("are you there?", "I am back.")
    await person.command('(ide-bridge-ask "wait for me")')
    await seen(person, "? Bash: mkdir never")
    os.kill(await person.eval("(ide-bridge--bridge (car ide-bridge--links))"), signal.SIGKILL)
    await seen(person, "The session is lost")
    await person.until("(null ide-bridge--approvals)")
    await person.command(f"(pop-to-buffer {BUFFER})")
    person.keys("\r")
    await person.until("(active-minibuffer-window)")
    person.keys("are you there?\r")
    await seen(person, "I am back.")
    text = await shown(person)
    assert "is not wanted any more" in text
    assert "wait for me" in text
    assert not (project / "never").exists()
    assert await person.eval("(hash-table-count ide-bridge--session-buffers)") == 1


async def test_a_session_lives_longer_than_the_emacs_that_asked(
    person: EmacsPerson, environment: dict[str, str], api: MessagesApi, project: Path
) -> None:
    api.script("stay", Bash("mkdir later"), "Still here.")
    await person.command('(ide-bridge-ask "stay")')
    await seen(person, "? Bash: mkdir later")
    await person.quit()
    async with emacs(project, environment, PROGRAM) as another:
        await another.until("(bound-and-true-p ide-bridge--approvals)")
        await another.command("(ide-bridge-sessions)")
        await another.until('(string-search "waiting" (buffer-string))')
        await another.command("(goto-char (point-min))")
        another.keys("\r")
        await press(another, "Bash: mkdir later", "a")
        await idle(another, 1)
        assert "Still here." in await shown(another)
    assert (project / "later").is_dir()
