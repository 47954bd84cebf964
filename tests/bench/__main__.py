"""``python -m tests.bench [--only P1,P4]``: measure, and print one table.

It always ends by itself, in five minutes at most, with exit code 0: a benchmark does not fail by time.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.bench import dispatch, editing, editors, launch, listing, roundtrips, transcripts
from tests.bench.stage import Stage
from tests.bench.table import Figure, Unmeasured, show, tell

SECONDS = 300

BENCHMARKS: dict[str, Callable[[Stage], Awaitable[list[Figure]]]] = {
    "P1": roundtrips.latency,
    "P2": roundtrips.in_flight,
    "P3": dispatch.dispatching,
    "P4": roundtrips.reading,
    "P5": editing.large_diffs,
    "P6": launch.starting,
    "P7": launch.memory,
    "P8": listing.first_list,
    "P9": listing.later_list,
    "P10": listing.news,
    "P11": listing.idle,
    "P12": editing.selections,
    "KEYS": editors.keys,
    "L1": editors.attaching,
    "L2": editors.starting_up,
    "T1": transcripts.first_page,
    "T2": transcripts.added,
    "T3": transcripts.many_records,
    "T4": transcripts.past,
}


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="How fast the bridge is, as ratios."
    )
    parser.add_argument("--only", metavar="P1,P4", help=f"of {', '.join(BENCHMARKS)}")
    only = parser.parse_args().only
    goals = list(BENCHMARKS) if only is None else only.upper().split(",")
    if unknown := [goal for goal in goals if goal not in BENCHMARKS]:
        parser.error(f"no such goal: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="ide-bridge-bench-") as folder:
        show(asyncio.run(_measure(Stage(Path(folder).resolve()), goals)))


async def _measure(stage: Stage, goals: list[str]) -> list[Figure | Unmeasured]:
    deadline = time.monotonic() + SECONDS
    found: list[Figure | Unmeasured] = []
    for goal in goals:
        first_line = (BENCHMARKS[goal].__doc__ or goal).splitlines()[0]
        tell(f"Measuring {first_line}")
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                found += await BENCHMARKS[goal](stage)
        except TimeoutError:
            found.append(Unmeasured(goal, "it took too long"))
        except Exception as error:  # noqa: BLE001 - one benchmark that breaks leaves the others their turn
            found.append(Unmeasured(goal, _last_line(error)))
    return found


def _last_line(error: Exception) -> str:
    """The end of a bridge's log says most."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


if __name__ == "__main__":
    main()
