"""``ide-bridge record`` as it is used: a real bridge, a real recorder, a real client between them."""

import json
import os
import signal
import stat
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.claude_client import TOKEN_HEADER, connect
from tests.fakes.terminal import Terminal

PATIENCE = 20


@pytest.fixture
def home():
    with Home() as home:
        yield home


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


def token_of(served):
    return Path(served.ready["token_file"]).read_text(encoding="ascii")


def connected(served):
    return connect(served.ready["port"], token_of(served))


def eventually(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@contextmanager
def recording(home, project, file="out.ndjson", **options):
    """A recorder at work; a file is there when it listens."""
    process = subprocess.Popen(
        [*PROGRAM, "record", str(file)], cwd=project, env=home.environment, stderr=subprocess.PIPE, **options
    )
    try:
        if file != "-":
            eventually((project / file).exists)
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process, by=signal.SIGINT):
    """End a recorder; gives its exit code and what it wrote to stderr."""
    process.send_signal(by)
    _, error = process.communicate(timeout=PATIENCE)
    return process.returncode, error.decode()


def failure(home, project, *arguments, **options):
    done = subprocess.run(
        [*PROGRAM, "record", *arguments],
        cwd=project,
        env=home.environment,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=PATIENCE,
        **options,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("ide-bridge: ").strip()


def lines(file):
    text = file.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


async def converse(client, token):
    """A short conversation; gives its messages as the client knows them."""
    asked = {"jsonrpc": "2.0", "id": 0, "method": "readFile", "params": {"path": "a.py"}}
    answer = await client.say(json.dumps(asked, indent=1))
    odd = await client.say(f"no json, but the token: {token}")
    return [("C>S", asked), ("S>C", answer), ("C>S", "no json, but the token: …"), ("S>C", odd)]


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_what_is_said_is_in_the_file_when_it_ends(home, project, served, by):
    with recording(home, project) as process:
        async with connected(served) as client:
            said = await converse(client, token_of(served))
            assert ended(process, by) == (0, "")
    file = project / "out.ndjson"
    connect_, open_, *rest = lines(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token_of(served) not in file.read_text(encoding="utf-8")
    assert (connect_["dir"], connect_["path"], connect_["headers"][TOKEN_HEADER]) == ("CONNECT", "/", "…")
    assert (open_["dir"], open_["subprotocol"]) == ("OPEN", "mcp")
    assert [(line["dir"], line.get("msg", line.get("raw"))) for line in rest] == said
    assert {line["conn"] for line in (connect_, open_, *rest)} == {1}
    times = [line["t"] for line in lines(file)]
    assert times == sorted(times)


async def test_every_message_is_in_the_file_at_once(home, project, served):
    file = project / "out.ndjson"
    with recording(home, project) as process:
        async with connected(served) as client:
            for number in range(1, 4):
                await client.request("ping")
                eventually(lambda wanted=2 + 2 * number: file.read_bytes().count(b"\n") == wanted)
        process.kill()
    assert [line["dir"] for line in lines(file)][2:6] == ["C>S", "S>C"] * 2


async def test_a_dash_is_the_standard_output(home, project, served):
    async with connected(served) as client:
        with recording(home, project, "-", stdout=subprocess.PIPE) as process:
            assert json.loads(process.stdout.readline())["dir"] == "OPEN"
            await client.request("ping")
            assert json.loads(process.stdout.readline())["msg"]["method"] == "ping"
            assert ended(process) == (0, "")
    assert not (project / "-").exists()


async def test_forty_megabytes_are_recorded_whole(home, project, served):
    text = "x\n" * 20_000_000
    with recording(home, project) as process:
        async with connected(served) as client:
            await client.notify("anything", {"text": text})
            assert await client.request("ping") == {}
            assert ended(process) == (0, "")
    told = lines(project / "out.ndjson")
    assert told[2]["msg"]["params"]["text"] == text
    assert [line["dir"] for line in told][2:] == ["C>S", "C>S", "S>C"]


async def test_a_recorder_that_stands_still_learns_what_it_lost(home, project, served):
    text = "x" * 30_000_000
    with recording(home, project) as process:
        process.send_signal(signal.SIGSTOP)
        async with connected(served) as client:
            for _ in range(8):
                await client.notify("anything", {"text": text})
            assert await client.request("ping") == {}
            process.send_signal(signal.SIGCONT)
            code, error = ended(process)
    told = lines(project / "out.ndjson")
    (lost,) = [line["count"] for line in told if line["dir"] == "LOST"]
    assert code == 0
    assert error == (
        f"ide-bridge: {lost} messages came faster than they could be written and are missing; "
        "the lines with LOST say where.\n"
    )
    assert sum(line["dir"] in {"CONNECT", "OPEN", "C>S", "S>C"} for line in told) + lost == 12


async def test_the_end_of_the_bridge_ends_the_recording(home, project, served):
    with recording(home, project) as process:
        async with connected(served) as client:
            await client.request("ping")
            assert served.stop() == 0
        _, error = process.communicate(timeout=PATIENCE)
        assert (process.returncode, error) == (0, b"")
    assert [line["dir"] for line in lines(project / "out.ndjson")] == ["CONNECT", "OPEN", "C>S", "S>C", "CLOSE"]


def test_a_file_that_exists_is_not_touched(home, project, served):
    assert failure(home, project, "a.py") == "a.py exists already; choose another name or remove it first."
    assert (project / "a.py").read_text(encoding="utf-8") == "é\n"
    (project / "link").symlink_to("nowhere")
    assert "exists already" in failure(home, project, "link")
    assert not (project / "nowhere").exists()


def test_what_cannot_be_written_is_said_in_one_sentence(home, project, served):
    told = failure(home, project, "absent/out.ndjson")
    assert told == "absent/out.ndjson cannot be written: No such file or directory."


async def test_a_full_disk_is_said_in_one_sentence(home, project, served):
    async with connected(served):
        with open("/dev/full", "wb") as full:
            told = failure(home, project, "-", stdout=full)
    assert told == "the standard output cannot be written any further: No space left on device."


async def test_a_reader_that_goes_away_is_no_accident(home, project, served):
    read, write = os.pipe()
    os.close(read)
    async with connected(served):
        with recording(home, project, "-", stdout=write) as process:
            os.close(write)
            _, error = process.communicate(timeout=PATIENCE)
            assert (process.returncode, error) == (1, b"")


def test_without_a_bridge_there_is_nothing_to_record(home, project):
    told = failure(home, project, "out.ndjson")
    assert told == f"No bridge is running for {project}; start one with: ide-bridge serve"
    assert not (project / "out.ndjson").exists()
    assert home.locks() == []


async def test_on_a_terminal_it_says_what_it_does_and_counts(home, project, served):
    # The shell tells how it ended: tmux may see the terminal close before it sees the program end.
    script = 'trap : INT; "$0" "$@" record out.ndjson; echo "exit $?"; exec sleep 60'
    with Terminal(["sh", "-c", script, *PROGRAM], project, home.environment) as terminal:
        terminal.wait_for("The token is masked; the contents of files are not. Ctrl-C ends it.")
        assert f"the bridge for {project}" in terminal.screen().replace("\n", "")
        async with connected(served) as client:
            await client.request("ping")
            terminal.wait_for("2 messages")
            terminal.send("C-c")
            terminal.wait_for("2 messages in out.ndjson.")
            terminal.wait_for("exit 0")
    assert len(lines(project / "out.ndjson")) == 4
