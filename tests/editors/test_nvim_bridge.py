"""A real Neovim and what it starts: the bridge it finds, starts and loses, and the CLI in its terminal."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ide_bridge.model import Position
from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.claude_client import ClaudeClient, connect, eventually, texts
from tests.fakes.nvim import COMMAND, PLUGIN, VERSIONS, nvim, nvim_program
from tests.fakes.terminal import Terminal

NOW = "one\ntwo\nthree\n"
STATUS_LINE = "v:lua.require'ide_bridge'.statusline()"
HELLO = b'{"jsonrpc": "2.0", "id": 1, "result": {"bridge": "0", "link": 1, "port": 1, "pid": 1, "clients": []}}'
EARLY = b'{"jsonrpc": "2.0", "method": "message", "params": {"level": "info", "text": "early"}}'
ONE_BY_ONE = f"""
import sys, time
def say(body):
    for byte in b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body:
        sys.stdout.buffer.write(bytes([byte]))
        sys.stdout.flush()
sys.stdin.buffer.read(20)
say({EARLY!r})
say({HELLO!r})
sys.stdin.buffer.read()
"""

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


async def selected(client: ClaudeClient, text: str) -> None:
    async with asyncio.timeout(10):
        while (await client.notification("selection_changed"))["text"] != text:
            pass


async def open_diff(client: ClaudeClient, path: Path, contents: str) -> int:
    names = {"old_file_path": str(path), "new_file_path": str(path), "tab_name": f"a tab of {path.name}"}
    return await client.ask_tool("openDiff", {**names, "new_file_contents": contents})


async def test_a_story(home: Home, tmp_path: Path, version: str) -> None:
    path = tmp_path / "story.txt"
    path.write_text(NOW, encoding="utf-8")
    with BridgeProcess(tmp_path, home.environment) as bridge:
        token = Path(bridge.ready["token_file"]).read_text(encoding="ascii")
        async with connect(bridge.ready["port"], token) as client:
            await client.introduce()
            async with nvim(tmp_path, home.environment, COMMAND, version=version) as person:
                await person.until(f"{STATUS_LINE} ==# 'bridge:1'")
                await person.open(str(path))
                await person.select(Position(0, 1), Position(1, 1))
                await selected(client, "ne\nt")
                await person.mention(1, 2)
                mention = await client.notification("at_mentioned")
                assert (mention["filePath"], mention["lineStart"], mention["lineEnd"]) == (str(path), 1, 2)
                asked = await open_diff(client, path, NOW.replace("two", "2"))
                await person.until("tabpagenr('$') == 2")
                await person.keys("ggOzero\x1b:w\r")
                kept = texts(await client.answer(asked))
                assert kept == ["FILE_SAVED", "zero\none\n2\nthree\n"]
                path.write_text(kept[1], encoding="utf-8")
                await person.until("getline(1) ==# 'zero'")
                asked = await open_diff(client, path, "no\n")
                await person.until("tabpagenr('$') == 2")
                await person.keys(":q\r")
                assert texts(await client.answer(asked)) == ["DIFF_REJECTED"]
                await person.quit()
            assert len(bridge.clients()) == 1
            async with nvim(tmp_path, home.environment, COMMAND, version=version) as person:
                await person.open(str(path))
                await person.select(Position(3, 0), Position(3, 5))
                await selected(client, "three")


async def test_quitting_ends_what_was_started_and_rejects(home: Home, tmp_path: Path, version: str) -> None:
    path = tmp_path / "story.txt"
    path.write_text(NOW, encoding="utf-8")
    with BridgeProcess(tmp_path, home.environment) as bridge:
        token = Path(bridge.ready["token_file"]).read_text(encoding="ascii")
        async with connect(bridge.ready["port"], token) as client:
            await client.introduce()
            async with nvim(tmp_path, home.environment, COMMAND, version=version) as person:
                relays = [child for child in psutil.Process(person.pid).children() if "attach" in child.cmdline()]
                assert len(relays) == 1
                asked = await open_diff(client, path, "no\n")
                await person.until("tabpagenr('$') == 2")
                await person.press(":qa\r")
                assert texts(await client.answer(asked)) == ["DIFF_REJECTED"]
                await eventually(lambda: not relays[0].is_running() or relays[0].status() == psutil.STATUS_ZOMBIE)


async def test_a_bridge_that_stops_is_not_started_again(home: Home, tmp_path: Path, version: str) -> None:
    with BridgeProcess(tmp_path, home.environment) as bridge:
        async with nvim(tmp_path, home.environment, COMMAND, version=version) as person:
            await asyncio.to_thread(bridge.stop)
            await person.until("execute('messages') =~ 'the bridge was stopped'")
            assert await person.expr(STATUS_LINE) == ""
            assert home.locks() == []


async def test_bytes_one_by_one_and_words_before_the_welcome(home: Home, tmp_path: Path, version: str) -> None:
    async with nvim(tmp_path, home.environment, [sys.executable, "-c", ONE_BY_ONE], version=version) as person:
        await person.until("execute('messages') =~ 'early'")


async def test_what_the_relay_says_last_is_shown(home: Home, tmp_path: Path, version: str) -> None:
    command = ["/bin/sh", "-c", "echo noise >&2; echo This folder is not yours. >&2; exit 1"]
    async with nvim(tmp_path, home.environment, command, version=version, start=False) as person:
        await person.keys(":IdeBridgeStart\r")
        await person.until("execute('messages') =~ 'This folder is not yours.'")
        assert "noise" not in await person.messages()


async def test_an_error_in_answer_to_hello_is_shown_as_it_is(home: Home, tmp_path: Path, version: str) -> None:
    answer = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Upgrade the plug-in."}}'
    script = f"printf 'Content-Length: {len(answer)}\\r\\n\\r\\n%s' '{answer}'; sleep 30"
    command = ["/bin/sh", "-c", script]
    async with nvim(tmp_path, home.environment, command, version=version, start=False) as person:
        await person.keys(":IdeBridgeStart\r")
        await person.until("execute('messages') =~ 'Upgrade the plug-in.'")
        assert await person.expr(STATUS_LINE) == ""


async def test_sending_starts_what_it_needs(home: Home, tmp_path: Path, version: str) -> None:
    path = tmp_path / "story.txt"
    path.write_text(NOW, encoding="utf-8")
    with BridgeProcess(tmp_path, home.environment) as bridge:
        token = Path(bridge.ready["token_file"]).read_text(encoding="ascii")
        async with connect(bridge.ready["port"], token) as client:
            await client.introduce()
            async with nvim(tmp_path, home.environment, COMMAND, version=version, start=False) as person:
                await person.open(str(path))
                await person.mention()
                assert (await client.notification("at_mentioned"))["filePath"] == str(path)


async def test_stopping_and_starting_again(home: Home, tmp_path: Path, version: str) -> None:
    with BridgeProcess(tmp_path, home.environment):
        async with nvim(tmp_path, home.environment, COMMAND, version=version) as person:
            for _ in range(3):
                await person.keys(":IdeBridgeStop\r")
                assert await person.expr(STATUS_LINE) == ""
                assert await person.expr("exists('#ide_bridge')") == 0
                await person.keys(":IdeBridgeStart\r")
                await person.until(f"{STATUS_LINE} != ''")
            itself = psutil.Process(person.pid)
            await eventually(lambda: len(itself.children()) == 1)


@pytest.mark.parametrize(
    "wish",
    [
        "vim.g.ide_bridge_auto_start, vim.g.ide_bridge_mappings = 1, true",
        "require('ide_bridge').setup({ auto_start = true, mappings = true })",
    ],
)
async def test_it_starts_with_neovim_if_the_user_says_so(
    home: Home, tmp_path: Path, version: str, wish: str
) -> None:
    with BridgeProcess(tmp_path, home.environment):
        wishes = "vim.g.mapleader = ','\n" + wish
        sitting = nvim(tmp_path, home.environment, COMMAND, version=version, before=wishes, start=False)
        async with sitting as person:
            await person.until(f"{STATUS_LINE} != ''")
            assert await person.expr("[maparg(',as', 'x'), maparg(',aa', 'n')]") == [
                "<Plug>(ide-bridge-send)", "<Plug>(ide-bridge-accept)",
            ]  # fmt: skip


async def test_an_option_that_does_not_exist_is_told(home: Home, tmp_path: Path, version: str) -> None:
    wish = "require('ide_bridge').setup({ autostart = true })"
    sitting = nvim(tmp_path, home.environment, COMMAND, version=version, before=wish, start=False)
    async with sitting as person:
        await person.until("execute('messages') =~ 'setup does not know the option autostart'")


async def test_the_program_is_found_in_five_ways(home: Home, tmp_path: Path, version: str) -> None:
    local, on_path = home.path / ".local/bin/ide-bridge", home.path / "bin/ide-bridge"
    for script in (local, on_path):
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\n", encoding="utf-8")
        script.chmod(0o755)
    environment = {**home.environment, "PATH": f"{on_path.parent}:/usr/bin:/bin"}
    find = "local program = require('ide_bridge.command').find() return { program.argv, program.found }"
    async with nvim(tmp_path, environment, ["/bin/echo", "hi"], version=version, start=False) as person:
        assert await person.lua(find) == [["/bin/echo", "hi"], "the option command"]
        await person.ex("let g:ide_bridge_command = ['/nowhere']")
        assert await person.lua(find) == [[], "the option command names /nowhere, which cannot be run"]
        await person.ex("unlet g:ide_bridge_command")
        assert await person.lua(find) == [[str(on_path)], "on your PATH"]
        on_path.unlink()
        assert await person.lua(find) == [[str(local)], "in ~/.local/bin"]
        local.unlink()
        argv, found = await person.lua(find)
        assert (argv[1:], found) == (["-m", "ide_bridge"], f"beside the plug-in, in {PLUGIN.parents[1]}")


async def test_claude_comes_and_goes_and_lives_on(home: Home, tmp_path: Path, version: str) -> None:
    claude = home.path / "bin" / "claude"
    claude.parent.mkdir()
    claude.write_text('#!/bin/sh\necho "port $CLAUDE_CODE_SSE_PORT, $*"\nread line\n', encoding="utf-8")
    claude.chmod(0o755)
    environment = {**home.environment, "PATH": f"{claude.parent}:{home.environment['PATH']}"}
    with BridgeProcess(tmp_path, environment) as bridge:
        async with nvim(tmp_path, environment, COMMAND, version=version, start=False) as person:
            await person.keys(":IdeBridgeClaude --continue\r")
            await person.until("&buftype ==# 'terminal' && mode() ==# 't'")
            await person.until(f"getline(1) ==# 'port {bridge.ready['port']}, --continue'")
            await person.until(f"{STATUS_LINE} != ''")
            terminal = await person.expr("bufnr()")
            for windows in (1, 2):
                await person.ex("IdeBridgeClaude")
                running = f"jobwait([getbufvar({terminal}, '&channel')], 0)[0]"
                assert await person.expr(f"[winnr('$'), {running}]") == [windows, -1]
            await person.ex("IdeBridgeClaude --resume")
            assert "runs already" in await person.messages()
            await person.press("\r")
            await person.until(f"!bufexists({terminal}) && winnr('$') == 1")


async def test_a_claude_that_is_missing_says_so_in_its_window(home: Home, tmp_path: Path, version: str) -> None:
    with BridgeProcess(tmp_path, home.environment):
        async with nvim(tmp_path, home.environment, COMMAND, version=version) as person:
            await person.keys(":IdeBridgeClaude\r")
            await person.until("join(getline(1, '$'), '') =~ 'no program called claude'")


def test_messages_never_ask_for_enter(home: Home, tmp_path: Path, version: str) -> None:
    setup = f"lua vim.opt.rtp:prepend('{PLUGIN}')"
    command = [nvim_program(version), "--clean", "--cmd", setup, "-c", "let g:ide_bridge_command = ['/nowhere']"]
    with Terminal(command, tmp_path, home.environment) as terminal:
        terminal.wait_for("[No Name]")
        for _ in range(3):
            terminal.type(":IdeBridgeStart | lua require('ide_bridge.say').info(('long 日本 '):rep(60))")
            terminal.send("Enter")
            terminal.wait_for("…")
        assert not terminal.shows("Press ENTER")
