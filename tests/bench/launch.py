"""From the launch to the lock and to the first answer, and the memory it takes: P6, P7.

It does not know how the bridge starts; it sees the lock appear and a socket answer.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import msgspec
import psutil

from tests.bench.measuring import Comparison, compare
from tests.bench.stage import ECHO_SERVER, PATIENCE, Socket, Stage, ask, connect, dial, request, wait_for_file
from tests.bench.table import Figure
from tests.bench.watches import until_watched

__all__ = ["PROGRAM", "memory", "starting", "until_pass"]

ROUNDS = 11
ROUNDS_OF_MEMORY = 3
PROGRAM = str(Path(sys.executable).with_name("ide-bridge"))
_HELLO = request("initialize", {"protocolVersion": "2025-11-25", "clientInfo": {"name": "bench", "version": "1"}})


async def starting(stage: Stage) -> list[Figure]:
    """P6: how long until a CLI can find us, and until it is answered."""
    lock = await compare(lambda: _until_lock(stage), lambda: until_pass(stage), ROUNDS)
    answer = await compare(lambda: _until_answer(stage), lambda: _until_echo(stage), ROUNDS)
    return [
        Figure("P6", "launch until the lock, to python -c pass", lock.ratio, 2.0, lock.in_time),
        Figure("P6", "launch until initialize is answered, to aiohttp", answer.ratio, 1.05, answer.in_time),
    ]


async def memory(stage: Stage) -> list[Figure]:
    """P7: resident memory at the first answer, and with a wide tree watched and indexed."""
    fresh = await compare(lambda: _memory_at_answer(stage), lambda: _memory_of_echo(stage), ROUNDS_OF_MEMORY)
    wide = await compare(lambda: _memory_of_wide(stage), lambda: _memory_of_echo(stage), ROUNDS_OF_MEMORY)
    return [
        Figure("P7", "memory at the first answer, to aiohttp", fresh.ratio, 1.10, _sizes(fresh)),
        Figure("P7", "memory, 5,000 folders watched, to aiohttp", wide.ratio, 1.6, _sizes(wide)),
    ]


async def until_pass(stage: Stage) -> float:
    start = time.perf_counter()
    # Waiting with a timeout would poll, and be late by as much as is measured here.
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=stage.environment)
    return time.perf_counter() - start


async def _until_lock(stage: Stage) -> float:
    with _started(stage, PROGRAM, "serve", str(stage.plain), "--json") as (_, start):
        await wait_for_file(_locks(stage), ".lock")
        return time.perf_counter() - start


async def _until_answer(stage: Stage) -> float:
    async with _bridge_at_answer(stage) as (_, taken):
        return taken


async def _until_echo(stage: Stage) -> float:
    async with _echo_at_answer(stage) as (_, taken):
        return taken


async def _memory_at_answer(stage: Stage) -> float:
    async with _bridge_at_answer(stage) as (pid, _):
        return _resident(pid)


async def _memory_of_echo(stage: Stage) -> float:
    async with _echo_at_answer(stage) as (pid, _):
        return _resident(pid)


async def _memory_of_wide(stage: Stage) -> float:
    with stage.bridge(stage.wide.path) as bridge:
        async with connect(bridge) as socket:
            await ask(socket, "listFiles")
            await until_watched(bridge.ready["pid"], stage.wide.folders)
            return _resident(bridge.ready["pid"])


@contextlib.asynccontextmanager
async def _bridge_at_answer(stage: Stage) -> AsyncIterator[tuple[int, float]]:
    with _started(stage, PROGRAM, "serve", str(stage.plain), "--json") as (process, start):
        async with aiohttp.ClientSession() as session:
            lock = await wait_for_file(_locks(stage), ".lock")
            token: str = msgspec.json.decode(lock.read_bytes())["authToken"]
            async with dial(session, int(lock.stem), token) as socket:
                yield process.pid, await _answered(socket) - start


@contextlib.asynccontextmanager
async def _echo_at_answer(stage: Stage) -> AsyncIterator[tuple[int, float]]:
    port_file = stage.folder / "minimal.port"
    with _started(stage, sys.executable, str(ECHO_SERVER), str(port_file)) as (process, start):
        async with aiohttp.ClientSession() as session:
            await wait_for_file(stage.folder, port_file.name)
            port = int(port_file.read_text(encoding="ascii"))
            port_file.unlink()
            async with dial(session, port) as socket:
                yield process.pid, await _answered(socket) - start


async def _answered(socket: Socket) -> float:
    await socket.send_str(_HELLO)
    await socket.receive_str(timeout=PATIENCE)
    return time.perf_counter()


@contextlib.contextmanager
def _started(stage: Stage, *command: str) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=stage.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process, start
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _locks(stage: Stage) -> Path:
    return stage.home / ".claude" / "ide"


def _resident(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss)


def _sizes(found: Comparison) -> str:
    return f"{found.ours / 2**20:.1f} / {found.baseline / 2**20:.1f} MiB"
