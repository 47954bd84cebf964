"""The command line among enemies: hostile folders, names, files and signals end in a sentence or do nothing."""

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.claude_client import connect

AS_MODULE = [sys.executable, "-m", "ide_bridge"]
NAMES = [
    "[/evil]",
    "\x1b]0;owned\x07",
    "[link=https://evil.example]x[/link]",
    "a\nb",
    "\x9b31m",
    "\u202egnp",
    "[bold]",
]
STORMS = 24
PATIENCE = 30


@pytest.fixture
def home():
    with Home() as home:
        yield home
        run(home, "stop", "--all")


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    return folder


def run(home, *arguments, program=PROGRAM, folder=None, **options):
    """Run one command to its end, in the home of the test."""
    environment = home.environment | options.pop("variables", {})
    where = folder or home.path
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    done = subprocess.run(
        [*program, *arguments],
        cwd=where,
        env=environment,
        encoding="utf-8",
        timeout=PATIENCE,
        **streams,
    )
    assert "Traceback" not in (done.stderr or "")
    return done


def sentence(home, *arguments, code=1, **options):
    """The one sentence with which a command fails."""
    done = run(home, *arguments, **options)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("ide-bridge: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("ide-bridge: ").rstrip()


def state_of(home, project):
    """The state folder of a workspace, after a bridge has once served it."""
    with BridgeProcess(project, home.environment) as served:
        return Path(served.ready["token_file"]).parent


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (PROGRAM, ["run", "true"]),
        (PROGRAM, ["call", "ping"]),
        (AS_MODULE, ["call", "ping"]),
        (AS_MODULE, ["status"]),
        (AS_MODULE, ["serve", "--json", "--linger", "0.1"]),
    ],
)
def test_a_folder_runs_nothing_of_its_own(home, project, program, arguments):
    for name in ("msgspec", "aiohttp", "json", "argparse", "rich", "platformdirs", "subprocess"):
        trap = f"open({str(home.path / 'ran')!r}, 'w', encoding='utf-8')\nraise SystemExit(3)"
        (project / f"{name}.py").write_text(trap, encoding="utf-8")
    done = run(home, *arguments, program=program, folder=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (home.path / "ran").exists()


def test_a_bridge_started_for_a_call_does_not_sit_in_the_folder(home, project):
    run(home, "call", "ping", folder=project)
    (bridge,) = json.loads(run(home, "status", "--json").stdout)["bridges"]
    assert bridge["workspaceFolders"] == [str(project)]
    assert not Path(f"/proc/{bridge['pid']}/cwd").resolve().is_relative_to(project)


async def test_clients_cannot_command_the_terminal_by_their_names(home, project):
    with BridgeProcess(project, home.environment) as served:
        token = Path(served.ready["token_file"]).read_text(encoding="ascii")
        async with AsyncExitStack() as clients:
            for name in NAMES:
                client = await clients.enter_async_context(connect(served.ready["port"], token))
                await client.initialize(name=name)
            done = run(home, "status", variables={"COLUMNS": "250"})
            as_json = run(home, "status", "--json").stdout
    assert done.returncode == 0
    assert all(line.isprintable() for line in done.stdout.split("\n"))
    for name in NAMES:
        assert name.encode("unicode_escape").decode().replace("\\n", "\\x0a") in done.stdout
    assert as_json.removesuffix("\n").isprintable()
    assert [client["name"] for client in json.loads(as_json)["bridges"][0]["clients"]] == NAMES


def test_a_folder_with_an_odd_name_is_shown_as_it_is_called(home):
    folder = home.path / "[bold]x\x1b[2J"
    folder.mkdir()
    with BridgeProcess(folder, home.environment):
        shown = run(home, "status", variables={"COLUMNS": "250"}).stdout
        assert "[bold]x\\x1b[2J" in shown
    assert "[bold]x\\x1b[2J" in sentence(home, "stop", str(folder))


@pytest.mark.parametrize("command", ["serve", "status", "stop", "call ping", "run true"])
def test_an_impossible_home_is_told(home, project, command):
    told = sentence(home, *command.split(), folder=project, variables={"HOME": "/dev/null"})
    assert "/dev/null/.local/state/ide-bridge" in told
    assert "Not a directory; " in told


def test_a_full_disk_is_told(home, project):
    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    told = sentence(home, "serve", folder=project, preexec_fn=no_room)
    assert told.endswith(" cannot be used: File too large; make room on the disk.")
    told = sentence(home, "call", "ping", folder=project, preexec_fn=no_room)
    assert told.endswith(f"it did not say why; see what it says to: ide-bridge serve '{project}'")
    assert list(home.config.iterdir()) == []


def test_a_full_output_is_told(home, project):
    with open("/dev/full", "w", encoding="utf-8") as full:
        for arguments in (["status"], ["status", "--json"], ["--help"], ["serve", str(project), "--json"]):
            told = sentence(home, *arguments, stdout=full)
            assert told.startswith(f"The output cannot be written: {os.strerror(errno.ENOSPC)};")
        done = run(home, "stop", stdout=full, stderr=full)
        assert done.returncode == 1
    assert home.locks() == []


def test_closed_streams_harm_nobody(home, project):
    command = 'exec "$@" <&- >&- 2>&-'
    for arguments, code in ((["status"], 0), (["stop"], 1), (["serve", str(project), "--linger", "0.1"], 0)):
        assert run(home, "-c", command, "sh", *PROGRAM, *arguments, program=["/bin/sh"]).returncode == code


def test_an_accident_that_cannot_be_kept_is_still_one_sentence(home):
    (home.path / ".local/state/ide-bridge").mkdir(parents=True, mode=0o700)
    os.mkfifo(home.path / ".local/state/ide-bridge/crash.log")
    program = "import sys, ide_bridge.cli as cli; cli._run = lambda given: 1 // 0; sys.exit(cli.main())"
    assert sentence(home, program=[sys.executable, "-P", "-c", program]).endswith(
        "should not; please report this: ZeroDivisionError: integer division or modulo by zero"
    )


@pytest.mark.parametrize("command", ["serve", "stop", "call ping", "run true"])
def test_a_deleted_folder_is_told(home, command):
    gone = home.path / "gone"
    gone.mkdir()
    program = ["/bin/sh", "-c", f'rmdir {gone}; exec "$@"', "sh", *PROGRAM]
    assert sentence(home, *command.split(), program=program, folder=gone) == (
        "The current folder was deleted; change to another one."
    )


def test_wrong_words_are_answered_by_what_is_wrong_with_them(home, project):
    assert "nested too deeply" in run(home, "call", "ping", "[" * 100_000, folder=project).stderr
    assert "The name of a folder is empty" in sentence(home, "serve", "")
    assert "The name of a folder is empty" in sentence(home, "stop", "")
    for given in ("nan", "-1", "0", "soon"):
        done = run(home, "serve", "--linger", given)
        assert done.returncode == 2
        assert done.stderr.endswith("error: --linger takes a number of seconds above 0.\n")
    done = run(home, "run")
    assert (done.returncode, "ARGS" in done.stderr.splitlines()[-1]) == (2, False)


@pytest.mark.parametrize("contents", [b"", b"\x7fELF", b"#!/no/such/interpreter\n"])
def test_what_is_no_program_is_told(home, project, contents):
    program = home.path / "claude"
    program.write_bytes(contents)
    program.chmod(0o755)
    assert f"{program} cannot be run: " in sentence(home, "run", str(program), folder=project)


@pytest.mark.parametrize(("name", "kind"), [("token", "link"), ("port", "folder"), ("running", "fifo")])
def test_state_that_is_no_file_is_told(home, project, name, kind):
    path = state_of(home, project) / name
    path.unlink()
    {"folder": path.mkdir, "link": lambda: path.symlink_to("/etc/passwd"), "fifo": lambda: os.mkfifo(path)}[kind]()
    assert f"{path} cannot be used: " in sentence(home, "serve", str(project))
    assert run(home, "status").stdout.startswith("No bridge is running.")
    assert home.locks() == []


def test_a_lock_that_is_a_folder_is_told(home, project):
    port = (state_of(home, project) / "port").read_text(encoding="ascii")
    lock = home.config / "ide" / f"{port}.lock"
    lock.mkdir()
    assert f"{lock} cannot be used: Is a directory; move it away" in sentence(home, "serve", str(project))
    assert list((home.config / "ide").iterdir()) == [lock]


def test_pipes_among_the_locks_keep_nobody_waiting(home, project):
    (home.config / "ide").mkdir(mode=0o700)
    os.mkfifo(home.config / "ide" / "x.lock")
    with BridgeProcess(project, home.environment) as served:
        served.lock.unlink()
        os.mkfifo(served.lock)
        assert served.stop() == 0
        assert served.lock.is_fifo()


def test_sockets_of_killed_bridges_are_swept_and_no_others(home, project):
    sockets = home.path / ".local/state/ide-bridge/sockets"
    with BridgeProcess(project, home.environment) as killed:
        killed.stop(signal.SIGKILL)
    (left,) = sockets.iterdir()
    kept = [
        sockets / name for name in (f"{os.getpid()}-1.sock", "notes.sock", "-1.sock", f"{killed.ready['pid']}-1")
    ]
    for path in kept:
        path.touch()
    with BridgeProcess(project, home.environment) as served:
        own = sockets / f"{served.ready['pid']}-{served.ready['port']}.sock"
        assert sorted(sockets.iterdir()) == sorted([own, *kept])
    assert not left.exists()


def takes_signals(pid):
    """Whether a process has put up its handlers, by what the system knows of it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
    return all(caught >> (number - 1) & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def storm(home, folder, dice):
    """Start a bridge, let signals rain on it from some moment to its end; gives how it ended and what it said."""
    process = subprocess.Popen(
        [*PROGRAM, "serve", str(folder), "--json"],
        env=home.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + PATIENCE
    while not takes_signals(process.pid) and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(dice.choice([0.02, 0.4]) * dice.random())
    while process.poll() is None and time.monotonic() < deadline:
        process.send_signal(dice.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
        time.sleep(dice.choice([0, 0.001, 0.01]) * dice.random())
    process.kill()
    _, said = process.communicate()
    return process.returncode, said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which signals a process takes")
def test_in_a_storm_of_signals_every_bridge_ends_cleanly(home):
    folders = [home.path / f"project {number}" for number in range(STORMS)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda folder: storm(home, folder, random.Random(folder.name)), folders))
    assert ended == [(0, b"")] * STORMS
    left = [*(home.config / "ide").iterdir(), *(home.path / ".local/state/ide-bridge/sockets").iterdir()]
    assert left == []
    assert run(home, "status").stdout.startswith("No bridge is running.")
