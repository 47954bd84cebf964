import asyncio

import pytest

from ide_bridge.editor.interface import Editor
from ide_bridge.errors import Unsupported
from ide_bridge.model import DiffDecided
from ide_bridge.tools import open_diffs
from ide_bridge.tools.open_diffs import OpenDiffs
from tests.fakes.claude_client import eventually
from tests.fakes.memory_editor import MemoryEditor


@pytest.fixture
async def editor():
    return MemoryEditor()


@pytest.fixture
async def diffs(editor):
    return OpenDiffs(editor)


async def opened(diffs, editor, client=1, tab="tab", contents="new"):
    """A diff on the screen, and the task that waits for its decision."""
    before = set(editor.diffs)
    task = asyncio.create_task(diffs.open(client, "/w/a", tab, contents))
    await eventually(lambda: set(editor.diffs) - before)
    (number,) = set(editor.diffs) - before
    return task, editor.diffs[number]


async def test_kept_as_it_is_kept_with_changes_and_rejected(diffs, editor):
    for decision, contents, outcome in [("kept", None, "new"), ("kept", "", ""), ("rejected", "x", None)]:
        task, diff = await opened(diffs, editor)
        del editor.diffs[diff.id]
        diffs.decide(DiffDecided(diff.id, decision, contents))
        diffs.decide(DiffDecided(diff.id, "kept", "too late"))
        assert await task == outcome
    assert (diffs.described(), editor.closed_diffs) == ([], [])


async def test_every_diff_has_a_number_of_its_own(diffs, editor):
    shown = [(await opened(diffs, editor, client, tab))[1] for client in (1, 2) for tab in "ab"]
    assert len({diff.id for diff in shown}) == 4
    assert [each["client"] for each in diffs.described()] == [1, 1, 2, 2]
    await diffs.stop()
    assert editor.diffs == {}


async def test_closing_rejects_and_tells_whether_there_was_something_to_close(diffs, editor):
    task, diff = await opened(diffs, editor)
    assert diffs.close(2, "tab") is False
    assert diffs.close(1, "tab") is True
    assert diffs.close(1, "tab") is False
    assert await task is None
    await eventually(lambda: editor.closed_diffs == [diff.id])


async def test_closing_all_is_about_one_client(diffs, editor):
    mine = [(await opened(diffs, editor, 1, tab))[0] for tab in "ab"]
    theirs, diff = await opened(diffs, editor, 2, "a")
    assert (diffs.close_all(1), diffs.close_all(1), diffs.close_all(3)) == (2, 0, 0)
    assert [await task for task in mine] == [None, None]
    assert not theirs.done()
    diffs.decide(DiffDecided(diff.id, "kept"))
    assert await theirs == "new"


async def test_who_no_longer_waits_has_it_taken_off(diffs, editor):
    task, diff = await opened(diffs, editor)
    task.cancel()
    await eventually(lambda: editor.closed_diffs == [diff.id])
    assert diffs.described() == []


async def test_the_next_of_the_same_name_replaces_the_first(diffs, editor):
    first, _ = await opened(diffs, editor, contents="1")
    second, diff = await opened(diffs, editor, contents="2")
    assert await first is None
    diffs.decide(DiffDecided(diff.id, "kept"))
    assert await second == "2"
    assert diffs.described() == []


async def test_stopping_rejects_all_and_waits_for_the_screen(diffs, editor):
    tasks = [(await opened(diffs, editor, client))[0] for client in (1, 2)]
    await diffs.stop()
    assert editor.diffs == {}
    assert [await task for task in tasks] == [None, None]
    await diffs.stop()


async def test_who_cannot_show_it_says_so_at_once():
    with pytest.raises(Unsupported, match="No editor here can show a diff"):
        await OpenDiffs(Editor()).open(1, "/w/a", "tab", "new")


async def test_who_does_not_show_it_in_time_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(open_diffs, "SHOW_SECONDS", 0.05)

    class Hanging(MemoryEditor):
        async def show_diff(self, diff):
            await super().show_diff(diff)
            await asyncio.Event().wait()

    editor = Hanging()
    diffs = OpenDiffs(editor)
    with pytest.raises(Unsupported, match="decide in the terminal"):
        await diffs.open(1, "/w/a", "tab", "new")
    await eventually(lambda: editor.closed_diffs)
    assert (editor.diffs, diffs.described()) == ({}, [])


@pytest.mark.parametrize("waits", [True, False])
async def test_an_editor_that_fails_on_the_way_out_is_no_ones_trouble(waits):
    class Broken(MemoryEditor):
        def close_diff(self, diff_id):
            if waits:
                return self._fail(diff_id)
            raise RuntimeError(diff_id)

        async def _fail(self, diff_id):
            raise RuntimeError(diff_id)

    editor = Broken()
    diffs = OpenDiffs(editor)
    task, _ = await opened(diffs, editor)
    assert diffs.close(1, "tab") is True
    assert await task is None
    await diffs.stop()


async def test_a_failure_after_the_decision_is_nobodys_business(caplog):
    class Late(MemoryEditor):
        async def show_diff(self, diff):
            await super().show_diff(diff)
            try:
                await asyncio.Event().wait()
            finally:
                raise RuntimeError("the window is gone")

    editor = Late()
    diffs = OpenDiffs(editor)
    task, diff = await opened(diffs, editor)
    diffs.decide(DiffDecided(diff.id, "kept"))
    assert await task == "new"
    await eventually(lambda: not diffs._tasks)
    assert "never retrieved" not in caplog.text
