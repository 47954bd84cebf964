"""``ide-bridge run CLI``: start an agent CLI in this terminal, connected already.

It does not know the CLI's arguments: they are passed on as they are.
"""

import os
import shutil
from typing import TYPE_CHECKING

from ide_bridge.cli.reach import here
from ide_bridge.errors import SetupProblem
from ide_bridge.loopback import past_proxies
from ide_bridge.running import find_or_start

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

__all__ = ["add_arguments", "environment_for", "run"]


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``run``."""
    parser.add_argument("cli", metavar="CLI", help="the program, such as claude")
    rest = parser.add_argument("arguments", nargs="...", metavar="ARGS", help="its own arguments")
    rest.required = False  # or argparse asks for them when the CLI is missing


def run(args: "argparse.Namespace") -> int:
    """Find or start the bridge of this folder, then become the CLI."""
    program = shutil.which(args.cli)
    if program is None:
        raise SetupProblem(f"There is no program called {args.cli} on your PATH; install it first.")
    bridge = find_or_start(here())
    environment = environment_for(os.environ, int(str(bridge["port"])))
    try:
        os.execve(program, [args.cli, *args.arguments], environment)  # noqa: S606 - the user named the program
    except OSError as error:
        raise SetupProblem(f"{program} cannot be run: {error.strerror}; install it anew.") from None


def environment_for(environment: "Mapping[str, str]", port: int) -> dict[str, str]:
    """What the CLI reads to find us, whatever terminal it runs in, and never through a proxy."""
    changed = past_proxies(environment)
    changed["CLAUDE_CODE_SSE_PORT"] = str(port)
    changed["CLAUDE_CODE_AUTO_CONNECT_IDE"] = "true"
    changed["ENABLE_IDE_INTEGRATION"] = "true"
    return changed
