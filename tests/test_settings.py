"""The user's settings, and how a workspace may only make them stricter."""

import os

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.settings import Linter, LiveSettings, Settings, load_settings, stricter


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
