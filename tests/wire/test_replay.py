"""What real clients said, to another server and to us, said to this bridge: they must see what they saw then."""

import asyncio
import json
from pathlib import Path

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.cli.reach import Conversation
from ide_bridge.running import find
from tests.fakes.surroundings import at_home
from tests.wire.replay import CheckingEditor, Replay, recorded_in

RECORDINGS = sorted(Path(__file__).parent.glob("*.ndjson"))
FILES = {"a.txt": "one\ntwo\nthree\nfour\n", "b.py": "def f():\n    return 1\n"}


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "workspace"
        folder.mkdir()
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        yield folder


async def replayed(lines, project):
    editor = CheckingEditor()
    async with Bridge(project, editor=editor) as bridge:
        replay = Replay(lines, bridge, editor)
        await replay.run()
        assert bridge.status()["diffs"] == []
    assert editor.diffs == {}
    return replay


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
async def test_a_client_sees_what_it_saw(file, project):
    replay = await replayed(recorded_in(file, project), project)
    assert replay.seen == replay.expected
    assert len(replay.seen) == sum(line["dir"] == "S>C" for line in recorded_in(file, project))


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
def test_a_recording_tells_neither_tokens_nor_whose_machine_it_was(file):
    text = file.read_text(encoding="utf-8")
    headers = [line["headers"] for line in map(json.loads, text.splitlines()) if line["dir"] == "CONNECT"]
    assert {found["X-Claude-Code-Ide-Authorization"] for found in headers} <= {"…", "TOKEN"}
    assert not [place for place in ("/tmp/", "/home/", "/root/", "/Users/") if place in text]


async def test_what_is_recorded_of_a_replay_can_be_replayed(project):
    lines = recorded_in(RECORDINGS[0], project)
    editor = CheckingEditor()
    async with Bridge(project, editor=editor) as bridge:
        with await asyncio.to_thread(Conversation, find(str(project)), seconds=30) as conversation:
            await asyncio.to_thread(conversation.request, "record")
            await Replay(lines, bridge, editor).run()
            await asyncio.to_thread(conversation.request, "record", {"on": False})
            messages = [json.loads(frame) for frame in next(conversation.messages())]
    again = await replayed([message["params"] for message in messages], project)
    assert again.seen == again.expected
    assert len(again.seen) > sum(line["dir"] == "S>C" for line in lines)


@pytest.mark.parametrize(
    ("then", "otherwise"),
    [
        ("CLOSED_0_DIFF_TABS", "CLOSED_1_DIFF_TABS"),
        ('"prompts":[]', '"prompts":[{"name":"x"}]'),
        ('"name":"readFile"', '"name":"readAnything"'),
        (
            '"protocolVersion":"2025-11-25","capabilities":{"tools"',
            '"protocolVersion":"1","capabilities":{"tools"',
        ),
        ('"text":"TAB_CLOSED"}]', '"text":"TAB_CLOSED"}],"isError":true'),
    ],
)
async def test_a_difference_is_seen(then, otherwise, project, tmp_path):
    text = RECORDINGS[0].read_text(encoding="utf-8")
    assert then in text
    altered = tmp_path / "altered.ndjson"
    altered.write_text(text.replace(then, otherwise), encoding="utf-8")
    replay = await replayed(recorded_in(altered, project), project)
    assert replay.seen != replay.expected


async def test_what_comes_beyond_the_recording_is_seen(project):
    lines = recorded_in(RECORDINGS[0], project)
    missing = next(line for line in lines if line["dir"] == "S>C" and line["msg"].get("id") == 3)
    lines.remove(missing)
    replay = await replayed(lines, project)
    assert missing["msg"] in replay.seen
    assert len(replay.seen) == len(replay.expected) + 1
