"""What every benchmark stands on: a home of its own, the bridge and its baseline as processes, a raw client.

It does not know what is measured.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import aiohttp
import msgspec

from tests.bench.trees import Tree, grow
from tests.fakes.bridge_process import BridgeProcess

__all__ = [
    "ECHO_SERVER",
    "PATIENCE",
    "Socket",
    "Stage",
    "ask",
    "connect",
    "dial",
    "request",
    "text_of",
    "wait_for_file",
]

ECHO_SERVER = Path(__file__).with_name("echo_server.py")
PATIENCE = 30.0
POLL = 0.0005
TOKEN_HEADER = "X-Claude-Code-Ide-Authorization"
# Whoever runs a benchmark may be inside a CLI or a test run; neither may reach the processes measured.
_NOT_INHERITED = ("CLAUDE", "XDG_", "PYTHONWARN", "PYTHONASYNCIO")

Socket = aiohttp.ClientWebSocketResponse[Literal[True]]


class Stage:
    """A temporary folder with a home, and the trees of files that benchmarks share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
        self.environment = {**inherited, "HOME": str(self.home)}

    @cached_property
    def small(self) -> Tree:
        """5,000 files in 500 folders."""
        return grow(self.folder / "small", folders=500, files=5_000)

    @cached_property
    def wide(self) -> Tree:
        """27,000 files in 5,000 folders."""
        return grow(self.folder / "wide", folders=5_000, files=27_000)

    @cached_property
    def large(self) -> Tree:
        """100,000 files in 5,000 folders."""
        return grow(self.folder / "large", folders=5_000, files=100_000)

    @cached_property
    def plain(self) -> Path:
        """A folder with nothing but the two files that are read."""
        folder = self.folder / "plain"
        folder.mkdir()
        for name, size in (("2kB.py", 2_000), ("1MB.py", 1_000_000)):
            (folder / name).write_text(text_of(size), encoding="utf-8")
        return folder

    @contextlib.contextmanager
    def bridge(self, folder: Path) -> Iterator[BridgeProcess]:
        """A real bridge that serves this folder."""
        with BridgeProcess(folder, self.environment) as bridge:
            yield bridge

    @contextlib.contextmanager
    def echo(self) -> Iterator[int]:
        """The baseline server; gives its port."""
        port_file = self.folder / "echo.port"
        process = subprocess.Popen([sys.executable, str(ECHO_SERVER), str(port_file)], env=self.environment)
        try:
            deadline = time.monotonic() + PATIENCE
            while not port_file.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the echo server did not start")
                time.sleep(POLL)
            yield int(port_file.read_text(encoding="ascii"))
        finally:
            process.kill()
            process.wait()
            port_file.unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def connect(bridge: BridgeProcess) -> AsyncIterator[Socket]:
    """A client of the bridge."""
    token = Path(bridge.ready["token_file"]).read_text(encoding="utf-8").strip()
    async with aiohttp.ClientSession() as session, dial(session, bridge.ready["port"], token) as socket:
        yield socket


@contextlib.asynccontextmanager
async def dial(session: aiohttp.ClientSession, port: int, token: str = "") -> AsyncIterator[Socket]:
    """A bare WebSocket to a port of this machine."""
    headers = {TOKEN_HEADER: token} if token else {}
    async with session.ws_connect(f"http://127.0.0.1:{port}/", headers=headers, max_msg_size=0) as socket:
        yield socket


def request(method: str, params: object = None) -> str:
    """A request as it goes over the wire."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {} if params is None else params}
    return msgspec.json.encode(message).decode()


async def ask(socket: Socket, method: str, params: object = None) -> Any:
    """The result of one request; an error ends the benchmark."""
    await socket.send_str(request(method, params))
    answer = msgspec.json.decode(await socket.receive_str(timeout=PATIENCE))
    if "error" in answer or (isinstance(answer["result"], dict) and answer["result"].get("isError")):
        raise RuntimeError(f"{method} was answered with {answer}")
    return answer["result"]


async def wait_for_file(folder: Path, suffix: str) -> Path:
    """The first file with this suffix to appear in a folder that may not be there yet."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(FileNotFoundError):
                for name in os.listdir(folder):
                    if name.endswith(suffix):
                        return folder / name
            await asyncio.sleep(POLL)


def text_of(size: int) -> str:
    """Program text of this many characters."""
    line = '    return render("ü", value)  # what the page shows\n'
    return (line * (size // len(line) + 1))[:size]
