"""The Vim plug-in as a package: it compiles without a word, loads nothing too early, and has a whole manual."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.fakes.programs import program
from tests.fakes.vim import PLUGIN

SCRIPTS = sorted(path.relative_to(PLUGIN) for path in PLUGIN.rglob("*.vim"))


def run_vim(*commands: str, runtime: Path = PLUGIN) -> str:
    """What Vim prints when it runs these commands and nothing else."""
    arguments = [argument for command in commands for argument in ("-c", command)]
    done = subprocess.run(
        [program("vim"), "-N", "-u", "NONE", "-n", "-i", "NONE", "-es", "--cmd", f"set runtimepath^={runtime}",
         "-c", "set verbose=1", *arguments, "-c", "qall!"],
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=20,
    )  # fmt: skip
    return (done.stdout + done.stderr).strip()


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_every_script_compiles_without_a_word(tmp_path: Path, script: Path) -> None:
    for path in SCRIPTS:
        copy = tmp_path / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((PLUGIN / path).read_text(encoding="utf-8"), encoding="utf-8")
    if "vim9script" in (tmp_path / script).read_text(encoding="utf-8").splitlines():
        with (tmp_path / script).open("a", encoding="utf-8") as file:
            file.write("\ndefcompile\n")  # or a function is only looked at when it is called
    assert run_vim(f"source {tmp_path / script}", runtime=tmp_path) == ""


def test_a_script_that_does_not_compile_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "wrong.vim").write_text("vim9script\ndef F()\n  Nothing()\nenddef\ndefcompile\n", encoding="utf-8")
    assert "E117" in run_vim(f"source {tmp_path / 'wrong.vim'}")


def test_nothing_is_loaded_before_it_is_used() -> None:
    load = "runtime plugin/ide_bridge.vim"
    assert re.findall(r"editors/vim/(.*)", run_vim(load, "scriptnames")) == ["plugin/ide_bridge.vim"]
    assert "ide_bridge" not in run_vim(load, "autocmd")


def test_the_manual_tells_every_command_option_and_event(tmp_path: Path) -> None:
    manual = (PLUGIN / "doc" / "ide_bridge.txt").read_text(encoding="utf-8")
    (tmp_path / "ide_bridge.txt").write_text(manual, encoding="utf-8")
    assert run_vim(f"helptags {tmp_path}") == ""
    tags = {line.split("\t")[0] for line in (tmp_path / "tags").read_text(encoding="utf-8").splitlines()}
    scripts = "".join((PLUGIN / path).read_text(encoding="utf-8") for path in SCRIPTS)
    commands = {f":{name}" for name in re.findall(r" (IdeBridge\w+) call ", scripts)}
    options = set(re.findall(r"\bg:ide_bridge_\w+", scripts))
    assert len(commands) == 15
    assert commands | options <= tags
    assert all(f"IdeBridge{event}\t" in manual for event in re.findall(r"Raise\('(\w+)'", scripts))
    links = set(re.findall(r"\|([:g]?:?ide_?bridge[^|]*)\|", manual, re.IGNORECASE))
    assert links <= tags, "what is linked is there"


def test_a_vim_that_cannot_is_told_so_when_it_is_asked(tmp_path: Path) -> None:
    plugin = (PLUGIN / "plugin" / "ide_bridge.vim").read_text(encoding="utf-8")
    (tmp_path / "old.vim").write_text(plugin.replace("has('channel')", "has('nothing')"), encoding="utf-8")
    assert run_vim(f"source {tmp_path / 'old.vim'}") == ""
    assert "needs Vim 9.0 with +channel" in run_vim(f"source {tmp_path / 'old.vim'}", "IdeBridgeStart")
