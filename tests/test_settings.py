"""The user's settings, and how a workspace may only make them stricter."""

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.settings import Linter, Settings, load_settings


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
    assert settings.share == holds
    assert settings.at_least == theirs


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
    "text", ["share = 1", 'share = "some"', "shared = true", "share =", "\xff = 1", "[[linters]]\nglob = ''"]
)
def test_what_is_not_understood_is_named_in_one_sentence(config, text):
    config.write_bytes(text.encode("latin-1"))
    with pytest.raises(SetupProblem, match=r"settings\.toml is not understood: .+\."):
        load_settings()
