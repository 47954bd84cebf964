import os
import threading
import time
from itertools import pairwise

import pytest

from ide_bridge.workspace.polling import Polled, Poller
from tests.trees import age, put, remove, wait_until


@pytest.fixture
def poller():
    poller = Poller(interval=0.01)
    poller.start()
    yield poller
    poller.close()


@pytest.fixture
def old(tmp_path):
    put(tmp_path, "folder/file")
    age(tmp_path)
    return tmp_path


def test_what_does_not_change_is_never_told(old):
    told = []
    polled = Polled(str(old / "folder"), told.append)
    for _ in range(3):
        polled.look()
    assert told == []


def test_a_change_is_told_once_it_is_looked_at(old):
    told = []
    polled = Polled(str(old / "folder"), told.append)
    put(old, "folder/new")
    polled.look()
    assert told == [False]


def test_a_path_that_goes_and_comes_is_told_as_another(old):
    told = []
    polled = Polled(str(old / "folder/file"), told.append)
    remove(old / "folder/file")
    polled.look()
    polled.look()
    put(old, "folder/file")
    polled.look()
    assert told == [True, True]


def test_another_under_the_same_name_is_told_as_another(old):
    told = []
    polled = Polled(str(old / "folder/file"), told.append)
    put(old, "folder/other")
    os.replace(old / "folder/other", old / "folder/file")
    polled.look()
    assert told == [True]


def test_a_change_within_the_step_of_the_clock_is_not_missed(tmp_path):
    put(tmp_path, "file")
    told = []
    polled = Polled(str(tmp_path / "file"), told.append)
    before = os.stat(tmp_path / "file").st_mtime_ns
    put(tmp_path, "file", text="changed")
    os.utime(tmp_path / "file", ns=(before, before))
    polled.look()
    assert told == [False]


def test_a_time_in_the_far_future_is_no_reason_to_tell_again_and_again(tmp_path):
    put(tmp_path, "file")
    os.utime(tmp_path / "file", (time.time() + 9999,) * 2)
    told = []
    polled = Polled(str(tmp_path / "file"), told.append)
    polled.look()
    assert told == []


@pytest.mark.parametrize("path", ["", "a\0b", "/nowhere/at/all"])
def test_a_path_that_cannot_be_is_simply_not_there(path):
    told = []
    Polled(path, told.append).look()
    assert told == []


def test_paths_are_looked_at_from_when_they_are_added_until_they_are_removed(poller, old):
    first, second = [], []
    polled = poller.add(str(old / "folder"), first.append)
    poller.add(str(old / "folder"), second.append)
    put(old, "folder/new")
    assert wait_until(lambda: first and second)
    poller.remove(polled)
    age(old)
    first.clear()
    second.clear()
    put(old, "folder/newer")
    assert wait_until(lambda: second)
    assert first == []
    poller.remove(polled)


def test_many_paths_are_looked_at_less_often(poller, tmp_path):
    looks = []
    for _ in range(2000):
        poller.add(str(tmp_path), lambda _: looks.append(time.monotonic()))
    assert wait_until(lambda: len(looks) >= 4000)
    # One round takes some milliseconds, so that at a hundredth of a processor the next one is far off.
    longest = max(after - before for before, after in pairwise(looks))
    assert longest > 0.1


def test_closing_is_quick_however_long_the_interval(tmp_path):
    poller = Poller(interval=3600)
    poller.start()
    began = time.monotonic()
    poller.close()
    assert time.monotonic() - began < 1
    assert "ide-bridge-poller" not in {thread.name for thread in threading.enumerate()}


def test_one_that_was_never_started_closes():
    Poller().close()
