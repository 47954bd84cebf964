import asyncio
import json

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.tools import open_diffs
from ide_bridge.tools.diffs import TOOLS
from tests.fakes.claude_client import Refused, connect_to, eventually, texts
from tests.fakes.memory_editor import MemoryEditor
from tests.fakes.surroundings import at_home

TAB = "✻ [Claude Code] a.py (3f2a1b) ⧉"
OTHER = "✻ [Claude Code] b.py (aa00bb) ⧉"
OLD, NEW = "one\n", "one\ntwo é 😀\n"
REJECTED = ["DIFF_REJECTED"]


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        (folder / "a.py").write_text(OLD, encoding="utf-8")
        yield folder


@pytest.fixture
async def editor():
    return MemoryEditor()


@pytest.fixture
async def bridge(project, editor):
    async with Bridge(project, editor=editor) as bridge:
        yield bridge


@pytest.fixture
async def client(bridge):
    async with connect_to(bridge) as client:
        await client.introduce()
        yield client


def proposal(project, tab=TAB, contents=NEW, file="a.py"):
    path = str(project / file)
    return {"old_file_path": path, "new_file_path": path, "new_file_contents": contents, "tab_name": tab}


async def open_diff(client, editor, project, tab=TAB, contents=NEW):
    """Have a diff shown; gives the id of the request and the diff on the screen."""
    asked = await client.ask_tool("openDiff", proposal(project, tab, contents))
    return asked, await editor.shown(tab)


async def close_tab(client, tab=TAB):
    return texts(await client.call_tool("close_tab", {"tab_name": tab}))


# -- decided by the user -----------------------------------------------------------------------------------


async def test_a_kept_diff_is_answered_with_the_proposed_text(client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    assert (diff.path, diff.title, diff.contents) == (str(project / "a.py"), TAB, NEW)
    editor.keep(diff)
    assert texts(await client.answer(asked)) == ["FILE_SAVED", NEW]


@pytest.mark.parametrize("changed", ["one\nzwei\n", "", "no line end", "\r\n", "\x00 \u2028 😀"])
async def test_what_the_user_changed_is_in_the_answer(client, editor, project, changed):
    asked, diff = await open_diff(client, editor, project)
    editor.keep(diff, changed)
    assert texts(await client.answer(asked)) == ["FILE_SAVED", changed]


async def test_a_closed_window_is_a_rejection(client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    editor.reject(diff)
    assert texts(await client.answer(asked)) == REJECTED


async def test_the_file_is_left_to_the_client(client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    editor.keep(diff)
    await client.answer(asked)
    await client.ask_tool("openDiff", proposal(project, OTHER, file="new/b.py"))
    assert (await editor.shown(OTHER)).path == str(project / "new/b.py")
    assert (project / "a.py").read_text(encoding="utf-8") == OLD
    assert [entry.name for entry in project.iterdir()] == ["a.py"]


async def test_it_is_not_answered_before_it_is_decided_and_holds_up_nothing_else(client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    assert texts(await client.call_tool("readFile", {"path": "a.py"})) == [OLD]
    assert client.unread == []
    editor.keep(diff)
    assert texts(await client.answer(asked))[0] == "FILE_SAVED"


async def test_a_decision_counts_once_and_one_about_nothing_not_at_all(client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    editor.diffs[diff.id + 1] = diff
    editor.keep(diff, "first")
    editor.diffs[diff.id] = diff
    editor.reject(diff)
    assert texts(await client.answer(asked)) == ["FILE_SAVED", "first"]
    asked, diff = await open_diff(client, editor, project, OTHER)
    editor.reject(diff)
    assert texts(await client.answer(asked)) == REJECTED


async def test_decided_at_the_very_moment_it_is_shown(project):
    class Hasty(MemoryEditor):
        async def show_diff(self, diff):
            await super().show_diff(diff)
            self.keep(diff, "quick")
            await asyncio.sleep(0.01)

    async with Bridge(project, editor=Hasty()) as bridge, connect_to(bridge) as client:
        assert texts(await client.call_tool("openDiff", proposal(project))) == ["FILE_SAVED", "quick"]


async def test_the_first_is_decided_while_the_second_stays_open(client, editor, project):
    first, diff = await open_diff(client, editor, project)
    second, other = await open_diff(client, editor, project, OTHER)
    editor.reject(other)
    assert texts(await client.answer(second)) == REJECTED
    editor.keep(diff)
    assert texts(await client.answer(first)) == ["FILE_SAVED", NEW]


# -- closed by the client ----------------------------------------------------------------------------------


async def test_a_tab_nobody_knows_is_closed_already(client, editor):
    assert await close_tab(client) == ["TAB_CLOSED"]
    assert editor.closed_diffs == []


async def test_closing_the_tab_rejects_what_is_open_and_takes_it_off_the_screen(client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    assert await close_tab(client) == ["TAB_CLOSED"]
    assert texts(await client.answer(asked)) == REJECTED
    assert await close_tab(client) == ["TAB_CLOSED"]
    await eventually(lambda: editor.closed_diffs)
    assert (editor.closed_diffs, editor.diffs) == ([diff.id], {})


@pytest.mark.parametrize("decide", ["keep", "reject"])
async def test_closing_the_tab_twice_after_the_decision_changes_nothing(client, editor, project, decide):
    asked, diff = await open_diff(client, editor, project)
    getattr(editor, decide)(diff)
    answered = texts(await client.answer(asked))
    assert answered[0] == {"keep": "FILE_SAVED", "reject": "DIFF_REJECTED"}[decide]
    assert [await close_tab(client) for _ in range(2)] == [["TAB_CLOSED"]] * 2
    assert editor.closed_diffs == []


async def test_a_decision_that_comes_with_the_closing_is_answered_as_one_or_the_other(client, editor, project):
    for number in range(10):
        asked, diff = await open_diff(client, editor, project, f"tab {number}")
        editor.keep(diff)
        assert await close_tab(client, f"tab {number}") == ["TAB_CLOSED"]
        assert texts(await client.answer(asked)) in (REJECTED, ["FILE_SAVED", NEW])


async def test_closing_while_the_editor_is_still_showing_it(project):
    class Slow(MemoryEditor):
        def __init__(self):
            super().__init__()
            self.asked, self.go = asyncio.Event(), asyncio.Event()

        async def show_diff(self, diff):
            self.asked.set()
            await self.go.wait()
            await super().show_diff(diff)

    editor = Slow()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        asked = await client.ask_tool("openDiff", proposal(project))
        await editor.asked.wait()
        assert await close_tab(client) == ["TAB_CLOSED"]
        editor.go.set()
        assert texts(await client.answer(asked)) == REJECTED
        await eventually(lambda: editor.closed_diffs)
        assert editor.diffs == {}


async def test_the_same_tab_again_rejects_the_first_and_the_second_is_decided(client, editor, project):
    first, diff = await open_diff(client, editor, project)
    second = await client.ask_tool("openDiff", proposal(project, contents="three\n"))
    assert texts(await client.answer(first)) == REJECTED
    await eventually(lambda: diff.id not in editor.diffs and editor.diffs)
    again = await editor.shown(TAB)
    assert (again.id != diff.id, again.contents) == (True, "three\n")
    editor.keep(again)
    assert texts(await client.answer(second)) == ["FILE_SAVED", "three\n"]


async def test_all_of_a_client_are_closed_and_counted(client, editor, project):
    assert texts(await client.call_tool("closeAllDiffTabs", {})) == ["CLOSED_0_DIFF_TABS"]
    asked = [(await open_diff(client, editor, project, tab))[0] for tab in ("x", "y", "z")]
    assert texts(await client.call_tool("closeAllDiffTabs", {})) == ["CLOSED_3_DIFF_TABS"]
    assert [texts(await client.answer(each)) for each in asked] == [REJECTED] * 3
    assert texts(await client.call_tool("closeAllDiffTabs")) == ["CLOSED_0_DIFF_TABS"]
    await eventually(lambda: editor.diffs == {})


async def test_two_clients_with_the_same_tab_keep_apart(bridge, client, editor, project):
    async with connect_to(bridge) as other:
        await other.introduce("another")
        mine, my_diff = await open_diff(client, editor, project)
        theirs = await other.ask_tool("openDiff", proposal(project, contents="theirs"))
        await eventually(lambda: len(editor.diffs) == 2)
        their_diff = next(diff for diff in editor.diffs.values() if diff.contents == "theirs")
        assert texts(await other.call_tool("closeAllDiffTabs")) == ["CLOSED_1_DIFF_TABS"]
        assert texts(await other.answer(theirs)) == REJECTED
        assert await close_tab(other) == ["TAB_CLOSED"]
        await eventually(lambda: editor.closed_diffs == [their_diff.id])
        editor.keep(my_diff, "mine")
        assert texts(await client.answer(mine)) == ["FILE_SAVED", "mine"]


# -- ends that nobody decided ------------------------------------------------------------------------------


async def test_a_cancelled_diff_is_taken_off_and_not_answered(bridge, client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    await client.notify("notifications/cancelled", {"requestId": asked, "reason": "the terminal was quicker"})
    await eventually(lambda: editor.closed_diffs == [diff.id])
    assert bridge.status()["diffs"] == []
    assert await client.request("ping") == {}
    assert client.unread == []


async def test_the_diffs_of_a_client_that_is_gone_are_taken_off(bridge, client, editor, project):
    mine, my_diff = await open_diff(client, editor, project)
    async with connect_to(bridge) as other:
        await other.introduce()
        _, their_diff = await open_diff(other, editor, project, OTHER)
    await eventually(lambda: editor.closed_diffs == [their_diff.id])
    assert [shown["title"] for shown in bridge.status()["diffs"]] == [TAB]
    editor.keep(my_diff)
    assert texts(await client.answer(mine)) == ["FILE_SAVED", NEW]


async def test_a_bridge_that_stops_answers_before_it_closes(bridge, editor, project):
    async with connect_to(bridge) as client:
        asked = [(await open_diff(client, editor, project, tab))[0] for tab in ("x", "y")]
        stopping = asyncio.create_task(bridge.stop())
        assert [texts(await client.answer(each)) for each in asked] == [REJECTED] * 2
        assert await client.closed() == 1001
        await stopping
    assert editor.diffs == {}


async def test_an_editor_that_closes_nothing_does_not_hold_up_the_end(project, monkeypatch):
    monkeypatch.setattr(open_diffs, "STOP_SECONDS", 0.1)

    class Stuck(MemoryEditor):
        async def close_diff(self, _):
            await asyncio.Event().wait()

    editor = Stuck()
    before = asyncio.all_tasks()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        asked, _ = await open_diff(client, editor, project)
        async with asyncio.timeout(5):
            await bridge.stop()
        assert texts(await client.answer(asked)) == REJECTED
    await eventually(lambda: not asyncio.all_tasks() - before)


async def test_a_diff_survives_the_going_and_coming_of_editors(bridge, client, editor, project):
    asked, diff = await open_diff(client, editor, project)
    editor.quit()
    await eventually(lambda: not bridge.editor.attached)
    assert await client.request("ping") == {}
    assert client.unread == []
    assert [shown["title"] for shown in bridge.status()["diffs"]] == [TAB]
    another = MemoryEditor("Another")
    await bridge.editor.attach(another)
    again = await another.shown(TAB)
    assert again == diff
    another.keep(again, "later")
    assert texts(await client.answer(asked)) == ["FILE_SAVED", "later"]


async def test_a_diff_goes_over_to_an_editor_that_is_there_already(bridge, client, editor, project):
    another = MemoryEditor("Another")
    await bridge.editor.attach(another)
    editor.focus("a.py")
    await eventually(lambda: bridge.editor.attached[0] is editor)
    asked, _ = await open_diff(client, editor, project)
    assert another.diffs == {}
    editor.quit()
    another.reject(await another.shown(TAB))
    assert texts(await client.answer(asked)) == REJECTED


async def test_what_was_closed_between_two_editors_is_not_shown_again(bridge, client, editor, project):
    asked, _ = await open_diff(client, editor, project)
    editor.quit()
    await eventually(lambda: not bridge.editor.attached)
    assert await close_tab(client) == ["TAB_CLOSED"]
    assert texts(await client.answer(asked)) == REJECTED
    another = MemoryEditor("Another")
    await bridge.editor.attach(another)
    assert another.diffs == {}


# -- nobody can show it ------------------------------------------------------------------------------------


async def test_without_an_editor_the_terminal_decides(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        await client.introduce()
        async with asyncio.timeout(1):
            answer = await client.call_tool("openDiff", proposal(project))
        (block,) = answer["content"]
        assert (answer["isError"], block["type"]) == (True, "text")
        assert block["text"] == "No editor here can show a diff; decide in the terminal."
        assert await close_tab(client) == ["TAB_CLOSED"]


async def test_an_editor_that_fails_to_show_it_is_an_error_and_the_next_diff_is_shown(project, caplog):
    class Moody(MemoryEditor):
        async def show_diff(self, diff):
            if not self.opened:
                self.opened.append((diff.path, None, False))
                raise RuntimeError("no window left")
            await super().show_diff(diff)

    editor = Moody()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        answer = await client.call_tool("openDiff", proposal(project))
        assert answer["isError"] is True
        assert "no window" not in json.dumps(answer)
        assert bridge.status()["diffs"] == []
        asked, diff = await open_diff(client, editor, project)
        editor.keep(diff)
        assert texts(await client.answer(asked)) == ["FILE_SAVED", NEW]
    assert "no window left" in caplog.text


async def test_an_editor_that_hangs_is_given_up_and_what_it_may_show_later_is_closed(project, monkeypatch):
    monkeypatch.setattr(open_diffs, "SHOW_SECONDS", 0.1)

    class Hanging(MemoryEditor):
        async def show_diff(self, _):
            await asyncio.Event().wait()

    editor = Hanging()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        answer = await client.call_tool("openDiff", proposal(project))
        assert answer["isError"] is True
        assert answer["content"][0]["text"].endswith("decide in the terminal.")
        await eventually(lambda: editor.closed_diffs)
        assert bridge.status()["diffs"] == []


# -- arguments ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["old_file_path", "new_file_path", "new_file_contents", "tab_name"])
async def test_every_argument_is_needed(client, project, missing):
    given = proposal(project)
    del given[missing]
    with pytest.raises(Refused, match=missing) as refused:
        await client.call_tool("openDiff", given)
    assert refused.value.code == -32602
    with pytest.raises(Refused, match="tab_name"):
        await client.call_tool("close_tab", {})


async def test_a_relative_path_means_the_workspace_and_members_nobody_knows_are_ignored(client, editor, project):
    asked = await client.ask_tool("openDiff", {**proposal(project), "new_file_path": "sub/x", "more": 1})
    diff = await editor.shown(TAB)
    assert diff.path == str(project / "sub/x")
    editor.reject(diff)
    assert texts(await client.answer(asked)) == REJECTED


def test_the_schemas_are_those_of_the_extension():
    schemas = {tool.name: tool.schema for tool in TOOLS}
    names = ["old_file_path", "new_file_path", "new_file_contents", "tab_name"]
    assert schemas["openDiff"]["required"] == names
    assert {each["type"] for each in schemas["openDiff"]["properties"].values()} == {"string"}
    assert schemas["close_tab"]["required"] == ["tab_name"]
    assert schemas["closeAllDiffTabs"]["properties"] == {}


async def test_status_shows_whose_diff_it_is(bridge, client, editor, project):
    await open_diff(client, editor, project)
    (known,) = bridge.status()["clients"]
    assert bridge.status()["diffs"] == [{"client": known["client"], "path": str(project / "a.py"), "title": TAB}]
