import asyncio
import json

import pytest
from msgspec import Raw

from ide_bridge import __version__
from ide_bridge.bridge import Bridge
from ide_bridge.editor.interface import Editor
from ide_bridge.fronts.client import Client
from ide_bridge.fronts.mcp import DIRECT, METHODS, PROTOCOL_VERSIONS, CallTool, mcp_methods
from ide_bridge.tools import files
from ide_bridge.tools.registry import Context, Registry, tool_from_function
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.claude_client import Refused, connect_to, eventually
from tests.fakes.memory_editor import MemoryEditor
from tests.fakes.surroundings import at_home


class Slow(Editor):
    """An editor that answers when it is told to."""

    def __init__(self):
        self.asked, self.go, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def open_files(self):
        self.asked.set()
        try:
            await self.go.wait()
        finally:
            self.ended.set()
        return []


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        yield folder


@pytest.fixture
async def bridge(project):
    async with Bridge(project) as bridge:
        yield bridge


@pytest.fixture
async def client(bridge):
    async with connect_to(bridge) as client:
        yield client


def text(answer):
    """The text of a tool's result that is a success."""
    assert answer.keys() == {"content"}
    (block,) = answer["content"]
    assert block.keys() == {"type", "text"}
    assert block["type"] == "text"
    return block["text"]


def arguments_of(tools):
    return [argument for tool in tools for argument in tool["inputSchema"]["properties"].values()]


def test_the_methods_are_those_that_are_named():
    assert sorted(mcp_methods(Registry(files.TOOLS), lambda _client: None)) == sorted(METHODS)


@pytest.mark.parametrize("version", PROTOCOL_VERSIONS)
async def test_every_version_we_know_is_spoken(client, version):
    answer = await client.initialize(version)
    assert answer == {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "ide-bridge", "version": __version__},
    }


@pytest.mark.parametrize("version", ["2099-01-01", "", "1"])
async def test_another_version_is_answered_with_our_newest(client, version):
    assert (await client.initialize(version))["protocolVersion"] == "2025-11-25"


async def test_the_questions_after_connecting_are_answered(client):
    await client.initialize()
    for method in ("tools/list", "prompts/list", "resources/list"):
        await client.ask(method)
    answers = [(await client.receive())["result"] for _ in range(3)]
    assert answers[1:] == [{"prompts": []}, {"resources": []}]
    assert [tool["name"] for tool in answers[0]["tools"]][:6] == list(DIRECT)


async def test_every_tool_has_a_description_and_a_schema_of_its_own(client):
    tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools.values())
    write = tools["writeFile"]["inputSchema"]
    assert write["required"] == ["path", "content"]
    assert write["properties"]["path"]["type"] == "string"
    assert tools["listFiles"]["inputSchema"].get("required", []) == []
    assert tools["getOpenFiles"]["inputSchema"]["properties"] == {}


async def test_the_tools_are_the_methods_and_those_of_the_extension(client):
    tools = (await client.request("tools/list"))["tools"]
    assert [tool["name"] for tool in tools] == [
        *DIRECT,
        "openFile",
        "getOpenEditors",
        "getWorkspaceFolders",
        "checkDocumentDirty",
        "saveDocument",
        "getCurrentSelection",
        "getLatestSelection",
        "getDiagnostics",
        "openDiff",
        "close_tab",
        "closeAllDiffTabs",
    ]
    assert all(tool.keys() == {"name", "description", "inputSchema"} for tool in tools)
    assert all(argument.keys() >= {"type"} or "anyOf" in argument for argument in arguments_of(tools))
    assert await client.request("tools/list") == {"tools": tools}


async def test_the_tools_of_the_editor_are_no_methods(client):
    for name in ("openDiff", "closeAllDiffTabs", "getDiagnostics", "getLatestSelection"):
        with pytest.raises(Refused) as refused:
            await client.request(name, {})
        assert refused.value.code == -32601


async def test_members_of_a_call_that_nobody_knows_are_ignored(client):
    meta = {"progressToken": 7, "claudecode/toolUseId": "toolu_1"}
    for arguments in ({}, {"more": [1]}, None):
        params = {"name": "closeAllDiffTabs", "arguments": arguments, "_meta": meta, "task": {}}
        assert text(await client.request("tools/call", params)) == "CLOSED_0_DIFF_TABS"


async def test_several_texts_are_several_blocks(project):
    editor = MemoryEditor()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        given = {"old_file_path": "a", "new_file_path": "a", "new_file_contents": "n", "tab_name": "t"}
        asked = await client.ask_tool("openDiff", given)
        editor.keep(await editor.shown("t"))
        assert await client.answer(asked) == {
            "content": [{"type": "text", "text": "FILE_SAVED"}, {"type": "text", "text": "n"}]
        }


async def test_a_client_may_say_who_it_is_in_any_way_it_likes(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        for info in ({}, {"name": "x", "version": "1", "extra": {}}):
            await client.request("initialize", {"protocolVersion": "2025-11-25", "clientInfo": info})
        for params in ({"pid": None}, {}, {"pid": "no number"}, {"pid": -1}):
            await client.notify("ide_connected", params)
        assert await client.request("ping") == {}
        (known,) = bridge.status()["clients"]
        assert (known["name"], known["version"], known["pid"], known["folder"]) == ("x", "1", -1, None)


async def test_a_client_is_called_what_it_said_first(project):
    told = []
    async with Bridge(project, happening=lambda *what: told.append(what)) as bridge, connect_to(bridge) as client:
        for name in ("honest", "other"):
            info = {"name": name, "version": "1", "title": name.upper()}
            answer = await client.request("initialize", {"protocolVersion": "2025-11-25", "clientInfo": info})
            assert answer["protocolVersion"] == "2025-11-25"
        (known,) = bridge.status()["clients"]
        assert known["name"] == "honest"
    assert told == [("honest 1", "connected"), ("honest 1", "disconnected")]


async def test_a_method_as_a_tool_answers_its_result_as_json_and_a_text_as_it_is(project, client):
    assert text(await client.call_tool("writeFile", {"path": "a", "content": "é\n"})) == "true"
    assert text(await client.call_tool("readFile", {"path": "a"})) == "é\n"
    assert json.loads(text(await client.call_tool("listFiles", {}))) == ["a"]
    assert json.loads(text(await client.call_tool("getWorkspaceInfo")))["path"] == str(project)
    assert text(await client.call_tool("getCurrentFile")) in {"null", '"a"'}


async def test_a_tool_that_fails_says_so_in_one_sentence(client):
    missing = await client.call_tool("readFile", {"path": "absent"})
    assert missing == {
        "content": [{"type": "text", "text": "failed to read file: File not found"}],
        "isError": True,
    }
    outside = await client.call_tool("writeFile", {"path": "../x", "content": ""})
    assert outside["isError"] is True
    assert ".." in outside["content"][0]["text"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"name": "nothing"}, "Unknown tool: nothing"),
        ({"name": "ping"}, "Unknown tool: ping"),
        ({"name": "readFile"}, "path"),
        ({"name": "readFile", "arguments": {"path": 1}}, "path"),
        ({"name": "readFile", "arguments": []}, "object"),
        ({}, "name"),
        ({"name": 1}, "name"),
    ],
)
async def test_a_call_that_fits_no_tool_is_wrong_parameters(client, params, says):
    with pytest.raises(Refused) as refused:
        await client.request("tools/call", params)
    assert refused.value.code == -32602
    assert says in refused.value.message


async def test_an_accident_in_a_tool_tells_only_its_number(project, caplog):
    class Clumsy(Editor):
        async def open_files(self):
            raise RuntimeError("a private detail")

    async with Bridge(project, editor=Clumsy()) as bridge, connect_to(bridge) as client:
        answer = await client.call_tool("getOpenFiles")
    assert answer["isError"] is True
    assert "private" not in answer["content"][0]["text"]
    assert answer["content"][0]["text"].startswith("internal error")
    assert "a private detail" in caplog.text


async def test_a_cancelled_call_ends_and_is_not_answered(project):
    editor = Slow()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        asked = await client.ask("tools/call", {"name": "getOpenFiles"})
        async with asyncio.timeout(5):
            await editor.asked.wait()
            await client.notify("notifications/cancelled", {"requestId": asked, "reason": "the user said so"})
            await editor.ended.wait()
        assert await client.request("ping") == {}
        assert client.unread == []


async def test_a_call_ends_with_its_client(project):
    editor = Slow()
    async with Bridge(project, editor=editor) as bridge:
        async with connect_to(bridge) as client:
            await client.ask("getOpenFiles")
            await asyncio.wait_for(editor.asked.wait(), 5)
        await asyncio.wait_for(editor.ended.wait(), 5)


async def test_a_slow_call_holds_up_nobody(project):
    editor = Slow()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        asked = await client.ask("getOpenFiles")
        assert await client.request("ping") == {}
        editor.go.set()
        answer = await client.receive()
        assert (answer["id"], answer["result"]) == (asked, [])


# -- what the user is told ---------------------------------------------------------------------------------


@pytest.fixture
async def feed(project):
    """What the user is told, and a client that does something."""
    told = []
    bridge = Bridge(project, happening=lambda _who, what: told.append(what))
    async with bridge, connect_to(bridge) as client:
        yield told, client


CALLS = [
    ("writeFile", {"path": "a", "content": ""}, "writes a"),
    ("readFile", {"path": "a"}, "reads a"),
    ("readFile", {"path": ".env"}, "reads .env – refused"),
    ("readFile", {"path": "../a"}, "reads ../a – refused"),
    ("readFile", {"path": ""}, "reads (no path) – refused"),
    ("readFile", {"path": "absent"}, "reads absent – failed"),
    ("writeFile", {"path": ".env", "content": ""}, "writes .env – refused"),
    ("writeFile", {"path": "a/b", "content": ""}, "writes a/b – failed"),
]


async def test_the_user_is_told_what_is_refused_and_what_fails(feed):
    told, client = feed
    for name, params, words in CALLS:
        told.clear()
        answer = await client.call_tool(name, params)
        assert ("isError" in answer) == ("–" in words)
        if "–" in words:
            with pytest.raises(Refused):
                await client.request(name, params)
        else:
            await client.request(name, params)
        assert told == [words, words]


async def test_a_long_name_is_told_without_its_middle(feed):
    told, client = feed
    with pytest.raises(Refused):
        await client.request("readFile", {"path": "x" * 5000 + "/end.txt"})
    (line,) = told
    assert line.startswith("reads xxxx")
    assert line.endswith("x/end.txt – refused")
    assert len(line) < 120


async def test_what_lasts_is_told_when_it_does_and_again_only_if_it_fails(project, monkeypatch):
    monkeypatch.setattr("ide_bridge.fronts.mcp.LASTING_SECONDS", 0.01)
    told, editor = [], MemoryEditor()
    proposal = {"old_file_path": "a", "new_file_path": "a", "new_file_contents": "n", "tab_name": "t"}
    bridge = Bridge(project, editor=editor, happening=lambda _who, what: told.append(what))
    async with bridge, connect_to(bridge) as client:
        asked = await client.ask_tool("openDiff", proposal)
        await eventually(lambda: told == ["proposes a change of a"])
        editor.keep(await editor.shown("t"))
        await client.answer(asked)
        assert told == ["proposes a change of a"]


async def test_what_did_not_last_is_told_once(project, monkeypatch):
    monkeypatch.setattr("ide_bridge.fronts.mcp.LASTING_SECONDS", 0.1)
    told, editor = [], Slow()
    bridge = Bridge(project, editor=editor, happening=lambda _who, what: told.append(what))
    async with bridge, connect_to(bridge) as client:
        await client.request("writeFile", {"path": "a", "content": ""})
        await client.ask("getOpenFiles")
        await eventually(lambda: "asks which files are open" in told)
        assert told == ["writes a", "asks which files are open"]


async def test_what_fails_after_a_while_is_told_twice(project, monkeypatch):
    class Late(Slow):
        async def open_files(self):
            await super().open_files()
            raise OSError

    monkeypatch.setattr("ide_bridge.fronts.mcp.LASTING_SECONDS", 0.01)
    told, editor = [], Late()
    bridge = Bridge(project, editor=editor, happening=lambda _who, what: told.append(what))
    async with bridge, connect_to(bridge) as client:
        asked = await client.ask("getOpenFiles")
        await eventually(lambda: told == ["asks which files are open"])
        editor.go.set()
        with pytest.raises(Refused):
            await client.answer(asked)
    assert told[:2] == ["asks which files are open", "asks which files are open – failed"]


def test_a_tool_that_has_no_words_of_its_own_is_told_by_its_name(tmp_path):
    told = []

    def shout(word: str) -> str:
        return word.upper()

    client = Client(1, Context(Workspace(tmp_path), Editor()), lambda *what: told.append(what))
    call = mcp_methods(Registry([*files.TOOLS, tool_from_function("shout", shout)]), lambda _client: None)[
        "tools/call"
    ]
    call.call(client, CallTool("shout", Raw(b'{"word": "a"}')))
    assert told == [("a client", "uses shout")]
