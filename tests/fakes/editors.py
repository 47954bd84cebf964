"""The real editors as their users start them: with the plug-in, and attached from the first moment.

It does not know what is done in them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fakes.bridge_process import PROGRAM
from tests.fakes.programs import program

__all__ = ["START", "emacs", "nvim", "vim"]

EDITORS = Path(__file__).parents[2] / "editors"


def vim(home: Path, *, attached: bool = True) -> Sequence[str]:
    """Vim, with settings of its own in this home."""
    settings = home / "vimrc"
    settings.write_text(
        f"set nocompatible hidden\nlet &runtimepath = '{EDITORS / 'vim'},' .. &runtimepath\n"
        f"let g:ide_bridge_command = ['{PROGRAM[0]}']\nlet g:ide_bridge_auto_start = {int(attached)}\n",
        encoding="utf-8",
    )
    return [program("vim"), "-u", str(settings), "-n", "-i", "NONE"]


def nvim(home: Path, *, attached: bool = True) -> Sequence[str]:
    """Neovim, with settings of its own in this home."""
    settings = home / "init.lua"
    settings.write_text(
        f"vim.opt.runtimepath:prepend('{EDITORS / 'nvim'}')\n"
        f"vim.g.ide_bridge_command = {{'{PROGRAM[0]}'}}\nvim.g.ide_bridge_auto_start = {int(attached)}\n",
        encoding="utf-8",
    )
    return [program("nvim"), "-u", str(settings), "-n", "-i", "NONE"]


def emacs(home: Path, *, attached: bool = True) -> Sequence[str]:
    """Emacs in the terminal, with settings of its own in this home."""
    settings = home / "init.el"
    settings.write_text(
        f"(add-to-list 'load-path \"{EDITORS / 'emacs'}\")\n(require 'ide-bridge)\n"
        f'(setq inhibit-startup-screen t ide-bridge-command \'("{PROGRAM[0]}"))\n'
        + "(add-hook 'emacs-startup-hook (lambda () (with-current-buffer (window-buffer) (ide-bridge-start))))\n"
        * attached,
        encoding="utf-8",
    )
    return [program("emacs"), "-nw", "-Q", "-l", str(settings)]


START: dict[str, Callable[[Path], Sequence[str]]] = {"Vim": vim, "Neovim": nvim, "Emacs": emacs}
