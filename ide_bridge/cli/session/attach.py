"""``ide-bridge session attach [SESSION]``: watch a session; in a terminal also prompt it and answer it.

Elsewhere than in a terminal it is one line after the other: what a person reads, or with ``--json`` one event a
line, or with ``--raw`` the CLI's own messages. That ends with the session; one that is not live is told as far as
the bridge knows it.

It does not know what the lines say.
"""

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.session.line import Line, Told
from ide_bridge.cli.session.reach import meant_or_only
from ide_bridge.errors import Disconnected
from ide_bridge.session import events

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ide_bridge.cli.session.reach import Known

__all__ = ["attach", "can_be_live", "watch"]

_SETTLE_SECONDS = 0.3


def attach(args: "argparse.Namespace") -> int:
    """Watch the session that is meant, until it ends or the user leaves."""
    known = meant_or_only(args.session)
    if args.raw:
        return _stream(known, _print_message, raw=True)
    if args.json:
        return _stream(known, _print_event)
    return watch(known)


def can_be_live() -> bool:
    """Whether there is a person at both ends of this terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def watch(known: "Known") -> int:
    """Watch a session in the way that fits where we are."""
    return _live(known) if can_be_live() else _stream(known, _Plain().print)


def _live(known: "Known") -> int:
    from rich.console import Console

    from ide_bridge.cli.session.live import Live
    from ide_bridge.cli.session.screen import Ended, Screen

    with Line(known) as line:
        try:
            with Screen(sys.stdin.fileno(), Console()) as screen:
                live = Live(line, screen, sys.stdin.fileno())
                code = live.run()
        except Ended as ended:  # closed together with its window, or ended by someone else
            return ended.code
        except Disconnected:
            raise _lost(known) from None
    _say_farewell(line.session.session, is_live=live.is_live)
    return code


def _say_farewell(session: str, *, is_live: bool) -> None:
    begun = session[:8]
    if is_live:
        print(f"Session {begun} goes on. Come back with: ide-bridge session attach {begun}")
        print(f"End it with: ide-bridge session stop {begun}")
    else:
        print(f"Continue it with: ide-bridge session resume {begun}")


def _stream(known: "Known", show: "Callable[[Told], None]", *, raw: bool = False) -> int:
    """Show what happens, line by line, until the session ends."""
    with Line(known, raw=raw) as line:
        is_live = line.session.is_live
        for told in line.told(None if is_live else _SETTLE_SECONDS):
            show(told)
            if told.number >= line.next and isinstance(told.event, events.Ended):
                return 1 if told.event.text else 0
    if is_live:
        raise _lost(known)
    return 0


def _print_event(told: Told) -> None:
    event: dict[str, Any] = msgspec.json.decode(told.words)
    print(json_text({"number": told.number, **event}), flush=True)


def _print_message(told: Told) -> None:
    if isinstance(told.event, events.Message):
        print(json_text(json.loads(bytes(told.event.message))), flush=True)


class _Plain:
    """Lines for a person who cannot answer right here."""

    def __init__(self) -> None:
        from ide_bridge.cli.session.render import Story

        self._story = Story(plain=True)

    def print(self, told: Told) -> None:
        from rich.text import Text

        shown = [each.plain for each in self._story.lines(told.event) if isinstance(each, Text)]
        if shown:
            text = "\n".join(shown)
            encoding = sys.stdout.encoding or "utf-8"
            print(text.encode(encoding, "replace").decode(encoding), flush=True)


def _lost(known: "Known") -> Disconnected:
    begun = known.session.session[:8]
    again = f"to continue it: ide-bridge session resume {begun}"
    return Disconnected(printable(f"The bridge is gone, and session {begun} with it; {again}"))
