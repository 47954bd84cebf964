"""Listing files, first and later, against ``rg --files``: P8, P9; and how news reach the list: P10, P11.

What is right is said by git. It does not know how the bridge walks or watches.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from statistics import quantiles

import psutil

from tests.bench.measuring import compare, one_processor, seconds
from tests.bench.roundtrips import CHEAPEST, typical
from tests.bench.stage import PATIENCE, Socket, Stage, ask, connect, request
from tests.bench.table import Figure
from tests.bench.trees import Tree, git_paths
from tests.bench.watches import until_watched

__all__ = ["first_list", "idle", "later_list", "news"]

ROUNDS = 3
LISTS = 15
NEW_FILES = 60
BURST = 20_000
IDLE_SECONDS = 5.0


async def first_list(stage: Stage) -> list[Figure]:
    """P8: the first list of a bridge that has only just started."""
    figures = []
    for tree, size in ((stage.large, "100,000"), (stage.small, "5,000")):
        expected = git_paths(tree.path)
        found = await compare(partial(_first, stage, tree), partial(_rg, tree), ROUNDS)
        async with _listing(stage, tree) as (_, socket):
            unlike = set(await ask(socket, "listFiles")) ^ set(expected)
        figures += [
            Figure("P8", f"first listFiles of {size}, to rg --files", found.ratio, 0.8, found.in_time),
            Figure("P8", f"paths of {size} that git lists otherwise", len(unlike), 0, unit=""),
        ]
    return figures


async def later_list(stage: Stage) -> list[Figure]:
    """P9: lists and counts of a tree that is known already."""
    tree = stage.wide
    async with _watching(stage, tree) as (_, socket):
        whole = await compare(lambda: _rg(tree), lambda: typical(socket, request("listFiles"), LISTS))
        some = await compare(
            lambda: _rg(tree, "-g", "**/*.py"),
            lambda: typical(socket, request("listFiles", {"pattern": "**/*.py"}), LISTS),
        )
    with one_processor():
        async with _watching(stage, tree) as (_, socket):
            asked, cheapest = request("getWorkspaceInfo"), request(*CHEAPEST)
            info = await compare(lambda: typical(socket, asked), lambda: typical(socket, cheapest))
    return [
        _faster("later listFiles of 27,000: rg --files to it", whole.ratio, 15, whole.baseline, whole.ours),
        _faster("later listFiles **/*.py: rg to it", some.ratio, 10, some.baseline, some.ours),
        Figure("P9", "getWorkspaceInfo to the cheapest call", info.ratio, 1.1, info.in_time),
    ]


async def news(stage: Stage) -> list[Figure]:
    """P10: from a file's creation to its place in the list, alone and in a flood."""
    tree = stage.wide
    async with _watching(stage, tree) as (pid, socket):
        taken = [await _until_listed(socket, tree.path, f"package3/part80/new{n}.py") for n in range(NEW_FILES)]
        flood = await _flooded(socket, tree.path, "flood")
        with _stopped(pid):
            _flood(tree.path, "overflow")
            expected = git_paths(tree.path)
        overflow = await _until_equal(socket, expected)
    for folder in ("flood", "overflow"):
        shutil.rmtree(tree.path / folder)
    late = quantiles(taken, n=20)[-1]
    middle = f"p50 {seconds(sorted(taken)[len(taken) // 2])}"
    return [
        Figure("P10", "file created until listed, p95", late * 1e3, 10, middle, unit=" ms"),
        Figure("P10", "20,000 created until the list is git's", flood, 1, unit=" s"),
        Figure("P10", "the same, the kernel's queue overflown", overflow, 1, unit=" s"),
    ]


async def idle(stage: Stage) -> list[Figure]:
    """P11: what watching costs when nothing happens."""
    async with _watching(stage, stage.wide) as (pid, _):
        process = psutil.Process(pid)
        await asyncio.sleep(1)
        before = process.cpu_times()
        await asyncio.sleep(IDLE_SECONDS)
        after = process.cpu_times()
    busy = after.user + after.system - before.user - before.system
    return [Figure("P11", "CPU idle, 5,000 folders watched", 100 * busy / IDLE_SECONDS, 1, unit=" %")]


@contextlib.asynccontextmanager
async def _listing(stage: Stage, tree: Tree) -> AsyncIterator[tuple[int, Socket]]:
    with stage.bridge(tree.path) as bridge:
        async with connect(bridge) as socket:
            yield bridge.ready["pid"], socket


@contextlib.asynccontextmanager
async def _watching(stage: Stage, tree: Tree) -> AsyncIterator[tuple[int, Socket]]:
    async with _listing(stage, tree) as (pid, socket):
        await ask(socket, "listFiles")
        await until_watched(pid, tree.folders)
        await ask(socket, "listFiles")
        yield pid, socket


async def _first(stage: Stage, tree: Tree) -> float:
    async with _listing(stage, tree) as (_, socket):
        return await typical(socket, request("listFiles"), calls=1)


async def _rg(tree: Tree, *options: str) -> float:
    start = time.perf_counter()
    subprocess.run(["rg", "--files", *options], cwd=tree.path, check=True, capture_output=True, timeout=PATIENCE)
    return time.perf_counter() - start


def _faster(what: str, ratio: float, bound: float, ours: float, baseline: float) -> Figure:
    return Figure("P9", what, ratio, bound, f"{seconds(ours)} / {seconds(baseline)}", at_least=True)


async def _until_listed(socket: Socket, root: Path, path: str) -> float:
    asked = {"pattern": f"/{path}"}
    start = time.perf_counter()
    (root / path).touch()
    async with asyncio.timeout(PATIENCE):
        while path not in await ask(socket, "listFiles", asked):
            pass
    return time.perf_counter() - start


async def _flooded(socket: Socket, root: Path, name: str) -> float:
    """The bridge runs on while the files are made; what git will list is known beforehand."""
    made = (f"{name}/file{n}.txt" for n in range(BURST))
    expected = sorted([*git_paths(root), *made])
    _flood(root, name)
    return await _until_equal(socket, expected)


def _flood(root: Path, name: str) -> None:
    (root / name).mkdir()
    for n in range(BURST):
        (root / name / f"file{n}.txt").touch()


async def _until_equal(socket: Socket, expected: list[str]) -> float:
    """How long until the list is git's; only its length is compared until that fits."""
    start = time.perf_counter()
    async with asyncio.timeout(PATIENCE):
        while True:
            listed = await ask(socket, "listFiles")
            taken = time.perf_counter() - start
            if len(listed) == len(expected) and sorted(listed) == expected:
                return taken


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
