import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ide_bridge.workspace.replacing import UNFINISHED
from ide_bridge.workspace.repository import find
from ide_bridge.workspace.tree import Delta, Tree
from tests.trees import git, git_list, isolate_git, put, remove

NAMES = [
    "a",
    "b",
    "ab",
    "A",
    "a.py",
    "b.py",
    "a b",
    "b ",
    "é",
    "a\nb",
    "[a]",
    "*",
    "!a",
    "#a",
    "\\",
    "a\\b",
    "build",
]


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    isolate_git(monkeypatch, home)
    return home


@pytest.fixture
def top(tmp_path):
    git(tmp_path, "init", "-q")
    return tmp_path


def settled(root):
    """The tree of a root, read from scratch."""
    tree = Tree(str(root))
    tree.build()
    if tree.repository is not None:
        tree.settle(tree.repository.tracked(str(root)))
    return tree


def listed(root):
    return settled(root).paths()


# -- any tree, any rules -----------------------------------------------------------------------------------

BRACKETS = [
    "[ab]",
    "[!a]",
    "[^a]",
    "[a-c]",
    "[z-a]",
    "[]a]",
    "[!]]",
    "[\\]]",
    "[a/]",
    "[[:alpha:]]",
    "[[:nope:]]",
    "[a",
]
ESCAPES = ["\\*", "\\[", "\\ ", "\\", "\\!", "\\#"]
pieces = st.sampled_from(
    [*NAMES, *BRACKETS, *ESCAPES, "*", "*", "?", "**", "***", ".py", "c", "-", "[", "]", "\t"]
)
segments = st.lists(pieces, min_size=1, max_size=3).map("".join)
inner = st.lists(st.one_of(st.sampled_from(NAMES), st.just("**"), st.just("*"), segments), min_size=1, max_size=3)
rules = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(["", "", "", "!", "!", "#", "\\!"]),
    st.sampled_from(["", "", "/"]),
    inner.map("/".join),
    st.sampled_from(["", "", "/", "/", "/*", "/**", "//"]),
    st.sampled_from(["", "", "", " ", "  ", "\\ ", "\t", "\r"]),
)
rule_files = st.lists(rules, min_size=1, max_size=5).map("\n".join)
folders = st.lists(st.sampled_from(NAMES), max_size=3).map("/".join)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


def lay(top, files, ignores, forced):
    """Lays out a random tree; what does not fit (a file where a folder is) is left out."""
    for path in files:
        with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            put(top, path)
    for folder, text in ignores.items():
        if (top / folder).is_dir():
            put(top / folder, ".gitignore", text=text)
    there = [path for path in forced if os.path.isfile(top / path)]
    if there:
        git(top, "--literal-pathspecs", "add", "-f", "--", *there)


@given(
    files=st.lists(paths, min_size=1, max_size=15, unique=True),
    ignores=st.dictionaries(folders, rule_files, min_size=1, max_size=4),
    excluded=st.one_of(st.just(""), rule_files),
    data=st.data(),
)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_tree_with_any_rules_is_listed_as_git_lists_it(files, ignores, excluded, data):
    forced = data.draw(st.lists(st.sampled_from(files), max_size=2))
    below = data.draw(st.one_of(st.just(""), st.sampled_from(files).map(os.path.dirname)))
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        git(top, "init", "-q")
        put(top, ".git/info/exclude", text=excluded)
        lay(top, files, ignores, forced)
        assert listed(top) == git_list(top)
        if (top / below).is_dir():
            assert listed(top / below) == git_list(top / below)


@given(lines=st.lists(rules, min_size=1, max_size=30))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(
    lines=[
        "a**/b",
        "**\\/b",
        "\\/a",
        "[/a]",
        "a/**/",
        "#[a/]",
        "#**/**",
        "***/b",
        "[[:nope:]]a",
        "[z-a]",
        "!a",
        "a\\",
        "b/\\ ",
    ]
)
def test_every_single_rule_hides_what_git_hides_by_it(lines):
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        git(top, "init", "-q")
        for number, line in enumerate(lines):
            put(top / f"{number}", *NAMES[1:], "a/a", "a/b/a/b", "a/ab", "a/b ", text="")
            put(top / f"{number}", ".gitignore", text=line)
        assert listed(top) == git_list(top)


# -- single trees ------------------------------------------------------------------------------------------


def test_a_root_below_the_top_obeys_the_rules_above_it(top):
    put(top, ".gitignore", text="*.log\n/src/out\n")
    put(top, "src/a.py", "src/a.log", "src/out/b", "src/lib/out/c")
    assert listed(top / "src") == git_list(top / "src") == ["a.py", "lib/out/c"]


def test_a_root_that_is_itself_hidden_has_only_its_tracked_files(top):
    put(top, ".gitignore", text="out/\n")
    put(top, "out/.gitignore", text="!*\n")
    put(top, "out/a", "out/sub/b", "out/c")
    git(top, "add", "-f", "out/sub/b")
    assert listed(top / "out") == git_list(top / "out") == ["sub/b"]


def test_tracked_files_count_even_when_a_rule_hides_them(top):
    put(top, ".gitignore", text="*.log\nbuild/\n")
    put(top, "a.log", "b.log", "build/x", "build/deep/y", "build/z")
    git(top, "add", "-f", "a.log", "build/deep/y")
    assert listed(top) == git_list(top) == [".gitignore", "a.log", "build/deep/y"]


def test_tracked_files_are_still_known_when_git_is_asked_again(top):
    put(top, ".gitignore", text="*.log\n")
    put(top, "a.log", "build/b.log", "c.log")
    git(top, "add", "-f", "a.log", "build/b.log")
    tree = settled(top)
    for _ in range(2):
        assert tree.settle(tree.repository.tracked(str(top))) == Delta(set(), set())
        assert tree.paths() == git_list(top) == [".gitignore", "a.log", "build/b.log"]
    git(top, "rm", "-q", "--cached", "a.log")
    assert tree.settle(tree.repository.tracked(str(top))) == Delta(set(), {"a.log"})


def test_tracked_files_that_are_deleted_are_left_out(top):
    put(top, "a", "b", "folder/c")
    git(top, "add", ".")
    remove(top / "a")
    remove(top / "folder")
    assert listed(top) == git_list(top) == ["b"]


def test_a_tracked_file_whose_place_another_kind_took_is_left_out(top):
    put(top, "a", "b/c", ".gitignore", text="a/\n")
    git(top, "add", "-f", ".")
    remove(top / "a")
    remove(top / "b")
    put(top, "a/x", "elsewhere/c")
    (top / "b").symlink_to("elsewhere")
    assert listed(top) == git_list(top) == [".gitignore", "b", "elsewhere/c"]


@pytest.mark.parametrize(
    "name", ["a b", " a", "a ", "a\nb", "a\tb", "-a", "é", "日本語", "𝄞", "a\\b", '"', "e\u0301"]
)
def test_names_are_listed_as_they_are(top, name):
    put(top, name, f"{name}.d/{name}")
    assert listed(top) == git_list(top) == sorted([name, f"{name}.d/{name}"])
    put(top, ".gitignore", text="*.d\n")
    assert listed(top) == git_list(top) == sorted([".gitignore", name])


def test_names_that_are_no_text_are_left_out_with_all_below(top):
    put(os.fsencode(top), b"\xff.py", b"folder\xfe/a.py", b"good.py")
    git(top, "add", ".")
    assert listed(top) == git_list(top) == ["good.py"]


def test_rules_are_compared_byte_by_byte(top):
    put(top, ".gitignore", text="?.a\n[é]\n??.b\n")
    put(top, "é.a", "x.a", "é", "é.b", "x.b")
    assert listed(top) == git_list(top)
    assert "é.a" in listed(top)
    assert "é.b" not in listed(top)


def test_links_are_listed_and_not_followed(top, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    put(outside, "secret")
    put(top, "real/a")
    for name, target in {"out": outside, "in": "real", "broken": "nowhere", "self": "self", "up": ".."}.items():
        (top / name).symlink_to(target)
    assert listed(top) == git_list(top) == ["broken", "in", "out", "real/a", "self", "up"]


def test_a_rule_for_folders_spares_a_link_to_one(top):
    put(top, ".gitignore", text="in/\n")
    put(top, "real/a")
    (top / "in").symlink_to("real")
    assert listed(top) == git_list(top) == [".gitignore", "in", "real/a"]


def test_a_rule_file_that_is_a_link_has_no_rules(top):
    put(top, "rules", text="*\n")
    (top / ".gitignore").symlink_to("rules")
    assert listed(top) == git_list(top) == [".gitignore", "rules"]


def test_what_is_neither_file_nor_link_is_left_out(top):
    os.mkfifo(top / "pipe")
    os.mkfifo(top / ".gitignore")
    put(top, "a")
    assert listed(top) == ["a"]


def test_a_repository_within_is_neither_entered_nor_listed(top):
    put(top, "inner/a", "a")
    git(top / "inner", "init", "-q")
    assert listed(top) == git_list(top) == ["a"]


def test_a_repository_within_is_entered_when_files_in_it_are_tracked_from_outside(top):
    put(top, "inner/a", "inner/b", "inner/deep/c", "inner/.gitignore", text="*.log\n")
    put(top, "inner/b.log", "inner/other/d")
    git(top, "add", "inner/deep/c")
    git(top / "inner", "init", "-q")
    tree = settled(top)
    assert tree.paths() == git_list(top)
    assert "inner/b" in tree.paths()
    git(top, "rm", "-q", "--cached", "inner/deep/c")
    tree.settle(tree.repository.tracked(str(top)))
    assert tree.paths() == git_list(top) == []


def test_a_git_folder_that_is_none_does_not_hide_its_folder(top):
    put(top, "inner/.git/nothing", "inner/a", "other/.git", "other/b", text="not a repository")
    assert listed(top) == git_list(top) == ["inner/a", "other/b"]


def test_a_submodule_is_a_work_tree_of_its_own(top, tmp_path_factory):
    library = tmp_path_factory.mktemp("library")
    git(library, "init", "-q")
    put(library, "lib.py", "lib.log", ".gitignore", text="*.log")
    git(library, "add", ".")
    git(library, "commit", "-qm", "library")
    git(top, "submodule", "--quiet", "add", str(library), "vendor/library")
    put(top, "vendor/library/new.py", "vendor/library/new.log", "vendor/x")
    assert listed(top) == git_list(top) == [".gitmodules", "vendor/x"]
    assert listed(top / "vendor/library") == git_list(top / "vendor/library") == [".gitignore", "lib.py", "new.py"]


def test_a_linked_work_tree_shares_what_is_excluded(top, tmp_path_factory):
    put(top, "a", ".git/info/exclude", text="*.secret\n")
    git(top, "add", "a")
    git(top, "commit", "-qm", "first")
    linked = tmp_path_factory.mktemp("linked") / "tree"
    git(top, "worktree", "add", "-q", str(linked))
    put(linked, "b", "b.secret", "sub/c.secret", "sub/c")
    assert listed(linked) == git_list(linked) == ["a", "b", "sub/c"]
    assert listed(linked / "sub") == git_list(linked / "sub") == ["c"]


def test_a_linked_work_tree_inside_the_first_is_not_entered(top):
    put(top, "a")
    git(top, "add", "a")
    git(top, "commit", "-qm", "first")
    git(top, "worktree", "add", "-q", "inside")
    assert listed(top) == git_list(top) == ["a"]


def test_case_is_ignored_when_git_ignores_it(top):
    git(top, "config", "core.ignorecase", "true")
    put(top, ".gitignore", text="*.LOG\nBuild/\n!Keep.log\n")
    put(top, "a.log", "B.Log", "build/x", "KEEP.LOG", "c", "sub/.GIT/y")
    assert listed(top) == [".gitignore", "KEEP.LOG", "c"]


def test_conflicts_are_listed_once(top):
    put(top, "a", text="1\n")
    git(top, "add", "a")
    git(top, "commit", "-qm", "one")
    git(top, "checkout", "-qb", "side")
    put(top, "a", text="2\n")
    git(top, "commit", "-qam", "two")
    git(top, "checkout", "-q", "main")
    put(top, "a", text="3\n")
    git(top, "commit", "-qam", "three")
    with pytest.raises(Exception, match="non-zero"):
        git(top, "merge", "side")
    assert listed(top) == git_list(top) == ["a"]


def test_without_git_the_rules_are_followed_all_the_same(top, monkeypatch):
    put(top, ".gitignore", ".git/info/exclude", text="*.log\n")
    put(top, "a", "a.log", "sub/.gitignore", text="!b.log\n")
    put(top, "sub/b.log", "forced.log")
    git(top, "add", "-f", "forced.log")
    monkeypatch.setenv("PATH", "")
    assert listed(top) == [".gitignore", "a", "sub/.gitignore", "sub/b.log"]


def test_outside_git_rules_are_followed_likewise(tmp_path):
    put(tmp_path, ".gitignore", text="*.log\nbuild/\n")
    put(tmp_path, "a", "a.log", "build/b", "sub/.gitignore", text="!keep.log\n")
    put(tmp_path, "sub/keep.log", "sub/other.log")
    assert find(str(tmp_path)) is None
    assert listed(tmp_path) == [".gitignore", "a", "sub/.gitignore", "sub/keep.log"]


def test_outside_git_a_repository_is_entered_with_its_own_rules(tmp_path):
    put(tmp_path, "project/a", "project/a.tmp", "a.tmp")
    git(tmp_path / "project", "init", "-q")
    put(tmp_path, "project/.git/info/exclude", text="*.tmp\n")
    assert listed(tmp_path) == ["a.tmp", "project/a"]


def test_our_own_unfinished_files_are_left_out(tmp_path):
    put(tmp_path, f"a{UNFINISHED}", "a")
    assert listed(tmp_path) == ["a"]


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_left_out_and_told_once(tmp_path):
    put(tmp_path, "a", "closed/b")
    program = (
        "import logging, sys; logging.basicConfig(format='%(message)s');"
        "from ide_bridge.workspace.tree import Tree; tree = Tree(sys.argv[1]);"
        "tree.build(); tree.build(); print(tree.paths())"
    )
    os.chmod(tmp_path / "closed", 0)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        if folder.stat().st_uid == os.geteuid() and folder.name != "tmp":
            os.chmod(folder, 0o755)
    command = [sys.executable, "-c", program, str(tmp_path)]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=os.getcwd())
    assert done.stdout == "['a']\n", done.stderr
    assert done.stderr == f"{tmp_path}/closed/ may not be read and is left out of the file list\n"


def test_a_root_that_is_not_there_is_empty(tmp_path):
    assert listed(tmp_path / "absent") == []


def test_a_tree_that_was_stopped_reads_no_further(tmp_path):
    put(tmp_path, "a/b/c")
    tree = Tree(str(tmp_path))
    tree.stop()
    tree.build()
    assert tree.paths() == []


# -- what is read again ------------------------------------------------------------------------------------


class Watches:
    """Counts which folders are watched."""

    def __init__(self):
        self.watched = []

    def add(self, path):
        watch = [path]
        self.watched.append(watch)
        return watch

    def remove(self, watches):
        for watch in watches:
            self.watched = [other for other in self.watched if other is not watch]

    @property
    def paths(self):
        return sorted(path for (path,) in self.watched)


@pytest.fixture
def watched(tmp_path):
    put(tmp_path, "a/b/c", "a/d", "e/f")
    watches = Watches()
    tree = Tree(str(tmp_path), watches)
    tree.build()
    return tree, watches, tmp_path


def test_every_folder_is_watched_once_and_hidden_ones_are_not(top):
    put(top, ".gitignore", text="build/\n")
    put(top, "build/x", "src/deep/y")
    watches = Watches()
    tree = Tree(str(top), watches)
    tree.build()
    assert watches.paths == ["", "src/", "src/deep/"]
    tree.build()
    assert watches.paths == ["", "src/", "src/deep/"]
    tree.close()
    assert watches.paths == []


def test_rereading_a_folder_finds_what_joined_and_left(watched):
    tree, watches, root = watched
    put(root, "a/new", "a/g/h/i")
    remove(root / "a/d")
    assert tree.rescan(["a/"]) == Delta({"a/new", "a/g/h/i"}, {"a/d"})
    assert tree.paths() == ["a/b/c", "a/g/h/i", "a/new", "e/f"]
    assert watches.paths == ["", "a/", "a/b/", "a/g/", "a/g/h/", "e/"]


def test_a_folder_replaced_under_its_name_is_read_with_all_below(watched):
    tree, watches, root = watched
    (root / "a").rename(root / "old")
    put(root, "a/b/other")
    delta = tree.rescan([], ["a/", "old/"])
    assert delta == Delta({"a/b/other", "old/b/c", "old/d"}, {"a/b/c", "a/d"})
    assert watches.paths == ["", "a/", "a/b/", "e/", "old/", "old/b/"]


def test_a_folder_that_vanished_is_dropped_with_its_watches(watched):
    tree, watches, root = watched
    remove(root / "a")
    assert tree.rescan(["a/b/", "a/", ""]) == Delta(set(), {"a/b/c", "a/d"})
    assert watches.paths == ["", "e/"]


def test_other_rules_are_obeyed_in_all_folders_below(watched):
    tree, watches, root = watched
    put(root, "a/.gitignore", text="b/\nd\n")
    assert tree.rescan(["a/"]) == Delta({"a/.gitignore"}, {"a/b/c", "a/d"})
    assert watches.paths == ["", "a/", "e/"]
    remove(root / "a/.gitignore")
    assert tree.rescan(["a/"]) == Delta({"a/b/c", "a/d"}, {"a/.gitignore"})


def test_suspicion_of_what_is_unknown_is_harmless(watched):
    tree, _, _ = watched
    assert tree.rescan(["nowhere/", "a/b/c/"], ["nothing/at/all/"]) == Delta(set(), set())


def test_only_listed_files_are_said_to_be_listed(watched):
    tree, _, _ = watched
    assert tree.listed(["a/d", "a/b", "a/zz", "no/where", "e/f"]) == {"a/d", "e/f"}


names = st.sampled_from("abc")
deltas = st.builds(
    lambda created, deleted: Delta(created - deleted, deleted - created), st.sets(names), st.sets(names)
)


@given(st.sets(names), deltas, deltas)
def test_two_deltas_in_a_row_are_one(start, first, second):
    def applied(files, delta):
        return (files | delta.created) - delta.deleted

    middle = applied(start, Delta(first.created - start, first.deleted & start))
    first = Delta(middle - start, start - middle)
    end = applied(middle, second)
    second = Delta(end - middle, middle - end)
    assert first.then(second) == Delta(end - start, start - end)
