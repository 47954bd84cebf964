"""What git ignores, asked for one path: git itself is the judge."""

import os
import subprocess

import pytest

from ide_bridge.workspace.hidden import Hidden
from ide_bridge.workspace.places import Place, Root
from tests.fakes.programs import program
from tests.fakes.surroundings import at_home

FILES = [
    "a.log",
    "kept.log",
    "tracked.log",
    "src/a.py",
    "src/a.log",
    "src/b.tmp",
    "src/deep/b.tmp",
    "build/x",
    "build/kept.log",
    "lib/build",
    "not/there/a.log",
    "not/there/a.txt",
    "mine.private",
]


@pytest.fixture
def home():
    with at_home() as home:
        yield home


def git(folder, *arguments):
    command = [program("git"), "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=30)


def filled(folder):
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / ".gitignore").write_text("*.log\n!kept.log\nbuild/\n", encoding="utf-8")
    (folder / "src" / ".gitignore").write_text("*.tmp\n/a.py\n!/a.log\n", encoding="utf-8")
    (folder / "src" / "deep" / ".gitignore").write_text("!b.tmp\n", encoding="utf-8")
    (folder / "tracked.log").write_text("", encoding="utf-8")


def hidden(folder, *names):
    root, asked = Root.of(str(folder), "w"), Hidden()
    return {name for name in names if asked(Place(root, name))}


def test_one_path_is_judged_as_git_judges_it(home, tmp_path):
    filled(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", "tracked.log")
    (tmp_path / ".git" / "info" / "exclude").write_text("*.private\n", encoding="utf-8")
    ignored = set(git(tmp_path, "check-ignore", *FILES).stdout.split())
    assert hidden(tmp_path, *FILES) == ignored
    assert {"a.log", "src/a.py", "build/x", "mine.private"} <= ignored
    assert ignored.isdisjoint({"kept.log", "tracked.log", "src/a.log", "src/deep/b.tmp"})


def test_rules_above_the_folder_and_the_users_own_count(home, tmp_path):
    filled(tmp_path)
    git(tmp_path, "init", "-q")
    (home.path / ".config" / "git").mkdir(parents=True)
    (home.path / ".config" / "git" / "ignore").write_text("*.swp\n", encoding="utf-8")
    assert hidden(tmp_path / "src", "b.tmp", "a.py", "b.py", "x.swp") == {"b.tmp", "a.py", "x.swp"}
    assert hidden(tmp_path / "build", "x") == {"x"}


def test_outside_of_git_the_rule_files_count(home, tmp_path):
    filled(tmp_path)
    assert hidden(tmp_path, *FILES) == {
        "a.log", "tracked.log", "src/a.py", "src/b.tmp", "build/x", "build/kept.log", "not/there/a.log",
    }  # fmt: skip


def test_a_changed_rule_counts_at_once(home, tmp_path):
    root, asked = Root.of(str(tmp_path), "w"), Hidden()
    assert not asked(Place(root, "a.txt"))
    (tmp_path / ".gitignore").write_text("a.txt\n", encoding="utf-8")
    assert asked(Place(root, "a.txt"))


def test_a_pipe_in_place_of_a_rule_file_holds_nobody_up(home, tmp_path):
    os.mkfifo(tmp_path / ".gitignore")
    assert hidden(tmp_path, "a.txt") == set()
