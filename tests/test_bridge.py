import asyncio
import json
import os
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

import ide_bridge
from ide_bridge.bridge import Bridge
from ide_bridge.cli.reach import ask
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import BridgeError, SetupProblem
from ide_bridge.fronts.local import LocalFront
from ide_bridge.home import state_folder
from ide_bridge.running import find, running_bridges
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_client import connect, connect_to
from tests.fakes.surroundings import at_home


@pytest.fixture(autouse=True)
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    (folder / "a").write_text("alive", encoding="utf-8")
    return folder


def reachable(port):
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


async def eventually(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


def eventually_blocking(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


class Recorder(Editor):
    """An editor that notes when it is started and closed, and what is true then."""

    name = "Recorder"

    def __init__(self, home):
        self.home = home
        self.seen = []

    async def start(self):
        self.seen.append(("start", bool(self.home.locks())))

    async def close(self):
        self.seen.append(("close", bool(self.home.locks())))


async def test_from_asyncio_it_is_an_async_with(home, project):
    async with Bridge(project) as bridge:
        assert [str(lock) for lock in home.locks()] == [bridge.lock]
        assert Path(bridge.token_file).exists()
        async with connect_to(bridge) as client:
            assert await client.request("readFile", {"path": "a"}) == "alive"
        port = bridge.port
    assert home.locks() == []
    assert not reachable(port)
    assert running_bridges() == []
    assert list((home.path / ".local/state/ide-bridge/sockets").iterdir()) == []


def test_from_a_program_without_asyncio_it_is_a_with(home, project):
    before = threading.active_count()
    with Bridge(project) as bridge:
        assert reachable(bridge.port)

        async def visit():
            async with connect_to(bridge) as client:
                return await client.request("readFile", {"path": "a"})

        assert asyncio.run(visit()) == "alive"
    assert home.locks() == []
    eventually_blocking(lambda: threading.active_count() == before)


def test_in_a_thread_what_fails_at_the_start_is_raised_where_it_was_asked_for(project):
    with Bridge(project), pytest.raises(SetupProblem, match=f"pid {os.getpid()}"), Bridge(project):
        pass


def test_in_a_thread_a_bridge_that_ended_by_itself_is_left_in_peace(home, project):
    with Bridge(project, linger=0.05):
        eventually_blocking(lambda: running_bridges() == [])
    assert home.locks() == []


async def test_the_lock_is_there_before_the_editor_and_gone_before_it(home, project):
    editor = Recorder(home)
    async with Bridge(project, editor=editor) as bridge:
        assert json.loads(Path(bridge.lock).read_text(encoding="utf-8"))["ideName"] == "Recorder"
        assert bridge.status()["editors"] == [{"name": "Recorder", "version": "", "pid": None}]
    assert editor.seen == [("start", True), ("close", False)]


async def test_the_lock_goes_before_the_clients_do(home, project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        stopping = asyncio.create_task(bridge.stop())
        await client.closed()
        assert home.locks() == []
        await stopping


async def test_an_editor_that_cannot_start_stops_everything(home, project):
    class Broken(Editor):
        async def start(self):
            raise SetupProblem("no display")

    with pytest.raises(SetupProblem, match="no display"):
        await Bridge(project, editor=Broken()).start()
    assert home.locks() == []
    assert running_bridges() == []
    async with Bridge(project):
        pass


async def test_a_bridge_may_be_stopped_twice_and_started_again(project):
    bridge = Bridge(project)
    ports = []
    for _ in range(2):
        await bridge.start()
        ports.append(bridge.port)
        await bridge.stop()
        await bridge.stop()
    assert ports[0] == ports[1]
    with pytest.raises(SetupProblem, match="not running"):
        _ = bridge.port


async def test_a_lock_that_someone_deletes_is_back(home, project):
    told = []
    async with Bridge(project, happening=lambda _who, what: told.append(what)) as bridge:
        before = Path(bridge.lock).read_bytes()
        os.unlink(bridge.lock)
        await eventually(lambda: os.path.exists(bridge.lock))
        assert Path(bridge.lock).read_bytes() == before
    assert told == ["deleted the lock file; it is back"]


async def test_with_a_linger_time_it_ends_when_nobody_is_there(home, project):
    bridge = Bridge(project, linger=0.2)
    running = asyncio.create_task(bridge.run())
    await eventually(lambda: bool(home.locks()))
    async with connect_to(bridge) as client:
        for _ in range(6):
            await asyncio.sleep(0.1)
            assert await client.request("ping") == {}
    async with asyncio.timeout(5):
        await running
    assert home.locks() == []


async def test_a_stopped_bridge_leaves_no_clock_running(project):
    async with Bridge(project, linger=60) as bridge, connect_to(bridge) as client:
        await client.initialize()
        await bridge.stop()
        await client.closed()
        await eventually(lambda: not len(bridge.clients))
        assert bridge._clock is None


async def test_status_is_what_the_command_line_promises(home, project):
    async with Bridge(project) as bridge:
        assert bridge.status() == {
            "port": bridge.port,
            "pid": os.getpid(),
            "workspaceFolders": [str(project)],
            "lock": bridge.lock,
            "clients": [],
            "editors": [],
            "diffs": [],
            "sharing": "full",
            "sessions": [],
        }


async def test_the_private_socket_is_private_and_steers(project):
    async with Bridge(project) as bridge:
        running = find(str(project))
        assert os.stat(str(running["socket"])).st_mode & 0o777 == 0o600
        assert await asyncio.to_thread(ask, running, "status") == bridge.status()
        assert await asyncio.to_thread(ask, running, "readFile", {"path": "a"}) == "alive"
        with pytest.raises(BridgeError, match="File not found"):
            await asyncio.to_thread(ask, running, "readFile", {"path": "absent"})


async def test_a_socket_left_behind_is_replaced_and_a_silent_caller_does_not_hold_up_the_end(home, project):
    path = str(home.path / "left.sock")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    front = LocalFront(path, None, lambda: None)
    await front.start()
    _reader, writer = await asyncio.open_unix_connection(path)
    await eventually(lambda: front._tasks)
    async with asyncio.timeout(5):
        await front.close()
        writer.close()
        await writer.wait_closed()
    assert not os.path.exists(path)


async def test_several_folders_are_served_together(home, project):
    other = home.path / "other"
    other.mkdir()
    (other / "b").write_text("there", encoding="utf-8")
    async with Bridge(Workspace(project, other)) as bridge, connect_to(bridge) as client:
        assert json.loads(Path(bridge.lock).read_text(encoding="utf-8"))["workspaceFolders"] == [
            str(project),
            str(other),
        ]
        assert await client.request("readFile", {"path": str(other / "b")}) == "there"


def test_the_public_names_are_where_they_are_said_to_be():
    assert ide_bridge.Bridge is Bridge
    assert all(getattr(ide_bridge, name) is not None for name in ide_bridge.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ide_bridge.Nothing


async def test_a_killed_bridge_comes_back_at_the_same_place_and_sweeps_what_it_left(home, project):
    first = BridgeProcess(project, home.environment)
    token = Path(first.ready["token_file"]).read_text(encoding="ascii")
    async with connect(first.ready["port"], token) as client:
        await client.initialize()
        assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    assert home.locks() == [first.lock]
    assert running_bridges() == []
    stale = home.config / "ide" / "1.lock"
    stale.write_bytes(first.lock.read_bytes())
    with BridgeProcess(project, home.environment) as second:
        assert second.ready["port"] == first.ready["port"]
        assert second.ready["pid"] != first.ready["pid"]
        assert home.locks() == [second.lock]
        assert json.loads(second.lock.read_text(encoding="utf-8"))["pid"] == second.ready["pid"]
        async with connect(second.ready["port"], token) as client:
            assert await client.request("readFile", {"path": "a"}) == "alive"
    assert home.locks() == []


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(home, project, by):
    served = BridgeProcess(project, home.environment)
    assert served.stop(by) == 0
    assert home.locks() == []
    assert served.log() == ""


async def test_a_deleted_state_folder_is_put_back_and_commands_find_the_bridge_again(project):
    async with Bridge(project) as bridge:
        shutil.rmtree(state_folder())
        await eventually(lambda: find(str(project)) is not None)
        running = find(str(project))
        await eventually(lambda: os.path.exists(str(running["socket"])))
        status = await asyncio.to_thread(ask, running, "status")
        assert status["port"] == bridge.port
