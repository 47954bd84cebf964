import os
import subprocess

import pytest

from ide_bridge.workspace.repository import Repository, find, git_folder, read_rules
from tests.trees import git, isolate_git, put, remove


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    isolate_git(monkeypatch, home)
    return home


@pytest.fixture
def top(tmp_path):
    git(tmp_path, "init", "-q")
    return tmp_path


def hides(top, name, place=""):
    standing = find(str(top)).standing(place)
    return bool(standing.rules.hidden(place, [name]))


# -- finding -----------------------------------------------------------------------------------------------


def test_a_folder_belongs_to_the_nearest_work_tree_above_it(top):
    put(top, "a/b/c", "a/inner/d/e")
    git(top / "a/inner", "init", "-q")
    assert find(str(top / "a/b")) == Repository(str(top), str(top / ".git"), str(top / ".git"))
    assert find(str(top / "a/inner/d")).top == str(top / "a/inner")


def test_outside_of_all_work_trees_nothing_is_found(tmp_path):
    assert find(str(tmp_path)) is None
    assert find("/") is None


def test_a_linked_work_tree_has_its_own_folder_and_shares_the_common_one(top, tmp_path_factory):
    put(top, "a")
    git(top, "add", "a")
    git(top, "commit", "-qm", "first")
    linked = tmp_path_factory.mktemp("elsewhere") / "linked"
    git(top, "worktree", "add", "-q", str(linked))
    found = find(str(linked))
    assert found == Repository(str(linked), str(top / ".git/worktrees/linked"), str(top / ".git"))


def test_a_git_folder_may_lie_elsewhere(tmp_path):
    git(tmp_path, "init", "-q", "--separate-git-dir", "store", "work")
    assert git_folder(str(tmp_path / "work/.git")) == str(tmp_path / "store")
    put(tmp_path, "work/.git", text="gitdir: ../store\n")
    assert os.path.samefile(git_folder(str(tmp_path / "work/.git")), tmp_path / "store")


@pytest.mark.parametrize("part", ["HEAD", "objects", "refs"])
def test_a_git_folder_without_one_of_its_parts_is_none(top, part):
    remove(top / ".git" / part)
    assert find(str(top)) is None


@pytest.mark.parametrize("text", ["", "gitdir:", "gitdir: nowhere", "nonsense", b"gitdir: \0\xff"])
def test_a_git_file_that_points_nowhere_is_none(tmp_path, text):
    put(tmp_path, ".git", text=text)
    assert find(str(tmp_path)) is None


# -- rules from outside ------------------------------------------------------------------------------------


def test_the_users_own_rules_count(top, home, monkeypatch):
    put(home, ".config/git/ignore", text="mine\n")
    assert hides(top, "mine")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
    assert not hides(top, "mine")
    put(home, "xdg/git/ignore", text="other\n")
    assert hides(top, "other")


@pytest.mark.parametrize("scope", ["--global", "--local"])
@pytest.mark.parametrize("spelling", ["~/rules", "absolute", "relative"])
def test_an_excludes_file_counts_wherever_it_is_named(top, home, scope, spelling):
    put(home, "rules", ".config/git/ignore", text="instead\n")
    put(home, ".config/git/ignore", text="default\n")
    put(top, "rules", text="instead\n")
    named = {"absolute": str(home / "rules"), "relative": "rules"}.get(spelling, spelling)
    git(top, "config", scope, "core.excludesFile", named)
    put(top, "instead", "default")
    ignored = git(top, "ls-files", "-oi", "--exclude-standard").decode().split()
    assert [name for name in ("default", "instead") if hides(top, name)] == ignored == ["instead"]


def test_an_excludes_file_named_in_an_included_file_counts(top, home):
    put(home, "more", text=f"[core]\nexcludesFile = {home}/rules\n")
    put(home, ".gitconfig", text="[include]\npath = more\n")
    put(home, "rules", text="hidden\n")
    assert hides(top, "hidden")


def test_an_excludes_file_named_by_the_surroundings_counts(top, home, monkeypatch):
    put(home, "rules", text="hidden\n")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.excludesFile")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(home / "rules"))
    assert hides(top, "hidden")


def test_an_empty_excludes_file_setting_switches_the_users_rules_off(top, home):
    put(home, ".config/git/ignore", text="mine\n")
    git(top, "config", "core.excludesFile", "")
    put(top, "mine")
    assert git(top, "ls-files", "-oi", "--exclude-standard") == b""
    assert not hides(top, "mine")


def test_nearer_rules_outweigh_farther_ones(top, home):
    put(home, ".config/git/ignore", text="a\nb\n")
    put(top, ".git/info/exclude", text="!a\n!b\n")
    put(top, ".gitignore", text="a\n")
    put(top, "sub/x")
    assert hides(top, "a", "sub/")
    assert not hides(top, "b", "sub/")


def test_below_a_hidden_folder_everything_is_hidden(top):
    put(top, ".gitignore", text="out/\n")
    assert find(str(top)).standing("out/deep/").hidden
    assert not find(str(top)).standing("src/").hidden


@pytest.mark.parametrize(
    ("value", "ignored"), [("true", True), ("yes", True), ("on", True), ("1", True), ("false", False)]
)
def test_case_counts_as_it_is_set(top, value, ignored):
    git(top, "config", "core.ignorecase", value)
    assert find(str(top)).standing("").ignore_case is ignored


def test_whatever_decides_over_a_folder_is_named_as_a_source(top, home):
    sources = find(str(top)).sources("a/b/")
    for path in (".gitignore", "a/.gitignore", ".git/info/exclude", ".git/config"):
        assert str(top / path) in sources
    for path in (".gitconfig", ".config/git/config", ".config/git/ignore"):
        assert str(home / path) in sources
    assert str(top / "a/b/.gitignore") not in sources


def test_the_usual_repository_is_read_without_starting_git(top, monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    assert not find(str(top)).standing("a/").hidden


# -- tracked files -----------------------------------------------------------------------------------------


def test_tracked_files_are_told_relative_to_the_folder(top):
    put(top, "a", "sub/b c", "sub/é\n", "untracked")
    git(top, "add", "a", "sub")
    repository = find(str(top))
    assert repository.tracked(str(top)) == {"a", "sub/b c", "sub/é\n"}
    assert repository.tracked(str(top / "sub")) == {"b c", "é\n"}


def test_the_callers_git_surroundings_do_not_mislead(top, tmp_path_factory, monkeypatch):
    put(top, "a")
    git(top, "add", "a")
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert find(str(top)).tracked(str(top)) == {"a"}


def test_no_program_a_hostile_repository_names_is_run(top):
    program = top / "program"
    put(top, "program", "a", text=f"#!/bin/sh\ntouch {top}/run\n")
    program.chmod(0o755)
    git(top, "add", "a")
    git(top, "config", "core.fsmonitor", str(program))
    assert find(str(top)).tracked(str(top)) == {"a"}
    assert not (top / "run").exists()


def test_asking_leaves_the_index_as_it_is(top):
    put(top, "a")
    git(top, "add", "a")
    os.utime(top / "a", (1, 1))
    before = (top / ".git/index").stat()
    find(str(top)).tracked(str(top))
    assert (top / ".git/index").stat() == before


@pytest.mark.parametrize("reason", ["missing", "broken"])
def test_a_git_that_cannot_answer_knows_no_tracked_files(top, monkeypatch, reason):
    put(top, "a")
    git(top, "add", "a")
    repository = find(str(top))
    if reason == "missing":
        monkeypatch.setenv("PATH", "")
    else:
        put(top, ".git/index", text="nonsense")
    assert repository.tracked(str(top)) == set()


# -- rule files --------------------------------------------------------------------------------------------


def test_a_rule_file_that_cannot_be_read_has_no_rules(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    put(tmp_path, "real", text="x")
    (tmp_path / "link").symlink_to("real")
    for name in ("absent", "pipe", "", "a\0b"):
        assert read_rules(str(tmp_path / name)) == b""
    assert read_rules(str(tmp_path / "link")) == b"x"
    assert read_rules(str(tmp_path / "link"), follow=False) == b""
