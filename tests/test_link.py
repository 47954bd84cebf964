"""A plug-in, honest, slow, hanging or lying, as clients see it through the bridge."""

import asyncio
import time

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.editor import link, parcels
from ide_bridge.fronts import push
from ide_bridge.running import find
from tests.fakes.claude_client import connect_to, eventually, texts
from tests.fakes.plugin import Plugin
from tests.fakes.surroundings import at_home


def point(line, column):
    return {"line": line, "column": column}


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        (folder / "a.py").write_text("one\ntwo\n", encoding="utf-8")
        yield folder


@pytest.fixture
async def bridge(project, monkeypatch):
    monkeypatch.setattr(push, "DEAF_SECONDS", 0.01)
    monkeypatch.setattr(link, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(link, "SHOW_SECONDS", 0.2)
    async with Bridge(project) as bridge:
        yield bridge


@pytest.fixture
async def plugin(bridge, project):
    plugin = await Plugin.connect(str(find(str(project))["socket"]))
    yield plugin
    await plugin.close()


@pytest.fixture
async def client(bridge):
    async with connect_to(bridge) as client:
        await client.introduce()
        await eventually(lambda: [one for one in bridge.clients.ready() if one.listens])
        yield client


async def attached(bridge, plugin, **hello):
    answer = await plugin.hello(**hello)
    await eventually(lambda: bridge.editor.attached)
    return answer["result"]


async def test_hello_is_answered_with_who_we_are(bridge, plugin, client):
    welcome = await attached(bridge, plugin)
    assert welcome["port"] == bridge.port
    assert welcome["link"] == 1
    assert [(one["name"], one["pid"]) for one in welcome["clients"]] == [("claude-code", 4711)]


@pytest.mark.parametrize(("version", "who"), [(2, "upgrade ide-bridge"), (0, "upgrade the plug-in")])
async def test_another_version_is_told_what_to_upgrade(bridge, plugin, version, who):
    answer = await plugin.hello(link=version)
    assert answer["error"]["code"] == -32602
    assert who in answer["error"]["message"]
    assert not bridge.editor.attached


async def test_a_second_hello_is_refused(bridge, plugin):
    await attached(bridge, plugin)
    assert "already" in (await plugin.hello())["error"]["message"]


async def test_what_is_told_before_hello_is_ignored(bridge, plugin):
    plugin.tell("fileFocused", path="/x")
    await attached(bridge, plugin)


async def test_the_lock_has_the_name_of_the_editor_until_it_leaves(bridge, plugin):
    await attached(bridge, plugin, name="Vim")
    assert bridge.editor.name == "Vim"
    await plugin.close()
    await eventually(lambda: bridge.editor.name == "Folder")


async def test_a_selection_reaches_the_client_in_utf16(bridge, plugin, client, project):
    await attached(bridge, plugin)
    plugin.tell(
        "selectionChanged", path=str(project / "a.py"), text="😀b", start=point(0, 1), end=point(0, 3),
        startLineText="a😀bc", endLineText="a😀bc",
    )  # fmt: skip
    told = await client.notification("selection_changed")
    assert told["text"] == "😀b"
    assert told["selection"]["start"] == {"line": 0, "character": 1}
    assert told["selection"]["end"] == {"line": 0, "character": 4}


async def test_a_mention_reaches_the_client(bridge, plugin, client, project):
    await attached(bridge, plugin)
    plugin.tell("mentioned", path=str(project / "a.py"), startLine=1, endLine=2)
    told = await client.notification("at_mentioned")
    assert (told["lineStart"], told["lineEnd"]) == (1, 2)


async def test_a_diff_is_shown_and_its_decision_answers_the_client(bridge, plugin, client, project):
    await attached(bridge, plugin)
    plugin.answers["showDiff"] = {}
    plugin.answers["closeDiff"] = {}
    asked = await client.ask_tool("openDiff", diff_of(project, "new\n"))
    shown = await plugin.asked("showDiff")
    assert shown["contents"] == "new\n"
    assert shown["path"] == str(project / "a.py")
    plugin.tell("diffDecided", diff=shown["diff"], decision="kept", contents="newer\n")
    assert texts(await client.answer(asked)) == ["FILE_SAVED", "newer\n"]


async def test_an_editor_that_does_not_show_a_diff_in_time_is_told_to_forget_it(bridge, plugin, client, project):
    await attached(bridge, plugin)
    plugin.silent = {"showDiff", "closeDiff"}
    answer = await client.call_tool("openDiff", diff_of(project, "new\n"))
    assert answer == {"content": [{"type": "text", "text": "Plug does not answer."}], "isError": True}
    assert (await plugin.asked("closeDiff"))["diff"] == (await plugin.asked("showDiff"))["diff"]


async def test_a_large_text_travels_in_a_private_file(bridge, plugin, client, project, tmp_path, monkeypatch):
    monkeypatch.setattr(parcels, "WORTH_BYTES", 10)
    await attached(bridge, plugin, accepts=["contentsFile"])
    plugin.answers["showDiff"] = {}
    asked = await client.ask_tool("openDiff", diff_of(project, "a rather long text\n"))
    shown = await plugin.asked("showDiff")
    assert "contents" not in shown
    with open(shown["contentsFile"], encoding="utf-8") as file:
        assert file.read() == "a rather long text\n"
    decided = tmp_path / "decided"
    decided.write_text("mine, and long too\n", encoding="utf-8")
    plugin.tell("diffDecided", diff=shown["diff"], decision="kept", contentsFile=str(decided))
    assert texts(await client.answer(asked)) == ["FILE_SAVED", "mine, and long too\n"]
    assert not decided.exists()


async def test_an_editor_decides_only_what_it_shows(bridge, plugin, client, project):
    await attached(bridge, plugin)
    plugin.answers["showDiff"] = {}
    other = await Plugin.connect(str(find(str(project))["socket"]))
    await other.hello("Other")
    await eventually(lambda: len(bridge.editor.attached) == 2)
    plugin.tell("fileFocused", path=str(project / "a.py"))
    await eventually(lambda: bridge.editor.attached[0].name == "Plug")
    asked = await client.ask_tool("openDiff", diff_of(project, "new\n"))
    number = (await plugin.asked("showDiff"))["diff"]
    other.tell("diffDecided", diff=number, decision="rejected")
    assert (await other.ask("status"))["result"]["diffs"]
    plugin.tell("diffDecided", diff=number, decision="kept", contents="new\n")
    assert texts(await client.answer(asked))[0] == "FILE_SAVED"
    await other.close()


async def test_unsaved_text_is_what_a_client_reads(bridge, plugin, client, project):
    await attached(bridge, plugin)
    plugin.answers["readBuffer"] = {"text": "unsaved\n", "dirty": True}
    assert await client.request("readFile", {"path": "a.py"}) == "unsaved\n"
    plugin.answers["readBuffer"] = {"text": "the same\n", "dirty": False}
    assert await client.request("readFile", {"path": "a.py"}) == "one\ntwo\n"


async def test_a_hanging_editor_costs_one_wait_and_then_little(bridge, plugin, client, monkeypatch):
    await attached(bridge, plugin)
    plugin.silent = {"readBuffer"}
    assert await client.request("readFile", {"path": "a.py"}) == "one\ntwo\n"
    monkeypatch.setattr(link, "ANSWER_SECONDS", 60.0)
    begun = time.monotonic()
    for _ in range(3):
        assert await client.request("readFile", {"path": "a.py"}) == "one\ntwo\n"
    assert time.monotonic() - begun < 10
    plugin.silent = set()
    plugin.answers["readBuffer"] = {"text": "awake\n", "dirty": True}
    assert await client.request("readFile", {"path": "a.py"}) == "awake\n"


@pytest.mark.parametrize("lie", [7, "x", [{"path": 1}], [{"path": "relative"}], {"path": "/x\0"}, None])
async def test_answers_that_make_no_sense_hurt_nobody(bridge, plugin, client, project, lie):
    await attached(bridge, plugin)
    plugin.answers["openFiles"] = [
        {"path": str(project / "a.py"), "active": True, "language": "python", "lines": 2}
    ]
    assert await client.request("getOpenFiles") == ["a.py"]
    for method in ("openFiles", "currentFile", "selection", "diagnostics", "readBuffer", "saveFile"):
        plugin.answers[method] = lie
    assert await client.request("getOpenFiles") == ["a.py"]
    assert await client.request("readFile", {"path": "a.py"}) == "one\ntwo\n"
    assert await client.call_tool("getDiagnostics", {}) is not None
    assert await client.request("ping") == {}


@pytest.mark.parametrize(
    "told",
    [
        {"path": "relative", "start": point(0, 0), "end": point(0, 0)},
        {"path": "/x", "start": point(-1, 0), "end": point(0, 0)},
        {"path": "/x", "start": point(0, 2**40), "end": point(0, 0)},
        {"path": "/x"},
        {},
    ],
)
async def test_events_that_make_no_sense_are_dropped(bridge, plugin, client, told):
    await attached(bridge, plugin)
    plugin.tell("selectionChanged", **told)
    assert (await plugin.ask("ping"))["result"] == {}
    assert client.unread == []


async def test_files_clients_write_are_told(bridge, plugin, client, project):
    await attached(bridge, plugin)
    plugin.answers["readBuffer"] = None
    assert await client.request("writeFile", {"path": "b.py", "content": "b\n"}) is True
    assert (await plugin.told("fileChanged"))["path"] == str(project / "b.py")


async def test_who_connects_and_leaves_is_told(bridge, plugin):
    await attached(bridge, plugin)
    async with connect_to(bridge) as client:
        await client.introduce()
        async with asyncio.timeout(5):
            while not (told := (await plugin.told("clientsChanged"))["clients"]):
                pass
        assert told[0]["name"] == "claude-code"
    async with asyncio.timeout(5):
        while (await plugin.told("clientsChanged"))["clients"]:
            pass


async def test_a_bridge_that_stops_says_goodbye(project):
    async with Bridge(project) as bridge:
        plugin = await Plugin.connect(str(find(str(project))["socket"]))
        await attached(bridge, plugin)
    await plugin.told("goodbye")
    await plugin.close()


async def test_sharing_and_choosing_work_from_the_editor(bridge, plugin, client):
    await attached(bridge, plugin)
    assert (await plugin.ask("share", policy="off"))["result"] == "off"
    assert (await plugin.ask("status"))["result"]["sharing"] == "off"
    assert (await plugin.ask("choose", client=1))["result"] is None


async def test_diagnostics_come_with_their_words(bridge, plugin, client, project):
    await attached(bridge, plugin)
    problem = {"start": point(0, 0), "end": point(0, 3), "severity": "warning", "message": "odd", "source": "lint"}
    plugin.answers["diagnostics"] = [{"path": str(project / "a.py"), "diagnostics": [problem], "fresh": True}]
    told = texts(await client.call_tool("getDiagnostics", {"uri": (project / "a.py").as_uri()}))[0]
    assert '"Warning"' in told
    assert "odd" in told


def diff_of(project, contents):
    path = str(project / "a.py")
    return {"old_file_path": path, "new_file_path": path, "new_file_contents": contents, "tab_name": "a.py"}
