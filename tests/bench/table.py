"""The table a benchmark ends in: goal, figure, verdict.

It does not know how a figure was taken. A missed goal is a word in the table, never a failure.
"""

import sys

import msgspec
from rich.console import Console
from rich.table import Table

__all__ = ["Figure", "Unmeasured", "show", "tell"]


class Figure(msgspec.Struct, frozen=True):
    """One measured number and the bound it should keep."""

    goal: str
    what: str
    value: float
    bound: float
    detail: str = ""
    unit: str = " ×"
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """Whether the bound is kept."""
        kept = self.value >= self.bound if self.at_least else self.value <= self.bound
        return "[green]met[/]" if kept else "[red]missed[/]"


class Unmeasured(msgspec.Struct, frozen=True):
    """A goal that could not be measured, and why."""

    goal: str
    reason: str


def show(found: list[Figure | Unmeasured]) -> None:
    """Print the table on stdout."""
    table = Table("", "what", "figure", "goal", "verdict", "ours / baseline")
    for row in found:
        if isinstance(row, Unmeasured):
            table.add_row(row.goal, row.reason, "", "", "[yellow]not measured[/]", "")
            continue
        bound = f"{'≥' if row.at_least else '≤'} {row.bound:g}{row.unit}"
        table.add_row(row.goal, row.what, f"{row.value:.3g}{row.unit}", bound, row.verdict, row.detail)
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def tell(words: str) -> None:
    """Say on stderr what happens now."""
    print(words, file=sys.stderr, flush=True)
