"""``ide-bridge session interrupt | stop | model | mode``: one word to a session, and it is done.

It does not know how a session does it.
"""

from typing import TYPE_CHECKING

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.session.reach import called, meant_or_only
from ide_bridge.errors import SetupProblem

if TYPE_CHECKING:
    import argparse

    from ide_bridge.cli.session.reach import Known

__all__ = ["interrupt", "mode", "model", "stop"]

_STOP_SECONDS = 60


def interrupt(args: "argparse.Namespace") -> int:
    """End the turn; the session stays."""
    known = meant_or_only(args.session)
    if not known.session.is_live:
        raise SetupProblem(f"Session {_begun(known)} is {known.session.state}; there is nothing to interrupt.")
    known.ask("interrupt")
    return _say(known, {}, f"Interrupted session {_begun(known)} ({called(known.session)}).", as_json=args.json)


def stop(args: "argparse.Namespace") -> int:
    """End the session and everything it started."""
    known = meant_or_only(args.session)
    answer = known.ask("stopSession", seconds=_STOP_SECONDS)
    again = f"to continue it: ide-bridge session resume {_begun(known)}"
    return _say(
        known, answer, f"Stopped session {_begun(known)} ({called(known.session)}); {again}", as_json=args.json
    )


def model(args: "argparse.Namespace") -> int:
    """Use another model from the next request on."""
    known = meant_or_only(args.session)
    answer = known.ask("setModel", {"model": args.model})
    return _say(known, answer, f"Session {_begun(known)} uses {args.model} from now on.", as_json=args.json)


def mode(args: "argparse.Namespace") -> int:
    """Switch what is asked for."""
    known = meant_or_only(args.session)
    answer = known.ask("setMode", {"mode": args.mode})
    return _say(known, answer, f"Session {_begun(known)} is in {args.mode} mode now.", as_json=args.json)


def _say(known: "Known", answer: object, sentence: str, *, as_json: bool) -> int:
    shown = answer if isinstance(answer, dict) and answer else {"session": known.session.session}
    print(json_text(shown) if as_json else printable(sentence))
    return 0


def _begun(known: "Known") -> str:
    return known.session.session[:8]
