"""What is demanded of an editor about diagnostics, and about files that a client has written.

It does not know any editor.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from ide_bridge.answers import settled
from ide_bridge.conform.subject import Subject, span
from ide_bridge.conform.verdict import Group, Nonconforming, demand
from ide_bridge.model import Diagnostic, DiagnosticsChanged

__all__ = ["DIAGNOSTICS", "RELOADING"]

DIAGNOSTICS = Group("diagnostics", "diagnostics")
RELOADING = Group("reloading")


@DIAGNOSTICS.check()
async def none(subject: Subject) -> None:
    """A file without problems has no diagnostics, nor has one that is not open."""
    path, other = subject.file(), subject.file("other.txt")
    await subject.open_file(path)
    for asked in (path, other):
        found = await settled(subject.editor.diagnostics(asked))
        demand(len(found) == 0, f"Expected no diagnostics in {asked}; {_told(found)} came")


@DIAGNOSTICS.check()
async def found(subject: Subject) -> None:
    """A problem that the editor finds is reported, and told with its severity, its words and its place."""
    path = subject.file()
    await subject.open_file(path)
    subject.forget()
    await subject.person.find(path, 1, "two is not a number")
    await _demand_reported(subject, path)
    problem = await _only(subject, path)
    demand(
        "two is not a number" in problem.message, f"Expected the words of the linter; they are {problem.message!r}"
    )
    demand(problem.severity == "error", f"Expected the severity error; it is {problem.severity}")
    _demand_place(problem, 1)


@DIAGNOSTICS.check()
async def columns(subject: Subject) -> None:
    """The columns of a problem count code points, also behind an emoji."""
    path = subject.file("emoji.txt", "one\n😀x = 1\n")
    await subject.open_file(path)
    await subject.person.find(path, 1, "no such name")
    await _demand_reported(subject, path)
    _demand_place(await _only(subject, path), 1)


@DIAGNOSTICS.check()
async def one_file_or_all(subject: Subject) -> None:
    """Asked for one file, an editor tells the problems of that one; asked for all, those of all."""
    first, second = subject.file("first.txt"), subject.file("second.txt")
    for path in (first, second):
        await subject.open_file(path)
        await subject.person.find(path, 0, f"wrong in {os.path.basename(path)}")
        await _demand_reported(subject, path)
    for path in (first, second):
        await _only(subject, path)
    everything = await settled(subject.editor.diagnostics(None))
    missing = {first, second}.difference(problem.path for problem in everything)
    demand(not missing, f"Expected the problems of all files; those of {', '.join(sorted(missing))} are missing")


@RELOADING.check()
async def clean(subject: Subject) -> None:
    """A file that a client has written is shown as it is now, without a question; the cursor stays on its line."""
    path = subject.file("long.txt", "".join(f"line {number}\n" for number in range(40)))
    await subject.person.open(path)
    await subject.person.place(20, 3)
    await _write_and_tell(subject, path, subject.on_disk(path).replace("line 30\n", "line thirty\n"))
    await _demand_shown(subject, path, subject.on_disk(path))
    at = await subject.person.cursor()
    demand((at.line, at.column) == (20, 3), f"Expected the cursor at 20:3 still; it is at {at.line}:{at.column}")
    demand(
        not (await subject.listed(path)).dirty, f"Expected {path} to be clean once reloaded; it was told as dirty"
    )


@RELOADING.check()
async def out_of_sight(subject: Subject) -> None:
    """A file that is open but not looked at is reloaded too, and the user stays where he is."""
    path, other = subject.file(), subject.file("other.txt")
    await subject.open_file(path)
    await subject.open_file(other)
    await _write_and_tell(subject, path, "quite\ndifferent\n")
    await _demand_shown(subject, path, "quite\ndifferent\n")
    current = await subject.current_path()
    demand(current == other, f"Expected {other} to be the current file still; it is {current!r}")


@RELOADING.check()
async def shorter(subject: Subject) -> None:
    """A file that has become shorter than where the cursor was is reloaded too."""
    path = subject.file("long.txt", "".join(f"line {number}\n" for number in range(40)))
    await subject.person.open(path)
    await subject.person.place(35, 2)
    await _write_and_tell(subject, path, "short\n")
    await _demand_shown(subject, path, "short\n")


@RELOADING.check("dirty")
async def dirty(subject: Subject) -> None:
    """A file with unsaved changes is never overwritten by what a client has written."""
    path = subject.file()
    text = await subject.make_dirty(path)
    await _write_and_tell(subject, path, "written by a client\n")
    await subject.quiet()
    kept = await subject.read_buffer(path)
    demand(kept == text, f"Expected the unsaved text {text!r} to be there still; it is {kept!r}")
    demand(
        subject.on_disk(path) == "written by a client\n", f"Expected {path} to be left alone on disk; it was not"
    )


@RELOADING.check()
async def not_open(subject: Subject) -> None:
    """A file that is not open is not opened because a client has written it."""
    path, other = subject.file(), subject.file("other.txt")
    await subject.open_file(other)
    await _write_and_tell(subject, path, "new\n")
    await subject.quiet()
    open_now = await subject.open_paths()
    demand(open_now == [other], f"Expected only {other} to be open; open is {open_now}")


@RELOADING.check()
async def deleted(subject: Subject) -> None:
    """A file that is gone from the disk is no reason to stop answering."""
    path = subject.file()
    await subject.open_file(path)
    Path(path).unlink()
    await settled(subject.editor.file_changed(path))
    await subject.quiet()


async def _write_and_tell(subject: Subject, path: str, text: str) -> None:
    Path(path).write_bytes(text.encode())
    await settled(subject.editor.file_changed(path))


async def _demand_shown(subject: Subject, path: str, text: str) -> None:
    async def is_shown() -> bool:
        return await subject.text(path) == text

    await subject.until(is_shown, f"{text[:60]!r} to be shown of {path}", lambda: subject.text(path))


async def _demand_reported(subject: Subject, path: str) -> None:
    await subject.event(
        DiagnosticsChanged, lambda event: path in event.paths, f"the event that the diagnostics of {path} changed"
    )


async def _only(subject: Subject, path: str) -> Diagnostic:
    """The one problem of a file."""
    problems = await settled(subject.editor.diagnostics(path))
    if len(problems) != 1 or problems[0].path != path:
        raise Nonconforming(f"Expected one problem in {path}, and none elsewhere; {_told(problems)} came.")
    return problems[0]


def _demand_place(problem: Diagnostic, line: int) -> None:
    wanted, where = span(line, 0, line, 2), problem.range
    demand(
        where == wanted,
        f"Expected the problem on line {line}, columns 0 to 2, counted from 0 in code points; it is at "
        f"{where.start.line}:{where.start.column} to {where.end.line}:{where.end.column}",
    )


def _told(problems: Sequence[Diagnostic]) -> str:
    return "; ".join(f"{problem.message!r} in {problem.path}" for problem in problems) or "none"
