"""``ide-bridge session …``: start, watch and steer sessions of Claude Code.

Sessions live in the bridge: they go on when the terminal they were started from is closed.

It does not know what the sub-commands do: each is in a file of its own, imported when it is run.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

__all__ = ["add_arguments", "run"]

_SESSION = "beginning of its id; without, the only live session"


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the sub-commands of ``session`` and their arguments."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_in_any_order())
    for name, (purpose, module, declare) in _COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
        declare(command)
        command.set_defaults(parser=command, session_command=(module, name))


def _in_any_order() -> "type[argparse.ArgumentParser]":
    """A parser for ``fork SESSION --at UUID PROMPT``, where the usual one takes the prompt to be missing."""
    import argparse

    class InAnyOrder(argparse.ArgumentParser):
        is_within = False

        def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            if self.is_within:
                return super().parse_known_args(args, namespace)
            self.is_within = True  # or what follows, which calls us, would never end
            try:
                return self.parse_known_intermixed_args(args, namespace)
            finally:
                self.is_within = False

    return InAnyOrder


def run(args: "argparse.Namespace") -> int:
    """Run the sub-command that was named."""
    module, name = args.session_command
    code: int = getattr(import_module(f"ide_bridge.cli.session.{module}"), name.replace("list", "list_"))(args)
    return code


def _start(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to do first; - reads it from stdin")
    parser.add_argument("--title", metavar="TEXT", help="what to call it; without, the CLI finds a title")
    _launch_options(parser)


def _resume(parser: "argparse.ArgumentParser") -> None:
    help_ = "beginning of its id; without, the newest of this folder that is not live"
    parser.add_argument("session", nargs="?", metavar="SESSION", help=help_)
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to do next; - reads it from stdin")
    _launch_options(parser)


def _fork(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("session", metavar="SESSION", help="beginning of the id of the one to fork")
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to do next; - reads it from stdin")
    parser.add_argument(
        "--at", metavar="UUID", help="leave out what came after this message; `show` has the uuids"
    )
    _launch_options(parser)


def _launch_options(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("-d", "--detach", action="store_true", help="do not attach to it afterwards")
    parser.add_argument("--model", metavar="MODEL", help="such as opus")
    parser.add_argument("--mode", metavar="MODE", help="permission mode, such as plan or acceptEdits")
    parser.add_argument("--cli", metavar="PROGRAM", help="the CLI to run; without, claude on your PATH")
    parser.add_argument(
        "--over", choices=["pipes", "sdk-url"], help="how to talk to the CLI; sdk-url only up to 2.1.120"
    )
    parser.add_argument(
        "--argument",
        action="append",
        default=[],
        metavar="ARG",
        help="one for the CLI: --argument=--add-dir=../lib",
    )
    _json(parser)


def _list(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument(
        "-a", "--all", action="store_true", help="also what has ended, from this folder's transcripts"
    )
    _json(parser)


def _attach(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION", help=_SESSION)
    parser.add_argument("--json", action="store_true", help="for programs: one event a line")
    parser.add_argument("--raw", action="store_true", help="the CLI's own messages, one a line, as they come")


def _send(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("session", metavar="SESSION", help="beginning of its id")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="what to do; - reads it from stdin")
    parser.add_argument("-w", "--wait", action="store_true", help="until it is done, and print the answer")
    _json(parser)


def _approve(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("approval", nargs="?", metavar="ID", help="without, the only one that is open")
    parser.add_argument("-s", "--session", action="store_true", help="and do not ask again in that session")
    parser.add_argument("--input", metavar="JSON", help="what the tool gets instead; - reads it from stdin")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="QUESTION=ANSWER",
        help="to a question, or to its number: 1=Blue",
    )
    _json(parser)


def _deny(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("approval", nargs="?", metavar="ID", help="without, the only one that is open")
    parser.add_argument("reason", nargs="*", metavar="REASON", help="what Claude is told")
    parser.add_argument("--interrupt", action="store_true", help="and end the turn")
    _json(parser)


def _one(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION", help=_SESSION)
    _json(parser)


def _model(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("session", metavar="SESSION", help="beginning of its id")
    parser.add_argument("model", metavar="MODEL", help="such as opus")
    _json(parser)


def _mode(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("session", metavar="SESSION", help="beginning of its id")
    parser.add_argument("mode", metavar="MODE", help="such as default, plan or acceptEdits")
    _json(parser)


def _show(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument(
        "session", nargs="?", metavar="SESSION", help="beginning of its id; without, this folder's newest"
    )
    parser.add_argument(
        "-a", "--all", action="store_true", help="from the beginning, and not only the newest page"
    )
    parser.add_argument("--json", action="store_true", help="for programs: one record a line")


def _json(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("--json", action="store_true", help="for programs")


_COMMANDS: "dict[str, tuple[str, str, Callable[[argparse.ArgumentParser], None]]]" = {
    "start": ("start a session in this folder, and attach to it", "start", _start),
    "list": ("show the sessions, those that wait for you first", "listing", _list),
    "attach": ("watch a session, prompt it and answer it; it goes on when you leave", "attach", _attach),
    "send": ("prompt a session", "send", _send),
    "approvals": ("show what waits for an answer", "listing", _json),
    "approve": ("allow what a session asks for", "decide", _approve),
    "deny": ("refuse what a session asks for", "decide", _deny),
    "interrupt": ("end what a session is doing now; it stays ready for the next prompt", "steer", _one),
    "model": ("have a session use another model from now on", "steer", _model),
    "mode": ("switch the permission mode of a session", "steer", _mode),
    "resume": ("continue a session that was stopped or lost, and attach to it", "start", _resume),
    "fork": ("start a session that begins as a copy of another, and attach to it", "start", _fork),
    "stop": ("end a session; it can be resumed", "steer", _one),
    "show": ("print the conversation of a session; no bridge need run", "show", _show),
}
