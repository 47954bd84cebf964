"""One test per rule of diffs: no haste, size, number or crash makes one that nobody has kept look kept."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from ide_bridge.bridge import Bridge
from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_client import connect, connect_to, eventually, texts
from tests.fakes.memory_editor import MemoryEditor
from tests.fakes.surroundings import at_home

LIMIT = 64 * 1024 * 1024
STALL = 0.4
REJECTED = ["DIFF_REJECTED"]


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
async def editor():
    return MemoryEditor()


@pytest.fixture
async def bridge(project, editor):
    async with Bridge(project, editor=editor) as bridge:
        yield bridge


def proposal(tab="tab", contents="new", path="a"):
    return {"old_file_path": path, "new_file_path": path, "new_file_contents": contents, "tab_name": tab}


async def longest_wait(client, ended):
    """Ask and ask until something has ended; gives the longest time an answer took."""
    longest = 0.0
    while not ended():
        started = time.monotonic()
        assert await client.request("readFile", {"path": "a"}) == "alive"
        longest = max(longest, time.monotonic() - started)
        await asyncio.sleep(0.002)
    return longest


async def test_forty_megabytes_stall_nobody_else(bridge, editor):
    contents = "0123456789abcde\n" * (40 * 1024 * 1024 // 16)
    async with connect_to(bridge, LIMIT) as big, connect_to(bridge) as small:

        async def propose():
            asked = await big.ask_tool("openDiff", proposal(contents=contents))
            diff = await editor.shown("tab")
            assert diff.contents == contents
            editor.keep(diff)
            return texts(await big.answer(asked))

        # The other end of the big one lives in this process too: its own encoding and decoding count as our stall.
        proposing = asyncio.create_task(propose())
        longest = await longest_wait(small, proposing.done)
        assert await proposing == ["FILE_SAVED", contents]
    assert longest < 3 * STALL


async def test_a_proposal_as_large_as_a_message_may_be_is_refused_without_harm(project, home):
    """Served by a process of its own, where only the bridge's work is seen; nobody there can show a diff."""
    with BridgeProcess(project, home.environment) as served:
        token = Path(served.ready["token_file"]).read_text(encoding="ascii")
        async with connect(served.ready["port"], token) as big, connect(served.ready["port"], token) as small:
            message = json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": "openDiff", "arguments": proposal(contents="x" * (LIMIT - 1000))},
                }
            )
            await big.socket.send_str(message)
            answering = asyncio.create_task(big.receive())
            longest = await longest_wait(small, answering.done)
            assert (await answering)["result"]["isError"] is True
    assert longest < STALL


AFTERWARDS = {
    "close_tab": {"tab_name": "tab"},
    "closeAllDiffTabs": {},
    "openDiff": proposal(contents="another"),
}
SAID = {"close_tab": ["TAB_CLOSED"], "closeAllDiffTabs": ["CLOSED_1_DIFF_TABS"], "openDiff": REJECTED}


@pytest.mark.parametrize("then", AFTERWARDS)
async def test_what_comes_in_the_same_breath_closes_the_diff_and_is_no_consent(bridge, editor, then):
    async with connect_to(bridge) as client:
        for _ in range(20):
            opened = await client.ask_tool("openDiff", proposal())
            after = await client.ask_tool(then, AFTERWARDS[then])
            last = await client.ask_tool("closeAllDiffTabs")
            assert texts(await client.answer(opened)) == REJECTED
            assert texts(await client.answer(after)) == SAID[then]
            assert texts(await client.answer(last)) == [f"CLOSED_{int(then == 'openDiff')}_DIFF_TABS"]
        await eventually(lambda: not editor.diffs)
        assert bridge.status()["diffs"] == []


async def test_hundreds_of_open_diffs_are_all_answered_when_their_client_gives_up(bridge, editor):
    async with connect_to(bridge) as client, connect_to(bridge) as other:
        asked = [await client.ask_tool("openDiff", proposal(f"tab {number}")) for number in range(500)]
        await eventually(lambda: len(editor.diffs) == 500)
        assert await other.request("readFile", {"path": "a"}) == "alive"
        assert texts(await client.call_tool("closeAllDiffTabs")) == ["CLOSED_500_DIFF_TABS"]
        assert [texts(await client.answer(each)) for each in asked] == [REJECTED] * 500
        await eventually(lambda: not editor.diffs)


async def test_hundreds_of_open_diffs_are_taken_off_when_their_client_is_cut_off(bridge, editor):
    async with connect_to(bridge) as client:
        for number in range(200):
            await client.ask_tool("openDiff", proposal(f"tab {number}"))
        await eventually(lambda: len(editor.diffs) == 200)
        client.socket._response.connection.transport.abort()
        await eventually(lambda: not editor.diffs)
    assert bridge.status()["diffs"] == []


async def test_nobody_decides_about_a_diff_of_another_client(bridge, editor):
    async with connect_to(bridge) as owner, connect_to(bridge) as stranger:
        asked = await owner.ask_tool("openDiff", proposal())
        diff = await editor.shown("tab")
        for name, arguments in [("close_tab", {"tab_name": "tab"}), ("closeAllDiffTabs", {})]:
            await stranger.call_tool(name, arguments)
        await stranger.notify("notifications/cancelled", {"requestId": asked})
        await stranger.notify("diffDecided", {"diff": diff.id, "decision": "kept"})
        await stranger.request("ping")
        assert await owner.request("ping") == {}
        assert (owner.unread, editor.closed_diffs) == ([], [])
        editor.reject(diff)
        assert texts(await owner.answer(asked)) == REJECTED


@pytest.mark.parametrize("tab", ["", "\x00", "../..", "x" * 100_000, "✻ 😀\n\t", "\u202e"])
async def test_a_tab_may_be_called_anything(bridge, editor, tab):
    async with connect_to(bridge) as client:
        asked = await client.ask_tool("openDiff", proposal(tab))
        await editor.shown(tab)
        assert texts(await client.call_tool("close_tab", {"tab_name": tab})) == ["TAB_CLOSED"]
        assert texts(await client.answer(asked)) == REJECTED


@pytest.mark.parametrize("path", ["/etc/passwd", "../../x", "a\x00b", "", "x" * 10_000, "a/../../b", ".env"])
async def test_a_diff_of_any_path_touches_no_file(project, bridge, editor, path):
    """It is only shown: whether and where the client writes is between it and its user."""
    async with connect_to(bridge) as client:
        asked = await client.ask_tool("openDiff", proposal(path=path))
        shown = asyncio.create_task(editor.shown("tab"))
        answer = asyncio.create_task(client.answer(asked))
        done, _ = await asyncio.wait({shown, answer}, return_when=asyncio.FIRST_COMPLETED)
        if shown in done:
            editor.keep(shown.result())
            assert texts(await answer) == ["FILE_SAVED", "new"]
        else:
            shown.cancel()
            assert (await answer)["isError"] is True
    assert [entry.name for entry in project.iterdir()] == ["a"]
    assert (project / "a").read_text(encoding="utf-8") == "alive"


async def test_a_diff_that_comes_while_the_bridge_stops_is_not_kept(bridge, editor):
    async with connect_to(bridge) as client:
        asked = await client.ask_tool("openDiff", proposal())
        await editor.shown("tab")
        stopping = asyncio.create_task(bridge.stop())
        for number in range(5):
            await client.ask_tool("openDiff", proposal(f"late {number}"))
        assert texts(await client.answer(asked)) == REJECTED
        assert await client.closed() == 1001
        assert [texts(message["result"]) for message in client.unread] == [REJECTED] * len(client.unread)
        await stopping
    assert editor.diffs == {}
