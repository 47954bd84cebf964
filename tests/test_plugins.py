"""Other packages join through entry points: an adapter, a tool, and one that is broken.

The packages are installed as pip leaves them: a module beside a ``dist-info`` folder on the path.
"""

import json
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.claude_client import connect

ADAPTER = """
    from ide_bridge import Editor, OpenFile

    class Toy(Editor):
        name = "Toy"

        async def open_files(self):
            return [OpenFile(WORKSPACE + "/open.py", active=True)]

    class NoEditor:
        pass

    def broken():
        raise RuntimeError("the toy is broken")
"""

TOOLS = """
    from ide_bridge import Context

    def shout(word: str, context: Context, times: int = 1) -> str:
        'Say a word loudly.'
        return (word.upper() + "!") * times + context.workspace.name

    async def later(numbers: list[int]) -> dict[str, int]:
        return {"sum": sum(numbers)}
"""


@pytest.fixture
def home():
    with Home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def site(home, project):
    """A folder with two packages: one brings adapters, the other tools."""
    site = home.path / "site"
    site.mkdir()
    source = f"WORKSPACE = {str(project)!r}\n{dedent(ADAPTER)}"
    install(site, "toy", source, editors={"toy": "toy:Toy", "broken": "toy:broken", "none": "toy:NoEditor"})
    install(site, "shouting", dedent(TOOLS), tools={"shout": "shouting:shout", "later": "shouting:later"})
    return site


@pytest.fixture
def environment(home, site):
    return home.environment | {"PYTHONPATH": str(site)}


def install(site, name, source, **groups):
    (site / f"{name}.py").write_text(source, encoding="utf-8")
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[ide_bridge.{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def call(environment, folder, method, params=None):
    given = [] if params is None else [json.dumps(params)]
    done = subprocess.run(
        [*PROGRAM, "call", method, *given],
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=30,
        check=True,
    )
    return json.loads(done.stdout)


def test_an_adapter_of_another_package_is_the_editor(project, environment):
    with BridgeProcess(project, environment, "--editor", "toy") as served:
        assert json.loads(served.lock.read_text(encoding="utf-8"))["ideName"] == "Toy"
        assert call(environment, project, "getOpenFiles") == ["open.py"]
        assert call(environment, project, "getCurrentFile") == "open.py"
        assert [editor["name"] for editor in call(environment, project, "status")["editors"]] == ["Toy"]
        assert served.log() == ""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("broken", "The adapter broken (toy:broken) cannot be loaded: the toy is broken."),
        ("none", "The adapter none (toy:NoEditor) is no Editor."),
        ("vi", "There is no adapter called vi; there are: broken, none, toy."),
    ],
)
def test_an_adapter_that_cannot_be_had_is_an_error(home, project, environment, name, sentence):
    done = subprocess.run(
        [*PROGRAM, "serve", str(project), "--editor", name],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"ide-bridge: {sentence}\n")
    assert home.locks() == []


def connect_as_told(served):
    token = Path(served.ready["token_file"]).read_text(encoding="ascii")
    return connect(served.ready["port"], token)


async def test_a_tool_of_another_package_is_listed_and_can_be_called(project, environment):
    with BridgeProcess(project, environment) as served:
        async with connect_as_told(served) as client:
            await client.initialize()
            tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
            assert tools["shout"] == {
                "name": "shout",
                "description": "Say a word loudly.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"word": {"type": "string"}, "times": {"type": "integer", "default": 1}},
                    "required": ["word"],
                },
            }
            said = await client.call_tool("shout", {"word": "a", "times": 2})
            assert said == {"content": [{"type": "text", "text": "A!A!project"}]}
            summed = await client.call_tool("later", {"numbers": [1, 2]})
            assert summed == {"content": [{"type": "text", "text": '{"sum":3}'}]}
        assert served.log() == ""


async def test_a_tool_of_another_package_can_be_called_without_asking_for_the_list(project, environment):
    with BridgeProcess(project, environment) as served:
        async with connect_as_told(served) as client:
            said = await client.call_tool("shout", {"word": "a"})
            assert said == {"content": [{"type": "text", "text": "A!project"}]}


async def test_tools_that_fail_to_load_are_named_in_one_sentence_each_and_the_rest_works(
    project, site, environment
):
    faulty = {"readFile": "faulty:ours", "untyped": "faulty:untyped", "gone": "no_such_module:function"}
    source = "def ours() -> str:\n    return 'not ours'\n\ndef untyped(word):\n    return word\n"
    install(site, "faulty", source, tools=faulty)
    with BridgeProcess(project, environment) as served:
        async with connect_as_told(served) as client:
            tools = [tool["name"] for tool in (await client.request("tools/list"))["tools"]]
            assert set(tools[-2:]) == {"shout", "later"}
            assert not {"untyped", "gone"}.intersection(tools)
            assert await client.request("writeFile", {"path": "a", "content": "still ours"}) is True
            read = await client.call_tool("readFile", {"path": "a"})
            assert read == {"content": [{"type": "text", "text": "still ours"}]}
        assert set(served.log().splitlines()) == {
            "ide-bridge: The tool readFile (faulty:ours) was left out: a tool of that name exists already.",
            "ide-bridge: The tool untyped (faulty:untyped) was left out: its parameter 'word' has no type.",
            "ide-bridge: The tool gone (no_such_module:function) was left out: No module named 'no_such_module'.",
        }
