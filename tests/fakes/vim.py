"""A person at a real Vim, in a terminal of its own.

Commands and decisions are keys pressed in the terminal; what only prepares them, and what the person sees, goes
over a channel that Vim itself opens to us. After everything a key is pressed that means nothing to Vim but tells
us that it has come to it: by then all that follows from the keys before has happened.

It does not know the bridge: it starts the plug-in with a command line, whatever that is.
"""

import asyncio
import fcntl
import itertools
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from ide_bridge.conform.host import Host
from ide_bridge.conform.stages import Offer
from ide_bridge.conform.subject import Subject
from ide_bridge.editor.link import LinkEditor
from ide_bridge.model import Position
from tests.fakes.claude_client import eventually
from tests.fakes.programs import program

__all__ = ["COMMAND", "PLUGIN", "VimPerson", "linked", "vim", "vim_string"]

PLUGIN = Path(__file__).parents[2] / "editors" / "vim"
COMMAND = [str(Path(sys.executable).with_name("ide-bridge"))]
PATIENCE = 20.0
POLL = 0.005
COLUMNS, LINES = 120, 40
DONE = "\uf8ff"  # nobody types it
Connected = asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]

SETUP = r"""
set hidden ttimeout ttimeoutlen=5
let g:person_done = 0
noremap <Char-0xf8ff> <Cmd>let g:person_done += 1<CR>
noremap! <Char-0xf8ff> <Cmd>let g:person_done += 1<CR>
tnoremap <Char-0xf8ff> <Cmd>let g:person_done += 1<CR>
function! PersonDo(command)
  try
    execute a:command
    return ''
  catch
    return v:exception
  endtry
endfunction
function! PersonText(buffer)
  let end = {'dos': "\r\n", 'mac': "\r"}->get(getbufvar(a:buffer, '&fileformat'), "\n")
  let lines = getbufline(a:buffer, 1, '$')
  let ends = getbufvar(a:buffer, '&endofline') && lines != ['']
  return join(lines, end) . (ends ? end : '')
endfunction
function! PersonLayout()
  let windows = getwininfo()->map({_, window -> [
        \ bufname(window.bufnr), window.width, window.height, window.topline,
        \ window.terminal ? [] : getcurpos(window.winid)[1:2]]})
  return [tabpagenr(), range(1, tabpagenr('$'))->map({_, tab -> [tabpagewinnr(tab), winlayout(tab)]}), windows]
endfunction
"""


def vim_string(text: str | Path) -> str:
    """A text as Vim script writes it down, in legacy and in Vim9 script."""
    return json.dumps(str(text), ensure_ascii=False)


class VimPerson:
    """Sits at one Vim, which runs until ``quit``."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int, connected: Connected) -> None:
        self.pid = process.pid
        self.process = process
        self._terminal = terminal
        self._drawn = bytearray()
        self._ids = itertools.count(1)
        self._turn = asyncio.Lock()
        self._connected = connected

    # -- what every person can do ----------------------------------------------------------------------------

    async def open(self, path: str) -> None:
        await self.keys("\x1b")
        # To visit a file anew that changed on disk would be a question of Vim's own.
        await self.ex(f"let g:person = bufadd({vim_string(path)})")
        await self.ex("execute 'hide buffer' g:person")
        await self.ex("setlocal buflisted")

    async def place(self, line: int, column: int) -> None:
        await self.keys("\x1b")
        await self._go(line, column)

    async def select(self, start: Position, end: Position) -> None:
        await self.place(start.line, start.column)
        await self.keys("v")
        if end.column == 0:
            await self._go(end.line - 1, 0)
            await self.keys("$")
        else:
            await self._go(end.line, end.column - 1)

    async def select_lines(self, first: int, last: int) -> None:
        await self.place(first, 0)
        await self.keys("V")
        await self._go(last, 0)

    async def type(self, text: str) -> None:
        await self.keys("i" + text.replace("\n", "\r") + "\x1b")

    async def save(self) -> None:
        await self.keys("\x1b:w\r")

    async def close(self) -> None:
        await self.keys("\x1b:bdelete!\r")

    async def split(self) -> None:
        await self.keys("\x1b:split\r")

    async def tab(self) -> None:
        await self.keys("\x1b:tab split\r")

    async def scratch(self) -> None:
        await self.keys("\x1b:hide enew\r")

    async def mention(self, first: int | None = None, last: int | None = None) -> None:
        lines = "" if first is None or last is None else f"{first + 1},{last + 1}"
        await self.keys(f"\x1b:{lines}IdeBridgeSend\r")

    async def find(self, path: str, line: int, message: str) -> None:
        found = "\t".join((path, str(line + 1), "1", "3", "E", message))
        await self.ex("set errorformat=%f\t%l\t%c\t%k\t%t\t%m".replace("\t", "\\\t"))
        await self.ex(f"caddexpr [{vim_string(found)}]")

    async def keep(self, diff: int, contents: str | None = None) -> None:
        await self.look_at(diff)
        if contents is not None:
            await self.write_instead(contents)
        await self.keys("\x1b:w!\r")
        await self.until(f"!bufexists({self._proposed(diff)})")

    async def reject(self, diff: int) -> None:
        await self.look_at(diff)
        await self.keys("\x1b:q\r")
        await self.until(f"!bufexists({self._proposed(diff)})")

    async def text(self, path: str) -> str:
        shown = await self.expr(f"PersonText(bufnr({vim_string('^' + _literal(path) + '$')}))")
        assert isinstance(shown, str)
        return shown

    async def cursor(self) -> Position:
        line, column = await self.expr("[line('.') - 1, strchars(strpart(getline('.'), 0, col('.') - 1))]")
        return Position(line, column)

    async def layout(self) -> object:
        return await self.expr("PersonLayout()")

    async def quit(self) -> None:
        self.press("\x1b:qa!\r")
        await asyncio.to_thread(self.process.wait, PATIENCE)

    # -- what a person at Vim can do besides -----------------------------------------------------------------

    async def look_at(self, diff: int) -> None:
        """Wait until a diff has come, and go to the window with its proposed text."""
        await self.until(f"bufexists({self._proposed(diff)})")
        await self.ex(f"call win_gotoid(win_findbuf(bufnr({self._proposed(diff)}))[0])")

    async def write_instead(self, contents: str) -> None:
        """Have another text in the buffer looked at, to the byte; nothing is written."""
        ends = contents.endswith("\n") or not contents
        end = "\r\n" if "\r\n" in contents else "\n"
        lines = contents.removesuffix(end).split(end)
        form = "dos" if end == "\r\n" else "unix"
        await self.ex(f"setlocal fileformat={form} {'' if ends else 'no'}endofline")
        await self.ex("silent %delete _")
        await self.ex(f"call setline(1, {json.dumps(lines, ensure_ascii=False)})")

    async def keys(self, keys: str) -> None:
        """Press keys, and wait until Vim has done what they mean."""
        self.press(keys)
        await self._settle()

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    async def ex(self, command: str) -> None:
        """Run a command that is not worth typing."""
        problem = await self._ask("call", "PersonDo", [command])
        assert problem == "", f"{problem}\nin :{command}"
        await self._settle()

    async def expr(self, expression: str) -> Any:
        """The value of an expression."""
        value = await self._ask("expr", expression)
        assert value != "ERROR", expression
        return value

    async def until(self, condition: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await self.expr(condition):
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"never true: {condition}\n{await self.messages()}")
            await asyncio.sleep(POLL)

    async def messages(self) -> str:
        """What Vim has said so far."""
        said = await self.expr("execute('messages')")
        assert isinstance(said, str)
        return said

    def drawn(self) -> str:
        """All that Vim has drawn so far, with its escape sequences."""
        return self._drawn.decode(errors="replace")

    async def _go(self, line: int, column: int) -> None:
        await self.ex(f"call cursor({line + 1}, strlen(strcharpart(getline({line + 1}), 0, {column})) + 1)")

    async def _settle(self) -> None:
        done = await self.expr("g:person_done")
        self.press(DONE)
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while await self.expr("g:person_done") == done:
            assert asyncio.get_running_loop().time() < deadline, f"Vim waits: {self.drawn()[-500:]!r}"
            await asyncio.sleep(POLL)

    def _proposed(self, diff: int) -> str:
        return f"'^ide-bridge://proposed/{diff}/'->bufnr()->bufname()"

    async def _ask(self, *words: object) -> Any:
        async with self._turn, asyncio.timeout(PATIENCE):
            reader, writer = await self._connected
            number = -next(self._ids)
            writer.write(json.dumps([*words, number]).encode() + b"\n")
            while True:
                answered, value = json.loads(await reader.readline())
                if answered == number:
                    return value

    def swallow(self) -> None:
        """What Vim draws must be read, or it waits until somebody does."""
        try:
            self._drawn += os.read(self._terminal, 1 << 16)
        except BlockingIOError:
            pass
        except OSError:  # Vim is gone
            asyncio.get_running_loop().remove_reader(self._terminal)

    async def end(self) -> None:
        """Whatever Vim is doing, it is over."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        asyncio.get_running_loop().remove_reader(self._terminal)
        os.close(self._terminal)
        if self._connected.done():
            self._connected.result()[1].close()
            with suppress(ConnectionError):
                await self._connected.result()[1].wait_closed()
        else:
            self._connected.cancel()


@asynccontextmanager
async def vim(
    folder: Path,
    environment: Mapping[str, str],
    command: Sequence[str],
    *arguments: str,
    before: Sequence[str] = (),
    start: bool = True,
) -> AsyncIterator[VimPerson]:
    """A Vim in a folder, attached by a command; ``before`` is the user's own vimrc."""
    connected: Connected = asyncio.Future()
    server = await asyncio.start_server(lambda *ends: connected.set_result(ends), "127.0.0.1", 0, limit=1 << 26)
    port = server.sockets[0].getsockname()[1]
    vimrc = Path(environment["HOME"]) / f"vimrc-{port}.vim"
    chosen = f"let g:ide_bridge_command = {json.dumps(list(command))}"
    vimrc.write_text("\n".join([SETUP, chosen, *before, ""]), encoding="utf-8")
    channel = f"let g:person_channel = ch_open('127.0.0.1:{port}', {{'mode': 'json'}})"
    person = _start(folder, environment, connected, ["--cmd", f"source {vimrc}", "-c", channel, *arguments])
    try:
        if start:
            await person.ex("IdeBridgeStart")
            await person.until("ide_bridge#statusline() != ''")
        yield person
    finally:
        await person.end()
        server.close()


@asynccontextmanager
async def linked(
    folder: Path, environment: Mapping[str, str], *arguments: str, before: Sequence[str] = ()
) -> AsyncIterator[tuple[VimPerson, Subject, Host]]:
    """A Vim whose other end we are: what it is asked, and what it tells, goes through our hands."""
    async with AsyncExitStack() as ends:
        offer = Offer(folder)
        await offer.open()
        ends.push_async_callback(offer.close)
        meeting = asyncio.create_task(_meet(offer))
        ends.push_async_callback(_part, meeting)  # after Vim has ended, or its relay would come again
        person = await ends.enter_async_context(vim(folder, environment, COMMAND, *arguments, before=before))
        host, editor = await meeting
        subject = Subject(editor, person, folder, host)
        ends.push_async_callback(subject.close)
        yield person, subject, host


async def _meet(offer: Offer) -> tuple[Host, LinkEditor]:
    host = await offer.next_host(PATIENCE)
    return host, await host.attached(PATIENCE)


async def _part(meeting: "asyncio.Task[tuple[Host, LinkEditor]]") -> None:
    if not meeting.done():
        meeting.cancel()
    elif meeting.exception() is None:
        host, _editor = meeting.result()
        await eventually(lambda: host.gone)  # its relay sees that Vim has gone
        await host.close()


def _start(
    folder: Path, environment: Mapping[str, str], connected: Connected, arguments: Sequence[str]
) -> VimPerson:
    terminal, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [program("vim"), "-N", "-u", "NONE", "-n", "-i", "NONE", "--cmd", f"set runtimepath^={PLUGIN}",
         "-c", "runtime plugin/ide_bridge.vim", *arguments],
        cwd=folder,
        env={**environment, "TERM": "xterm-256color"},
        stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    os.set_blocking(terminal, False)
    person = VimPerson(process, terminal, connected)
    asyncio.get_running_loop().add_reader(terminal, person.swallow)
    return person


def _literal(path: str) -> str:
    """A path as a pattern that matches only itself."""
    return re.sub(r"([\\*?\[\]{},~$^.])", r"\\\1", path)
