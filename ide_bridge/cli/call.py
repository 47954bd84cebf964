"""``ide-bridge call METHOD [JSON]``: ask this folder's bridge one thing, from a script or by hand.

It does not know what the methods do.
"""

import json
import sys
from typing import TYPE_CHECKING

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.reach import ask, here
from ide_bridge.errors import MethodNotFound, RemoteError, SetupProblem
from ide_bridge.running import DETACHED_LINGER, Running, find, find_or_start

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run"]

STEERING = ("status", "stop", "choose", "share", "record")
"""What is asked of a bridge that runs, and is no reason to start one."""


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``call``."""
    parser.add_argument("method", metavar="METHOD", help="such as listFiles")
    parser.add_argument("params", nargs="?", type=_params, metavar="JSON", help='such as \'{"pattern": "*.py"}\'')


def run(args: "argparse.Namespace") -> int:
    """Ask, and print the answer; a tool that failed has answered, but is a failure all the same."""
    try:
        answer = ask(_bridge(args.method), args.method, args.params)
    except RemoteError as error:
        if error.remote_code != MethodNotFound.code:
            raise
        raise _unknown(args.method) from None
    print(json_text(answer))
    return 1 if isinstance(answer, dict) and answer.get("isError") is True else 0


def _params(text: str) -> object:
    import argparse

    try:
        params = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"this is not JSON: {error}") from None
    except RecursionError:
        raise argparse.ArgumentTypeError("this is nested too deeply; send something flatter") from None
    if not isinstance(params, dict | list):
        raise argparse.ArgumentTypeError("parameters are an object or a list, such as {} or []")
    return params


def _bridge(method: str) -> Running:
    """This folder's bridge; for what a client may ask it is started if none runs."""
    folder = here()
    running = find(folder)
    if running is None:
        _check_that_clients_may_ask(method)
    bridge = find_or_start(folder)
    if running is None and sys.stderr.isatty():
        served = ", ".join(bridge.folders)
        line = f"Started a bridge for {served}; it ends {DETACHED_LINGER} s after its last use."
        print(printable(line), file=sys.stderr)
    return bridge


def _check_that_clients_may_ask(method: str) -> None:
    from ide_bridge.fronts.mcp import METHODS

    if method in STEERING:
        raise SetupProblem(f"No bridge is running for {here()}; start one with: ide-bridge serve")
    if method not in METHODS:
        raise _unknown(method)


def _unknown(method: str) -> SetupProblem:
    return SetupProblem(f"There is no method called {method}; PROTOCOL.md lists them all.")
