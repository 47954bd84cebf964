"""The real CLI as a process under our keeper: flags, turns, ends and deaths."""

import asyncio
import itertools
import json
import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from aiohttp import web

from ide_bridge.errors import SetupProblem
from ide_bridge.session.process import Cli, CliProcess, Launch, find_cli
from tests.fakes import recorded_cli
from tests.fakes.claude_cli import KEY, NEWEST, OLD, Home, claude_command
from tests.fakes.doomed_bridge import DoomedBridge, is_gone
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash

pytestmark = pytest.mark.real_cli

LAST_WITH_SDK_URL = "2.1.120"
SOON = 30.0


class Stage:
    """A home, a project and a model for one version of the CLI."""

    def __init__(self, home: Home, api: MessagesApi, version: str) -> None:
        self.home, self.api, self.version = home, api, version
        self.command = claude_command(version)
        self.project = home.path / f"project {version}"
        self.project.mkdir()
        home.trust(self.project)
        self.environment = home.environment | {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": api.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }

    async def cli(self) -> Cli:
        return await find_cli(self.command, self.environment)

    async def start(self, session: str, **launch: object) -> CliProcess:
        process = await CliProcess.start(
            await self.cli(), Launch(session, str(self.project), **launch), environment=self.environment
        )
        assert psutil.Process(process.pid).cmdline()[: len(self.command)] == self.command
        return process

    def records(self, session: str) -> list[dict]:
        """The transcript; fails on a line that is not whole."""
        (file,) = (self.home.config / "projects").glob(f"*/{session}.jsonl")
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]

    def allow_bash(self) -> None:
        settings = self.project / ".claude" / "settings.local.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"permissions": {"allow": ["Bash"]}}), encoding="utf-8")


@pytest.fixture(scope="module")
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as api:
        yield api


@pytest.fixture
def stage(request: pytest.FixtureRequest, api: MessagesApi, isolation_refused: str | None) -> Iterator[Stage]:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    with Home() as home:
        yield Stage(home, api, getattr(request, "param", NEWEST))


def message(text: str, number: str) -> dict[str, object]:
    prompt = {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}
    return prompt | {"session_id": "", "uuid": number}


async def turn(process: CliProcess, text: str) -> tuple[str, list[dict]]:
    """One turn; gives the number of its prompt, and what was said."""
    number, said = str(uuid.uuid4()), bytearray()
    await process.send(json.dumps(message(text, number)).encode() + b"\n")
    async with asyncio.timeout(SOON):
        async for data in process:
            said += data
            if b'"type":"result"' in said and said.endswith(b"\n"):
                break
    lines = [json.loads(line) for line in said.splitlines()]
    return number, lines[: lines.index(one(lines, type="result")) + 1]


def one(lines: list[dict], **wanted: object) -> dict:
    return next(line for line in lines if line.items() >= wanted.items())


# -- the flags ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", [NEWEST, LAST_WITH_SDK_URL, OLD], indirect=True)
async def test_a_session_its_sequel_and_its_fork(stage: Stage) -> None:
    stage.api.script("hello", "hi there")
    assert (await stage.cli()).text == stage.version
    session, fork = str(uuid.uuid4()), str(uuid.uuid4())
    first = await stage.start(session, model="sonnet", mode="plan", arguments=("--add-dir", str(stage.home.path)))
    number, lines = await turn(first, "hello")
    begun = one(lines, type="system", subtype="init")
    assert (begun["session_id"], begun["permissionMode"]) == (session, "plan")
    assert "sonnet" in begun["model"]
    assert one(lines, type="user", isReplay=True)["uuid"] == number
    assert one(lines, type="result")["result"] == "hi there"
    assert any(line["type"] == "stream_event" for line in lines)
    begun_to_end = time.monotonic()
    assert await first.end() == 0
    assert time.monotonic() - begun_to_end < 4  # it ended by itself, and was not told to
    assert first.complaint == ""

    again = await stage.start(session, resume=session)
    await turn(again, "hello again")
    assert await again.end() == 0
    records = stage.records(session)
    assert [record["uuid"] for record in records if record.get("uuid") == number] == [number]

    forked = await stage.start(fork, resume=session, fork=True, at=_last_answer(records))
    _, lines = await turn(forked, "hello from the fork")
    assert one(lines, type="system", subtype="init")["session_id"] == fork
    assert await forked.end() == 0
    assert number in {record.get("uuid") for record in stage.records(fork)}


def _last_answer(records: list[dict]) -> str:
    return next(record["uuid"] for record in reversed(records) if record["type"] == "assistant")


async def test_the_newest_is_told_that_it_cannot_call_before_it_is_started(stage: Stage) -> None:
    with pytest.raises(SetupProblem, match=rf"^Claude Code {NEWEST} accepts --sdk-url only .* over pipes\.$"):
        await CliProcess.start(
            await stage.cli(),
            Launch(str(uuid.uuid4()), str(stage.project)),
            environment=stage.environment,
            sdk_url="ws://127.0.0.1:9/sdk/x",
            token="x",
        )
    assert psutil.Process().children() == []


@pytest.mark.parametrize("stage", [LAST_WITH_SDK_URL, OLD], indirect=True)
async def test_an_older_one_calls_where_it_is_told_and_shows_its_token(stage: Stage) -> None:
    called: asyncio.Queue[tuple[str, str | None]] = asyncio.Queue()

    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        called.put_nowait((request.path, request.headers.get("Authorization")))
        async for _ in socket:
            pass
        return socket

    application = web.Application()
    application.router.add_get("/sdk/{session}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    process = await CliProcess.start(
        await stage.cli(),
        Launch(str(uuid.uuid4()), str(stage.project)),
        environment=stage.environment,
        sdk_url=f"ws://127.0.0.1:{port}/sdk/abc",
        token="the-token",
    )
    assert await asyncio.wait_for(called.get(), SOON) == ("/sdk/abc", "Bearer the-token")
    assert "the-token" not in " ".join(psutil.Process(process.pid).cmdline())
    begun = time.monotonic()
    assert await process.end() == 128 + signal.SIGTERM
    assert time.monotonic() - begun < 4
    await runner.cleanup()


# -- its death, and ours --------------------------------------------------------------------------------------


async def test_a_killed_cli_is_noticed_at_once(stage: Stage) -> None:
    stage.api.script("hello", "hi there")
    process = await stage.start(str(uuid.uuid4()))
    await turn(process, "hello")
    begun = time.monotonic()
    os.kill(process.pid, signal.SIGKILL)
    async for _ in process:
        pass
    assert time.monotonic() - begun < 0.5
    assert await process.wait() == 128 + signal.SIGKILL


async def test_a_session_that_is_in_use_is_refused_with_the_reason(stage: Stage) -> None:
    stage.api.script("hello", "hi there")
    session = str(uuid.uuid4())
    process = await stage.start(session)
    await turn(process, "hello")
    await process.end()
    second = await stage.start(session)
    assert await asyncio.wait_for(second.wait(), SOON) == 1
    assert "already in use" in second.complaint


@pytest.mark.parametrize("stage", [NEWEST, LAST_WITH_SDK_URL, OLD], indirect=True)
async def test_a_bridge_killed_in_the_middle_of_a_turn_leaves_nothing_and_a_whole_transcript(stage: Stage) -> None:
    stage.allow_bash()
    pids = stage.project / "pids"
    command = f'setsid sh -c \'echo $$ >> "{pids}"; exec sleep 600\' & echo $$ >> "{pids}"; sleep 600'
    stage.api.script(f"work {stage.version}", Bash(command), "never said")
    session = str(uuid.uuid4())
    prompt = f"work {stage.version}"
    with DoomedBridge(
        stage.command, session, stage.project, stage.environment, prompt, patience=(1.0, 5.0)
    ) as bridge:
        doomed = [bridge.cli, bridge.keeper]
        await _until(lambda: pids.exists() and len(pids.read_text(encoding="utf-8").split()) == 2)
        doomed += map(int, pids.read_text(encoding="utf-8").split())
        bridge.kill()
        await _until(lambda: all(map(is_gone, doomed)))
    records = stage.records(session)
    assert prompt in json.dumps([record for record in records if record["type"] == "user"])


async def _until(condition) -> None:
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.02)


async def test_the_project_is_where_it_works(stage: Stage) -> None:
    process = await stage.start(str(uuid.uuid4()))
    assert Path(psutil.Process(process.pid).cwd()) == stage.project
    assert await process.end() == 0


# -- the fake one ---------------------------------------------------------------------------------------------


async def test_the_fake_cli_says_what_the_real_one_says_in_the_same_order(stage: Stage) -> None:
    stage.api.script("hello", "hi there")
    said = []
    for cli, text in (
        (await stage.cli(), "hello"),
        (await find_cli(recorded_cli.COMMAND), "hello\n@text hi there"),
    ):
        launch = Launch(str(uuid.uuid4()), str(stage.project))
        process = await CliProcess.start(cli, launch, environment=stage.environment)
        _, lines = await turn(process, text)
        await process.end()
        said.append([kind for kind, _ in itertools.groupby(map(_kind, lines))])
        assert {"user", "assistant", "last-prompt"} <= {record["type"] for record in stage.records(launch.session)}
    assert said[0] == said[1]


def _kind(line: dict) -> tuple[object, ...]:
    return (
        line["type"],
        line.get("subtype"),
        line.get("state"),
        line.get("event", {}).get("type"),
        line.get("isReplay"),
    )
