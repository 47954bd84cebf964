"""``ide-bridge session send SESSION TEXT``: prompt a session, from a script or by hand.

With ``--wait`` it ends when the turn does, prints the answer, and fails if the turn has failed. A prompt that
comes while the session works becomes part of the running turn, or gets one of its own; the CLI echoes it when it
takes it up, and the next result is the one.

It does not know what the session does.
"""

import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from msgspec import Raw

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.reach import ask
from ide_bridge.cli.session.line import Line
from ide_bridge.cli.session.reach import Known, environment_here, meant_or_only
from ide_bridge.cli.session.render import harmless
from ide_bridge.cli.session.words import prompt_of
from ide_bridge.errors import Disconnected, SetupProblem
from ide_bridge.session import events
from ide_bridge.session.approvals import Approval

if TYPE_CHECKING:
    import argparse

__all__ = ["send"]

_START_SECONDS = 90


def send(args: "argparse.Namespace") -> int:
    """Hand over the prompt; with ``--wait`` also wait for what comes of it."""
    known = meant_or_only(args.session)
    text = prompt_of(args.text)
    if not text.strip():
        raise SetupProblem("The prompt is empty; say what is to be done.")
    if not known.session.is_live:
        given = {"resume": known.session.session, "environment": environment_here()}
        ask(known.bridge, "startSession", given, seconds=_START_SECONDS)
    if args.wait:
        return _send_and_wait(known, text, as_json=args.json)
    answer = known.ask("prompt", {"text": text})
    begun = known.session.session[:8]
    print(json_text(answer) if args.json else f"Sent to session {begun}.")
    return 0


def _send_and_wait(known: Known, text: str, *, as_json: bool) -> int:
    prompt = {"session": known.session.session, "text": text, "uuid": str(uuid4())}
    with Line(known, raw=True, only_new=True) as line:
        line.request("prompt", prompt)
        is_taken_up = False
        for event in (told.event for told in line.told()):
            match event:
                case events.Message():
                    is_taken_up = is_taken_up or _is_echo(event.message, prompt["uuid"])
                case events.Result() if is_taken_up:
                    return _print_result(event, as_json=as_json)
                case events.ApprovalAsked():
                    _tell_of(msgspec.convert(event.approval, Approval))
                case events.Ended():
                    why = event.text or "it was stopped"
                    raise SetupProblem(printable(f"The session ended before it had answered: {why}"))
                case _:
                    pass
    begun = known.session.session[:8]
    raise Disconnected(
        f"The bridge is gone, and session {begun} with it; see what it did: ide-bridge session show {begun}"
    )


class _Echo(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    is_replay: bool = False


def _is_echo(message: Raw, uuid: str) -> bool:
    try:
        echo = msgspec.json.decode(message, type=_Echo)
    except msgspec.ValidationError:
        return False
    return echo.type == "user" and echo.is_replay and echo.uuid == uuid


def _tell_of(approval: Approval) -> None:
    sentence = f"It waits for you: {approval.title} – answer with: ide-bridge session approve {approval.id}"
    print(printable(sentence), file=sys.stderr, flush=True)


def _print_result(result: events.Result, *, as_json: bool) -> int:
    if as_json:
        print(json_text(msgspec.to_builtins(result)))
    elif result.ok:
        print(harmless(result.text) if sys.stdout.isatty() else result.text)
    else:
        raise SetupProblem(printable(f"The turn failed: {result.reason.replace('_', ' ')} {result.text}".strip()))
    return 0 if result.ok else 1
