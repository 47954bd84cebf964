"""Claude's deny rules: the table of its documentation, the files they come from, and files that change."""

import json
import logging
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.workspace.deny_rules import DenyRules, managed_folder
from ide_bridge.workspace.places import Place, Root
from tests.fakes.programs import program
from tests.fakes.surroundings import at_home

PATIENCE = 10.0


class House:
    """A home with a workspace in it, and the settings files that count there."""

    def __init__(self, home, base):
        self.home = home.path
        self.user = home.config / "settings.json"
        self.folder = home.path / "work"
        self.project = self.folder / ".claude" / "settings.json"
        self.local = self.folder / ".claude" / "settings.local.json"
        self.managed = base / "managed"
        self.folder.mkdir()
        self.roots = self.made_of(self.folder)
        self.rules = DenyRules(lambda: self.roots, managed=str(self.managed))

    def made_of(self, *folders):
        return tuple(Root.of(str(folder), folder.name) for folder in folders)

    def find(self, path, root=0):
        return self.rules.find(Place(self.roots[root], path))

    def find_now(self, path):
        """Ask as if folders had joined or left, so that every file is looked at."""
        self.roots = self.made_of(*(Path(root.path) for root in self.roots))
        return self.find(path)

    def find_soon(self, path, rule):
        """Ask until the files are looked at because a second has passed."""
        end = time.monotonic() + PATIENCE
        while (found := self.find(path)) != rule and time.monotonic() < end:
            time.sleep(0.02)
        return found


def deny(file, *rules):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"permissions": {"deny": rules}}), encoding="utf-8")


@pytest.fixture
def house(tmp_path):
    with at_home() as home:
        yield House(home, tmp_path)


@pytest.mark.parametrize(
    ("pattern", "denied", "allowed"),
    [
        (".env", [".env", "a/b/.env"], [".env.local", "a.env"]),
        ("**/.env", [".env", "a/b/.env"], [".envrc"]),
        ("./.env", [".env", "a/.env"], ["env"]),
        ("*.env", ["x.env", "a/x.env"], ["env"]),
        ("secrets/**", ["secrets/a", "secrets/a/b", "vendor/secrets/a"], ["secret/a"]),
        ("./secrets/**", ["secrets/a", "vendor/secrets/a"], ["a"]),
        ("src/parts/**", ["src/parts/a"], ["vendor/src/parts/a", "src/a"]),
        ("**/src/**", ["src/a", "vendor/src/a"], ["a"]),
        ("/src/**", ["src/a"], ["vendor/src/a"]),
        ("/src/**/*.ts", ["src/a.ts", "src/x/y/a.ts"], ["src/a.js", "lib/a.ts"]),
        ("/**", ["a", "b/c"], []),
        ("**", ["a", "b/c"], []),
        ("*", ["a", "b/c"], []),
        ("", ["a", "b/c"], []),
        ("config/*.json", ["config/a.json"], ["config/a.yml", "x/config/a.json"]),
        ("./Finance (2024)/**", ["Finance (2024)/a"], ["Finance 2024/a"]),
        ("SECRET.txt", ["secret.TXT"], []),
        ("#notes", ["#notes"], ["notes"]),
        ("[", ["["], ["a"]),
        ("a[b", ["a[b"], ["ab"]),
        ("folder/", ["folder/a"], ["folder"]),
    ],
)
def test_a_pattern_denies_what_the_documentation_says(house, pattern, denied, allowed):
    deny(house.project, f"Read({pattern})")
    assert {path: house.find(path) for path in denied} == dict.fromkeys(denied, f"Read({pattern})")
    assert {path: house.find(path) for path in allowed} == dict.fromkeys(allowed)


@pytest.mark.parametrize("rule", ["Read", " Read ", "Read()", "Read(*)", "*", "R*", "Read(//**)", "Read(~/**)"])
def test_a_rule_may_deny_everything(house, rule):
    deny(house.user, rule)
    assert house.find("any/file") == rule


@pytest.mark.parametrize(
    "rule",
    [
        "Bash",
        "Bash(cat secret)",
        "Edit(secret)",
        "Write",
        "ReadX(secret)",
        "read(secret)",
        "mcp__*",
        "Read(secret",
        "Read(//secret\0)",
        "Read(~/\0)",
        "Read(sec\0ret)",
        "",
    ],
)
def test_rules_about_other_things_deny_no_file(house, rule):
    deny(house.user, rule)
    assert house.find("secret") is None


def test_absolute_patterns_begin_at_the_root_and_at_home(house):
    deny(
        house.user,
        f"Read(/{house.folder}/one)",
        "Read(~/work/two)",
        "Read(~/other/**)",
        f"Read({house.folder}/three)",
    )
    assert house.find("one") == f"Read(/{house.folder}/one)"
    assert house.find("two") == "Read(~/work/two)"
    assert [house.find(path) for path in ("three", "a/one", "a/two", "four")] == [None] * 4


def test_a_slash_means_the_place_where_the_file_belongs(house):
    deny(house.user, "Read(/secret)")
    deny(house.managed / "managed-settings.json", "Read(/hers)")
    deny(house.local, "Read(/mine)")
    assert house.find("secret") is None
    assert house.find("hers") == "Read(/hers)"
    assert house.find("a/hers") is None
    assert house.find("mine") == "Read(/mine)"
    house.roots = house.made_of(house.user.parent)
    assert house.find("secret") == "Read(/secret)"


@pytest.mark.parametrize("odd", ["a[b]", "a*", "we!rd #1", "back\\slash"])
def test_a_folder_whose_name_looks_like_a_pattern_is_taken_by_its_name(house, odd):
    folder = house.home / odd
    deny(folder / ".claude" / "settings.json", "Read(/keys/*)")
    house.roots = house.made_of(folder)
    assert house.find("keys/one") == "Read(/keys/*)"
    assert house.find("x/keys/one") is None


def test_every_file_counts_and_none_takes_back_what_another_said(house):
    deny(house.user, "Read(users)")
    deny(house.managed / "managed-settings.json", "Read(managed)")
    deny(house.managed / "managed-settings.d" / "10-more.json", "Read(more)")
    deny(house.project, "Read(projects)", "Read(!users)", "Read(!managed)")
    deny(house.local, "Read(!projects)", "Read(!**)")
    names = ("users", "managed", "more", "projects")
    assert [house.find(name) for name in names] == [f"Read({name})" for name in names]


def test_an_exception_reaches_only_plain_rules_before_it_in_its_file(house):
    deny(
        house.user,
        "Read(!late.env)",
        "Read(*.env)",
        "Read(!sample.env)",
        "Read(~/work/*.key)",
        "Read(!sample.key)",
    )
    assert house.find("a/sample.env") is None
    assert house.find("late.env") == "Read(*.env)"
    assert house.find("sample.key") == "Read(~/work/*.key)"


def test_an_exception_does_not_open_a_folder_that_is_denied_as_a_whole(house):
    deny(house.user, "Read(secrets/*)", "Read(!secrets/open/**)", "Read(keys/**)", "Read(!keys/public/**)")
    assert house.find("secrets/open/a") == "Read(secrets/*)"
    assert house.find("keys/public/a") == "Read(keys/**)"


def test_a_rule_that_goes_through_a_link_counts_where_the_link_leads(house):
    (house.folder / "real").mkdir()
    (house.folder / "link").symlink_to("real")
    (house.home / "way").symlink_to(house.folder)
    deny(house.user, "Read(~/way/a.txt)", "Read(~/way/link/**)")
    assert house.find("a.txt") == "Read(~/way/a.txt)"
    assert house.find("real/x") == house.find("link/x") == "Read(~/way/link/**)"


def test_each_folder_of_the_workspace_has_its_own_rules(house):
    second = house.home / "second"
    deny(house.project, "Read(./first.txt)")
    deny(second / ".claude" / "settings.json", "Read(/own.txt)", "Read(plain.txt)")
    deny(house.user, "Read(both.txt)")
    house.roots = house.made_of(house.folder, second)
    assert [house.find("first.txt"), house.find("first.txt", 1)] == ["Read(./first.txt)", None]
    assert [house.find("plain.txt"), house.find("plain.txt", 1)] == [None, "Read(plain.txt)"]
    assert [house.find("own.txt"), house.find("own.txt", 1)] == [None, "Read(/own.txt)"]
    assert [house.find("both.txt"), house.find("a/both.txt", 1)] == ["Read(both.txt)"] * 2


def test_a_folder_inside_another_keeps_its_rules_whichever_way_it_is_reached(house):
    inner = house.folder / "inner"
    deny(inner / ".claude" / "settings.json", "Read(a.txt)")
    house.roots = house.made_of(house.folder, inner)
    assert house.find("inner/a.txt") == "Read(a.txt)"
    assert house.find("a.txt") is None


def test_the_local_file_of_the_whole_work_tree_counts_in_its_folders(house):
    subprocess.run([program("git"), "init", "-q", house.folder], check=True, timeout=30)
    part = house.folder / "part"
    part.mkdir()
    deny(house.local, "Read(/x)")
    house.roots = house.made_of(part)
    assert house.find("x") == "Read(/x)"


def test_without_the_variable_the_usual_folder_of_the_user_counts(house, monkeypatch):
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    deny(house.home / ".claude" / "settings.json", "Read(a)")
    assert house.find("a") == "Read(a)"


def test_changes_are_seen(house):
    assert house.find("a") is None
    deny(house.project, "Read(a)")
    assert house.find("a") is None
    assert house.find_soon("a", "Read(a)") == "Read(a)"
    deny(house.project, "Read(b)")
    assert [house.find_now("a"), house.find("b")] == [None, "Read(b)"]
    house.project.unlink()
    assert house.find_now("b") is None


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        '{"permissions": 1}',
        '{"permissions": {"deny": "Read"}}',
        '{"x": ' + "[" * 100_000,
        " " * 1_100_000 + "{}",
        "\0",
    ],
)
def test_a_broken_file_is_said_once_and_its_last_good_rules_stay(house, caplog, broken):
    caplog.set_level(logging.WARNING)
    deny(house.project, "Read(a)")
    assert house.find("a") == "Read(a)"
    for content in (broken, f"{broken} "):
        house.project.write_text(content, encoding="utf-8")
        assert house.find_now("a") == "Read(a)"
    assert len(caplog.records) == 1
    assert str(house.project) in caplog.text
    deny(house.project, "Read(b)")
    assert [house.find_now("a"), house.find("b")] == [None, "Read(b)"]


@pytest.mark.parametrize("content", ["", "{}", '{"permissions": {}}', '{"permissions": {"deny": []}}', "\ufeff{}"])
def test_a_file_without_rules_is_fine(house, caplog, content):
    house.user.write_text(content, encoding="utf-8")
    assert house.find("a") is None
    assert caplog.records == []


def test_entries_that_are_no_rules_are_left_out(house):
    house.user.write_text('{"permissions": {"deny": [1, null, {"Read": 1}, "Read(a)"]}, "x": 1}', encoding="utf-8")
    assert house.find("a") == "Read(a)"


def test_a_pipe_in_place_of_a_file_holds_nobody_up(house, caplog):
    house.project.parent.mkdir()
    os.mkfifo(house.project)
    assert house.find("a") is None
    assert "no regular file" in caplog.text


def test_very_many_rules_deny_all_instead_of_holding_everyone_up(house):
    deny(house.project, *(f"Read(*{number}*a*)" for number in range(20_000)))
    began = time.monotonic()
    assert house.find("a") == "more than 2000 Read rules"
    assert time.monotonic() - began < 1


def test_a_rule_made_to_run_away_does_not(house):
    deny(house.project, "Read(" + "*a" * 60 + "b)", "Read(" + "**/a/" * 40 + "b)")
    began = time.monotonic()
    assert house.find("/".join(["a" * 200] * 10)) is None
    assert house.find("a/" * 400 + "c") is None
    assert time.monotonic() - began < 2


def test_asking_again_costs_next_to_nothing(house):
    deny(house.user, "Read(secret)")
    house.find("a/b/c")
    began = time.perf_counter()
    for _ in range(1000):
        house.find("a/b/c")
    assert time.perf_counter() - began < 0.1


def test_the_administrators_folder_is_an_absolute_path():
    assert os.path.isabs(managed_folder())


@given(
    st.text(max_size=30), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
)
def test_no_rule_is_too_strange(rule, path):
    with at_home() as home:
        deny(home.config / "settings.json", rule, f"Read({rule})")
        root = Root.of(str(home.path), "home")
        DenyRules(lambda: (root,), managed=str(home.path)).find(Place(root, path.strip("/") or "a"))
