"""What is demanded of an editor about selections and mentions.

It does not know any editor.
"""

import os
from collections.abc import Sequence

from ide_bridge.conform.record import selection_in_words
from ide_bridge.conform.subject import Subject, span
from ide_bridge.conform.verdict import Group, Nonconforming, demand
from ide_bridge.model import Mentioned, Range, Selection, SelectionChanged

__all__ = ["MENTIONS", "SELECTION"]

SELECTION = Group("selection", "selection")
MENTIONS = Group("mentions")


@SELECTION.check()
async def characters(subject: Subject) -> None:
    """What the user selects is reported, and told when asked: path, text, and where, the end not part of it."""
    await _demand_selected(subject, "one\ntwo three\n", span(1, 4, 1, 7), "thr")


@SELECTION.check()
async def cursor(subject: Subject) -> None:
    """Where the cursor goes is reported, with an empty text, and start and end the same."""
    path = subject.file()
    await subject.person.open(path)
    subject.forget()
    await subject.person.place(1, 2)
    await _demand_told(subject, path, span(1, 2, 1, 2), "")


@SELECTION.check()
async def several_lines(subject: Subject) -> None:
    """A selection over several lines has its line breaks in it."""
    await _demand_selected(subject, "one\ntwo\nthree\n", span(0, 1, 2, 3), "ne\ntwo\nthr")


@SELECTION.check()
async def whole_lines(subject: Subject) -> None:
    """When whole lines are selected, text and range say the same: with the last line break, or without it."""
    path = subject.file("lines.txt", "one\ntwo\nthree\nfour\n")
    await subject.person.open(path)
    subject.forget()
    await subject.person.select_lines(1, 2)
    event = await subject.event(
        SelectionChanged, lambda event: _text(event).rstrip("\n") == "two\nthree", "'two\\nthree' to be selected"
    )
    _demand_consistent(event.selection, "one\ntwo\nthree\nfour\n")


@SELECTION.check()
async def emoji(subject: Subject) -> None:
    """Columns count code points: a character outside the basic plane is one, neither two nor four."""
    await _demand_selected(subject, "one\n😀😀 wide 😀 end\n", span(1, 3, 1, 7), "wide")


@SELECTION.check()
async def selected_emoji(subject: Subject) -> None:
    """A selection that ends with such a character has all of it."""
    await _demand_selected(subject, "a😀b\n", span(0, 0, 0, 2), "a😀")


@SELECTION.check()
async def combining_characters(subject: Subject) -> None:
    """Columns count code points: a letter and the accent that combines with it are two."""
    await _demand_selected(subject, "ae\u0301o\u0308z after\n", span(0, 7, 0, 12), "after")


@SELECTION.check()
async def tabs(subject: Subject) -> None:
    """Columns count code points: a tab is one, however wide it is shown."""
    await _demand_selected(subject, "\t\tindented\tend\n", span(0, 2, 0, 10), "indented")


@SELECTION.check()
async def wide_characters(subject: Subject) -> None:
    """Columns count code points: a character two cells wide is one."""
    await _demand_selected(subject, "日本語 text\n", span(0, 4, 0, 8), "text")


@SELECTION.check()
async def last_line_without_end(subject: Subject) -> None:
    """The last line can be selected to its end, also where the file does not end with a line break."""
    await _demand_selected(subject, "one\nlast", span(1, 0, 1, 4), "last")


@SELECTION.check()
async def empty_file(subject: Subject) -> None:
    """In an empty file the cursor is at line 0, column 0."""
    path = subject.file("empty.txt", "")
    await subject.person.open(path)
    await _demand_told(subject, path, span(0, 0, 0, 0), "")


@SELECTION.check("dirty")
async def unsaved(subject: Subject) -> None:
    """A selection is told as it is on the screen, not as it is on disk."""
    path = subject.file()
    await subject.make_dirty(path, "fresh ")
    subject.forget()
    await subject.person.select(span(0, 0, 0, 5).start, span(0, 0, 0, 5).end)
    await _demand_told(subject, path, span(0, 0, 0, 5), "fresh")


@SELECTION.check()
async def another_file(subject: Subject) -> None:
    """When the user goes to another file, the selection is that file's."""
    first, second = subject.file("first.txt"), subject.file("second.txt")
    await subject.person.open(first)
    await subject.person.select(span(0, 0, 0, 3).start, span(0, 0, 0, 3).end)
    subject.forget()
    await subject.person.open(second)
    await subject.person.place(1, 1)
    await _demand_told(subject, second, span(1, 1, 1, 1), "")


@SELECTION.check()
async def kept_while_elsewhere(subject: Subject) -> None:
    """While the user looks at something that is no file, the last selection in a file stands."""
    path = subject.file()
    await subject.person.open(path)
    await subject.person.place(1, 1)
    await _demand_told(subject, path, span(1, 1, 1, 1), "")
    subject.forget()
    await subject.person.scratch()
    await subject.quiet()
    paths = {event.selection.path for event in subject.since(SelectionChanged) if event.selection is not None}
    strange = sorted(paths - {path})
    demand(not strange, f"Expected no selection in what is no file; one came with the path {strange[:1]}")
    selection = await subject.selection()
    demand(
        selection is None or selection.path == path,
        f"Expected the selection in {path}, or none; it is {selection and selection_in_words(selection)}",
    )


@MENTIONS.check()
async def mentioned_file(subject: Subject) -> None:
    """A file that the user hands to the client is reported, without lines."""
    path = subject.file()
    await subject.person.open(path)
    subject.forget()
    await subject.person.mention()
    await _demand_mentioned(subject, path, None, None)


@MENTIONS.check()
async def mentioned_lines(subject: Subject) -> None:
    """Lines that the user hands to the client are reported with the first and the last, both counted from 0."""
    path = subject.file("lines.txt", "one\ntwo\nthree\nfour\n")
    await subject.person.open(path)
    subject.forget()
    await subject.person.mention(1, 2)
    await _demand_mentioned(subject, path, 1, 2)


@MENTIONS.check()
async def mentioned_line(subject: Subject) -> None:
    """Of one line that is handed to the client, the first and the last are the same."""
    path = subject.file()
    await subject.person.open(path)
    subject.forget()
    await subject.person.mention(2, 2)
    await _demand_mentioned(subject, path, 2, 2)


@MENTIONS.check()
async def mentioned_odd_name(subject: Subject) -> None:
    """A file with an odd name is mentioned under it."""
    path = subject.file("odd $name #1 %s [😀].txt")
    await subject.open_file(path)
    subject.forget()
    await subject.person.mention()
    await _demand_mentioned(subject, path, None, None)


async def _demand_selected(subject: Subject, contents: str, where: Range, text: str) -> None:
    path = subject.file("selected.txt", contents)
    await subject.person.open(path)
    subject.forget()
    await subject.person.select(where.start, where.end)
    await _demand_told(subject, path, where, text)


async def _demand_told(subject: Subject, path: str, where: Range, text: str) -> None:
    """The selection is reported, and told when asked."""
    wanted = Selection(path, text, where)
    event = await subject.event(
        SelectionChanged, lambda event: _same(event.selection, wanted), selection_in_words(wanted)
    )
    lines = (await subject.text(path)).split("\n") if event.selection is not None else []
    _demand_lines(event.selection, lines)
    selection = await subject.selection()
    found = "none" if selection is None else selection_in_words(selection)
    demand(_same(selection, wanted), f"Expected {selection_in_words(wanted)} when asked; it is {found}")
    _demand_lines(selection, lines)


def _demand_lines(selection: Selection | None, lines: Sequence[str]) -> None:
    """What is told of the lines on which a selection starts and ends is so."""
    if selection is None:
        return
    for told, number in (
        (selection.first_line, selection.range.start.line),
        (selection.last_line, selection.range.end.line),
    ):
        line = lines[number].removesuffix("\r") if number < len(lines) else ""
        demand(told in (None, line), f"Expected the whole line {number} to be told as {line!r}; it is {told!r}")


def _demand_consistent(selection: Selection | None, contents: str) -> None:
    if selection is None:
        raise Nonconforming("Expected a selection; there is none.")
    meant = _text_of(contents, selection.range)
    words = selection_in_words(selection)
    demand(
        selection.text == meant,
        f"Expected range and text to say the same; the range means {meant!r}, and it is {words}",
    )


def _text_of(contents: str, where: Range) -> str:
    lines = contents.split("\n")
    chosen = lines[where.start.line : where.end.line + 1]
    if not chosen:
        return ""
    chosen[-1] = chosen[-1][: where.end.column]
    chosen[0] = chosen[0][where.start.column :]
    return "\n".join(chosen)


def _same(selection: Selection | None, wanted: Selection) -> bool:
    return selection is not None and (selection.path, selection.text, selection.range) == (
        wanted.path,
        wanted.text,
        wanted.range,
    )


async def _demand_mentioned(subject: Subject, path: str, first: int | None, last: int | None) -> None:
    lines = "without lines" if first is None else f"with the lines {first} to {last}"
    wanted = Mentioned(path, first, last)
    await subject.event(
        Mentioned, lambda event: event == wanted, f"a mention of {os.path.basename(path)}, {lines}"
    )
    await subject.quiet()
    demand(len(subject.since(Mentioned)) == 1, f"Expected one mention; {len(subject.since(Mentioned))} came")


def _text(event: SelectionChanged) -> str:
    return "" if event.selection is None else event.selection.text
