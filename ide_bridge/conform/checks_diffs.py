"""What is demanded of an editor that shows diffs.

It does not know any editor.
"""

import os
from contextlib import suppress

from ide_bridge.conform.person import Cannot
from ide_bridge.conform.subject import Subject
from ide_bridge.conform.verdict import Group, demand
from ide_bridge.model import DiffDecided, SelectionChanged

__all__ = ["DIFFS"]

DIFFS = Group("diffs", "diff")

BEFORE = "one\ntwo\nthree\n"
AFTER = "one\n2\nthree\nfour\n"


@DIFFS.check()
async def kept(subject: Subject) -> None:
    """A diff that is kept is reported once, with the proposed text; the editor does not write the file."""
    path = subject.file()
    number = await subject.show(path, AFTER)
    await subject.person.keep(number)
    await _demand_kept(subject, number, AFTER)
    demand(subject.on_disk(path) == BEFORE, f"Expected {path} to be left to the client; the editor has written it")


@DIFFS.check()
async def kept_with_changes(subject: Subject) -> None:
    """A diff that is kept with changes of the user is reported with his text."""
    number = await subject.show(subject.file(), AFTER)
    await subject.person.keep(number, "one\n2\nmine 😀\nfour\n")
    await _demand_kept(subject, number, "one\n2\nmine 😀\nfour\n")


@DIFFS.check()
async def rejected(subject: Subject) -> None:
    """A diff whose window is closed is reported once, as rejected."""
    path = subject.file()
    number = await subject.show(path, AFTER)
    await subject.person.reject(number)
    await _demand_rejected(subject, number)
    demand(subject.on_disk(path) == BEFORE, f"Expected {path} to be unchanged; it was written")


@DIFFS.check()
async def closed_from_outside(subject: Subject) -> None:
    """A diff that is closed from outside goes silently: nobody has decided."""
    number = await subject.show(subject.file(), AFTER)
    await subject.close_diff(number)
    await _demand_undecided(subject)
    await subject.close_diff(number)
    await _demand_undecided(subject)


@DIFFS.check()
async def unknown_closed(subject: Subject) -> None:
    """Closing a diff that was never shown is no error."""
    await subject.close_diff(987654)
    await _demand_undecided(subject)


@DIFFS.check()
async def two_at_once(subject: Subject) -> None:
    """Of two diffs each is decided for itself."""
    first = await subject.show(subject.file("first.txt"), "first\n")
    second = await subject.show(subject.file("second.txt"), "second\n")
    await subject.person.keep(first)
    await _demand_kept(subject, first, "first\n")
    await subject.person.reject(second)
    await _demand_rejected(subject, second)


@DIFFS.check()
async def two_of_one_file(subject: Subject) -> None:
    """Two diffs of one file are two diffs."""
    path = subject.file()
    first, second = await subject.show(path, "first\n"), await subject.show(path, "second\n")
    await subject.person.reject(second)
    await _demand_rejected(subject, second)
    await subject.person.keep(first)
    await _demand_kept(subject, first, "first\n")


@DIFFS.check()
async def other_stays(subject: Subject) -> None:
    """Closing one diff from outside leaves the other to the user."""
    first = await subject.show(subject.file("first.txt"), "first\n")
    second = await subject.show(subject.file("second.txt"), "second\n")
    await subject.close_diff(second)
    await _demand_undecided(subject)
    await subject.person.keep(first)
    await _demand_kept(subject, first, "first\n")


@DIFFS.check()
async def shown_again(subject: Subject) -> None:
    """A diff that is shown a second time, as after a restart of the bridge, takes the place of the first."""
    path = subject.file()
    number = await subject.show(path, "old proposal\n")
    await subject.show(path, AFTER, number=number)
    await _demand_undecided(subject)
    await subject.person.keep(number)
    await _demand_kept(subject, number, AFTER)


@DIFFS.check()
async def new_file(subject: Subject) -> None:
    """A diff may propose a file that does not exist, in a folder that does not; the editor makes neither."""
    path = os.path.join(os.path.realpath(subject.folder), "new folder", "new.txt")
    number = await subject.show(path, "brand new\n")
    await subject.person.keep(number)
    await _demand_kept(subject, number, "brand new\n")
    demand(not os.path.lexists(os.path.dirname(path)), f"Expected {path} to be left to the client; it was made")


@DIFFS.check()
async def new_file_rejected(subject: Subject) -> None:
    """A new file that is rejected leaves nothing behind, on disk or among the open files."""
    path = os.path.join(os.path.realpath(subject.folder), "new.txt")
    number = await subject.show(path, "brand new\n")
    await subject.person.reject(number)
    await _demand_rejected(subject, number)
    demand(not os.path.lexists(path), f"Expected {path} not to be made; it was")
    demand(path not in await subject.open_paths(), f"Expected {path} not to be among the open files; it is")


@DIFFS.check()
async def odd_name(subject: Subject) -> None:
    """The diff of a file with an odd name is as good as any."""
    number = await subject.show(subject.file("odd $name #1 %s 'q' [😀].txt"), AFTER)
    await subject.person.keep(number)
    await _demand_kept(subject, number, AFTER)


@DIFFS.check()
async def crlf(subject: Subject) -> None:
    """CRLF line ends of the proposed text are kept."""
    await _demand_exact(subject, "one\r\ntwo\r\n", "one\r\n2\r\nthree\r\n")


@DIFFS.check()
async def crlf_proposed_for_lf(subject: Subject) -> None:
    """The line ends are those of the proposed text, not those of the file."""
    await _demand_exact(subject, "one\ntwo\n", "one\r\n2\r\n")


@DIFFS.check()
async def mixed_line_ends(subject: Subject) -> None:
    """Mixed line ends of the proposed text stay mixed."""
    await _demand_exact(subject, "one\r\ntwo\n", "one\r\ntwo\nthree\r\n")


@DIFFS.check()
async def no_final_line_end(subject: Subject) -> None:
    """A proposed text without a final line end is kept without one."""
    await _demand_exact(subject, "one\ntwo", "one\n2")


@DIFFS.check()
async def final_line_end(subject: Subject) -> None:
    """A proposed text with a final line end is kept with it, also where the file has none."""
    await _demand_exact(subject, "one\ntwo", "one\n2\n")


@DIFFS.check()
async def emptied(subject: Subject) -> None:
    """A diff may propose to empty a file: what is kept then is nothing at all."""
    await _demand_exact(subject, BEFORE, "")


@DIFFS.check()
async def unicode(subject: Subject) -> None:
    """Emoji, combining characters, tabs, blanks at line ends and empty lines at the end of the text are kept."""
    await _demand_exact(subject, BEFORE, "😀\te\u0301 日本 \u00a0 \n\n\ttrailing  \n\n\n")


@DIFFS.check("dirty")
async def unsaved_changes(subject: Subject) -> None:
    """What the user has typed into the file and not saved is there after a diff of that file is rejected."""
    path = subject.file()
    text = await subject.make_dirty(path)
    number = await subject.show(path, AFTER)
    await subject.person.reject(number)
    await _demand_rejected(subject, number)
    await _demand_unsaved(subject, path, text)


@DIFFS.check("dirty")
async def unsaved_changes_and_kept(subject: Subject) -> None:
    """What the user has typed into the file and not saved is not thrown away when a diff of that file is kept."""
    path = subject.file()
    text = await subject.make_dirty(path)
    number = await subject.show(path, AFTER)
    await subject.person.keep(number)
    await _demand_kept(subject, number, AFTER)
    await _demand_unsaved(subject, path, text)


@DIFFS.check()
async def not_an_open_file(subject: Subject) -> None:
    """While a diff is shown, what it is shown in is neither an open file nor the place of a selection."""
    path, other = subject.file(), subject.file("other.txt")
    await subject.open_file(other)
    subject.forget()
    number = await subject.show(path, AFTER)
    await subject.quiet()
    strange = [file for file in await subject.open_paths() if file not in (path, other)]
    demand(not strange, f"Expected only files among the open files; {strange} is none")
    selected = [event.selection.path for event in subject.since(SelectionChanged) if event.selection is not None]
    strange = [path for path in selected if not os.path.isfile(path)]
    demand(not strange, f"Expected selections in files only; one came with the path {strange[:1]}")
    await subject.close_diff(number)


@DIFFS.check()
async def layout_after_keeping(subject: Subject) -> None:
    """After a diff was kept, windows, current file and cursor are as before."""
    before = await _placed(subject)
    number = await subject.show(subject.file(), AFTER)
    await subject.person.keep(number)
    await _demand_kept(subject, number, AFTER)
    await _demand_as_before(subject, before)


@DIFFS.check()
async def layout_after_rejecting(subject: Subject) -> None:
    """After a diff was rejected, windows, current file and cursor are as before."""
    before = await _placed(subject)
    number = await subject.show(subject.file(), AFTER)
    await subject.person.reject(number)
    await _demand_rejected(subject, number)
    await _demand_as_before(subject, before)


@DIFFS.check()
async def layout_after_closing(subject: Subject) -> None:
    """After a diff was closed from outside, windows, current file and cursor are as before."""
    before = await _placed(subject)
    await subject.close_diff(await subject.show(subject.file(), AFTER))
    await _demand_as_before(subject, before)


async def _demand_exact(subject: Subject, before: str, proposed: str) -> None:
    number = await subject.show(subject.file("exact.txt", before), proposed)
    await subject.person.keep(number)
    await _demand_kept(subject, number, proposed)


async def _demand_kept(subject: Subject, number: int, contents: str) -> None:
    event = await subject.event(DiffDecided, lambda event: event.diff == number, f"a decision about diff {number}")
    demand(event.decision == "kept", f"Expected diff {number} to be reported as kept; it is {event.decision}")
    demand(event.contents == contents, f"Expected the text {contents!r}; it is {event.contents!r}")
    await _demand_decided_once(subject, number)


async def _demand_rejected(subject: Subject, number: int) -> None:
    event = await subject.event(DiffDecided, lambda event: event.diff == number, f"a decision about diff {number}")
    demand(
        event.decision == "rejected", f"Expected diff {number} to be reported as rejected; it is {event.decision}"
    )
    await _demand_decided_once(subject, number)


async def _demand_decided_once(subject: Subject, number: int) -> None:
    await subject.close_diff(number)  # clients close what they were answered
    await subject.quiet()
    decided = [event.decision for event in subject.since(DiffDecided) if event.diff == number]
    demand(len(decided) == 1, f"Expected one decision about diff {number}; {' and '.join(decided)} came")


async def _demand_undecided(subject: Subject) -> None:
    await subject.quiet()
    decided = [f"diff {event.diff} {event.decision}" for event in subject.since(DiffDecided)]
    demand(not decided, f"Expected no decision, because the user made none; {', '.join(decided)} came")


async def _demand_unsaved(subject: Subject, path: str, text: str) -> None:
    found = await subject.read_buffer(path)
    demand(found == text, f"Expected the unsaved text {text!r} to be there still; it is {found!r}")
    demand(subject.on_disk(path) == BEFORE, f"Expected {path} to be unchanged on disk; it was written")


async def _placed(subject: Subject) -> tuple[object, str | None, tuple[int, int]]:
    """Two windows, and a cursor not at the start; gives what is to be as before."""
    path = subject.file("before.txt", "".join(f"line {number}\n" for number in range(40)))
    await subject.person.open(path)
    with suppress(Cannot):  # one window is a layout too
        await subject.person.split()
    await subject.person.place(20, 3)
    return await _place(subject)


async def _place(subject: Subject) -> tuple[object, str | None, tuple[int, int]]:
    at = await subject.person.cursor()
    return await subject.person.layout(), await subject.current_path(), (at.line, at.column)


async def _demand_as_before(subject: Subject, before: tuple[object, str | None, tuple[int, int]]) -> None:
    async def is_as_before() -> bool:
        return await _place(subject) == before

    await subject.until(is_as_before, f"windows, file and cursor as before, {before}", lambda: _place(subject))
