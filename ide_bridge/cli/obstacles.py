"""Obstacles: what would keep a bridge from starting in a folder, or a linter from being run there.

The rules, by the names that are printed: ``workspace`` ``settings`` ``state-folder``
``lock-folder`` ``linter``.

It does not know what a bridge needs these things for; and it only looks: nothing is made or changed.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence

from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import real_folder
from ide_bridge.fronts.discovery import Finding, Level, shell_word
from ide_bridge.fronts.lock import claude_folders
from ide_bridge.home import config_folder, state_folder, workspace_folder
from ide_bridge.settings import FILE_NAME, Linter, load_settings

__all__ = ["missing_linters", "obstacles"]


def obstacles(folder: str, level: Level) -> Iterator[Finding]:
    """Everything that stands in the way of ``ide-bridge serve`` in a folder, and linters that are not there."""
    try:
        real_folder(folder)
    except SetupProblem as problem:
        yield Finding("workspace", level, folder, str(problem), "Or start server and CLI in another folder.")
    linters, broken = _linters(folder, level)
    yield from broken
    states = [state_folder(), os.path.join(state_folder(), "workspaces"), workspace_folder(folder)]
    yield from _first(_closed(state, "state-folder", level) for state in states)
    for locks in _lock_folders():
        yield from _closed(locks, "lock-folder", level)
    yield from missing_linters(linters, folder)


def _linters(folder: str, level: Level) -> tuple[Sequence[Linter], list[Finding]]:
    try:
        return load_settings([folder]).linters, []
    except SetupProblem as problem:
        path, _, _ = str(problem).partition(" is not understood")
        return (), [Finding("settings", level, path, str(problem), "Correct it; no bridge starts before.")]


def missing_linters(linters: Iterable[Linter], folder: str) -> Iterator[Finding]:
    """The linters whose program is not there."""
    for program in dict.fromkeys(linter.command[0] for linter in linters):
        where = os.path.join(folder, program) if os.path.dirname(program) else program
        if shutil.which(where) is None:
            text = f"The linter {program} cannot be started: there is no such program on your PATH."
            fix = f"Install it, or take it out of {os.path.join(config_folder(), FILE_NAME)}"
            yield Finding("linter", "warning", program, text, fix)


def _first(groups: Iterable[Iterator[Finding]]) -> Iterator[Finding]:
    """Of folders in each other, the outermost is the one to be put right."""
    yield from next((found for group in groups if (found := list(group))), [])


def _lock_folders() -> list[str]:
    first, documented = claude_folders()
    return [first, documented] if os.path.isdir(os.path.dirname(documented)) and documented != first else [first]


def _closed(folder: str, rule: str, level: Level) -> Iterator[Finding]:
    """What keeps us from using a folder as one of our own."""
    try:
        found = os.stat(folder)
    except OSError:
        yield from _not_to_be_made(folder, rule, level)
        return
    if not stat.S_ISDIR(found.st_mode):
        yield Finding(rule, level, folder, f"{folder} is no folder.", f"Move it away: mv {shell_word(folder)} …")
    elif os.name == "posix" and found.st_uid != os.getuid():
        fix = "Remove it as the user who owns it, or choose another place."
        yield Finding(rule, level, folder, f"{folder} belongs to another user.", fix)
    elif os.name == "posix" and found.st_mode & 0o022:
        yield Finding(
            rule, level, folder, f"Others may write in {folder}.", f"Run: chmod go-w {shell_word(folder)}"
        )
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(
            rule, level, folder, f"You may not write in {folder}.", f"Run: chmod u+wx {shell_word(folder)}"
        )


def _not_to_be_made(folder: str, rule: str, level: Level) -> Iterator[Finding]:
    above = os.path.dirname(folder)
    while not os.path.lexists(above) and above != (above := os.path.dirname(above)):
        pass
    if not (os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK)):
        why = "you may not write there" if os.path.isdir(above) else "that is no folder"
        text = f"{folder} cannot be made in {above}: {why}."
        fix = "Set HOME, or what else names it, to a folder you may write in."
        yield Finding(rule, level, folder, text, fix)
