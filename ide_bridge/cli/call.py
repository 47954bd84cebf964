"""``ide-bridge call METHOD [JSON]``: ask this folder's bridge one thing, from a script or by hand.

It does not know the methods.
"""

import json
from typing import TYPE_CHECKING

from ide_bridge.cli.printable import json_text
from ide_bridge.cli.reach import ask, here
from ide_bridge.errors import MethodNotFound, RemoteError, SetupProblem
from ide_bridge.running import find_or_start

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run"]


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``call``."""
    parser.add_argument("method", metavar="METHOD", help="such as listFiles")
    parser.add_argument("params", nargs="?", metavar="JSON", help='such as \'{"pattern": "*.py"}\'')


def run(args: "argparse.Namespace") -> int:
    """Ask, and print the answer."""
    try:
        params = None if args.params is None else json.loads(args.params)
    except ValueError as error:
        raise SetupProblem(f"The parameters are not JSON: {error}.") from None
    except RecursionError:
        raise SetupProblem("The parameters are nested too deeply; send something flatter.") from None
    try:
        answer = ask(find_or_start(here()), args.method, params)
    except RemoteError as error:
        if error.remote_code != MethodNotFound.code:
            raise
        raise SetupProblem(f"There is no method called {args.method}; PROTOCOL.md lists them all.") from None
    print(json_text(answer))
    return 0
