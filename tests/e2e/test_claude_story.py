"""One story with the real CLI and an editor behind the bridge: all that a user of Claude Code has in an IDE.

Each chapter stands alone. It looks at three things: the CLI's screen, what the model was sent, and the files.
Of the screen only those words are matched that tell a user what the bridge has done.
"""

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ide_bridge.model import Diagnostic, Diff
from tests.e2e.story import Story
from tests.fakes.claude_cli import NEWEST, OLD
from tests.fakes.memory_editor import span
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Edit, GetDiagnostics, Read, Write

pytestmark = pytest.mark.real_cli

POEM = "Über allen Gipfeln\nist Ruh,\nin allen Wipfeln\nspürest du\n"
OPENED = "Opened changes in Memory"
REFUSED = "The user doesn't want to proceed with this tool use."
DOWN_SECONDS = 4.0


@pytest.fixture(scope="module", params=[NEWEST, OLD])
def playing(request: pytest.FixtureRequest, isolation_refused: str | None) -> Iterator[Story]:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    with Story(request.param) as story:
        yield story


@pytest.fixture
def story(playing: Story) -> Story:
    playing.begin()
    return playing


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def proposed_edit(story: Story, file: Path) -> Diff:
    """The model proposes to put a line at the top, and the diff is in the editor and on the CLI's screen."""
    top = text_of(file).splitlines()[0]
    story.api.script(f"title {file.name}", Read(file), Edit(file, top, f"Title\n{top}"), f"Titled {file.name}.")
    story.submit(f"title {file.name}")
    diff = story.bridge.wait_for_diff(file)
    assert diff.contents == "Title\n" + text_of(file)
    story.cli.wait_for(OPENED)
    story.cli.wait_for(question(file))
    return diff


def question(file: Path) -> re.Pattern[str]:
    """What the terminal asks for as long as nobody has decided."""
    return re.compile(rf"Do you want to make this edit to\s+{re.escape(file.name)}\?")


def rejected(file: Path) -> re.Pattern[str]:
    return re.compile(rf"ejected update to\s+{re.escape(file.name)}")


# -- connected ------------------------------------------------------------------------------------------------


def test_connected(story: Story) -> None:
    (client,) = story.bridge.clients()
    told_of_itself = [client[key] for key in ("name", "version", "pid", "folder")]
    assert told_of_itself == ["claude-code", story.version, story.cli.pid, str(story.project)]
    story.cli.type("/ide")
    story.cli.wait_for("Manage IDE integrations")
    story.cli.press_until("Enter", re.compile(r"✔ *Memory|Memory *✔"))
    story.cli.send("Escape")


# -- selections and mentions ----------------------------------------------------------------------------------


def test_selection_is_shown_in_the_prompt_and_told_to_the_model(story: Story) -> None:
    file = story.file("gedicht é.txt", POEM)
    story.bridge.select(file, "Ruh,\nin allen", span(1, 4, 2, 8))
    story.cli.wait_for("⧉ 2 lines selected")
    story.submit("who wrote the selection")
    story.cli.wait_for(re.compile(r"Selected 2 lines from\s+gedicht é\.txt in Memory"))
    lines = "2 to 3" if story.version == NEWEST else "1 to 2"  # the old CLI counts from 0 here
    story.api.wait_until_told(f"The user selected the lines {lines} from {file}:\nRuh,\nin allen\n")


def test_what_the_editor_reported_before_the_cli_came(story: Story) -> None:
    file = story.file("early.txt", POEM)
    story.end_cli()
    story.bridge.select(file, "ist Ruh,\nin allen Wipfeln\nspürest du", span(1, 0, 3, 10))
    story.bridge.mention(file, 0, 0)
    story.begin_cli()
    story.cli.wait_for("⧉ 3 lines selected")
    story.cli.wait_for("@early.txt#L1")
    story.submit("that was early")


def test_open_file_without_a_selection(story: Story) -> None:
    file = story.file("open.txt", POEM)
    story.bridge.look_at(file)
    story.cli.wait_for("⧉ In open.txt")
    story.submit("which file is open")
    story.api.wait_until_told(f"The user opened the file {file} in the IDE.")
    story.bridge.shut(file)
    story.cli.wait_until_gone("⧉ In open.txt")


def test_mention_fills_the_prompt(story: Story) -> None:
    file = story.file("mentioned.txt", POEM.replace("Ruh", "Stille").replace("Wipfeln", "Bäumen"))
    story.bridge.mention(file, 1, 2)
    story.cli.wait_for("@mentioned.txt#L2-3")
    story.submit("please look there")
    story.api.wait_until_told("@mentioned.txt#L2-3 please look there")
    story.api.wait_until_told("Stille")
    story.api.wait_until_told("Bäumen")


# -- diffs ----------------------------------------------------------------------------------------------------


def test_edit_kept(story: Story) -> None:
    file = story.file("kept.txt", POEM)
    story.bridge.keep(proposed_edit(story, file))
    story.cli.wait_for("Titled kept.txt.")
    assert text_of(file) == "Title\n" + POEM
    story.bridge.wait_for_reload(file)


def test_edit_kept_with_changes(story: Story) -> None:
    file = story.file("changed.txt", POEM)
    diff = proposed_edit(story, file)
    story.bridge.keep(diff, diff.contents + "kaum einen Hauch;\n")
    story.cli.wait_for("Titled changed.txt.")
    assert text_of(file) == "Title\n" + POEM + "kaum einen Hauch;\n"
    assert "The user modified your proposed changes before accepting them" in story.api.told()


def test_edit_rejected(story: Story) -> None:
    file = story.file("rejected.txt", POEM)
    story.bridge.reject(proposed_edit(story, file))
    story.cli.wait_for(rejected(file))
    assert text_of(file) == POEM
    refused = story.api.told().count(REFUSED)
    story.api.script("then leave it", "Left as it was.")
    story.submit("then leave it")
    story.cli.wait_for("Left as it was.")
    assert story.api.told().count(REFUSED) > refused


def test_edit_answered_in_the_terminal(story: Story) -> None:
    file = story.file("terminal.txt", POEM)
    proposed_edit(story, file)
    story.cli.press_until("Enter", "Titled terminal.txt.")
    story.bridge.wait_for_no_diff(file)
    assert text_of(file) == "Title\n" + POEM
    story.bridge.wait_for_reload(file)


def test_edit_refused_in_the_terminal(story: Story) -> None:
    file = story.file("refused.txt", POEM)
    proposed_edit(story, file)
    story.cli.press_until("Escape", rejected(file))
    story.bridge.wait_for_no_diff(file)
    assert text_of(file) == POEM


def test_write_of_a_new_file(story: Story) -> None:
    file = story.project / "new é.txt"
    story.api.script("write a poem", Write(file, POEM), "Written.")
    story.submit("write a poem")
    diff = story.bridge.wait_for_diff(file)
    assert diff.contents == POEM
    story.cli.wait_for(OPENED)
    assert not file.exists()
    story.bridge.keep(diff)
    story.cli.wait_for("Written.")
    assert text_of(file) in {POEM, POEM.removesuffix("\n")}  # the CLI loses the last line end of a kept Write


# -- diagnostics ----------------------------------------------------------------------------------------------


def problem(file: Path, line: int, message: str) -> Diagnostic:
    return Diagnostic(str(file), span(line, 0, line, 3), "error", message, "speller")


def test_model_asks_for_problems(story: Story) -> None:
    here, there = story.file("here é.txt", POEM), story.file("there.txt", POEM)
    story.bridge.find(here, problem(here, 0, "no such mountain"))
    story.bridge.find(there, problem(there, 1, "no such silence"))
    story.api.script("problems here", GetDiagnostics(f"file://{here}"), "Asked for one.")
    story.submit("problems here")
    story.cli.wait_for("Asked for one.")
    assert "no such mountain" in story.api.told()
    assert "no such silence" not in story.api.told()
    story.api.script("problems everywhere", GetDiagnostics(), "Asked for all.")
    story.submit("problems everywhere")
    story.cli.wait_for("Asked for all.")
    assert "no such silence" in story.api.told()


def test_new_problem_is_told_after_an_edit_and_an_old_one_is_not(story: Story) -> None:
    file = story.file("checked.txt", POEM)
    old = problem(file, 0, "no such trees")
    story.bridge.find(file, old)
    story.bridge.find_later(file, old, problem(file, 0, "no such title"))
    story.bridge.keep(proposed_edit(story, file))
    story.cli.wait_for("Titled checked.txt.")
    story.cli.wait_for("Found 1 new diagnostic issue in 1 file")
    assert "checked.txt:\n  ✘ [Line 1:1] no such title (speller)" in story.api.told()
    assert "no such trees" not in story.api.told()


# -- several CLIs, and a bridge that comes and goes -----------------------------------------------------------


def test_two_clis_keep_to_themselves(story: Story) -> None:
    mine, other = story.file("mine.txt", POEM), story.file("inner/other.txt", POEM)
    second = story.start_cli(other.parent)
    try:
        story.bridge.mention(other)
        second.wait_for("@other.txt")
        story.bridge.mention(mine)
        story.cli.wait_for("@mine.txt")
        assert "mine.txt" not in second.screen()
        assert "other.txt" not in story.cli.screen()
        first_diff = proposed_edit(story, mine)
        story.api.script("second edits", Read(other), Edit(other, "Ruh", "Lärm"), "Second is done.")
        story.submit("second edits", second)
        story.bridge.reject(story.bridge.wait_for_diff(other))
        second.wait_for(rejected(other))
        assert story.bridge.diffs() == [first_diff]
        story.bridge.keep(first_diff)
        story.cli.wait_for("Titled mine.txt.")
        assert [text_of(mine), text_of(other)] == ["Title\n" + POEM, POEM]
    finally:
        second.close()


def test_killed_bridge_is_back_and_so_is_the_cli(story: Story) -> None:
    file = story.file("killed.txt", POEM)
    killed = story.bridge.ready
    proposed_edit(story, file)
    story.kill_bridge()
    time.sleep(DOWN_SECONDS)  # as long as the bridge is away: this is what is tested, not waited for
    story.start_bridge()
    assert {**story.bridge.ready, "pid": killed["pid"]} == killed
    story.wait_until_connected(story.cli)
    assert story.home.locks() == [story.bridge.lock]
    assert story.cli.shows(question(file))
    story.cli.press_until("Enter", "Titled killed.txt.")
    assert text_of(file) == "Title\n" + POEM
    story.bridge.select(file, POEM, span(1, 0, 4, 10))
    story.cli.wait_for("⧉ 4 lines selected")
    again = story.file("again.txt", POEM)
    story.bridge.keep(proposed_edit(story, again))
    story.cli.wait_for("Titled again.txt.")
    assert text_of(again) == "Title\n" + POEM


def test_lock_is_gone_after_stop(story: Story) -> None:
    assert story.home.locks() == [story.bridge.lock]
    assert json.loads(text_of(story.bridge.lock))["ideName"] == "Memory"
    assert story.bridge.stop(signal.SIGTERM) == 0
    assert story.home.locks() == []
    story.api.script("still there", "As ever.")
    story.submit("still there")
    story.cli.wait_for("As ever.")
