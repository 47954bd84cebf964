"""The command line: one file per command, imported when it is run.

Exit codes: 0 fine, 1 failed, 2 wrong usage. Errors are one sentence on stderr that says what to do.

It does not know what any command does.
"""

import os
import sys

from ide_bridge.errors import BridgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "serve": "serve a folder, so that /ide in Claude finds it",
    "attach": "connect an editor's plug-in, on standard input and output, to this folder's bridge",
    "plugin": "show or install the plug-in of an editor",
    "conform": "check a program that speaks the link protocol, as every editor is checked",
    "run": "start a CLI in this terminal, connected to this folder's bridge",
    "session": "start, watch and steer Claude Code sessions in this folder's bridge",
    "relay": "connect front ends to programs started with --sdk-url",
    "status": "show the running bridges and who is connected",
    "stop": "stop the bridge of a folder, or all of them",
    "call": "call a method of this folder's bridge and print the result as JSON",
    "record": "write down what clients and this folder's bridge say to each other",
    "undo": "take back what a client changed, the newest change first",
    "doctor": "find out why the CLI does not see the bridge",
}


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command; give its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_what_is_closed()
    try:
        code = _run(given)
        sys.stdout.flush()  # at the very end, nobody could catch a reader that is gone
        return code
    except BridgeError as error:
        _complain(str(error))
        return 1
    except BrokenPipeError:  # a reader who did not wait for the end needs no explanation
        _discard_output()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - the last line: a user gets a sentence, the details go to a file
        if not _is_of_the_output(error):
            _complain(f"Something went wrong that should not; please report {_report(error)}")
        return 1


def _open_what_is_closed() -> None:
    """Give print somewhere to print to, and keep the files we open from getting the numbers of the streams."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as we live


def _is_of_the_output(error: Exception) -> bool:
    """Whether it was the output that failed, which is told then."""
    if not isinstance(error, OSError):
        return False
    try:
        sys.stdout.flush()  # what could not be written is still there, and fails again
    except OSError as failure:
        _complain(f"The output cannot be written: {failure.strerror}; make room, or send it elsewhere.")
        _discard_output()
        return True
    return False


def _discard_output() -> None:
    """Let what is left go nowhere, or Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: str) -> None:
    from ide_bridge.cli.printable import printable

    try:
        print(f"ide-bridge: {printable(sentence)}", file=sys.stderr, flush=True)
    except OSError:  # there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _report(error: Exception) -> str:
    """Write the traceback where the user can find it; where that is impossible, the sentence must do."""
    import traceback

    from ide_bridge.home import open_regular, private_folder, state_folder

    try:
        path = os.path.join(private_folder(state_folder()), "crash.log")
        lines = "".join(traceback.format_exception(error)).encode(errors="backslashreplace")
        with open(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(lines)
    except (OSError, BridgeError):
        return f"this: {type(error).__name__}: {error}"
    return path


def _run(given: list[str]) -> int:
    if given[:1] == ["serve"]:
        from ide_bridge.cli import serve  # a bridge should be up at once, and so little needs no parser

        serve.heed_signals()
        if not any(word.startswith("-") and word != "--json" for word in given):
            return serve.serve([word for word in given[1:] if word != "--json"], json="--json" in given)
    if given[:1] == ["attach"] and not any(word.startswith("-") for word in given):
        from ide_bridge.cli import attach  # an editor waits

        return attach.attach(given[1:])
    parser = _parser(given)
    try:
        args, unknown = parser.parse_known_args(given)
        if unknown:  # argparse itself would show the usage of all commands, and not that of the one that is meant
            getattr(args, "parser", parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    except SystemExit as end:  # --help, or wrong usage: said already, as far as the output could take it
        return int(end.code or 0)
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
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        if given[:1] == [name]:
            module = import_module(f"ide_bridge.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(command=module, parser=command)
    return parser
