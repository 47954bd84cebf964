"""What a check is, and what comes of it.

It does not know any editor, nor how a check is run.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from ide_bridge.editor.interface import Feature

if TYPE_CHECKING:
    from ide_bridge.conform.subject import Subject

__all__ = ["Check", "Group", "Nonconforming", "Outcome", "Refused", "Verdict", "demand"]

Demand = Callable[["Subject"], Awaitable[None]]
Verdict = Literal["ok", "wrong", "not checked"]


class Nonconforming(Exception):
    """The editor does not do what is demanded; the text says in one sentence what was expected and what came."""


class Refused(Nonconforming):
    """The editor answered with an error."""


def demand(truth: object, otherwise: str) -> None:
    """Raise the sentence, which has no full stop yet, unless it is so."""
    if not truth:
        raise Nonconforming(f"{otherwise}.")


class Check(msgspec.Struct, frozen=True):
    """One demand on every editor that has what it ``needs``; the sentence is for who writes an adapter."""

    name: str
    sentence: str
    run: Demand
    needs: frozenset[Feature] = frozenset()
    link: bool = False
    """Whether it is about the link itself, so that an editor without one cannot be checked."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of one check."""

    check: Check
    verdict: Verdict
    why: str = ""
    seconds: float = 0.0


class Group:
    """Checks that belong together, in their order; each function's docstring is the sentence it stands for."""

    def __init__(self, name: str, *needs: Feature, link: bool = False) -> None:
        self.checks: list[Check] = []
        self._name = name
        self._needs = frozenset(needs)
        self._link = link

    def check(self, *needs: Feature) -> Callable[[Demand], Demand]:
        """Take a function into the group; what it needs comes on top of what the group does."""

        def take(demand: Demand) -> Demand:
            name = getattr(demand, "__name__", "").replace("_", "-")
            sentence = (demand.__doc__ or "").strip()
            self.checks.append(
                Check(f"{self._name}:{name}", sentence, demand, self._needs.union(needs), self._link)
            )
            return demand

        return take
