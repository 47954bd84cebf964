"""Where transcripts lie. The slugs were read off the real CLI, versions 2.1.120 and 2.1.326."""

import os
from pathlib import Path

import pytest

from ide_bridge.errors import InvalidParams
from ide_bridge.session.transcript.places import (
    agent_of,
    agents_folder,
    find_transcript,
    is_session,
    project_folders,
    projects_folder,
    slug,
)
from tests.fakes.surroundings import at_home

SESSION = "01234567-89ab-cdef-0123-456789abcdef"
LONG = "/tmp/home-tig3_33z/" + "L" * 120 + "/" + "é" * 100
LONG_PAIRS = "/tmp/home-tig3_33z/" + "\U00010000" * 60 + "/" + "m" * 100


@pytest.fixture(autouse=True)
def home():
    with at_home() as home:
        yield home


def written(folder: str, name: str = f"{SESSION}.jsonl") -> Path:
    path = Path(projects_folder(), folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/tmp/home-tig3_33z/a.b", "-tmp-home-tig3-33z-a-b"),
        ("/tmp/home-tig3_33z/a-b", "-tmp-home-tig3-33z-a-b"),
        ("/tmp/home-tig3_33z/\U0001f600é x_y", "-tmp-home-tig3-33z-----x-y"),
        (LONG, "-tmp-home-tig3-33z-" + "L" * 120 + "-" * 61 + "-n672ir"),
        (LONG_PAIRS, "-tmp-home-tig3-33z-" + "-" * 121 + "m" * 60 + "-oshbwd"),
    ],
)
def test_a_slug_is_the_one_of_the_cli(folder, name):
    assert slug(folder) == name


def test_a_slug_of_two_hundred_is_not_cut():
    assert slug("/" + "x" * 199) == "-" + "x" * 199
    assert slug("/" + "x" * 200).startswith("-" + "x" * 199 + "-")


def test_the_slug_is_that_of_the_resolved_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert slug(str(tmp_path / "link")) == slug(str(tmp_path / "real"))


def test_the_projects_are_in_the_config_folder_of_the_cli(home, monkeypatch):
    assert projects_folder() == str(home.config / "projects")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert projects_folder() == str(home.path / ".claude" / "projects")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "")
    assert projects_folder() == str(home.path / ".claude" / "projects")


def test_old_clis_did_not_cut_the_slug():
    new, old = project_folders(LONG)
    assert os.path.basename(new) == slug(LONG)
    assert os.path.basename(old) == "-tmp-home-tig3-33z-" + "L" * 120 + "-" * 101
    assert len(project_folders("/short")) == 1
    assert len(project_folders("/" + "x" * 300)) == 1


def test_a_transcript_is_found_with_and_without_its_folder(tmp_path):
    path = str(written(slug(str(tmp_path))))
    assert find_transcript(SESSION, str(tmp_path)) == path
    assert find_transcript(SESSION) == path
    assert find_transcript(SESSION, "/elsewhere") == path
    assert find_transcript(SESSION.replace("0", "1")) is None


def test_of_several_transcripts_of_a_session_the_newest_is_taken(tmp_path):
    old, new = written("-old"), written("-new")
    os.utime(old, (1, 1))
    assert find_transcript(SESSION) == str(new)
    os.utime(new, (0, 0))
    assert find_transcript(SESSION) == str(old)


def test_where_nothing_was_ever_written_nothing_is_found():
    assert find_transcript(SESSION) is None
    written("-a", SESSION)
    Path(projects_folder(), "-b", f"{SESSION}.jsonl").mkdir(parents=True)
    assert find_transcript(SESSION) is None


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "*", "../../etc/passwd", f"../{SESSION}", f"{SESSION}/.."),
        *(f"{SESSION}\n", f"{SESSION}\0", f"x{SESSION}", SESSION[:-1]),
    ],
)
def test_what_is_no_session_id_never_becomes_part_of_a_path(name):
    assert not is_session(name)
    with pytest.raises(InvalidParams, match="named by its id"):
        find_transcript(name)


def test_only_digits_of_ascii_make_a_session_id():
    assert is_session(SESSION)
    assert is_session(SESSION.upper())
    assert not is_session(SESSION.replace("1", "١"))


def test_sub_agents_lie_below_the_session_and_beside_each_other():
    assert agents_folder(f"/p/{SESSION}.jsonl") == f"/p/{SESSION}/subagents"
    assert agents_folder(f"/p/{SESSION}/subagents/agent-a1.jsonl") == f"/p/{SESSION}/subagents"
    assert agent_of("agent-a1_B-2.jsonl") == "a1_B-2"
    for name in (
        "agent-.jsonl",
        "agent-a/b.jsonl",
        "agent-a.meta.json",
        "agent-..jsonl",
        "x-a.jsonl",
        "agent-a.jsonl\n",
    ):
        assert agent_of(name) is None
