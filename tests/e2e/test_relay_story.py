"""``ide-bridge relay`` between real CLIs and a plain WebSocket front end that speaks as the documents say.

Its answers have a shape that ends these CLIs when it reaches them as it is.
"""

import json
import re
import signal
import subprocess
from contextlib import AsyncExitStack, ExitStack

import pytest

from tests.fakes.bridge_process import PROGRAM
from tests.fakes.claude_cli import NEWEST
from tests.fakes.programs import unavailable
from tests.fakes.relay import connect_front_end
from tests.fakes.scripted_model import Bash
from tests.fakes.sdk_cli import NEWEST_SDK, OLDEST_SDK, SdkCli

pytestmark = pytest.mark.real_cli

BOTH = pytest.mark.parametrize("version", [NEWEST_SDK, OLDEST_SDK])
CONNECTED = {"type": "status", "text": "claude code connected"}
STILL_CONNECTED = {"type": "status", "text": "claude code is connected"}
DISCONNECTED = {"type": "status", "text": "claude code disconnected"}


@pytest.fixture
def relay(home, isolation_refused):
    """``relay(*flags)`` starts one; gives what it says of itself."""
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    with ExitStack() as running:

        def start(*flags, port=0):
            process = subprocess.Popen(
                [*PROGRAM, "relay", "--port", str(port), "--json", *flags],
                env=home.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            running.callback(process.communicate)
            running.callback(process.kill)
            return process, json.loads(process.stdout.readline())

        yield start


@pytest.fixture
def claude(home, api, project):
    """``claude(relay, version)`` starts a CLI as document and relay say: nothing but the URL."""
    with ExitStack() as running:

        def start(ready, version, folder=project, *flags):
            return running.enter_context(SdkCli(home, api.url, folder, ready["cli"], *flags, version=version))

        yield start


@pytest.fixture
async def front_end():
    """``front_end(relay)`` connects one."""
    async with AsyncExitStack() as connected:
        yield lambda ready: connected.enter_async_context(connect_front_end(ready["port"]))


def prompt(text, session=""):
    message = {"role": "user", "content": text}
    return {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": session}


def agents_ui(question, allow=True):
    return {"type": "control_response", "request_id": question["request_id"], "permission": {"allow": allow}}


def is_question(message):
    return message["type"] == "control_request"


def is_result(message):
    return message["type"] == "result"


@BOTH
async def test_a_turn_is_watched_and_steered_from_a_front_end(relay, claude, front_end, api, project, version):
    api.script("make it", Bash("touch made"), "It is made.")
    api.script("spoil it", Bash("rm made"), "So I leave it.")
    _process, ready = relay()
    front = await front_end(ready)
    cli = claude(ready, version)
    assert await front.hear() == [CONNECTED]
    (initialized,) = await front.hear()
    assert initialized["response"]["subtype"] == "success"

    await front.socket.send_str("this would end a CLI\n")
    assert (await front.hear())[0]["level"] == "error"

    await front.say(prompt("make it"))
    *before, question = await front.hear_until(is_question)
    assert before[0]["subtype"] == "init"
    session = before[0]["session_id"]
    late = await front_end(ready)
    assert [message["type"] for message in await late.hear(3)] == ["status", "system", "control_request"]
    await front.say(agents_ui(question))
    assert (await front.hear_until(is_result))[-1]["result"] == "It is made."
    assert (project / "made").exists()
    assert (await late.hear())[0] == {"type": "control_cancel_request", "request_id": question["request_id"]}

    await late.say(prompt("spoil it", session))
    question = (await late.hear_until(is_question))[-1]
    result = {"behavior": "deny", "message": "Not today."}
    response = {"subtype": "can_use_tool_result", "request_id": question["request_id"], "result": result}
    await late.say({"type": "control_response", "response": response})
    assert (await late.hear_until(is_result))[-1]["result"] == "So I leave it."
    assert (project / "made").exists()
    api.wait_until_told("Not today.")

    cli.process.send_signal(signal.SIGTERM)
    assert (await late.hear_until(lambda message: message["type"] == "status"))[-1] == DISCONNECTED


@BOTH
async def test_an_interrupt_ends_the_turn_and_not_the_cli(relay, claude, front_end, api, version):
    api.script("wait", Bash("sleep 60; touch waited"), "Waited.")
    api.script("go on", "Here I am.")
    _process, ready = relay("--auto-approve")
    front = await front_end(ready)
    claude(ready, version)
    await front.hear()
    await front.say(prompt("wait"))
    await front.hear_until(lambda message: message["type"] == "status" and "allowed" in message["text"])
    await front.say({"type": "interrupt"})
    assert (await front.hear_until(is_result))[-1]["subtype"] == "error_during_execution"
    await front.say(prompt("go on"))
    assert (await front.hear_until(is_result))[-1]["result"] == "Here I am."


async def test_two_clis_at_once_each_get_what_is_meant_for_them(relay, claude, front_end, api, home):
    _process, ready = relay()
    front = await front_end(ready)
    sessions = {}
    for version in (NEWEST_SDK, OLDEST_SDK):
        folder = home.path / version
        folder.mkdir()
        claude(ready, version, folder)
        await front.hear_until(lambda message: message == CONNECTED)
        await front.say(prompt(f"who are you {version}"))  # without a session: to the one connected last
        sessions[version] = (await front.hear_until(is_result))[-1]["session_id"]
    assert len(set(sessions.values())) == 2
    for version, session in sessions.items():
        api.script(f"write {version}", Bash("touch mine"), "Written.")
        await front.say(prompt(f"write {version}", session))
        await front.say(agents_ui((await front.hear_until(is_question))[-1]))
        result = (await front.hear_until(is_result))[-1]
        assert (result["session_id"], result["result"]) == (session, "Written.")
        assert (home.path / version / "mine").exists()


async def test_a_relay_that_is_killed_and_started_again_gets_the_cli_and_its_question_back(
    relay, claude, front_end, api, project
):
    api.script("make it", Bash("touch made"), "It is made.")
    process, ready = relay()
    front = await front_end(ready)
    claude(ready, NEWEST_SDK)
    await front.hear()
    await front.say(prompt("make it"))
    question = (await front.hear_until(is_question))[-1]
    process.kill()
    process.wait()
    _process, ready = relay(port=ready["port"])
    front = await front_end(ready)
    again = (await front.hear_until(is_question))[-1]
    assert again["request_id"] == question["request_id"]
    assert again["request"]["input"] == question["request"]["input"]
    await front.say(agents_ui(again))
    assert (await front.hear_until(is_result))[-1]["result"] == "It is made."
    assert (project / "made").exists()


async def test_the_newest_cli_refuses_such_a_server_by_itself(relay, claude):
    _process, ready = relay()
    cli = claude(ready, NEWEST)
    assert await cli.ended() == 1
    assert re.search(r"--sdk-url rejected: host \W127\.0\.0\.1\W is not an approved", cli.log())
