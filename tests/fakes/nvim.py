"""A person at a real Neovim.

Commands and decisions are keys that Neovim takes for typed; what only prepares them, and what the person sees,
goes over a channel that Neovim opens to us. After everything a key is pressed that means nothing to Neovim but
tells us that it has come to it: by then all that follows from the keys before has happened.

It does not know the bridge: it starts the plug-in with a command line, whatever that is.
"""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from ide_bridge.conform.host import Host
from ide_bridge.conform.stages import Offer
from ide_bridge.conform.subject import Subject
from ide_bridge.editor.link import LinkEditor
from ide_bridge.model import Position
from tests.fakes.programs import program, unavailable

__all__ = ["COMMAND", "NEWER", "PLUGIN", "VERSIONS", "NvimPerson", "linked", "nvim", "nvim_program", "vim_string"]

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "editors" / "nvim"
NEWER = ROOT / ".cache" / "nvim" / "bin" / "nvim"
VERSIONS = ("Debian's", "newer")
COMMAND = [str(Path(sys.executable).with_name("ide-bridge"))]
PATIENCE = 20.0
POLL = 0.003
DONE = "\uf8ff"  # nobody types it
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]

SETUP = r"""
vim.opt.runtimepath:prepend(PLUGIN)
vim.g.person_done = 0
vim.keymap.set({ "", "!", "t" }, "<Char-0xf8ff>", "<Cmd>let g:person_done += 1<CR>")

function PersonText(buffer)
  local line_end = ({ dos = "\r\n", mac = "\r" })[vim.bo[buffer].fileformat] or "\n"
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  local ends = vim.bo[buffer].endofline and not vim.deep_equal(lines, { "" })
  return table.concat(lines, line_end) .. (ends and line_end or "")
end

function PersonLayout()
  local tabs = {}
  for _, tab in ipairs(vim.api.nvim_list_tabpages()) do
    local windows = {}
    for _, window in ipairs(vim.api.nvim_tabpage_list_wins(tab)) do
      local info = vim.fn.getwininfo(window)[1]
      table.insert(windows, {
        vim.api.nvim_buf_get_name(info.bufnr), info.width, info.height, info.topline,
        vim.api.nvim_win_get_cursor(window), vim.wo[window].diff, vim.wo[window].scrollbind,
      })
    end
    table.insert(tabs, { vim.fn.winlayout(vim.api.nvim_tabpage_get_number(tab)), windows })
  end
  return { vim.api.nvim_get_current_win(), tabs }
end

local channel = vim.loop.new_tcp()

local function answer(number, done, value)
  channel:write(vim.json.encode({ number, done, value == nil and vim.NIL or value }) .. "\n")
end

local function asked(line)
  local number, kind, text = unpack(vim.json.decode(line))
  if kind == "press" then -- even where Neovim waits for an answer
    answer(number, pcall(vim.api.nvim_input, text))
    return
  end
  vim.schedule(function()
    if kind == "lua" then
      answer(number, pcall(assert(loadstring(text))))
    elseif kind == "eval" then
      answer(number, pcall(vim.api.nvim_eval, text))
    else
      answer(number, pcall(vim.cmd, text))
    end
  end)
end

channel:connect("127.0.0.1", PORT, function()
  local unread = ""
  channel:read_start(function(_, chunk)
    unread = unread .. (chunk or "")
    while unread:find("\n") do
      local line = unread:match("^(.-)\n")
      unread = unread:sub(#line + 2)
      asked(line)
    end
  end)
end)
"""


def nvim_program(version: str) -> str:
    """The Neovim that Debian installs, or the newer one that ``.ci/newer-nvim`` fetches."""
    if version == "Debian's":
        return program("nvim")
    if not NEWER.exists():
        unavailable("no newer Neovim is there; `.ci/newer-nvim` fetches it")
    return str(NEWER)


def vim_string(text: str | Path) -> str:
    """A text as Vim script writes it down, and Lua too."""
    return json.dumps(str(text), ensure_ascii=False)


class NvimPerson:
    """Sits at one Neovim, which runs until ``quit``."""

    def __init__(self, process: subprocess.Popen[bytes], connected: "asyncio.Future[Ends]") -> None:
        self.pid = process.pid
        self.process = process
        self._ids = itertools.count(1)
        self._turn = asyncio.Lock()
        self._connected = connected

    # -- what every person can do ----------------------------------------------------------------------------

    async def open(self, path: str) -> None:
        await self.keys("\x1b")
        # To visit a file anew that changed on disk would be a question of Neovim's own.
        await self.ex(f"let g:person = bufadd({vim_string(path)})")
        await self.ex("call setbufvar(g:person, '&buflisted', 1) | execute 'hide buffer' g:person")

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
        await self.keys("i" + text.replace("<", "<lt>").replace("\n", "\r") + "\x1b")

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
        await self.lua(f"""
            local path = {vim_string(path)}
            local buffer = vim.fn.bufadd(path)
            local linter = vim.api.nvim_create_namespace("linter")
            local found = vim.diagnostic.get(buffer, {{ namespace = linter }})
            table.insert(found, {{
              lnum = {line}, col = 0, end_lnum = {line}, severity = vim.diagnostic.severity.ERROR,
              end_col = vim.str_byteindex(vim.fn.readfile(path)[{line + 1}], 2), message = {vim_string(message)},
            }})
            vim.diagnostic.set(linter, buffer, found)""")

    async def keep(self, diff: int, contents: str | None = None) -> None:
        await self.look_at(diff)
        if contents is not None:
            await self.write_instead(contents)
        await self.keys("\x1b:w!\r")
        await self.until_gone(diff)

    async def reject(self, diff: int) -> None:
        await self.look_at(diff)
        await self.keys("\x1b:q\r")
        await self.until_gone(diff)

    async def text(self, path: str) -> str:
        shown = await self.lua(f"return PersonText(vim.fn.bufadd({vim_string(path)}))")
        assert isinstance(shown, str)
        return shown

    async def cursor(self) -> Position:
        line, column = await self.expr("[line('.') - 1, strchars(strpart(getline('.'), 0, col('.') - 1))]")
        return Position(line, column)

    async def layout(self) -> object:
        return await self.lua("return PersonLayout()")

    async def quit(self) -> None:
        await self.press("\x1b:qa!\r")
        await asyncio.to_thread(self.process.wait, PATIENCE)

    # -- what a person at Neovim can do besides --------------------------------------------------------------

    async def look_at(self, diff: int) -> None:
        """Wait until a diff has come, and go to the window with its proposed text."""
        await self.until(f"{self._proposed(diff)} > 0")
        await self.ex(f"call win_gotoid(win_findbuf({self._proposed(diff)})[0])")

    async def until_gone(self, diff: int) -> None:
        """Wait until a diff has left the screen."""
        await self.until(f"{self._proposed(diff)} < 0")

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
        """Press keys, in Neovim's names for them, and wait until it has done what they mean."""
        done = await self.expr("g:person_done")
        await self.press(keys + DONE)
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while await self.expr("g:person_done") == done:
            assert asyncio.get_running_loop().time() < deadline, f"Neovim has not done {keys!r}"
            await asyncio.sleep(POLL)

    async def press(self, keys: str) -> None:
        """Press keys."""
        await self._ask("press", keys)

    async def ex(self, command: str) -> None:
        """Run a command that is not worth typing; what follows from it has happened afterwards."""
        await self._ask("ex", command)
        await self.keys("")

    async def expr(self, expression: str) -> Any:
        """The value of an expression of Vim script."""
        return json.loads(await self._ask("eval", f"json_encode({expression})"))

    async def lua(self, chunk: str) -> Any:
        """What a piece of Lua returns."""
        return await self._ask("lua", chunk)

    async def until(self, condition: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await self.expr(condition):
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"never true: {condition}\n{await self.messages()}")
            await asyncio.sleep(POLL)

    async def messages(self) -> str:
        """What Neovim has said so far."""
        said = await self.expr("execute('messages')")
        assert isinstance(said, str)
        return said

    async def _go(self, line: int, column: int) -> None:
        await self.ex(f"call cursor({line + 1}, strlen(strcharpart(getline({line + 1}), 0, {column})) + 1)")

    def _proposed(self, diff: int) -> str:
        return f"bufnr('^ide-bridge://proposed/{diff}/')"

    async def _ask(self, kind: str, text: str) -> Any:
        async with self._turn, asyncio.timeout(PATIENCE):
            reader, writer = await self._connected
            number = next(self._ids)
            writer.write(json.dumps([number, kind, text]).encode() + b"\n")
            answered, done, value = json.loads(await reader.readline())
        assert answered == number
        assert done, f"{value}\nin {text}"
        return value

    async def end(self) -> None:
        """Whatever Neovim is doing, it is over, also for the programs it has started."""
        if self.process.poll() is None:
            children = psutil.Process(self.pid).children(recursive=True)
            self.process.kill()
            self.process.wait(PATIENCE)
            await _all_gone(children)
        if self._connected.done():
            self._connected.result()[1].close()
        else:
            self._connected.cancel()


@asynccontextmanager
async def nvim(
    folder: Path,
    environment: Mapping[str, str],
    command: Sequence[str],
    *arguments: str,
    version: str = "Debian's",
    before: str = "",
    start: bool = True,
) -> AsyncIterator[NvimPerson]:
    """A Neovim in a folder, attached by a command; ``before`` is the user's own init.lua."""
    connected: asyncio.Future[Ends] = asyncio.Future()
    server = await asyncio.start_server(lambda *ends: connected.set_result(ends), "127.0.0.1", 0, limit=1 << 26)
    port = server.sockets[0].getsockname()[1]
    init = Path(environment["HOME"]) / f"init-{port}.lua"
    known = f"local PLUGIN, PORT = {json.dumps(str(PLUGIN))}, {port}\n"
    chosen = f"vim.g.ide_bridge_command = vim.json.decode([==[{json.dumps(list(command))}]==])\n"
    init.write_text(known + SETUP + chosen + before, encoding="utf-8")
    with (init.with_suffix(".log")).open("wb") as log:
        process = subprocess.Popen(
            [nvim_program(version), "--clean", "--headless", "--cmd", f"luafile {init}", *arguments],
            cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    person = NvimPerson(process, connected)
    try:
        if start:
            await person.until("v:vim_did_enter")
            await person.ex("IdeBridgeStart")
            await person.until("v:lua.require'ide_bridge'.statusline() != ''")
        yield person
    finally:
        await person.end()
        server.close()


@asynccontextmanager
async def linked(
    folder: Path, environment: Mapping[str, str], *arguments: str, version: str = "Debian's", before: str = ""
) -> AsyncIterator[tuple[NvimPerson, Subject, Host]]:
    """A Neovim whose other end we are: what it is asked, and what it tells, goes through our hands."""
    async with AsyncExitStack() as ends:
        offer = Offer(folder)
        await offer.open()
        ends.push_async_callback(offer.close)
        meeting = asyncio.create_task(_meet(offer))
        ends.push_async_callback(_part, meeting)  # after Neovim has ended, or its relay would come again
        sitting = nvim(folder, environment, COMMAND, *arguments, version=version, before=before)
        person = await ends.enter_async_context(sitting)
        host, editor = await meeting
        subject = Subject(editor, person, folder, host)
        ends.push_async_callback(subject.close)
        yield person, subject, host


async def _all_gone(processes: Sequence[psutil.Process]) -> None:
    """Wait for processes that end by themselves, as what reads from a dead Neovim does."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not all(_is_gone(process) for process in processes):
        assert asyncio.get_running_loop().time() < deadline, f"still there: {processes}"
        await asyncio.sleep(POLL)


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE  # perhaps nobody has buried it yet
    except psutil.NoSuchProcess:
        return True


async def _meet(offer: Offer) -> tuple[Host, LinkEditor]:
    host = await offer.next_host(PATIENCE)
    return host, await host.attached(PATIENCE)


async def _part(meeting: "asyncio.Task[tuple[Host, LinkEditor]]") -> None:
    if meeting.done() and not meeting.cancelled() and meeting.exception() is None:
        await meeting.result()[0].close()
    meeting.cancel()
