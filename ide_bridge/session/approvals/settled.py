"""What was settled lately: how questions ended, and what the CLI was told, in case it asks or is asked again.

It remembers the last few hundred, and of their inputs only what a person changed. It does not know what is open.
"""

import hashlib
import json
import time
from collections.abc import Callable

import msgspec

from ide_bridge.session.approvals.replies import Allowed, Verdict
from ide_bridge.session.control.questions import CanUseTool

__all__ = ["Settled", "sign_of"]

_LIMIT = 500
_INPUT_LIMIT = 16 * 1024
_MINUTE = 60
_HOUR = 3600


class _Ending(msgspec.Struct, frozen=True):
    sign: str
    words: str
    at: float
    verdict: Verdict | None
    is_changed: bool


class Settled:
    """A bounded memory, by the id of the approval and by the CLI's own question."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._endings: dict[str, _Ending] = {}
        self._by_sign: dict[str, str] = {}

    def __contains__(self, approval_id: str) -> bool:
        return approval_id in self._endings

    def __len__(self) -> int:
        return len(self._endings)

    def add(self, approval_id: str, sign: str, words: str, verdict: Verdict | None, *, is_changed: bool) -> None:
        """Remember an end, told in words like "denied by Vim"; without a verdict the CLI may ask once more."""
        if isinstance(verdict, Allowed):
            verdict = _kept(verdict, is_changed=is_changed)
        self._endings[approval_id] = _Ending(sign, words, self._clock(), verdict, is_changed)
        self._by_sign[sign] = approval_id
        while len(self._endings) > _LIMIT:
            oldest = next(iter(self._endings))
            self._by_sign.pop(self._endings.pop(oldest).sign, None)

    def told(self, approval_id: str) -> str:
        """How and when something ended: "denied by Vim 3 s ago"."""
        ending = self._endings[approval_id]
        return f"{ending.words} {_ago(self._clock() - ending.at)}"

    def verdict(self, sign: str, question: CanUseTool) -> Verdict | None:
        """What was said to the very same question."""
        ending = self._endings.get(self._by_sign.get(sign, ""))
        if ending is None:
            return None
        if isinstance(ending.verdict, Allowed) and not ending.is_changed:
            return Allowed(question.input, ending.verdict.permissions)
        return ending.verdict


def sign_of(session: str, request_id: str, question: CanUseTool) -> str:
    """A sign that only the very same question of the CLI has again."""
    whole = [session, request_id, question.tool_name, question.tool_use_id, question.input]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _kept(verdict: Allowed, *, is_changed: bool) -> Allowed | None:
    if not is_changed:
        return Allowed({}, verdict.permissions)
    return verdict if len(json.dumps(verdict.input)) <= _INPUT_LIMIT else None


def _ago(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s ago"
    return f"{seconds / _MINUTE:.0f} min ago" if seconds < _HOUR else f"{seconds / _HOUR:.0f} h ago"
