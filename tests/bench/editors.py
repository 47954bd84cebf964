"""What a real editor adds: from a key press to the client (P12), the relay's start, and the editor's own.

It does not know how a plug-in notices anything; it presses keys in a terminal and reads a client's socket.
"""

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from statistics import median

import msgspec

from tests.bench.launch import PROGRAM, until_pass
from tests.bench.measuring import compare
from tests.bench.stage import PATIENCE, Socket, Stage, ask, connect
from tests.bench.table import Figure
from tests.fakes.editors import START, nvim, vim

__all__ = ["attaching", "keys", "starting_up"]

PRESSES = 40
REST = 0.08
_LONG_START = 15
ROUNDS = 11
News = asyncio.Queue[str]
BOUNDS = {"Vim": 5.0, "Neovim": 5.0, "Emacs": 10.0}
DOWN, UP = {"Vim": "j", "Neovim": "j", "Emacs": "\x0e"}, {"Vim": "k", "Neovim": "k", "Emacs": "\x10"}


async def keys(stage: Stage) -> list[Figure]:
    """P12 with real editors: from a key press to the client's socket."""
    found = []
    for name, bound in BOUNDS.items():
        p50 = median(await _pressed(stage, name)) * 1e3
        found.append(Figure("P12", f"key in {name} until told, p50", p50, bound, unit=" ms"))
    return found


async def attaching(stage: Stage) -> list[Figure]:
    """The relay's start: from the launch of attach until hello is answered, where a bridge runs."""
    with stage.bridge(stage.plain):
        found = await compare(lambda: _until_welcome(stage), lambda: until_pass(stage), ROUNDS)
    return [Figure("L1", "launch of attach until welcomed, to python -c pass", found.ratio, 2.0, found.in_time)]


async def starting_up(stage: Stage) -> list[Figure]:
    """The editor's start: what the plug-in adds to it while nobody has asked for it."""
    quiet = {"Vim": vim(stage.home, attached=False), "Neovim": nvim(stage.home, attached=False)}
    return [
        Figure("L2", f"added to the start of {name}", await _added(stage, command), 5, unit=" ms")
        for name, command in quiet.items()
    ]


async def _pressed(stage: Stage, name: str) -> list[float]:
    file = stage.plain / "lines.txt"
    file.write_text("".join(f"line {number}\n" for number in range(200)), encoding="utf-8")
    with stage.bridge(stage.plain) as bridge, _terminal(stage, [*START[name](stage.home), str(file)]) as keyboard:
        async with connect(bridge) as socket, _heard(socket) as news:
            await _first_selection(news, keyboard, DOWN[name])
            return [await _told(news, keyboard, (DOWN, UP)[number % 2][name]) for number in range(PRESSES)]


@contextlib.asynccontextmanager
async def _heard(socket: Socket) -> AsyncIterator[News]:
    """What the client is told, as it comes."""
    await ask(socket, "initialize", {"protocolVersion": "2025-11-25"})
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await socket.send_str(msgspec.json.encode(initialized).decode())
    news: News = asyncio.Queue()

    async def listen() -> None:
        while True:
            news.put_nowait(await socket.receive_str())

    listening = asyncio.create_task(listen())
    try:
        yield news
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def _first_selection(news: News, keyboard: int, key: str) -> None:
    """Press until the editor has attached and what it tells comes through, then until it is quiet."""
    async with asyncio.timeout(_LONG_START):
        while news.empty() or "lines.txt" not in news.get_nowait():
            os.write(keyboard, key.encode())
            await asyncio.sleep(0.2)
    await asyncio.sleep(1)
    while not news.empty():
        news.get_nowait()


async def _told(news: News, keyboard: int, key: str) -> float:
    await asyncio.sleep(REST)
    start = time.perf_counter()
    os.write(keyboard, key.encode())
    async with asyncio.timeout(PATIENCE):
        await news.get()
    return time.perf_counter() - start


async def _until_welcome(stage: Stage) -> float:
    hello = {"link": 1, "editor": "Bench", "version": "1", "features": [], "folders": [], "pid": os.getpid()}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": hello})
    start = time.perf_counter()
    with subprocess.Popen(
        [PROGRAM, "attach", str(stage.plain)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=stage.environment
    ) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        relay.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        relay.stdin.flush()
        relay.stdout.readline()
        taken = time.perf_counter() - start
        relay.stdin.close()
    return taken


async def _added(stage: Stage, command: Sequence[str]) -> float:
    """The milliseconds that the editor itself says it spent in our files."""
    return median([await _sourced(stage, command) for _ in range(ROUNDS)])


async def _sourced(stage: Stage, command: Sequence[str]) -> float:
    log = stage.folder / "startup.log"
    log.unlink(missing_ok=True)
    with _terminal(stage, [*command, "--startuptime", str(log), "-c", "qa!"]):
        async with asyncio.timeout(PATIENCE):
            while not log.exists() or "editing files in windows" not in (text := log.read_text(encoding="utf-8")):
                await asyncio.sleep(0.01)
    return sum(float(own) for own in re.findall(r"([\d.]+): sourcing [^\n]*ide_bridge", text))


@contextlib.contextmanager
def _terminal(stage: Stage, command: Sequence[str]) -> Iterator[int]:
    """The keyboard of an editor; what it draws is thrown away."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
    os.set_blocking(ours, False)
    process = subprocess.Popen(
        command,
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=stage.plain,
        env={**stage.environment, "TERM": "screen-256color"},
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, _swallow, ours)
    try:
        yield ours
    finally:
        loop.remove_reader(ours)
        process.kill()
        process.wait()
        os.close(ours)


def _swallow(terminal: int) -> None:
    try:
        os.read(terminal, 1 << 16)
    except OSError:  # the editor is gone
        asyncio.get_running_loop().remove_reader(terminal)
