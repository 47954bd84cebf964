"""Examining editors: a program that conforms passes, and each that does not is told in words what is wrong."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ide_bridge.conform import host, people, record, stages
from ide_bridge.conform.checks import CHECKS
from ide_bridge.conform.examine import run_check
from ide_bridge.conform.people import Hand, Nobody
from ide_bridge.conform.person import Cannot
from ide_bridge.conform.shapes import ANSWERS, EVENTS, REQUESTS, misfit
from ide_bridge.conform.stages import ProgramStage
from ide_bridge.conform.subject import Subject
from ide_bridge.conform.verdict import Check, Group, Nonconforming
from ide_bridge.errors import SetupProblem
from ide_bridge.model import Position
from tests.fakes import plugin_process
from tests.fakes.memory_person import BufferEditor, MemoryPerson
from tests.fakes.surroundings import at_home

EXAMPLE = [sys.executable, plugin_process.__file__]
PROGRAM = str(Path(sys.executable).with_name("ide-bridge"))
NAMED = {check.name: check for check in CHECKS}

FAULTS = {
    "bytes-columns": ("selection:emoji", "'wide' selected from 1:3 to 1:7 .* 'wide' selected from 1:9 to 1:13"),
    "utf16-columns": ("diagnostics:columns", "columns 0 to 2, .* it is at 1:0 to 1:3"),
    "string-ids": ("introduction:hello", "the id 'one'; ids are integers"),
    "keeps-on-quit": ("ending:quit-in-the-middle", "no diff to be kept by quitting"),
    "tells-closed-diffs": ("diffs:closed-from-outside", "because the user made none; diff .* rejected came"),
    "overwrites-dirty": ("reloading:dirty", "Expected the unsaved text .* it is None"),
    "closes-dirty": ("files:close-unsaved-file", "which has unsaved changes, to stay open"),
    "writes-kept-file": ("diffs:kept", "left to the client; the editor has written it"),
    "adds-line-end": ("diffs:no-final-line-end", r"Expected the text 'one\\n2'; it is 'one\\n2\\n'"),
    "loses-crlf": ("diffs:crlf", r"Expected the text 'one\\r\\n2.*; it is 'one\\n2"),
    "lists-unnamed": ("files:unnamed", "openFiles .* the path '' is not absolute"),
    "steals-focus": ("files:open-file-without-focus", "notes.txt to be the current file still; .*other.txt"),
    "ignores-unknown-requests": ("manners:unknown-request", "Expected an answer to somethingNewer; none came"),
    "answers-unknown-requests": ("manners:unknown-request", "Expected the error -32601; a result came"),
    "misspells-event": ("files:opened", "notification 'filefocused', which the link does not have"),
    "misses-a-field": ("files:opened", "openFiles .* missing required field 'dirty'"),
    "relative-paths": ("files:opened", "the path 'notes.txt' is not absolute"),
    "lines-from-one": ("mentions:mentioned-lines", "with the lines 1 to 2; .* lines 2 to 3"),
    "decides-twice": ("diffs:kept", "Expected one decision about diff .* kept and kept came"),
    "mixes-up-diffs": ("diffs:two-at-once", r"Expected the text 'first\\n'; it is 'second\\n'"),
    "crashes-on-diff": ("diffs:kept", "Expected an answer to showDiff; the other end was gone"),
    "waits-for-the-user": ("diffs:kept", "Expected an answer to showDiff; none came within"),
    "out-of-order": ("manners:burst", "the answers in the order of the questions; they came in another"),
}
STILLBORN = {
    "wrong-version": "speaks version 2 of the link, and this is version 1",
    "prints": "cannot be read as messages with Content-Length headers",
    "no-hello": "Expected hello; nothing came within",
}


@pytest.fixture
def impatient(monkeypatch):
    """Those who never answer are not waited for."""
    for module in (record, host):
        monkeypatch.setattr(module, "EVENT_SECONDS", 0.5)
    monkeypatch.setattr("ide_bridge.editor.link.SHOW_SECONDS", 0.5)
    monkeypatch.setattr(stages, "HELLO_SECONDS", 1.0)


@pytest.fixture
async def stage_of(tmp_path):
    """Makes the stage of an example that does something wrong, or nothing."""
    made = []

    def make(*words, person=None):
        made.append(ProgramStage([*EXAMPLE, *words], tmp_path, person or Nobody()))
        return made[-1]

    yield make
    for stage in made:
        await stage.close()


def conform(*arguments, **surroundings):
    """The command, as an adapter's author runs it."""
    return subprocess.run(
        [PROGRAM, "conform", *arguments], capture_output=True, encoding="utf-8", timeout=100, **surroundings
    )


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", FAULTS)
async def test_what_is_wrong_is_said_in_words(stage_of, fault):
    name, words = FAULTS[fault]
    outcome = await run_check(await stage_of(fault).subject(), NAMED[name])
    assert outcome.verdict == "wrong"
    assert re.search(words, outcome.why), outcome.why


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", STILLBORN)
async def test_who_does_not_introduce_himself_is_not_examined(stage_of, fault):
    with pytest.raises(Nonconforming, match=STILLBORN[fault]):
        await stage_of(fault).subject()


def test_every_fault_of_the_example_is_found_by_a_check():
    assert set(plugin_process.WRONG) == {*FAULTS, *STILLBORN}


async def test_a_program_that_has_crashed_is_started_again_for_the_next_check(stage_of):
    stage = stage_of("crashes-on-diff")
    first = await stage.subject()
    assert (await run_check(first, NAMED["diffs:kept"])).verdict == "wrong"
    second = await stage.subject()
    assert second is not first
    assert (await run_check(second, NAMED["files:opened"])).verdict == "ok"


async def test_what_nobody_can_do_is_not_checked(stage_of):
    subject = await stage_of("alone").subject()
    outcome = await run_check(subject, NAMED["selection:emoji"])
    assert outcome.verdict == "not checked"
    assert "does not answer conform/open" in outcome.why
    assert (await run_check(subject, NAMED["files:odd-names"])).verdict == "ok"


async def test_what_the_program_cannot_do_a_person_is_asked_for(stage_of):
    asked = []

    def skip(question):
        asked.append(question)
        return "s"

    subject = await stage_of("alone", person=Hand(skip)).subject()
    outcome = await run_check(subject, NAMED["diffs:kept"])
    assert (outcome.verdict, outcome.why) == ("not checked", "It was skipped.")
    assert re.fullmatch(r"In the editor: keep diff \d+\. Press Enter when done, or s to skip\. ", asked[0])


async def test_a_person_is_told_lines_and_characters_as_people_count_them():
    asked = []
    person = Hand(lambda question: asked.append(question) or "3:7")
    await person.select(Position(0, 2), Position(1, 0))
    assert "from line 1, character 3, up to but not including line 2, character 1" in asked[0]
    assert await person.cursor() == Position(2, 6)
    with pytest.raises(Cannot, match="by hand"):
        await person.layout()


async def test_a_feature_that_is_missing_is_a_reason_not_to_check(stage_of):
    subject = await stage_of().subject()
    subject.editor.features = frozenset({"selection"})
    outcome = await run_check(subject, NAMED["diffs:kept"])
    assert (outcome.verdict, outcome.why) == ("not checked", "Example does not have the feature diff.")


async def test_an_accident_of_an_adapter_is_told(tmp_path):
    class Broken(BufferEditor):
        async def open_files(self):
            raise RuntimeError("no such thing")

    editor = Broken()
    subject = Subject(editor, MemoryPerson(editor), tmp_path)
    outcome = await run_check(subject, NAMED["files:several-windows"])
    await subject.close()
    assert (outcome.verdict, outcome.why) == (
        "wrong",
        "Expected an answer; RuntimeError was raised: no such thing",
    )


def test_every_check_has_a_name_of_its_own_and_a_sentence():
    assert len(NAMED) == len(CHECKS)
    assert all(re.fullmatch(r"[A-Z].*\.", check.sentence) for check in CHECKS)
    assert CHECKS[-1].name == "ending:quit-in-the-middle"


def test_a_group_takes_what_it_needs_and_what_a_check_needs_besides():
    group = Group("group", "diff", link=True)

    @group.check("dirty")
    async def some_check(_subject):
        """A sentence."""

    expected = Check("group:some-check", "A sentence.", some_check, frozenset({"diff", "dirty"}), link=True)
    assert group.checks == [expected]


def test_all_messages_of_the_link_have_a_shape():
    assert set(plugin_process.VERBS) == set(ANSWERS)
    assert set(EVENTS) == {
        *("selectionChanged", "fileOpened", "fileClosed", "fileSaved", "fileFocused"),
        *("diagnosticsChanged", "mentioned", "diffDecided"),
    }
    assert set(REQUESTS) == {"hello", "status", "share", "choose"}


@pytest.mark.parametrize(
    ("event", "params", "wrong"),
    [
        ("mentioned", {"path": "/a", "startLine": 1}, "come together or not at all"),
        ("mentioned", {"path": "/a", "startLine": -1, "endLine": 2}, ">= 0"),
        ("diffDecided", {"diff": 1, "decision": "kept"}, "comes with its contents"),
        ("diffDecided", {"diff": "1", "decision": "rejected"}, "Expected 'int', got 'str'"),
        ("fileOpened", {"path": "a"}, "not absolute"),
        ("fileOpened", {"path": "/a"}, ""),
        ("somethingElse", {}, ""),
    ],
)
def test_what_does_not_fit_is_said(event, params, wrong):
    said = misfit(EVENTS, event, json.dumps(params).encode())
    assert wrong in said
    assert bool(wrong) == bool(said)


def test_the_command_tells_every_check_and_the_sum():
    done = conform("--", *EXAMPLE)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [check.name for check in CHECKS]
    assert lines[-1] == f"{len(CHECKS)} ok, 0 wrong, 0 not checked."
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_fails_when_something_is_wrong_and_shows_the_demand():
    done = conform("--only", "diffs:crlf", "--", *EXAMPLE, "loses-crlf")
    assert done.returncode == 1
    assert "CRLF line ends of the proposed text are kept." in done.stdout
    assert done.stdout.endswith("0 ok, 2 wrong, 0 not checked.\n")


def test_the_command_tells_programs_the_same_as_json():
    done = conform("--json", "--only", "diffs:no-final-line-end", "--", *EXAMPLE, "adds-line-end")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert (told["editor"], told["conforms"], told["ok"], told["wrong"]) == ("Example", False, 0, 1)
    assert told["checks"][0]["why"] == r"Expected the text 'one\n2'; it is 'one\n2\n'."


def test_the_command_says_what_the_program_said():
    done = conform("--", *EXAMPLE, "wrong-version")
    assert done.returncode == 1
    assert "The program said:\n  The plug-in speaks version 2 of the link" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("ide-bridge: Expected hello as the link has it.")


def test_files_of_this_folder_mean_the_same_to_the_program():
    script = Path(plugin_process.__file__)
    done = conform("--only", "introduction", "--", sys.executable, script.name, cwd=script.parent)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 ok, 0 wrong, 0 not checked.")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "COMMAND"),
        (["--", "no-such-program"], 1, "There is no program called no-such-program"),
        (["--only", "nonsense", "--", *EXAMPLE], 1, "There is no check with nonsense in its name."),
        (["--by-hand", "--", *EXAMPLE], 1, "run it in a terminal"),
    ],
)
def test_wrong_usage_is_explained(arguments, code, sentence):
    done = conform(*arguments, stdin=subprocess.DEVNULL)
    assert done.returncode == code
    assert sentence in done.stderr


def test_an_editor_whose_plugin_attaches_itself_is_examined_and_leaves_nothing_behind():
    with at_home() as home:
        environment = {**os.environ, **home.environment}
        before = sorted(home.path.rglob("*"))
        done = conform("--editor", "--only", "files", "--", *EXAMPLE, "attach", PROGRAM, env=environment)
        assert sorted(home.path.rglob("*")) == before
    assert done.stdout.splitlines()[-1].endswith(" ok, 0 wrong, 0 not checked."), done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.usefixtures("impatient")
async def test_an_editor_that_does_not_attach_is_told_what_was_expected(tmp_path):
    with at_home() as home:
        stage = stages.EditorStage(["/bin/sleep", "60"], tmp_path, home.environment, Nobody())
        with pytest.raises(Nonconforming, match=r"start `ide-bridge attach` in .*; none had attached after"):
            await stage.subject()
        await stage.close()


async def test_a_program_that_cannot_be_started_is_a_matter_of_setup(tmp_path):
    stage = ProgramStage([str(tmp_path / "missing")], tmp_path, Nobody())
    with pytest.raises(SetupProblem, match="cannot be started"):
        await stage.subject()
    await stage.close()


async def test_a_program_that_does_not_act_in_time_is_not_waited_for(stage_of, monkeypatch):
    monkeypatch.setattr(people, "ACT_SECONDS", 0.2)
    subject = await stage_of().subject()
    monkeypatch.setattr(subject.line.connection, "request", _never)
    with pytest.raises(Cannot, match="did not answer conform/save within"):
        await subject.person.save()


async def _never(_method, _params, *, timeout):
    raise TimeoutError
