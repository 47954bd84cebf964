"""Selections in a real Vim: every kind of Visual mode, and what stays selected when the user goes elsewhere."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ide_bridge.conform.subject import Subject, span
from ide_bridge.model import Range, Selection, SelectionChanged
from tests.fakes.surroundings import at_home
from tests.fakes.vim import VimPerson, linked

TEXT = "first line\n\ttab 😀 é here\nae\u0301z\n日本語 text\n\nlast"


class Stage(NamedTuple):
    person: VimPerson
    subject: Subject
    path: str

    async def selected(self) -> Selection:
        selection = await self.subject.selection()
        assert selection is not None
        assert selection.path == self.path
        return selection


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    with at_home() as home:
        async with linked(tmp_path.resolve(), home.environment) as (person, subject, _host):
            path = subject.file("text.txt", TEXT)
            await person.open(path)
            yield Stage(person, subject, path)


@pytest.mark.parametrize(
    ("keys", "text", "where"),
    [
        ("ggwvl", "li", span(0, 6, 0, 8)),
        ("ggwvb", "first l", span(0, 0, 0, 7)),
        ("ggVj", "first line\n\ttab 😀 é here", span(0, 0, 1, 13)),
        ("ggv$", "first line\n", span(0, 0, 1, 0)),
        ("Gv$", "last", span(5, 0, 5, 4)),
        ("3Glv", "e\u0301", span(2, 1, 2, 3)),
        ("3G0vl", "ae\u0301", span(2, 0, 2, 3)),
        ("2Gfév", "é", span(1, 7, 1, 8)),
        ("4G0vl", "日本", span(3, 0, 3, 2)),
        ("5Gv", "\n", span(4, 0, 5, 0)),
        ("gg0\x16jj", "f\n\t\na", span(0, 0, 2, 1)),
        ("ggl\x16jj", "i\n\ne\u0301", span(0, 1, 2, 3)),
        ("4G0\x16$", "日本語 text", span(3, 0, 3, 8)),
        ("gg\x16$j", "first line\n\ttab 😀 é here", span(0, 0, 1, 13)),
        (":set selection=exclusive\rggv3l", "fir", span(0, 0, 0, 3)),
        (":set selection=exclusive\rggv", "", span(0, 0, 0, 0)),
        (":set selection=exclusive\r3G0v2l", "ae\u0301", span(2, 0, 2, 3)),
        (":set virtualedit=all\rG020lv5l", "", span(5, 4, 5, 4)),
        (":set virtualedit=all\rG020l", "", span(5, 4, 5, 4)),
        ("gg0gh", "f", span(0, 0, 0, 1)),
    ],
)
async def test_every_kind(stage: Stage, keys: str, text: str, where: Range) -> None:
    await stage.person.keys(keys)
    selection = await stage.selected()
    assert (selection.text, selection.range) == (text, where)
    lines = TEXT.split("\n")
    assert selection.first_line == lines[selection.range.start.line]
    assert selection.last_line == lines[selection.range.end.line]


async def test_it_is_told_without_being_asked(stage: Stage) -> None:
    stage.subject.forget()
    await stage.person.keys("ggvl")
    await stage.subject.event(
        SelectionChanged, lambda event: event.selection is not None and event.selection.text == "fi", "'fi'"
    )
    await stage.person.keys("\x1b")
    await stage.subject.event(
        SelectionChanged,
        lambda event: event.selection is not None and event.selection.range == span(0, 1, 0, 1),
        "the cursor",
    )


async def test_nothing_is_told_twice(stage: Stage) -> None:
    await stage.person.keys("ggvl")
    await stage.subject.quiet()
    stage.subject.forget()
    await stage.person.keys("")
    await stage.subject.quiet()
    assert stage.subject.since(SelectionChanged) == []


@pytest.mark.parametrize("keys", [":\x15terminal\r", ":\x15help\r", ":\x15copen\r", "\x17w"])
async def test_what_was_selected_stays_so_while_the_user_is_elsewhere(stage: Stage, keys: str) -> None:
    await stage.person.keys(":cwindow\r:terminal\r\x17w")
    await stage.person.keys("ggVj")
    await stage.subject.quiet()
    stage.subject.forget()
    await stage.person.keys(keys)
    await stage.subject.quiet()
    assert (await stage.selected()).text == "first line\n\ttab 😀 é here"
    assert stage.subject.since(SelectionChanged) == []


async def test_it_ends_with_its_file(stage: Stage) -> None:
    await stage.person.keys("ggV")
    await stage.person.keys("\x1b:bwipeout!\r")
    assert await stage.subject.selection() is None
    assert await stage.subject.current_path() is None


async def test_typing_moves_the_cursor(stage: Stage) -> None:
    await stage.person.keys("ggO😀ab")
    selection = await stage.selected()
    assert (selection.range, selection.first_line) == (span(0, 3, 0, 3), "😀ab")
