"""The audit log: what a line says, who may read it, how long it gets, and what happens when it cannot be."""

import os
import re
import stat
import time
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.workspace.audit import LOG_NAME, OLDER_NAME, SIZE_LIMIT, Audit, _escaped
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.surroundings import at_home


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def audit(folder):
    audit = Audit(str(folder))
    yield audit
    audit.close()


def lines_of(folder, name=LOG_NAME):
    return (folder / name).read_text(encoding="utf-8").splitlines()


def test_a_line_says_when_to_whom_what_and_where(folder, audit):
    audit.share("claude-code 2", "selection", "/w/a b.py", (0, 4))
    audit.share("claude-code 2", "path", "/w/é.py")
    selection, path = (line.split("\t") for line in lines_of(folder))
    assert selection[1:] == ["claude-code 2", "selection", "/w/a b.py", "1-5"]
    assert path[1:] == ["claude-code 2", "path", "/w/é.py"]
    when = datetime.fromisoformat(selection[0])
    assert when.tzinfo is not None
    assert abs(when.timestamp() - time.time()) < 60


def test_only_the_user_may_read_it(folder, audit):
    folder.mkdir(mode=0o700)
    (folder / LOG_NAME).touch(mode=0o644)
    audit.share("c", "path", "/w/a")
    assert stat.S_IMODE((folder / LOG_NAME).stat().st_mode) == 0o600


def test_nothing_is_made_before_something_is_shared(folder, audit):
    assert not folder.exists()


def test_without_a_folder_nothing_is_kept():
    audit = Audit(None)
    audit.share("c", "path", "/w/a")
    audit.close()


def test_a_full_log_becomes_the_older_one(folder, audit):
    long = "/w/" + "x" * 4000
    for number in range(2 * SIZE_LIMIT // 4000 + 100):
        audit.share("c", f"path-{number}", long)
    newer, older = (folder / LOG_NAME).stat(), (folder / OLDER_NAME).stat()
    assert sorted(os.listdir(folder)) == [LOG_NAME, OLDER_NAME]
    assert newer.st_size <= SIZE_LIMIT
    assert older.st_size <= SIZE_LIMIT
    assert stat.S_IMODE(newer.st_mode) == stat.S_IMODE(older.st_mode) == 0o600
    numbers = [
        int(re.search(r"path-(\d+)", line)[1])
        for name in (OLDER_NAME, LOG_NAME)
        for line in lines_of(folder, name)
    ]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_a_later_run_adds_to_the_log(folder, audit):
    audit.share("c", "path", "/w/a")
    later = Audit(str(folder))
    later.share("c", "path", "/w/b")
    later.close()
    assert len(lines_of(folder)) == 2


def test_a_log_that_is_taken_away_begins_anew(folder, audit):
    audit.share("c", "path", "/w/a")
    (folder / LOG_NAME).unlink()
    audit.share("c", "path", "/w/b")
    assert [line.split("\t")[3] for line in lines_of(folder)] == ["/w/b"]


def test_a_log_that_cannot_be_written_is_said_once(folder, audit, caplog):
    folder.write_text("no folder", encoding="utf-8")
    for _ in range(3):
        audit.share("c", "path", "/w/a")
    assert len(caplog.records) == 1
    assert LOG_NAME in caplog.text
    folder.unlink()
    audit.share("c", "path", "/w/a")
    assert len(lines_of(folder)) == 1


def test_a_folder_that_others_may_write_is_not_used(folder, audit, caplog):
    folder.mkdir()
    folder.chmod(0o777)
    audit.share("c", "path", "/w/a")
    assert os.listdir(folder) == []
    assert "chmod" in caplog.text


def test_a_link_in_place_of_the_log_is_not_followed(folder, audit, tmp_path, caplog):
    folder.mkdir(mode=0o700)
    (tmp_path / "other").touch()
    (folder / LOG_NAME).symlink_to(tmp_path / "other")
    audit.share("c", "path", "/w/a")
    assert (tmp_path / "other").read_bytes() == b""
    assert len(caplog.records) == 1


def test_a_pipe_in_place_of_the_log_holds_nobody_up(folder, audit, caplog):
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / LOG_NAME)
    audit.share("c", "path", "/w/a")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b.py", "a b.py"),
        ("ü😀", "ü😀"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("a\\n", "a\\\\n"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2028\x85", "\\u2028\\x85"),
        ("\udcff", "\\udcff"),
    ],
)
def test_names_from_outside_cannot_forge_a_line(text, shown):
    assert _escaped(text) == shown


@given(st.text())
def test_whatever_is_shared_is_one_line(text):
    shown = _escaped(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    shown.encode()


def test_a_line_takes_no_time_to_speak_of(folder, audit):
    audit.share("c", "path", "/w/a")
    began = time.perf_counter()
    for _ in range(1000):
        audit.share("claude-code 2", "selection", "/w/some/file/of/mine.py", (3, 5))
    assert time.perf_counter() - began < 0.5


async def test_a_workspace_keeps_its_log_in_its_state_folder(tmp_path):
    with at_home() as home:
        workspace = Workspace(tmp_path)
        workspace.audit.share("c", "path", "/w/a")
        await workspace.close()
        assert len(list(home.path.rglob(LOG_NAME))) == 1
