"""The commands of a real Vim's plug-in, and what it shows."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ide_bridge.conform.host import Host
from ide_bridge.conform.subject import Subject
from ide_bridge.model import Mentioned
from tests.fakes.surroundings import at_home
from tests.fakes.vim import COMMAND, VimPerson, linked


class Stage(NamedTuple):
    person: VimPerson
    subject: Subject
    host: Host
    folder: Path

    async def mentions(self, *names: str) -> None:
        """Demand that these files are mentioned, whole and in this order."""
        wanted = [Mentioned(str(self.folder / name)) for name in names]
        await self.subject.event(Mentioned, lambda event: event == wanted[-1], f"a mention of {names[-1]}")
        assert self.subject.since(Mentioned) == wanted


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    with at_home() as home:
        folder = tmp_path.resolve()
        async with linked(folder, home.environment) as (person, subject, host):
            yield Stage(person, subject, host, folder)


# -- :IdeBridgeSend -----------------------------------------------------------------------------------------------


async def test_named_files_are_sent(stage: Stage) -> None:
    for name in ("a b.txt", "x1.py", "x2.py"):
        stage.subject.file(name)
    await stage.person.keys(":IdeBridgeSend a\\ b.txt x*.py\r")
    await stage.mentions("a b.txt", "x1.py", "x2.py")
    assert "no client is there yet to get 3 files" in await stage.person.messages()


async def test_a_visual_selection_is_sent(stage: Stage) -> None:
    await stage.person.open(stage.subject.file())
    await stage.person.keys(":xmap gs <Plug>(ide-bridge-send)\rggjVjgs")
    path = str(stage.folder / "notes.txt")
    await stage.subject.event(Mentioned, lambda event: event == Mentioned(path, 1, 2), "lines 1 to 2")


async def test_unsaved_changes_are_mentioned_too(stage: Stage) -> None:
    await stage.subject.make_dirty(stage.subject.file())
    await stage.person.keys(":IdeBridgeSend\r")
    assert "unsaved changes are not on disk" in await stage.person.messages()


@pytest.mark.parametrize("command", ["help", "new", "IdeBridgeSend nowhere.txt"])
async def test_what_is_no_file_is_not_sent(stage: Stage, command: str) -> None:
    await stage.person.keys(f":{command}\r:IdeBridgeSend\r")
    await stage.subject.quiet()
    assert stage.subject.since(Mentioned) == []
    assert "ide_bridge: th" in await stage.person.messages()


@pytest.mark.parametrize("style", [0, 1, 3])
async def test_files_in_netrw_are_sent(stage: Stage, style: int) -> None:
    for name in ("one.txt", "three.txt", "two.txt"):
        stage.subject.file(name)
    await stage.person.ex(f"let g:netrw_liststyle = {style} | runtime plugin/netrwPlugin.vim")
    await stage.person.keys(":Explore .\r")
    await stage.person.keys("/three\\.txt\r:IdeBridgeSend\r")
    await stage.mentions("three.txt")
    stage.subject.forget()
    await stage.person.keys("Vj:IdeBridgeSend\r")
    await stage.mentions("three.txt", "two.txt")
    stage.subject.forget()
    await stage.person.keys("gg/one\\.txt\rmf/two\\.txt\rmfgg:IdeBridgeSend\r")
    await stage.mentions("one.txt", "two.txt")


# -- what is shown ------------------------------------------------------------------------------------------------


async def test_status_tells_what_is_so(stage: Stage) -> None:
    await stage.person.keys(":IdeBridgeStatus\r")
    await stage.person.until("bufname() ==# 'ide-bridge://status'")
    page = "\n".join(await stage.person.expr("getline(1, '$')"))
    for words in (
        "attached",
        COMMAND[0],
        "g:ide_bridge_command",
        "quickfix and location lists",
        "Sharing      full",
    ):
        assert words in page
    await stage.person.keys("q")
    assert await stage.person.expr("winnr('$')") == 1


async def test_the_status_line_and_the_users_autocommands(stage: Stage) -> None:
    await stage.person.ex("let g:told = []")
    for name in ("Connected", "Disconnected", "Stopped"):
        told = f"['{name}', deepcopy(g:ide_bridge_event)]"
        await stage.person.ex(f"autocmd User IdeBridge{name} call add(g:told, {told})")
    client = {"name": "claude-code", "version": "2.1.326", "pid": 4711}
    stage.host.notify("clientsChanged", {"clients": [client]})
    await stage.person.until("ide_bridge#statusline() ==# 'bridge:1'")
    stage.host.notify("clientsChanged", {"clients": []})
    await stage.person.until("ide_bridge#statusline() ==# 'bridge'")
    await stage.person.keys(":IdeBridgeSharing path\r")
    await stage.person.until("ide_bridge#statusline() ==# 'bridge sharing path'")
    assert "sharing is path: which file and which lines, not their text" in await stage.person.messages()
    await stage.person.keys(":IdeBridgeStop\r")
    assert await stage.person.expr("ide_bridge#statusline()") == ""
    assert await stage.person.expr("g:told") == [
        ["Connected", {"clients": [client]}], ["Disconnected", {"clients": []}], ["Stopped", {}],
    ]  # fmt: skip


async def test_messages_never_ask_for_enter(stage: Stage) -> None:
    for level in ("info", "warning", "error"):
        stage.host.notify("message", {"level": level, "text": f"{level}\n" + "日本 long " * 60})
    await stage.host.connection.told()
    await stage.subject.open_files()
    assert await stage.person.expr("mode()") == "n"
    await stage.person.keys(":set columns=40\r:IdeBridgeStatus\r")
    await stage.person.until("search('error 日本 long') > 0")


async def test_arguments_are_completed(stage: Stage) -> None:
    assert await stage.person.expr("getcompletion('IdeBridgeSharing p', 'cmdline')") == ["path"]
    assert "--continue" in await stage.person.expr("getcompletion('IdeBridgeClaude --', 'cmdline')")


async def test_sharing_that_does_not_exist(stage: Stage) -> None:
    await stage.person.keys(":IdeBridgeSharing everything\r")
    assert "full, path or off, not everything" in await stage.person.messages()
