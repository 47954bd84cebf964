"""The list stays right whatever happens on disk: index, tree, watching and git together."""

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ide_bridge.workspace.watching import open_watcher
from tests.trees import git, isolate_git, put, remove, wait_until, watching


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


# -- one operation each ------------------------------------------------------------------------------------


def create(root):
    put(root, "src/new", "src/new.log")


def create_deep(root):
    put(root, "x/y/z/new", "x/y/new.log", "x/build/no")


def delete(root):
    remove(root / "src/b")


def delete_folder(root):
    remove(root / "src")


def rename(root):
    (root / "a").rename(root / "src/z")


def rename_to_hidden(root):
    (root / "a").rename(root / "a.log")


def rename_folder(root):
    (root / "src").rename(root / "lib")


def rename_folder_to_hidden_and_change_it(root):
    (root / "src").rename(root / "build2")
    put(root, ".gitignore", text="build2/\n")
    put(root, "build2/more")


def swap_folders(root):
    put(root, "other/b", "other/q")
    (root / "src").rename(root / "tmp")
    (root / "other").rename(root / "src")
    (root / "tmp").rename(root / "other")
    put(root, "src/late", "other/late")


def move_out(root):
    (root / "src").rename(root.parent / "src")
    put(root.parent, "src/outside")


def move_in(root):
    put(root.parent, "outside/p", "outside/q/r", "outside/q/s.log")
    (root.parent / "outside").rename(root / "src/inside")
    put(root, "src/inside/q/t")


def folder_becomes_file(root):
    remove(root / "src")
    put(root, "src")


def file_becomes_folder(root):
    remove(root / "a")
    put(root, "a/b")


def folder_becomes_link(root):
    (root / "src").rename(root / "real")
    (root / "src").symlink_to("real")


def edit_rules_in_place(root):
    with open(root / ".gitignore", "r+b") as file:
        file.write(b"src/\n")
        file.truncate()


def replace_rules(root):
    put(root, "rules", text="deep\n!build\n")
    (root / "rules").rename(root / ".gitignore")


def delete_rules(root):
    put(root, "a.log")
    remove(root / ".gitignore")


def nested_rules(root):
    put(root, "src/.gitignore", text="deep\n!*.log\n")
    put(root, "src/kept.log")


def exclude(root):
    put(root, ".git/info/exclude", text="deep/\n")


def set_excludes_file(root):
    put(root.parent, "mine", text="src/b\n")
    git(root, "config", "core.excludesFile", str(root.parent / "mine"))


def set_excludes_file_for_all(root):
    put(root.parent, "mine", text="src/b\n")
    git(root, "config", "--global", "core.excludesFile", str(root.parent / "mine"))


def exclude_for_all(root):
    put(os.environ["HOME"], ".config/git/ignore", text="deep\n")


def add_forced(root):
    put(root, "x.log", "build/deep/y")
    git(root, "add", "-f", "x.log", "build/out", "build/deep/y")


def untrack(root):
    git(root, "add", "-f", "build/out")
    git(root, "rm", "-q", "--cached", "build/out")


def switch_branch(root):
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "side")
    git(root, "rm", "-qr", "src")
    put(root, "only/here", ".gitignore", text="a\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "two")
    git(root, "checkout", "-q", "main")


def init_within(root):
    git(root / "src", "init", "-q")


def uninit_within(root):
    git(root / "src", "init", "-q")
    remove(root / "src/.git")


def uninit(root):
    put(root, "a.log")
    remove(root / ".git")
    git(root, "init", "-q")


def stash(root):
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    put(root, "src/b", "untracked/u", text="other")
    git(root, "stash", "-uq")


OPERATIONS = [
    *(create, create_deep, delete, delete_folder, rename, rename_to_hidden, rename_folder, swap_folders),
    *(rename_folder_to_hidden_and_change_it, move_out, move_in, folder_becomes_file, file_becomes_folder),
    *(folder_becomes_link, edit_rules_in_place, replace_rules, delete_rules, nested_rules, exclude),
    *(set_excludes_file, set_excludes_file_for_all, exclude_for_all, add_forced, untrack, switch_branch),
    *(init_within, uninit_within, uninit, stash),
]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_what_happens_is_soon_known_as_git_knows_it(fresh, operation):
    before = fresh.paths().copy()
    fresh.during(operation)
    fresh.becomes_as_git_says()
    if operation not in (untrack, uninit_within, uninit, stash, switch_branch):
        assert fresh.paths() != before
    # What was touched is still watched.
    put(fresh.root, "last", "src2/last")
    fresh.becomes_as_git_says()


def test_a_tracked_file_stays_when_a_new_rule_hides_it(tmp_path, watcher):
    git(tmp_path, "init", "-q")
    put(tmp_path, "a", "sub/b", "sub/c", "sub/deep/d")
    git(tmp_path, "add", "sub/b", "sub/deep/d")
    with watching(tmp_path, watcher) as fresh:
        put(tmp_path, ".gitignore", text="sub/\n")
        fresh.becomes(".gitignore", "a", "sub/b", "sub/deep/d")
        put(tmp_path, ".gitignore", text="b\nd\n")
        fresh.becomes(".gitignore", "a", "sub/b", "sub/c", "sub/deep/d")


def test_a_repository_may_be_made_while_its_folder_is_watched(tmp_path, watcher):
    put(tmp_path, ".gitignore", text="*.log\n")
    put(tmp_path, "a.log", "b", "sub/c.log")
    with watching(tmp_path, watcher) as fresh:
        assert fresh.paths() == [".gitignore", "b"]
        git(tmp_path, "init", "-q")
        git(tmp_path, "add", "-f", "a.log", "sub/c.log")
        fresh.becomes(".gitignore", "a.log", "b", "sub/c.log")


def test_rules_above_a_root_that_is_a_sub_folder_are_followed(tmp_path, watcher):
    git(tmp_path, "init", "-q")
    put(tmp_path, "sub/a", "sub/b")
    with watching(tmp_path / "sub", watcher) as fresh:
        put(tmp_path, ".gitignore", text="b\n")
        fresh.becomes("a")
        put(tmp_path, ".gitignore", text="sub/\n")
        fresh.becomes()
        remove(tmp_path / ".gitignore")
        fresh.becomes("a", "b")


def test_a_linked_work_tree_is_followed(tmp_path, watcher):
    main = tmp_path / "main"
    put(main, "a")
    git(main, "init", "-q")
    git(main, "add", ".")
    git(main, "commit", "-qm", "one")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    put(tmp_path, "linked/x.log", "linked/.gitignore", text="*.log")
    with watching(tmp_path / "linked", watcher) as fresh:
        assert fresh.paths() == [".gitignore", "a"]
        git(tmp_path / "linked", "add", "-f", "x.log")
        fresh.becomes_as_git_says()
        put(main, ".git/info/exclude", text="y\n")
        put(tmp_path, "linked/y", "linked/z")
        fresh.becomes_as_git_says()


@pytest.mark.parametrize("again", range(5))
def test_a_root_deleted_and_made_again_is_seen_again(tmp_path, watcher, again):
    root = tmp_path / "root"
    put(root, "a", "sub/b")
    with watching(root, watcher) as fresh:
        remove(root)
        put(root, "sub/c", "d")
        fresh.becomes("d", "sub/c")
        remove(root)
        fresh.becomes()
        put(root, ".gitignore", "e", text="*.log\n")
        git(root, "init", "-q")
        put(root, "f.log", "sub/g")
        git(root, "add", "-f", "f.log")
        fresh.becomes(".gitignore", "e", "f.log", "sub/g")
        put(root, "sub/h")
        fresh.becomes(".gitignore", "e", "f.log", "sub/g", "sub/h")


def made_again(root, fresh):
    """Deletes a root and makes another; True when it got the number of the old one."""
    number = root.stat().st_ino
    remove(root)
    fresh.becomes()
    put(root, "b")
    return root.stat().st_ino == number


def test_a_root_made_again_with_the_number_of_the_old_one_is_seen_again(tmp_path):
    watcher = open_watcher(interval=0.3)
    for attempt in range(10):
        root = tmp_path / f"{attempt}"
        put(root, "a")
        with watching(root, watcher) as fresh:
            same = made_again(root, fresh)
            fresh.becomes("b")
            put(root, "c")
            fresh.becomes("b", "c")
        if same:
            break
    watcher.close()
    if not same:
        pytest.skip("this file system does not use numbers again")


def test_a_root_that_was_never_there_may_come(tmp_path, watcher):
    with watching(tmp_path / "later", watcher) as fresh:
        assert fresh.paths() == []
        put(tmp_path, "later/a/b")
        fresh.becomes("a/b")
        put(tmp_path, "later/a/c")
        fresh.becomes("a/b", "a/c")


def test_a_rule_file_written_slowly_counts_when_it_is_whole(fresh):
    with open(fresh.root / "src/.gitignore", "wb", buffering=0) as file:
        fresh.becomes_as_git_says()
        file.write(b"deep/\n")
    fresh.becomes_as_git_says()
    assert "src/deep/c" not in fresh.paths()


def test_a_repository_made_piece_by_piece_within_counts_when_it_is_whole(fresh, tmp_path):
    git(tmp_path, "init", "-q", "model")
    (fresh.root / "src/.git").mkdir()
    for part in ("HEAD", "refs", "objects"):
        put(fresh.root, f"mark-{part}")
        assert wait_until(lambda part=part: f"mark-{part}" in fresh.paths())
        assert "src/b" in fresh.paths()
        (tmp_path / "model/.git" / part).rename(fresh.root / "src/.git" / part)
    fresh.becomes_as_git_says()
    assert "src/b" not in fresh.paths()


def test_a_git_file_written_slowly_counts_when_it_is_whole(fresh, tmp_path):
    git(tmp_path, "init", "-q", "--separate-git-dir", str(tmp_path / "store"), "elsewhere")
    with open(fresh.root / "src/.git", "wb", buffering=0) as file:
        put(fresh.root, "mark")
        wait_until(lambda: "mark" in fresh.paths())
        file.write(f"gitdir: {tmp_path}/store\n".encode())
    fresh.becomes_as_git_says()
    assert "src/b" not in fresh.paths()


# -- any walk of operations --------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c.log", "build", "d"])
places = st.lists(names, min_size=1, max_size=3).map("/".join)
steps = st.one_of(
    st.tuples(st.sampled_from(["put", "put", "remove", "force", "untrack", "init", "uninit", "link"]), places),
    st.tuples(st.sampled_from(["rename", "move_in", "move_out"]), places, places),
    st.tuples(
        st.just("rules"), places, st.sampled_from(["*.log\n", "build/\n", "!c.log\n", "/a\n", "a/b\n", "*\n!a\n"])
    ),
)


def init(top, place):
    if (top / place).is_dir():
        git(top / place, "init", "-q")


def rewrite_rules(top, place, text):
    if (top / place).parent.is_dir():
        put((top / place).parent, ".gitignore", text=text)


def move_folder_in(top, place, content):
    put(top.parent, f"outside/{content}")
    (top.parent / "outside").rename(top / place)


def move_anything_out(top, place, _):
    remove(top.parent / "outside")
    (top / place).rename(top.parent / "outside")


STEPS = {
    "put": put,
    "remove": lambda top, place: remove(top / place),
    "link": lambda top, place: (top / place).symlink_to("a"),
    "force": lambda top, place: git(top, "add", "-f", place),
    "untrack": lambda top, place: git(top, "rm", "-rq", "--cached", place),
    "init": init,
    "uninit": lambda top, place: remove(top / place / ".git"),
    "rules": rewrite_rules,
    "rename": lambda top, place, other: (top / place).rename(top / other),
    "move_in": move_folder_in,
    "move_out": move_anything_out,
}


def walked(top, leg):
    for action, *places in leg:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            STEPS[action](top, *places)


@given(walk=st.lists(st.lists(steps, min_size=1, max_size=4), min_size=1, max_size=6))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_walk_of_operations_ends_where_git_ends(watcher, walk):
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder, "top")
        put(top, "a/b", "build/a", "d")
        git(top, "init", "-q")
        with watching(top, watcher) as fresh:
            for leg in walk:
                fresh.during(lambda top, leg=leg: walked(top, leg))
                fresh.becomes_as_git_says()
