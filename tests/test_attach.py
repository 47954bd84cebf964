"""The relay as a plug-in knows it: a program on whose standard streams a bridge answers."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from ide_bridge.editor.attach import GOODBYE, frames
from ide_bridge.errors import SetupProblem
from ide_bridge.wire.peer import Peer
from tests.fakes.claude_cli import Home

PATIENCE = 15
OPEN_DIFF = """
import asyncio, sys
from tests.fakes.claude_client import connect

async def main(port, token, path):
    async with connect(int(port), token) as client:
        await client.introduce()
        names = ("old_file_path", "new_file_path", "new_file_contents", "tab_name")
        await client.call_tool("openDiff", dict(zip(names, (path, path, "new", "tab"))))

asyncio.run(main(*sys.argv[1:]))
"""


class Plugin:
    """The plug-in's end of a relay that runs as a process of its own."""

    def __init__(self, home, *folders, cwd):
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ide_bridge", "attach", *map(str, folders)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=home.environment, cwd=cwd,
        )  # fmt: skip
        self._messages = queue.Queue()
        self._ids = iter(range(1, 1_000_000))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for frame in frames(lambda: os.read(self._process.stdout.fileno(), 65536)):
            self._messages.put(json.loads(frame.partition(b"\r\n\r\n")[2]))
        self._messages.put(None)

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def receive(self, seconds=PATIENCE):
        return self._messages.get(timeout=seconds)

    def ask(self, method, **params):
        asked = next(self._ids)
        self.send(id=asked, method=method, params=params)
        while (message := self.receive()) is not None and message.get("id") != asked:
            if "method" in message and "id" in message:
                self.send(id=message["id"], result={})
        return message

    def hello(self, *folders, **further):
        hello = {
            "link": 1,
            "editor": "Plug",
            "version": "1",
            "features": ["selection", "diff"],
            "pid": os.getpid(),
        }
        return self.ask("hello", **hello, folders=list(map(str, folders)), **further)["result"]

    def wait_for(self, method):
        """The next message of that name."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            message = self.receive()
            if message and message.get("method") == method:
                return message
        raise AssertionError(f"no {method} came")

    def ask_until(self, wanted, method="status", seen=None):
        """Ask again until the answer is the one wanted: what is said to a bridge that is dying is lost."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.send(id=next(self._ids), method=method)
            try:
                message = self.receive(0.2)
            except queue.Empty:
                continue
            if seen is not None and message:
                seen.append(message)
            if message and "result" in message and wanted(message["result"]):
                return message["result"]
        raise AssertionError("the wanted answer did not come")

    def end_input(self):
        self._process.stdin.close()

    def wait(self):
        code = self._process.wait(PATIENCE)
        return code, self._process.stderr.read().decode()

    def close(self):
        for stream in (self._process.stdin, self._process.stderr):
            stream.close()
        self._process.kill()
        self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self._process.stdout.close()


@pytest.fixture
def home():
    with Home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def attach(home, project):
    plugins = []

    def start(*folders, cwd=project):
        plugins.append(Plugin(home, *folders, cwd=cwd))
        return plugins[-1]

    yield start
    for plugin in plugins:
        plugin.close()
    subprocess.run(
        [sys.executable, "-P", "-m", "ide_bridge", "stop", "--all"],
        env=home.environment, cwd=project, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip


def stop(home, project):
    return subprocess.run(
        [sys.executable, "-P", "-m", "ide_bridge", "stop"],
        env=home.environment, cwd=project, capture_output=True, timeout=PATIENCE,
    ).returncode  # fmt: skip


def propose(home, project):
    """A client that proposes a change, as a process that waits for the decision."""
    (lock,) = home.locks()
    token = json.loads(lock.read_text(encoding="utf-8"))["authToken"]
    return subprocess.Popen(
        [sys.executable, "-c", OPEN_DIFF, lock.stem, token, str(project / "a.py")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_the_goodbye_of_a_bridge_is_the_one_the_relay_knows():
    assert Peer().notification("goodbye") == GOODBYE


def test_it_starts_a_bridge_where_none_runs(attach, project):
    plugin = attach(project)
    welcome = plugin.hello(project)
    assert welcome["link"] == 1
    assert psutil.pid_exists(welcome["pid"])
    status = plugin.ask("status")["result"]
    assert status["workspaceFolders"] == [str(project)]
    assert [editor["name"] for editor in status["editors"]] == ["Plug"]


def test_it_joins_the_bridge_that_contains_the_folder(attach, project):
    (project / "sub").mkdir()
    outer = attach(project).hello(project)
    inner = attach(project / "sub", cwd=project / "sub").hello(project / "sub")
    assert inner["pid"] == outer["pid"]


def test_end_of_input_detaches_and_the_bridge_stays(attach, project):
    leaving, staying = attach(project), attach(project)
    leaving.hello()
    pid = staying.hello()["pid"]
    leaving.end_input()
    assert leaving.wait() == (0, "")
    status = staying.ask_until(lambda found: len(found["editors"]) == 1)
    assert status["pid"] == pid


def test_a_bridge_that_stops_on_purpose_ends_the_relay_well(attach, home, project):
    plugin = attach(project)
    plugin.hello()
    assert stop(home, project) == 0
    assert plugin.wait() == (0, "")
    assert plugin.receive() is None


def test_a_bridge_that_was_killed_is_back_with_its_port_and_the_plugin_sees_nothing(attach, project):
    plugin = attach(project)
    before = plugin.hello(project)
    os.kill(before["pid"], signal.SIGKILL)
    after = plugin.ask_until(lambda found: found["pid"] != before["pid"])
    assert after["port"] == before["port"]
    assert [editor["name"] for editor in after["editors"]] == ["Plug"]


def test_diffs_nobody_waits_for_are_closed_when_the_bridge_was_killed(attach, home, project):
    plugin = attach(project)
    welcome = plugin.hello(project)
    client = propose(home, project)
    shown = plugin.wait_for("showDiff")
    plugin.send(id=shown["id"], result={})
    os.kill(welcome["pid"], signal.SIGKILL)
    closed = plugin.wait_for("closeDiff")
    assert closed["params"] == {"diff": shown["params"]["diff"]}
    plugin.send(id=closed["id"], result={})
    told = plugin.wait_for("message")["params"]
    assert told["level"] == "warning"
    plugin.ask_until(lambda found: found["pid"] != welcome["pid"])
    client.kill()
    client.wait(PATIENCE)


def test_of_a_diff_that_was_decided_nothing_is_said_when_the_bridge_was_killed(attach, home, project):
    plugin = attach(project)
    welcome = plugin.hello(project)
    client = propose(home, project)
    shown = plugin.wait_for("showDiff")
    plugin.send(id=shown["id"], result={})
    plugin.send(
        method="diffDecided", params={"contents": "new", "decision": "kept", "diff": shown["params"]["diff"]}
    )
    assert client.wait(PATIENCE) == 0
    os.kill(welcome["pid"], signal.SIGKILL)
    seen = []
    plugin.ask_until(lambda found: found["pid"] != welcome["pid"], seen=seen)
    assert not {"closeDiff", "message"} & {message.get("method") for message in seen}


def test_two_relays_bring_one_bridge_back(attach, project):
    one, other = attach(project), attach(project)
    pid = one.hello()["pid"]
    other.hello()
    os.kill(pid, signal.SIGKILL)
    first = one.ask_until(lambda found: found["pid"] != pid and len(found["editors"]) == 2)
    second = other.ask_until(lambda found: found["pid"] != pid)
    assert first["pid"] == second["pid"]


def test_a_bridge_comes_back_for_the_folder_it_had(attach, home, project):
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    served = subprocess.Popen(
        [sys.executable, "-P", "-m", "ide_bridge", "serve", "--json", "sub"],
        env=home.environment, cwd=project, stdout=subprocess.PIPE,
    )  # fmt: skip
    ready = json.loads(served.stdout.readline())
    plugin = attach(project / "sub")
    plugin.hello()
    served.kill()
    served.wait(PATIENCE)
    served.stdout.close()
    after = plugin.ask_until(lambda found: found["pid"] != ready["pid"])
    assert after["workspaceFolders"] == [str(project / "sub")]
    assert after["port"] == ready["port"]


def test_large_messages_pass_both_ways(attach, project):
    plugin = attach(project)
    plugin.hello()
    text = "ä" * 1_500_000
    for _ in range(5):
        assert plugin.ask("writeFile", path="large.txt", content=text)["result"] is True
        assert plugin.ask("readFile", path="large.txt")["result"] == text


def test_folders_an_editor_brings_along_are_served_while_it_is_there(attach, home, project):
    other = home.path / "other"
    other.mkdir()
    staying = attach(project)
    staying.hello(project)
    bringing = attach(project)
    bringing.hello(project, other)
    staying.ask_until(lambda found: found["workspaceFolders"] == [str(project), str(other)])
    bringing.end_input()
    staying.ask_until(lambda found: found["workspaceFolders"] == [str(project)])


def test_nonsense_instead_of_messages_is_told(attach, project):
    plugin = attach(project)
    plugin._process.stdin.write(b"hello there\r\n\r\n")
    plugin._process.stdin.flush()
    code, told = plugin.wait()
    assert code == 1
    assert told.startswith("ide-bridge: A message has no usable Content-Length")
    assert told.count("\n") == 1


def test_what_is_no_folder_is_told(attach, project):
    code, told = attach(project / "missing").wait()
    assert code == 1
    assert told == f"ide-bridge: {project / 'missing'} is not a folder.\n"


def test_messages_come_out_whole_however_they_are_cut():
    messages = [b"Content-Length: 2\r\n\r\n{}", b"content-length:4\r\nContent-Type: x\r\n\r\nnull"]
    stream = b"".join(messages)
    for size in (1, 2, 7, 1000):
        pieces = iter([stream[at : at + size] for at in range(0, len(stream), size)])
        assert list(frames(lambda pieces=pieces: next(pieces, b""))) == messages


@pytest.mark.parametrize(
    "head", [b"Content-Length: -1\r\n\r\n", b"Length: 1\r\n\r\n", b"Content-Length: 9999999999\r\n\r\n"]
)
def test_a_length_that_cannot_be_is_refused(head):
    pieces = iter([head])
    with pytest.raises(SetupProblem, match="Content-Length"):
        list(frames(lambda: next(pieces, b"")))


def test_half_a_message_at_the_end_is_not_passed_on():
    pieces = iter([b"Content-Length: 5\r\n\r\nnu"])
    assert list(frames(lambda: next(pieces, b""))) == []


def test_nothing_slow_is_imported():
    program = "import sys, ide_bridge.cli.attach, ide_bridge.editor.attach; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, encoding="utf-8"
    ).stdout.split()
    assert not {"json", "re", "socket", "subprocess", "threading", "asyncio", "msgspec"} & set(loaded)
