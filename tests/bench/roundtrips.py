"""Round trips over the client socket, against a bare echo of aiohttp: P1, P2, P4.

Client and server share one CPU, so a ratio is one of work done, not of how two processes were scheduled.

It does not know what happens inside the bridge.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from statistics import median

import aiohttp

from tests.bench.measuring import Comparison, compare, one_processor
from tests.bench.stage import PATIENCE, Socket, Stage, ask, connect, dial, request
from tests.bench.table import Figure
from tests.bench.watches import until_watched

__all__ = ["CHEAPEST", "in_flight", "latency", "reading", "typical"]

CALLS = 400
CALLS_OF_A_MEGABYTE = 30
IN_FLIGHT = 16

CHEAPEST = ("tools/call", {"name": "getCurrentFile", "arguments": {}})
_INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


async def latency(stage: Stage) -> list[Figure]:
    """P1: what a call costs above an echo of the same message."""
    figures = []
    async with _both(stage) as (bridge, echo):
        for method, params in (CHEAPEST, ("initialize", _INITIALIZE), ("tools/list", {})):
            await ask(bridge, method, params)
            message = request(method, params)
            found = await compare(_typical(bridge, message), _typical(echo, message))
            figures.append(Figure("P1", f"{method}, p50, to an echo", found.ratio, 1.35, found.in_time))
    return figures


async def in_flight(stage: Stage) -> list[Figure]:
    """P2: requests per second with 16 in flight."""
    message = request(*CHEAPEST)
    async with _both(stage) as (bridge, echo):
        await ask(bridge, *CHEAPEST)
        to_echo = await compare(_rate(bridge, message, IN_FLIGHT), _rate(echo, message, IN_FLIGHT))
        to_one = await compare(_rate(bridge, message, IN_FLIGHT), _rate(bridge, message, 1))
    return [
        Figure("P2", "requests/s, 16 in flight, to an echo", to_echo.ratio, 0.6, _rates(to_echo), at_least=True),
        Figure("P2", "requests/s, 16 in flight to one", to_one.ratio, 1.0, _rates(to_one), at_least=True),
    ]


async def reading(stage: Stage) -> list[Figure]:
    """P4: readFile against an echo of a message as long as its answer."""
    figures = []
    async with _both(stage) as (bridge, echo):
        for name, calls, bound in (("2kB.py", CALLS, 1.7), ("1MB.py", CALLS_OF_A_MEGABYTE, 1.5)):
            asked = request("readFile", {"path": name})
            await bridge.send_str(asked)
            answer = await bridge.receive_str(timeout=PATIENCE)
            found = await compare(_typical(bridge, asked, calls), _typical(echo, answer, calls))
            figures.append(
                Figure("P4", f"readFile {name[:3]}, p50, to an echo", found.ratio, bound, found.in_time)
            )
    return figures


async def typical(socket: Socket, message: str, calls: int = CALLS) -> float:
    """The median seconds of one exchange after another."""
    taken = []
    for _ in range(calls):
        start = time.perf_counter()
        await socket.send_str(message)
        await socket.receive_str()  # a timeout would add its own work to ours and to the baseline
        taken.append(time.perf_counter() - start)
    return median(taken)


@contextlib.asynccontextmanager
async def _both(stage: Stage) -> AsyncIterator[tuple[Socket, Socket]]:
    with one_processor(), stage.bridge(stage.plain) as bridge, stage.echo() as port:
        async with connect(bridge) as ours, aiohttp.ClientSession() as session, dial(session, port) as echo:
            await ask(ours, "listFiles")
            await until_watched(bridge.ready["pid"], 1)
            await ask(ours, "listFiles")
            yield ours, echo


def _typical(socket: Socket, message: str, calls: int = CALLS) -> Callable[[], Awaitable[float]]:
    return lambda: typical(socket, message, calls)


def _rate(socket: Socket, message: str, width: int) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        start = time.perf_counter()
        for _ in range(width):
            await socket.send_str(message)
        for sent in range(width, CALLS + width):
            await socket.receive_str()
            if sent < CALLS:
                await socket.send_str(message)
        return CALLS / (time.perf_counter() - start)

    return measure


def _rates(found: Comparison) -> str:
    return f"{found.ours:,.0f} / {found.baseline:,.0f} per s"
