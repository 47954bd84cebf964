"""The command line: one file per command, imported when it is run.

Exit codes: 0 fine, 1 failed, 2 wrong usage. Errors are one sentence on stderr that says what to do.

It does not know what any command does.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ide_bridge.errors import BridgeError

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

__all__ = ["COMMANDS", "main"]

COMMANDS = ("serve", "run", "status", "stop", "call", "doctor")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except BridgeError as error:
        print(f"ide-bridge: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - the last line: a user gets a sentence, the details go to a file
        print(f"ide-bridge: Something went wrong that should not; please report {_report()}", file=sys.stderr)
        return 1


def _report() -> str:
    """Write the traceback where the user can find it."""
    import traceback

    from ide_bridge.home import private_folder, state_folder

    path = os.path.join(private_folder(state_folder()), "crash.log")
    with open(path, "w", encoding="utf-8") as file:
        traceback.print_exc(file=file)
    return path


def _run(given: list[str]) -> int:
    if given[:1] == ["serve"] and not any(argument.startswith("-") for argument in given[1:]):
        from ide_bridge.cli import serve  # plain words need no parser, and a bridge should be up at once

        return serve.serve(given[1:])
    args = _parser(given).parse_args(given)
    command: ModuleType = args.command
    code: int = command.run(args)
    return code


def _parser(given: list[str]) -> "argparse.ArgumentParser":
    import argparse
    from importlib import import_module

    from ide_bridge import __version__

    parser = argparse.ArgumentParser(
        prog="ide-bridge", description="Makes any editor a first-class IDE for Claude Code and other agent CLIs."
    )
    parser.add_argument("--version", action="version", version=f"ide-bridge {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in given[:1] if given[:1] and given[0] in COMMANDS else COMMANDS:
        module = import_module(f"ide_bridge.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.HELP.capitalize() + ".")
        module.add_arguments(command)
        command.set_defaults(command=module)
    return parser
