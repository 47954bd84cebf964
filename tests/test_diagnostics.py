import asyncio
import json
import time
from urllib.parse import quote

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.model import Diagnostic
from ide_bridge.tools.diagnostics import TOOLS
from tests.fakes.claude_client import Refused, connect_to, eventually, texts
from tests.fakes.memory_editor import MemoryEditor, span
from tests.fakes.surroundings import at_home


class Linting(MemoryEditor):
    """Checks a file again some time after it was told to reload it."""

    def __init__(self):
        super().__init__()
        self.later = {}
        self.go = asyncio.Event()
        self.go.set()

    async def diagnostics(self, path):
        await self.go.wait()
        return await super().diagnostics(path)

    async def file_changed(self, path):
        super().file_changed(path)
        await asyncio.sleep(0.1)
        self.find(path, *self.later.get(path, ()))


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        (folder / "a.py").write_text("x = 1\n", encoding="utf-8")
        yield folder


@pytest.fixture
async def editor():
    return Linting()


@pytest.fixture
async def bridge(project, editor):
    async with Bridge(project, editor=editor) as bridge:
        yield bridge


@pytest.fixture
async def client(bridge):
    async with connect_to(bridge) as client:
        await client.introduce()
        yield client


def problem(path, message="wrong", where=(0, 0, 0, 1), severity="error", **more):
    return Diagnostic(str(path), span(*where), severity, message, **more)


async def diagnostics(client, uri=None):
    (text,) = texts(await client.call_tool("getDiagnostics", {} if uri is None else {"uri": uri}))
    return json.loads(text)


def messages(answer):
    return {file["uri"]: [each["message"] for each in file["diagnostics"]] for file in answer}


async def watched(bridge):
    """Return when changes on the disk are noticed; by itself the bridge begins a little later."""
    await bridge.workspace.start()


# -- the form ----------------------------------------------------------------------------------------------


async def test_a_problem_is_written_as_the_cli_reads_it(client, editor, project):
    path = project / "a.py"
    editor.find(str(path), problem(path, "bad", (1, 2, 3, 4), source="ruff", code="F401"), problem(path, "bare"))
    expected = [
        {
            "message": "bad",
            "severity": "Error",
            "range": {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}},
            "source": "ruff",
            "code": "F401",
        },
        {
            "message": "bare",
            "severity": "Error",
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}},
        },
    ]
    for uri in (None, f"file://{path}"):
        assert await diagnostics(client, uri) == [{"uri": f"file://{path}", "diagnostics": expected}]


async def test_severities_are_the_four_words_of_the_cli(client, editor, project):
    path = project / "a.py"
    editor.find(str(path), *(problem(path, severity=word) for word in ("error", "warning", "info", "hint")))
    (file,) = await diagnostics(client)
    assert [each["severity"] for each in file["diagnostics"]] == ["Error", "Warning", "Info", "Hint"]


async def test_columns_are_utf16_units(client, editor, project):
    path = project / "é.py"
    path.write_text("ascii\n😀 = '漢😀'\n", encoding="utf-8")
    editor.find(str(path), problem(path, where=(1, 1, 1, 7)), problem(path, where=(9, 9, 9, 9)))
    (file,) = await diagnostics(client)
    places = [
        (each["range"]["start"]["character"], each["range"]["end"]["character"]) for each in file["diagnostics"]
    ]
    assert places == [(2, 9), (9, 9)]


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        *((name, exists) for name in ("a", "sp ace é.py", "100%", "q?x#y", "漢😀.py") for exists in (True, False)),
        ("a%20b.py", True),
    ],
)
async def test_a_raw_uri_is_answered_as_it_was_sent(client, editor, project, name, exists):
    path = project / name
    if exists:
        path.write_text("", encoding="utf-8")
    editor.found = {str(path): [problem(path)], str(project / "other"): [problem(project / "other")]}
    assert messages(await diagnostics(client, f"file://{path}")) == {f"file://{path}": ["wrong"]}


@pytest.mark.parametrize("name", ["sp ace é.py", "100%.py", "漢😀.py"])
async def test_a_percent_encoded_uri_means_the_same_file(client, editor, project, name):
    path = project / name
    editor.found = {str(path): [problem(path)]}
    uri = "file://" + quote(str(path))
    assert messages(await diagnostics(client, uri)) == {uri: ["wrong"]}
    assert messages(await diagnostics(client)) == {f"file://{path}": ["wrong"]}


@pytest.mark.parametrize("prefix", ["_claude_fs_right:", "_claude_fs_left:", ""])
async def test_other_ways_to_name_a_file(client, editor, project, prefix):
    path = project / "a.py"
    editor.found = {str(path): [problem(path)]}
    assert messages(await diagnostics(client, f"{prefix}{path}")) == {f"{prefix}{path}": ["wrong"]}


async def test_a_file_without_problems_is_named_and_others_are_not(client, editor, project):
    uri = f"file://{project}/a.py"
    assert await diagnostics(client, uri) == [{"uri": uri, "diagnostics": []}]
    assert await diagnostics(client) == []
    editor.found = {str(project / "b"): [problem(project / "b")]}
    assert await diagnostics(client, uri) == [{"uri": uri, "diagnostics": []}]


@pytest.mark.parametrize("name", [".env", "../elsewhere.py"])
async def test_what_is_not_shared_is_not_told(client, editor, project, name):
    path = f"{project}/{name}"
    editor.found = {path: [problem(path)], str(project / "a.py"): [problem(project / "a.py")]}
    assert await diagnostics(client, f"file://{path}") == []
    assert messages(await diagnostics(client)) == {f"file://{project}/a.py": ["wrong"]}


async def test_without_an_editor_there_are_none(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        assert await diagnostics(client) == []
        assert await diagnostics(client, f"file://{project}/a.py") == []


async def test_an_editor_without_diagnostics_has_none(project):
    editor = MemoryEditor()
    editor.features = frozenset({"selection"})
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        assert await diagnostics(client) == []
        assert await diagnostics(client, f"file://{project}/a.py") == []


def test_the_schema_has_one_optional_argument():
    (tool,) = TOOLS
    assert tool.schema["properties"].keys() == {"uri"}
    assert not tool.schema.get("required")


async def test_null_is_as_good_as_nothing_and_a_number_is_not(client):
    assert texts(await client.call_tool("getDiagnostics", {"uri": None})) == ["[]"]
    assert texts(await client.call_tool("getDiagnostics")) == ["[]"]
    with pytest.raises(Refused, match="uri"):
        await client.call_tool("getDiagnostics", {"uri": 1})


# -- in time -----------------------------------------------------------------------------------------------


async def test_a_slow_editor_is_answered_for_in_time(client, editor, project):
    path = project / "a.py"
    editor.found = {str(path): [problem(path, "old")]}
    assert "fresh" not in (await diagnostics(client))[0]
    editor.go.clear()
    editor.found = {str(path): [problem(path, "new")]}
    for uri in (None, f"file://{path}"):
        started = time.monotonic()
        (file,) = await diagnostics(client, uri)
        assert time.monotonic() - started < 0.3
        assert (file["fresh"], file["diagnostics"][0]["message"]) == (False, "old")
    editor.go.set()
    (file,) = await diagnostics(client, f"file://{path}")
    assert ("fresh" in file, file["diagnostics"][0]["message"]) == (False, "new")


async def test_an_editor_that_fails_is_no_error_to_the_client(project):
    class Failing(MemoryEditor):
        async def diagnostics(self, path):
            raise RuntimeError(path)

    async with Bridge(project, editor=Failing()) as bridge, connect_to(bridge) as client:
        uri = f"file://{project}/a.py"
        assert await diagnostics(client, uri) == [{"uri": uri, "diagnostics": [], "fresh": False}]
        assert (await diagnostics(client)) == []


async def test_thousands_of_problems_in_many_files(client, editor, project):
    for number in range(200):
        path = project / f"{number}.py"
        path.write_text("é\n", encoding="utf-8")
        editor.found[str(path)] = [problem(path)] * 20
    started = time.monotonic()
    answer = await diagnostics(client)
    assert (len(answer), sum(len(file["diagnostics"]) for file in answer)) == (200, 4000)
    assert time.monotonic() - started < 0.5


# -- after a write -----------------------------------------------------------------------------------------


async def test_after_a_write_the_editor_reloads_and_new_problems_are_told(client, editor, project):
    path = project / "a.py"
    editor.later[str(path)] = [problem(path, "new")]
    assert await client.request("writeFile", {"path": "a.py", "content": "x = \n"}) is True
    started = time.monotonic()
    answer = await diagnostics(client)
    assert messages(answer) == {f"file://{path}": ["new"]}
    assert "fresh" not in answer[0]
    assert 0.1 < time.monotonic() - started < 1.0
    assert set(editor.reloaded) == {str(path)}


@pytest.mark.parametrize("asks_before", [True, False])
async def test_after_a_kept_diff_the_write_of_the_client_is_noticed(bridge, client, editor, project, asks_before):
    path = project / "a.py"
    await watched(bridge)
    asked = await client.ask_tool(
        "openDiff",
        {
            "old_file_path": str(path),
            "new_file_path": str(path),
            "new_file_contents": "x = \n",
            "tab_name": "tab",
        },
    )
    editor.keep(await editor.shown("tab"))
    assert texts(await client.answer(asked)) == ["FILE_SAVED", "x = \n"]
    if asks_before:
        assert messages(await diagnostics(client, f"file://{path}")) == {f"file://{path}": []}
    editor.later[str(path)] = [problem(path, "new")]
    path.write_text("x = \n", encoding="utf-8")
    assert messages(await diagnostics(client)) == {f"file://{path}": ["new"]}
    assert str(path) in editor.reloaded


@pytest.mark.parametrize("name", ["a.py", "sub/new é.py"])
async def test_a_write_without_a_diff_is_noticed_too(bridge, client, editor, project, name):
    path = project / name
    path.parent.mkdir(exist_ok=True)
    await watched(bridge)
    await diagnostics(client, f"file://{path}")
    editor.later[str(path)] = [problem(path, "new")]
    path.write_text("x = \n", encoding="utf-8")
    assert messages(await diagnostics(client)) == {f"file://{path}": ["new"]}


async def test_the_users_own_writes_are_his_own(bridge, client, editor, project):
    await watched(bridge)
    (project / "b.py").write_text("", encoding="utf-8")
    await eventually(lambda: bridge.editor._fallback.current_file() is not None)
    started = time.monotonic()
    assert await diagnostics(client) == []
    assert time.monotonic() - started < 0.1
    assert editor.reloaded == []


async def test_an_editor_that_does_not_check_is_not_waited_for_long(project):
    editor = MemoryEditor()
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        path = project / "a.py"
        editor.found = {str(path): [problem(path, "old")]}
        await client.request("writeFile", {"path": "a.py", "content": ""})
        started = time.monotonic()
        (file,) = await diagnostics(client)
        assert file["fresh"] is False
        assert time.monotonic() - started < 1.8
        assert str(path) in editor.reloaded
