import asyncio
import sys
from inspect import isawaitable

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.editor import folder
from ide_bridge.editor.folder import FolderEditor
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import Unsupported
from ide_bridge.model import DiagnosticsChanged, Diff, OpenFile
from ide_bridge.settings import Linter
from ide_bridge.workspace.listing import Change, Listing
from tests.fakes.claude_client import connect_to
from tests.fakes.surroundings import at_home


class Source:
    """Where the folder editor hears of changes."""

    def __init__(self):
        self.listeners = []

    def subscribe(self, listener):
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, kind, path):
        for listener in self.listeners:
            listener(Change(str(path), kind))


@pytest.fixture
def source():
    return Source()


@pytest.fixture
async def editor(source):
    editor = FolderEditor(source)
    await editor.start()
    yield editor
    await editor.close()


async def given(answer):
    """An answer, whether it came at once or has to be awaited."""
    return await answer if isawaitable(answer) else answer


def touch(path):
    path.write_text("", encoding="utf-8")
    return path


async def test_what_changed_lately_is_open_the_newest_first(tmp_path, source, editor):
    assert await given(editor.open_files()) == []
    assert await given(editor.current_file()) is None
    for name in ("a", "b", "a"):
        source.tell("changed", touch(tmp_path / name))
    assert await given(editor.open_files()) == [
        OpenFile(str(tmp_path / "a"), active=True),
        OpenFile(str(tmp_path / "b")),
    ]
    assert await given(editor.current_file()) == OpenFile(str(tmp_path / "a"), active=True)


async def test_what_was_deleted_is_not_open_whether_or_not_it_was_told(tmp_path, source, editor):
    for name in ("a", "b", "c"):
        source.tell("created", touch(tmp_path / name))
    source.tell("deleted", tmp_path / "c")
    (tmp_path / "b").unlink()
    assert await given(editor.open_files()) == [OpenFile(str(tmp_path / "a"), active=True)]


async def test_only_so_many_are_remembered(tmp_path, source, editor):
    for number in range(folder.OPEN_LIMIT + 5):
        source.tell("created", touch(tmp_path / str(number)))
    paths = [file.path for file in await given(editor.open_files())]
    assert paths == [str(tmp_path / str(number)) for number in range(folder.OPEN_LIMIT + 4, 4, -1)]


async def test_once_closed_it_listens_no_more(source, editor):
    assert len(source.listeners) == 1
    await editor.close()
    assert source.listeners == []
    await editor.close()


async def test_a_file_that_the_user_saves_becomes_the_current_file_of_a_client():
    with at_home() as home:
        project = home.path / "project"
        project.mkdir()
        async with Bridge(project) as bridge, connect_to(bridge) as client:
            assert await client.request("getCurrentFile") is None
            async with asyncio.timeout(10):
                number = 0
                while await client.request("getCurrentFile") != "sub/a.py":
                    number += 1
                    (project / "sub").mkdir(exist_ok=True)
                    (project / "sub" / "a.py").write_text(str(number), encoding="utf-8")
                    await asyncio.sleep(0.05)
            assert await client.request("getOpenFiles") == ["sub/a.py"]


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda editor: editor.selection(), "tell what is selected"),
        (lambda editor: editor.diagnostics(None), "tell diagnostics"),
        (lambda editor: editor.open_file("/a", None, focus=True), "open files"),
        (lambda editor: editor.save_file("/a"), "save files"),
        (lambda editor: editor.close_file("/a"), "close files"),
        (lambda editor: editor.show_diff(Diff(1, "/a", "t", "c")), "show diffs"),
    ],
)
async def test_what_an_editor_cannot_do_it_says_by_name(ask, what):
    with pytest.raises(Unsupported, match=f"^Editor cannot {what}\\.$"):
        await given(ask(Editor()))


async def test_what_an_editor_need_not_know_it_answers_with_nothing():
    editor = Editor()
    assert await given(editor.close_diff(1)) is None
    assert await given(editor.read_buffer("/a")) is None
    assert await given(editor.open_files()) == []
    assert await given(editor.current_file()) is None
    assert await given(editor.file_changed("/a")) is None


# -- with linters ------------------------------------------------------------------------------------------

PROGRAM = "import sys; print(f'{sys.argv[1]}:1:2: error: ' + open(sys.argv[1], encoding='utf-8').read())"
LINTER = Linter("*.txt", (sys.executable, "-c", PROGRAM, "{file}"))


@pytest.fixture
async def linting(tmp_path):
    """A folder editor with a linter, over a folder that is watched."""
    folders = [str(tmp_path)]
    listing = Listing(folders)
    editor = FolderEditor(listing, [LINTER], folders=folders)
    await editor.start()
    await listing.start()
    yield editor
    await editor.close()
    await listing.close()


async def all_events(editor):
    return [event async for event in editor.events()]


async def next_event(editor):
    async with asyncio.timeout(10):
        return await anext(editor.events())


async def test_without_linters_it_tells_no_diagnostics(editor):
    assert editor.features == frozenset()
    with pytest.raises(Unsupported, match=r"^Folder cannot tell diagnostics\.$"):
        await given(editor.diagnostics(None))
    assert editor.file_changed("/a") is None


async def test_with_linters_a_change_becomes_an_event_and_diagnostics(tmp_path, linting):
    assert linting.features == {"diagnostics"}
    waiting = asyncio.create_task(next_event(linting))
    await asyncio.sleep(0)
    path = tmp_path / "a.txt"
    path.write_text("wrong", encoding="utf-8")
    assert await waiting == DiagnosticsChanged((str(path),))
    (found,) = await given(linting.diagnostics(str(path)))
    assert (found.path, found.severity, found.message) == (str(path), "error", "wrong")
    assert [file.path for file in linting.open_files()] == [str(path)]


async def test_what_a_client_has_written_is_linted_without_delay(tmp_path, linting, monkeypatch):
    from ide_bridge.editor import linters

    monkeypatch.setattr(linters, "QUIET_SECONDS", 60)
    waiting = asyncio.create_task(next_event(linting))
    await asyncio.sleep(0)
    path = tmp_path / "a.txt"
    path.write_text("wrong", encoding="utf-8")
    async with asyncio.timeout(10):
        while not linting.open_files():
            await asyncio.sleep(0.01)
    linting.file_changed(str(path))
    assert await waiting == DiagnosticsChanged((str(path),))


async def test_its_events_reach_every_listener_and_end_when_it_is_closed(tmp_path, linting):
    listeners = [asyncio.create_task(all_events(linting)) for _ in range(2)]
    await asyncio.sleep(0)
    path = tmp_path / "a.md"
    path.write_text("", encoding="utf-8")
    async with asyncio.timeout(10):
        while not linting.open_files():
            await asyncio.sleep(0.01)
        await linting.close()
        heard = await asyncio.gather(*listeners)
    assert heard[0] == heard[1]
    assert set(heard[0]) == {DiagnosticsChanged((str(path),))}
    assert await all_events(linting) == []


async def test_closing_ends_what_runs(tmp_path):
    folders = [str(tmp_path)]
    listing = Listing(folders)
    program = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
    editor = FolderEditor(listing, [Linter("*", (sys.executable, "-c", program, "begun"))], folders=folders)
    touch(tmp_path / "a.txt")
    asking = asyncio.create_task(given(editor.diagnostics(None)))
    async with asyncio.timeout(10):
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        assert await asking == []
        await editor.close()
        await listing.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_listener_that_leaves_is_forgotten(linting):
    listener = asyncio.create_task(all_events(linting))
    await asyncio.sleep(0)
    assert len(linting._listeners) == 1
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
    assert not linting._listeners
