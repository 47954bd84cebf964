"""Clients that ask and do not read: bounded in what they cost, and in how long they hold anyone up."""

import asyncio
import json
import os
import socket
from pathlib import Path

import psutil
import pytest
from aiohttp import ClientSession

from ide_bridge.bridge import Bridge
from ide_bridge.wire import connection
from tests.fakes.claude_client import TOKEN_HEADER, connect_to, upgrade_head
from tests.fakes.surroundings import at_home

MIB = 1024 * 1024
LARGE = 10 * MIB - 1024


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        (folder / "a").write_text("alive", encoding="utf-8")
        (folder / "large").write_text("x" * LARGE, encoding="utf-8")
        yield folder


class Deaf:
    """A client on a bare socket that reads the handshake and then nothing more."""

    def __init__(self, bridge):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", bridge.port))
        token = Path(bridge.token_file).read_text(encoding="ascii")
        self.socket.sendall("\r\n".join([*upgrade_head(bridge.port, f"{TOKEN_HEADER}: {token}"), "", ""]).encode())

    async def hear_the_handshake(self):
        head = b""
        self.socket.setblocking(False)
        while b"\r\n\r\n" not in head:
            head += await asyncio.get_running_loop().sock_recv(self.socket, 1)
        assert b" 101 " in head

    async def ask(self, message):
        """One text frame, masked with zeros, which leave it as it is."""
        data = message.encode()
        head = (
            bytes([0x81, 0x80 | 126]) + len(data).to_bytes(2)
            if len(data) > 125
            else bytes([0x81, 0x80 | len(data)])
        )
        await asyncio.get_running_loop().sock_sendall(self.socket, head + bytes(4) + data)


def read_large(number):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "readFile", "params": {"path": "large"}})


async def test_a_client_that_does_not_read_does_not_hold_up_the_end(project):
    bridge = Bridge(project)
    await bridge.start()
    deaf = Deaf(bridge)
    await deaf.hear_the_handshake()
    await deaf.ask(read_large(1))
    async with connect_to(bridge) as client:
        assert await client.request("readFile", {"path": "a"}) == "alive"
    async with asyncio.timeout(8):
        await bridge.stop()
    deaf.socket.close()


async def test_answers_that_nobody_reads_are_kept_up_to_a_limit_and_then_the_client_is_left(project, monkeypatch):
    monkeypatch.setattr(connection, "UNSENT_LIMIT", 32 * MIB)
    async with Bridge(project) as bridge:
        deaf = Deaf(bridge)
        await deaf.hear_the_handshake()
        before = psutil.Process(os.getpid()).memory_info().rss
        for number in range(60):
            await deaf.ask(read_large(number))
        async with asyncio.timeout(20):
            while len(bridge.clients):
                await asyncio.sleep(0.05)
        assert psutil.Process(os.getpid()).memory_info().rss - before < 400 * MIB
        async with connect_to(bridge) as client:
            assert await client.request("readFile", {"path": "a"}) == "alive"
        deaf.socket.close()


async def test_the_answers_of_a_batch_are_bounded_together(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client, ClientSession() as session:
        headers = {TOKEN_HEADER: Path(bridge.token_file).read_text(encoding="ascii")}
        asked = [json.loads(read_large(number)) for number in range(10)]
        async with session.ws_connect(
            f"http://127.0.0.1:{bridge.port}/", headers=headers, max_msg_size=0
        ) as patient:
            await patient.send_str(json.dumps(asked))
            answers = json.loads((await patient.receive(timeout=20)).data)
        assert sorted(answer["id"] for answer in answers) == list(range(10))
        told = [answer for answer in answers if "result" in answer]
        refused = [answer["error"] for answer in answers if "error" in answer]
        assert len(told) == 6
        sentence = "The answers of this batch are too large together; ask one by one."
        assert refused == [{"code": -32603, "message": sentence}] * 4
        assert await client.request("readFile", {"path": "a"}) == "alive"


@pytest.mark.parametrize(
    "params",
    [{"name": "readFile", "arguments": {"path": "a"}}, ["readFile", {"path": "a"}]],
    ids=["named", "positional"],
)
async def test_a_tool_can_be_called_in_a_batch_and_by_position(project, params):
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        (answer,) = await client.say(json.dumps([call]))
        assert answer == {"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": "alive"}]}}
        if isinstance(params, list):
            assert (await client.say(json.dumps(call)))["result"] == answer["result"]


async def test_half_of_a_surrogate_pair_is_a_wrong_parameter(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        wrong = '{"jsonrpc": "2.0", "id": 4, "method": "readFile", "params": {"path": "\\ud800"}}'
        error = (await client.say(wrong))["error"]
        assert error["code"] == -32602
        assert "half of a surrogate pair" in error["message"]
