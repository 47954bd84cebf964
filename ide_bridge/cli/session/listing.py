"""``ide-bridge session list | approvals``: which sessions there are, and what they wait for.

What waits for the user comes first, then what works, what is idle, what was lost; the newest of each first.

It does not know how sessions are found.
"""

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.reach import here
from ide_bridge.cli.session.past import past_of
from ide_bridge.cli.session.reach import Listed, Open, all_bridges, called, known_sessions, open_approvals, short
from ide_bridge.cli.session.screen import rendered

if TYPE_CHECKING:
    import argparse

    from ide_bridge.session.approvals import Approval

__all__ = ["age", "approval_lines", "approvals", "list_"]

_ORDER = ("waiting", "working", "starting", "idle", "lost", "stopped", "past")
_COLOURS = {"waiting": "bold yellow", "working": "green", "starting": "green", "lost": "red"}
_ENDLESS = 100_000
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def list_(args: "argparse.Namespace") -> int:
    """Show the sessions of all bridges; with ``--all`` also what is only in this folder's transcripts."""
    bridges = all_bridges()
    known = known_sessions(bridges)
    past = past_of(here(), {each.session.session for each in known}) if args.all else []
    if args.json:
        print(json_text({"sessions": [each.said for each in _sorted(known)] + [each.said for each in past]}))
        return 0
    shown = _sorted([*(each for each in known if args.all or each.session.state != "stopped"), *past])
    if shown:
        _print_table(shown, [*known, *past], open_approvals(bridges))
    hidden = 0 if args.all else len(known) - len(shown)
    if hidden or not shown:
        print(_rest(hidden, anything=bool(shown)))
    return 0


def approvals(args: "argparse.Namespace") -> int:
    """Show what waits for an answer."""
    waiting = open_approvals(all_bridges())
    if args.json:
        print(json_text({"approvals": [each.said for each in waiting]}))
    elif waiting:
        print(*approval_lines(waiting), sep="\n")
    else:
        print("Nothing waits for an answer.")
    return 0


def approval_lines(waiting: Sequence[Open]) -> list[str]:
    """One line for each, with the id by which it is answered."""
    return [
        printable(
            f"{each.approval.id}  {each.approval.title}  (session {each.approval.session[:8]}, {_ago(each)})"
        )
        for each in waiting
    ]


def age(moment: float) -> str:
    """How long ago, in the largest unit that says something."""
    seconds = max(0, int(time.time() - moment))
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds // size} {unit}"


def _ago(each: Open) -> str:
    return f"{age(each.approval.asked)} ago"


def _rest(hidden: int, *, anything: bool) -> str:
    were = "1 was" if hidden == 1 else f"{hidden} were"
    if not anything:
        stopped = f" {were} stopped: ide-bridge session list --all" if hidden else ""
        return f"No session is running. Start one with: ide-bridge session start{';' if hidden else ''}{stopped}"
    return f"{were} stopped: ide-bridge session list --all"


def _sorted(known: Sequence[Listed]) -> list[Listed]:
    def rank(each: Listed) -> tuple[int, float]:
        state = each.session.state
        return (_ORDER.index(state) if state in _ORDER else len(_ORDER), -each.session.changed)

    return sorted(known, key=rank)


def _print_table(shown: Sequence[Listed], known: Sequence[Listed], waiting: Sequence[Open]) -> None:
    folder = os.path.realpath(here())
    elsewhere = any(each.session.folder != folder for each in shown)
    columns = [Column(name, no_wrap=True) for name in ("state", "age", "session", "title")]
    table = Table(*columns, *([Column("folder")] if elsewhere else []), box=None, pad_edge=False)
    for each in shown:
        place = "" if each.session.folder == folder else printable(each.session.folder)
        table.add_row(*_row(each, known), *([Text(place)] if elsewhere else []))
        for asked in _asked_by(each, waiting):
            table.add_row("", "", Text(asked.id, "bold yellow"), Text(f"? {printable(asked.title)}"))
    # Where nobody looks at it, a row is a line, however long.
    console = Console() if sys.stdout.isatty() else Console(width=_ENDLESS)
    print(rendered(console, [table]), end="")


def _asked_by(each: Listed, waiting: Sequence[Open]) -> "list[Approval]":
    return [one.approval for one in waiting if one.approval.session == each.session.session]


def _row(each: Listed, known: Sequence[Listed]) -> list[Text]:
    session = each.session
    problem = f"  ({printable(session.problem)})" if session.problem else ""
    return [
        Text(printable(session.state), _COLOURS.get(session.state, "dim")),
        Text(age(session.changed), "dim"),
        Text(short(session.session, known), "cyan"),
        Text.assemble(called(session), (problem, "red")),
    ]
