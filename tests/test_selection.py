import json

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import Unsupported
from ide_bridge.model import Selection, SelectionChanged
from ide_bridge.tools.selection import TOOLS
from tests.fakes.claude_client import connect_to, eventually, texts
from tests.fakes.memory_editor import MemoryEditor, span
from tests.fakes.surroundings import at_home

NO_EDITOR = {"success": False, "message": "No active editor found"}
NO_SELECTION = {"success": False, "message": "No selection available"}
NAMES = ("getCurrentSelection", "getLatestSelection")


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
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
        yield client


async def asked(client, name):
    (text,) = texts(await client.call_tool(name))
    return json.loads(text)


async def both(client):
    return [await asked(client, name) for name in NAMES]


async def select(bridge, editor, path, text="😀", where=(2, 1, 2, 2), first_line="é😀"):
    editor.select(path, text, span(*where), first_line)
    await eventually(lambda: bridge._context.selections.latest is editor.selected)


def test_neither_takes_arguments():
    assert [tool.name for tool in TOOLS] == list(NAMES)
    assert all(tool.schema["properties"] == {} and not tool.schema.get("required") for tool in TOOLS)


async def test_without_an_editor_there_is_nothing(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        assert await both(client) == [NO_EDITOR, NO_SELECTION]


async def test_without_a_selection_there_is_nothing(client):
    assert await both(client) == [NO_EDITOR, NO_SELECTION]


async def test_both_tell_what_is_selected_in_utf16_columns(bridge, client, editor, project):
    await select(bridge, editor, str(project / "a é.py"))
    expected = {
        "success": True,
        "text": "😀",
        "filePath": str(project / "a é.py"),
        "selection": {"start": {"line": 2, "character": 1}, "end": {"line": 2, "character": 3}},
    }
    assert await both(client) == [expected, expected]


async def test_the_latest_outlives_the_focus_and_the_editor_but_not_its_file(bridge, client, editor, project):
    path = str(project / "a.py")
    await select(bridge, editor, path)
    editor.selected = None
    editor.report(SelectionChanged(None))
    now, latest = await both(client)
    assert (now, latest["text"]) == (NO_EDITOR, "😀")
    editor.shut(path)
    await eventually(lambda: bridge._context.selections.latest is None)
    assert await both(client) == [NO_EDITOR, NO_SELECTION]


@pytest.mark.parametrize("name", [".env", "deploy.key", "../outside.py"])
async def test_what_is_not_shared_is_not_told(bridge, client, editor, project, name):
    await select(bridge, editor, str(project / name))
    assert await both(client) == [NO_EDITOR, NO_SELECTION]


async def test_a_buffer_without_a_name_is_not_told(bridge, client, editor):
    await select(bridge, editor, "*scratch*")
    assert await both(client) == [NO_EDITOR, NO_SELECTION]


async def test_the_policy_holds_for_both(bridge, client, editor, project):
    await select(bridge, editor, str(project / "a.py"))
    bridge.workspace.sharing.policy = "path"
    assert [(told["success"], told["text"]) for told in await both(client)] == [(True, ""), (True, "")]
    bridge.workspace.sharing.policy = "off"
    assert await both(client) == [NO_EDITOR, NO_SELECTION]


@pytest.mark.parametrize("waits", [True, False])
async def test_an_editor_that_cannot_tell_is_no_error(project, waits):
    class Blind(Editor):
        features = frozenset({"selection"})

        def selection(self):
            return self._later() if waits else super().selection()

        async def _later(self):
            raise Unsupported("It cannot.")

    async with Bridge(project, editor=Blind()) as bridge, connect_to(bridge) as client:
        assert await both(client) == [NO_EDITOR, NO_SELECTION]


async def test_an_editor_may_take_its_time(project):
    class Slow(Editor):
        features = frozenset({"selection"})

        async def selection(self):
            return Selection(str(project / "a"), "x", span(0, 0, 0, 1))

    async with Bridge(project, editor=Slow()) as bridge, connect_to(bridge) as client:
        assert (await asked(client, "getCurrentSelection"))["text"] == "x"
