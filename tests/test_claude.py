import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import ClientSession

from ide_bridge.bridge import Bridge
from ide_bridge.editor.interface import Editor
from tests.fakes.claude_client import TOKEN_HEADER, Refused, connect_to, knock, upgrade_head
from tests.fakes.surroundings import at_home


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def told():
    return []


@pytest.fixture
async def bridge(project, told):
    async with Bridge(project, happening=lambda who, what: told.append((who, what))) as bridge:
        yield bridge


async def eventually(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


def token_of(bridge):
    return Path(bridge.token_file).read_text(encoding="ascii")


async def test_the_cli_connects_with_what_it_reads_in_the_lock(bridge):
    lock = json.loads(Path(bridge.lock).read_text(encoding="utf-8"))
    assert lock["transport"] == "ws"
    async with ClientSession() as session:
        headers = {TOKEN_HEADER: lock["authToken"]}
        url = f"ws://127.0.0.1:{Path(bridge.lock).stem}"
        async with session.ws_connect(url, headers=headers, protocols=("mcp",)) as socket:
            assert socket.protocol == "mcp"


async def test_the_subprotocol_is_echoed_only_when_offered(bridge):
    head = upgrade_head(bridge.port, f"{TOKEN_HEADER}: {token_of(bridge)}")
    answer = await knock(bridge.port, head)
    assert answer.status == 101
    assert "sec-websocket-protocol: mcp\r\n" in answer.head.lower()
    assert "sec-websocket-extensions" not in answer.head.lower()
    answer = await knock(bridge.port, [line for line in head if "Protocol" not in line])
    assert answer.status == 101
    assert "sec-websocket-protocol" not in answer.head.lower()


async def test_a_client_is_shown_once_it_has_introduced_itself_and_until_it_leaves(bridge, told):
    async with connect_to(bridge) as client:
        assert await client.request("ping") == {}
        assert bridge.status()["clients"] == []
        await client.initialize()
        assert await client.request("ping") == {}
        (shown,) = bridge.status()["clients"]
        assert shown == {"client": 1, "name": "claude-code", "version": "2.1.326", "pid": 4711, "folder": None}
    await eventually(lambda: bridge.status()["clients"] == [])
    assert told == [("claude-code 2.1.326", "connected"), ("claude-code 2.1.326", "disconnected")]


async def test_what_a_client_does_is_told_in_human_words(bridge, project, told):
    (project / "a").write_text("", encoding="utf-8")
    async with connect_to(bridge) as client:
        await client.request("readFile", {"path": "a"})
        await client.call_tool("writeFile", {"path": "b", "content": "secret"})
    assert told[:2] == [("a client", "reads a"), ("a client", "writes b")]
    assert "secret" not in str(told)


async def test_several_clients_are_served_at_once_and_answers_stay_apart(bridge, project):
    for number in range(3):
        (project / str(number)).write_text(f"text {number}", encoding="utf-8")

    async def work(number):
        async with connect_to(bridge) as client:
            return [await client.request("readFile", {"path": str(number)}) for _ in range(20)]

    answers = await asyncio.gather(*map(work, range(3)))
    assert answers == [[f"text {number}"] * 20 for number in range(3)]


@pytest.mark.parametrize("request_id", [0, -1, 1.5, "", "a", "é", None, 2**53])
async def test_the_id_comes_back_as_it_was(bridge, request_id):
    async with connect_to(bridge) as client:
        for method in ("ping", "nothing"):
            answer = await client.say(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method}))
            assert answer["id"] == request_id
            assert type(answer["id"]) is type(request_id)


async def test_a_batch_is_answered_as_one(bridge):
    async with connect_to(bridge) as client:
        ping = {"jsonrpc": "2.0", "method": "ping"}
        answer = await client.say(json.dumps([{**ping, "id": 1}, ping, {**ping, "id": 2}, 1]))
        assert {str(element["id"]): element.get("result") for element in answer} == {
            "1": {},
            "2": {},
            "None": None,
        }


async def test_positional_parameters_are_taken(bridge, project):
    async with connect_to(bridge) as client:
        assert await client.request("writeFile", ["a", "text"]) is True
        assert await client.request("readFile", ["a"]) == "text"


async def test_a_notification_is_never_answered(bridge):
    async with connect_to(bridge) as client:
        await client.notify("nothing/known")
        await client.notify("readFile", {"path": "absent"})
        await client.notify("notifications/cancelled", {"requestId": 99})
        assert await client.request("ping") == {}


async def test_an_accident_inside_is_an_internal_error_that_tells_nothing(project, caplog):
    class Clumsy(Editor):
        def open_files(self):
            raise RuntimeError("a private detail")

    async with Bridge(project, editor=Clumsy()) as bridge, connect_to(bridge) as client:
        with pytest.raises(Refused) as refused:
            await client.request("getOpenFiles")
        assert (refused.value.code, refused.value.message) == (-32603, "internal error")
        assert refused.value.data["incident"] in caplog.text
        assert "private" not in str(refused.value.data)
        assert await client.request("ping") == {}


async def test_a_bridge_that_stops_says_goodbye_and_the_cli_finds_the_next_at_the_same_place(project):
    async with Bridge(project) as first, connect_to(first) as client:
        port, token = first.port, token_of(first)
        await client.initialize()
        stopping = asyncio.create_task(first.stop())
        assert await client.closed() == 1001
        await stopping
    async with Bridge(project) as second:
        assert (second.port, token_of(second)) == (port, token)
        async with connect_to(second) as client:
            await client.initialize()
