"""The real CLI writes, and we read along: what is shown is what its stream has said."""

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ide_bridge.session.transcript import Transcript
from ide_bridge.session.transcript.past import past_sessions
from ide_bridge.session.transcript.places import find_transcript, projects_folder, slug
from ide_bridge.session.transcript.shown import Command, Compacted, Prompt, Said, Shown, Summary, Tool, ToolResult
from ide_bridge.session.transcript.watch import Watcher, follow
from tests.fakes.claude_cli import KEY, NEWEST, Home, claude_command
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash, ToolUse
from tests.fakes.surroundings import at_home

pytestmark = pytest.mark.real_cli

BEFORE_THE_LIMIT = "2.1.120"
PATIENCE = 60.0
LINE_LIMIT = 16 * 1024 * 1024
FLAGS = (
    *("-p", "--verbose", "--input-format", "stream-json", "--output-format", "stream-json"),
    *("--permission-prompt-tool", "stdio", "--replay-user-messages", "--dangerously-skip-permissions"),
)

Json = dict[str, Any]


class Cli:
    """One run over pipes; what it says is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: list[Json] = []
        self._heard = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            async with self._heard:
                self.said.append(json.loads(line))
                self._heard.notify_all()

    async def prompt(self, text: str) -> str:
        """Sends a prompt under a uuid of ours, and waits for the end of the turn."""
        sent = str(uuid.uuid4())
        message = {"role": "user", "content": text}
        line = {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "", "uuid": sent}
        results = self.count("result")
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        await self.until(lambda: self.count("result") > results)
        return sent

    def count(self, kind: str) -> int:
        return sum(message["type"] == kind for message in self.said)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE), self._heard:
            await self._heard.wait_for(condition)

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._reading
                assert await self._process.wait() == 0
        finally:
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()

    def blocks(self, kind: str) -> list[Json]:
        """The blocks of this kind that the main conversation was made of."""
        own = [message for message in self.said if message["type"] in ("assistant", "user")]
        contents = [message["message"]["content"] for message in own if message["parent_tool_use_id"] is None]
        return [
            block
            for content in contents
            if isinstance(content, list)
            for block in content
            if block["type"] == kind
        ]


class Stage:
    """A home, a project, and a model that says what it is told to."""

    def __init__(self, home: Home, api: MessagesApi, project: Path) -> None:
        self.home, self.api, self.project = home, api, project
        self.home.trust(project)

    @asynccontextmanager
    async def cli(self, *flags: str, version: str = NEWEST, folder: Path | None = None) -> AsyncIterator[Cli]:
        environment = self.home.environment | {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.api.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(*claude_command(version), *FLAGS, *flags),
            cwd=folder or self.project,
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LINE_LIMIT,
        )
        cli = Cli(process)
        try:
            yield cli
        finally:
            await cli.end()

    def path(self, session: str) -> Path:
        return Path(projects_folder(), slug(str(self.project)), f"{session}.jsonl")


@pytest.fixture
def stage(tmp_path: Path, isolation_refused: str | None) -> Iterator[Stage]:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    project = tmp_path / "my.project"
    project.mkdir()
    with at_home() as home, MessagesApi() as api:
        yield Stage(home, api, project)


@asynccontextmanager
async def following(path: Path) -> AsyncIterator[list[Shown]]:
    """All that is told of a transcript while the block runs, and what is written until its end."""
    shown: list[Shown] = []
    watcher = Watcher()
    transcript = Transcript(str(path))

    async def listen() -> None:
        async with aclosing(follow(transcript, watcher)) as news:
            async for each in news:
                assert not each.anew
                assert not each.branched
                shown.extend(each.shown)

    listening = asyncio.create_task(listen())
    try:
        yield shown
    finally:
        if (rest := transcript.news()) is not None:
            shown.extend(rest.shown)
        watcher.close()
        await listening


def everything(path: Path | str) -> list[Shown]:
    page = Transcript(str(path)).page(limit=1_000)
    assert page.before is None
    return list(page.shown)


def assert_like_the_stream(things: list[Shown], cli: Cli) -> None:
    """Order is left out: parallel results may be written in another order than they are told."""
    said = Counter(block["text"] for block in cli.blocks("text"))
    assert Counter(thing.text for thing in things if isinstance(thing, Said)) == said
    calls = [(block["id"], block["name"], block["input"]) for block in cli.blocks("tool_use")]
    assert [(thing.id, thing.tool, thing.input) for thing in things if isinstance(thing, Tool)] == calls
    results = Counter(block["tool_use_id"] for block in cli.blocks("tool_result"))
    assert Counter(thing.id for thing in things if isinstance(thing, ToolResult)) == results


async def test_a_turn_with_tools_is_followed_live(stage):
    calls = [ToolUse("Bash", {"command": f"echo {name}", "description": "x"}) for name in ("one", "two", "three")]
    stage.api.script("all three", calls, "all done")
    session = str(uuid.uuid4())
    async with following(stage.path(session)) as shown, stage.cli("--session-id", session) as cli:
        sent = await cli.prompt("all three, please")
    assert_like_the_stream(shown, cli)
    assert [(thing.sent, thing.text) for thing in shown if isinstance(thing, Prompt)] == [
        (sent, "all three, please")
    ]
    assert sorted(thing.text for thing in shown if isinstance(thing, ToolResult)) == ["one", "three", "two"]
    assert shown == everything(stage.path(session))
    (past,) = past_sessions(str(stage.project))
    assert (past.session, past.title, past.version) == (session, "all three, please", NEWEST)
    assert past.folder == str(stage.project)


async def test_resume_goes_on_and_a_fork_is_a_copy(stage):
    for name in ("first", "second", "third"):
        stage.api.script(f"the {name}", f"{name} answer")
    session, fork = str(uuid.uuid4()), str(uuid.uuid4())
    async with stage.cli("--session-id", session) as cli:
        await cli.prompt("the first")
    before = everything(stage.path(session))
    transcript = Transcript(str(stage.path(session)))
    transcript.page()
    async with stage.cli("--resume", session) as cli:
        await cli.prompt("the second")
    news = transcript.news()
    assert news is not None
    assert not news.branched
    assert [thing.text for thing in news.shown if isinstance(thing, Prompt | Said)] == [
        "the second",
        "second answer",
    ]
    async with stage.cli("--resume", session, "--fork-session", "--session-id", fork) as cli:
        await cli.prompt("the third")
    copied = everything(stage.path(fork))
    resumed = everything(stage.path(session))
    assert resumed[: len(before)] == before
    assert [thing.uuid for thing in copied[: len(resumed)]] == [thing.uuid for thing in resumed]
    assert [thing.text for thing in copied if isinstance(thing, Said)][-1] == "third answer"
    assert find_transcript(fork) == str(stage.path(fork))
    assert {past.session for past in past_sessions(str(stage.project))} == {session, fork}


async def test_two_who_write_at_once_make_two_branches(stage):
    for name in ("first", "left", "right"):
        stage.api.script(f"the {name}", f"{name} answer")
    session = str(uuid.uuid4())
    async with stage.cli("--session-id", session) as cli:
        await cli.prompt("the first")
    async with stage.cli("--resume", session) as left, stage.cli("--resume", session) as right:
        # A command of its own makes each read the file before the other writes to it.
        await left.prompt("/cost")
        await right.prompt("/cost")
        await left.prompt("the left")
        await right.prompt("the right")
    transcript = Transcript(str(stage.path(session)))
    alive = [thing.text for thing in transcript.page().shown if isinstance(thing, Said)]
    assert alive == ["first answer", "right answer"]
    leaves = [branch.leaf for branch in transcript.branches()]
    dead = [thing.text for thing in transcript.page(leaf=leaves[0]).shown if isinstance(thing, Said)]
    assert dead == ["first answer", "left answer"]


async def test_what_a_compaction_leaves_behind_stays_in_reach(stage):
    stage.api.script("the first", "first answer")
    stage.api.script("the second", "second answer")
    session, fork = str(uuid.uuid4()), str(uuid.uuid4())
    async with following(stage.path(session)) as shown, stage.cli("--session-id", session) as cli:
        await cli.prompt("the first")
        await cli.prompt("/compact")
        await cli.prompt("the second")
    things = everything(stage.path(session))
    assert shown == things
    kinds = [type(thing) for thing in things]
    assert kinds.index(Said) < kinds.index(Compacted) < kinds.index(Summary) < kinds.index(Command)
    assert [thing.text for thing in things if isinstance(thing, Prompt)] == ["the first", "the second"]
    async with stage.cli("--resume", session, "--fork-session", "--session-id", fork) as cli:
        await cli.prompt("the second")
    assert [thing.text for thing in everything(stage.path(fork)) if isinstance(thing, Prompt)][-2:] == [
        "the second"
    ] * 2


async def test_a_sub_agent_has_a_transcript_of_its_own(stage):
    task = {"description": "look around", "subagent_type": "general-purpose", "prompt": "sub work now"}
    stage.api.script("agent please", ToolUse("Agent", task), "main finished")
    stage.api.script("sub work now", Bash("echo from sub"), "sub finished")
    session = str(uuid.uuid4())
    async with stage.cli("--session-id", session) as cli:
        await cli.prompt("agent please")
        await cli.until(lambda: cli.count("result") >= 2)  # it runs in the background, and then a turn of its own
    things = everything(stage.path(session))
    (agent,) = Transcript(str(stage.path(session))).agents()
    (call,) = (thing for thing in things if isinstance(thing, Tool))
    assert (agent.description, agent.call, call.agent) == ("look around", call.id, agent.id)
    own = everything(agent.path)
    assert [type(thing) for thing in own] == [Prompt, Tool, ToolResult, Said]
    assert [thing.text for thing in own if isinstance(thing, ToolResult | Said)] == ["from sub", "sub finished"]


@pytest.mark.parametrize("version", [NEWEST, BEFORE_THE_LIMIT])
async def test_the_slug_is_the_one_of_the_cli(stage, version):
    stage.api.script("hello", "hi")
    names = ["a.b", "a-b", "\U0001f600é x_y", "L" * 120 + "/" + "é" * 100, "\U00010000" * 60 + "/" + "m" * 100]
    for name in names:
        folder = stage.project / name
        folder.mkdir(parents=True)
        stage.home.trust(folder)
        session = str(uuid.uuid4())
        async with stage.cli("--session-id", session, version=version, folder=folder) as cli:
            await cli.prompt("hello")
        assert Path(projects_folder(), slug(str(folder)), f"{session}.jsonl").is_file()
        assert [past.session for past in past_sessions(str(folder))] == [session]
