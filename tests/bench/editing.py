"""What an editor's user waits for: large diffs beside others' work (P5), and selections on their way (P12).

It does not know how the bridge coalesces or shows anything; it sees a client's socket.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import msgspec

from ide_bridge.model import Position, Range
from tests.bench.measuring import seconds
from tests.bench.stage import PATIENCE, Socket, Stage, ask, connect, request, text_of
from tests.bench.table import Figure
from tests.fakes.driven_bridge import DrivenBridge

__all__ = ["large_diffs", "selections"]

MB = 1_000_000
INPUTS = 50
APART = 0.005
SINGLES = 40
REST = 0.08


async def large_diffs(stage: Stage) -> list[Figure]:
    """P5: a diff of 40 MB, and what another client feels of one of 10 MB."""
    async with _driven(stage) as (bridge, socket), connect(bridge) as other:
        stall = await _stall_during(bridge, socket, other, 10 * MB)
        start = time.perf_counter()
        kept = await _diff(bridge, socket, 40 * MB)
        taken = time.perf_counter() - start
    same = float(kept == ["FILE_SAVED", text_of(40 * MB)])
    return [
        Figure("P5", "longest wait of another client, 10 MB", stall * 1e3, 30, unit=" ms"),
        Figure("P5", "40 MB kept and answered whole", same, 1, f"in {seconds(taken)}", unit="", at_least=True),
    ]


async def selections(stage: Stage) -> list[Figure]:
    """P12: from the editor to the client's socket, one by one and in a burst."""
    async with _driven(stage) as (bridge, socket):
        await ask(socket, "initialize", {"protocolVersion": "2025-11-25"})
        await socket.send_str(
            msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/initialized"}).decode()
        )
        file = stage.plain / "2kB.py"
        taken = [await _told(bridge, socket, file, number) for number in range(SINGLES)]
        told = await _burst(bridge, socket, file)
    return [
        Figure("P12", "selection until told, p50", median(taken) * 1e3, 5, unit=" ms"),
        Figure("P12", "told of 50 inputs 5 ms apart", len(told), 10, unit=""),
        Figure("P12", "the last one told is the final one", float(told[-1] == INPUTS), 1, unit="", at_least=True),
    ]


@contextlib.asynccontextmanager
async def _driven(stage: Stage) -> AsyncIterator[tuple[DrivenBridge, Socket]]:
    with DrivenBridge(stage.plain, stage.environment) as bridge:
        async with connect(bridge) as socket:
            await ask(socket, "listFiles")
            yield bridge, socket


async def _diff(bridge: DrivenBridge, socket: Socket, size: int) -> list[str]:
    """Open a diff, keep it, and give the texts of the answer."""
    arguments = {"old_file_path": "a", "new_file_path": "a", "new_file_contents": text_of(size), "tab_name": "t"}
    await socket.send_str(request("tools/call", {"name": "openDiff", "arguments": arguments}))
    await asyncio.to_thread(bridge.keep_next)
    answer = msgspec.json.decode(await socket.receive_str(timeout=PATIENCE))
    return [block["text"] for block in answer["result"]["content"]]


async def _stall_during(bridge: DrivenBridge, socket: Socket, other: Socket, size: int) -> float:
    longest = 0.0
    diff = asyncio.create_task(_diff(bridge, socket, size))
    while not diff.done():
        start = time.perf_counter()
        await ask(other, "ping")
        longest = max(longest, time.perf_counter() - start)
    await diff
    return longest


async def _told(bridge: DrivenBridge, socket: Socket, file: Path, number: int) -> float:
    await asyncio.sleep(REST)
    start = time.perf_counter()
    bridge.select(file, f"{number}", _at(number))
    await socket.receive_str(timeout=PATIENCE)
    return time.perf_counter() - start


async def _burst(bridge: DrivenBridge, socket: Socket, file: Path) -> list[int]:
    """Select on and on; give the lines that were told of."""
    await asyncio.sleep(REST)
    for number in range(1, INPUTS + 1):
        bridge.select(file, f"burst {number}", _at(number))
        await asyncio.sleep(APART)
    told: list[int] = []
    with contextlib.suppress(TimeoutError):
        while True:
            message = msgspec.json.decode(await socket.receive_str(timeout=0.5))
            told.append(message["params"]["selection"]["start"]["line"])
    return told


def _at(line: int) -> Range:
    return Range(Position(line, 0), Position(line, 1))
