import os

import pytest

from ide_bridge.workspace.index import Change, Index
from ide_bridge.workspace.places import root_names
from ide_bridge.workspace.watching import open_watcher
from tests.trees import drop_in, git, isolate_git, put, remove, wait_until, watching


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    isolate_git(monkeypatch, home)
    return home


@pytest.fixture(scope="module")
def watcher():
    watcher = open_watcher(interval=0.05)
    yield watcher
    watcher.close()


@pytest.fixture
def fresh(tmp_path, watcher):
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q")
    put(root, ".gitignore", text="*.log\nbuild/\n")
    put(root, "a", "src/b", "src/deep/c", "build/out")
    with watching(root, watcher) as fresh:
        yield fresh


# -- what is told ------------------------------------------------------------------------------------------


def told(fresh, wanted):
    """Waits for as many changes as are wanted, and returns them with paths relative to the root."""

    def enough():
        fresh.paths()
        return len(fresh.changes) >= wanted

    assert wait_until(enough), fresh.changes
    changes, fresh.changes = fresh.changes, []
    return [(os.path.relpath(change.path, fresh.root), change.kind) for change in changes]


def test_changes_are_told_by_kind_and_absolute_path(fresh):
    drop_in(fresh.root, "new")
    assert wait_until(lambda: fresh.paths() and fresh.changes)
    assert fresh.changes == [Change(str(fresh.root / "new"), "created")]
    fresh.changes.clear()
    put(fresh.root, "a", text="other")
    assert told(fresh, 1) == [("a", "changed")]
    remove(fresh.root / "src/b")
    assert told(fresh, 1) == [("src/b", "deleted")]
    (fresh.root / "a").rename(fresh.root / "z")
    assert sorted(told(fresh, 2)) == [("a", "deleted"), ("z", "created")]


def test_hidden_files_are_not_told_of(fresh):
    put(fresh.root, "x.log", "build/more", ".git/whatever")
    drop_in(fresh.root, "src/seen")
    assert told(fresh, 1) == [("src/seen", "created")]


def test_files_written_one_after_another_are_told_in_that_order(fresh):
    order = [f"src/{number * 7 % 10}" for number in range(10)]
    put(fresh.root, *order)
    assert wait_until(lambda: len(fresh.index._roots[0].dirt._suspects.written) == 10)
    assert told(fresh, 10) == [(path, "created") for path in order]
    put(fresh.root, *order[3:], *order[:3], text="again")
    assert wait_until(lambda: list(fresh.index._roots[0].dirt._suspects.written)[-1:] == order[2:3])
    assert told(fresh, 10) == [(path, "changed") for path in [*order[3:], *order[:3]]]


def test_a_first_reading_tells_what_changed_since_a_time(tmp_path, watcher):
    put(tmp_path, "old", "newer", "newest")
    for age_in_seconds, name in [(500, "old"), (50, "newer"), (5, "newest")]:
        os.utime(tmp_path / name, (1_000_000 - age_in_seconds,) * 2)
    index = Index([str(tmp_path)], lambda: None, watcher)
    changes = index.refresh(since=1_000_000 - 60)
    index.close()
    assert changes == [Change(str(tmp_path / name), "changed") for name in ("newer", "newest")]


# -- being told first --------------------------------------------------------------------------------------


def test_a_suspected_file_is_found_without_waiting_for_a_watch(tmp_path):
    put(tmp_path, "a", "known/deep/b")
    index = Index([str(tmp_path)], lambda: None, Deaf())
    index.refresh()
    put(tmp_path, "known/deep/c", "x/y/z", "x/w")
    for path in ("known/deep/c", "x/y/z"):
        index.suspect(str(tmp_path / path))
    index.suspect("/somewhere/else")
    assert index.stirred
    changes = index.refresh()
    assert index.paths == ["a", "known/deep/b", "known/deep/c", "x/w", "x/y/z"]
    assert sorted(change.path for change in changes) == [str(tmp_path / path) for path in index.paths[2:]]


class Deaf:
    """A watcher that never hears anything."""

    notice = None

    def root(self, *_):
        return self

    def add(self, _path):
        return None

    def remove(self, watches):
        """Nothing was added."""

    def sources(self, files, *, index):
        """Not looked at."""

    def close(self):
        """Nothing is open."""


@pytest.mark.parametrize("count", [3, 1000])
def test_few_and_many_changes_keep_the_list_sorted(tmp_path, count):
    put(tmp_path, *(f"old{number}" for number in range(count)))
    index = Index([str(tmp_path)], lambda: None, Deaf())
    index.refresh()
    for number in range(count):
        (tmp_path / f"old{number}").rename(tmp_path / f"{number}new")
    index.suspect(str(tmp_path / "any"))
    index.refresh()
    assert index.paths == sorted(f"{number}new" for number in range(count))


# -- several roots -----------------------------------------------------------------------------------------


def test_further_roots_are_named_and_those_of_one_name_apart(tmp_path):
    put(tmp_path, "one/app/a", "two/app/b", "three/lib/c", "four/app/d")
    roots = [str(tmp_path / root) for root in ("one/app", "two/app", "three/lib", "four/app")]
    index = Index(roots, lambda: None)
    index.refresh()
    prefixes = root_names(roots)
    assert len(set(prefixes)) == 4
    assert index.paths == sorted(
        ["a", *(f"{name}/{file}" for name, file in zip(prefixes[1:], "bcd", strict=True))]
    )


def test_without_a_watcher_every_refresh_reads_anew(tmp_path):
    index = Index([str(tmp_path)], lambda: None)
    for name in "abc":
        put(tmp_path, name)
        assert index.stirred
        index.refresh()
    assert index.paths == ["a", "b", "c"]
    remove(tmp_path)
    index.refresh()
    assert index.paths == []


def test_no_roots_are_no_files():
    index = Index([], lambda: None)
    assert index.refresh() == []
    assert index.paths == []
