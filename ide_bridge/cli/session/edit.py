"""The user's editor, for what is too long to type on one line.

The bridge waits with what it has to tell meanwhile: every watcher hears at his own speed.

It does not know what is edited.
"""

import os
import shlex
import subprocess
import tempfile
from typing import TYPE_CHECKING

from ide_bridge.errors import SetupProblem

if TYPE_CHECKING:
    from ide_bridge.cli.session.screen import Screen

__all__ = ["edited"]


def edited(text: str, name: str, screen: "Screen") -> str:
    """The text as the user leaves it."""
    with tempfile.TemporaryDirectory(prefix="ide-bridge-") as folder:
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        with screen.lent():
            _run_editor(path)
        screen.take_signals()  # they were meant for the editor
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise SetupProblem(f"What the editor left cannot be read, so nothing was sent: {error}.") from None


def _run_editor(path: str) -> None:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        subprocess.run([*shlex.split(command), path], check=False)
    except (OSError, ValueError):
        raise SetupProblem(f"Your editor {command!r} cannot be started; name another one in $EDITOR.") from None
