"""One test per rule of the port: each breach gets a clear refusal, and the bridge is as well as before."""

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.cli.reach import ask
from ide_bridge.errors import SetupProblem
from ide_bridge.fronts import claude
from ide_bridge.running import find
from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_client import TOKEN_HEADER, connect, connect_to, knock, upgrade_head
from tests.fakes.surroundings import at_home

NO_TOKEN = "The token in the lock file is needed.\n"
LIMIT = 64 * 1024 * 1024


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    (folder / "a").write_text("alive", encoding="utf-8")
    return folder


@pytest.fixture
async def bridge(project):
    async with Bridge(project) as bridge:
        yield bridge
        async with connect_to(bridge) as client:
            assert await client.request("readFile", {"path": "a"}) == "alive"


def token_of(bridge):
    return Path(bridge.token_file).read_text(encoding="ascii")


@pytest.mark.parametrize(
    "given",
    [
        [],
        [""],
        ["wrong"],
        ["{token}x"],
        ["{short}"],
        ["{token}", "{token}"],
        ["{token}", "wrong"],
        ["{upper}"],
        ["é" * 32],
        ["{token}, {token}"],
    ],
)
async def test_without_the_token_given_once_nobody_comes_in(bridge, given):
    token = token_of(bridge)
    values = [value.format(token=token, short=token[:-1], upper=token.upper()) for value in given]
    answer = await knock(bridge.port, upgrade_head(bridge.port, *(f"{TOKEN_HEADER}: {value}" for value in values)))
    assert (answer.status, answer.body) == (401, NO_TOKEN)
    assert token not in answer.head + answer.body


async def test_the_token_is_taken_from_no_other_place(bridge):
    token = token_of(bridge)
    head = upgrade_head(bridge.port, f"Authorization: Bearer {token}", f"Cookie: {TOKEN_HEADER}={token}")
    head[0] = f"GET /?token={token}&{TOKEN_HEADER}={token} HTTP/1.1"
    assert (await knock(bridge.port, head)).status == 401


@pytest.mark.parametrize(
    "origin", ["null", "", "http://127.0.0.1:{port}", "https://evil.example", "vscode-webview://x"]
)
async def test_no_web_page_comes_in_whatever_its_origin_and_even_with_the_token(bridge, origin):
    head = upgrade_head(
        bridge.port, f"Origin: {origin.format(port=bridge.port)}", f"{TOKEN_HEADER}: {token_of(bridge)}"
    )
    answer = await knock(bridge.port, head)
    assert (answer.status, answer.body) == (403, "Web pages may not connect.\n")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "evil@127.0.0.1:{port}",
        "x",
    ],
)
async def test_a_name_that_was_rebound_to_this_machine_is_refused(bridge, host):
    head = upgrade_head(bridge.port, f"{TOKEN_HEADER}: {token_of(bridge)}", host=host.format(port=bridge.port))
    answer = await knock(bridge.port, head)
    assert answer.status in {400, 421}
    assert "Sec-WebSocket-Accept" not in answer.head


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}", "[::1]:{port}"])
async def test_our_own_names_are_good(bridge, host):
    head = upgrade_head(bridge.port, f"{TOKEN_HEADER}: {token_of(bridge)}", host=host.format(port=bridge.port))
    assert (await knock(bridge.port, head)).status == 101


async def test_two_hosts_are_no_host(bridge):
    head = upgrade_head(bridge.port, "Host: evil.example", f"{TOKEN_HEADER}: {token_of(bridge)}")
    assert (await knock(bridge.port, head)).status in {400, 421}


@pytest.mark.parametrize("path", ["/etc/passwd", "/../a", "/a", "/view"])
async def test_other_paths_serve_nothing(bridge, path):
    head = upgrade_head(bridge.port, f"{TOKEN_HEADER}: {token_of(bridge)}")
    head[0] = f"GET {path} HTTP/1.1"
    assert (await knock(bridge.port, head)).status == 404


async def test_plain_http_is_told_what_is_served_here(bridge):
    head = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{bridge.port}", f"{TOKEN_HEADER}: {token_of(bridge)}"]
    answer = await knock(bridge.port, head)
    assert (answer.status, answer.body) == (426, "A WebSocket is served here.\n")


async def test_the_port_is_not_open_to_the_network(bridge):
    with socket.socket() as line:
        line.settimeout(5)
        with pytest.raises(OSError, match="refused"):
            line.connect(("127.0.0.2", bridge.port))


async def test_a_message_over_the_limit_ends_the_conversation_with_1009(bridge):
    async with connect_to(bridge) as client:
        # One header that promises too much is enough: the size is decided from it, not from what follows.
        transport = client.socket._conn.transport
        transport.write(b"\x81\xff" + (LIMIT + 1).to_bytes(8, "big") + b"\0\0\0\0" + b"x" * 1024)
        assert await client.closed() == 1009


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", -32700),
        ("{", -32700),
        ("not json", -32700),
        ("[" * 100_000, -32700),
        ("[" * 100_000 + "]" * 100_000, -32700),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":' + '{"a":' * 50_000 + "1" + "}" * 50_001, -32700),
        ("[]", -32600),
        ("1", -32600),
        ("null", -32600),
        ("{}", -32600),
        ('{"id":1,"method":"ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":1}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"ping","params":1}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601),
        ('{"jsonrpc":"2.0","id":1,"method":"__class__"}', -32601),
        ('{"jsonrpc":"2.0","id":1,"method":"stop"}', -32601),
        ('{"jsonrpc":"2.0","id":1,"method":"status"}', -32601),
        ('{"jsonrpc":"2.0","id":1,"method":"readFile","params":{"path":"\\ud800"}}', -32602),
    ],
)
async def test_a_message_that_is_wrong_is_answered_so_and_the_conversation_goes_on(bridge, text, code):
    async with connect_to(bridge) as client:
        answer = await client.say(text)
        assert answer["error"]["code"] == code, answer
        assert answer["id"] in {None, 1}
        assert await client.request("ping") == {}


async def test_bytes_that_are_no_utf8_are_refused(bridge):
    async with connect_to(bridge) as client:
        answer = await client.say(b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}')
        assert answer["error"]["code"] in {-32700, -32600}
        assert await client.request("ping") == {}


async def test_a_text_frame_that_is_no_utf8_is_refused(bridge):
    async with connect_to(bridge) as client:
        payload = b'{"jsonrpc":"2.0","id":1,"method":"readFile","params":{"path":"\xff"}}'
        client.socket._conn.transport.write(bytes([0x81, 0x80 | len(payload)]) + b"\0\0\0\0" + payload)
        answer = await client.receive()
        assert answer["error"]["code"] in {-32700, -32602}
        assert await client.request("ping") == {}


async def test_a_binary_frame_is_read_like_a_text_frame(bridge):
    async with connect_to(bridge) as client:
        answer = await client.say(b'{"jsonrpc":"2.0","id":"b","method":"ping"}')
        assert answer == {"jsonrpc": "2.0", "id": "b", "result": {}}


async def test_only_so_many_clients_come_in(bridge, monkeypatch):
    monkeypatch.setattr(claude, "CLIENT_LIMIT", 2)
    head = upgrade_head(bridge.port, f"{TOKEN_HEADER}: {token_of(bridge)}")
    async with connect_to(bridge) as one, connect_to(bridge) as two:
        answer = await knock(bridge.port, head)
        assert (answer.status, answer.body) == (503, "Too many clients are connected.\n")
        assert [await client.request("ping") for client in (one, two)] == [{}, {}]


async def test_a_client_that_vanishes_in_the_middle_of_a_message_is_forgotten(bridge):
    async with connect_to(bridge) as client:
        await client.initialize()
        client.socket._conn.transport.write(b"\x81\xfe\xff\xff\0\0\0\0half")
        client.socket._conn.transport.abort()
    async with asyncio.timeout(5):
        while len(bridge.clients):
            await asyncio.sleep(0.01)


async def test_reading_a_fifo_or_a_device_does_not_hang(bridge, project):
    os.mkfifo(project / "fifo")
    (project / "null").symlink_to("/dev/zero")
    async with connect_to(bridge) as client:
        for method, more in (("readFile", {}), ("writeFile", {"content": "x"})):
            for path in ("fifo", "null"):
                await client.ask(method, {"path": path, **more})
                answer = await client.receive()
                assert answer["error"]["code"] in {-32602, -32603}, answer
        assert await client.request("ping") == {}


async def test_a_lock_folder_that_others_may_write_is_refused_in_one_sentence(home, project):
    folder = home.config / "ide"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SetupProblem) as refused:
        await Bridge(project).start()
    assert str(refused.value) == f"Others may write in {folder}; run: chmod go-w '{folder}'"
    folder.chmod(0o700)
    async with Bridge(project) as bridge:
        assert Path(bridge.lock).exists()


async def test_the_token_is_in_no_output_of_the_bridge(home, project):
    with BridgeProcess(project, home.environment) as served:
        token = Path(served.ready["token_file"]).read_text(encoding="ascii")
        assert len(bytes.fromhex(token)) >= 32
        async with connect(served.ready["port"], token) as client:
            await client.initialize()
        await knock(served.ready["port"], upgrade_head(served.ready["port"], f"{TOKEN_HEADER}: {token}x"))
        assert token not in json.dumps(served.ready) + served.log()
        arguments = Path(f"/proc/{served.ready['pid']}/cmdline")
        assert not arguments.exists() or token.encode() not in arguments.read_bytes()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 10_000,
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Length: 5\r\n\r\n{",
        b"Content-Length: 3\r\n\r\n[[[",
    ],
)
async def test_what_is_no_message_on_the_private_socket_harms_nobody(bridge, project, garbage):
    running = find(str(project))
    reader, writer = await asyncio.open_unix_connection(str(running["socket"]))
    writer.write(garbage)
    writer.write_eof()
    async with asyncio.timeout(5):
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert b'"result"' not in answer
    assert await asyncio.to_thread(ask, running, "readFile", {"path": "a"}) == "alive"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts the open files of this process")
async def test_reads_that_are_cancelled_at_once_leave_no_file_open(bridge, project):
    (project / "large").write_text("x" * 1_000_000, encoding="utf-8")
    async with connect_to(bridge) as client:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            asked = await client.ask("readFile", {"path": "large"})
            await client.notify("notifications/cancelled", {"requestId": asked})
        await client.socket.send_str('{"jsonrpc":"2.0","id":"last","method":"ping"}')
        async with asyncio.timeout(10):
            while (await client.receive())["id"] != "last":
                pass
        async with asyncio.timeout(5):
            while len(os.listdir("/proc/self/fd")) > before:
                await asyncio.sleep(0.01)
