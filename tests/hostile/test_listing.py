"""A hostile ignore file slows down the list it belongs to, and nobody else."""

import asyncio
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ide_bridge.errors import Disconnected
from ide_bridge.workspace.listing import Listing
from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_client import connect
from tests.fakes.surroundings import at_home
from tests.trees import put

PATIENCE = 0.1


async def test_costly_rules_hold_up_neither_other_clients_nor_the_end():
    with at_home() as home:
        folder = home.path / "project"
        put(folder, ".gitignore", text="".join(f"*{number}*a*b*c*\n/x/**/*{number}*a\n" for number in range(8000)))
        put(folder, *(f"x/{number:04}{'ab' * 100}" for number in range(2000)))
        with BridgeProcess(folder, home.environment) as bridge:
            token = Path(bridge.ready["token_file"]).read_text(encoding="utf-8")
            async with connect(bridge.ready["port"], token) as one, connect(bridge.ready["port"], token) as other:
                await one.ask("listFiles")
                assert sorted([await _ping(other) for _ in range(60)])[-3] < PATIENCE
            began = time.monotonic()
            assert bridge.stop(signal.SIGTERM) == 0
            assert time.monotonic() - began < 2


@pytest.mark.parametrize("started", [False, True])
async def test_a_reading_with_costly_rules_is_given_up_soon(tmp_path, started):
    put(tmp_path, ".gitignore", text="".join(f"*{number}*a*b*c*\n/*{number}*a*b*c*\n" for number in range(5000)))
    put(tmp_path, *(f"{number:04}{'ab' * 100}" for number in range(3000)))
    listing = Listing([str(tmp_path)])
    reading = asyncio.create_task(listing.start() if started else listing.count())
    while not (listing._reading or listing._future_index):
        await asyncio.sleep(0.01)
    began = time.monotonic()
    await listing.close()
    assert time.monotonic() - began < 4  # compiling the rules is not given up
    with suppress(Disconnected):
        await reading


async def _ping(client):
    await asyncio.sleep(0.02)
    began = time.monotonic()
    await client.request("ping")
    return time.monotonic() - began
