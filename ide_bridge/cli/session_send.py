"""``ide-bridge session send SESSION TEXT``: prompt a session, from a script or by hand.

With ``--wait`` it ends when the turn does, prints the answer, and fails if the turn has failed. A prompt that
comes while the session works may become part of the running turn or begin one of its own; so the turn has ended
when there was a result after the prompt and the session is at rest.

It does not know what the session does.
"""

import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.session_line import Line, Told
from ide_bridge.cli.session_reach import Known, environment_here, meant_or_only
from ide_bridge.cli.session_render import harmless
from ide_bridge.cli.session_words import prompt_of
from ide_bridge.errors import Disconnected, SetupProblem
from ide_bridge.session import events
from ide_bridge.session.approvals import Approval

if TYPE_CHECKING:
    import argparse

__all__ = ["send"]

_AT_REST = ("idle", "stopped", "lost")
_START_SECONDS = 90


def send(args: "argparse.Namespace") -> int:
    """Hand over the prompt; with ``--wait`` also wait for what comes of it."""
    known = meant_or_only(args.session)
    text = prompt_of(args.text)
    if not text.strip():
        raise SetupProblem("The prompt is empty; say what is to be done.")
    if not known.session.is_live:
        given = {"resume": known.session.session, "environment": environment_here()}
        known.ask("startSession", given, seconds=_START_SECONDS)
    if args.wait:
        return _send_and_wait(known, text, as_json=args.json)
    answer = known.ask("prompt", {"text": text})
    begun = known.session.session[:8]
    print(json_text(answer) if args.json else f"Sent to session {begun}.")
    return 0


def _send_and_wait(known: Known, text: str, *, as_json: bool) -> int:
    prompt = {"session": known.session.session, "text": text, "uuid": str(uuid4())}
    with Line(known) as line:
        line.request("prompt", prompt)
        turn = _Turn(prompt["uuid"])
        for told in line.told():
            if turn.hear(told) and turn.result is not None:
                return _print_result(turn.result, turn.text, as_json=as_json)
            if turn.ended is not None:
                raise SetupProblem(printable(f"The session ended before it had answered: {turn.ended}"))
    begun = known.session.session[:8]
    raise Disconnected(
        f"The bridge is gone, and session {begun} with it; see what it did: ide-bridge session show {begun}"
    )


class _Turn:
    """What comes of one prompt."""

    def __init__(self, uuid: str) -> None:
        self.result: events.Result | None = None
        self.ended: str | None = None
        self._said: list[str] = []
        self._uuid = uuid
        self._begun = False
        self._state = "working"

    @property
    def text(self) -> str:
        """The answer."""
        return (self.result.text if self.result is not None else "") or "\n\n".join(self._said)

    def hear(self, told: Told) -> bool:
        """Whether it has ended with this."""
        event = told.event
        if isinstance(event, events.Prompt) and event.uuid == self._uuid:
            self._begun, self._state = True, "working"
        if not self._begun:
            return False
        self._note(event)
        return self.result is not None and (self._state in _AT_REST or self.ended is not None)

    def _note(self, event: object) -> None:
        match event:
            case events.State():
                self._state = event.state
            case events.Said(agent=None):
                self._said.append(event.text)
            case events.Result():
                self.result = event
            case events.Ended():
                self.ended = event.text or "it was stopped"
            case events.ApprovalAsked():
                _tell_of(msgspec.convert(event.approval, Approval))
            case _:
                pass


def _tell_of(approval: Approval) -> None:
    sentence = f"It waits for you: {approval.title} – answer with: ide-bridge session approve {approval.id}"
    print(printable(sentence), file=sys.stderr, flush=True)


def _print_result(result: events.Result, text: str, *, as_json: bool) -> int:
    if as_json:
        print(json_text(msgspec.to_builtins(result)))
    elif result.ok:
        print(harmless(text) if sys.stdout.isatty() else text)
    else:
        raise SetupProblem(printable(f"The turn failed: {result.reason.replace('_', ' ')} {text}".strip()))
    return 0 if result.ok else 1
