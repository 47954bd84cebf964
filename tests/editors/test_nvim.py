"""The commands of a real Neovim's plug-in, and what it shows."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ide_bridge.conform.host import Host
from ide_bridge.conform.subject import Subject
from ide_bridge.model import Mentioned
from tests.fakes.nvim import COMMAND, VERSIONS, NvimPerson, linked
from tests.fakes.surroundings import at_home

STATUS_LINE = "v:lua.require'ide_bridge'.statusline()"


class Stage(NamedTuple):
    person: NvimPerson
    subject: Subject
    host: Host
    folder: Path

    async def mentions(self, *names: str) -> None:
        """Demand that these files are mentioned, whole and in this order."""
        wanted = [Mentioned(str(self.folder / name)) for name in names]
        await self.subject.event(Mentioned, lambda event: event == wanted[-1], f"a mention of {names[-1]}")
        assert self.subject.since(Mentioned) == wanted
        self.subject.forget()


@pytest.fixture(params=VERSIONS)
async def stage(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    with at_home() as home:
        folder = tmp_path.resolve()
        async with linked(folder, home.environment, version=request.param) as (person, subject, host):
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
    await stage.person.keys(":xmap gs <lt>Plug>(ide-bridge-send)\rggjVjgs")
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
    assert "\nth" in await stage.person.messages()


@pytest.mark.parametrize("style", [0, 1, 3])
async def test_files_in_netrw_are_sent(stage: Stage, style: int) -> None:
    for name in ("one.txt", "three.txt", "two.txt"):
        stage.subject.file(name)
    await stage.person.ex(f"let g:netrw_liststyle = {style}")
    await stage.person.keys(":Explore .\r")
    await stage.person.keys("/three\\.txt\r:IdeBridgeSend\r")
    await stage.mentions("three.txt")
    await stage.person.keys("Vj:IdeBridgeSend\r")
    await stage.mentions("three.txt", "two.txt")
    await stage.person.keys("gg/one\\.txt\rmf/two\\.txt\rmfgg:IdeBridgeSend\r")
    await stage.mentions("one.txt", "two.txt")


async def test_files_deep_in_a_tree_of_netrw_are_sent(stage: Stage) -> None:
    for name in ("a/b/deep.txt", "a/flat.txt", "z.txt"):
        (stage.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (stage.folder / name).write_text("", encoding="utf-8")
    await stage.person.ex("let g:netrw_liststyle = 3")
    await stage.person.keys(":Explore .\r/ a\\/\r\r/ b\\/\r\r")
    for name in ("a/b/deep.txt", "a/flat.txt", "z.txt", "a/b", "a"):
        pattern = Path(name).name.replace(".", "\\.")
        await stage.person.keys(f"gg/ {pattern}\\/\\?$\r:IdeBridgeSend\r")
        await stage.mentions(name)


EXPLORERS = {
    # As nvim-tree, neo-tree and oil answer, each by its own words; none of them can be fetched here.
    "NvimTree": """
        package.loaded["nvim-tree.api"] = {
          marks = { list = function() return {} end },
          tree = { get_node_under_cursor = function() return { absolute_path = vim.fn.getline(".") } end },
        }""",
    "neo-tree": """
        local tree = { get_node = function(_, number) return { path = vim.fn.getline(number) } end }
        package.loaded["neo-tree.sources.manager"] = { get_state = function() return { tree = tree } end }""",
    "oil": """
        package.loaded.oil = {
          get_current_dir = function() return vim.fn.getcwd() .. "/" end,
          get_entry_on_line = function(_, number)
            return { name = vim.fn.fnamemodify(vim.fn.getline(number), ":t") }
          end,
        }""",
}


@pytest.mark.parametrize("kind", EXPLORERS)
async def test_files_in_the_browsers_of_others_are_sent(stage: Stage, kind: str) -> None:
    paths = [stage.subject.file(name) for name in ("one.txt", "two.txt")]
    await stage.person.lua(EXPLORERS[kind])
    await stage.person.ex("new | setlocal buftype=nofile")
    await stage.person.lua(f"vim.api.nvim_buf_set_lines(0, 0, -1, true, {{ '{paths[0]}', '{paths[1]}' }})")
    await stage.person.ex(f"noautocmd setlocal filetype={kind}")
    await stage.person.keys("2G:IdeBridgeSend\r")
    await stage.mentions("two.txt")
    await stage.person.keys("ggVG:IdeBridgeSend\r")
    await stage.mentions("one.txt", "two.txt")


# -- what is shown ------------------------------------------------------------------------------------------------


async def test_status_tells_what_is_so(stage: Stage) -> None:
    for _ in range(2):
        await stage.person.keys(":IdeBridgeStatus\r")
        await stage.person.until("bufname() ==# 'ide-bridge://status'")
    page = "\n".join(await stage.person.expr("getline(1, '$')"))
    for words in ("attached", COMMAND[0], "the option command", "Sharing      full"):
        assert words in page
    await stage.person.keys("q")
    assert await stage.person.expr("winnr('$')") == 1


async def test_health_tells_how_it_was_found(stage: Stage) -> None:
    await stage.person.keys(":checkhealth ide_bridge\r")
    await stage.person.until("search('attached: bridge', 'nw') > 0")
    page = "\n".join(await stage.person.expr("getline(1, '$')"))
    assert "found: the option command" in page
    assert "ERROR" not in page


async def test_the_status_line_and_the_users_autocommands(stage: Stage) -> None:
    await stage.person.ex("let g:told = []")
    for name in ("Connected", "Disconnected", "Stopped"):
        told = f"['{name}', deepcopy(g:ide_bridge_event)]"
        await stage.person.ex(f"autocmd User IdeBridge{name} call add(g:told, {told})")
    client = {"name": "claude-code", "version": "2.1.326", "pid": 4711}
    stage.host.notify("clientsChanged", {"clients": [client]})
    await stage.person.until(f"{STATUS_LINE} ==# 'bridge:1'")
    stage.host.notify("clientsChanged", {"clients": []})
    await stage.person.until(f"{STATUS_LINE} ==# 'bridge'")
    await stage.person.keys(":IdeBridgeSharing path\r")
    await stage.person.until(f"{STATUS_LINE} ==# 'bridge sharing path'")
    assert "sharing is path: which file and which lines, not their text" in await stage.person.messages()
    await stage.person.keys(":IdeBridgeStop\r")
    assert await stage.person.expr(STATUS_LINE) == ""
    assert await stage.person.expr("g:told") == [
        ["Connected", {"clients": [client]}], ["Disconnected", {"clients": []}], ["Stopped", {}],
    ]  # fmt: skip


async def test_messages_of_the_bridge_are_shown(stage: Stage) -> None:
    for level in ("info", "warning", "error"):
        stage.host.notify("message", {"level": level, "text": f"{level}\nin one line"})
    await stage.person.until("execute('messages') =~# 'error in one line'")
    messages = await stage.person.messages()
    assert "info in one line" in messages
    assert "warning in one line" in messages


async def test_arguments_are_completed(stage: Stage) -> None:
    assert await stage.person.expr("getcompletion('IdeBridgeSharing p', 'cmdline')") == ["path"]
    assert "--continue" in await stage.person.expr("getcompletion('IdeBridgeClaude --', 'cmdline')")


async def test_sharing_that_does_not_exist(stage: Stage) -> None:
    await stage.person.keys(":IdeBridgeSharing everything\r")
    assert "full, path or off, not everything" in await stage.person.messages()
