import asyncio
import os
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.cli.reach import ask
from ide_bridge.errors import InvalidParams
from ide_bridge.fronts import push
from ide_bridge.home import workspace_folder
from ide_bridge.model import FileEvent, SelectionChanged
from ide_bridge.running import find
from ide_bridge.workspace.audit import LOG_NAME
from tests.fakes.claude_client import connect_to, eventually, texts
from tests.fakes.memory_editor import MemoryEditor, span
from tests.fakes.surroundings import at_home

NOTHING = {
    "text": "",
    "selection": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}, "isEmpty": True},
}


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        (folder / "sub").mkdir(parents=True)
        yield folder


@pytest.fixture
async def editor():
    return MemoryEditor()


@pytest.fixture
async def bridge(project, editor, monkeypatch):
    monkeypatch.setattr(push, "DEAF_SECONDS", 0.01)
    async with Bridge(project, editor=editor) as bridge:
        yield bridge


@pytest.fixture
async def client(bridge):
    async with connect_to(bridge) as client:
        await client.introduce()
        await eventually(lambda: listening(bridge))
        yield client


def select(editor, path, text="x", where=(0, 0, 0, 1), **lines):
    editor.select(str(path), text, span(*where), **lines)


async def selection(client):
    return await client.notification("selection_changed")


async def nothing_more(client):
    """Make sure that nothing was said but what was waited for."""
    assert await client.request("ping") == {}
    assert client.unread == []


def listening(bridge):
    """Who has been here long enough to be told something."""
    return [client for client in bridge.clients.ready() if client.listens]


async def pause():
    """Let the time pass in which selections are held back."""
    await asyncio.sleep(0.12)


@asynccontextmanager
async def working_in(folder):
    """A process that works in a folder; gives its pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], cwd=folder, stdin=subprocess.PIPE
    )
    try:
        yield process.pid
    finally:
        process.communicate()


# -- selections --------------------------------------------------------------------------------------------


async def test_a_selection_is_told_at_once_and_whole(client, editor, project):
    select(editor, project / "a é.py", "b\nc", (3, 1, 4, 1))
    assert await selection(client) == {
        "text": "b\nc",
        "filePath": str(project / "a é.py"),
        "fileUrl": f"file://{project}/a é.py",
        "selection": {
            "start": {"line": 3, "character": 1},
            "end": {"line": 4, "character": 1},
            "isEmpty": False,
        },
    }


async def test_only_a_cursor_is_the_open_file(client, editor, project):
    select(editor, project / "a.py", "", (7, 2, 7, 2), first_line="😀😀x")
    told = await selection(client)
    assert (told["text"], told["filePath"]) == ("", str(project / "a.py"))
    place = {"line": 7, "character": 4}
    assert told["selection"] == {"start": place, "end": place, "isEmpty": True}


@pytest.mark.parametrize(
    ("text", "where", "lines", "columns"),
    [
        ("😀b", (0, 2, 0, 4), {"first_line": "é😀😀b"}, (3, 6)),
        ("b\n漢😀", (1, 1, 2, 2), {"first_line": "😀b"}, (2, 3)),
        ("b\n漢😀", (1, 1, 2, 2), {"first_line": "😀b", "last_line": "漢😀!"}, (2, 3)),
    ],
)
async def test_columns_are_utf16_units(client, editor, project, text, where, lines, columns):
    select(editor, project / "a", text, where, **lines)
    told = (await selection(client))["selection"]
    assert (told["start"]["character"], told["end"]["character"]) == columns
    assert (told["start"]["line"], told["end"]["line"]) == (where[0], where[2])


async def test_a_burst_is_thinned_out_and_its_last_is_told(client, editor, project):
    started = asyncio.get_running_loop().time()
    for number in range(50):
        select(editor, project / "a", str(number))
        await asyncio.sleep(0.005)
    took = asyncio.get_running_loop().time() - started
    told = [await selection(client)]
    while told[-1]["text"] != "49":
        told.append(await selection(client))
    await nothing_more(client)
    assert told[0]["text"] == "0"
    assert len(told) <= took / 0.05 + 2
    assert took > 0.4 or len(told) <= 10
    assert [int(each["text"]) for each in told] == sorted({int(each["text"]) for each in told})


async def test_the_same_again_is_not_told_again(client, editor, project):
    for _ in range(3):
        select(editor, project / "a")
        await pause()
    editor.report(SelectionChanged(None))
    await pause()
    await selection(client)
    await nothing_more(client)


async def test_closing_the_file_clears_and_closing_another_does_not(client, editor, project):
    select(editor, project / "a")
    await selection(client)
    editor.shut(str(project / "b"))
    await pause()
    await nothing_more(client)
    editor.shut(str(project / "a"))
    assert await selection(client) == NOTHING
    for kind in ("opened", "saved", "focused"):
        editor.report(FileEvent(kind, str(project / "a")))
    await pause()
    await nothing_more(client)


async def test_a_new_client_is_told_the_latest_right_after_its_tools(bridge, editor, project):
    for text in ("before", "latest"):
        select(editor, project / "a", text)
    await eventually(lambda: bridge._context.selections.latest is editor.selected)
    await pause()
    async with connect_to(bridge) as client:
        await client.initialize()
        for method in ("prompts/list", "resources/list", "ping"):
            await client.request(method)
        assert client.unread == []
        asked = await client.ask("tools/list")
        answer, told = await client.receive(), await client.receive()
        assert answer["id"] == asked
        assert (told["method"], told["params"]["text"]) == ("selection_changed", "latest")
        await nothing_more(client)


async def test_a_new_client_is_told_again_what_it_may_have_missed(bridge, editor, project, monkeypatch):
    """The CLI asks for the tools some time before it hears what it is told. A mention must not come twice."""
    monkeypatch.setattr(push, "DEAF_SECONDS", 0.5)
    async with connect_to(bridge) as client:
        await client.introduce()
        select(editor, project / "a", "early")
        editor.mention(str(project / "a"))
        assert (await selection(client))["text"] == "early"
        await eventually(lambda: bridge._push._mentions)
        await pause()
        await nothing_more(client)
        assert listening(bridge) == []
        assert (await selection(client))["text"] == "early"
        await client.notification("at_mentioned")
        await nothing_more(client)


async def test_what_is_selected_goes_with_its_editor(bridge, client, editor, project):
    select(editor, project / "a", "text")
    assert (await selection(client))["text"] == "text"
    await pause()
    editor.quit()
    told = await selection(client)
    assert told["text"] == ""
    assert "filePath" not in told


async def test_a_mention_waits_for_its_client_unless_that_one_leaves(bridge, client, editor, project, monkeypatch):
    monkeypatch.setattr(push, "DEAF_SECONDS", 0.5)
    async with connect_to(bridge) as other:
        await other.introduce("other")
        number = next(each["client"] for each in bridge.status()["clients"] if each["name"] == "other")
        bridge.clients.choose(number)
        editor.mention(str(project / "a"))
        await eventually(lambda: bridge._push._mentions)
    await client.notification("at_mentioned")


async def test_nothing_is_told_before_the_client_is_initialized(bridge, editor, project):
    async with connect_to(bridge) as silent, connect_to(bridge) as half:
        await silent.request("tools/list")
        await half.request("initialize", {"protocolVersion": "2025-11-25"})
        select(editor, project / "a")
        editor.mention(str(project / "a"))
        await eventually(lambda: bridge._push._mentions)
        await half.request("tools/list")
        await pause()
        await nothing_more(silent)
        await nothing_more(half)
        await half.notify("notifications/initialized")
        await half.request("tools/list")
        assert (await selection(half))["filePath"] == str(project / "a")
        assert await half.notification("at_mentioned") == {"filePath": str(project / "a")}
        await nothing_more(silent)


async def test_all_clients_are_told(bridge, client, editor, project):
    async with connect_to(bridge) as other:
        await other.introduce()
        select(editor, project / "a", "both")
        assert (await selection(client))["text"] == (await selection(other))["text"] == "both"


async def test_a_client_that_does_not_read_loses_only_selections_in_between(bridge, client, editor, project):
    """What waits for it is one selection and every mention; the other client is told of each selection in time."""
    count, big = 30, "x" * 900_000
    async with connect_to(bridge) as slow:
        await slow.introduce("slow")
        await eventually(lambda: len(listening(bridge)) == 2)
        number = next(each["client"] for each in bridge.status()["clients"] if each["name"] == "slow")
        bridge.clients.choose(number)
        for line in range(count):
            select(editor, project / "a", f"{line} {big}")
            editor.mention(str(project / "a"), line)
            assert (await selection(client))["text"].startswith(f"{line} ")
        mentions = [await slow.notification("at_mentioned") for _ in range(count)]
        assert [each["lineStart"] for each in mentions] == list(range(count))
        await slow.request("ping")
        seen = [int(each["params"]["text"].split()[0]) for each in slow.unread]
        assert (seen[-1], len(seen) < count, seen) == (count - 1, True, sorted(set(seen)))


# -- what is shared ----------------------------------------------------------------------------------------


async def test_settings_that_change_clear_what_they_no_longer_let_out(client, editor, project):
    select(editor, project / "a.py", "b")
    assert (await selection(client))["text"] == "b"
    (project / ".ide-bridge.toml").write_text('deny = ["a.py"]', encoding="utf-8")
    assert (await selection(client))["text"] == ""
    (project / ".ide-bridge.toml").unlink()
    assert (await selection(client))["text"] == "b"


async def test_with_the_policy_path_the_text_stays_here(bridge, client, editor, project):
    bridge.workspace.sharing.policy = "path"
    select(editor, project / "a", "secret", (1, 2, 3, 4))
    told = await selection(client)
    assert (told["text"], told["filePath"]) == ("", str(project / "a"))
    assert told["selection"]["start"] == {"line": 1, "character": 2}


async def test_with_the_policy_off_nothing_is_told_and_what_was_shown_is_cleared(bridge, client, editor, project):
    select(editor, project / "a", "shown")
    await selection(client)
    bridge.workspace.sharing.policy = "off"
    bridge._push.policy_changed()
    assert await selection(client) == NOTHING
    select(editor, project / "b")
    await pause()
    await nothing_more(client)
    async with connect_to(bridge) as other:
        await other.introduce()
        await nothing_more(other)
    bridge.workspace.sharing.policy = "full"
    bridge._push.policy_changed()
    assert (await selection(client))["filePath"] == str(project / "b")


@pytest.mark.parametrize("name", [".env", "sub/id_rsa", "../elsewhere", "sub/.git/../../.env.local"])
async def test_going_to_a_file_that_is_not_shared_clears(client, editor, project, name):
    select(editor, project / "a", "shown")
    await selection(client)
    select(editor, f"{project}/{name}", "secret")
    assert await selection(client) == NOTHING


async def test_a_link_to_a_secret_is_one(client, editor, project):
    (project / "harmless").symlink_to(".env")
    (project / "away").symlink_to("/etc/hostname")
    for name in ("harmless", "away"):
        select(editor, project / name, "secret")
    select(editor, project / "a", "fine")
    assert (await selection(client))["text"] == "fine"


async def test_each_share_is_a_line_of_the_audit_log_without_contents(bridge, client, editor, project):
    select(editor, project / "a", "a private word", (2, 0, 3, 0))
    await selection(client)
    editor.mention(str(project / "b"), 4, 6)
    await client.notification("at_mentioned")
    bridge.workspace.audit.write()
    log = Path(workspace_folder(str(project)), LOG_NAME).read_text(encoding="utf-8")
    lines = [line.split("\t")[1:] for line in log.splitlines()]
    assert lines == [
        ["claude-code 1", "selection", str(project / "a"), "3-4"],
        ["claude-code 1", "mention", str(project / "b"), "5-7"],
    ]


# -- mentions ----------------------------------------------------------------------------------------------


async def test_a_mention_is_told_as_the_user_made_it(client, editor, project):
    editor.mention(str(project / "a b"), 1, 2)
    editor.mention(str(project / "a b"), 0)
    editor.mention(str(project / "a b"))
    told = [await client.notification("at_mentioned") for _ in range(3)]
    path = str(project / "a b")
    assert told == [
        {"filePath": path, "lineStart": 1, "lineEnd": 2},
        {"filePath": path, "lineStart": 0},
        {"filePath": path},
    ]


async def test_mentions_wait_for_a_client_even_when_the_editor_is_gone(bridge, editor, project):
    for number in range(3):
        editor.mention(str(project / "a"), number, number)
    editor.quit()
    await eventually(lambda: not bridge.editor.attached)
    async with connect_to(bridge) as client:
        await client.introduce()
        told = [await client.notification("at_mentioned") for _ in range(3)]
        assert [each["lineStart"] for each in told] == [0, 1, 2]
    async with connect_to(bridge) as client:
        await client.introduce()
        await nothing_more(client)


async def test_a_mention_goes_to_the_client_whose_folder_fits_best(bridge, editor, project):
    async with AsyncExitStack() as stack:
        clients = {}
        for folder in (project, project / "sub", project.parent):
            pid = await stack.enter_async_context(working_in(folder))
            clients[folder] = await stack.enter_async_context(connect_to(bridge))
            await clients[folder].introduce(pid=pid)
        await eventually(lambda: {each["folder"] for each in bridge.status()["clients"]} == set(map(str, clients)))
        await clients[project.parent].call_tool("getWorkspaceFolders")
        for path, folder in [
            (project / "sub/a", project / "sub"),
            (project / "a", project),
            (project / "subway", project),
            (project.parent / "x", project.parent),
        ]:
            editor.mention(str(path))
            assert await clients[folder].notification("at_mentioned") == {"filePath": str(path)}
        for each in clients.values():
            await nothing_more(each)


async def test_of_two_in_the_same_folder_it_goes_to_the_one_active_last(bridge, client, editor, project):
    async with connect_to(bridge) as other:
        await other.introduce()
        for active in (client, other, client):
            await active.call_tool("closeAllDiffTabs", {})
            editor.mention(str(project / "a"))
            await active.notification("at_mentioned")
        await nothing_more(client)
        await nothing_more(other)


async def test_the_one_the_user_chose_gets_it_while_it_is_there(bridge, client, editor, project):
    running = find(str(project))
    async with connect_to(bridge) as other:
        await other.introduce("other")
        number = next(each["client"] for each in bridge.status()["clients"] if each["name"] == "other")
        await asyncio.to_thread(ask, running, "choose", {"client": number})
        await client.call_tool("closeAllDiffTabs", {})
        editor.mention(str(project / "a"))
        await other.notification("at_mentioned")
    await eventually(lambda: len(bridge.clients) == 1)
    editor.mention(str(project / "a"))
    await client.notification("at_mentioned")
    with pytest.raises(InvalidParams, match="status shows"):
        bridge.clients.choose(number)
    await asyncio.to_thread(ask, running, "choose", {"client": None})


async def test_mentions_without_end_are_bounded_and_the_newest_stay(bridge, editor, project):
    for number in range(150):
        editor.mention(str(project / "a"), number)
    await eventually(lambda: bridge._push._mentions and bridge._push._mentions[-1].start_line == 149)
    async with connect_to(bridge) as client:
        await client.introduce()
        told = [(await client.notification("at_mentioned"))["lineStart"] for _ in range(100)]
        assert told == list(range(50, 150))


# -- accidents ---------------------------------------------------------------------------------------------


async def test_a_name_that_cannot_be_told_stops_nothing_else(bridge, client, editor, project, caplog):
    odd = os.fsdecode(os.fsencode(project) + b"/\xff")
    select(editor, odd)
    editor.mention(odd)
    asked = await client.ask_tool(
        "openDiff",
        {"old_file_path": "a", "new_file_path": "a", "new_file_contents": "n", "tab_name": "t"},
    )
    editor.keep(await editor.shown("t"))
    assert texts(await client.answer(asked)) == ["FILE_SAVED", "n"]
    await pause()
    select(editor, project / "b", "still here")
    while (await selection(client))["text"] != "still here":
        pass
    assert "an event was lost" in caplog.text
    async with connect_to(bridge) as other:
        await other.introduce()
        assert (await selection(other))["text"] == "still here"
