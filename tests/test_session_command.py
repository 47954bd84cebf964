"""The session commands as scripts use them: a real bridge, and a CLI without a model."""

import json
import signal
import subprocess
from uuid import UUID, uuid4

import pytest

from ide_bridge.cli.session.listing import age
from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.session_stage import SessionStage

MKDIR = '@tool Bash {"command": "mkdir x"}'


@pytest.fixture
def bare():
    """A home in which no bridge runs."""
    with SessionStage() as stage:
        yield stage


@pytest.fixture
def stage(bare):
    bare.serve()
    return bare


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_start_begins_a_session_in_this_folder_and_says_how_to_watch_it(bare):
    stage = bare
    told = stage.session("start", "say", "hello")
    begun = told.removeprefix("Started session ")[:8]
    assert told == f"Started session {begun}. Watch it with: ide-bridge session attach {begun}\n"
    (session,) = stage.json("list")["sessions"]
    assert session["session"].startswith(begun)
    assert (session["folder"], session["title"], session["prompts"]) == (str(stage.project), "say hello", 1)
    assert stage.wait_until(session["session"], "idle")["version"] == "2.1.326"


def test_start_for_programs_prints_the_session(stage):
    session = stage.json("start", "--model", "opus", "--mode", "plan", "--title", "mine", "-d")
    assert UUID(session["session"])
    assert (session["title"], session["model"], session["mode"]) == ("mine", "opus", "plan")
    assert stage.json("list")["sessions"][0]["session"] == session["session"]


def test_a_prompt_may_come_on_the_standard_input(stage):
    session = stage.start("-", given="@text from\n@text stdin\n")
    stage.wait_until(session, "idle")
    assert "from" in stage.session("show", session)
    assert stage.failure("start", " ") == "The prompt is empty; say what is to be done, or leave it out."


def test_send_hands_over_a_prompt_and_with_wait_prints_the_answer(stage):
    session = stage.start()
    assert stage.session("send", session, "hello") == f"Sent to session {session[:8]}.\n"
    assert stage.session("send", session[:8], "--wait", "@text the answer\n@text in two parts") != ""
    assert stage.session("send", session[:4], "-w", "-", given="@text piped") == "piped\n"
    UUID(stage.json("send", session, "hello")["uuid"])
    result = stage.json("send", session, "--wait", "@text for programs")
    assert (result["kind"], result["ok"], result["text"]) == ("result", True, "for programs")
    assert stage.failure("send", session, "") == "The prompt is empty; say what is to be done."


def test_send_waits_for_its_own_turn_when_another_is_running(stage):
    session = stage.start("@wait 1\n@text the first")
    stage.wait_until(session, "working")
    assert stage.session("send", session, "--wait", "@text the second").endswith("the second\n")


def test_a_turn_that_fails_is_a_failure_of_send(stage):
    session = stage.start()
    assert stage.failure("send", session, "--wait", "@fail").startswith("The turn failed: ")
    done = stage.command("session", "send", session, "--wait", "--json", "@fail")
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False


def test_a_session_that_ends_before_it_answers_is_a_failure_of_send(stage):
    session = stage.start()
    told = stage.failure("send", session, "--wait", "@stderr out of memory\n@crash 3")
    assert told.startswith("The session ended before it had answered: ")


def test_while_send_waits_it_says_what_waits_for_the_user(stage):
    session = stage.start()
    waiting = subprocess.Popen(
        [*PROGRAM, "session", "send", session, "--wait", f"{MKDIR}\n@text done"],
        cwd=stage.project,
        env=stage.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    approval = stage.approval()
    assert stage.session("approve") == "Allowed: Bash: mkdir x\n"
    output, error = waiting.communicate(timeout=30)
    assert (waiting.returncode, output) == (0, "done\n")
    assert error == f"It waits for you: Bash: mkdir x – answer with: ide-bridge session approve {approval['id']}\n"


def test_approvals_are_listed_first_and_answered_by_their_id(stage):
    idle = stage.start("hello")
    asking = stage.start(f"{MKDIR}\n@text done")
    approval = stage.approval()
    assert (approval["tool"], approval["session"], approval["input"]) == ("Bash", asking, {"command": "mkdir x"})
    assert [each["session"] for each in stage.json("list")["sessions"]] == [asking, idle]
    table = stage.session("list").splitlines()
    assert table[1].startswith("waiting")
    assert table[2].split() == [approval["id"], "?", "Bash:", "mkdir", "x"]
    assert table[3].startswith("idle")
    answer = stage.json("approve", approval["id"])
    assert (answer["approval"], answer["outcome"]) == (approval["id"], "allowed")
    stage.wait_until(asking, "idle")
    assert stage.session("approvals") == "Nothing waits for an answer.\n"
    assert 'ran Bash {"command": "mkdir x"}' in stage.session("show", asking).replace("'", '"')


def test_where_nobody_looks_a_session_is_one_line_however_long(stage):
    stage.start("--title", "word " * 15)
    (_, line) = stage.session("list").splitlines()
    assert line.endswith(("word " * 15).strip())
    assert len(line) > 80


def test_deny_tells_the_reason(stage):
    session = stage.start(f"{MKDIR}\n@text done")
    approval = stage.approval()
    assert stage.session("deny", approval["id"], "not", "now") == "Denied: Bash: mkdir x\n"
    stage.wait_until(session, "idle")
    assert "not now" in stage.session("show", session)


def test_whoever_leaves_out_the_id_may_begin_with_the_reason(stage):
    session = stage.start(MKDIR)
    stage.approval()
    assert "No approval nope is open" in stage.failure("deny", "nope")
    stage.session("deny", "rather not")
    stage.wait_until(session, "idle")
    assert "rather not" in stage.session("show", session)


def test_without_an_id_several_approvals_are_listed_and_none_is_answered(stage):
    for command in ("one", "two"):
        stage.start(f'@tool Bash {{"command": "{command}"}}')
    stage.wait_for(lambda: stage.json("approvals")["approvals"], lambda found: len(found) == 2)
    for word in ("approve", "deny"):
        done = stage.command("session", word)
        assert (done.returncode, done.stdout) == (1, "")
        first, second, sentence = done.stderr.splitlines()
        assert ("Bash: one" in first, "Bash: two" in second) == (True, True)
        assert sentence == f"ide-bridge: 2 approvals are open; name one: ide-bridge session {word} ID"
    assert len(stage.json("approvals")["approvals"]) == 2


def test_an_answer_may_change_the_input_or_hold_for_the_session(stage):
    session = stage.start(f"{MKDIR}\n{MKDIR}\n@text done")
    assert stage.failure("approve", "--input", "[1]").startswith("The input of a tool is an object")
    assert stage.failure("approve", "--input", "{").startswith("The input is not JSON")
    first = stage.approval()
    stage.session("approve", first["id"], "--input", "-", given='{"command": "mkdir y"}')
    stage.wait_for(stage.approval, lambda found: found["id"] != first["id"])
    stage.session("approve", "--session")
    stage.wait_until(session, "idle")
    shown = stage.session("show", session, "--json")
    assert ("mkdir y" in shown, "mkdir x" in shown) == (True, True)
    stage.session("send", session, "--wait", MKDIR)


def test_questions_are_answered_by_their_text_or_number(stage):
    choices = [{"label": "Red", "description": ""}, {"label": "Blue", "description": ""}]
    asked = [{"question": name, "header": "", "options": choices, "multiSelect": False} for name in ("a=b?", "c?")]
    session = stage.start(f"@tool AskUserQuestion {json.dumps({'questions': asked})}\n@text thanks")
    stage.approval()
    assert stage.failure("approve").endswith("for each of these: 1. a=b?; 2. c?")
    assert "There is no such question: x=y" in stage.failure("approve", "--answer", "x=y")
    stage.session("approve", "--answer", "a=b?=Red", "--answer", "2=Blue")
    stage.wait_until(session, "idle")
    shown = stage.session("show", session, "--json")
    assert '\\"a=b?\\": \\"Red\\"' in shown
    assert '\\"c?\\": \\"Blue\\"' in shown


def test_nothing_to_approve_is_said(stage):
    assert stage.failure("approve") == "Nothing waits for an answer."
    told = stage.failure("approve", "abcd")
    assert told == "No approval abcd is open; see which are with: ide-bridge session approvals"


def test_interrupt_ends_the_turn_and_not_the_session(stage):
    session = stage.start("@wait 60")
    stage.wait_until(session, "working")
    assert stage.session("interrupt") == f"Interrupted session {session[:8]} (@wait 60).\n"
    stage.wait_until(session, "idle")
    stage.json("stop", session)
    assert (
        stage.failure("interrupt", session) == f"Session {session[:8]} is stopped; there is nothing to interrupt."
    )


def test_model_and_mode_are_switched(stage):
    session = stage.start()
    assert stage.session("model", session, "opus") == f"Session {session[:8]} uses opus from now on.\n"
    assert stage.json("mode", session, "acceptEdits")["mode"] == "acceptEdits"


def test_stop_ends_a_session_which_is_found_with_all_and_can_be_resumed(stage):
    session = stage.start("@text hello")
    stage.wait_until(session, "idle")
    told = (
        f"Stopped session {session[:8]} (@text hello); to continue it: ide-bridge session resume {session[:8]}\n"
    )
    assert stage.session("stop") == told
    none = "No session is running. Start one with: ide-bridge session start"
    assert stage.session("list") == f"{none}; 1 was stopped: ide-bridge session list --all\n"
    other = stage.start("--title", "other")
    assert stage.session("list").endswith("\n1 was stopped: ide-bridge session list --all\n")
    stage.session("stop", other)
    assert stage.session("list", "--all").splitlines()[1].startswith("stopped")
    assert stage.json("resume", session)["session"] == session
    assert stage.session("send", session, "-w", "@text again") == "again\n"
    assert stage.json("resume", session)["state"] == "idle"
    assert stage.session("resume", session[:8], "@text more").startswith("It is running already: session ")


def test_sending_to_a_stopped_session_continues_it_and_who_attaches_then_sees_all_of_it(stage):
    session = stage.start("@text hello")
    stage.wait_until(session, "idle")
    stage.session("stop")
    assert stage.session("send", session, "--wait", "@text again") == "again\n"
    with subprocess.Popen(
        [*PROGRAM, "session", "attach", "--json"],
        cwd=stage.project,
        env=stage.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as watching:
        events = lines(watching.stdout.readline())
        stage.session("send", session, "--wait", "@text once more")
        stage.session("stop")
        events += lines(watching.stdout.read())
    said = [event["text"] for event in events if event["kind"] == "said"]
    assert said == ["hello", "again", "once more"]


def test_a_fork_begins_as_a_copy(stage):
    session = stage.start("@text hello")
    stage.wait_until(session, "idle")
    fork = stage.json("fork", session[:8], "@text forked")
    assert fork["session"] != session
    assert fork["forkOf"] == session
    stage.wait_until(fork["session"], "idle")
    assert "hello" in stage.session("show", fork["session"])
    assert "forked" not in stage.session("show", session)
    prompt = lines(stage.session("show", session, "--json"))[0]
    cut = stage.json("fork", session, "--at", prompt["uuid"], "@text cut")["session"]
    stage.wait_until(cut, "idle")


def test_what_is_gone_with_its_bridge_is_found_in_the_transcripts_and_resumed(stage):
    session = stage.start("@text hello")
    stage.wait_until(session, "idle")
    stage.command("stop", "--all")
    assert stage.session("list") == "No session is running. Start one with: ide-bridge session start\n"
    assert stage.session("list", "--all").splitlines()[1].split()[0] == "past"
    (past,) = stage.json("list", "--all")["sessions"]
    assert (past["session"], past["state"], past["folder"]) == (session, "past", str(stage.project))
    assert "hello" in stage.session("show", session[:6])
    elsewhere = stage.folder("elsewhere")
    assert stage.json("resume", session, folder=elsewhere)["folder"] == str(stage.project)


def test_show_needs_no_bridge_and_shows_the_newest_page(stage):
    session = stage.start()
    for number in range(30):
        stage.session("send", session, "--wait", f"@text answer {number}.")
    stage.command("stop", "--all")
    shown = stage.session("show")
    assert shown.startswith("… for what was before: --all\n")
    assert shown.endswith("answer 29.\n")
    assert "answer 0." not in shown
    everything = stage.session("show", session, "--all")
    assert [f"answer {number}." in everything for number in range(30)] == [True] * 30
    assert everything.startswith("› @text answer 0.\n\nanswer 0.\n\n›")
    records = lines(stage.session("show", "--all", "--json"))
    assert [record["text"] for record in records if record["kind"] == "said"] == [
        f"answer {number}." for number in range(30)
    ]


def test_attach_streams_lines_until_the_session_ends(stage):
    session = stage.start(f'@text hello **you**\n@run Read {{"file_path": "a"}}\n{MKDIR}')
    watching = subprocess.Popen(
        [*PROGRAM, "session", "attach"],
        cwd=stage.project,
        env=stage.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    approval = stage.approval()
    stage.session("deny", approval["id"], "no")
    stage.wait_until(session, "idle")
    stage.session("stop")
    output, _ = watching.communicate(timeout=30)
    assert watching.returncode == 0
    assert "\x1b" not in output
    assert "\n\nhello **you**\n" in output
    assert "\n● Read: a\n  ⎿ ran Read" in output
    assert f"? Bash: mkdir x  [answer with: ide-bridge session approve {approval['id']}, or deny" in output
    assert "  → answered by terminal: denied: no\n" in output


def test_attach_for_programs_prints_one_event_a_line(stage):
    session = stage.start("@text hello")
    stage.wait_until(session, "idle")
    stage.session("stop")
    events = lines(stage.session("attach", session, "--json"))
    assert [event["kind"] for event in events if event["kind"] in ("prompt", "said", "result", "ended")] == [
        "prompt",
        "said",
        "result",
        "ended",
    ]
    numbers = [event["number"] for event in events]
    assert numbers == sorted(set(numbers))
    messages = lines(stage.session("attach", session, "--raw"))
    assert {"system", "assistant", "result"} <= {message["type"] for message in messages}
    assert "kind" not in messages[0]


def test_a_bridge_that_is_killed_while_someone_watches_is_one_sentence(bare):
    stage = bare
    with BridgeProcess(stage.project, stage.environment) as bridge:
        session = stage.start("@text hello\n@wait 60")
        watching = subprocess.Popen(
            [*PROGRAM, "session", "attach", "--json"],
            cwd=stage.project,
            env=stage.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert watching.stdout.readline()
        bridge.stop(signal.SIGKILL)
        _, error = watching.communicate(timeout=30)
    assert watching.returncode == 1
    again = f"to continue it: ide-bridge session resume {session[:8]}"
    assert error == f"ide-bridge: The bridge is gone, and session {session[:8]} with it; {again}\n"
    assert stage.json("resume")["session"] == session


def test_sessions_of_other_bridges_are_found_by_their_id(stage):
    other = stage.folder("other")
    session = stage.start("@text hello", folder=other)
    mine = stage.start("@wait 60")
    assert stage.session("send", session[:8], "--wait", "@text from afar") == "from afar\n"
    table = stage.session("list")
    assert str(other) in table
    assert str(stage.project) not in table
    assert stage.json("interrupt", folder=stage.project) == {"session": mine}
    assert stage.session("stop", session[:8]).startswith("Stopped session")


def test_an_unknown_session_is_one_sentence_that_says_how_to_list(stage):
    told = "There is no session abcd1234; see which there are with: ide-bridge session list --all"
    for words in (["send", "abcd1234", "x"], ["attach", "abcd1234"], ["stop", "abcd1234"], ["fork", "abcd1234"]):
        assert stage.failure(*words) == told
    stage.start()
    for words in (["show", "abcd1234"], ["resume", "abcd1234"], ["model", "abcd1234", "x"]):
        assert stage.failure(*words) == told
    assert stage.failure("resume", str(uuid4())).startswith("There is no session ")


def test_without_a_name_several_live_sessions_are_enumerated(stage):
    names = [stage.start("--title", title) for title in ("one", "two")]
    told = stage.failure("attach")
    assert told.startswith("Several sessions are live; name one of them: ")
    assert [f"{name[:8]} ({title})" in told for name, title in zip(names, ("one", "two"), strict=True)] == [
        True,
        True,
    ]


def test_without_any_session_it_is_said_what_to_do(stage):
    assert stage.failure("attach") == "No session is live; start one with: ide-bridge session start"
    assert stage.session("list") == "No session is running. Start one with: ide-bridge session start\n"
    assert stage.json("list", "--all") == {"sessions": []}
    assert stage.failure("resume").startswith("No session of this folder has ended")
    assert stage.failure("show").startswith("There is no conversation of ")


@pytest.mark.parametrize(
    "words",
    [[], ["nonsense"], ["send"], ["send", "abcd"], ["start", "--over", "smoke"], ["model", "abcd"], ["list", "x"]],
)
def test_wrong_usage_exits_2_with_the_usage_of_what_was_meant(stage, words):
    done = stage.command("session", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ide-bridge session")
    if words[1:]:
        assert done.stderr.startswith(f"usage: ide-bridge session {words[0]}")


def test_every_sub_command_has_its_own_help(stage):
    listed = stage.session("--help")
    commands = ("start", "list", "attach", "send", "approvals", "approve", "deny", "interrupt", "model", "mode")
    for name in (*commands, "resume", "fork", "stop", "show"):
        assert f"\n    {name}" in listed
        assert stage.session(name, "--help").startswith(f"usage: ide-bridge session {name}")


def test_a_cli_that_cannot_be_started_is_one_sentence(stage):
    told = stage.failure("start", "--cli", "no-such-cli", "x")
    assert "no-such-cli" in told


def test_control_characters_of_a_session_reach_no_terminal(stage):
    evil = "\x1b]0;owned\x07\u202etxt"
    session = stage.start("--title", evil, f"@text {evil}")
    stage.wait_until(session, "idle")
    for words in (["list"], ["show"], ["send", session, f"@text {evil}"], ["stop"]):
        assert not {"\x1b", "\x07", "\u202e"} & set(stage.session(*words))


def test_an_age_is_told_in_the_largest_unit_that_says_something(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_000_000.0)
    ages = [age(1_000_000 - seconds) for seconds in (0, 59, 60, 3600, 90000)]
    assert ages == ["0 s", "59 s", "1 min", "1 h", "1 d"]
