"""One test per rule of the --sdk-url server and of the relay: each breach is refused, and harms nobody."""

import asyncio
import json
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from ide_bridge.fronts.gate import check_token, host_gate, refuse_origin
from ide_bridge.session import relay as relay_module
from ide_bridge.session.relay import Relay
from ide_bridge.session.sdk_server import SdkServer
from tests.fakes.claude_client import knock, upgrade_head
from tests.fakes.relay import connect_cli, connect_front_end

SESSION = "0f0e0d0c-1111-4222-8333-444455556666"
TOKEN = "0123456789abcdef" * 4
PATIENCE = 10
STILL_CONNECTED = {"type": "status", "text": "claude code is connected"}


def head(port, path, *headers, host=None):
    lines = upgrade_head(port, *headers, host=host)
    return [f"GET {path} HTTP/1.1", *lines[1:]]


# -- the --sdk-url server ----------------------------------------------------------------------------------


class Sdk:
    """The server behind the gate that the bridge puts before it, and one expected session."""

    def __init__(self, port, channel):
        self.port = port
        self.channel = channel
        self.bearer = f"Authorization: Bearer {channel.token}"


@pytest.fixture
async def sdk(unused_tcp_port):
    def admit(request, token):
        refuse_origin(request)
        check_token(request, "Authorization", f"Bearer {token}")

    server = SdkServer(admit)
    application = web.Application(middlewares=[host_gate(unused_tcp_port)])
    server.add_routes(application.router)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    sdk = Sdk(unused_tcp_port, server.expect(SESSION))
    yield sdk
    assert (await knock(sdk.port, head(sdk.port, sdk.channel.path, sdk.bearer))).status == 101
    server.forget(SESSION)
    await runner.cleanup()


@pytest.mark.parametrize("path", [f"/sdk/{SESSION}", f"/sdk/ws/{SESSION}"])
@pytest.mark.parametrize(
    "given", [[], ["wrong"], ["{token}"], ["bearer {token}"], ["Bearer {token}x"], ["Bearer {token}"] * 2, ["é"]]
)
async def test_without_its_token_given_once_no_cli_comes_in(sdk, path, given):
    values = [f"Authorization: {value.format(token=sdk.channel.token)}" for value in given]
    answer = await knock(sdk.port, head(sdk.port, path, *values))
    assert answer.status == 401
    assert sdk.channel.token not in answer.head + answer.body
    assert not sdk.channel.is_connected


@pytest.mark.parametrize("path", [f"/sdk/{SESSION}", f"/sdk/ws/{SESSION}"])
async def test_no_web_page_speaks_for_a_cli(sdk, path):
    answer = await knock(sdk.port, head(sdk.port, path, sdk.bearer, f"Origin: http://127.0.0.1:{sdk.port}"))
    assert answer.status == 403


async def test_a_rebound_name_reaches_no_session(sdk):
    stranger = head(sdk.port, sdk.channel.path, sdk.bearer, host="evil.example")
    assert (await knock(sdk.port, stranger)).status == 421


async def test_the_token_of_one_session_opens_no_other_and_none_is_betrayed(sdk):
    for path in ("/sdk/another", "/sdk/ws/another", "/sdk/ws", f"/sdk/{SESSION[:-1]}"):
        answers = [await knock(sdk.port, head(sdk.port, path, header)) for header in (sdk.bearer, "X: y")]
        assert [answer.status for answer in answers] == [401, 401]


@pytest.mark.parametrize(
    "path", [f"/sdk/session/{SESSION}/events", f"/sdk/{SESSION}/events", "/sdk/another/events"]
)
async def test_nothing_is_posted_without_the_token(sdk, path):
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{sdk.port}", "Content-Length: 0"]
    assert (await knock(sdk.port, lines)).status == 401
    assert (await knock(sdk.port, [*lines, "Authorization: Bearer wrong"])).status == 401
    assert (await knock(sdk.port, [*lines, sdk.bearer, "Origin: null"])).status == 403


async def test_other_methods_serve_nothing(sdk):
    for method in ("PUT", "DELETE", "OPTIONS"):
        lines = [f"{method} {sdk.channel.path} HTTP/1.1", f"Host: 127.0.0.1:{sdk.port}", sdk.bearer]
        assert (await knock(sdk.port, lines)).status == 405


async def test_who_has_no_token_does_not_take_the_place_of_the_cli(sdk):
    reader, writer = await asyncio.open_connection("127.0.0.1", sdk.port)
    writer.write("".join(f"{line}\r\n" for line in [*head(sdk.port, sdk.channel.path, sdk.bearer), ""]).encode())
    await reader.readuntil(b"\r\n\r\n")
    for _ in range(10):
        assert (await knock(sdk.port, head(sdk.port, sdk.channel.path))).status == 401
    await sdk.channel.send(b'{"type":"x"}\n')
    async with asyncio.timeout(PATIENCE):
        assert b'{"type":"x"}\n' in await reader.readuntil(b"\n")
    writer.close()
    await writer.wait_closed()


# -- the relay ---------------------------------------------------------------------------------------------


@pytest.fixture
def neighbour(monkeypatch):
    """``neighbour(False)``: from now on, programs that connect are somebody else's."""

    def set_to(is_ours):
        monkeypatch.setattr(relay_module, "belongs_to_us", lambda _ours, _theirs: is_ours)

    return set_to


@pytest.fixture
async def relay():
    relay = Relay(TOKEN, origins=["http://localhost:5173"])
    await relay.start(0)
    yield relay
    async with (
        connect_cli(relay.port, Authorization=f"Bearer {TOKEN}"),
        connect_front_end(relay.port, query=f"?token={TOKEN}") as front,
    ):
        assert await front.hear() == [STILL_CONNECTED]
    await relay.stop()


PATHS = pytest.mark.parametrize("path", ["/", "/ws"])


@PATHS
async def test_a_program_of_this_user_needs_no_token(relay, path, neighbour):
    neighbour(True)
    assert (await knock(relay.port, head(relay.port, path))).status == 101


@PATHS
@pytest.mark.parametrize(
    "given",
    [
        [],
        ["Authorization: Bearer wrong"],
        [f"Authorization: {TOKEN}"],
        [f"Authorization: Bearer {TOKEN[:-1]}"],
        [f"Authorization: Bearer {TOKEN}"] * 2,
        [f"X-Claude-Code-Ide-Authorization: {TOKEN}", f"Cookie: token={TOKEN}"],
        ["Authorization: Bearer é"],
    ],
)
async def test_a_program_of_another_user_needs_the_token_given_once(relay, path, given, neighbour):
    neighbour(False)
    answer = await knock(relay.port, head(relay.port, path, *given))
    assert (answer.status, answer.body) == (401, "The token of the relay is needed.\n")
    assert TOKEN not in answer.head
    assert (await knock(relay.port, head(relay.port, path, f"Authorization: Bearer {TOKEN}"))).status == 101
    assert (await knock(relay.port, head(relay.port, f"{path}?token={TOKEN}"))).status == 101
    assert (await knock(relay.port, head(relay.port, f"{path}?token={TOKEN}&token={TOKEN}"))).status == 401
    assert (await knock(relay.port, head(relay.port, f"{path}?token=%FF"))).status == 401


async def test_a_real_program_of_another_user_is_kept_out_by_its_number(relay):
    request = "".join(f"{line}\r\n" for line in [*head(relay.port, "/ws"), ""])
    program = (
        "import os, socket, sys; os.setuid(4711); s = socket.socket(); "
        f"s.connect(('127.0.0.1', {relay.port})); s.sendall({request.encode()!r}); print(s.recv(99)[:12])"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-I", "-S", "-c", program], capture_output=True, timeout=30
    )
    if done.returncode:
        pytest.skip("this user cannot become another")
    assert done.stdout.strip() == b"b'HTTP/1.1 401'"


@PATHS
@pytest.mark.parametrize(
    "origin", ["null", "", "https://evil.example", "http://localhost:51730", "http://127.0.0.1:{port}"]
)
async def test_a_web_page_that_was_not_named_is_refused_even_with_the_token(relay, path, origin):
    lines = (f"Origin: {origin.format(port=relay.port)}", f"Authorization: Bearer {TOKEN}")
    answer = await knock(relay.port, head(relay.port, path, *lines))
    assert (answer.status, answer.body) == (403, "This page may not connect; name it with --origin.\n")


async def test_a_web_page_that_was_named_comes_in(relay, neighbour):
    page = "Origin: http://localhost:5173"
    neighbour(True)
    assert (await knock(relay.port, head(relay.port, "/ws", page))).status == 101
    assert (await knock(relay.port, head(relay.port, "/ws", page, page))).status == 403
    neighbour(False)
    assert (await knock(relay.port, head(relay.port, "/ws", page))).status == 401
    assert (await knock(relay.port, head(relay.port, f"/ws?token={TOKEN}", page))).status == 101


@PATHS
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.2:{port}"]
)
async def test_a_rebound_name_does_not_reach_the_relay(relay, path, host):
    stranger = head(relay.port, path, f"Authorization: Bearer {TOKEN}", host=host.format(port=relay.port))
    assert (await knock(relay.port, stranger)).status in {400, 421}


async def test_the_relay_is_not_open_to_the_network(relay):
    with pytest.raises(OSError, match="failed"):
        await asyncio.open_connection("127.0.0.2", relay.port)


@pytest.mark.parametrize("path", ["/x", "/ws/x", "/sdk/x", "/../etc/passwd"])
async def test_the_relay_serves_nothing_else(relay, path):
    assert (await knock(relay.port, head(relay.port, path, f"Authorization: Bearer {TOKEN}"))).status == 404


@PATHS
async def test_plain_http_is_told_what_is_served_here(relay, path):
    lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{relay.port}", f"Authorization: Bearer {TOKEN}"]
    assert (await knock(relay.port, lines)).status == 426


async def test_only_so_many_come_in(relay, neighbour, monkeypatch):
    neighbour(True)
    monkeypatch.setattr(relay_module, "CLI_LIMIT", 2)
    monkeypatch.setattr(relay_module, "FRONT_END_LIMIT", 2)
    async with AsyncExitStack() as everyone:
        for connect in (connect_cli, connect_front_end):
            for _ in range(2):
                await everyone.enter_async_context(connect(relay.port))
        for path in ("/", "/ws"):
            assert (await knock(relay.port, head(relay.port, path))).status == 503


async def test_a_message_of_a_front_end_over_the_limit_ends_only_that_front_end(relay, neighbour):
    neighbour(True)
    async with connect_front_end(relay.port) as large, connect_front_end(relay.port) as other:
        size = relay_module.FRONT_END_MESSAGE_LIMIT + 1
        transport = large.socket._conn.transport
        transport.write(b"\x81\xff" + size.to_bytes(8, "big") + b"\0\0\0\0" + b"x" * 1024)
        assert await large.closed() == 1009
        await other.socket.send_str("{")
        assert (await other.hear())[0]["level"] == "error"


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"type":"user","message":' + b'{"a":' * 50_000,
        b"\0\xff\xfe",
        b'{"type":"user","message":{"role":"user","content":"x\xff"}}',
        b'{"type":"user","message":{"role":"system","content":"x"}}',
        b'{"type":"control_response","response":{"subtype":"success","request_id":"nobody","response":{}}}',
        b'{"type":"control_cancel_request","request_id":"x"}',
    ],
)
async def test_no_line_of_a_front_end_reaches_a_cli_that_could_harm_it(relay, neighbour, line):
    neighbour(True)
    async with connect_cli(relay.port) as cli, connect_front_end(relay.port) as front:
        await cli.hear()
        await front.socket.send_bytes(line + b"\n")
        await front.hear_until(lambda message: message.get("level") == "error")
        await front.say({"type": "user", "message": {"role": "user", "content": "fine"}})
        (heard,) = await cli.hear()
        assert heard["message"]["content"] == "fine"


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[" * 100_000,
        b"\xff\xff",
        b'{"type":"control_request","request_id":"q","request":5}',
        b'{"type":"control_request","request_id":"q"}',
        b'{"type":"control_request","request_id":{},"request":{}}',
        b'{"type":"control_response","response":[]}',
        b'{"type":"system","subtype":"init","session_id":{}}',
        b'{"type":5,"session_id":5,"uuid":5}',
    ],
)
async def test_a_cli_that_talks_nonsense_harms_nobody(relay, neighbour, line):
    neighbour(True)
    async with connect_cli(relay.port) as cli, connect_front_end(relay.port) as front:
        await cli.hear()
        await cli.socket.send_bytes(line + b"\n")
        await cli.say({"type": "assistant", "uuid": "u"})
        async with asyncio.timeout(PATIENCE):
            while True:
                frame = await front.socket.receive()
                if "assistant" in frame.data:
                    break
        assert json.loads(frame.data)["uuid"] == "u"
