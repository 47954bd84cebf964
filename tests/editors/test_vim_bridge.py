"""A real Vim and what it starts: the bridge it finds, starts and loses, and the CLI in its terminal."""

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
from tests.fakes.vim import COMMAND, PLUGIN, vim

NOW = "one\ntwo\nthree\n"
HELLO = b'{"jsonrpc": "2.0", "id": 1, "result": {"bridge": "0", "link": 1, "port": 1, "pid": 1, "clients": []}}'
IN_PIECES = f"""
import sys, time
def say(body, *cuts):
    frame = b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body
    for start, end in zip((0, *cuts), (*cuts, None)):
        sys.stdout.buffer.write(frame[start:end])
        sys.stdout.flush()
        time.sleep(0.25)  # Vim's own mode "lsp" gives up after less
sys.stdin.buffer.read(20)
say({HELLO!r}, 5, 40)
for text in ("first", "second"):
    body = '{{"jsonrpc": "2.0", "method": "message", "params": {{"level": "info", "text": "%s"}}}}' % text
    say(body.encode(), 19, 22, 60)
sys.stdin.buffer.read()
"""


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


async def test_a_story(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(NOW, encoding="utf-8")
    with BridgeProcess(tmp_path, home.environment) as bridge:
        token = Path(bridge.ready["token_file"]).read_text(encoding="ascii")
        async with connect(bridge.ready["port"], token) as client:
            await client.introduce()
            async with vim(tmp_path, home.environment, COMMAND) as person:
                await person.until("ide_bridge#statusline() ==# 'bridge:1'")
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
            async with vim(tmp_path, home.environment, COMMAND) as person:
                await person.open(str(path))
                await person.select(Position(3, 0), Position(3, 5))
                await selected(client, "three")


async def test_quitting_ends_what_was_started_and_rejects(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(NOW, encoding="utf-8")
    with BridgeProcess(tmp_path, home.environment) as bridge:
        token = Path(bridge.ready["token_file"]).read_text(encoding="ascii")
        async with connect(bridge.ready["port"], token) as client:
            await client.introduce()
            async with vim(tmp_path, home.environment, COMMAND) as person:
                # It inherits the pipe to the relay, so that the relay does not see that Vim has gone.
                await person.ex("let g:other = job_start(['sleep', '30'], {'stoponexit': ''})")
                relays = [child for child in psutil.Process(person.pid).children() if "attach" in child.cmdline()]
                assert len(relays) == 1
                asked = await open_diff(client, path, "no\n")
                await person.until("tabpagenr('$') == 2")
                other = psutil.Process(await person.expr("job_info(g:other).process"))
                person.press(":qa\r")
                assert texts(await client.answer(asked)) == ["DIFF_REJECTED"]
                await eventually(lambda: not relays[0].is_running())
                other.kill()


async def test_a_bridge_that_stops_is_not_started_again(home: Home, tmp_path: Path) -> None:
    with BridgeProcess(tmp_path, home.environment) as bridge:
        async with vim(tmp_path, home.environment, COMMAND) as person:
            await asyncio.to_thread(bridge.stop)
            await person.until("ide_bridge#statusline() == ''")
            assert "the bridge was stopped" in await person.messages()
            assert home.locks() == []


async def test_a_message_in_pieces_is_one_message(home: Home, tmp_path: Path) -> None:
    async with vim(tmp_path, home.environment, [sys.executable, "-c", IN_PIECES]) as person:
        await person.until("execute('messages') =~ 'ide_bridge: first\\nide_bridge: second'")


async def test_what_the_relay_says_last_is_shown(home: Home, tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "echo noise >&2; echo This folder is not yours. >&2; exit 1"]
    async with vim(tmp_path, home.environment, command, start=False) as person:
        await person.keys(":IdeBridgeStart\r")
        await person.until("execute('messages') =~ 'ide_bridge: This folder is not yours.'")


async def test_what_is_no_bridge_is_told_and_left(home: Home, tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "printf 'Welcome!\\r\\n\\r\\n'; sleep 30"]
    async with vim(tmp_path, home.environment, command, start=False) as person:
        await person.keys(":IdeBridgeStart\r")
        await person.until("execute('messages') =~ 'is g:ide_bridge_command right?'")


async def test_an_error_in_answer_to_hello_is_shown_as_it_is(home: Home, tmp_path: Path) -> None:
    answer = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Upgrade the plug-in."}}'
    script = f"printf 'Content-Length: {len(answer)}\\r\\n\\r\\n%s' '{answer}'; sleep 30"
    async with vim(tmp_path, home.environment, ["/bin/sh", "-c", script], start=False) as person:
        await person.keys(":IdeBridgeStart\r")
        await person.until("execute('messages') =~ 'ide_bridge: Upgrade the plug-in.'")
        assert await person.expr("ide_bridge#statusline()") == ""


async def test_sending_starts_what_it_needs(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(NOW, encoding="utf-8")
    with BridgeProcess(tmp_path, home.environment) as bridge:
        token = Path(bridge.ready["token_file"]).read_text(encoding="ascii")
        async with connect(bridge.ready["port"], token) as client:
            await client.introduce()
            async with vim(tmp_path, home.environment, COMMAND, start=False) as person:
                await person.open(str(path))
                await person.mention()
                assert (await client.notification("at_mentioned"))["filePath"] == str(path)


async def test_stopping_and_starting_again(home: Home, tmp_path: Path) -> None:
    with BridgeProcess(tmp_path, home.environment):
        async with vim(tmp_path, home.environment, COMMAND) as person:
            for _ in range(3):
                await person.keys(":IdeBridgeStop\r")
                assert await person.expr("ide_bridge#statusline()") == ""
                assert await person.expr("exists('#ide_bridge#BufEnter')") == 0
                await person.keys(":IdeBridgeStart\r")
                await person.until("ide_bridge#statusline() != ''")
            vim_itself = psutil.Process(person.pid)
            await eventually(lambda: len(vim_itself.children()) == 1)


async def test_it_starts_with_vim_if_the_user_says_so(home: Home, tmp_path: Path) -> None:
    with BridgeProcess(tmp_path, home.environment):
        wishes = ["let g:ide_bridge_auto_start = 1", "let g:ide_bridge_mappings = 1", "let g:mapleader = ','"]
        async with vim(tmp_path, home.environment, COMMAND, before=wishes, start=False) as person:
            await person.ex("doautocmd VimEnter")
            await person.until("ide_bridge#statusline() != ''")
            assert await person.expr("[maparg(',as', 'x'), maparg(',aa', 'n')]") == [
                "<Plug>(ide-bridge-send)", "<Plug>(ide-bridge-accept)",
            ]  # fmt: skip


async def test_the_program_is_found_in_five_ways(home: Home, tmp_path: Path) -> None:
    local, on_path = home.path / ".local/bin/ide-bridge", home.path / "bin/ide-bridge"
    for script in (local, on_path):
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\n", encoding="utf-8")
        script.chmod(0o755)
    environment = {**home.environment, "PATH": f"{on_path.parent}:/usr/bin:/bin"}
    find = "[ide_bridge#command#Find().argv, ide_bridge#command#Find().found]"
    async with vim(tmp_path, environment, ["/bin/echo", "hi"], start=False) as person:
        assert await person.expr(find) == [["/bin/echo", "hi"], "g:ide_bridge_command"]
        await person.ex("let g:ide_bridge_command = ['/nowhere']")
        assert await person.expr(find) == [[], "g:ide_bridge_command names /nowhere, which cannot be run"]
        await person.ex("unlet g:ide_bridge_command")
        assert await person.expr(find) == [[str(on_path)], "on your PATH"]
        on_path.unlink()
        assert await person.expr(find) == [[str(local)], "in ~/.local/bin"]
        local.unlink()
        argv, found = await person.expr(find)
        assert (argv[1:], found) == (["-m", "ide_bridge"], f"beside the plug-in, in {PLUGIN.parents[1]}")


async def test_claude_comes_and_goes_and_lives_on(home: Home, tmp_path: Path) -> None:
    claude = home.path / "bin" / "claude"
    claude.parent.mkdir()
    claude.write_text('#!/bin/sh\necho "port $CLAUDE_CODE_SSE_PORT, $*"\nread line\n', encoding="utf-8")
    claude.chmod(0o755)
    environment = {**home.environment, "PATH": f"{claude.parent}:{home.environment['PATH']}"}
    with BridgeProcess(tmp_path, environment) as bridge:
        async with vim(tmp_path, environment, COMMAND, start=False) as person:
            await person.keys(":IdeBridgeClaude --continue\r")
            await person.until("&buftype ==# 'terminal'")
            expected = f"port {bridge.ready['port']}, --continue"
            await person.until(f"term_getline(bufnr(), 1) ==# '{expected}'")
            await person.until("ide_bridge#statusline() != ''")
            terminal = await person.expr("bufnr()")
            for windows in (1, 2):
                await person.ex("IdeBridgeClaude")
                assert await person.expr(f"[winnr('$'), term_getstatus({terminal})]") == [windows, "running"]
            await person.ex("IdeBridgeClaude --resume")
            assert "runs already" in await person.messages()
            person.press("\r")
            await person.until(f"!bufexists({terminal}) && winnr('$') == 1")


async def test_a_claude_that_is_missing_says_so_in_its_window(home: Home, tmp_path: Path) -> None:
    with BridgeProcess(tmp_path, home.environment):
        async with vim(tmp_path, home.environment, COMMAND) as person:
            await person.keys(":IdeBridgeClaude\r")
            await person.until("getbufline(bufnr(), 1, '$')->join('') =~ 'no program called claude'")
