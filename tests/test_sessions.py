"""Sessions over the private socket: started, watched, answered, lost and continued, with a CLI without a model."""

import asyncio
import json
import os
import signal

import pytest

from ide_bridge.errors import RemoteError
from ide_bridge.session.controller import Controller
from ide_bridge.session.session import Session
from tests.fakes import recorded_cli
from tests.fakes.hosted_sessions import hosted


@pytest.fixture
async def stage():
    async with hosted() as stage:
        yield stage


@pytest.fixture
async def front(stage):
    return await stage.front()


def kinds(front, session, *wanted):
    return [event for event in front.events[session] if event["kind"] in wanted]


async def settled(front, session, state="idle"):
    """Wait until the session is in a state; gives what is known of it."""
    async with asyncio.timeout(20):
        while (shown := await front.shown(session))["state"] != state:
            await asyncio.sleep(0.01)
        return shown


async def test_a_turn_is_told_in_the_words_of_a_person(front):
    session = await front.start('@think Hm.\n@text Here\n@run Read {"file_path": "a.txt"}')
    result = await front.kind(session, "result", ok=True)
    assert result["seconds"] >= 0
    assert [event["text"] for event in kinds(front, session, "thinking")] == ["Hm."]
    assert "Here" in [event["text"] for event in kinds(front, session, "said")]
    (tool,) = kinds(front, session, "tool")
    assert (tool["tool"], tool["input"]) == ("Read", {"file_path": "a.txt"})
    (outcome,) = kinds(front, session, "toolResult")
    assert outcome["ok"]
    assert outcome["id"] == tool["id"]
    assert front.numbers[session] == sorted(set(front.numbers[session]))


async def test_states_follow_the_turn(front):
    session = await front.start('@tool Bash {"command": "ls"}')
    asked = (await front.kind(session, "approval"))["approval"]
    assert (await settled(front, session, "waiting"))["approvals"] == [asked["id"]]
    await front.ask("decide", approval=asked["id"], behavior="allow")
    await front.kind(session, "result")
    assert (await settled(front, session))["approvals"] == []
    states = [event["state"] for event in kinds(front, session, "state")]
    assert states[:3] == ["starting", "working", "waiting"]
    assert states[-1] == "idle"


async def test_an_approval_is_told_to_all_and_the_first_answer_wins(stage, front):
    session = await front.start('@tool Bash {"command": "ls"}')
    other = await stage.front()
    await other.ask("watchSession", session=session)
    asked = (await other.kind(session, "approval"))["approval"]
    assert asked["title"] == "Bash: ls"
    assert [each["id"] for each in await other.ask("approvals")] == [asked["id"]]
    answer = await other.ask("decide", approval=asked["id"], behavior="deny", reason="Not today.")
    assert answer == {"approval": asked["id"], "outcome": "denied", "by": "terminal"}
    closed = await front.kind(session, "approvalClosed")
    assert (closed["outcome"], closed["reason"]) == ("denied", "Not today.")
    with pytest.raises(RemoteError, match="already denied by terminal"):
        await front.ask("decide", approval=asked["id"], behavior="allow")
    assert not (await front.kind(session, "toolResult"))["ok"]


async def test_a_changed_input_is_what_runs(front):
    session = await front.start('@tool Bash {"command": "ls"}')
    asked = (await front.kind(session, "approval"))["approval"]
    await front.ask("decide", approval=asked["id"], behavior="allow", input={"command": "pwd"})
    assert '"pwd"' in (await front.kind(session, "toolResult"))["text"]


async def test_what_a_session_asks_and_nobody_understands_is_refused_at_once(front):
    session = await front.start('@request {"subtype": "sing_a_song"}')
    assert await front.kind(session, "result")
    assert "does not offer" in json.dumps(front.events[session])


async def test_interrupting(front):
    session = await front.start("@wait 300")
    await settled(front, session, "working")
    await front.ask("interrupt", session=session)
    await front.kind(session, "result", ok=False)
    await settled(front, session)


async def test_model_and_mode(front):
    session = await front.start("hello")
    await front.kind(session, "result")
    assert (await front.ask("setMode", session=session, mode="plan"))["mode"] == "plan"
    assert (await front.ask("setModel", session=session, model="claude-x"))["model"] == "claude-x"
    with pytest.raises(RemoteError):
        await front.ask("setMode", session=session, mode="anything")


async def test_a_cli_that_does_not_answer_a_request_is_told_of(front, monkeypatch):
    monkeypatch.setattr("ide_bridge.session.session.REQUEST_SECONDS", 0.2)
    session = await front.start("@silent")
    await front.kind(session, "result")
    with pytest.raises(RemoteError, match="does not answer"):
        await front.ask("interrupt", session=session)


async def test_prompts_are_sent_once_and_confirmed(front, stage):
    session = await front.start()
    uuid = "3f0d4f0e-33a5-4a0e-9d3a-0c9f4f7a1b11"
    given = [await front.ask("prompt", session=session, text="again", uuid=uuid) for _ in range(5)]
    assert given == [{"uuid": uuid}] * 5
    await front.kind(session, "result")
    assert len(kinds(front, session, "prompt")) == 1
    assert len(kinds(front, session, "result")) == 1
    with pytest.raises(RemoteError, match="not the uuid"):
        await front.ask("prompt", session=session, text="again", uuid="no")
    with pytest.raises(RemoteError, match="empty"):
        await front.ask("prompt", session=session, text="  ")


async def test_a_session_goes_on_when_its_front_end_is_gone(stage, front):
    session = await front.start("@wait 0.2\n@text Later.")
    await front.hang_up()
    other = await stage.front()
    await other.ask("watchSession", session=session[:8])
    assert (await other.kind(session, "said"))["text"] == "Later."


async def test_who_joins_late_hears_the_story_without_its_pieces(stage, front):
    session = await front.start("@events 50")
    await front.kind(session, "result")
    other = await stage.front()
    await other.ask("watchSession", session=session)
    await other.kind(session, "result")
    assert not kinds(other, session, "text")
    assert len(kinds(front, session, "text")) == 50
    assert [said["text"] for said in kinds(other, session, "said")] == [
        said["text"] for said in kinds(front, session, "said")
    ]


async def test_watching_from_a_number_and_in_the_clis_own_words(stage, front):
    session = await front.start("hello")
    await front.kind(session, "result")
    following = (await front.ask("watchSession", session=session))["next"]
    other = await stage.front()
    await other.ask("watchSession", session=session, **{"from": following - 3, "raw": True})
    await other.until(session, lambda _event: True)
    assert other.numbers[session][0] == following - 3
    await front.ask("prompt", session=session, text="more")
    assert (await other.kind(session, "message"))["message"]["type"]
    await other.ask("unwatchSession", session=session)
    heard = len(other.events[session])
    await front.ask("prompt", session=session, text="still more")
    await front.until(session, lambda event: event["kind"] == "result", after=len(front.events[session]))
    assert len(other.events[session]) == heard


async def test_a_cli_that_crashes_is_lost_and_the_reason_is_told(front):
    session = await front.start("@stderr the disk is on fire\n@crash 3")
    ended = await front.kind(session, "ended")
    assert ended == {"kind": "ended", "code": 3, "text": "the disk is on fire"}
    assert (await settled(front, session, "lost"))["problem"] == "the disk is on fire"
    after = len(front.events[session])
    await front.ask("prompt", session=session, text="@text Back.")
    assert (await front.kind(session, "said", after))["text"] == "Back."


async def test_an_open_approval_goes_with_its_cli(front):
    session = await front.start('@tool Bash {"command": "ls"}')
    await front.kind(session, "approval")
    os.kill((await front.shown(session))["pid"], signal.SIGKILL)
    assert (await front.kind(session, "approvalClosed"))["outcome"] == "withdrawn"
    await settled(front, session, "lost")
    assert await front.ask("approvals") == []


async def test_stop_resume_and_fork(front, stage):
    session = await front.start("@text One.")
    await front.kind(session, "result")
    assert (await front.ask("stopSession", session=session))["state"] == "stopped"
    with pytest.raises(RemoteError, match="not running"):
        await front.ask("interrupt", session=session)
    resumed = await front.ask("startSession", resume=session[:6], prompt="@text Two.")
    assert resumed["session"] == session
    with pytest.raises(RemoteError, match="running already"):
        await front.ask("startSession", resume=session)
    fork = await front.ask("startSession", resume=session, fork=True, command=recorded_cli.COMMAND)
    assert fork["forkOf"] == session
    assert fork["session"] != session
    assert len(await front.ask("sessions")) == 2


async def test_one_writer_per_session_across_bridges(front, stage):
    session = await front.start("@text One.")
    await front.kind(session, "result")
    lock = next(p for p in stage.project.parent.rglob(f"{session}.lock"))
    holder = os.open(lock, os.O_RDWR)
    try:
        import fcntl

        with pytest.raises(BlockingIOError):
            fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        await front.ask("stopSession", session=session)
        fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(RemoteError, match="running elsewhere"):
            await front.ask("startSession", resume=session)
    finally:
        os.close(holder)


async def test_what_was_not_sent_is_sent_when_a_lost_session_is_resumed():
    async with hosted() as stage:
        front = await stage.front()
        session = await front.start("@text One.")
        await front.kind(session, "result")
        await front.ask("stopSession", session=session)
        (file,) = stage.project.parent.rglob(f"sessions/{session}.json")
        record = json.loads(file.read_text(encoding="utf-8"))
        uuid = "3f0d4f0e-33a5-4a0e-9d3a-0c9f4f7a1b11"
        record |= {"stopped": False, "unconfirmed": [{"uuid": uuid, "text": "@text Two."}]}
        file.write_text(json.dumps(record), encoding="utf-8")
        controller = Controller(
            str(file.parent.parent),
            str(stage.project),
            stage.bridge.workspace.approval_policy,
            None,
            0,
            lambda: None,
        )
        (found,) = controller.sessions
        assert isinstance(found, Session)
        assert found.state == "lost"
        await controller.revive(found)
        async with asyncio.timeout(20):
            while found.record.unconfirmed or found.state != "idle":
                await asyncio.sleep(0.01)
        said = [json.loads(bytes(entry.event)) for entry in found.log.since(0, raw=False)]
        assert [event["text"] for event in said if event["kind"] == "said"] == ["Two."]
        await controller.close()


async def test_a_prompt_that_an_earlier_cli_had_is_not_run_again(front, stage):
    session = await front.start()
    uuid = "3f0d4f0e-33a5-4a0e-9d3a-0c9f4f7a1b11"
    await front.ask("prompt", session=session, text="@text Once.", uuid=uuid)
    await front.kind(session, "result")
    await front.ask("stopSession", session=session)
    (file,) = stage.project.parent.rglob(f"sessions/{session}.json")
    record = json.loads(file.read_text(encoding="utf-8"))
    record |= {"stopped": False, "unconfirmed": [{"uuid": uuid, "text": "@text Once."}]}
    file.write_text(json.dumps(record), encoding="utf-8")
    policy = stage.bridge.workspace.approval_policy
    controller = Controller(str(file.parent.parent), str(stage.project), policy, None, 0, lambda: None)
    (found,) = controller.sessions
    await controller.revive(found)
    async with asyncio.timeout(20):
        while found.record.unconfirmed or found.state != "idle":
            await asyncio.sleep(0.01)
    said = [json.loads(bytes(entry.event)) for entry in found.log.since(0, raw=False)]
    assert not [event for event in said if event["kind"] in {"said", "result"}]
    assert "before the session was lost" in json.dumps(said)
    await controller.close()


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"folder": "/nowhere/at/all"}, "not a folder"),
        ({"command": ["/nowhere/claude"]}, "claude"),
        ({"resume": "../../etc/passwd"}, "not the id"),
        ({"resume": "11111111-1111-4111-8111-111111111111"}, "no session"),
        ({"arguments": ["--session-id=x"]}, "session-id"),
        ({"over": "carrier pigeon"}, "over"),
    ],
)
async def test_what_cannot_be_started_is_said_in_a_sentence(front, params, complaint):
    with pytest.raises(RemoteError, match=complaint):
        await front.ask("startSession", **{"command": recorded_cli.COMMAND, **params})


async def test_which_session_is_meant(front):
    with pytest.raises(RemoteError, match="none of them"):
        await front.ask("interrupt")
    one = await front.start("@wait 300")
    await front.kind(one, "state", state="working")
    await front.ask("interrupt")
    with pytest.raises(RemoteError, match="no session"):
        await front.ask("interrupt", session="zzzzzz")
    with pytest.raises(RemoteError, match="no session"):
        await front.ask("interrupt", session=one[:2])


async def test_asking_from_an_editor(front, stage):
    await front.ask("hello", link=1, editor="Ed", version="1", folders=[str(stage.project)])
    os.environ["PATH"] = f"{stage.project.parent}:{os.environ['PATH']}"
    claude = stage.project.parent / "claude"
    claude.write_text("#!/bin/sh\nexec " + " ".join(recorded_cli.COMMAND) + ' "$@"\n', encoding="utf-8")
    claude.chmod(0o755)
    place = {
        "path": str(stage.project / "a.py"),
        "start": {"line": 2, "column": 0},
        "end": {"line": 3, "column": 4},
    }
    first = await front.ask("ask", text="What is this?", selection="def ```f():\n    pass\n", **place)
    prompt = await front.kind(first["session"], "prompt")
    assert prompt["by"] == "Ed"
    assert prompt["text"] == ("What is this?\n\na.py, lines 3 to 4:\n````\ndef ```f():\n    pass\n````")
    await front.kind(first["session"], "result")
    again = await front.ask("ask", text='@tool Bash {"command": "ls"}')
    assert again["session"] == first["session"]
    await front.kind(first["session"], "approval")
    (_, told) = next(each for each in front.told if each[0] == "approvalAsked")
    assert told["title"] == "Bash: ls"
    await front.ask("decide", approval=told["id"], behavior="allow")
    async with asyncio.timeout(10):
        while not any(method == "approvalClosed" for method, _ in front.told):
            await asyncio.sleep(0.01)
    assert next(params for method, params in front.told if method == "approvalClosed")["by"] == "Ed"
    assert (await front.ask("ask", text="new", new=True))["session"] != first["session"]


async def test_who_asks_after_a_crash_means_the_session_that_was_lost(front, stage):
    session = await front.start("@text One.")
    await front.kind(session, "result")
    os.kill((await front.shown(session))["pid"], signal.SIGKILL)
    await settled(front, session, "lost")
    editor = await stage.front()
    await editor.ask("hello", link=1, editor="Ed", version="1", folders=[str(stage.project)])
    assert (await editor.ask("ask", text="go on"))["session"] == session


async def test_a_reader_that_does_not_keep_up_holds_up_nobody(front, stage):
    session = await front.start("@events 3000")
    await front.kind(session, "result")
    assert [event["text"].strip() for event in kinds(front, session, "text")] == [f"w{n}" for n in range(3000)]
    assert front.numbers[session] == sorted(front.numbers[session])


async def test_status_shows_live_sessions_only(front, stage):
    session = await front.start("hello")
    await front.kind(session, "result")
    assert [shown["session"] for shown in stage.bridge.status()["sessions"]] == [session]
    await front.ask("stopSession", session=session)
    assert stage.bridge.status()["sessions"] == []


# -- what went wrong once -------------------------------------------------------------------------------------


async def test_a_prompt_to_a_session_that_is_being_stopped_is_run_after_all(front, stage):
    session = await front.start("@ignore-end\n@wait 300")
    await settled(front, session, "working")
    other = await stage.front()
    stopping = asyncio.create_task(other.ask("stopSession", session=session))
    async with asyncio.timeout(10):
        while not stage.bridge._sessions._here.find(session)._run.ending:
            await asyncio.sleep(0.005)
    after = len(front.events[session])
    await front.ask("prompt", session=session, text="@text Still here.")
    await stopping
    assert (await front.kind(session, "said", after))["text"] == "Still here."


async def test_a_refused_resume_changes_nothing(front):
    session = await front.start("@text One.")
    await front.kind(session, "result")
    before = await front.ask("stopSession", session=session)
    for wrong in ({"mode": "x y"}, {"over": "sdk-url", "model": "other"}):
        with pytest.raises(RemoteError):
            await front.ask("startSession", resume=session, **wrong)
    after = await front.shown(session)
    assert [after[key] for key in ("mode", "model", "over")] == [before[key] for key in ("mode", "model", "over")]
    await front.ask("prompt", session=session, text="@text Two.")
    await front.until(session, lambda event: event.get("text") == "Two.")


async def test_of_two_that_resume_at_once_one_is_refused_and_leaves_no_trace(front, stage):
    session = await front.start("@text One.")
    await front.kind(session, "result")
    await front.ask("stopSession", session=session)
    both = [front.ask("startSession", resume=session, model=model) for model in ("one", "two")]
    first, second = await asyncio.gather(*both, return_exceptions=True)
    assert "running already" in str(second)
    assert first["model"] == "one"


async def test_a_mode_that_does_not_exist_is_refused_by_us(front):
    session = await front.start("hello")
    await front.kind(session, "result")
    with pytest.raises(RemoteError, match="no permission mode; there are acceptEdits"):
        await front.ask("setMode", session=session, mode="garbage")


async def test_a_prompt_makes_a_session_working_before_it_is_answered(front):
    session = await front.start("hello")
    await front.kind(session, "result")
    await settled(front, session)
    await front.ask("prompt", session=session, text="@wait 300")
    assert (await front.shown(session))["state"] == "working"


async def test_a_bridge_that_stops_starts_nothing_any_more_and_leaves_nothing(stage, front):
    working = await front.start("@ignore-end\n@wait 300")
    idle = await front.start("@text One.")
    await front.kind(idle, "result")
    await front.ask("stopSession", session=idle)
    await settled(front, working, "working")
    pid = (await front.shown(working))["pid"]
    stopping = asyncio.create_task(stage.bridge._sessions.close())
    async with asyncio.timeout(10):
        while not stage.bridge._sessions._here._is_closing:
            await asyncio.sleep(0.005)
    with pytest.raises(RemoteError, match="stopping"):
        await front.ask("prompt", session=idle, text="more")
    with pytest.raises(RemoteError, match="stopping"):
        await front.start("more")
    await stopping
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_resumed_session_is_not_stopped_on_the_disk(front, stage):
    session = await front.start()
    await settled(front, session)
    (file,) = stage.project.parent.rglob(f"sessions/{session}.json")
    assert not json.loads(file.read_text(encoding="utf-8"))["stopped"]
    await front.ask("stopSession", session=session)
    assert json.loads(file.read_text(encoding="utf-8"))["stopped"]


async def test_a_request_to_a_cli_that_does_not_come_up_fails_with_it(front, monkeypatch):
    monkeypatch.setattr("ide_bridge.session.session.START_SECONDS", 0.5)
    started = await front.ask(
        "startSession", command=recorded_cli.COMMAND, environment=dict(os.environ) | {"RECORDED_CLI": "@silent"}
    )
    with pytest.raises(RemoteError, match=r"gone|not running"):
        await front.ask("interrupt", session=started["session"])
    assert "does not answer" in (await settled(front, started["session"], "lost"))["problem"]


async def test_the_limit_of_sessions_holds_for_those_that_start_at_once(front, monkeypatch):
    monkeypatch.setattr("ide_bridge.session.controller.LIVE_LIMIT", 3)
    starts = [front.ask("startSession", command=recorded_cli.COMMAND) for _ in range(8)]
    outcomes = await asyncio.gather(*starts, return_exceptions=True)
    assert sum(isinstance(outcome, RemoteError) for outcome in outcomes) == 5


async def test_a_state_folder_that_is_gone_is_told_once(front, stage):
    session = await front.start("hello")
    await front.kind(session, "result")
    (file,) = stage.project.parent.rglob(f"sessions/{session}.json")
    file.unlink()
    os.rename(file.parent, f"{file.parent}.away")
    for number in range(3):
        after = len(front.events[session])
        await front.ask("prompt", session=session, text=f"more {number}")
        await front.kind(session, "result", after)
    assert json.dumps(kinds(front, session, "notice")).count("is lost if the bridge ends") == 1
    os.rename(f"{file.parent}.away", file.parent)


async def test_the_end_of_a_turn_is_told_before_the_session_is_idle(front):
    session = await front.start("hello", environment=dict(os.environ) | {"RECORDED_CLI_VERSION": "2.1.37"})
    await front.kind(session, "result")
    await settled(front, session)
    told = [event["kind"] if event["kind"] != "state" else event["state"] for event in front.events[session]]
    assert told.index("result") < len(told) - 1 - told[::-1].index("idle")


# -- many at once ---------------------------------------------------------------------------------------------

SESSIONS, EVENTS, RATE = 50, 60, 20


@pytest.mark.timeout(120)
async def test_fifty_sessions_at_once_lose_nothing_and_keep_the_order(front):
    """A thousand events a second in all, for three seconds."""
    sessions = await asyncio.gather(*(front.start() for _ in range(SESSIONS)))
    for session in sessions:
        await settled(front, session)
    for session in sessions:
        await front.ask("prompt", session=session, text=f"@events {EVENTS} {RATE}")
    for session in sessions:
        await front.kind(session, "result", ok=True)
        pieces = [event["text"].strip() for event in kinds(front, session, "text")]
        assert pieces == [f"w{number}" for number in range(EVENTS)]
        assert front.numbers[session] == sorted(set(front.numbers[session]))
