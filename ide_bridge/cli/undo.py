"""``ide-bridge undo [FILE]``: take back what a client changed, the newest change first.

Without FILE it is the newest change of this folder's workspace, with FILE the newest of that file. A FILE that was
never changed here is looked for from the top of the workspace, where ``call`` and clients count from. Once more
goes further back; ``--redo`` comes forward again, from what was taken back last. No bridge need run.

It does not know how a change is kept, or how it is compared with the file.
"""

import json
import os
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING
from unicodedata import normalize

from ide_bridge.cli.printable import printable
from ide_bridge.cli.reach import here
from ide_bridge.errors import SetupProblem
from ide_bridge.home import workspace_folder
from ide_bridge.running import find
from ide_bridge.workspace.journal import Entry, Journal
from ide_bridge.workspace.undoing import Outcome, make_again, take_back

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run"]


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``undo``."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="without, the file that was changed last")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--list", action="store_true", help="only show the changes")
    instead.add_argument("--redo", action="store_true", help="make the change again that was taken back last")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: "argparse.Namespace") -> int:
    """Do what was asked, and say in one sentence what came of it."""
    try:
        journal, entries = _entries(args.file)
        if args.list:
            _print_list(journal, entries, as_json=args.json)
        else:
            _undo(journal, _chosen(entries, args.file, redo=args.redo), redo=args.redo, as_json=args.json)
    except OSError as error:
        raise SetupProblem(f"The journal cannot be used: {error.filename}: {error.strerror}.") from None
    return 0


def _entries(file: str | None) -> tuple[Journal, list[Entry]]:
    """The journal that is meant, and the changes in it, of one file or of all, the newest first."""
    folder = here() if file is None else os.path.dirname(os.path.realpath(file))
    journals = [Journal(state) for state in _states(folder, only_running=file is None)]
    for meant in (_meant_here, _meant_by_clients):
        for journal in journals:
            if found := [entry for entry in journal.entries() if file is None or meant(entry, file)]:
                return journal, found
    return journals[0], []


def _meant_here(entry: Entry, file: str) -> bool:
    return _same(entry.path, os.path.realpath(file))


def _meant_by_clients(entry: Entry, file: str) -> bool:
    return _same(entry.path, os.path.realpath(os.path.join(entry.root, file)))


def _states(folder: str, *, only_running: bool) -> Iterator[str]:
    """Where the workspace of a folder may keep its state: by the bridge that runs, else the innermost first."""
    if (running := find(folder)) is not None:
        yield os.path.dirname(str(running["token_file"]))
        if only_running:
            return
    current = os.path.realpath(folder)
    yield workspace_folder(current)
    while current != (current := os.path.dirname(current)):
        yield workspace_folder(current)


def _chosen(entries: list[Entry], file: str | None, *, redo: bool) -> Entry:
    if redo:
        undone = [entry for entry in entries if entry.undone is not None]
        chosen = max(undone, key=lambda entry: entry.undone or 0, default=None)
    else:
        chosen = next((entry for entry in entries if entry.undone is None), None)
    if chosen is None:
        where = "in this workspace" if file is None else f"of {_shown(os.path.realpath(file))}"
        aim = "make again" if redo else "take back"
        raise SetupProblem(f"There is no change {where} to {aim}; see what there is with: ide-bridge undo --list")
    return chosen


def _undo(journal: Journal, entry: Entry, *, redo: bool, as_json: bool) -> None:
    outcome = make_again(journal, entry) if redo else take_back(journal, entry)
    if outcome not in (Outcome.DONE, Outcome.ALREADY):
        raise SetupProblem(_refusal(journal, entry, outcome, redo=redo))
    text = _success(entry, outcome, redo=redo)
    print(json.dumps({"text": text, "change": _described(journal, entry, undone=not redo)}) if as_json else text)


def _success(entry: Entry, outcome: Outcome, *, redo: bool) -> str:
    file, who, when = _words(entry)
    if outcome is Outcome.ALREADY:
        side = "after" if redo else "before"
        return f"{file} is already as it was {side} {who} changed it {when}; nothing was written."
    if redo:
        return f"Wrote to {file} again what {who} wrote {when}."
    did = f"Removed {file}, which {who} made" if entry.new else f"Took back what {who} wrote to {file}"
    return f"{did} {when}; to have it again: ide-bridge undo --redo"


def _refusal(journal: Journal, entry: Entry, outcome: Outcome, *, redo: bool) -> str:
    file, who, when = _words(entry)
    if outcome is Outcome.LOST:
        aim = "made again" if redo else "taken back"
        why = entry.lost or "newer changes have taken its place in the journal"
        return f"What {who} wrote to {file} {when} cannot be {aim}: {why}."
    happened = "was removed" if outcome is Outcome.GONE else "has changed"
    since = f"what {who} wrote {when} was taken back" if redo else f"{who} wrote to it {when}"
    copies = f"what was written is in {printable(journal.copy_of(entry, 'after'))}"
    if not entry.new:
        copies = f"the text before is in {printable(journal.copy_of(entry, 'before'))}, {copies}"
    return f"{file} {happened} since {since}, so it was left alone; {copies}"


def _print_list(journal: Journal, entries: list[Entry], *, as_json: bool) -> None:
    if as_json:
        described = [_described(journal, entry, undone=entry.undone is not None) for entry in entries]
        print(json.dumps({"changes": described}))
    elif not entries:
        print("No client has changed anything here.")
    else:
        print(*map(_line, entries), sep="\n")


def _line(entry: Entry) -> str:
    file, who, _ = _words(entry)
    state = "taken back" if entry.undone is not None else entry.lost
    return f"{_moment(entry.when):%Y-%m-%d %H:%M}  {who}  {entry.what}  {file}" + (f"  ({state})" if state else "")


def _described(journal: Journal, entry: Entry, *, undone: bool) -> dict[str, object]:
    return {
        "when": _moment(entry.when).isoformat(timespec="seconds"),
        "client": entry.client,
        "what": entry.what,
        "path": entry.path,
        "new": entry.new,
        "undone": undone,
        "problem": entry.lost or None,
        "before": None if entry.lost or entry.new else journal.copy_of(entry, "before"),
        "after": None if entry.lost else journal.copy_of(entry, "after"),
    }


def _same(one: str, other: str) -> bool:
    return one == other or normalize("NFC", one) == normalize("NFC", other)


def _words(entry: Entry) -> tuple[str, str, str]:
    """What file, who, and when, as a sentence wants them."""
    return _shown(entry.path), printable(entry.client) or "a client", _clock(_moment(entry.when))


def _shown(path: str) -> str:
    below = os.path.relpath(path)
    return printable(path if below.split(os.sep)[0] == os.pardir else below)


def _moment(when: float) -> datetime:
    return datetime.fromtimestamp(when).astimezone()


def _clock(moment: datetime) -> str:
    today = moment.date() == datetime.now().astimezone().date()
    return f"at {moment:%H:%M}" if today else f"on {moment:%Y-%m-%d} at {moment:%H:%M}"
