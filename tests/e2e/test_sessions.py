"""Sessions with the real CLIs: all that a controller does, and nothing lost or done twice when it is killed.

The newest CLI is run over pipes, the two older ones over ``--sdk-url``, which newer ones refuse.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from ide_bridge.errors import RemoteError
from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_cli import KEY, LAST_OVER_SOCKET, NEWEST, OLD, Home, claude_command
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash, Write
from tests.fakes.session_front import SessionFront

pytestmark = pytest.mark.real_cli

WAYS = [(NEWEST, "pipes"), (LAST_OVER_SOCKET, "sdk-url"), (OLD, "sdk-url")]
Json = dict[str, Any]


class Stage:
    """A home, a model, a bridge, and a front end that talks to it."""

    def __init__(self, home: Home, api: MessagesApi, version: str, over: str) -> None:
        self.home, self.api, self.version, self.over = home, api, version, over
        self.project = home.path / "project"
        self.project.mkdir()
        home.trust(self.project)
        self.fronts: list[SessionFront] = []
        self.open()

    def open(self) -> None:
        self.bridge = BridgeProcess(self.project, self.home.environment)
        self.front = SessionFront(self.socket(), self.bridge.ready["pid"])
        self.fronts.append(self.front)

    def socket(self) -> str:
        name = f"{self.bridge.ready['pid']}-{self.bridge.ready['port']}.sock"
        return str(next(self.home.path.rglob(name)))

    def close(self) -> None:
        self.bridge.stop()
        for front in self.fronts:
            front.__exit__()

    def start(self, **params: object) -> str:
        return self.front.start(
            over=self.over, command=claude_command(self.version), environment=self.environment, **params
        )

    @property
    def environment(self) -> dict[str, str]:
        return self.home.environment | {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.api.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }

    def transcript(self, session: str) -> list[Json]:
        files = (self.home.config / "projects").glob(f"*/{session}.jsonl")
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return [json.loads(line) for line in lines]

    def wait_for_prompts(self, session: str, wanted: list[str]) -> None:
        """The CLI writes its transcript when it has time."""
        deadline = time.monotonic() + 10
        while (prompts := self.prompts(session)) != wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        assert prompts == wanted

    def prompts(self, session: str) -> list[str]:
        """The user's own words in the transcript."""
        records = [record for record in self.transcript(session) if record["type"] == "user"]
        contents = [record["message"]["content"] for record in records]
        return [text for content in contents for text in _typed(content)]


def _typed(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part.get("type") == "text"] if isinstance(content, list) else []


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{way[1]}")
def stage(request: pytest.FixtureRequest, isolation_refused: str | None) -> Iterator[Stage]:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    with Home() as home, MessagesApi() as api:
        stage = Stage(home, api, *request.param)
        try:
            yield stage
        finally:
            stage.close()


def answer(stage: Stage, session: str, **decision: object) -> Json:
    """Wait for the next question and answer it."""
    asked = stage.front.wait_for(session, "approval", after=answer_after(stage, session))["approval"]
    assert asked["session"] == session
    stage.front.ask("decide", {"approval": asked["id"], **decision})
    return asked


def answer_after(stage: Stage, session: str) -> int:
    """Where the questions begin that nobody has answered."""
    events = stage.front.events[session]
    return max((number + 1 for number, event in enumerate(events) if event["kind"] == "approvalClosed"), default=0)


def test_a_whole_conversation(stage: Stage) -> None:
    front, api, project = stage.front, stage.api, stage.project
    api.script("make a folder", Bash("mkdir made"), "There it is.")
    api.script("make another", Bash("mkdir refused"), "As you like.")
    api.script("make a third", Bash("mkdir asked"), "Third.")

    session = stage.start(prompt="make a folder")
    asked = answer(stage, session, behavior="allow")
    assert (asked["tool"], asked["input"]["command"]) == ("Bash", "mkdir made")
    assert front.wait_for(session, "result", ok=True)["text"] == "There it is."
    assert (project / "made").is_dir()
    front.wait_for(session, "state", state="idle", after=front.count(session) - 5)
    assert [event["text"] for event in front.told(session, "said")] == ["There it is."]

    seen = front.count(session)
    front.ask("prompt", {"session": session, "text": "make another"})
    answer(stage, session, behavior="deny", reason="No folders on Sundays.")
    front.wait_for(session, "result", after=seen)
    api.wait_until_told("No folders on Sundays.")
    assert not (project / "refused").exists()

    seen = front.count(session)
    front.ask("prompt", {"session": session, "text": "make a third"})
    answer(stage, session, behavior="allow", input={"command": "mkdir changed", "description": "Makes it"})
    front.wait_for(session, "result", after=seen)
    assert (project / "changed").is_dir()
    assert not (project / "asked").exists()
    stage.wait_for_prompts(session, ["make a folder", "make another", "make a third"])


def test_interrupting_while_a_question_is_open(stage: Stage) -> None:
    front, api = stage.front, stage.api
    api.script("make a folder", Bash("mkdir made"), "There it is.")
    api.script("something else", "Else.")
    session = stage.start(prompt="make a folder")
    asked = front.wait_for(session, "approval")["approval"]
    assert front.state(session) == "waiting"
    front.ask("interrupt", {"session": session})
    assert front.wait_for(session, "approvalClosed")["outcome"] == "withdrawn"
    front.wait_for(session, "result", ok=False)
    with pytest.raises(RemoteError, match=asked["id"]):
        front.ask("decide", {"approval": asked["id"], "behavior": "allow"})
    assert not (stage.project / "made").exists()
    seen = front.count(session)
    front.ask("prompt", {"session": session, "text": "something else"})
    assert front.wait_for(session, "result", after=seen, ok=True)["text"] == "Else."


def test_interrupting_a_running_command(stage: Stage) -> None:
    front = stage.front
    stage.api.script("wait long", Bash("touch begun && sleep 300"), "Waited.")
    session = stage.start(prompt="wait long")
    answer(stage, session, behavior="allow")
    wait_until((stage.project / "begun").exists)
    front.ask("interrupt", {"session": session})
    front.wait_for(session, "result", ok=False)
    wait_until(lambda: front.state(session) == "idle")


def test_resuming_and_forking(stage: Stage) -> None:
    front, api = stage.front, stage.api
    api.script("first thing", "One.")
    api.script("second thing", "Two.")
    api.script("third thing", "Three.")
    session = stage.start(prompt="first thing")
    front.wait_for(session, "result", ok=True)
    assert front.ask("stopSession", {"session": session[:8]})["state"] == "stopped"

    seen = front.count(session)
    resumed = stage.front.ask(
        "startSession", {"resume": session, "environment": stage.environment, "prompt": "second thing"}
    )
    assert resumed["session"] == session
    front.wait_for(session, "result", ok=True, after=seen)
    stage.wait_for_prompts(session, ["first thing", "second thing"])
    with pytest.raises(RemoteError, match="running already"):
        front.ask("startSession", {"resume": session, "environment": stage.environment})

    fork = stage.start(resume=session, fork=True, prompt="third thing")
    assert fork != session
    front.wait_for(fork, "result", ok=True)
    assert front.described(fork)["forkOf"] == session
    stage.wait_for_prompts(fork, ["first thing", "second thing", "third thing"])
    stage.wait_for_prompts(session, ["first thing", "second thing"])


def test_a_fork_that_was_stopped_before_its_first_prompt_is_still_a_fork(stage: Stage) -> None:
    front = stage.front
    session = stage.start(prompt="remember the word heliotrope")
    front.wait_for(session, "result", ok=True)
    front.ask("stopSession", {"session": session})
    fork = stage.start(resume=session, fork=True)
    front.wait_for(fork, "state", state="idle")
    front.ask("stopSession", {"session": fork})
    seen = front.count(fork)
    front.ask("startSession", {"resume": fork, "environment": stage.environment, "prompt": "which word"})
    front.wait_for(fork, "result", ok=True, after=seen)
    asked = json.dumps(stage.api.requests[-1]["messages"])
    assert "heliotrope" in asked
    assert "which word" in asked


def test_slash_commands_are_run_once(stage: Stage) -> None:
    front = stage.front
    stage.api.script("then this", "This.")
    session = stage.start(prompt="hello")
    front.wait_for(session, "result", ok=True)
    for command in ("/cost", "/nosuch"):
        seen = front.count(session)
        front.ask("prompt", {"session": session, "text": command})
        front.wait_for(session, "result", after=seen)
        wait_until(lambda: front.state(session) == "idle", 10)
    front.ask("stopSession", {"session": session})
    seen = front.count(session)
    front.ask("startSession", {"resume": session, "environment": stage.environment, "prompt": "then this"})
    assert front.wait_for(session, "result", after=seen)["text"] == "This."


def test_what_was_cleared_does_not_come_back(stage: Stage) -> None:
    front = stage.front
    session = stage.start(prompt="the secret is heliotrope")
    for text in ("/clear", "after the clearing"):
        front.wait_for(session, "result")
        wait_until(lambda: front.state(session) == "idle", 10)
        seen = front.count(session)
        front.ask("prompt", {"session": session, "text": text})
        front.wait_for(session, "result", after=seen)
    was_cleared = "heliotrope" not in json.dumps(stage.api.requests[-1]["messages"])
    assert was_cleared or stage.version != NEWEST  # older ones do not know the command here
    front.ask("stopSession", {"session": session})
    seen = front.count(session)
    front.ask("startSession", {"resume": session, "environment": stage.environment, "prompt": "what was said"})
    front.wait_for(session, "result", after=seen)
    asked = json.dumps(stage.api.requests[-1]["messages"])
    assert "after the clearing" in asked
    assert ("heliotrope" not in asked) == was_cleared


def test_model_and_mode_can_be_changed(stage: Stage) -> None:
    front = stage.front
    stage.api.script("write it", Write(stage.project / "new.txt", "new\n"), "Written.")
    session = stage.start(prompt="hello")
    front.wait_for(session, "result")
    assert front.ask("setMode", {"session": session, "mode": "acceptEdits"})["mode"] == "acceptEdits"
    assert (
        front.ask("setModel", {"session": session, "model": "claude-sonnet-4-5"})["model"] == "claude-sonnet-4-5"
    )
    seen = front.count(session)
    front.ask("prompt", {"session": session, "text": "write it"})
    front.wait_for(session, "result", after=seen, ok=True)
    assert not front.told(session, "approval")
    assert (stage.project / "new.txt").read_text(encoding="utf-8") == "new\n"
    assert any(request["model"] == "claude-sonnet-4-5" for request in stage.api.requests)


def test_the_same_prompt_twice_is_run_once(stage: Stage) -> None:
    front = stage.front
    uuid = "7b0d4f0e-33a5-4a0e-9d3a-0c9f4f7a1b11"
    stage.api.script("only once", "Once.")
    session = stage.start()
    for _ in range(3):
        assert front.ask("prompt", {"session": session, "text": "only once", "uuid": uuid})["uuid"] == uuid
    front.wait_for(session, "result", ok=True)
    stage.wait_for_prompts(session, ["only once"])


def test_a_cli_that_is_killed_is_lost_and_comes_back_with_the_next_prompt(stage: Stage) -> None:
    front = stage.front
    stage.api.script("again", "Here.")
    session = stage.start(prompt="hello")
    front.wait_for(session, "result")
    os.kill(front.described(session)["pid"], signal.SIGKILL)
    front.wait_for(session, "state", state="lost", seconds=5)
    seen = front.count(session)
    front.ask("startSession", {"resume": session, "environment": stage.environment, "prompt": "again"})
    assert front.wait_for(session, "result", after=seen, ok=True)["text"] == "Here."


def wait_until(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.02)


# -- the controller is killed ---------------------------------------------------------------------------------

POINTS = 20
AT_ONCE = 5


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0]}-{way[1]}")
@pytest.mark.timeout(300)
def test_killed_at_twenty_points_of_a_turn(way: tuple[str, str], isolation_refused: str | None) -> None:
    """Whenever the bridge dies, the prompt is run once in the end, nothing stays, and the transcript is whole.

    Each time several sessions are brought to different points of their turns.
    """
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    with Home() as home, MessagesApi() as api:
        stage = Stage(home, api, *way)
        for point in range(POINTS):
            api.script(f"make {point:02}", Bash(f"mkdir made-{point:02}"), "Done.")
        try:
            for first in range(POINTS // AT_ONCE):
                _killed_once(stage, list(range(first, POINTS, POINTS // AT_ONCE)))
        finally:
            stage.close()


def _killed_once(stage: Stage, points: list[int]) -> None:
    """Kill the bridge when its sessions have come to these points, then have them go on."""
    sessions = {stage.start(): point for point in reversed(points)}
    for session, point in sessions.items():
        if point >= POINTS // 2:
            stage.front.wait_for(session, "state", state="idle")
        stage.front.ask("prompt", {"session": session, "text": f"make {point:02}"})
        _let_go_on(stage, session, point)
    left = _below(stage.bridge.ready["pid"])
    stage.bridge.stop(signal.SIGKILL)
    _, alive = psutil.wait_procs(left, timeout=25)
    assert not alive, f"still running after the bridge was killed at {points}: {alive}"
    stage.open()
    for session in sessions:
        assert stage.front.state(session) == "lost"
        stage.front.ask("startSession", {"resume": session, "environment": stage.environment})
    for session, point in sessions.items():
        _bring_to_an_end(stage, session, point)
        stage.front.ask("stopSession", {"session": session})
        assert stage.prompts(session).count(f"make {point:02}") == 1, f"at point {point}"


def _let_go_on(stage: Stage, session: str, point: int) -> None:
    """Go so far into the turn: by time while it starts, by events later, beyond the answer in the end."""
    front = stage.front
    if point < POINTS // 2:
        time.sleep(point * 0.06)  # a point in time is what is tested, and not a condition
        return
    wanted = {10: "prompt", 11: "state", 12: "tool", 13: "approval"}.get(point)
    if wanted is not None:
        front.wait_for(session, wanted)
        return
    answer(stage, session, behavior="allow")
    if point > 15:
        front.wait_for(session, "toolResult")
    if point > 17:
        front.wait_for(session, "result")


def _bring_to_an_end(stage: Stage, session: str, point: int) -> None:
    """Have what was not done done: by the prompt that was kept, or else there is nothing left to do."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        for question in stage.front.ask("approvals"):
            stage.front.ask("decide", {"approval": question["id"], "behavior": "allow"})
        if stage.front.state(session) == "idle" and f"make {point:02}" in stage.prompts(session):
            return
        time.sleep(0.05)
    raise AssertionError(f"point {point} does not come to an end: {stage.front.described(session)}")


def _below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def test_the_newest_cli_says_clearly_that_it_cannot_be_had_over_the_socket(
    home: Home, api: MessagesApi, isolation_refused: str | None
) -> None:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    stage = Stage(home, api, NEWEST, "sdk-url")
    try:
        with pytest.raises(RemoteError, match=r"2\.1\.120"):
            stage.start()
    finally:
        stage.close()


def test_a_bridge_with_a_live_session_does_not_linger_out(
    home: Home, api: MessagesApi, isolation_refused: str | None
) -> None:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    stage = Stage(home, api, NEWEST, "pipes")
    stage.close()
    stage.bridge = BridgeProcess(stage.project, home.environment, "--linger", "0.5")
    try:
        with SessionFront(stage.socket(), stage.bridge.ready["pid"]) as stage.front:
            session = stage.start(prompt="hello")
            stage.front.wait_for(session, "result")
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            assert psutil.pid_exists(stage.bridge.ready["pid"])
            time.sleep(0.1)
        with SessionFront(stage.socket(), stage.bridge.ready["pid"]) as front:
            front.ask("stopSession", {"session": session})
        wait_until(lambda: not stage.bridge.runs, 10)
    finally:
        stage.bridge.stop()
