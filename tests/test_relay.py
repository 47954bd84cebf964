"""The relay over real sockets, with CLIs and front ends that speak as the real ones do."""

import asyncio
import json
import os
import signal
import stat
import subprocess
from contextlib import AsyncExitStack

import pytest

from ide_bridge.cli import relay as command
from ide_bridge.errors import SetupProblem
from ide_bridge.session.relay import Relay, switchboard
from tests.fakes.bridge_process import PROGRAM
from tests.fakes.claude_cli import Home
from tests.fakes.relay import connect_cli, connect_front_end

TOKEN = "0123456789abcdef" * 4
CONNECTED = {"type": "status", "text": "claude code connected"}
STILL_CONNECTED = {"type": "status", "text": "claude code is connected"}
DISCONNECTED = {"type": "status", "text": "claude code disconnected"}
INPUT = {"command": "npm test"}
PATIENCE = 10


@pytest.fixture
def happened():
    """What the person who runs the relay is told."""
    return []


@pytest.fixture
async def start(happened):
    async with AsyncExitStack() as running:

        async def started(**options):
            relay = Relay(TOKEN, happening=happened.append, **options)
            await relay.start(0)
            running.push_async_callback(relay.stop)
            return relay

        yield started


@pytest.fixture
async def relay(start):
    return await start()


@pytest.fixture
async def cli(relay):
    """A CLI that is connected and has answered the greeting."""
    async with connect_cli(relay.port) as cli:
        await greeted(cli)
        yield cli


@pytest.fixture
async def front(relay, cli):
    async with connect_front_end(relay.port) as front:
        assert await front.hear() == [STILL_CONNECTED]
        yield front


async def greeted(cli):
    (greeting,) = await cli.hear()
    assert greeting["type"] == "control_request"
    assert greeting["request"] == {"subtype": "initialize"}
    success = {"subtype": "success", "request_id": greeting["request_id"], "response": {"models": ["m"]}}
    await cli.say({"type": "control_response", "response": success})
    return greeting["request_id"]


def init(session, number=0):
    return {"type": "system", "subtype": "init", "session_id": session, "uuid": f"init {session} {number}"}


def said(session, number):
    return {"type": "assistant", "session_id": session, "uuid": f"{session} {number}", "number": number}


def question(request_id, tool="Bash", **more):
    asked = {"subtype": "can_use_tool", "tool_name": tool, "input": INPUT, **more}
    return {"type": "control_request", "request_id": request_id, "request": asked}


def user(text, session=None):
    message = {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}
    return message if session is None else {**message, "session_id": session}


def agents_ui(request_id, allow=True):
    return {"type": "control_response", "request_id": request_id, "permission": {"allow": allow}}


def is_error(message):
    return message["type"] == "status" and message.get("level") == "error"


def already_initialized(greeting, *pending):
    """What a CLI answers to a second greeting."""
    error = {"subtype": "error", "request_id": greeting["request_id"], "error": "Already initialized"}
    questions = [question(request_id) for request_id in pending]
    return {"type": "control_response", "response": {**error, "pending_permission_requests": questions}}


async def eventually(condition):
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_cli_is_greeted_and_front_ends_hear_of_it_and_of_every_line(relay):
    async with connect_front_end(relay.port) as front:
        async with connect_cli(relay.port) as cli:
            assert await front.hear() == [CONNECTED]
            request_id = await greeted(cli)
            (answer,) = await front.hear()
            assert answer["response"]["request_id"] == request_id
            lines = [init("s"), said("s", 1), {"type": "brand_new", "x": 1}, {"type": "keep_alive"}]
            await cli.say(*lines)
            assert await front.hear(4) == lines
        assert await front.hear() == [DISCONNECTED]


async def test_every_front_end_hears_the_same(relay, cli, front):
    async with connect_front_end(relay.port) as other:
        assert await other.hear() == [STILL_CONNECTED]
        lines = [said("s", number) for number in range(200)]
        await cli.say(*lines)
        assert await front.hear(200) == lines
        assert await other.hear(200) == lines


@pytest.mark.parametrize("cut", [1, 5, 100])
async def test_frames_of_the_cli_may_be_cut_anywhere(cli, front, cut):
    lines = [said("s", number) for number in range(3)]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    for start in range(0, len(data), cut):
        await cli.socket.send_bytes(data[start : start + cut])
    assert await front.hear(3) == lines


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n"])
async def test_a_prompt_reaches_the_cli_as_one_line_with_or_without_a_newline(cli, front, end):
    await front.socket.send_str(json.dumps(user("hello"), indent=None) + end)
    assert await cli.hear() == [{**user("hello"), "session_id": ""}]


async def test_several_lines_in_one_binary_frame_are_several_messages(cli, front):
    await front.socket.send_bytes(b"\n".join(json.dumps(user(text)).encode() for text in "abc"))
    assert [message["message"]["content"] for message in await cli.hear(3)] == ["a", "b", "c"]


async def test_what_would_end_the_cli_is_answered_to_its_sender_and_goes_nowhere(relay, cli, front, happened):
    async with connect_front_end(relay.port) as other:
        await other.hear()
        for bad in (
            "no json",
            "[]",
            '{"type":"user","message":{"role":"assistant","content":"x"}}',
            '{"type":"x"}',
        ):
            await front.socket.send_str(bad + "\n")
            (answer,) = await front.hear()
            assert is_error(answer)
            assert answer.keys() == {"type", "level", "text"}
        await front.say(user("hello"))
        assert [message["type"] for message in await cli.hear()] == ["user"]
        await cli.say(said("s", 1))
        assert await other.hear() == [said("s", 1)]
    assert any("cannot be passed on" in what for what in happened)


async def test_without_a_cli_a_prompt_is_answered_so(relay):
    async with connect_front_end(relay.port) as front:
        await front.say(user("hello"))
        assert await front.hear() == [
            {
                "type": "status",
                "text": "No Claude Code is connected; start one with --sdk-url.",
                "level": "error",
            }
        ]


@pytest.mark.parametrize(
    "answer",
    [
        agents_ui("q"),
        {
            "type": "control_response",
            "response": {"subtype": "can_use_tool_result", "request_id": "q", "result": {"behavior": "allow"}},
        },
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": "q", "response": {"behavior": "allow"}},
        },
    ],
)
async def test_an_answer_in_any_shape_of_the_documents_becomes_the_right_one(cli, front, answer):
    await cli.say(question("q"))
    assert await front.hear() == [question("q")]
    await front.say(answer)
    decision = {"behavior": "allow", "updatedInput": INPUT}
    response = {"subtype": "success", "request_id": "q", "response": decision}
    assert await cli.hear() == [{"type": "control_response", "response": response}]


async def test_an_interrupt_of_the_documents_becomes_a_request(cli, front):
    await front.say({"type": "interrupt"})
    (request,) = await cli.hear()
    assert (request["type"], request["request"]) == ("control_request", {"subtype": "interrupt"})


async def test_the_first_answer_wins_and_the_others_are_told(relay, cli, front):
    async with connect_front_end(relay.port) as slow:
        await slow.hear()
        await cli.say(question("q"))
        await slow.hear()
        await front.hear()
        await front.say(agents_ui("q"))
        assert await slow.hear(2) == [
            {"type": "control_cancel_request", "request_id": "q"},
            {"type": "status", "text": "Bash was allowed by front end 1"},
        ]
        await slow.say(agents_ui("q", allow=False))
        (late,) = await slow.hear()
        assert is_error(late)
        assert "not open" in late["text"]
        await front.say(user("next"))
        answers = await cli.hear(2)
        assert answers[0]["response"]["response"]["behavior"] == "allow"
        assert answers[1]["type"] == "user"
        await cli.say(said("s", 1))
        assert await front.hear() == [said("s", 1)]


async def test_an_answer_that_decides_nothing_leaves_the_question_open(cli, front):
    await cli.say(question("q"))
    await front.hear()
    wrong = {"subtype": "success", "request_id": "q", "response": {"behavior": "perhaps"}}
    await front.say({"type": "control_response", "response": wrong})
    assert is_error((await front.hear())[0])
    await front.say(agents_ui("q", allow=False))
    (answer,) = await cli.hear()
    assert answer["response"]["response"] == {"behavior": "deny", "message": "The user does not allow this."}


async def test_a_question_that_the_cli_withdraws_is_open_no_more(relay, cli, front):
    withdrawn = {"type": "control_cancel_request", "request_id": "q"}
    await cli.say(question("q"), withdrawn)
    assert await front.hear(2) == [question("q"), withdrawn]
    await front.say(agents_ui("q"))
    assert is_error((await front.hear())[0])
    async with connect_front_end(relay.port) as late:
        assert await late.hear() == [STILL_CONNECTED]
        await cli.say(said("s", 1))
        assert await late.hear() == [said("s", 1)]


async def test_other_questions_of_the_cli_are_answered_as_the_front_end_says(cli, front):
    hook = {
        "type": "control_request",
        "request_id": "h",
        "request": {"subtype": "hook_callback", "callback_id": "c"},
    }
    await cli.say(hook)
    assert await front.hear() == [hook]
    answer = {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": "h", "response": {"continue": True}},
    }
    await front.say(answer)
    assert await cli.hear() == [answer]


async def test_who_joins_late_gets_the_last_init_and_the_open_questions_of_each_session(relay, cli):
    async with connect_cli(relay.port) as second:
        await greeted(second)
        await cli.say(init("one", 1), init("one", 2), question("q1"), question("q2"))
        await second.say(init("two"), {**question("q3"), "request": {"subtype": "hook_callback"}})
        async with connect_front_end(relay.port) as watching:
            await watching.hear()
            await cli.say(said("one", 1))
            await second.say(said("two", 1))
            await watching.hear_until(lambda message: message.get("session_id") == "one" and "number" in message)
            await watching.hear_until(lambda message: message.get("session_id") == "two" and "number" in message)
            await watching.say(agents_ui("q1"))
            await cli.hear()
            async with connect_front_end(relay.port) as late:
                expected = [STILL_CONNECTED, init("one", 2), question("q2"), init("two")]
                assert await late.hear(4) == expected


async def test_messages_go_to_the_cli_of_their_session_or_to_the_one_connected_last(relay, cli, front):
    async with connect_cli(relay.port) as second:
        await greeted(second)
        await cli.say(init("one"))
        await second.say(init("two"))
        await front.hear_until(lambda message: message.get("session_id") == "two")
        await front.say(user("a", "one"), user("b", "two"), user("c"), user("d", ""), user("e", "one"))
        await front.say({"type": "interrupt", "session_id": "one"})
        await front.say({"type": "interrupt"})
        first_hears, second_hears = await cli.hear(3), await second.hear(4)
    assert [message.get("message", {}).get("content") for message in first_hears] == ["a", "e", None]
    assert [message.get("message", {}).get("content") for message in second_hears] == ["b", "c", "d", None]


async def test_a_session_that_nobody_has_is_refused(cli, front):
    await cli.say(init("one"))
    await front.hear()
    await front.say(user("hello", "gone"))
    (answer,) = await front.hear()
    assert answer["text"] == "No Claude Code with the session gone is connected."


async def test_a_cli_that_has_not_said_its_session_is_taken_at_the_front_ends_word(cli, front):
    await front.say(user("hello", "resumed"))
    assert await cli.hear() == [user("hello", "resumed")]


async def test_a_cli_that_restarts_has_a_new_session_and_the_old_one_is_gone(relay, cli, front):
    await cli.say(init("one"))
    await front.hear()
    await cli.socket.close()
    assert await front.hear() == [DISCONNECTED]
    async with connect_cli(relay.port) as restarted:
        await greeted(restarted)
        await restarted.say(init("two"))
        heard = await front.hear(3)
        assert (heard[0], heard[2]) == (CONNECTED, init("two"))
        await front.say(user("hello", "one"))
        assert is_error((await front.hear())[0])
        await front.say(user("hello", "two"))
        assert (await restarted.hear())[0]["session_id"] == "two"


async def test_of_two_clis_the_one_that_leaves_is_named_and_the_other_still_there(relay, cli, front):
    async with connect_cli(relay.port) as second:
        await greeted(second)
        await second.say(init("two"))
        await front.hear_until(lambda message: message.get("session_id") == "two")
    assert await front.hear(2) == [{**DISCONNECTED, "session_id": "two"}, STILL_CONNECTED]
    await front.say(user("hello"))
    assert (await cli.hear())[0]["type"] == "user"


async def test_a_cli_that_comes_back_is_known_and_its_replay_is_not_passed_on(relay, front, cli):
    await cli.say(init("one"), said("one", 1), question("q1"), question("q2"))
    await front.hear(4)
    await cli.socket.close()
    assert await front.hear() == [DISCONNECTED]
    async with connect_cli(relay.port, last="one 1") as again:
        assert await front.hear() == [CONNECTED]
        (greeting,) = await again.hear()
        await again.say(already_initialized(greeting, "q2"), init("one"), said("one", 1), said("one", 2))
        assert await front.hear(3) == [
            {"type": "control_cancel_request", "request_id": "q1"},
            question("q2"),
            said("one", 2),
        ]
        await front.say(user("more", "one"))
        assert (await again.hear())[0]["session_id"] == "one"
        await front.say(agents_ui("q2"))
        assert (await again.hear())[0]["response"]["request_id"] == "q2"


async def test_a_cli_that_spoke_while_it_was_away_is_known_by_its_session(relay, front, cli):
    await cli.say(init("one"), said("one", 1), question("q1"))
    await front.hear(3)
    await cli.socket.close()
    await front.hear()
    async with connect_cli(relay.port, last="one 3") as again:
        assert await front.hear() == [CONNECTED]
        (greeting,) = await again.hear()
        replay = [init("one"), *(said("one", number) for number in (1, 2, 3))]
        await again.say(*replay, already_initialized(greeting, "q2"))
        withdrawn = {"type": "control_cancel_request", "request_id": "q1"}
        assert await front.hear(4) == [withdrawn, said("one", 2), said("one", 3), question("q2")]


async def test_front_ends_are_warned_of_what_a_cli_said_and_does_not_say_again(relay, front, cli):
    await cli.say(init("one"))
    await front.hear()
    await cli.socket.close()
    await front.hear()
    async with connect_cli(relay.port, last="one 1") as again:
        await front.hear()
        await again.say(already_initialized((await again.hear())[0]))
        (warning,) = await front.hear()
        assert (warning["type"], warning["level"]) == ("status", "warning")
        assert "while it was not connected" in warning["text"]


async def test_a_cli_whose_loss_was_not_noticed_takes_its_own_place(relay, cli, front):
    await cli.say(init("one"), said("one", 1))
    await front.hear(2)
    async with connect_cli(relay.port, last="one 1") as again:
        assert await front.hear(2) == [DISCONNECTED, CONNECTED]
        await again.hear()
        await front.say(user("hello", "one"))
        assert (await again.hear())[0]["type"] == "user"
        await cli.closed()


async def test_those_who_claim_to_be_the_same_cli_follow_each_other(relay, cli, front):
    await cli.say(said("one", 1))
    await front.hear()
    async with connect_cli(relay.port, last="one 1"), connect_cli(relay.port, last="one 1") as newest:
        assert await front.hear(4) == [DISCONNECTED, CONNECTED] * 2
        await newest.hear()
        await newest.say(said("one", 2))
        assert await front.hear() == [said("one", 2)]


async def test_a_front_end_may_use_an_id_twice_and_gets_both_answers(cli, front):
    answer = {"type": "control_response", "response": {"subtype": "success", "request_id": "1"}}
    await cli.say(answer, answer)
    assert await front.hear(2) == [answer, answer]


async def test_initialize_of_a_front_end_is_answered_with_what_the_cli_told_the_relay(cli, front):
    await cli.say(said("s", 1))
    await front.hear()
    await front.say({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize"}})
    success = {"subtype": "success", "request_id": "i", "response": {"models": ["m"]}}
    assert await front.hear() == [{"type": "control_response", "response": success}]
    more = {"subtype": "initialize", "hooks": {}}
    await front.say({"type": "control_request", "request_id": "j", "request": more})
    assert (await cli.hear())[0]["request"] == more


async def test_auto_approve_allows_with_the_whole_input_and_says_so(start):
    relay = await start(auto_approve=True)
    async with connect_cli(relay.port) as cli, connect_front_end(relay.port) as front:
        await front.hear()
        await greeted(cli)
        await front.hear()
        await cli.say(question("q"))
        (answer,) = await cli.hear()
        assert answer["response"]["response"] == {"behavior": "allow", "updatedInput": INPUT}
        assert await front.hear(3) == [
            question("q"),
            {"type": "control_cancel_request", "request_id": "q"},
            {"type": "status", "text": "Bash was allowed by --auto-approve"},
        ]
        await front.say(agents_ui("q", allow=False))
        assert is_error((await front.hear())[0])


async def test_auto_approve_leaves_questions_to_people_and_other_requests_alone(start):
    relay = await start(auto_approve=True)
    async with connect_cli(relay.port) as cli, connect_front_end(relay.port) as front:
        await greeted(cli)
        await cli.say(question("q", tool="AskUserQuestion"))
        await front.hear_until(lambda message: message == question("q", tool="AskUserQuestion"))
        await front.say(agents_ui("q", allow=False))
        (answer,) = await cli.hear()
        assert answer["response"]["response"]["behavior"] == "deny"


async def test_a_front_end_that_does_not_read_is_dropped_and_slows_nobody(relay, cli, front):
    text = "x" * 1_000_000
    async with connect_front_end(relay.port) as stuck:
        stuck.socket._conn.transport.pause_reading()
        for number in range(40):
            await cli.say({**said("s", number), "text": text})
            assert (await front.hear())[0]["number"] == number
        await eventually(lambda: len(relay._fronts) == 1)
        stuck.socket._conn.transport.resume_reading()
        await stuck.closed()


async def test_a_front_end_for_which_too_much_waits_is_told_with_1013(relay, cli, front):
    line = next(iter(relay._fronts.values()))
    for _ in range(10):  # faster than anybody could send it
        line.tell_if_quick(b" " * 1_000_000 + b"\n")
    assert await front.closed() == 1013


async def test_a_front_end_waits_while_the_cli_takes_no_more(relay, cli, front):
    cli.socket._conn.transport.pause_reading()
    text = "x" * 1_000_000
    sending = asyncio.create_task(front.say(*(user(f"{number} {text}") for number in range(60))))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await asyncio.shield(sending)
    cli.socket._conn.transport.resume_reading()
    heard = await cli.hear(60)
    assert [message["message"]["content"].split()[0] for message in heard] == [str(number) for number in range(60)]
    await sending


async def test_what_is_not_utf8_reaches_front_ends_as_text_they_can_read(cli, front):
    await cli.socket.send_bytes(b'{"type":"x","text":"\xff"}\n')
    assert await front.hear() == [{"type": "x", "text": "�"}]


async def test_a_cli_cannot_fill_the_memory_with_questions(relay, cli, front, monkeypatch):
    monkeypatch.setattr(switchboard, "_QUESTIONS", 3)
    await cli.say(*(question(f"q{number}") for number in range(10)))
    await front.hear(10)
    async with connect_front_end(relay.port) as late:
        assert [message.get("request_id") for message in await late.hear(4)] == [None, "q7", "q8", "q9"]


async def test_a_stopping_relay_says_goodbye_so_that_clis_come_back(start):
    relay = await start()
    async with connect_cli(relay.port) as cli, connect_front_end(relay.port) as front:
        await greeted(cli)
        stopping = asyncio.create_task(relay.stop())
        assert await cli.closed() == 1001
        assert await front.closed() == 1001
        await stopping


async def test_a_port_that_is_taken_is_named_in_one_sentence(relay):
    with pytest.raises(SetupProblem, match=rf"^Port {relay.port} cannot be used: .*--port\.$"):
        await Relay(TOKEN).start(relay.port)


# -- the command -------------------------------------------------------------------------------------------


@pytest.fixture
def home():
    with Home() as home:
        yield home


@pytest.fixture
def run(home):
    """``run(*flags)`` starts the command; ended with the test."""
    processes = []

    def start(*flags):
        process = subprocess.Popen(
            [*PROGRAM, "relay", *flags],
            env=home.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_the_command_says_where_it_is_as_json_and_never_the_token(run):
    process = run("--port", "0", "--json")
    ready = json.loads(process.stdout.readline())
    port = ready["port"]
    assert ready == {
        "port": port,
        "pid": process.pid,
        "cli": f"ws://127.0.0.1:{port}",
        "frontEnd": f"ws://127.0.0.1:{port}/ws",
        "token_file": ready["token_file"],
        "autoApprove": False,
    }
    assert stat.S_IMODE(os.stat(ready["token_file"]).st_mode) == 0o600
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (0, "", "")


async def test_the_command_tells_a_person_who_comes_and_goes(run, home):
    process = run("--port", "0", "--auto-approve")
    told = [process.stdout.readline() for _ in range(5)]
    port = int(told[0].split()[-1].strip("."))
    async with connect_cli(port) as cli:
        await greeted(cli)
        await cli.say(init("one"), question("q"))
        await cli.hear()
    async with connect_front_end(port) as front:
        await front.socket.send_str("nonsense")
        await front.hear()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    token = (home.path / ".local/state/ide-bridge/relay/token").read_text(encoding="ascii")
    assert token not in "".join(told) + output + errors
    assert errors.startswith("ide-bridge: WARNING: --auto-approve is on: ")
    assert [line.split("  ", 1)[1] for line in output.splitlines()] == [
        "Claude Code 1 connected.",
        "Claude Code 1 has the session one.",
        "Bash was allowed by --auto-approve.",
        "Claude Code 1 disconnected.",
        "A front end connected: front end 1.",
        "Front end 1 sent what cannot be passed on: That is not JSON; send one JSON object per line.",
        "Front end 1 disconnected.",
    ]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--port", "70000"], "There is no port 70000; choose one from 1 to 65535, or 0 for any that is free."),
        (
            ["--origin", "localhost"],
            "localhost is no origin; name a page like this: --origin http://localhost:5173",
        ),
        (["--origin", "null"], "null is no origin; name a page like this: --origin http://localhost:5173"),
    ],
)
def test_the_command_refuses_what_makes_no_sense_in_one_sentence(run, flags, problem):
    process = run(*flags)
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, output, errors) == (1, "", f"ide-bridge: {problem}\n")


def test_origins_are_written_as_browsers_write_them():
    assert command._origins(["HTTP://LocalHost:5173/", "https://a.example"]) == [
        "http://localhost:5173",
        "https://a.example",
    ]
