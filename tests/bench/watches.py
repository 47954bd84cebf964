"""How many folders a process watches, as the kernel tells it.

It knows Linux only. Elsewhere it waits a while and trusts that watching has begun.
"""

import asyncio
from pathlib import Path

__all__ = ["until_watched"]

PATIENCE = 30.0
POLL = 0.05
TRUST = 3.0


async def until_watched(pid: int, folders: int) -> None:
    """Return once the process watches that many folders."""
    if not Path("/proc/self/fdinfo").is_dir():
        await asyncio.sleep(TRUST)
        return
    async with asyncio.timeout(PATIENCE):
        while _watched(pid) < folders:
            await asyncio.sleep(POLL)


def _watched(pid: int) -> int:
    count = 0
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            count += entry.read_text(encoding="ascii").count("inotify wd:")
        except OSError:
            continue  # closed between the listing and the look
    return count
