"""``ide-bridge session start | resume | fork``: begin a session in the bridge of its folder, and attach to it.

Where no bridge runs, one is started. The CLI gets the environment of this terminal.

It does not know how a session is run, or what attaching shows.
"""

import sys
from typing import TYPE_CHECKING, Any

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.reach import ask, here
from ide_bridge.cli.session.attach import can_be_live, watch
from ide_bridge.cli.session.past import Origin, newest_here, origin_of
from ide_bridge.cli.session.reach import Known, as_session, environment_here
from ide_bridge.cli.session.show import print_newest
from ide_bridge.cli.session.words import prompt_of
from ide_bridge.errors import SetupProblem
from ide_bridge.running import find, find_or_start

if TYPE_CHECKING:
    import argparse

    from ide_bridge.running import Running

__all__ = ["fork", "resume", "start"]

_SECONDS = 90


def start(args: "argparse.Namespace") -> int:
    """Begin a new session in this folder."""
    given = {"title": args.title} if args.title else {}
    return _begin(args, here(), given, "Started session")


def resume(args: "argparse.Namespace") -> int:
    """Continue a session; one that is live already is only attached to."""
    origin = newest_here() if args.session is None else origin_of(args.session)
    if origin.known is not None and origin.known.session.is_live:
        return _rejoin(args, origin.known)
    return _begin(args, origin.folder, {"resume": origin.session}, "Resumed session", origin)


def fork(args: "argparse.Namespace") -> int:
    """Begin a session with all that was said in another, or all until some point."""
    origin = origin_of(args.session)
    given = {"resume": origin.session, "fork": True, **({"at": args.at} if args.at else {})}
    return _begin(args, origin.folder, given, f"Forked session {origin.session[:8]} into", origin)


def _begin(
    args: "argparse.Namespace", folder: str, given: dict[str, Any], what: str, origin: Origin | None = None
) -> int:
    prompt = prompt_of(args.prompt)
    if args.prompt and not prompt.strip():
        raise SetupProblem("The prompt is empty; say what is to be done, or leave it out.")
    bridge = _bridge(folder)
    params = {
        "folder": folder,
        "prompt": prompt or None,
        "environment": environment_here(),
        **_options(args),
        **given,
    }
    is_forgotten = origin is not None and _goes_live(args) and (given.get("fork") or not _tells(origin))
    said = ask(bridge, "startSession", params, seconds=_SECONDS)
    known = Known(as_session(said), said if isinstance(said, dict) else {}, bridge)
    if origin is not None and is_forgotten:
        print_newest(origin.session, origin.folder)
        print(printable(f"{what} {known.session.session[:8]} ({known.session.title})."))
    return _present(args, known, what)


def _tells(origin: Origin) -> bool:
    """Whether the bridge that has a session still knows what was said in it."""
    if origin.known is None:
        return False
    answer = origin.known.ask("watchSession")
    return isinstance(answer, dict) and answer.get("next", 1) > 1


def _options(args: "argparse.Namespace") -> dict[str, Any]:
    given = {"model": args.model, "mode": args.mode, "over": args.over, "arguments": args.argument}
    command = [args.cli] if args.cli else []
    return {key: value for key, value in {**given, "command": command}.items() if value}


def _rejoin(args: "argparse.Namespace", known: Known) -> int:
    """Resuming what runs already is no mistake; a prompt is sent to it all the same."""
    prompt = prompt_of(args.prompt)
    if prompt.strip():
        known.ask("prompt", {"text": prompt})
    return _present(args, known, "It is running already: session")


def _present(args: "argparse.Namespace", known: Known, what: str) -> int:
    if args.json:
        print(json_text(known.said))
    elif _goes_live(args):
        return watch(known)
    else:
        begun = known.session.session[:8]
        print(printable(f"{what} {begun}. Watch it with: ide-bridge session attach {begun}"))
    return 0


def _goes_live(args: "argparse.Namespace") -> bool:
    return not args.json and not args.detach and can_be_live()


def _bridge(folder: str) -> "Running":
    running = find(folder)
    bridge = find_or_start(folder)
    if running is None and sys.stderr.isatty():
        print(printable(f"Started a bridge for {', '.join(bridge.folders)}."), file=sys.stderr)
    return bridge
