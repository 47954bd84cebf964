"""Diffs in a real Neovim: what each way of writing and closing means, and that nothing of the user's is lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ide_bridge.conform.host import Host
from ide_bridge.conform.subject import Subject
from ide_bridge.model import DiffDecided
from tests.fakes.nvim import VERSIONS, NvimPerson, linked
from tests.fakes.surroundings import at_home

BEFORE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
AFTER = "one\n2\nthree\nfour\nfive\nsix\n7\n"
OURS = "len(filter(getbufinfo(), {_, one -> one.name =~# '^ide-bridge:'}))"


class Stage(NamedTuple):
    person: NvimPerson
    subject: Subject
    host: Host
    path: str

    async def show(self, contents: str = AFTER) -> int:
        number = await self.subject.show(self.path, contents)
        await self.person.look_at(number)
        return number

    async def decided(self) -> DiffDecided:
        return await self.subject.event(DiffDecided, lambda _event: True, "a decision")

    async def undecided(self) -> None:
        await self.subject.quiet()
        assert self.subject.since(DiffDecided) == []


@pytest.fixture(params=VERSIONS)
async def stage(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    with at_home() as home:
        sitting = linked(tmp_path.resolve(), home.environment, version=request.param)
        async with sitting as (person, subject, host):
            yield Stage(person, subject, host, subject.file("notes.txt", BEFORE))


@pytest.mark.parametrize("keys", [":w\r", ":wq\r", ":x\r", "ZZ", ":write\r", ":IdeBridgeAccept\r"])
async def test_these_keep(stage: Stage, keys: str) -> None:
    number = await stage.show()
    await stage.person.press(keys)
    decided = await stage.decided()
    assert (decided.diff, decided.decision, decided.contents) == (number, "kept", AFTER)
    await stage.person.until(f"tabpagenr('$') == 1 && winnr('$') == 1 && {OURS} == 0")


@pytest.mark.parametrize(
    "keys", [":q\r", ":q!\r", ":close\r", "<C-W>c", "ZQ", ":tabclose\r", ":bd!\r", ":bw!\r", ":IdeBridgeReject\r",
             "<C-W>h:q\r", "<C-W>o", ":edit notes.txt\r", ":tabonly\r:q\r"],
)  # fmt: skip
async def test_these_reject(stage: Stage, keys: str) -> None:
    number = await stage.show()
    await stage.person.press(keys)
    decided = await stage.decided()
    assert (decided.diff, decided.decision, decided.contents) == (number, "rejected", None)
    await stage.person.until(f"{OURS} == 0")


async def test_what_was_changed_is_not_closed_by_mistake(stage: Stage) -> None:
    await stage.show()
    await stage.person.keys("ggOmine\x1b")
    for keys in (":q\r", ":tabclose\r", ":qa\r"):
        await stage.person.ex("messages clear")
        await stage.person.keys(keys)
        await stage.undecided()
        assert "E37" in await stage.person.messages()
    await stage.person.keys("<C-W>h:q\r")
    await stage.undecided()
    await stage.person.keys(":q!\r")
    assert (await stage.decided()).decision == "rejected"


async def test_hunks_can_be_left_out_and_undone(stage: Stage) -> None:
    await stage.show()
    await stage.person.keys("ggu")
    assert await stage.person.expr("getline(2)") == "2", "the proposal itself is nothing to undo"
    await stage.person.keys("2Gdou2Gdo:w\r")
    assert (await stage.decided()).contents == AFTER.replace("\n2\n", "\ntwo\n")


async def test_the_left_side_cannot_be_changed(stage: Stage) -> None:
    await stage.show()
    await stage.person.keys("<C-W>hggdd2Gdo")
    assert await stage.person.expr("getline(1, '$')") == BEFORE.splitlines()
    await stage.undecided()


async def test_it_begins_at_the_first_change(stage: Stage) -> None:
    number = await stage.show()
    assert await stage.person.expr("[line('.'), &diff, &buftype, bufname(), &modified]") == [
        2, 1, "acwrite", f"ide-bridge://proposed/{number}/notes.txt", 0,
    ]  # fmt: skip


async def test_quitting_rejects_without_being_asked_twice(stage: Stage) -> None:
    await stage.show()
    await stage.person.press(":qa\r")
    assert (await stage.decided()).decision == "rejected"
    assert await asyncio.to_thread(stage.person.process.wait, 10) == 0


async def test_what_writes_everything_decides_nothing(stage: Stage) -> None:
    await stage.show()
    await stage.person.ex("wall")
    await stage.undecided()
    nested = "++nested" if await stage.person.expr("has('nvim-0.10')") else ""  # older ones do not say who writes
    await stage.person.ex(f"autocmd InsertLeave,FocusLost * {nested} silent! wall")
    await stage.person.lua(f"""
        local function save() vim.cmd("silent! update") end
        vim.api.nvim_create_autocmd("TextChanged", {{ nested = {str(bool(nested)).lower()}, callback = save }})""")
    await stage.person.keys("Gomine\x1bdd")
    await stage.person.ex("doautocmd FocusLost")
    await stage.undecided()
    await stage.person.keys(":tabprevious\r:wa\r")
    await stage.undecided()
    assert "not decided by writing everything" in await stage.person.messages()


async def test_a_copy_can_be_written_elsewhere(stage: Stage) -> None:
    await stage.show()
    copy = Path(stage.path).with_name("copy.txt")
    await stage.person.keys(f":w {copy}\r")
    assert copy.read_text(encoding="utf-8") == AFTER
    copy.write_text("precious", encoding="utf-8")
    await stage.person.keys(f":w {copy}\r")
    assert copy.read_text(encoding="utf-8") == "precious"
    await stage.undecided()


async def test_it_waits_while_somebody_types(stage: Stage) -> None:
    await stage.person.open(stage.path)
    await stage.person.keys("Ahello")
    number = await stage.subject.show(stage.path, AFTER)
    assert await stage.person.expr("[tabpagenr('$'), mode()]") == [1, "i"]
    assert "leave this mode" in await stage.person.messages()
    await stage.person.keys(" there\x1bu")
    await stage.person.until("tabpagenr('$') == 2")
    await stage.person.keys("i")
    await stage.subject.close_diff(number)
    assert await stage.person.expr("[tabpagenr('$'), mode()]") == [2, "i"]
    await stage.person.keys("\x1b")
    await stage.person.until("tabpagenr('$') == 1")
    await stage.undecided()


async def test_it_waits_for_the_command_line(stage: Stage) -> None:
    await stage.person.keys("q:")
    await stage.subject.show(stage.path, AFTER)
    assert await stage.person.expr("[tabpagenr('$'), getcmdwintype()]") == [1, ":"]
    await stage.person.keys(":q\r")
    await stage.person.until("tabpagenr('$') == 2")


async def test_unsaved_changes_are_kept_from_being_lost(stage: Stage) -> None:
    text = await stage.subject.make_dirty(stage.path, "unsaved ")
    await stage.show()
    assert "has unsaved changes" in await stage.person.messages()
    assert await stage.person.expr("getbufline(winbufnr(1), 1, 1)") == ["unsaved one"]
    for keys in (":w\r", ":wq\r", ":IdeBridgeAccept\r"):
        await stage.person.keys(keys)
        await stage.undecided()
    await stage.person.keys("ggdo:w!\r")
    assert (await stage.decided()).contents == "unsaved " + AFTER.replace("2", "two")
    assert await stage.subject.read_buffer(stage.path) == text


async def test_unsaved_changes_that_were_taken_over_need_no_force(stage: Stage) -> None:
    await stage.subject.make_dirty(stage.path, "unsaved ")
    await stage.show()
    await stage.person.keys(":%diffget\r:w\r")
    assert (await stage.decided()).contents == "unsaved " + BEFORE


async def test_other_windows_in_its_tab_stay(stage: Stage) -> None:
    number = await stage.show()
    await stage.person.keys(":topleft new\r:set nodiff\r")
    await stage.person.keep(number)
    await stage.decided()
    await stage.person.until("tabpagenr('$') == 2 && tabpagewinnr(2, '$') == 1")


async def test_several_in_several_tabs_are_named_by_theirs(stage: Stage) -> None:
    first = await stage.show()
    await stage.show("another\n")
    await stage.person.keys("1gt:IdeBridgeAccept\r")
    await stage.undecided()
    assert "several diffs" in await stage.person.messages()
    await stage.person.look_at(first)
    await stage.person.keys(":IdeBridgeAccept\r")
    assert (await stage.decided()).diff == first


@pytest.mark.parametrize("keys", [":tabclose\r", "<C-W>h:q\r", ":w\r"])
async def test_the_user_is_back_where_he_came_from(stage: Stage, keys: str) -> None:
    await stage.person.open(stage.path)
    await stage.person.keys(":tab split\r:vsplit\r1gt:split\r5G")  # the neighbour of the diff is another tab
    before = await stage.person.layout()
    await stage.show()
    await stage.person.press(keys)
    await stage.decided()
    await stage.person.until(f"{OURS} == 0")
    assert await stage.person.layout() == before


async def test_who_typed_into_a_terminal_types_into_it_again(stage: Stage) -> None:
    await stage.person.keys(":terminal cat\ri")
    number = await stage.show()
    assert await stage.person.expr("mode(1)") == "n"
    await stage.person.reject(number)
    await stage.decided()
    await stage.person.until("&buftype == 'terminal' && mode(1) == 't'")


async def test_options_of_the_user_are_his(stage: Stage) -> None:
    options = "[&diffopt, &hidden, &splitright, &wrap, &foldmethod, &scrollbind, &undolevels, &eventignore]"
    await stage.person.open(stage.path)
    before = await stage.person.expr(options)
    await stage.person.keep(await stage.show())
    assert await stage.person.expr(options) == before


@pytest.mark.parametrize("name", ["notes.py", "a b\nc.py", "$HOME [x] %#.py"])
async def test_it_looks_like_the_file(stage: Stage, name: str) -> None:
    path = stage.subject.file(name, "# one\n")
    Path(path).write_bytes(b"# caf\xe9\r\nx = 1\r\n")  # as Neovim reads it: latin1, and without carriage returns
    number = await stage.subject.show(path, "# caf\u00e9\r\nx = 2\r\n")
    await stage.person.look_at(number)
    assert await stage.person.expr("[&filetype, &fileformat, getbufvar(winbufnr(1), '&filetype')]") == [
        "python", "dos", "python",
    ]  # fmt: skip
    assert await stage.person.expr("getbufline(winbufnr(1), 1, '$')") == ["# caf\u00e9", "x = 1"]


async def test_text_with_nul_is_kept_to_the_byte(stage: Stage) -> None:
    await stage.show("a\0b\nc\0\n")
    await stage.person.keys("Ad\x1b:w\r")
    assert (await stage.decided()).contents == "a\0bd\nc\0\n"


async def test_users_are_told(stage: Stage) -> None:
    await stage.person.ex("let g:told = []")
    for name in ("DiffOpened", "DiffDecided"):
        await stage.person.ex(f"autocmd User IdeBridge{name} call add(g:told, deepcopy(g:ide_bridge_event))")
    await stage.person.ex("autocmd User IdeBridgeDiffOpened throw 'of the user'")
    number = await stage.show()
    assert await stage.person.expr("v:lua.require'ide_bridge'.statusline()") == "bridge 1 diff"
    await stage.person.reject(number)
    opened = {"diff": number, "path": stage.path}
    assert await stage.person.expr("g:told") == [opened, {**opened, "decision": "rejected"}]
    assert await stage.person.expr("exists('g:ide_bridge_event')") == 0
