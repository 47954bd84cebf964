"""Running checks: each on a living editor, in a folder of its own, whatever the one before has done.

It does not know what is demanded, how an editor is started, or who is told.
"""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from ide_bridge.conform.person import Cannot
from ide_bridge.conform.subject import Subject
from ide_bridge.conform.verdict import Check, Nonconforming, Outcome, Verdict
from ide_bridge.errors import Unsupported

__all__ = ["Stage", "examine", "run_check"]


class Stage(Protocol):
    """Where an editor is examined."""

    async def subject(self) -> Subject:
        """A living editor: the one there is, or, when it has gone, another."""

    async def close(self) -> None:
        """End what was started."""


async def examine(stage: Stage, checks: Sequence[Check]) -> AsyncIterator[Outcome]:
    """Run the checks one after another, and give what comes of each as soon as it is known."""
    for check in checks:
        yield await run_check(await stage.subject(), check)


async def run_check(subject: Subject, check: Check) -> Outcome:
    """Run one check, and put away what it leaves."""
    if why := _inapplicable(subject, check):
        return Outcome(check, "not checked", why)
    subject.begin()
    began = time.monotonic()
    verdict, why = await _judge(subject, check)
    seconds = time.monotonic() - began
    if not subject.gone:
        await subject.tidy()
    return Outcome(check, verdict, why, round(seconds, 3))


def _inapplicable(subject: Subject, check: Check) -> str:
    """Why this editor cannot be held to it, if it cannot."""
    if check.link and subject.line is None:
        return f"{subject.editor.name} is not at the other end of a link."
    missing = sorted(check.needs - subject.editor.features)
    return f"{subject.editor.name} does not have the feature {' or '.join(missing)}." if missing else ""


async def _judge(subject: Subject, check: Check) -> tuple[Verdict, str]:
    try:
        await check.run(subject)
    except Nonconforming as wrong:
        return "wrong", str(wrong)
    except Cannot as reason:
        return "not checked", _sentence(str(reason))
    except Unsupported as reason:  # a plug-in that lacks what every editor must do is wrong; an adapter may say so
        return ("not checked" if subject.line is None else "wrong"), str(reason)
    except Exception as error:  # noqa: BLE001 - somebody else's code
        return "wrong", f"Expected an answer; {type(error).__name__} was raised: {error}"
    return _manners(subject)


def _manners(subject: Subject) -> tuple[Verdict, str]:
    """What was demanded came; whether what came besides is the link protocol."""
    if subject.line is None or not subject.line.complaints:
        return "ok", ""
    first, *others = subject.line.complaints
    return "wrong", f"{first} (and {len(others)} more like it)" if others else first


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text[:1].upper()}{text[1:]}."
