"""The past sessions of a folder, and what they are called."""

import os
import uuid
from pathlib import Path

import pytest

from ide_bridge.session.transcript.past import past_sessions
from ide_bridge.session.transcript.places import projects_folder, slug
from tests.fakes.surroundings import at_home
from tests.transcripts import Writer


@pytest.fixture(autouse=True)
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "my.project"
    made.mkdir()
    return made


def session(folder: Path, *, cwd: Path | None = None, name: str = "") -> Writer:
    place = Path(projects_folder(), slug(str(folder)))
    place.mkdir(parents=True, exist_ok=True)
    return Writer(place / f"{name or uuid.uuid4()}.jsonl", cwd=str(cwd or folder))


def title_of(folder: Path) -> str:
    (past,) = past_sessions(str(folder))
    return past.title


def test_a_session_is_listed_with_what_its_records_tell(folder):
    writer = session(folder)
    writer.note("queue-operation", operation="dequeue")
    writer.prompt("<local-command-caveat>x</local-command-caveat>", isMeta=True)
    writer.prompt("What  is\nthis?")
    writer.said("That.")
    (past,) = past_sessions(str(folder))
    assert (past.session, past.path, past.folder) == (writer.path.stem, str(writer.path), str(folder))
    assert (past.title, past.version, past.size) == ("What is this?", "2.1.326", writer.path.stat().st_size)
    assert past.changed == writer.path.stat().st_mtime


def test_the_newest_come_first_and_no_more_than_asked_for(folder):
    for number in range(5):
        writer = session(folder)
        writer.prompt(f"{number}")
        os.utime(writer.path, (number, number))
    assert [past.title for past in past_sessions(str(folder))] == ["4", "3", "2", "1", "0"]
    assert [past.title for past in past_sessions(str(folder), limit=2)] == ["4", "3"]


def test_folders_that_meet_in_one_slug_are_kept_apart_by_the_records(folder):
    other = folder.parent / "my-project"
    other.mkdir()
    session(folder).prompt("dot")
    session(other).prompt("dash")
    assert [past.title for past in past_sessions(str(folder))] == ["dot"]
    assert [past.title for past in past_sessions(str(other))] == ["dash"]


def test_a_link_to_the_folder_has_the_sessions_of_the_folder(folder):
    link = folder.parent / "link"
    link.symlink_to(folder)
    session(folder).prompt("one")
    assert [past.title for past in past_sessions(str(link))] == ["one"]


def test_a_session_stays_with_the_folder_it_began_in(folder):
    writer = session(folder)
    writer.prompt("begin")
    writer.cwd = str(folder / "below")
    writer.prompt("cd below")
    assert title_of(folder) == "begin"


def test_titles_win_over_prompts_and_given_ones_over_all(folder):
    writer = session(folder)
    writer.prompt("the prompt")
    assert title_of(folder) == "the prompt"
    writer.note("summary", summary="the summary", leafUuid=writer.last)
    assert title_of(folder) == "the summary"
    writer.note("ai-title", aiTitle="the model's")
    assert title_of(folder) == "the model's"
    writer.note("custom-title", customTitle="mine")
    writer.note("custom-title", customTitle="mine, newer")
    assert title_of(folder) == "mine, newer"
    beside = writer.path.with_suffix("")
    beside.mkdir()
    (beside / "custom-title.json").write_text('{"customTitle": "beside"}', encoding="utf-8")
    assert title_of(folder) == "beside"


def test_titles_that_are_none_are_passed_over(folder):
    writer = session(folder)
    writer.prompt("the prompt " * 100)
    writer.note("custom-title", customTitle=5)
    writer.note("ai-title", aiTitle="  ")
    (writer.path.with_suffix("")).mkdir()
    (writer.path.with_suffix("") / "custom-title.json").write_text("{", encoding="utf-8")
    assert title_of(folder) == ("the prompt " * 100)[:200].strip()


def test_a_session_of_commands_is_called_after_the_first(folder):
    writer = session(folder)
    writer.prompt("<command-name>/cost</command-name><command-args></command-args>")
    assert title_of(folder) == "/cost"


def test_only_the_ends_of_a_large_file_are_read(folder):
    writer = session(folder)
    writer.prompt("first")
    writer.note("ai-title", aiTitle="in the middle of nowhere", filler="x" * 60_000)
    for _ in range(20):
        writer.snapshot()
    writer.note("last-prompt", lastPrompt="last")
    assert writer.path.stat().st_size > 150_000
    assert title_of(folder) == "first"


def test_a_first_prompt_that_is_an_image_does_not_hide_the_session(folder):
    writer = session(folder)
    image = {"type": "image", "source": {"media_type": "image/png", "data": "x" * 1_000_000}}
    writer.prompt([{"type": "text", "text": "look"}, image])
    writer.note("api-request-shape", shape="y" * 200_000)
    assert title_of(folder) == "look"


def test_what_is_no_session_is_not_listed(folder):
    writer = session(folder, name="not-a-uuid")
    writer.prompt("one")
    (writer.path.parent / f"{uuid.uuid4()}.jsonl").mkdir()
    (writer.path.parent / f"{uuid.uuid4()}.jsonl").write_bytes(b"")
    (writer.path.parent / f"{uuid.uuid4()}.jsonl").write_bytes(b"\xff\n{\n[]\n" * 20)
    (writer.path.parent / f"{uuid.uuid4()}.jsonl").symlink_to("nowhere")
    os.mkfifo(writer.path.parent / f"{uuid.uuid4()}.jsonl")
    session(folder).note("mode", mode="normal")
    assert past_sessions(str(folder)) == []


def test_where_nobody_worked_there_are_none(folder):
    assert past_sessions(str(folder)) == []
    assert past_sessions("/nowhere/at/all") == []
