"""The real CLIs that take ``--sdk-url``, against our server: they speak, get lost, return, and are refused."""

import asyncio
import hmac
import json
import uuid
from contextlib import ExitStack

import pytest
from aiohttp import web

from ide_bridge.session.channel import Returned
from ide_bridge.session.sdk_server import SdkServer
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash
from tests.fakes.sdk_cli import NEWEST_SDK, OLDEST_SDK, SdkCli

pytestmark = pytest.mark.real_cli

PATIENCE = 60
BOTH = pytest.mark.parametrize("version", [NEWEST_SDK, OLDEST_SDK])


class Controller:
    """What a controller does with a channel: says things, and keeps all that it hears."""

    def __init__(self, channel):
        self.channel = channel
        self.heard = []
        self._entries = aiter(channel)

    async def send(self, message):
        await self.channel.send(json.dumps(message).encode() + b"\n")

    async def prompt(self, text, prompt_uuid=None):
        message = {"role": "user", "content": text}
        user = {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": ""}
        await self.send(user | ({"uuid": prompt_uuid} if prompt_uuid else {}))

    async def initialize(self):
        """Gives the response, whether success or error."""
        request_id = str(uuid.uuid4())
        await self.send(
            {"type": "control_request", "request_id": request_id, "request": {"subtype": "initialize"}}
        )
        answer = await self.until(
            lambda entry: entry["type"] == "control_response" and entry["response"]["request_id"] == request_id
        )
        return answer["response"]

    async def allow(self, question):
        decision = {"behavior": "allow", "updatedInput": question["request"]["input"]}
        response = {"subtype": "success", "request_id": question["request_id"], "response": decision}
        await self.send({"type": "control_response", "response": response})

    async def until(self, wanted):
        """Hear on up to the first entry that is wanted; gives it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                entry = await anext(self._entries)
                self.heard.append(entry if isinstance(entry, Returned) else json.loads(entry))
                if isinstance(entry, Returned) and wanted is Returned:
                    return entry
                if not isinstance(entry, Returned) and wanted is not Returned and wanted(self.heard[-1]):
                    return self.heard[-1]

    async def question(self):
        return await self.until(lambda entry: entry["type"] == "control_request")

    async def result(self):
        return await self.until(lambda entry: entry["type"] == "result")

    async def cut(self):
        """The connection is lost, without a word, and the CLI comes back."""
        self.channel._wire.cut()
        await self.until(Returned)

    def uuids(self):
        return [entry["uuid"] for entry in self.heard if not isinstance(entry, Returned) and "uuid" in entry]


def admit(request, token):
    given = request.headers.getall("Authorization", [])
    if "Origin" in request.headers or len(given) != 1:
        raise web.HTTPForbidden
    if not hmac.compare_digest(given[0].encode(), f"Bearer {token}".encode()):
        raise web.HTTPUnauthorized


@pytest.fixture
async def server(isolation_refused):
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    server = SdkServer(admit)
    application = web.Application()
    server.add_routes(application.router)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    yield server
    await runner.cleanup()


@pytest.fixture
def controller(server):
    return Controller(server.expect(str(uuid.uuid4())))


@pytest.fixture
def start(server, controller, home, project, api):
    """``start(version, *flags, VARIABLE=…)`` starts the CLI for the expected session."""
    with ExitStack() as running:

        def started(version, *flags, path=None, token=None, **variables):
            channel = controller.channel
            url = f"ws://127.0.0.1:{server.port}{path or channel.path}"
            variables["CLAUDE_CODE_SESSION_ACCESS_TOKEN"] = token or channel.token
            flags = ("--session-id", channel.session, "--replay-user-messages", *flags)
            return running.enter_context(SdkCli(home, api.url, project, url, *flags, version=version, **variables))

        yield started


def prompts_told(api, text):
    """How often the model was asked to begin with a prompt."""
    return sum(
        1
        for body in api.requests
        if body["messages"][-1]["role"] == "user" and text in json.dumps(body["messages"][-1]["content"])
    )


@BOTH
async def test_a_turn_with_a_tool_that_is_allowed(start, controller, api, project, version):
    api.script("make it", Bash("touch made"), "It is made.")
    start(version)
    assert (await controller.initialize())["subtype"] == "success"
    await controller.prompt("make it")
    question = await controller.question()
    assert not (project / "made").exists()
    await controller.allow(question)
    result = await controller.result()
    assert (result["result"], result["session_id"]) == ("It is made.", controller.channel.session)
    assert (project / "made").exists()
    assert Returned() not in controller.heard


@BOTH
async def test_the_cli_joins_what_is_cut_and_parts_what_is_joined(start, controller, version):
    start(version)
    data = json.dumps({"type": "keep_alive"}).encode() + b"\n"
    request = {"type": "control_request", "request_id": "i", "request": {"subtype": "initialize"}}
    data += json.dumps(request).encode() + b"\n"
    for place in range(0, len(data), 7):
        await controller.channel.send(data[place : place + 7])
    answer = await controller.until(lambda entry: entry["type"] == "control_response")
    assert answer["response"]["request_id"] == "i"


@BOTH
async def test_a_cli_that_is_cut_off_twice_in_a_turn_comes_back_and_nothing_happens_twice(
    start, controller, api, project, version
):
    api.script("make it", Bash("echo x >> made; sleep 2"), "It is made.")
    start(version)
    await controller.initialize()
    prompt = str(uuid.uuid4())
    await controller.prompt("make it", prompt)
    question = await controller.question()

    await controller.cut()  # while it waits for an answer
    await controller.prompt("make it", prompt)
    again = await controller.initialize()
    assert (again["subtype"], again["error"]) == ("error", "Already initialized")
    pending = again["pending_permission_requests"]
    assert [each["request_id"] for each in pending] == [question["request_id"]]
    await controller.allow(question)
    while not (project / "made").exists():
        await asyncio.sleep(0.02)

    await controller.cut()  # while the tool runs
    await controller.prompt("make it", prompt)
    assert (await controller.result())["result"] == "It is made."
    assert controller.heard.count(Returned()) == 2
    assert len(set(controller.uuids())) == len(controller.uuids())
    assert prompt in controller.uuids()
    assert (project / "made").read_text(encoding="utf-8") == "x\n"
    assert controller.channel.unheard is None
    assert prompts_told(api, "make it") == 1


async def test_what_was_said_while_nobody_listened_is_said_again_by_the_newer_cli(start, controller, api):
    api.script("talk", "word " * 50)
    start(NEWEST_SDK, "--include-partial-messages")
    await controller.initialize()
    await controller.prompt("talk")
    await controller.until(lambda entry: entry["type"] == "system" and entry["subtype"] == "init")
    await controller.cut()
    assert (await controller.result())["result"].count("word") == 50
    kinds = [entry.get("event", entry)["type"] for entry in controller.heard if not isinstance(entry, Returned)]
    turn = kinds[kinds.index("system") :]
    assert turn.index("message_start") < turn.index("content_block_delta") < turn.index("message_stop")
    assert kinds.count("message_stop") == 1
    assert len(set(controller.uuids())) == len(controller.uuids())


async def test_what_the_older_cli_said_while_nobody_listened_is_lost_and_known_to_be(start, controller, api):
    api.script("talk", "word " * 50)
    start(OLDEST_SDK)
    await controller.initialize()
    await controller.prompt("talk")
    await controller.until(lambda entry: entry["type"] == "system" and entry["subtype"] == "init")
    await controller.cut()
    await controller.initialize()
    assert controller.channel.unheard is not None


@BOTH
@pytest.mark.parametrize("path", ["/sdk/ws/{session}", "/sdk/{session}"])
async def test_hybrid_mode_speaks_by_post_and_listens_on_the_socket(
    start, controller, api, project, version, path
):
    api.script("make it", Bash("touch made"), "It is made.")
    path = path.format(session=controller.channel.session)
    start(version, "--include-partial-messages", path=path, CLAUDE_CODE_POST_FOR_SESSION_INGRESS_V2="1")
    assert (await controller.initialize())["subtype"] == "success"
    await controller.prompt("make it")
    await controller.allow(await controller.question())
    assert (await controller.result())["result"] == "It is made."
    assert (project / "made").exists()
    events = [entry["event"]["type"] for entry in controller.heard if entry.get("type") == "stream_event"]
    assert events[0] == "message_start"
    assert events[-1] == "message_stop"
    assert events.index("content_block_start") < events.index("content_block_stop")


@BOTH
async def test_a_cli_with_the_wrong_token_is_refused_and_ends(start, controller, version):
    cli = start(version, token="wrong")
    assert await cli.ended() == 0
    assert not controller.channel.is_connected
    await controller.channel.close()
    assert [entry async for entry in controller.channel] == []


@BOTH
async def test_a_closed_channel_ends_the_cli(start, controller, version):
    cli = start(version)
    await controller.initialize()
    await controller.channel.close()
    assert await cli.ended() == 0
