"""The command line as others script against it: real processes in an empty home."""

import argparse
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from ide_bridge import __version__
from ide_bridge.cli import COMMANDS, main
from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.run import environment_for
from ide_bridge.cli.serve import add_arguments
from ide_bridge.running import workspace_of
from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.claude_client import connect
from tests.fakes.surroundings import at_home


@pytest.fixture
def home():
    with Home() as home:
        yield home
        run(home, "stop", "--all", code=None)


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("é\n", encoding="utf-8")
    return folder


@pytest.fixture
def served(home, project):
    with BridgeProcess(project, home.environment) as served:
        yield served


def run(home, *arguments, folder=None, code=0, **variables):
    """Run one command to its end; a `code` of None takes any. Gives stdout and stderr."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=folder or home.path,
        env=home.environment | variables,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
    )
    assert code is None or done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def failure(home, *arguments, **options):
    """The one sentence of a command that fails."""
    output, error = run(home, *arguments, code=1, **options)
    assert output == ""
    assert error.startswith("ide-bridge: ")
    assert error.count("\n") == 1
    return error.removeprefix("ide-bridge: ").strip()


def test_serve_prints_one_line_when_ready(project, served, home):
    pid = served.ready["pid"]
    assert served.ready == {
        "port": served.ready["port"],
        "pid": pid,
        "lock": str(home.config / "ide" / f"{served.ready['port']}.lock"),
        "workspaceFolders": [str(project)],
        "token_file": served.ready["token_file"],
    }
    token_file = Path(served.ready["token_file"])
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    lock = json.loads(served.lock.read_text(encoding="utf-8"))
    assert (lock["pid"], lock["authToken"]) == (pid, token_file.read_text(encoding="ascii"))
    assert lock["ideName"] == "Folder"


def test_serving_twice_fails_and_names_the_pid(home, project, served):
    for arguments in (["serve", str(project)], ["serve", str(project), "--json"]):
        told = failure(home, *arguments)
        assert f"already served by the bridge with pid {served.ready['pid']}" in told
    assert served.lock.exists()


def test_serving_what_is_no_folder_fails_in_one_sentence(home):
    assert failure(home, "serve", "absent") == "absent is not a folder."


def test_serving_with_a_lock_folder_open_to_others_fails_with_the_remedy(home, project):
    folder = home.config / "ide"
    folder.mkdir()
    folder.chmod(0o777)
    assert failure(home, "serve", str(project)) == f"Others may write in {folder}; run: chmod go-w '{folder}'"


def test_with_linger_a_bridge_nobody_uses_ends_by_itself(home, project):
    output, error = run(home, "serve", str(project), "--json", "--linger", "0.2")
    assert json.loads(output)["workspaceFolders"] == [str(project)]
    assert error == ""
    assert home.locks() == []


async def test_status_shows_bridges_and_clients(home, project, served):
    token = Path(served.ready["token_file"]).read_text(encoding="ascii")
    async with connect(served.ready["port"], token) as client:
        await client.initialize()
        assert await client.request("ping") == {}
        output, _ = run(home, "status", "--json")
        assert json.loads(output) == {
            "bridges": [
                {
                    "port": served.ready["port"],
                    "pid": served.ready["pid"],
                    "workspaceFolders": [str(project)],
                    "lock": str(served.lock),
                    "clients": [
                        {"client": 1, "name": "claude-code", "version": "2.1.326", "pid": 4711, "folder": None}
                    ],
                    "editors": [],
                    "diffs": [],
                    "sharing": "full",
                    "sessions": [],
                }
            ]
        }
        table, _ = run(home, "status", COLUMNS="200")
        assert str(project) in table
        assert "claude-code 2.1.326 (pid 4711)" in table
        assert [line for line in table.splitlines() if line.endswith(" ")] == []
        assert token not in output + table


def test_status_tells_what_does_not_work_as_it_is_set(home, project, served):
    settings = home.path / ".config" / "ide-bridge" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[[linters]]\nglob = "*"\ncommand = ["no-such-linter"]', encoding="utf-8")
    told = (
        "The linter no-such-linter cannot be started: there is no such program on your PATH. "
        f"Install it, or take it out of {settings}"
    )
    assert json.loads(run(home, "status", "--json")[0])["problems"] == [told]
    assert run(home, "status")[0].endswith(f"\n{told}\n")
    settings.write_text("share = 1", encoding="utf-8")
    told = f"{settings} is not understood: share must be one of full, path, off."
    assert json.loads(run(home, "status", "--json")[0])["problems"] == [told]


def test_status_without_a_bridge_is_fine(home):
    assert json.loads(run(home, "status", "--json")[0]) == {"bridges": []}
    assert run(home, "status")[0] == "No bridge is running. Start one with: ide-bridge serve\n"


def test_call_prints_the_result_as_json(home, project, served):
    (project / "sub").mkdir()
    for folder in (project, project / "sub"):
        output, _ = run(home, "call", "readFile", '{"path": "a.py"}', folder=folder)
        assert json.loads(output) == "é\n"
    assert json.loads(run(home, "call", "listFiles", folder=project)[0]) == ["a.py"]
    assert run(home, "call", "writeFile", '{"path": "b", "content": "x"}', folder=project)[0] == "true\n"
    assert (project / "b").read_text(encoding="utf-8") == "x"
    told = json.loads(run(home, "call", "getWorkspaceInfo", folder=project)[0])
    assert told == {"name": "project", "path": str(project), "fileCount": 2, "type": "folder"}


def test_a_call_that_fails_exits_1_with_the_reason(home, project, served):
    assert (
        failure(home, "call", "readFile", '{"path": "x"}', folder=project) == "failed to read file: File not found"
    )
    told = failure(home, "call", "nothing", folder=project)
    assert told == "There is no method called nothing; PROTOCOL.md lists them all."


def test_a_call_where_no_bridge_runs_starts_one_for_the_git_top_level(home, project):
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    assert json.loads(run(home, "call", "readFile", '{"path": "a.py"}', folder=project / "sub")[0]) == "é\n"
    (bridge,) = json.loads(run(home, "status", "--json")[0])["bridges"]
    assert bridge["workspaceFolders"] == [str(project)]
    run(home, "stop", str(project))
    assert home.locks() == []


def test_calls_at_the_same_time_start_one_bridge_between_them(home, project):
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: run(home, "call", "listFiles", folder=project)[0], range(4)))
    assert answers == ['["a.py"]\n'] * 4
    assert len(home.locks()) == 1


def test_stop_ends_the_bridge_of_a_folder_and_waits(home, project, served):
    told = f"Stopped the bridge for {project} (pid {served.ready['pid']}).\n"
    assert run(home, "stop", str(project)) == (told, "")
    assert home.locks() == []
    assert served._process.wait(20) == 0
    assert failure(home, "stop", str(project)) == f"No bridge is running for {project}."
    assert failure(home, "stop", "--all") == "No bridge is running."


def test_stop_all_ends_every_bridge(home, project, served):
    other = home.path / "other"
    other.mkdir()
    with BridgeProcess(other, home.environment) as second:
        assert len(home.locks()) == 2
        run(home, "stop", "--all")
        assert home.locks() == []
        assert [bridge._process.wait(20) for bridge in (served, second)] == [0, 0]


def test_run_starts_a_bridge_and_becomes_the_cli_connected_to_it(home, project):
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    script = 'echo "$CLAUDE_CODE_SSE_PORT $CLAUDE_CODE_AUTO_CONNECT_IDE $NO_PROXY"; exit "$1"'
    output, _ = run(home, "run", "sh", "-c", script, "sh", "7", folder=project / "sub", code=7)
    port, auto, no_proxy = output.split()
    (bridge,) = json.loads(run(home, "status", "--json")[0])["bridges"]
    assert (str(bridge["port"]), auto) == (port, "true")
    assert bridge["workspaceFolders"] == [str(project)]
    assert no_proxy == "127.0.0.1,localhost,::1"
    again, _ = run(home, "run", "sh", "-c", 'echo "$CLAUDE_CODE_SSE_PORT"', folder=project)
    assert again.strip() == port
    run(home, "stop", str(project))


def test_run_of_what_is_not_installed_starts_nothing(home, project):
    told = failure(home, "run", "no-such-cli", folder=project)
    assert told == "There is no program called no-such-cli on your PATH; install it first."
    assert home.locks() == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["--nothing"],
        ["serve", "--nothing"],
        ["serve", "--linger", "soon"],
        ["serve", "--linger", "0"],
        ["serve", "--linger", "nan"],
        ["stop", "a", "--all"],
        ["call"],
    ],
)
def test_wrong_usage_exits_2_and_shows_the_usage(home, arguments):
    output, error = run(home, *arguments, code=2)
    assert output == ""
    assert error.startswith("usage: ide-bridge")


@pytest.mark.parametrize("command", ["serve", "attach", "status", "stop", "call", "record", "undo", "doctor"])
def test_wrong_usage_of_a_command_shows_the_usage_of_that_command(home, command):
    _, error = run(home, command, *{"call": ["ping"], "record": ["-"]}.get(command, []), "--nothing", code=2)
    assert error.startswith(f"usage: ide-bridge {command} ")
    assert error.endswith(f"ide-bridge {command}: error: unrecognized arguments: --nothing\n")


def test_an_option_before_the_command_is_wrong_usage(home):
    assert run(home, "--nothing", "status", code=2)[1].endswith("unrecognized arguments: --nothing\n")


def test_a_bridge_survives_the_loss_of_its_state(home, project, served):
    state = home.path / ".local" / "state" / "ide-bridge"
    shutil.rmtree(state)
    deadline = time.monotonic() + 20
    while not list(state.glob("sockets/*.sock")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (bridge,) = json.loads(run(home, "status", "--json")[0])["bridges"]
    assert (bridge["pid"], bridge["port"]) == (served.ready["pid"], served.ready["port"])
    assert run(home, "call", "listFiles", folder=project)[0] == '["a.py"]\n'
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (state, *state.rglob("*")) if path.is_dir()}
    assert modes == {0o700}
    run(home, "stop", str(project))
    assert home.locks() == []


def test_calls_keep_a_bridge_from_ending(home, project):
    with BridgeProcess(project, home.environment, "--linger", "1") as served:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            assert run(home, "call", "listFiles", folder=project)[0] == '["a.py"]\n'
        assert served._process.poll() is None
        assert served._process.wait(20) == 0


def test_help_names_every_command(home):
    output, _ = run(home, "--help")
    assert all(f"\n    {command} " in output for command in COMMANDS)
    for command in COMMANDS:
        assert run(home, command, "--help")[0].startswith(f"usage: ide-bridge {command}")
    assert run(home, "--version")[0] == f"ide-bridge {__version__}\n"


def test_a_reader_that_goes_away_is_no_accident(home, project, served):
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*PROGRAM, "status", "--json"], env=home.environment, stdout=write, stderr=subprocess.PIPE, timeout=30
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


def test_an_accident_is_one_sentence_and_the_details_lie_in_a_private_file(monkeypatch, capsys):
    command = ModuleType("ide_bridge.cli.fall")
    command.add_arguments = lambda _parser: None
    command.run = lambda _args: {}["\udcff"]
    monkeypatch.setitem(COMMANDS, "fall", "have an accident")
    monkeypatch.setitem(sys.modules, command.__name__, command)
    with at_home() as home:
        assert main(["fall"]) == 1
        report = home.path / ".local/state/ide-bridge/crash.log"
        told = f"ide-bridge: Something went wrong that should not; please report {report}\n"
        assert capsys.readouterr() == ("", told)
        assert "KeyError" in report.read_text(encoding="utf-8")
        assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_the_workspace_of_a_folder_is_the_git_top_level(home, project):
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    assert workspace_of(str(deep)) == str(deep)
    (project / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    assert workspace_of(str(deep)) == workspace_of(str(project)) == str(project)


def test_the_cli_is_never_sent_through_a_proxy():
    told = environment_for({"no_proxy": "example.com, localhost", "HOME": "/h"}, 1)
    assert told["no_proxy"] == "example.com,localhost,127.0.0.1,::1"
    assert told["NO_PROXY"] == "127.0.0.1,localhost,::1"
    assert (told["HOME"], told["CLAUDE_CODE_SSE_PORT"]) == ("/h", "1")


def test_linger_takes_fractions():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    assert parser.parse_args(["--linger", "0.5"]).linger == 0.5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("é ☃ [x]", "é ☃ [x]"),
        ("a\nb\tc\x1b[1m\x7f\x9b", r"a\x0ab\x09c\x1b[1m\x7f\x9b"),
        ("\u202eexe\u2028\u2066", r"\u202eexe\u2028\u2066"),
        ("\udcff", r"\udcff"),
    ],
)
def test_what_could_command_a_terminal_is_made_visible(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize("value", ["é", "\x9b", "\udcff", "\u202e", {"a": [1, None, "☃\n"]}])
def test_json_is_readable_where_it_may_be_and_means_the_same_where_not(value):
    text = json_text(value)
    assert json.loads(text) == value
    assert text.isprintable()
    assert ("☃" in text) == ("☃" in str(value))
