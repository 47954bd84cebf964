"""The Neovim plug-in as a package: clean to the linter, loads nothing too early, and has a whole manual."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.nvim import PLUGIN, VERSIONS, nvim_program
from tests.fakes.programs import program

MODULES = sorted((PLUGIN / "lua").rglob("*.lua"))
SOURCES = [*MODULES, *(PLUGIN / "plugin").glob("*.lua")]


def run_nvim(version: str, *commands: str, before: str = "") -> str:
    """What Neovim prints when it runs these commands with the plug-in in its path."""
    arguments = [argument for command in commands for argument in ("-c", command)]
    done = subprocess.run(
        [nvim_program(version), "--clean", "--headless", "--cmd", before, "--cmd", f"set runtimepath^={PLUGIN}",
         *arguments, "-c", "qall!"],
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=20,
    )  # fmt: skip
    return (done.stdout + done.stderr).strip()


def test_the_linter_has_nothing_to_say() -> None:
    done = subprocess.run(
        [program("luacheck"), "--no-color", "."], cwd=PLUGIN, capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_module_can_be_loaded_alone(version: str, module: Path) -> None:
    name = "ide_bridge" if module.stem == "init" else f"ide_bridge.{module.stem}"
    assert run_nvim(version, f"lua require('{name}')") == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_loaded_before_it_is_used(version: str) -> None:
    loaded = "lua for name in pairs(package.loaded) do if name:find('ide_bridge') then print(name) end end"
    assert run_nvim(version, loaded) == ""
    assert run_nvim(version, "echo v:lua.require'ide_bridge'.statusline()", loaded) == "ide_bridge"
    groups = run_nvim(version, "augroup").split()
    assert not [group for group in groups if "ide_bridge" in group]


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_loaded_once(version: str) -> None:
    assert (
        run_nvim(
            version, "delcommand IdeBridgeSend | runtime plugin/ide_bridge.lua | echo exists(':IdeBridgeSend')"
        )
        == "0"
    )


def test_the_manual_tells_every_command_option_and_event(tmp_path: Path) -> None:
    manual = (PLUGIN / "doc" / "ide_bridge.txt").read_text(encoding="utf-8")
    shutil.copy(PLUGIN / "doc" / "ide_bridge.txt", tmp_path)
    assert run_nvim("Debian's", f"helptags {tmp_path}") == ""
    tags = {line.split("\t")[0] for line in (tmp_path / "tags").read_text(encoding="utf-8").splitlines()}
    scripts = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    commands = {f":{name}" for name in re.findall(r'^command\("(IdeBridge\w+)"', scripts, re.MULTILINE)}
    options = {
        f"g:ide_bridge_{name}" for name in re.findall(r"^---@field (\w+) .*\?", options_of(scripts), re.MULTILINE)
    }
    assert len(commands) == 15
    assert len(options) == 4
    assert commands | options <= tags
    events = re.findall(r'raise\("(\w+)"', scripts)
    assert len(events) >= 6
    assert all(f"IdeBridge{event}\t" in manual for event in events)
    links = set(re.findall(r"\|([:g]?:?ide_?bridge[^|]*)\|", manual, re.IGNORECASE))
    assert links <= tags, "what is linked is there"


def options_of(scripts: str) -> str:
    """The part of the sources that declares the options."""
    return scripts.partition("---@class ide_bridge.Options")[2].partition("local defaults")[0]


def test_the_manual_fits_a_screen() -> None:
    manual = (PLUGIN / "doc" / "ide_bridge.txt").read_text(encoding="utf-8")
    assert [line for line in manual.expandtabs(8).splitlines() if len(line) > 79] == []


def test_a_neovim_that_cannot_is_told_so_when_it_is_asked() -> None:
    old = "lua vim.api.nvim_create_user_command = nil"
    assert run_nvim("Debian's", before=old) == ""
    assert "needs Neovim 0.7" in run_nvim("Debian's", "IdeBridgeStart", before=old)


def package_folder(home: Path) -> Path:
    return home / ".local/share/nvim/site/pack/ide-bridge/start"


@pytest.mark.parametrize("version", VERSIONS)
def test_as_a_native_package(version: str, tmp_path: Path) -> None:
    package_folder(tmp_path).mkdir(parents=True)
    (package_folder(tmp_path) / "ide-bridge").symlink_to(PLUGIN)
    found = found_by(version, tmp_path, "")
    assert found == ["2", "ide_bridge"]


@pytest.mark.parametrize("version", VERSIONS)
def test_as_a_manager_without_sub_folders_loads_it(version: str, tmp_path: Path) -> None:
    """What the README's lines for lazy.nvim and vim.pack run, once the manager has the checkout."""
    init = f"lua vim.opt.rtp:append('{PLUGIN}'); vim.cmd('runtime plugin/ide_bridge.lua')"
    assert found_by(version, tmp_path, init) == ["2", "ide_bridge"]


def found_by(version: str, home: Path, init: str) -> list[str]:
    """Whether a user whose init file has one line has the commands, and the module."""
    (home / ".config/nvim").mkdir(parents=True)
    (home / ".config/nvim/init.vim").write_text(init + "\n", encoding="utf-8")
    ask = "lua io.stdout:write(vim.fn.exists(':IdeBridgeStart'), ' ', require('ide_bridge') and 'ide_bridge')"
    done = subprocess.run(
        [nvim_program(version), "--headless", "-c", ask, "-c", "qall!"],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=20,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()
