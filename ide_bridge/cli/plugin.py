"""``ide-bridge plugin``: where an editor's plug-in lies, and putting it where the editor looks.

The plug-ins come with the bridge, so that both always speak the same version of the link. Vim and Neovim get a
link to the folder; Emacs gets the package installed by its own package manager.

It does not know what a plug-in does.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import ide_bridge
from ide_bridge.errors import SetupProblem

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "folder_of", "run"]

_EDITORS = ("vim", "nvim", "emacs")
_PROGRAM_SECONDS = 60
_NEXT = {
    "vim": "Start Vim and run :IdeBridgeStart, or let g:ide_bridge_auto_start = 1; see :help ide_bridge",
    "nvim": "Start Neovim and run :IdeBridgeStart, or let g:ide_bridge_auto_start = 1; see :help ide_bridge",
    "emacs": "Start Emacs and run M-x ide-bridge-mode; run this command again after an upgrade of ide-bridge",
}


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``plugin``."""
    parser.add_argument("editor", choices=_EDITORS, help="whose plug-in")
    parser.add_argument("--install", action="store_true", help="put it where the editor finds it by itself")


def run(args: "argparse.Namespace") -> int:
    """Print the plug-in's folder, or install it."""
    folder = folder_of(args.editor)
    if not args.install:
        print(folder)
        return 0
    if args.editor == "emacs":
        _install_package(folder)
    else:
        target = _package_folder(args.editor)
        _link(folder, target)
        _index_help(args.editor, os.path.join(folder, "doc"))
        print(f"Linked {target} to {folder}.")
    print(f"{_NEXT[args.editor]}.")
    return 0


def folder_of(editor: str) -> str:
    """Where the plug-in lies: in the package as it is installed, or beside it in a checkout."""
    package = os.path.dirname(os.path.abspath(ide_bridge.__file__))
    for above in (package, os.path.dirname(package)):
        folder = os.path.join(above, "editors", editor)
        if os.path.isdir(folder):
            return folder
    raise SetupProblem(f"The plug-in for {editor} is missing from this installation; install ide-bridge anew.")


def _package_folder(editor: str) -> str:
    """The folder of native packages, which the editor loads by itself."""
    if editor == "vim":
        base = os.path.join("~", "vimfiles" if sys.platform == "win32" else ".vim")
    elif sys.platform == "win32":
        base = os.path.join(os.environ.get("LOCALAPPDATA", "~"), "nvim-data", "site")
    else:
        data = os.environ.get("XDG_DATA_HOME") or os.path.join("~", ".local", "share")
        base = os.path.join(data, "nvim", "site")
    return os.path.join(os.path.expanduser(base), "pack", "ide-bridge", "start", "ide-bridge")


def _link(folder: str, target: str) -> None:
    try:
        if os.path.islink(target):
            os.unlink(target)
        elif os.path.lexists(target):
            raise SetupProblem(f"{target} exists and is no link of ours; move it away and try again.")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(folder, target, target_is_directory=True)
    except OSError as error:
        raise SetupProblem(f"{target} cannot be made: {error.strerror}; correct its permissions.") from None


def _index_help(editor: str, documents: str) -> None:
    """Have the editor find ``:help ide_bridge``; without it, or without leave to write there, it does not."""
    program = shutil.which(editor)
    if program is not None and os.access(documents, os.W_OK):
        _do([program, "-es", "-u", "NONE", "-i", "NONE", "-c", f"helptags {_escaped(documents)}", "-c", "qa!"])


def _escaped(path: str) -> str:
    return "".join(f"\\{character}" if character in " \\|\"'%#" else character for character in path)


def _install_package(folder: str) -> None:
    program = shutil.which("emacs")
    if program is None:
        raise SetupProblem(f"There is no emacs on your PATH; in Emacs run: M-x package-install-file RET {folder}")
    text = folder.replace("\\", "\\\\").replace('"', '\\"')
    lisp = f'(progn (require (quote package)) (package-initialize) (package-install-file "{text}"))'
    done = _do([program, "--batch", "-Q", "--eval", lisp])
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it did not say why"])[-1]
        raise SetupProblem(f"Emacs could not install {folder}: {last}")
    print(f"Installed {folder} as an Emacs package.")


def _do(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PROGRAM_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupProblem(f"{command[0]} could not be run: {error}") from None
