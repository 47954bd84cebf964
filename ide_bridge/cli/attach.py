"""``ide-bridge attach``: the relay between a plug-in and the bridge of its folder.

Standard input and output speak the link protocol; what there is to say to a person goes to standard error.

It does not know any editor.
"""

import os
import sys

from ide_bridge.errors import SetupProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

__all__ = ["add_arguments", "attach", "run"]


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``attach``."""
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="the editor's folders (default: this one)")


def run(args: "argparse.Namespace") -> int:
    """Relay until the editor or the bridge has gone."""
    return attach(args.folders)


def attach(folders: "Sequence[str]") -> int:
    """Relay between our standard streams and the bridge of the first folder; does not return when all is well."""
    from ide_bridge.editor.attach import Relay

    for folder in folders:
        if not os.path.isdir(folder):
            raise SetupProblem(f"{folder} is not a folder.")
    if sys.stdin.isatty():
        raise SetupProblem("attach is started by an editor's plug-in; to serve a folder run: ide-bridge serve")
    Relay(folders or ["."]).run()
    return 0
