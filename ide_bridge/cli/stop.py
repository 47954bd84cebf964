"""``ide-bridge stop``: end bridges, politely.

It does not know what a bridge does when it ends.
"""

import sys
import time
from typing import TYPE_CHECKING

from ide_bridge.cli.printable import printable
from ide_bridge.cli.reach import ask, here
from ide_bridge.errors import BridgeError, SetupProblem
from ide_bridge.running import Running, find, running_bridges

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run"]

_SECONDS = 40.0  # a session whose CLI obeys nothing takes its time
_SILENT_SECONDS = 2.0
_POLL_SECONDS = 0.02


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``stop``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("folder", nargs="?", metavar="FOLDER", help="without, this folder")
    which.add_argument("--all", action="store_true", help="every bridge of yours")


def run(args: "argparse.Namespace") -> int:
    """Stop what was named, and wait until it is gone."""
    if args.folder == "":
        raise SetupProblem("The name of a folder is empty; name one, or none at all for this folder.")
    folder = args.folder or here()
    bridges = running_bridges() if args.all else [bridge for bridge in [find(folder)] if bridge is not None]
    if not bridges:
        where = "" if args.all else f" for {folder}"
        raise SetupProblem(f"No bridge is running{where}.")
    for bridge in bridges:
        _stop(bridge)
        print(printable(f"Stopped the bridge for {', '.join(bridge.folders)} (pid {bridge.pid})."), flush=True)
    return 0


def _stop(bridge: Running) -> None:
    try:
        ask(bridge, "stop", seconds=_SECONDS)
    except BridgeError:
        if any(running.pid == bridge.pid for running in running_bridges()):
            raise
    begun, is_told = time.monotonic(), False
    while any(running.pid == bridge.pid for running in running_bridges()):
        if not is_told and time.monotonic() > begun + _SILENT_SECONDS:
            print(
                f"Waiting for the bridge with pid {bridge.pid} to end its sessions …", file=sys.stderr, flush=True
            )
            is_told = True
        if time.monotonic() > begun + _SECONDS:
            raise SetupProblem(f"The bridge with pid {bridge.pid} does not stop; end it with: kill {bridge.pid}")
        time.sleep(_POLL_SECONDS)
