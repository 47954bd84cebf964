"""``ide-bridge call METHOD [JSON]``: ask a running bridge one thing, from a script or by hand.

It does not know the methods.
"""

import json
import os
from typing import TYPE_CHECKING

from ide_bridge.cli.reach import ask, find
from ide_bridge.errors import SetupProblem

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
    bridge = find(os.getcwd())
    if bridge is None:
        raise SetupProblem("No bridge is running for this folder. Start one with: ide-bridge serve")
    print(json.dumps(ask(bridge, args.method, params), ensure_ascii=False))
    return 0
