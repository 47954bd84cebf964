import json

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.model import OpenFile
from ide_bridge.tools.documents import TOOLS, OpenFileParams, span
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.claude_client import Refused, connect_to, texts
from tests.fakes.memory_editor import MemoryEditor
from tests.fakes.memory_editor import span as places
from tests.fakes.surroundings import at_home

TEXT = "def a():\n    return 1\n\n\ndef b():\n    return '😀' + 1\n"


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    (folder / "a.py").write_text(TEXT, encoding="utf-8")
    (folder / ".env").write_text("SECRET=1", encoding="utf-8")
    return folder


@pytest.fixture
async def editor():
    return MemoryEditor()


@pytest.fixture
async def client(project, editor):
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        yield client


@pytest.fixture
async def alone(project):
    """A client of a bridge without an editor."""
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        yield client


async def text(client, name, **arguments):
    (only,) = texts(await client.call_tool(name, arguments))
    return only


async def document(client, name, **arguments):
    return json.loads(await text(client, name, **arguments))


async def failure(client, name, **arguments):
    answer = await client.call_tool(name, arguments)
    assert answer["isError"] is True
    return answer["content"][0]["text"]


# -- openFile ----------------------------------------------------------------------------------------------


async def test_a_file_is_opened_in_front(client, editor, project):
    for path in ("a.py", str(project / "a.py"), "/a.py"):
        assert await text(client, "openFile", filePath=path) == f"Opened file: {project}/a.py"
    assert editor.opened == [(str(project / "a.py"), None, True)] * 3


async def test_a_file_opened_behind_is_described(client, editor, project):
    path = str(project / "a.py")
    assert await document(client, "openFile", filePath="a.py", makeFrontmost=False) == {
        "success": True,
        "filePath": path,
        "languageId": "plaintext",
        "lineCount": 7,
    }
    editor.files[path] = OpenFile(path, language="python", lines=99)
    told = await document(client, "openFile", filePath="a.py", makeFrontmost=False, preview=True)
    assert (told["languageId"], told["lineCount"]) == ("python", 99)
    assert editor.opened == [(path, None, False)] * 2


async def test_what_lies_between_two_texts_is_selected(client, editor):
    await text(client, "openFile", filePath="a.py", startText="def b", endText="'😀'")
    assert editor.opened[-1][1] == places(4, 0, 5, 14)


async def test_the_texts_are_searched_in_what_the_user_sees(client, editor, project):
    editor.buffers[str(project / "a.py")] = "\n\nonly here\n"
    await text(client, "openFile", filePath="a.py", startText="only")
    assert editor.opened[-1][1] == places(2, 0, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({}, None),
        ({"end_text": "return"}, None),
        ({"start_text": "nowhere"}, None),
        ({"start_text": "def"}, (0, 0, 0, 3)),
        ({"start_text": "return 1"}, (1, 4, 1, 12)),
        ({"start_text": "def a", "end_text": "def"}, (0, 0, 4, 3)),
        ({"start_text": "def a", "end_text": "nowhere"}, (0, 0, 0, 5)),
        ({"start_text": "def", "select_to_end_of_line": True}, (0, 0, 0, 8)),
        ({"start_text": "def", "end_text": "ret", "select_to_end_of_line": True}, (0, 0, 1, 12)),
        ({"start_text": "+ 1\n"}, (5, 15, 6, 0)),
        ({"start_text": "+ 1\n", "select_to_end_of_line": True}, (5, 15, 6, 0)),
        ({"start_text": "\n\n\n"}, (1, 12, 4, 0)),
    ],
)
def test_where_the_texts_lie(arguments, where):
    assert span(TEXT, OpenFileParams("a", **arguments)) == (where and places(*where))


@pytest.mark.parametrize(
    ("path", "says"),
    [("absent", "File not found"), ("../x", ".."), (".env", "not shared: matches .env*"), ("", "empty")],
)
async def test_what_cannot_be_opened_is_told_and_not_opened(client, editor, path, says):
    assert says in await failure(client, "openFile", filePath=path)
    assert editor.opened == []


async def test_without_an_editor_nothing_is_opened(alone):
    assert await failure(alone, "openFile", filePath="a.py") == "Folder cannot open files."


# -- what is open ------------------------------------------------------------------------------------------


async def test_the_open_files_are_tabs(client, editor, project):
    assert await document(client, "getOpenEditors") == {"tabs": []}
    files = [
        OpenFile(str(project / "a.py"), active=True, dirty=True, language="python"),
        OpenFile(str(project / "sub/é b")),
        OpenFile(str(project / ".env")),
        OpenFile("/etc/hostname"),
        OpenFile("*scratch*"),
    ]
    editor.files = {file.path: file for file in files}
    assert await document(client, "getOpenEditors") == {
        "tabs": [
            {
                "uri": f"file://{project}/a.py",
                "isActive": True,
                "label": "a.py",
                "languageId": "python",
                "isDirty": True,
            },
            {
                "uri": f"file://{project}/sub/é b",
                "isActive": False,
                "label": "é b",
                "languageId": "plaintext",
                "isDirty": False,
            },
        ]
    }


async def test_a_folder_has_no_tabs_until_something_changes(alone):
    assert await document(alone, "getOpenEditors") == {"tabs": []}


async def test_the_folders_of_the_workspace(home, project):
    other = home.path / "other é"
    other.mkdir()
    async with Bridge(Workspace(project, other)) as bridge, connect_to(bridge) as client:
        assert await document(client, "getWorkspaceFolders") == {
            "success": True,
            "folders": [
                {"name": "project", "uri": f"file://{project}", "path": str(project)},
                {"name": "other é", "uri": f"file://{other}", "path": str(other)},
            ],
            "rootPath": str(project),
        }


# -- one document ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dirty", [True, False])
@pytest.mark.parametrize("absolute", [True, False])
async def test_whether_a_document_is_dirty(client, editor, project, dirty, absolute):
    path = str(project / "a.py")
    editor.files[path] = OpenFile(path, dirty=dirty)
    asked = path if absolute else "a.py"
    assert await document(client, "checkDocumentDirty", filePath=asked) == {
        "success": True,
        "filePath": asked,
        "isDirty": dirty,
        "isUntitled": False,
    }


async def test_a_document_is_saved_by_the_editor(client, editor, project):
    path = str(project / "a.py")
    editor.files[path] = OpenFile(path, dirty=True)
    assert await document(client, "saveDocument", filePath="a.py") == {
        "success": True,
        "filePath": "a.py",
        "saved": True,
        "message": "Document saved successfully",
    }
    assert editor.saved == [path]


async def test_a_document_that_could_not_be_saved(project):
    class ReadOnly(MemoryEditor):
        def save_file(self, _):
            return False

    editor = ReadOnly()
    path = str(project / "a.py")
    editor.files[path] = OpenFile(path, dirty=True)
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        told = await document(client, "saveDocument", filePath=path)
    assert (told["success"], told["saved"], told["message"]) == (False, False, "Document was not saved")


@pytest.mark.parametrize("name", ["checkDocumentDirty", "saveDocument"])
@pytest.mark.parametrize("with_editor", [True, False])
async def test_a_document_that_is_not_open(project, name, with_editor):
    editor = MemoryEditor() if with_editor else None
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        told = await document(client, name, filePath="a.py")
    assert told == {"success": False, "message": "Document not open: a.py"}
    assert editor is None or editor.saved == []


@pytest.mark.parametrize("name", ["checkDocumentDirty", "saveDocument"])
async def test_a_document_that_is_not_shared(client, editor, project, name):
    path = str(project / ".env")
    editor.files[path] = OpenFile(path, dirty=True)
    assert await failure(client, name, filePath=".env") == "not shared: matches .env*"
    assert ".." in await failure(client, name, filePath="../x")
    assert editor.saved == []


# -- arguments ---------------------------------------------------------------------------------------------


def test_the_schemas_are_those_of_the_extension():
    schemas = {tool.name: tool.schema for tool in TOOLS}
    opening = schemas["openFile"]["properties"]
    assert schemas["openFile"]["required"] == ["filePath"]
    assert {name: each.get("default") for name, each in opening.items()} == {
        "filePath": None,
        "preview": False,
        "startText": "",
        "endText": "",
        "selectToEndOfLine": False,
        "makeFrontmost": True,
    }
    for name in ("checkDocumentDirty", "saveDocument"):
        assert (list(schemas[name]["properties"]), schemas[name]["required"]) == (["filePath"], ["filePath"])
    for name in ("getOpenEditors", "getWorkspaceFolders"):
        assert schemas[name]["properties"] == {}


@pytest.mark.parametrize("name", ["openFile", "checkDocumentDirty", "saveDocument"])
@pytest.mark.parametrize("arguments", [{}, {"filePath": 1}, {"file_path": "a.py"}])
async def test_the_path_is_needed(client, name, arguments):
    with pytest.raises(Refused, match="filePath") as refused:
        await client.call_tool(name, arguments)
    assert refused.value.code == -32602
