"""``ide-bridge serve`` as a person sees it: what it says when it starts, while it runs and when it ends."""

import signal
import subprocess
from pathlib import Path

import pytest

from ide_bridge.cli.serve import _inner, _load_editor
from ide_bridge.errors import SetupProblem
from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.programs import program
from tests.fakes.pty_process import Pty

ROOT = Path(__file__).parent.parent


@pytest.fixture
def home():
    with Home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def serve(home, project):
    """Starts it on a terminal; gives the terminal when it is ready."""
    terminals = []

    def start(*arguments, folder=project, **variables):
        terminal = Pty([*PROGRAM, "serve", *arguments], folder, home.environment | variables)
        terminals.append(terminal)
        terminal.read_until("Ctrl-C stops.\n")
        return terminal

    yield start
    for terminal in terminals:
        terminal.close()


def run(home, *arguments, folder):
    return subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=home.environment,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
    )


# -- how to run it -----------------------------------------------------------------------------------------


def test_the_hint_names_the_command_as_this_user_can_run_it(home, serve):
    assert f"start it with: {PROGRAM[0]} run claude\n" in serve().screen
    installed = f"{Path(PROGRAM[0]).parent}:{home.environment['PATH']}"
    (home.path / "second").mkdir()
    assert "start it with: ide-bridge run claude\n" in serve(folder=home.path / "second", PATH=installed).screen


def test_a_command_below_home_is_named_from_there_and_can_be_pasted(home, serve, project):
    tools = home.path / "my tools"
    tools.mkdir()
    (tools / "ide-bridge").symlink_to(PROGRAM[0])
    terminal = Pty([str(tools / "ide-bridge"), "serve"], project, home.environment)
    try:
        terminal.read_until("Ctrl-C stops.\n")
    finally:
        terminal.close()
    assert "start it with: ~/'my tools/ide-bridge' run claude\n" in terminal.screen


# -- how it ends -------------------------------------------------------------------------------------------


def test_a_bridge_that_is_stopped_from_elsewhere_says_so(home, project, serve):
    terminal = serve()
    assert run(home, "stop", folder=project).stdout.startswith(f"Stopped the bridge for {project} (pid ")
    assert terminal.read_to_end().endswith("\nStopped by: ide-bridge stop\n")
    assert terminal.process.returncode == 0


def test_a_bridge_that_nobody_used_says_so(serve):
    ending = "\nStopped, by ide-bridge stop or because nobody was connected for 0.2 seconds.\n"
    assert serve("--linger", "0.2").read_to_end().endswith(ending)


def test_who_stops_it_himself_is_not_told(serve):
    terminal = serve()
    terminal.process.send_signal(signal.SIGINT)
    assert "Stopped" not in terminal.read_to_end()


# -- who else is there -------------------------------------------------------------------------------------


def warnings(served):
    return [line for line in served.log().splitlines() if "is served too" in line]


def test_a_bridge_above_or_below_another_warns_that_the_cli_finds_two(home, project):
    inner = project / "inner"
    inner.mkdir()
    (home.path / "project-beside").mkdir()
    with BridgeProcess(project, home.environment) as outer:
        assert warnings(outer) == []
        with BridgeProcess(home.path / "project-beside", home.environment) as beside:
            assert warnings(beside) == []
        with BridgeProcess(inner, home.environment) as served:
            (warning,) = warnings(served)
            assert warning == (
                f"ide-bridge: {project} is served too, by the bridge with pid {outer.ready['pid']}: in {inner} "
                "the CLI finds both and takes neither by itself. Choose with /ide, or end that one with: "
                f"ide-bridge stop {project}"
            )
    with BridgeProcess(inner, home.environment), BridgeProcess(project, home.environment) as served:
        assert f": in {inner} the CLI finds both" in warnings(served)[-1]


@pytest.mark.parametrize(
    ("one", "two", "inner"),
    [("/a", "/a", "/a"), ("/a", "/a/b", "/a/b"), ("/a/b", "/a", "/a/b"), ("/a", "/ab", None), ("/", "/a", "/a")],
)
def test_of_two_folders_one_may_lie_in_the_other(one, two, inner):
    assert _inner(one, two) == inner


# -- adapters ----------------------------------------------------------------------------------------------


def test_where_no_adapter_is_installed_that_is_said():
    with pytest.raises(SetupProblem, match=r"^There is no adapter called nope; none is installed\.$"):
        _load_editor("nope")


# -- make serve --------------------------------------------------------------------------------------------


@pytest.fixture
def make(home, tmp_path):
    """Runs ``make serve`` with a program that only tells what it was given."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / ".ready").touch()
    (venv / "bin" / "ide-bridge").write_text('#!/bin/sh\nprintf \'%s\\n\' "$#" "$@"\n', encoding="utf-8")
    (venv / "bin" / "ide-bridge").chmod(0o755)

    def run(*arguments, **variables):
        done = subprocess.run(
            [program("make"), "-s", "-o", f"{venv}/.ready", "serve", f"VENV={venv}", *arguments],
            cwd=ROOT,
            env=home.environment | variables,
            capture_output=True,
            encoding="utf-8",
            timeout=30,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


ODD = ["a b", "$HOME", "$(shell id)", "$$", "a'b", 'a"b', "`id`", "a#b", "a\\b", "a;b", "*", "x~", "~x", "é"]


@pytest.mark.parametrize("name", ODD)
def test_make_serve_takes_a_name_as_it_is(make, name):
    assert make(f"DIR={name}") == make(DIR=name) == f"2\nserve\n{name}\n"


def test_make_serve_knows_home_and_what_only_looks_like_an_option(make, home):
    assert make("DIR=~") == f"2\nserve\n{home.path}\n"
    assert make("DIR=~/a b") == f"2\nserve\n{home.path}/a b\n"
    assert make("DIR=--json") == "2\nserve\n./--json\n"
    assert make() == "2\nserve\n.\n"
