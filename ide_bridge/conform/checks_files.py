"""What is demanded of an editor about files: which are open, which is looked at, opening, saving, closing.

It does not know any editor.
"""

import os

from ide_bridge.answers import settled
from ide_bridge.conform.subject import Subject, span
from ide_bridge.conform.verdict import Group, Nonconforming, Refused, demand
from ide_bridge.errors import Unsupported
from ide_bridge.model import FileEvent

__all__ = ["FILES"]

FILES = Group("files")

ODD_NAMES = (
    "with space.txt",
    " leading and trailing .txt ",
    "$HOME.txt",
    'it\'s "quoted" `so`.txt',
    "100%.txt",
    "a#b#.txt",
    "-leading-dash.txt",
    "+10",
    "[brackets]{a,b}.txt",
    "star*and?.txt",
    "back\\slash.txt",
    "semi;colon|bar&.txt",
    "~tilde",
    "größe-日本-😀.txt",
    "sub folder/$x/[y].txt",
)


@FILES.check()
async def opened(subject: Subject) -> None:
    """A file that the user opens is among the open files, clean, and is the current one."""
    path = subject.file()
    await subject.person.open(path)
    await subject.until(lambda: _is_current(subject, path), f"{path} as the current file", subject.current_path)
    file = await subject.listed(path)
    demand(file.active, f"Expected {path} to be told as the active one; it was not")
    demand(not file.dirty, f"Expected {path} to be told as clean; it was told to have unsaved changes")
    wanted = (3,) if subject.line else (0, 3)
    demand(file.lines in wanted, f"Expected {path} to be told to have 3 lines; it was told to have {file.lines}")


@FILES.check("focus")
async def opening_is_told(subject: Subject) -> None:
    """That the user opens a file is reported as opened and as focused."""
    path = subject.file()
    await subject.person.open(path)
    await subject.file_event("opened", path)
    await subject.file_event("focused", path)


@FILES.check("focus")
async def focus_moves(subject: Subject) -> None:
    """When the user goes to another file, that one is reported as focused, and it alone is active."""
    first, second = subject.file("first.txt"), subject.file("second.txt")
    await subject.person.open(first)
    await subject.person.open(second)
    subject.forget()
    await subject.person.open(first)
    await subject.file_event("focused", first)
    await subject.until(lambda: _is_current(subject, first), f"{first} as the current file", subject.current_path)
    active = [file.path for file in await subject.open_files() if file.active]
    demand(active == [first], f"Expected only {first} to be active; active are {active}")


@FILES.check("focus")
async def closing_is_told(subject: Subject) -> None:
    """A file that the user closes is reported as closed, and is no longer among the open files."""
    path = subject.file()
    await subject.person.open(path)
    await subject.person.close()
    await subject.file_event("closed", path)
    open_now = await subject.open_paths()
    demand(path not in open_now, f"Expected {path} to be closed; it is still among the open files")


@FILES.check("dirty")
async def unsaved_text(subject: Subject) -> None:
    """What the user has typed and not saved is told: the file is dirty, and its text is the one on the screen."""
    path, other = subject.file(), subject.file("other.txt")
    await subject.open_file(other)
    await subject.make_dirty(path, "unsaved ")
    demand((await subject.listed(path)).dirty, f"Expected {path} to be told to have unsaved changes; it was not")
    text = await subject.read_buffer(other)
    demand(text is None, f"Expected no unsaved text for {other}, which has none; {text!r} came")
    demand(
        subject.on_disk(path) == "one\ntwo\nthree\n", f"Expected {path} to be unchanged on disk; it was written"
    )


@FILES.check("dirty")
async def unsaved_text_keeps_its_line_ends(subject: Subject) -> None:
    """The unsaved text of a file with CRLF line ends has them too, as it will have them on disk."""
    path = subject.file("windows.txt", "one\r\ntwo\r\n")
    await subject.make_dirty(path, "unsaved ")


@FILES.check("dirty")
async def unsaved_unicode(subject: Subject) -> None:
    """Unsaved text comes as it is: emoji, combining characters, tabs."""
    path = subject.file("unicode.txt", "😀 e\u0301\t日本\n")
    await subject.make_dirty(path, "→😀\u00a0")


@FILES.check("dirty")
async def saved_by_the_user(subject: Subject) -> None:
    """A file that the user saves is reported as saved, is clean, and is on disk as it was on the screen."""
    path = subject.file()
    text = await subject.make_dirty(path)
    subject.forget()
    await subject.person.save()
    await subject.file_event("saved", path)
    demand(subject.on_disk(path) == text, f"Expected {text!r} on disk; it is {subject.on_disk(path)!r}")
    await _demand_clean(subject, path)


@FILES.check()
async def unnamed(subject: Subject) -> None:
    """A buffer without a name is never told: not as open, not as current, not in an event."""
    path = subject.file()
    await subject.person.open(path)
    subject.forget()
    await subject.person.scratch()
    await subject.quiet()
    current = await subject.current_path()
    demand(current in (None, path), f"Expected no current file, or still {path}; it is {current!r}")
    demand(await subject.open_paths() == [path], f"Expected only {path} open; it is {await subject.open_paths()}")
    strange = [event.path for event in subject.since(FileEvent) if event.path != path]
    demand(not strange, f"Expected no event of a buffer without a name; one came with the path {strange[:1]}")


@FILES.check()
async def several_windows(subject: Subject) -> None:
    """A file in two windows is one open file, and is still the current one."""
    path = subject.file()
    await subject.person.open(path)
    await subject.person.split()
    await _demand_once(subject, path)


@FILES.check()
async def several_tabs(subject: Subject) -> None:
    """A file in two tabs is one open file, and files of other tabs are open too."""
    first, second = subject.file("first.txt"), subject.file("second.txt")
    await subject.person.open(first)
    await subject.person.tab()
    await _demand_once(subject, first)
    await subject.person.open(second)
    await subject.until(
        lambda: _is_current(subject, second), f"{second} as the current file", subject.current_path
    )
    await subject.listed(first)


@FILES.check()
async def open_file(subject: Subject) -> None:
    """A file that is asked for is opened and looked at."""
    path = subject.file()
    await subject.open_file(path)
    await subject.until(lambda: _is_current(subject, path), f"{path} as the current file", subject.current_path)
    await subject.open_file(path)
    await _demand_once(subject, path)


@FILES.check("selection")
async def open_file_at_a_range(subject: Subject) -> None:
    """A file that is asked for at a range is opened there: it is selected, or the cursor is at its start."""
    path = subject.file("range.txt", "one\ntwo 😀 three\nfour\n")
    await subject.open_file(path, span(1, 6, 1, 11))
    selection = await subject.selection()
    if selection is None or selection.path != path:
        raise Nonconforming(f"Expected a selection or a cursor in {path}; what came is {selection}.")
    start = selection.range.start
    demand(
        (start.line, start.column) == (1, 6),
        f"Expected line 1, column 6, from 0 in code points; it is line {start.line}, column {start.column}",
    )
    demand(
        selection.text in ("", "three"), f"Expected 'three' to be selected, or nothing; it is {selection.text!r}"
    )


@FILES.check()
async def open_file_beyond_its_end(subject: Subject) -> None:
    """A range that lies beyond the end of the text is no reason not to open the file."""
    path = subject.file()
    await subject.open_file(path, span(500, 80, 600, 90))
    await subject.until(lambda: _is_current(subject, path), f"{path} as the current file", subject.current_path)


@FILES.check()
async def open_file_without_focus(subject: Subject) -> None:
    """A file that is asked for without focus is opened behind the user's back: he stays where he is."""
    path, other = subject.file(), subject.file("other.txt")
    await subject.open_file(path)
    await subject.open_file(other, span(1, 0, 1, 3), focus=False)
    current = await subject.current_path()
    demand(current == path, f"Expected {path} to be the current file still; it is {current!r}")


@FILES.check()
async def odd_names(subject: Subject) -> None:
    """Names with spaces, quotes, %, #, $, brackets, emoji and the like: that very file is opened and closed."""
    wrong = [problem for name in ODD_NAMES if (problem := await _name_problem(subject, subject.file(name)))]
    demand(not wrong, f"Expected each file to be opened and closed under its own name; {'; '.join(wrong)}")


@FILES.check()
async def newline_in_a_name(subject: Subject) -> None:
    """A name with a line break is taken as it is, or refused; no other file is opened in its place."""
    path = subject.file("new\nline.txt")
    try:
        await settled(subject.editor.open_file(path, None, focus=True))
    except Refused:
        demand(
            await subject.open_paths() == [], "Expected nothing to be open after a refusal; something was opened"
        )
        return
    open_now = await subject.open_paths()
    demand(open_now == [path], f"Expected {path!r} to be open, or a refusal; open is {open_now}")


@FILES.check()
async def save_file(subject: Subject) -> None:
    """An open file is saved when asked, and it is said so."""
    path = subject.file()
    await subject.open_file(path)
    saved = await settled(subject.editor.save_file(path))
    demand(saved is True, f"Expected to be told that {path} was saved; the contrary was told")
    demand(subject.on_disk(path) == "one\ntwo\nthree\n", f"Expected {path} to hold what it held; it was changed")


@FILES.check("dirty")
async def save_unsaved_file(subject: Subject) -> None:
    """Unsaved text is saved when asked, also of a file that is not looked at, and no other file is."""
    path, other = subject.file(), subject.file("other.txt")
    text = await subject.make_dirty(path)
    await subject.make_dirty(other, "mine ")
    subject.forget()
    saved = await settled(subject.editor.save_file(path))
    demand(saved is True, f"Expected to be told that {path} was saved; the contrary was told")
    demand(subject.on_disk(path) == text, f"Expected {text!r} on disk; it is {subject.on_disk(path)!r}")
    await subject.file_event("saved", path)
    await _demand_clean(subject, path)
    demand(subject.on_disk(other) == "one\ntwo\nthree\n", f"Expected {other} not to be saved; it was")
    current = await subject.current_path()
    demand(current == other, f"Expected {other} to be the current file still; it is {current!r}")


@FILES.check()
async def save_file_that_is_not_open(subject: Subject) -> None:
    """A file that is not open is not saved, and it is said so."""
    path = subject.file()
    saved = await settled(subject.editor.save_file(path))
    demand(
        saved is False, f"Expected to be told that {path}, which is not open, was not saved; the contrary was told"
    )
    demand(path not in await subject.open_paths(), f"Expected {path} not to be opened for that; it was")


@FILES.check()
async def close_file(subject: Subject) -> None:
    """An open file is closed when asked; the others stay open."""
    path, other = subject.file(), subject.file("other.txt")
    await subject.open_file(other)
    await subject.open_file(path)
    subject.forget()
    closed = await settled(subject.editor.close_file(path))
    demand(closed is True, f"Expected to be told that {path} was closed; the contrary was told")
    open_now = await subject.open_paths()
    demand(open_now == [other], f"Expected only {other} to be open then; open is {open_now}")
    if "focus" in subject.editor.features:
        await subject.file_event("closed", path)


@FILES.check()
async def close_file_that_is_not_open(subject: Subject) -> None:
    """A file that is not open is not closed, and it is said so."""
    path = subject.file()
    closed = await settled(subject.editor.close_file(path))
    demand(
        closed is False, f"Expected to be told that {path}, which is not open, was not closed; it was told to be"
    )


@FILES.check("dirty")
async def close_unsaved_file(subject: Subject) -> None:
    """A file with unsaved changes is not closed when asked: nobody loses what he typed."""
    path = subject.file()
    text = await subject.make_dirty(path)
    try:
        closed = await settled(subject.editor.close_file(path))
    except (Refused, Unsupported):
        closed = False
    demand(closed is False, f"Expected {path}, which has unsaved changes, to stay open; it was told to be closed")
    kept = await subject.read_buffer(path)
    demand(kept == text, f"Expected the unsaved text {text!r} to be there still; it is {kept!r}")


@FILES.check("dirty")
async def read_buffer_of_a_file_that_is_not_open(subject: Subject) -> None:
    """There is no unsaved text of a file that is not open."""
    path = subject.file()
    text = await subject.read_buffer(path)
    demand(text is None, f"Expected no unsaved text for {path}, which is not open; {text!r} came")
    demand(path not in await subject.open_paths(), f"Expected {path} not to be opened for that; it was")


async def _is_current(subject: Subject, path: str) -> bool:
    return await subject.current_path() == path


async def _demand_clean(subject: Subject, path: str) -> None:
    demand(not (await subject.listed(path)).dirty, f"Expected {path} to be told as clean once saved; it was not")
    text = await subject.read_buffer(path)
    demand(text is None, f"Expected no unsaved text for {path} once saved; {text!r} came")


async def _demand_once(subject: Subject, path: str) -> None:
    open_now = await subject.open_paths()
    demand(open_now.count(path) == 1, f"Expected {path} once among the open files; they are {open_now}")
    current = await subject.current_path()
    demand(current == path, f"Expected {path} as the current file; it is {current!r}")


async def _name_problem(subject: Subject, path: str) -> str:
    """What goes wrong with the file of this name, if anything does."""
    name = os.path.relpath(path, subject.folder)
    try:
        await settled(subject.editor.open_file(path, None, focus=True))
        if (open_now := await subject.open_paths()) != [path]:
            return f"{name!r} was to be opened, and open is {open_now}"
        if not await settled(subject.editor.close_file(path)):
            return f"{name!r} was not closed"
    except Refused as refusal:
        return f"{name!r} was refused: {refusal}"
    return ""
