"""``ide-bridge plugin`` as its users run it, with the real editors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ide_bridge.cli.plugin import folder_of
from tests.fakes.claude_cli import Home
from tests.fakes.programs import program

PROGRAM = [str(Path(sys.executable).with_name("ide-bridge")), "plugin"]
PATIENCE = 60


@pytest.fixture
def home():
    with Home() as home:
        yield home


def plugin(home, *arguments, **variables):
    done = subprocess.run(
        [*PROGRAM, *arguments], env={**home.environment, **variables}, capture_output=True, encoding="utf-8",
        timeout=PATIENCE, cwd=home.path,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("editor", ["vim", "nvim", "emacs"])
def test_it_prints_the_folder_of_a_plugin(home, editor):
    assert plugin(home, editor) == (0, f"{folder_of(editor)}\n", "")
    assert os.path.isdir(folder_of(editor))


@pytest.mark.parametrize(("editor", "where"), [("vim", ".vim"), ("nvim", ".local/share/nvim/site")])
def test_installed_it_is_there_when_the_editor_starts(home, editor, where):
    name = program(editor)
    code, told, _ = plugin(home, editor, "--install")
    assert code == 0
    assert ":IdeBridgeStart" in told
    link = home.path / where / "pack/ide-bridge/start/ide-bridge"
    assert os.path.realpath(link) == os.path.realpath(folder_of(editor))
    seen = home.path / "seen"
    subprocess.run(
        [name, *(["--headless"] if editor == "nvim" else ["-es", "-N", "-i", "NONE"]),
         "--cmd", "filetype plugin on", "-u", "NORC",
         "-c", "runtime! plugin/**/*.vim", "-c", "packloadall",
         "-c", f"call writefile([exists(':IdeBridgeStart'), len(getcompletion('ide_bridge', 'help'))], '{seen}')",
         "-c", "qa!"],
        env=home.environment, cwd=home.path, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    command, helps = seen.read_text(encoding="utf-8").split()
    assert command == "2"
    assert int(helps) > 0


def test_installing_twice_is_fine_and_what_is_not_ours_stays(home):
    program("vim")
    assert plugin(home, "vim", "--install")[0] == 0
    assert plugin(home, "vim", "--install")[0] == 0
    link = home.path / ".vim/pack/ide-bridge/start/ide-bridge"
    link.unlink()
    link.mkdir()
    code, _, told = plugin(home, "vim", "--install")
    assert code == 1
    assert "no link of ours" in told
    assert link.is_dir()


def test_emacs_installs_it_as_a_package(home):
    emacs = program("emacs")
    for _once_more_after_an_upgrade in range(2):
        code, told, error = plugin(home, "emacs", "--install")
        assert (code, error) == (0, "")
        assert "M-x ide-bridge-mode" in told
    load = "(autoload-do-load (symbol-function 'ide-bridge-mode))"
    used = f"(progn (package-initialize) {load} (princ ide-bridge-mode-map))"
    shown = subprocess.run(
        [emacs, "--batch", "--eval", used],
        env=home.environment, cwd=home.path, capture_output=True, encoding="utf-8", timeout=PATIENCE,
    )  # fmt: skip
    assert shown.stdout.startswith("(keymap")


def test_without_emacs_it_says_what_to_do(home):
    code, _, told = plugin(home, "emacs", "--install", PATH="/nowhere")
    assert code == 1
    assert "M-x package-install-file" in told


def test_another_editor_is_wrong_usage(home):
    assert plugin(home, "ed")[0] == 2


def test_the_wheel_carries_the_plugins():
    import tomllib

    root = Path(__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {"editors": "ide_bridge/editors"}
