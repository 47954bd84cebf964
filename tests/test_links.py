"""The links as plug-ins meet them, and editors/README.md, held to what they are."""

import inspect
import json
import re
from pathlib import Path

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.editor import link
from ide_bridge.editor.interface import Feature
from ide_bridge.fronts import sessions
from ide_bridge.fronts.links import Links
from ide_bridge.fronts.sessions import Sessions
from ide_bridge.running import find
from tests.fakes.claude_client import eventually
from tests.fakes.plugin import Plugin
from tests.fakes.surroundings import at_home

PAGE = (Path(__file__).parents[1] / "editors" / "README.md").read_text(encoding="utf-8")


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def named(title):
    """What the first cells of a section's table name."""
    rows = re.findall(r"^\| (`[^|]*) \|", section(title), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        yield folder


@pytest.fixture
async def bridge(project):
    async with Bridge(project) as bridge:
        yield bridge


@pytest.fixture
async def plugin(bridge, project):
    plugin = await Plugin.connect(str(find(str(project))["socket"]))
    yield plugin
    await plugin.close()


def served(bridge):
    """The folders that a CLI sees."""
    return json.loads(Path(bridge.lock).read_text(encoding="utf-8"))["workspaceFolders"]


async def test_an_editor_without_a_name_is_refused(bridge, plugin):
    assert "called" in (await plugin.hello(" "))["error"]["message"]
    assert not bridge.editor.attached


async def test_before_hello_a_request_is_refused_in_words(bridge, plugin):
    assert (await plugin.ask("fileFocused", path="/x"))["error"]["message"] == "Say hello first."


async def test_folders_that_overlap_or_are_none_do_not_join(bridge, plugin, project):
    (project / "sub").mkdir()
    apart = project.parent / "apart"
    apart.mkdir()
    folders = [str(project / "sub"), str(project.parent), str(project / "missing"), str(apart)]
    assert "result" in await plugin.hello(folders=folders)
    await eventually(lambda: bridge.workspace.folders == [str(project), str(apart)])
    await eventually(lambda: served(bridge) == [str(project), str(apart)])
    (apart / "x.txt").write_text("apart\n", encoding="utf-8")
    assert (await plugin.ask("readFile", path=str(apart / "x.txt")))["result"] == "apart\n"
    await plugin.close()
    await eventually(lambda: bridge.workspace.folders == [str(project)])


def test_the_page_names_all_that_a_plugin_may_tell():
    methods = Links(None, None, None, None).methods()
    assert named("What the plug-in tells") == set(methods) - {"hello"}


def test_the_page_names_all_that_a_plugin_is_asked():
    assert named("What the bridge asks") == set(re.findall(r'_ask\(\s*"(\w+)"', inspect.getsource(link)))


def test_the_page_names_all_that_a_plugin_is_told():
    assert named("What the bridge tells") == set(re.findall(r'notify\(\s*"(\w+)"', inspect.getsource(link)))


def test_the_page_names_only_what_there_is_of_sessions():
    methods = set(Sessions(None, None, None, None).methods())
    told = {"sessionEvent", "approvalAsked", "approvalClosed"}
    assert told <= named("Sessions") <= methods | told
    assert told == set(re.findall(r'notify\(\s*"(\w+)"', inspect.getsource(sessions)))


def test_the_page_names_every_feature():
    listed = section("Features").split("(it answers")[0]
    assert set(re.findall(r"`(\w+)`", listed)) - {"hello"} == set(Feature.__args__)


async def test_the_transcript_of_the_page_is_what_a_bridge_says(bridge, plugin, project):
    (said,) = re.findall(r"^→ (.*\"hello\".*)$", section("The first minute"), re.MULTILINE)
    (answered,) = re.findall(r"^← (.*\"bridge\".*)$", section("The first minute"), re.MULTILINE)
    answer = await plugin.ask("hello", **json.loads(said)["params"])
    assert answer["result"].keys() == json.loads(answered)["result"].keys()
