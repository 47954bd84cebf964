"""The live view of a session as a person uses it: a real terminal, a real bridge, a CLI without a model."""

import os
import re
import signal

import psutil
import pytest

from tests.fakes.session_stage import SessionStage

MKDIR = '@tool Bash {"command": "mkdir x"}'
KEYS = "[y] once"
TRUTH = "echo code $?; stty -a | tr ' ' '\\n' | grep -xE -- '-?(icanon|echo|icrnl)' | tr '\\n' ' '; sleep 60"
AS_BEFORE = re.compile(r"icrnl\s+icanon\s+echo")


@pytest.fixture
def stage():
    with SessionStage() as stage:
        yield stage


@pytest.fixture
def bridge(stage):
    return stage.serve()


def idle(terminal):
    terminal.wait_for(re.compile(r"^idle · Ctrl-D leaves\n›", re.MULTILINE))


def submit(terminal, text):
    terminal.type(text)
    terminal.wait_for(f"› {text}")
    terminal.send("Enter")


def everything(terminal):
    """All that was ever printed, what has scrolled away too."""
    return terminal._tmux("capture-pane", "-p", "-J", "-S", "-")


def program_in(terminal):
    """The process of the command in the terminal's shell."""
    shell = psutil.Process(terminal.pid)
    return next(child.pid for child in shell.children(recursive=True) if "session" in child.cmdline())


def test_a_session_is_started_watched_prompted_and_left(stage):
    terminal = stage.shell("ide-bridge session start '@text hello **you**'; echo code $?; sleep 60")
    terminal.wait_for("Started a bridge for ")
    terminal.wait_for("hello you")
    idle(terminal)
    submit(terminal, "and now")
    terminal.wait_for("fake answer: and now")
    idle(terminal)
    terminal.send("C-d")
    screen = terminal.wait_for("code 0")
    (session,) = stage.json("list")["sessions"]
    begun = session["session"][:8]
    assert f"Session {begun} goes on. Come back with: ide-bridge session attach {begun}\n" in screen
    assert f"End it with: ide-bridge session stop {begun}\n" in screen
    assert "›\n" not in screen
    assert session["state"] == "idle"
    again = stage.terminal("attach")
    screen = again.wait_for(
        re.compile(r"hello you(.|\n)*› and now(.|\n)*fake answer: and now(.|\n)*^idle", re.MULTILINE)
    )
    assert screen.count("hello you") == 1
    stage.session("stop")
    again.wait_for("Continue it with: ide-bridge session resume ")


def test_what_is_typed_is_not_torn_by_what_is_streamed(stage, bridge):
    terminal = stage.terminal("start", "@events 600 300")
    terminal.wait_for("w20 ")
    terminal.type("typed while it streams")
    terminal.wait_for("› typed while it streams")
    terminal.send("C-a", "M-f")
    terminal.type(" slowly")
    terminal.wait_for("› typed slowly while it streams")
    terminal.wait_for("done in", seconds=60)
    assert terminal.screen().count("typed slowly while it streams") == 1
    words = re.findall(r"w\d+", everything(terminal))
    assert words[-600:] == [f"w{number}" for number in range(600)]
    terminal.send("Enter")
    terminal.wait_for("fake answer: typed slowly while it streams")


@pytest.mark.usefixtures("bridge")
def test_an_approval_is_answered_with_one_key(stage):
    terminal = stage.terminal("start", f"{MKDIR}\n{MKDIR}\n@text done")
    terminal.wait_for(re.compile(r"\? Claude wants to use Bash\n  mkdir x(.|\n)*\[y\] once"))
    terminal.type("y")
    terminal.wait_for("→ allowed")
    terminal.wait_for(KEYS)
    terminal.type("n")
    terminal.type("rather not")
    terminal.wait_for("Tell Claude why (or nothing): rather not")
    terminal.send("Enter")
    terminal.wait_for("→ denied: rather not")
    terminal.wait_for("done in")
    shown = stage.session("show", stage.json("list")["sessions"][0]["session"])
    assert ("ran Bash" in shown, "rather not" in shown) == (True, True)


@pytest.mark.usefixtures("bridge")
def test_keys_answer_nothing_while_someone_types_or_pastes(stage):
    terminal = stage.terminal("start")
    idle(terminal)
    session = stage.json("list")["sessions"][0]["session"]
    terminal.type("maybe")
    terminal.wait_for("› maybe")
    stage.session("send", session, MKDIR)
    terminal.wait_for(re.compile(r"^waiting [1-9]\d* s · 1 question waiting, Tab answers", re.MULTILINE))
    terminal.type(" yes")
    terminal.wait_for("› maybe yes")
    assert len(stage.json("approvals")["approvals"]) == 1
    terminal.send("C-u")
    terminal.wait_for(KEYS)
    terminal._tmux("set-buffer", "--", "y\ny\n")
    terminal._tmux("paste-buffer", "-p")
    terminal.wait_for(re.compile(r"› y\ny$", re.MULTILINE))
    assert len(stage.json("approvals")["approvals"]) == 1
    terminal.send("Tab")
    terminal.wait_for(KEYS)
    terminal.type("w")
    terminal.wait_for("1 question waiting, Tab answers")
    terminal.send("Tab")
    terminal.wait_for(KEYS)
    terminal.type("y")
    terminal.wait_for("→ allowed")


@pytest.mark.usefixtures("bridge")
def test_an_approval_that_is_answered_elsewhere_disappears(stage):
    terminal = stage.terminal("start", f"{MKDIR}\n@text done")
    terminal.wait_for(KEYS)
    stage.session("approve")
    terminal.wait_for("→ answered by terminal: allowed")
    terminal.wait_until_gone(KEYS)
    terminal.wait_for("done in")


@pytest.mark.usefixtures("bridge")
def test_a_question_is_answered_with_numbers(stage):
    choices = '[{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]'
    question = f'{{"question": "Which colour?", "header": "", "options": {choices}, "multiSelect": false}}'
    terminal = stage.terminal("start", f'@tool AskUserQuestion {{"questions": [{question}]}}')
    terminal.wait_for(re.compile(r"  Which colour\?\n  1\. Red  warm\n  2\. Blue  cold(.|\n)*\[1-2\] choose"))
    terminal.type("2")
    terminal.wait_for("→ allowed")
    assert '"Which colour?": "Blue"' in stage.session("show", "--json").replace("\\", "")


@pytest.mark.usefixtures("bridge")
def test_an_input_is_edited_in_the_users_editor(stage):
    editor = stage.home.path / "bin" / "my-editor"
    editor.write_text('#!/bin/sh\nsed -i "s/$1/$2/" "$3"\n', encoding="utf-8")
    editor.chmod(0o755)
    prompt = '@tool Write {"file_path": "a", "content": "hello"}'
    terminal = stage.terminal("start", f"{prompt}\n{prompt}", EDITOR=f"{editor} hello goodbye")
    terminal.wait_for(KEYS)
    terminal.type("e")
    terminal.wait_for(re.compile(r'ran Write .*"goodbye"'))
    other = stage.terminal("attach", EDITOR="no-such-editor")
    other.wait_for(KEYS)
    other.type("e")
    other.wait_for("Your editor 'no-such-editor' cannot be started; name another one in $EDITOR.")
    other.wait_for(KEYS)


@pytest.mark.parametrize("key", ["Escape", "C-c"])
@pytest.mark.usefixtures("bridge")
def test_a_turn_is_interrupted(stage, key):
    terminal = stage.terminal("start", "@text hello\n@wait 60")
    terminal.wait_for(re.compile(r"^working \d+ s · Esc interrupts", re.MULTILINE))
    terminal.send(key)
    terminal.wait_for("interrupted")
    idle(terminal)
    terminal.type("unsent")
    terminal.wait_for("› unsent")
    terminal.send("C-c")
    idle(terminal)
    terminal.send("C-c")
    terminal.wait_for("goes on.")


@pytest.mark.usefixtures("bridge")
def test_escape_at_an_approval_interrupts_the_turn(stage):
    terminal = stage.terminal("start", MKDIR)
    terminal.wait_for(KEYS)
    terminal.send("Escape")
    terminal.wait_for("→ no longer asked")
    idle(terminal)


def test_a_bridge_that_dies_is_one_sentence_and_the_terminal_is_as_before(stage, bridge):
    terminal = stage.shell(f"ide-bridge session start '@text hello'; {TRUTH}")
    terminal.wait_for("hello")
    idle(terminal)
    bridge.stop(signal.SIGKILL)
    screen = terminal.wait_for("code 1")
    assert re.search(
        r"ide-bridge: The bridge is gone, and session \w+ with it; to continue it: ide-bridge session resume",
        screen,
    )
    terminal.wait_for(AS_BEFORE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)])
@pytest.mark.usefixtures("bridge")
def test_a_signal_leaves_the_terminal_as_before(stage, number, code):
    terminal = stage.shell(f"ide-bridge session start; {TRUTH}")
    idle(terminal)
    terminal.type("half a li")
    terminal.wait_for("half a li")
    os.kill(program_in(terminal), number)
    terminal.wait_for(f"code {code}")
    terminal.wait_for(AS_BEFORE)
    assert "half" not in terminal.screen()


@pytest.mark.usefixtures("bridge")
def test_it_can_be_stopped_and_continued_like_any_program(stage):
    terminal = stage.shell("bash --norc --noprofile -i")
    terminal.wait_for(re.compile("[$#]"))
    terminal.type("ide-bridge session start")
    terminal.send("Enter")
    idle(terminal)
    terminal.type("half a li")
    terminal.wait_for("› half a li")
    terminal.send("C-z")
    terminal.wait_for("Stopped")
    terminal.type("stty -a | grep -o -- '-*icanon'; fg")
    terminal.send("Enter")
    terminal.wait_for(re.compile(r"^icanon", re.MULTILINE))
    terminal.wait_for("› half a li")
    terminal.type("ne")
    terminal.send("Enter")
    terminal.wait_for("fake answer: half a line")


@pytest.mark.usefixtures("bridge")
def test_a_window_that_changes_its_size_leaves_one_line_to_type_on(stage):
    # Rows at the very top would be moved by tmux to where nobody can take them away.
    terminal = stage.terminal("start", "\n".join(["@text hello"] * 10))
    terminal.wait_for("done in")
    idle(terminal)
    text = "a line that is long enough to need a second row when the window becomes narrow"
    terminal.type(text)
    terminal.wait_for(f"› {text}")
    terminal._tmux("resize-window", "-x", "50", "-y", "20")
    terminal.wait_for(re.compile(r"› a line that is long enough to need a second\s+row"))
    terminal.type("!")
    terminal.wait_for("narrow!")
    shown = everything(terminal)
    assert (shown.count("› a line"), shown.count("idle")) == (1, 1)


@pytest.mark.usefixtures("bridge")
def test_a_stopped_session_is_continued_by_the_next_prompt(stage):
    session = stage.start("@text hello")
    stage.wait_until(session, "idle")
    stage.session("stop")
    terminal = stage.terminal("attach", session[:8])
    terminal.wait_for("stopped, the next prompt continues it")
    submit(terminal, "go on")
    terminal.wait_for("fake answer: go on")
    idle(terminal)


@pytest.mark.usefixtures("bridge")
def test_a_prompt_that_is_refused_comes_back(stage):
    session = stage.start()
    terminal = stage.terminal("attach")
    idle(terminal)
    stage.session("stop", session)
    again = stage.terminal("attach", session)
    again.wait_for("stopped, the next prompt continues it")
    (stage.home.path / "bin" / "claude").unlink()
    submit(again, "go on")
    again.wait_for(re.compile(r"Continuing the session …\n(.|\n)*claude(.|\n)*^› go on", re.MULTILINE))


@pytest.mark.usefixtures("bridge")
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(stage):
    terminal = stage.terminal("start", MKDIR, TERM="dumb")
    terminal.wait_for(KEYS)
    terminal.type("y")
    terminal.send("Enter")
    terminal.wait_for("ran Bash")
    terminal.wait_for("idle")
    terminal.type("hello there")
    terminal.send("Enter")
    terminal.wait_for("fake answer: hello there")


@pytest.mark.usefixtures("bridge")
def test_without_colours_there_are_none(stage):
    def colours(**variables):
        terminal = stage.terminal("attach", session, **variables)
        terminal.wait_for("fake answer")
        terminal.wait_for("idle")
        return re.findall(r"\x1b\[(?:\d+;)*3[0-7]", terminal._tmux("capture-pane", "-p", "-e"))

    session = stage.start("hello")
    stage.wait_until(session, "idle")
    assert colours() != []
    assert colours(NO_COLOR="1") == []


@pytest.mark.usefixtures("bridge")
def test_a_long_past_is_cut(stage):
    session = stage.start()
    for number in range(8):
        prompt = "\n".join([f'@run Read {{"file_path": "a{number}"}}'] * 30)
        stage.session("send", session, "--wait", prompt)
    terminal = stage.terminal("attach")
    terminal.wait_for("Read: a7")
    shown = everything(terminal)
    assert f"… for what was before: ide-bridge session show {session[:8]}" in shown
    assert ("Read: a0" in shown, "Read: a7" in shown) == (False, True)


def test_an_open_question_stands_right_above_its_keys(stage, bridge):
    session = stage.start(MKDIR)
    stage.approval()
    with stage.terminal("attach", session) as terminal:
        terminal.wait_for(KEYS)
        stage.session("send", session, "something else")
        terminal.wait_for("› something else")
        terminal.wait_for(re.compile(r"› something else\s+\? Claude wants to use Bash\s+mkdir x\s[^›]*\[y\] once"))


def test_resuming_what_went_with_its_bridge_shows_what_was_said(stage, bridge):
    session = stage.start("@text Something memorable.")
    stage.wait_until(session, "idle")
    bridge.stop(signal.SIGKILL)
    with stage.terminal("resume", session) as terminal:
        screen = terminal.wait_for(f"Resumed session {session[:8]}")
        assert "Something memorable." in screen
        idle(terminal)
