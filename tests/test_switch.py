import asyncio
import json
from pathlib import Path

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.editor.interface import Editor
from ide_bridge.editor.switch import EditorSwitch
from ide_bridge.errors import Disconnected, Unsupported
from ide_bridge.model import Diff, DiffDecided, OpenFile, Selection
from tests.fakes.claude_client import eventually
from tests.fakes.memory_editor import MemoryEditor, span
from tests.fakes.surroundings import at_home

DIFF = Diff(7, "/w/a", "a", "new")


class Plain(Editor):
    """Falls back on nothing but a list of files."""

    name = "Plain"

    def open_files(self):
        return [OpenFile("/w/recent", active=True)]


@pytest.fixture
def changes():
    return []


@pytest.fixture
async def switch(changes):
    switch = EditorSwitch(Plain(), lambda: changes.append(switch.name))
    await switch.start()
    yield switch
    await switch.close()


@pytest.fixture
async def vim(switch):
    editor = MemoryEditor("Vim")
    await switch.attach(editor)
    return editor


@pytest.fixture
async def emacs(switch, vim):
    editor = MemoryEditor("Emacs")
    await switch.attach(editor)
    return editor


async def focus(switch, editor):
    """Bring an editor to the front."""
    editor.focus("/w/a")
    await eventually(lambda: switch.attached[0] is editor)


def names(switch):
    return [editor.name for editor in switch.attached]


async def test_without_editors_it_is_the_one_to_fall_back_to(switch):
    assert (switch.name, switch.features, switch.attached) == ("Plain", frozenset(), ())
    assert list(switch.open_files()) == [OpenFile("/w/recent", active=True)]
    assert switch.current_file().path == "/w/recent"
    assert await switch.read_buffer("/w/a") is None
    for ask in (
        switch.selection,
        lambda: switch.diagnostics(None),
        lambda: switch.open_file("/w/a", None, focus=True),
    ):
        with pytest.raises(Unsupported, match="Plain cannot"):
            ask()
    for ask in (switch.save_file, switch.close_file):
        with pytest.raises(Unsupported, match="Plain cannot"):
            await ask("/w/a")
    with pytest.raises(Unsupported, match="Plain cannot show diffs"):
        await switch.show_diff(DIFF)
    await switch.close_diff(DIFF.id)


async def test_who_attaches_is_started_once_and_answers_from_then_on(switch, changes):
    editor = MemoryEditor("Vim")
    editor.files["/w/a"] = OpenFile("/w/a", active=True)
    await switch.attach(editor)
    assert (editor.started, editor.closed, names(switch), changes) == (1, 0, ["Vim"], ["Vim"])
    assert switch.features == MemoryEditor.features
    assert await switch.open_files() == [OpenFile("/w/a", active=True)]
    assert (await switch.current_file()).path == "/w/a"


async def test_the_name_is_that_of_the_one_attached_last_whoever_has_the_focus(switch, vim, emacs, changes):
    await focus(switch, vim)
    assert (switch.name, names(switch)) == ("Emacs", ["Vim", "Emacs"])
    nano = MemoryEditor("nano")
    await switch.attach(nano)
    await focus(switch, vim)
    await switch.detach(emacs)
    assert switch.name == "nano"
    await switch.detach(nano)
    await switch.detach(nano)
    assert switch.name == "Vim"
    await switch.detach(vim)
    assert changes == ["Vim", "Emacs", "nano", "nano", "Vim", "Plain"]
    assert [editor.closed for editor in (vim, emacs, nano)] == [1, 1, 1]


async def test_a_selection_or_a_focused_file_is_focus_and_nothing_else_is(switch, vim, emacs):
    assert names(switch) == ["Emacs", "Vim"]
    vim.select("/w/a", "x", span(0, 0, 0, 1))
    await eventually(lambda: names(switch) == ["Vim", "Emacs"])
    emacs.focus("/w/b")
    await eventually(lambda: names(switch) == ["Emacs", "Vim"])
    vim.find("/w/a")
    vim.mention("/w/a")
    vim.shut("/w/a")
    vim.report(DiffDecided(1, "kept"))
    events = switch.events()
    seen = [await asyncio.wait_for(anext(events), 5) for _ in range(6)]
    assert isinstance(seen[-1], DiffDecided)
    assert names(switch) == ["Emacs", "Vim"]


async def test_open_files_are_united_and_one_is_active(switch, vim, emacs):
    vim.files = {path: OpenFile(path, active=path == "/w/a", language="vim") for path in ("/w/a", "/w/both")}
    emacs.files = {path: OpenFile(path, active=path == "/w/b", dirty=True) for path in ("/w/both", "/w/b")}
    files = {file.path: file for file in await switch.open_files()}
    assert list(files) == ["/w/both", "/w/b", "/w/a"]
    assert [path for path, file in files.items() if file.active] == ["/w/b"]
    assert files["/w/both"].dirty is True
    await focus(switch, vim)
    files = {file.path: file for file in await switch.open_files()}
    assert list(files) == ["/w/a", "/w/both", "/w/b"]
    assert [path for path, file in files.items() if file.active] == ["/w/a"]
    assert (await switch.current_file()).path == "/w/a"


async def test_the_newest_focus_answers(switch, vim, emacs):
    vim.selected = Selection("/w/v", "v", span(0, 0, 0, 1))
    emacs.selected = Selection("/w/e", "e", span(0, 0, 0, 1))
    assert switch.selection().path == "/w/e"
    switch.open_file("/w/x", None, focus=True)
    await focus(switch, vim)
    assert switch.selection().path == "/w/v"
    switch.open_file("/w/y", None, focus=False)
    assert (emacs.opened, vim.opened) == ([("/w/x", None, True)], [("/w/y", None, False)])


async def test_what_the_first_cannot_do_the_next_is_asked_for(switch, vim):
    less = MemoryEditor("less")
    less.features = frozenset({"focus"})
    await switch.attach(less)
    vim.selected = Selection("/w/v", "v", span(0, 0, 0, 1))
    assert switch.selection().path == "/w/v"
    assert list(await switch.diagnostics(None)) == []
    await switch.show_diff(DIFF)
    assert (list(vim.diffs), less.diffs) == ([7], {})
    assert switch.features == MemoryEditor.features
    await switch.detach(vim)
    assert switch.features == {"focus"}


async def test_saving_and_closing_find_the_editor_that_has_the_file(switch, vim, emacs):
    vim.files["/w/a"] = OpenFile("/w/a")
    assert await switch.save_file("/w/a") is True
    assert "/w/a" in vim.saved
    assert await switch.close_file("/w/a") is True
    assert await switch.close_file("/w/a") is False
    assert await switch.save_file("/w/none") is False


async def test_one_that_cannot_save_is_passed_over(switch, vim):
    await switch.attach(Plain())
    vim.files["/w/a"] = OpenFile("/w/a")
    assert await switch.save_file("/w/a") is True
    assert await switch.save_file("/w/b") is False


async def test_unsaved_text_is_found_wherever_it_is(switch, vim, emacs):
    vim.buffers["/w/a"] = "unsaved"
    assert await switch.read_buffer("/w/a") == "unsaved"
    assert await switch.read_buffer("/w/b") is None
    emacs.buffers["/w/a"] = "newer"
    assert await switch.read_buffer("/w/a") == "newer"
    await switch.detach(emacs)
    assert switch.read_buffer("/w/a") == "unsaved"


async def test_all_are_told_that_a_file_changed(switch, vim, emacs):
    await switch.file_changed("/w/a")
    assert vim.reloaded == emacs.reloaded == ["/w/a"]


async def test_the_end_of_its_events_is_the_end_of_an_editor(switch, vim, emacs, changes):
    emacs.quit()
    await eventually(lambda: names(switch) == ["Vim"])
    await eventually(lambda: emacs.closed == 1)
    assert (switch.name, changes[-1]) == ("Vim", "Vim")
    vim.quit()
    await eventually(lambda: changes[-1] == "Plain")


@pytest.mark.parametrize("error", [Disconnected("the line is dead"), RuntimeError("a bug")])
async def test_events_that_fail_are_an_end_too(switch, changes, error):
    class Failing(MemoryEditor):
        async def events(self):
            yield await self._events.get()
            raise error

    editor = Failing("Failing")
    await switch.attach(editor)
    editor.focus("/w/a")
    await eventually(lambda: editor.closed == 1)
    assert (switch.attached, changes[-1]) == ((), "Plain")


# -- diffs -------------------------------------------------------------------------------------------------


async def test_a_diff_is_shown_once_and_closed_where_it_is_shown(switch, vim, emacs):
    await switch.show_diff(DIFF)
    await focus(switch, vim)
    assert (vim.diffs, emacs.diffs) == ({}, {7: DIFF})
    await switch.close_diff(7)
    await switch.close_diff(7)
    assert (vim.closed_diffs, emacs.closed_diffs) == ([], [7])


async def test_an_open_diff_moves_to_another_editor_and_to_the_next_that_comes(switch, vim, emacs):
    await switch.show_diff(DIFF)
    emacs.quit()
    assert await vim.shown("a") == DIFF
    vim.quit()
    await eventually(lambda: switch.attached == ())
    nano = MemoryEditor("nano")
    await switch.attach(nano)
    assert nano.diffs == {7: DIFF}
    await switch.close_diff(7)
    assert nano.closed_diffs == [7]


async def test_a_decided_diff_is_not_shown_again(switch, vim):
    await switch.show_diff(DIFF)
    vim.keep(DIFF)
    vim.quit()
    await eventually(lambda: switch.attached == ())
    emacs = MemoryEditor("Emacs")
    await switch.attach(emacs)
    assert emacs.diffs == {}


@pytest.mark.parametrize("error", [Unsupported("no room"), RuntimeError("a bug")])
async def test_one_that_cannot_take_it_over_does_not_lose_it(switch, vim, error):
    class Refusing(MemoryEditor):
        async def show_diff(self, _):
            raise error

    await switch.show_diff(DIFF)
    vim.quit()
    await eventually(lambda: switch.attached == ())
    refusing = Refusing("Refusing")
    await switch.attach(refusing)
    await switch.detach(refusing)
    emacs = MemoryEditor("Emacs")
    await switch.attach(emacs)
    assert emacs.diffs == {7: DIFF}


async def test_what_failed_to_be_shown_is_closed_where_it_was_tried(switch):
    class Half(MemoryEditor):
        async def show_diff(self, diff):
            await super().show_diff(diff)
            raise RuntimeError("after half of it")

    half = Half("Half")
    await switch.attach(half)
    with pytest.raises(RuntimeError, match="half of it"):
        await switch.show_diff(DIFF)
    await switch.close_diff(DIFF.id)
    assert half.diffs == {}


# -- the end -----------------------------------------------------------------------------------------------


async def test_closing_lets_everyone_go_even_if_one_fails(caplog):
    class Broken(MemoryEditor):
        async def close(self):
            await super().close()
            raise RuntimeError("will not close")

    fallback, broken, vim = MemoryEditor("Fallback"), Broken("Broken"), MemoryEditor("Vim")
    switch = EditorSwitch(fallback)
    await switch.start()
    for editor in (vim, broken):
        await switch.attach(editor)
    await switch.close()
    assert [editor.closed for editor in (fallback, broken, vim)] == [1, 1, 1]
    assert (switch.attached, switch.name) == ((), "Fallback")
    assert "Broken did not close well" in caplog.text


async def test_it_may_be_started_again(switch, vim):
    await switch.show_diff(DIFF)
    await switch.close()
    await switch.start()
    emacs = MemoryEditor("Emacs")
    await switch.attach(emacs)
    assert emacs.diffs == {}
    emacs.quit()
    await eventually(lambda: switch.attached == ())


# -- in the lock -------------------------------------------------------------------------------------------


async def test_the_lock_names_the_editor_attached_last_and_status_all_of_them():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        async with Bridge(folder) as bridge:

            def shown():
                return json.loads(Path(bridge.lock).read_text(encoding="utf-8"))["ideName"]

            assert shown() == "Folder"
            vim, emacs = MemoryEditor("Vim"), MemoryEditor("Emacs")
            await bridge.editor.attach(vim)
            assert shown() == "Vim"
            await bridge.editor.attach(emacs)
            assert shown() == "Emacs"
            assert [editor["name"] for editor in bridge.status()["editors"]] == ["Emacs", "Vim"]
            vim.focus("a")
            await eventually(lambda: [editor["name"] for editor in bridge.status()["editors"]] == ["Vim", "Emacs"])
            assert shown() == "Emacs"
            emacs.quit()
            await eventually(lambda: shown() == "Vim")
            vim.quit()
            await eventually(lambda: shown() == "Folder")
            assert bridge.status()["editors"] == []
