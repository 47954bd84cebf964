"""How a figure is taken: ours and the baseline in turn, several times, and the median of the ratios.

It does not know what is compared.
"""

import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator
from statistics import median

import msgspec

__all__ = ["Comparison", "compare", "one_processor", "seconds"]

ROUNDS = 5


class Comparison(msgspec.Struct, frozen=True):
    """The median ratio, and the medians it is made of."""

    ratio: float
    ours: float
    baseline: float

    @property
    def in_time(self) -> str:
        """Both medians, for a reader."""
        return f"{seconds(self.ours)} / {seconds(self.baseline)}"


async def compare(
    ours: Callable[[], Awaitable[float]], baseline: Callable[[], Awaitable[float]], rounds: int = ROUNDS
) -> Comparison:
    """Measure both in turn; who goes first alternates, so that a drift of the machine favours neither."""
    pairs: list[tuple[float, float]] = []
    for turn in range(rounds):
        if turn % 2:
            second = await baseline()
            pairs.append((await ours(), second))
        else:
            first = await ours()
            pairs.append((first, await baseline()))
    return Comparison(
        median(ours / baseline for ours, baseline in pairs),
        median(ours for ours, _ in pairs),
        median(baseline for _, baseline in pairs),
    )


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """Hold us, and what we start meanwhile, on one CPU: spread over two, round trips are bimodal."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.1f} ms" if value < 1 else f"{value:.2f} s"
