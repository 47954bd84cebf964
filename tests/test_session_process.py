"""The CLI's process over pipes: a fake CLI that can misbehave, real processes, and whatever can end them."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import sys
import termios
import time
import uuid
from pathlib import Path

import psutil
import pytest

from ide_bridge.errors import Disconnected, InvalidParams, SetupProblem
from ide_bridge.session.process import Cli, CliProcess, Launch, find_cli, keeper
from ide_bridge.session.process.kept import Command, Kept, Patience
from tests.fakes.doomed_bridge import DoomedBridge, is_gone
from tests.fakes.recorded_cli import COMMAND

SOON = 20.0
SHORT = Patience(0.2, 0.2)
FAKE = Cli(tuple(COMMAND), (2, 1, 326))
SESSION, OTHER, MESSAGE = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


class Session:
    """A fake session, and what it has said so far, line by line."""

    def __init__(self, process: CliProcess) -> None:
        self.process = process
        self.lines: list[dict] = []
        self._reading = aiter(process)
        self._unread = bytearray()

    async def prompt(self, *commands: str) -> None:
        await self.process.send(prompt("\n".join(commands)))

    async def hear(self, **wanted: object) -> dict:
        """The next line with these fields."""
        async with asyncio.timeout(SOON):
            while True:
                message = await self.next()
                if message.items() >= wanted.items():
                    return message

    async def next(self) -> dict:
        while b"\n" not in self._unread:
            self._unread += await anext(self._reading)
        line, _, rest = self._unread.partition(b"\n")
        self._unread = rest
        message = json.loads(line)
        self.lines.append(message)
        return message

    async def child(self) -> int:
        """The process that an ``@child`` has left behind."""
        while not (text := (await self.hear(type="assistant"))["message"]["content"][0]["text"]).startswith(
            "child"
        ):
            pass
        return int(text.split()[1])


def prompt(text: str) -> bytes:
    message = {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}
    return json.dumps(message | {"session_id": "", "uuid": str(uuid.uuid4())}).encode() + b"\n"


@pytest.fixture
async def start(tmp_path):
    """Starts sessions, and ends them after the test, whatever has become of them."""
    processes = []

    async def start(*commands: str, patience=SHORT, keep=(), session=None, **variables: str) -> Session:
        environment = {"PATH": os.environ["PATH"], "RECORDED_CLI": ";".join(commands)} | variables
        launch = Launch(session or str(uuid.uuid4()), str(tmp_path))
        process = await CliProcess.start(FAKE, launch, environment=environment, keep=keep, patience=patience)
        processes.append(process)
        return Session(process)

    yield start
    for process in processes:
        await process.end()


async def until(condition, seconds=SOON):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.005)


async def all_of(process: CliProcess) -> bytes:
    async with asyncio.timeout(SOON):
        return b"".join([data async for data in process])


def texts(said: bytes) -> list[str]:
    """The live pieces of text in what a CLI said."""
    events = [json.loads(line).get("event", {}) for line in said.splitlines()]
    return [event["delta"]["text"] for event in events if event.get("delta", {}).get("type") == "text_delta"]


# -- speaking -------------------------------------------------------------------------------------------------


async def test_a_turn_over_pipes(start):
    session = await start()
    await session.prompt("hello")
    assert (await session.hear(type="user"))["isReplay"]
    assert (await session.hear(type="result"))["result"] == "fake answer: hello"
    assert await session.process.end() == 0
    assert session.process.complaint == ""


async def test_the_pid_is_that_of_the_cli_itself_which_belongs_to_no_terminal_of_ours(start):
    session = await start()
    assert psutil.Process(session.process.pid).cmdline()[: len(COMMAND)] == COMMAND
    assert os.getsid(session.process.pid) != os.getsid(0)
    await session.process.end()


async def test_a_line_of_twenty_megabytes_comes_and_goes_whole(start):
    session = await start()
    size = 20_000_000
    await session.prompt(f"@huge {size}")
    assert len((await session.hear(type="assistant"))["message"]["content"][0]["text"]) == size
    await session.hear(type="result")
    await session.prompt("x" * size, "@text taken")
    assert len((await session.hear(type="user"))["message"]["content"]) > size
    await session.hear(type="result")
    assert await session.process.end() == 0


async def test_a_cli_that_does_not_read_makes_the_sender_wait_and_gets_everything(start):
    session = await start("@stall 0.7")
    line = prompt("y" * 300_000 + "\n@text taken")
    sending = asyncio.create_task(session.process.send(line))
    await asyncio.sleep(0.2)
    assert not sending.done()
    await session.hear(type="user")
    await sending
    assert (await session.hear(type="result"))["result"] == "taken"
    await session.process.end()


async def test_many_who_send_at_once_are_not_mixed(start):
    session = await start("@stall 0.2")
    lines = [prompt(f"{letter * 100_000}\n@text ok") for letter in "abcdefgh"]
    async with asyncio.TaskGroup() as group:
        for line in lines:
            group.create_task(session.process.send(line))
        for _ in lines:
            await session.hear(type="result")
    sent = [message["message"]["content"][0] for message in session.lines if message.get("isReplay")]
    assert sent == list("abcdefgh")
    await session.process.end()


async def test_a_send_that_is_broken_off_is_sent_as_a_whole_or_not_at_all(start):
    session = await start("@stall 0.5")
    first = asyncio.create_task(session.process.send(prompt("z" * 300_000 + "\n@text first")))
    await asyncio.sleep(0.05)  # the pipe is full, the line half written
    second = asyncio.create_task(session.process.send(prompt("@text second")))
    await asyncio.sleep(0.05)
    for task in (first, second):
        task.cancel()
    await session.process.send(prompt("@text third"))
    answers = [(await session.hear(type="result"))["result"] for _ in range(2)]
    assert answers == ["first", "third"]
    assert await session.process.end() == 0


async def test_a_reader_that_waits_stops_the_cli_and_loses_nothing(start):
    session = await start(patience=Patience(10, 10))
    count = 3000
    await session.prompt(f"@events {count}")
    await until(lambda: _waiting_bytes(session.process) > 60_000)
    await asyncio.sleep(0.2)
    written = _written(session.process.pid)  # what fits into the pipe: nothing was taken from it meanwhile
    await session.hear(type="result")
    assert written < 100_000 < _written(session.process.pid)
    pieces = [
        line["event"]["delta"]["text"]
        for line in session.lines
        if line.get("event", {}).get("type") == "content_block_delta"
    ]
    assert pieces == [f"w{number} " for number in range(count)]
    await session.process.end()


def _waiting_bytes(process: CliProcess) -> int:
    """How much lies in the pipe."""
    size = bytearray(4)
    fcntl.ioctl(process._output._descriptor, termios.FIONREAD, size)
    return int.from_bytes(size, sys.byteorder)


def _written(pid: int) -> int:
    return psutil.Process(pid).io_counters().write_chars


async def test_sending_to_a_cli_that_is_gone_says_so_with_its_last_words(start):
    session = await start("@stderr It is too late.;@crash 3")
    await session.process.wait()
    with pytest.raises(Disconnected, match=r"^Claude Code has ended and said: It is too late\.$"):
        await session.prompt("hello")


async def test_a_sender_who_waits_is_told_that_the_cli_is_gone(start):
    session = await start("@stall 600")
    sending = asyncio.create_task(session.process.send(prompt("x" * 1_000_000)))
    await asyncio.sleep(0.05)
    os.kill(session.process.pid, signal.SIGKILL)
    with pytest.raises(Disconnected, match="ended"):
        await asyncio.wait_for(sending, SOON)
    assert await session.process.wait() == 137


async def test_after_close_nothing_can_be_sent_and_the_cli_ends_by_itself(start):
    session = await start()
    await session.process.close()
    await session.process.close()
    with pytest.raises(Disconnected):
        await session.prompt("hello")
    assert await session.process.wait() == 0


# -- its end --------------------------------------------------------------------------------------------------


async def test_a_killed_cli_is_noticed_at_once(start, record_property):
    session = await start()
    await session.prompt("@wait 600")
    await session.hear(subtype="init")
    reading = asyncio.create_task(all_of(session.process))
    await asyncio.sleep(0)
    begun = time.monotonic()
    os.kill(session.process.pid, signal.SIGKILL)
    await reading
    noticed = time.monotonic() - begun
    record_property("milliseconds", noticed * 1000)
    assert noticed < 0.5
    assert await session.process.wait() == 137


async def test_a_killed_cli_is_noticed_at_once_though_its_child_holds_the_streams(start):
    session = await start()
    await session.prompt("@stubborn-child", "@wait 600")
    child = await session.child()
    begun = time.monotonic()
    os.kill(session.process.pid, signal.SIGKILL)
    await all_of(session.process)
    assert time.monotonic() - begun < keeper.GRACE_SECONDS / 2
    assert not is_gone(child)
    assert await session.process.wait() == 137
    assert is_gone(child)


async def test_what_a_cli_has_said_last_is_read_after_its_end(start):
    session = await start()
    await session.prompt("@events 100", "@stderr farewell", "@crash 9")
    await session.process.wait()
    assert texts(await all_of(session.process)) == [f"w{number} " for number in range(100)]
    assert session.process.complaint == "farewell"


async def test_a_cli_that_ends_by_itself_leaves_nothing(start):
    session = await start()
    await session.prompt("@child", "@wait 0.1", "@crash 4")
    child = await session.child()
    assert await session.process.wait() == 4
    assert is_gone(child)


async def test_the_end_lets_the_turn_finish(start):
    session = await start(patience=Patience(10, 10))
    await session.prompt("@wait 0.3", "@text finished")
    await session.hear(subtype="init")
    ending = asyncio.create_task(session.process.end())
    assert (await session.hear(type="result"))["result"] == "finished"
    assert await ending == 0


async def test_the_end_needs_nobody_to_read_what_is_still_said(start):
    session = await start(patience=Patience(10, 10))
    await session.prompt("@events 3000")
    await until(lambda: _waiting_bytes(session.process) > 60_000)
    begun = time.monotonic()
    assert await session.process.end() == 0
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("stubborn", "code"), [(("@ignore-end",), 128 + 15), (("@ignore-end", "@ignore-term"), 128 + 9), ((), 0)]
)
async def test_the_end_comes_in_steps(start, stubborn, code):
    session = await start(*stubborn)
    await session.prompt("hello")
    await session.hear(type="result")
    assert await asyncio.wait_for(session.process.end(), SOON) == code
    assert is_gone(session.process.pid)


@pytest.mark.parametrize("child", ["@child", "@stubborn-child"])
async def test_the_end_reaches_what_has_fled_to_a_session_of_its_own(start, child):
    session = await start()
    await session.prompt(child)
    pid = await session.child()
    await session.hear(type="result")
    assert await session.process.end() == 0
    assert is_gone(pid)


async def test_the_end_may_be_asked_for_by_many_and_again(start):
    session = await start("@ignore-end")
    codes = await asyncio.gather(*(session.process.end() for _ in range(5)), session.process.wait())
    assert codes == [143] * 6
    assert await session.process.end() == 143


async def test_whoever_gives_up_on_the_end_does_not_stop_it(start):
    session = await start("@ignore-end")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.process.end(), 0.05)
    assert await asyncio.wait_for(session.process.wait(), SOON) == 143


async def test_a_start_that_is_broken_off_leaves_nothing(start):
    before = keeper.below(os.getpid(), keeper.processes())
    for delay in (0, 0.002, 0.005, 0.01, 0.02):
        starting = asyncio.create_task(start())
        await asyncio.sleep(delay)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).process.end()
    await until(lambda: keeper.below(os.getpid(), keeper.processes()) == before)


async def test_a_killed_keeper_does_not_leave_the_cli(start):
    session = await start("@ignore-end", "@ignore-term")
    await session.prompt("@run Bash {}", "@wait 600")
    await session.hear(type="assistant")
    session.process._keeper.kill()
    await all_of(session.process)
    assert await asyncio.wait_for(session.process.wait(), SOON) == 137
    assert is_gone(session.process.pid)


@pytest.mark.parametrize(
    "commands",
    [
        [],
        ["@ignore-end"],
        ["@ignore-end", "@ignore-term"],
        ["@child"],
        ["@ignore-end", "@ignore-term", "@stubborn-child"],
    ],
    ids=" ".join,
)
async def test_a_killed_bridge_leaves_nothing(tmp_path, commands):
    environment = {"PATH": os.environ["PATH"], "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    words = "\n".join([*commands, "@text begun", "@wait 0.2", "@events 50 1000"])
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with DoomedBridge(COMMAND, SESSION, tmp_path, environment, words, keep=(lock,), patience=(0.8, 0.2)) as bridge:
        os.close(lock)
        doomed = [bridge.cli, bridge.keeper]
        if "child" in words:
            answer = json.loads(bridge.wait_for('"type":"assistant"'))
            doomed.append(int(answer["message"]["content"][0]["text"].split()[1]))
        bridge.wait_for("begun")
        assert not _can_lock(tmp_path / "lock")
        bridge.kill()
        await until(lambda: all(map(is_gone, doomed)))
        assert _can_lock(tmp_path / "lock")
    (transcript,) = (tmp_path / "config" / "projects").glob(f"*/{SESSION}.jsonl")
    records = [json.loads(line) for line in transcript.read_text(encoding="utf-8").splitlines()]
    assert records[-1]["type"] == "last-prompt" or "@ignore-end" in commands


def _can_lock(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def test_what_is_kept_is_held_by_the_keeper_and_not_by_the_cli_until_all_is_gone(start, tmp_path):
    path = tmp_path / "lock"
    lock = os.open(path, os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    session = await start(keep=(lock,))
    os.close(lock)
    await session.prompt("@stubborn-child", "@wait 600")
    child = await session.child()
    for pid in (session.process.pid, child):
        assert str(path) not in {file.path for file in psutil.Process(pid).open_files()}
    os.kill(session.process.pid, signal.SIGKILL)
    await all_of(session.process)
    assert not _can_lock(path)
    await session.process.wait()
    assert _can_lock(path)


async def test_nothing_is_leaked_and_nothing_printed(start, capfd):
    async def session(number):
        running = await start(*(["@stderr hello"] if number % 2 else []))
        await running.prompt("hello", *(["@crash 1"] if number % 3 == 0 else []))
        with contextlib.suppress(StopAsyncIteration):
            await running.hear(type="result")
        await running.process.end()

    await session(1)
    open_before = os.listdir("/proc/self/fd")
    children_before = psutil.Process().children()
    await asyncio.gather(*map(session, range(20)))
    assert len(os.listdir("/proc/self/fd")) == len(open_before)
    assert psutil.Process().children() == children_before
    assert capfd.readouterr() == ("", "")


async def test_a_failed_start_leaks_nothing_either(tmp_path):
    await find_cli(COMMAND)
    before = len(os.listdir("/proc/self/fd"))
    for folder, command in [
        ("/no/such/folder", COMMAND),
        (str(tmp_path), ["/no/such/program"]),
        ("a\0b", COMMAND),
    ]:
        cli = Cli(tuple(command), (2, 1, 326))
        with pytest.raises((SetupProblem, InvalidParams)):
            await CliProcess.start(cli, Launch(SESSION, folder), environment={})
    assert len(os.listdir("/proc/self/fd")) == before
    assert psutil.Process().children() == []


# -- its last words -------------------------------------------------------------------------------------------


async def test_the_last_words_are_the_last_and_not_many(start):
    session = await start()
    await session.prompt("@flood 10000000", "@stderr \x1b[31mred\x1b[0m and \x07 bell", "@stderr at last")
    await session.hear(type="result")
    await session.process.end()
    assert session.process.complaint.endswith("\nred and  bell\nat last")
    assert len(session.process.complaint) <= 4096


# -- the folder and the environment ---------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["/no/such/folder", __file__])
async def test_a_folder_that_is_none_is_named(folder):
    with pytest.raises(SetupProblem, match=rf"^The folder {folder} cannot be entered: .*; choose another one\.$"):
        await CliProcess.start(FAKE, Launch(SESSION, folder), environment={})


async def test_a_program_that_has_gone_since_it_was_found_is_named(tmp_path):
    cli = Cli((str(tmp_path / "claude"),), (2, 1, 326))
    with pytest.raises(SetupProblem, match=r"claude cannot be run: No such file or directory; install it anew"):
        await CliProcess.start(cli, Launch(SESSION, str(tmp_path)), environment={})


async def test_nothing_in_the_environment_reaches_the_keeper_itself(tmp_path):
    (tmp_path / "select.py").write_text("print('taken over')", encoding="utf-8")
    environment = {
        "PYTHONPATH": str(tmp_path),
        "PYTHONSTARTUP": str(tmp_path / "select.py"),
        "PYTHONHOME": "/nope",
    }
    process = await Kept.run(Command(["/bin/echo", "mine"], str(tmp_path), environment))
    assert await all_of(process) == b"mine\n"
    assert await process.end() == 0


@pytest.mark.parametrize("environment", [{"A=B": "c"}, {"A": "b\0c"}])
async def test_an_environment_that_cannot_be_is_refused(environment, tmp_path):
    with pytest.raises(InvalidParams, match="cannot be passed on"):
        await CliProcess.start(FAKE, Launch(SESSION, str(tmp_path)), environment=environment)


async def test_a_cli_that_calls_gets_the_token_in_its_environment_only_and_no_streams(tmp_path):
    shown = tmp_path / "shown"
    script = (
        f"#!/bin/sh\nenv > '{shown}'; echo \"$@\" >> '{shown}'; echo out; echo err >&2; read line || sleep 600\n"
    )
    cli = Cli((_program(tmp_path / "claude", script),), (2, 1, 120))
    process = await CliProcess.start(
        cli,
        Launch(SESSION, str(tmp_path)),
        environment={"PATH": os.environ["PATH"], "CLAUDE_CODE_SESSION_ACCESS_TOKEN": "old"},
        sdk_url="ws://127.0.0.1:1/sdk/x",
        token="secret-token",
        patience=SHORT,
    )
    await until(lambda: process.complaint == "out\nerr")
    assert psutil.Process(process.pid).cmdline()[-1] == "--sdk-url=ws://127.0.0.1:1/sdk/x"
    assert not any("secret-token" in word for word in psutil.Process(process.pid).cmdline())
    assert "CLAUDE_CODE_SESSION_ACCESS_TOKEN=secret-token\n" in shown.read_text(encoding="utf-8")
    with pytest.raises(SetupProblem, match="does not read its standard input"):
        await process.send(b"{}\n")
    reading = asyncio.create_task(all_of(process))
    assert await process.end() == 128 + signal.SIGTERM
    assert await reading == b""


def _program(path: Path, script: str) -> str:
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return str(path)
