"""The user's settings, and how a workspace may only make them stricter."""

import os

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.settings import (
    SECRETS,
    ApprovalPolicy,
    Approvals,
    FolderApprovals,
    Linter,
    LiveSettings,
    Settings,
    load_settings,
    stricter,
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "ide-bridge"
    folder.mkdir(parents=True)
    return folder / "settings.toml"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(path, text):
    path.write_text(text, encoding="utf-8")


def test_without_a_file_everything_is_as_it_is_by_default(config, folder):
    assert load_settings((str(folder),)) == Settings()


def test_every_setting_is_read(config):
    write(
        config,
        'share = "path"\ndeny = ["*.secret"]\nhide_ignored = true\n'
        '[[linters]]\nglob = "*.py"\ncommand = ["ruff"]\n',
    )
    assert load_settings() == Settings("path", "full", ("*.secret",), True, (Linter("*.py", ("ruff",)),))


@pytest.mark.parametrize(
    ("users", "theirs", "holds"),
    [("full", "off", "off"), ("off", "full", "off"), ("path", "full", "path"), ("path", "off", "off")],
)
def test_a_workspace_can_only_share_less(config, folder, users, theirs, holds):
    write(config, f'share = "{users}"')
    write(folder / ".ide-bridge.toml", f'share = "{theirs}"')
    settings = load_settings((str(folder),))
    assert stricter(settings.share, settings.at_least) == holds
    assert (settings.share, settings.at_least) == (users, theirs)


def test_a_workspace_can_only_deny_more_and_brings_no_commands(config, folder):
    write(config, 'deny = ["a"]\n[[linters]]\nglob = "*"\ncommand = ["mine"]\n')
    write(
        folder / ".ide-bridge.toml",
        'deny = ["b", "!a"]\nhide_ignored = true\n[[linters]]\nglob = "*"\ncommand = ["theirs"]\n',
    )
    settings = load_settings((str(folder),))
    assert settings.deny == ("a", "b")
    assert settings.hide_ignored
    assert [linter.command for linter in settings.linters] == [("mine",)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('share = "some"', "share must be one of full, path, off"),
        ("share = 1", "share must be one of full, path, off"),
        ("hide_ignored = 1", "hide_ignored must be true or false"),
        ("deny = [1]", "deny[0] must be a text"),
        ("shared = true", "shared is unknown"),
        ("[[linters]]\nglob = '*'", "linters[0].command is missing"),
    ],
)
def test_a_wrong_setting_is_named_with_what_it_must_be(config, text, words):
    write(config, text)
    with pytest.raises(SetupProblem) as raised:
        load_settings()
    assert str(raised.value) == f"{config} is not understood: {words}."


@pytest.mark.parametrize(
    "text", ["share = 1", 'share = "some"', "shared = true", "share =", "\xff = 1", "[[linters]]\nglob = ''"]
)
def test_what_is_not_understood_is_named_in_one_sentence(config, text):
    config.write_bytes(text.encode("latin-1"))
    with pytest.raises(SetupProblem, match=r"settings\.toml is not understood: .+\."):
        load_settings()


@pytest.fixture
def watchful(monkeypatch):
    """Files are looked at whenever somebody asks."""
    monkeypatch.setattr("ide_bridge.settings._TRUSTED_SECONDS", -1.0)


def test_a_change_is_seen_and_all_else_gives_the_same_object(config, folder, watchful):
    settings = LiveSettings([str(folder)])
    assert settings() is settings()
    write(config, 'share = "path"\ndeny = ["a"]')
    assert (settings().share, settings().deny) == ("path", ("a",))
    write(folder / ".ide-bridge.toml", 'share = "off"\ndeny = ["b"]')
    assert (settings().at_least, settings().deny) == ("off", ("a", "b"))
    config.unlink()
    assert (settings().share, settings().deny) == ("full", ("b",))


def test_a_file_that_breaks_keeps_its_last_word_and_is_told_of_once(config, folder, watchful, caplog):
    write(config, 'deny = ["a"]')
    settings = LiveSettings([str(folder)])
    before = settings()
    for text in ("deny = [", "deny = 1"):
        write(config, text)
        assert settings() is before
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [f"{config} is not understood"]
    assert caplog.text.rstrip().endswith("What it said before still holds.")
    write(config, 'deny = ["b"]')
    assert settings().deny == ("b",)
    write(config, "deny = [")
    assert settings().deny == ("b",)
    assert len(caplog.records) == 2


def test_files_are_looked_at_once_a_second_at_most(config, folder):
    settings = LiveSettings([str(folder)])
    write(config, 'deny = ["a"]')
    assert settings() == Settings()


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(folder, config):
    os.mkfifo(folder / ".ide-bridge.toml")
    with pytest.raises(SetupProblem, match="cannot be read: it is no regular file"):
        load_settings((str(folder),))


# -- approvals ---------------------------------------------------------------------------------------------

APPROVALS = """
deny = ["*.mine"]
[approvals]
policy = "read-only"
seconds = 60
allow = ["Bash(git status)"]
deny = ["Bash(rm:*)"]
"""


def policy_of(folder, roots=()):
    return LiveSettings([str(root) for root in roots]).approval_policy(str(folder))


def test_without_a_file_every_question_is_asked_and_waits(config, folder):
    assert policy_of(folder) == ApprovalPolicy("ask", 0.0, (), (), SECRETS)


def test_the_user_says_what_is_decided_without_him(config, folder):
    write(config, APPROVALS)
    expected = ApprovalPolicy("read-only", 60.0, ("Bash(git status)",), ("Bash(rm:*)",), (*SECRETS, "*.mine"))
    assert policy_of(folder) == expected
    assert load_settings().approval_policy(str(folder)) == expected


def test_the_innermost_folder_that_says_something_wins_and_rules_add_up(config, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    inner, outer = tmp_path / "work" / "big", tmp_path / "work"
    inner.mkdir(parents=True)
    write(
        config,
        APPROVALS
        + '[[approvals.workspaces]]\nfolder = "~/work/big"\nseconds = 0\nallow = ["B"]\ndeny = ["b"]\n'
        + f'[[approvals.workspaces]]\nfolder = "{outer}"\npolicy = "ask"\nseconds = 5\nallow = ["A"]\n',
    )
    inside, around, beside = policy_of(inner), policy_of(outer), policy_of(tmp_path / "workshop")
    assert (inside.policy, inside.seconds) == ("ask", 0.0)
    assert (inside.allow, inside.deny) == (("Bash(git status)", "A", "B"), ("Bash(rm:*)", "b"))
    assert (around.policy, around.seconds, around.allow) == ("ask", 5.0, ("Bash(git status)", "A"))
    assert (beside.policy, beside.seconds, beside.allow) == ("read-only", 60.0, ("Bash(git status)",))


def test_a_folder_counts_where_it_really_lies(config, tmp_path):
    (tmp_path / "real" / "sub").mkdir(parents=True)
    os.symlink(tmp_path / "real", tmp_path / "link")
    tables = (FolderApprovals(str(tmp_path / "link"), policy="read-only"),)
    for folder in ("real", "link", "real/sub", "link/sub"):
        assert Approvals(workspaces=tables).for_folder(str(tmp_path / folder)).policy == "read-only"
    assert Approvals(workspaces=tables).for_folder(str(tmp_path / "reality")).policy == "ask"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("policy = 'all'", "Invalid enum value 'all' in approvals.policy"),
        ("seconds = -1", "approvals.seconds must be a number >= 0.0"),
        ("seconds = inf", "approvals.seconds must be a number <= 604800.0"),
        ("seconds = nan", "approvals.seconds must be a number >= 0.0"),
        ("allow = ['Bash(rm']", "'Bash(rm' is no rule; write Tool or Tool(what) in approvals"),
        ("deny = ['']", "'' is no rule; write Tool or Tool(what) in approvals"),
        ("deny = ['--x']", "'--x' is no rule; write Tool or Tool(what) in approvals"),
        ("deny = ['a,b']", "'a,b' is no rule; write Tool or Tool(what) in approvals"),
        ("denied = []", "approvals.denied is unknown"),
        (f"deny = {['x'] * 1001}", "approvals.deny must be a list of length <= 1000"),
        (
            "[[approvals.workspaces]]\nfolder = 'big'",
            "folder must begin with / or ~, and 'big' does not in approvals.workspaces[0]",
        ),
        (
            "[[approvals.workspaces]]\nfolder = '/a'\ndeny = ['a b']",
            "'a b' is no rule; write Tool or Tool(what) in approvals.workspaces[0]",
        ),
    ],
)
def test_a_wrong_rule_or_limit_is_named(config, text, words):
    write(config, f"[approvals]\n{text}")
    with pytest.raises(SetupProblem) as raised:
        load_settings()
    assert str(raised.value) == f"{config} is not understood: {words}."


@pytest.mark.parametrize(
    "theirs", ['approvals = "ask"', '[approvals]\npolicy = "ask"', "approvals = [", "approvals = 1"]
)
def test_a_workspace_can_have_everything_asked(config, folder, theirs):
    write(config, APPROVALS)
    write(folder / ".ide-bridge.toml", theirs)
    policy = policy_of(folder)
    assert (policy.policy, policy.allow, policy.deny) == ("ask", (), ("Bash(rm:*)",))


def test_a_workspace_can_deny_more_and_allow_nothing(config, folder):
    write(config, APPROVALS)
    write(
        folder / ".ide-bridge.toml",
        'deny = ["*.theirs"]\n[approvals]\nallow = ["Bash"]\nseconds = 1\ndeny = ["Bash(git push:*)"]\n',
    )
    policy = policy_of(folder)
    assert policy.deny == ("Bash(rm:*)", "Bash(git push:*)")
    assert (policy.policy, policy.seconds, policy.allow) == ("read-only", 60.0, ("Bash(git status)",))
    assert policy.withheld[-2:] == ("*.mine", "*.theirs")


def test_the_word_of_a_workspace_holds_in_its_subfolders_and_nowhere_else(config, folder):
    write(config, APPROVALS)
    (folder / "sub").mkdir()
    other = folder.parent / "other"
    other.mkdir()
    write(folder / ".ide-bridge.toml", 'approvals = "ask"')
    assert policy_of(folder / "sub", roots=[folder, other]).policy == "ask"
    assert policy_of(other, roots=[folder, other]).policy == "read-only"
    assert policy_of(folder / "sub").policy == "read-only"


def test_a_change_counts_for_the_next_question(config, folder, watchful, caplog):
    settings = LiveSettings([str(folder)])
    write(config, APPROVALS)
    assert settings.approval_policy(str(folder)).policy == "read-only"
    theirs = folder / ".ide-bridge.toml"
    write(theirs, 'approvals = "ask"')
    assert settings.approval_policy(str(folder)).policy == "ask"
    write(theirs, "approvals = 1")
    assert settings.approval_policy(str(folder)).policy == "ask"
    theirs.unlink()
    assert settings.approval_policy(str(folder)).policy == "read-only"


def test_the_files_of_many_folders_are_not_kept(config, tmp_path):
    settings = LiveSettings()
    for number in range(300):
        settings.approval_policy(str(tmp_path / str(number)))
    assert len(settings._visited) <= 101
