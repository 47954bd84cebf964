"""Files in a real Vim: loading them again, saving and opening them, without a question and without a loss."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ide_bridge.answers import settled
from ide_bridge.conform.host import Host
from ide_bridge.conform.subject import Subject, span
from ide_bridge.conform.verdict import Refused
from ide_bridge.model import FileEvent
from tests.fakes.claude_client import eventually
from tests.fakes.surroundings import at_home
from tests.fakes.vim import VimPerson, linked, vim_string

LINES = "".join(f"line {number}\n" for number in range(40))


class Stage(NamedTuple):
    person: VimPerson
    subject: Subject
    host: Host
    folder: Path

    async def client_writes(self, path: str, text: str | None) -> None:
        """A client has written a file; what it wrote, unless it is there already."""
        if text is not None:
            Path(path).write_text(text, encoding="utf-8")
        self.host.notify("fileChanged", {"path": path})
        await self.host.connection.told()
        await self.subject.open_files()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    with at_home() as home:
        folder = tmp_path.resolve()
        async with linked(folder, home.environment) as (person, subject, host):
            yield Stage(person, subject, host, folder)


async def test_reloading_keeps_undo_folds_and_cursor(stage: Stage) -> None:
    path = stage.subject.file("long.txt", LINES)
    await stage.person.open(path)
    await stage.person.keys(":set foldmethod=manual\r:3,6fold\r:normal! zE\r:5,8fold\r21G4|mx")
    await stage.client_writes(path, LINES.replace("line 30\n", "line thirty\n"))
    assert await stage.person.expr("[getline(31), line('.'), foldclosed(6), line(\"'x\"), &modified]") == [
        "line thirty", 21, 5, 21, 0,
    ]  # fmt: skip
    await stage.person.keys("u")
    assert await stage.person.expr("[getline(31), &modified]") == ["line 30", 1]


async def test_every_window_of_a_reloaded_file_stays_where_it_was(stage: Stage) -> None:
    path = stage.subject.file("long.txt", LINES)
    await stage.person.open(path)
    await stage.person.keys("30G:split\r10G:tab split\r35G:tabprevious\r")
    lines = "getwininfo()->map({_, one -> [one.topline, line('.', one.winid)]})"
    before = await stage.person.expr(lines)
    await stage.client_writes(path, LINES.replace("line 3\n", "line three\n"))
    assert await stage.person.expr("getline(4)") == "line three"
    assert await stage.person.expr(lines) == before


async def test_reloading_sees_what_is_as_long_and_as_old(stage: Stage) -> None:
    path = stage.subject.file("short.txt", "aaa\n")
    await stage.person.open(path)
    times = Path(path).stat()
    Path(path).write_text("bbb\n", encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    await stage.client_writes(path, None)
    assert await stage.person.expr("[getline(1), &modified]") == ["bbb", 0]


@pytest.mark.parametrize("own", ["", "set autoread", "setlocal noautoread", "setlocal autoread"])
async def test_reloading_leaves_autoread_alone(stage: Stage, own: str) -> None:
    path = stage.subject.file()
    await stage.person.open(path)
    await stage.person.ex(own)
    ask = "execute('setlocal autoread?') .. execute('setglobal autoread?')"
    before = await stage.person.expr(ask)
    await stage.client_writes(path, "quite\ndifferent\n")
    assert await stage.person.expr(ask) == before
    assert await stage.person.expr("getline(1)") == "quite"


async def test_unsaved_changes_are_told_once_and_nothing_is_asked(stage: Stage) -> None:
    path = stage.subject.file()
    text = await stage.subject.make_dirty(path)
    await stage.client_writes(path, "written by a client\n")
    await stage.person.keys(":checktime\r")
    messages = await stage.person.messages()
    assert messages.count("under your unsaved changes") == 1
    assert "W12" not in messages
    assert await stage.subject.read_buffer(path) == text


async def test_a_file_that_changed_is_not_saved_over(stage: Stage) -> None:
    path = stage.subject.file()
    await stage.subject.make_dirty(path)
    for _ in range(2):
        Path(path).write_text("written by somebody\n", encoding="utf-8")
        with pytest.raises(Refused, match="has changed on disk"):
            await settled(stage.subject.editor.save_file(path))
    assert stage.subject.on_disk(path) == "written by somebody\n"
    stage.person.press(":w\r")
    await eventually(lambda: "really want to write" in stage.person.drawn())  # Vim's own question to its user
    stage.person.press("y")
    await eventually(lambda: "Press ENTER" in stage.person.drawn())
    await stage.person.keys("\r")
    assert await settled(stage.subject.editor.save_file(path)) is True


async def test_a_buffer_of_a_file_that_was_not_there(stage: Stage) -> None:
    path = str(stage.folder / "new.txt")
    await stage.person.keys(f":edit {path}\r")
    await stage.client_writes(path, "made by a client\n")
    await stage.person.keys(":checktime\r")
    assert await stage.person.expr("getline(1, '$')") == ["made by a client"]
    assert "W13" not in await stage.person.messages()


async def test_a_file_open_in_another_vim_is_opened_without_a_question(stage: Stage) -> None:
    path = Path(stage.subject.file("swapped.txt"))
    await stage.person.ex("set updatecount=1 swapfile directory=.")
    await stage.person.open(str(path))
    await stage.person.keys("ihello\x1b:preserve\r")
    swap = path.with_name(".swapped.txt.swp")
    kept = swap.read_bytes()
    await stage.person.keys(":bwipeout!\r")
    swap.write_bytes(kept)
    await stage.subject.open_file(str(path))
    assert await stage.person.expr("[&readonly, getline(1)]") == [1, "one"]


async def test_a_file_that_is_reached_by_a_link(stage: Stage) -> None:
    path = stage.subject.file()
    link = stage.folder / "link.txt"
    link.symlink_to(path)
    await stage.person.keys(f":edit {link}\r")
    assert await stage.subject.open_paths() == [path]
    await stage.subject.open_file(path)
    assert await stage.person.expr("getbufinfo({'buflisted': 1})->filter({_, one -> one.name != ''})->len()") == 1


async def test_what_is_no_file_is_left_out(stage: Stage) -> None:
    path = stage.subject.file()
    await stage.person.open(path)
    for command in ("help", "copen", "terminal true", "edit fugitive:///x/.git//0/notes.txt", "new"):
        await stage.person.ex(command)
        await stage.person.ex("wincmd w")
    await stage.person.ex(f"edit {stage.folder}")
    assert await stage.subject.open_paths() == [path]
    assert {event.path for event in stage.subject.since(FileEvent)} == {path}


async def test_names_that_are_no_text_are_left_out(stage: Stage) -> None:
    strange = os.fsencode(stage.folder) + b"/caf\xe9.txt"
    Path(os.fsdecode(strange)).write_text("latin", encoding="utf-8")
    await stage.person.ex(f'execute "edit" fnameescape({vim_string(stage.folder)} .. "/caf\\xe9.txt")')
    assert await stage.person.expr("getline(1)") == "latin"
    assert await stage.subject.open_files() == []


async def test_opening_never_takes_a_terminal_or_what_is_unsaved(stage: Stage) -> None:
    path, other = stage.subject.file(), stage.subject.file("other.txt")
    await stage.person.ex("set nohidden")
    await stage.subject.make_dirty(path)
    await stage.subject.open_file(other)
    assert await stage.person.expr("winnr('$')") == 2
    await stage.person.keys(":only!\r:terminal\r")
    await stage.subject.open_file(path)
    kinds = "range(1, winnr('$'))->map({_, number -> winbufnr(number)->getbufvar('&buftype')})->sort()"
    assert await stage.person.expr(kinds) == ["", "terminal"]


async def test_a_range_is_selected(stage: Stage) -> None:
    path = stage.subject.file("range.txt", "one\ntwo 😀 three\nfour\n")
    await stage.subject.open_file(path, span(1, 4, 1, 11))
    assert await stage.person.expr("mode()") == "v"
    selection = await stage.subject.selection()
    assert selection is not None
    assert selection.text == "😀 three"
    await stage.person.keys("\x1b")
    await stage.subject.open_file(path, span(0, 0, 1, 0))
    selection = await stage.subject.selection()
    assert selection is not None
    assert selection.text == "one\n"


async def test_a_buffer_with_nul_is_refused_and_others_are_not(stage: Stage) -> None:
    path = stage.subject.file("nul.txt", "a\0b\n")
    await stage.person.open(path)
    assert await stage.host.refusal("readBuffer", {"path": path}) == -32603
    await stage.person.keys("V")
    selection = await stage.subject.selection()
    assert selection is not None
    assert selection.text == "a\ufffdb"


async def test_text_that_is_no_unicode_does_not_break_the_link(stage: Stage) -> None:
    path = stage.subject.file()
    await stage.person.open(path)
    await stage.person.ex("call setline(1, 'a' .. nr2char(0xd83d) .. nr2char(0x110000) .. '한')")
    assert await stage.subject.read_buffer(path) == "a\ufffd\ufffd한\ntwo\nthree\n"
