"""What is written down of sessions: whole or not at all, and one writer per session."""

import os
import stat
import subprocess
import sys

import pytest

from ide_bridge.errors import InvalidRequest, SetupProblem
from ide_bridge.session.records import Record, Records, Unconfirmed, hold
from tests.fakes.surroundings import at_home

ONE = "11111111-1111-4111-8111-111111111111"
TWO = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def state(home):
    folder = home.path / "state"
    folder.mkdir(mode=0o700)
    return str(folder)


def record(session=ONE, created=1.0, **more):
    return Record(session, "/project", created, created, **more)


def test_what_was_saved_is_found_again_the_oldest_first(state):
    records = Records(state)
    kept = record(TWO, 2.0, unconfirmed=(Unconfirmed("u", "do it"),), fork_of=ONE, command=("claude",))
    records.save(kept)
    records.save(record(ONE, 1.0))
    assert Records(state).all() == [record(ONE, 1.0), kept]


def test_a_record_is_replaced_whole_and_is_nobody_elses(state):
    records = Records(state)
    for title in ("a", "b"):
        records.save(record(title=title))
    (name,) = os.listdir(os.path.join(state, "sessions"))
    assert stat.S_IMODE(os.stat(os.path.join(state, "sessions", name)).st_mode) == 0o600
    assert [found.title for found in records.all()] == ["b"]


def test_a_record_that_cannot_be_read_harms_no_other(state, caplog):
    records = Records(state)
    records.save(record())
    for name, content in (("x.json", b"\xff{"), ("y.json", b"[]")):
        with open(os.path.join(state, "sessions", name), "wb") as file:
            file.write(content)
    assert [found.session for found in records.all()] == [ONE]
    assert len(caplog.records) == 2


def test_a_full_disk_is_told_in_a_sentence(state):
    records = Records(state)
    os.rmdir(os.path.join(state, "sessions"))
    with pytest.raises(SetupProblem, match="sessions cannot be used"):
        records.save(record())


def test_the_oldest_of_those_that_ended_are_forgotten(state):
    records = Records(state)
    for number in range(205):
        ended = f"{number:08}-1111-4111-8111-111111111111"
        records.save(record(ended, float(number), stopped=True))
    records.save(record(ONE, -1.0))
    records.prune()
    found = records.all()
    assert len(found) == 201
    assert found[0].session == ONE
    assert found[1].created == 5.0


def test_one_writer_per_session(home):
    first = hold(ONE)
    with pytest.raises(InvalidRequest, match="11111111 is running elsewhere"):
        hold(ONE)
    os.close(hold(TWO))
    os.close(first)
    os.close(hold(ONE))


def test_a_lock_handed_on_holds_until_the_other_is_gone(home):
    lock = hold(ONE)
    other = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,), stdout=subprocess.DEVNULL
    )
    os.close(lock)
    with pytest.raises(InvalidRequest):
        hold(ONE)
    other.communicate(b"\n", timeout=10)
    os.close(hold(ONE))
