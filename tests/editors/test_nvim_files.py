"""Files in a real Neovim: loading them again, saving and opening them, without a question and without a loss."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ide_bridge.answers import settled
from ide_bridge.conform.host import Host
from ide_bridge.conform.subject import Subject, span
from ide_bridge.conform.verdict import Refused
from ide_bridge.model import DiagnosticsChanged, FileEvent, Selection
from tests.fakes.nvim import VERSIONS, NvimPerson, linked, vim_string
from tests.fakes.surroundings import at_home

LINES = "".join(f"line {number}\n" for number in range(40))


class Stage(NamedTuple):
    person: NvimPerson
    subject: Subject
    host: Host
    folder: Path

    async def client_writes(self, path: str, text: str | None = None) -> None:
        if text is not None:
            Path(path).write_text(text, encoding="utf-8")
        self.host.notify("fileChanged", {"path": path})
        await self.host.connection.told()
        await self.subject.open_files()

    async def selection(self) -> Selection:
        selection = await self.subject.selection()
        assert selection is not None
        return selection


@pytest.fixture(params=VERSIONS)
async def stage(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    with at_home() as home:
        folder = tmp_path.resolve()
        async with linked(folder, home.environment, version=request.param) as (person, subject, host):
            yield Stage(person, subject, host, folder)


async def test_reloading_keeps_undo_folds_and_cursor(stage: Stage) -> None:
    path = stage.subject.file("long.txt", LINES)
    await stage.person.open(path)
    await stage.person.keys(":set foldmethod=manual\r:5,8fold\r21G4|mx:split\r30G")
    await stage.client_writes(path, LINES.replace("line 30\n", "line thirty\n"))
    assert await stage.person.expr("[getline(31), line('.'), foldclosed(6), line(\"'x\"), &modified]") == [
        "line thirty", 30, 5, 21, 0,
    ]  # fmt: skip
    await stage.person.keys("<C-W>j")
    assert await stage.person.expr("[line('.'), col('.')]") == [21, 4]
    await stage.person.keys("u")
    assert await stage.person.expr("[getline(31), &modified]") == ["line 30", 1]


async def test_reloading_sees_what_was_written_at_once_and_is_as_long(stage: Stage) -> None:
    path = stage.subject.file("short.txt", "aaa\n")
    await stage.person.open(path)
    for text in ("bbb\n", "ccc\n", "ddd\n"):
        Path(path).write_text(text, encoding="utf-8")
        os.utime(path, (1_700_000_000, 1_700_000_000))  # as coarse as a clock may be
        await stage.client_writes(path)
        assert await stage.person.text(path) == text


@pytest.mark.parametrize("own", ["", "set noautoread", "setlocal noautoread", "setlocal autoread"])
async def test_reloading_leaves_autoread_alone(stage: Stage, own: str) -> None:
    path = stage.subject.file()
    await stage.person.open(path)
    await stage.person.ex(own)
    ask = "execute('setlocal autoread?') .. execute('setglobal autoread?')"
    before = await stage.person.expr(ask)
    await stage.client_writes(path, "quite\ndifferent\n")
    assert await stage.person.expr(ask) == before
    assert await stage.person.expr("getline(1)") == "quite"


async def test_a_hidden_buffer_is_loaded_again_too(stage: Stage) -> None:
    path = stage.subject.file()
    await stage.person.open(path)
    await stage.person.open(stage.subject.file("other.txt"))
    before = await stage.person.layout()
    await stage.client_writes(path, "quite\ndifferent\n")
    assert await stage.person.text(path) == "quite\ndifferent\n"
    assert await stage.person.layout() == before


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
    for text in ("written by somebody\n", "and again\n"):
        Path(path).write_text(text, encoding="utf-8")
        with pytest.raises(Refused, match="has changed on disk"):
            await settled(stage.subject.editor.save_file(path))
        assert stage.subject.on_disk(path) == text
    await stage.person.keys(":e!\rAmine\x1b")
    assert await settled(stage.subject.editor.save_file(path)) is True


async def test_a_buffer_of_a_file_that_was_not_there(stage: Stage) -> None:
    path = str(stage.folder / "new.txt")
    await stage.person.keys(f":edit {path}\r")
    await stage.client_writes(path, "made by a client\n")
    await stage.person.keys(":checktime\r")
    assert await stage.person.expr("getline(1, '$')") == ["made by a client"]
    assert "W13" not in await stage.person.messages()


async def test_a_file_open_elsewhere_is_opened_without_a_question(stage: Stage) -> None:
    path = Path(stage.subject.file("swapped.txt"))
    await stage.person.ex("set updatecount=1 swapfile directory=.")
    await stage.person.open(str(path))
    await stage.person.keys("ihello\x1b:preserve\r")
    swap = path.with_name(".swapped.txt.swp")
    kept = swap.read_bytes()
    await stage.person.keys(":bwipeout!\r")
    swap.write_bytes(kept)
    await stage.subject.open_file(str(path))
    assert await stage.person.expr("getline(1)") == "one"


async def test_a_file_that_is_reached_by_a_link(stage: Stage) -> None:
    path = stage.subject.file()
    link = stage.folder / "link.txt"
    link.symlink_to(path)
    await stage.person.keys(f":edit {link}\r")
    assert await stage.subject.open_paths() == [path]
    await stage.subject.open_file(path)
    assert await stage.person.expr("len(filter(getbufinfo({'buflisted': 1}), {_, one -> one.name != ''}))") == 1


async def test_what_is_no_file_is_left_out(stage: Stage) -> None:
    path = stage.subject.file()
    await stage.person.open(path)
    for command in ("help", "copen", "split | terminal true", "edit fugitive:///x/.git//0/notes.txt", "new"):
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
    await stage.person.keys(":only!\r:split | terminal\r:only!\r")
    await stage.subject.open_file(path)
    kinds = "sort(map(range(1, winnr('$')), {_, number -> getbufvar(winbufnr(number), '&buftype')}))"
    assert await stage.person.expr(kinds) == ["", "terminal"]


async def test_a_range_is_selected(stage: Stage) -> None:
    path = stage.subject.file("range.txt", "one\ntwo 😀 three\nfour\n")
    await stage.subject.open_file(path, span(1, 4, 1, 11))
    assert await stage.person.expr("mode()") == "v"
    assert (await stage.selection()).text == "😀 three"
    await stage.person.keys("\x1b")
    await stage.subject.open_file(path, span(0, 0, 1, 0))
    assert (await stage.selection()).text == "one\n"


@pytest.mark.parametrize(
    ("keys", "text", "where"),
    [
        ("gg0vl", "a\t", span(0, 0, 0, 2)),
        ("gg$v", "z", span(0, 4, 0, 5)),
        ("gg0llv", "é\u0301", span(0, 2, 0, 4)),
        ("gg0v$", "a\té\u0301z\n", span(0, 0, 1, 0)),
        ("ggVj", "a\té\u0301z\n😀日本", span(0, 0, 1, 3)),
        ("2G0lvh", "😀日", span(1, 0, 1, 2)),
        ("3G0<C-V>jl", "ab\nef", span(2, 0, 3, 2)),
        ("3G0l<C-V>j$", "bcd\nf", span(2, 1, 3, 2)),
        ("2G0l<C-V>0j", "😀日\nabcd", span(1, 0, 2, 4)),
        ("3G0gh", "a", span(2, 0, 2, 1)),
        (":set selection=exclusive\r3G0vll", "ab", span(2, 0, 2, 2)),
        (":set virtualedit=all\r4G6|<C-V>k", "\n", span(2, 4, 3, 2)),
        ("5G0vl", "\0x", span(4, 0, 4, 2)),
    ],
)
async def test_selections(stage: Stage, keys: str, text: str, where: object) -> None:
    path = stage.subject.file("select.txt", "a\té\u0301z\n😀日本\nabcd\nef\n\0x\n")
    await stage.person.open(path)
    await stage.person.keys(keys)
    selection = await stage.selection()
    assert (selection.text, selection.range) == (text, where)


async def test_a_terminal_leaves_the_selection_as_it_was(stage: Stage) -> None:
    path = stage.subject.file("select.txt", "one\ntwo\n")
    await stage.person.open(path)
    await stage.person.keys("2GVl:\x15split | terminal cat\r")
    selection = await stage.selection()
    assert (selection.path, selection.text) == (path, "two")
    current = await stage.subject.current_path()
    assert current == path


async def test_text_that_is_no_unicode_does_not_break_the_link(stage: Stage) -> None:
    path = stage.subject.file("nul.txt", "a\0b\n")
    await stage.person.open(path)
    assert await stage.subject.read_buffer(path) is None
    await stage.person.lua(r'vim.api.nvim_buf_set_lines(0, 0, -1, true, { "a\237\160\189\255한\0", "caf\233!" })')
    assert await stage.subject.read_buffer(path) == "a\ufffd\ufffd\ufffd\ufffd한\0\ncaf\ufffd!\n"
    await stage.person.keys("2G$")
    assert (await stage.selection()).range == span(1, 4, 1, 4)


async def test_diagnostics_are_counted_in_code_points(stage: Stage) -> None:
    path = stage.subject.file("problem.txt", "😀é = 1\n")
    await stage.person.open(path)
    stage.subject.forget()
    await stage.person.lua("""
        vim.diagnostic.set(vim.api.nvim_create_namespace("x"), 0, {
          { lnum = 0, col = 4, end_col = 6, severity = 2, message = "odd\\nname", source = "lint", code = "N1" },
          { lnum = 0, col = 0, severity = 4, message = "hint" },
        })""")
    await stage.subject.event(DiagnosticsChanged, lambda event: event.paths == (path,), "that problems changed")
    warning, hint = await settled(stage.subject.editor.diagnostics(path))
    assert (warning.range, warning.severity, warning.message) == (span(0, 1, 0, 2), "warning", "odd\nname")
    assert (warning.source, hint.severity, hint.range) == ("lint", "hint", span(0, 0, 0, 0))
    await stage.person.keys(":enew\r:bunload problem.txt\r")
    assert await settled(stage.subject.editor.diagnostics(None)) is not None
