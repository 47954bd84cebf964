"""Undoing: a change of the journal is taken back, or made again, unless somebody's later work would be lost.

1. A file that holds anything but what the change left there is not touched.
2. What ``writeFile`` left is known to the byte. After a kept diff the client writes the file itself, and may
   keep the line ends, the last line end and the byte order mark that the file had; that much may differ.
3. Old bytes come back as they were, also those that are no text, so this does not go through `Files.write`, which
   adapts line ends, but it goes the same way: through the guard, in one step, with the mode of the file kept.
4. A new file is removed, and with it the folders that were made for it, as far as they are empty.

It does not know which change is meant, or how to tell a person what came of it.
"""

import os
from enum import Enum

from ide_bridge.workspace.guard import Guard, file_problem
from ide_bridge.workspace.journal import Entry, Journal, Lost, Side
from ide_bridge.workspace.journalled import look
from ide_bridge.workspace.places import Place
from ide_bridge.workspace.replacing import Old, Stamp, replace

__all__ = ["Outcome", "make_again", "take_back"]

_UTF8_MARK = b"\xef\xbb\xbf"


class Outcome(Enum):
    """What came of it."""

    DONE = "done"
    ALREADY = "the file is as it would be, and nothing was written"
    CHANGED = "the file changed since and was left alone"
    GONE = "the file was removed since, and stays so"
    LOST = "there is no copy"


def take_back(journal: Journal, entry: Entry) -> Outcome:
    """Give a file the text it had before a change."""
    return _exchange(journal, entry, "after", "before")


def make_again(journal: Journal, entry: Entry) -> Outcome:
    """Give a file the text it had after a change that was taken back."""
    return _exchange(journal, entry, "before", "after")


def _exchange(journal: Journal, entry: Entry, present: Side, wanted: Side) -> Outcome:
    old, new = journal.text(entry, present), journal.text(entry, wanted)
    if isinstance(old, Lost) or isinstance(new, Lost):
        return Outcome.LOST
    guard = Guard([entry.root])
    place = Place(guard.roots[0], os.path.relpath(entry.path, entry.root).replace(os.sep, "/"))
    found = look(guard, place, 2 * journal.limits.text)  # line ends may have made it longer
    outcome = Outcome.ALREADY
    if found.data != new:
        if not (found.data == old or (entry.what == "diff" and _alike(found.data, old))):
            return Outcome.GONE if found.data is None else Outcome.CHANGED
        if isinstance(found.data, bytes) and found.data != old:
            journal.amend(entry, present, found.data)
        if not _put(guard, place, found.stamp, new):
            return Outcome.CHANGED
        if new is None:
            guard.remove_folders(place, entry.made)
        outcome = Outcome.DONE
    journal.mark(entry, undone=wanted == "before")
    return outcome


def _put(guard: Guard, place: Place, expected: Stamp | None, data: bytes | None) -> bool:
    """Make `data` the contents of a file, or remove it; False if it is not in the expected state any more."""
    try:
        with guard.enter(place) as spot:
            old = Old.find(spot.folder, spot.name)
            if (None if old is None else Stamp.of(old.info)) != expected:
                return False
            if data is None:
                spot.folder.remove(spot.name)
                spot.folder.sync()
            else:
                replace(spot.folder, spot.name, data, old, expected)
    except OSError as error:
        raise file_problem("write", error) from error
    return True


def _alike(found: bytes | Lost | None, wanted: bytes | None) -> bool:
    """Whether a file holds what was kept, as the CLI writes it: perhaps without the last line end."""
    if not isinstance(found, bytes) or wanted is None:
        return False
    written, kept = _plain(found), _plain(wanted)
    return written.removesuffix(b"\n") == kept.removesuffix(b"\n") or written == kept.removesuffix(b"\n")


def _plain(data: bytes) -> bytes:
    return data.removeprefix(_UTF8_MARK).replace(b"\r\n", b"\n")
