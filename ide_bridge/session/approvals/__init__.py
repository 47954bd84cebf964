"""The inbox: every open permission question of every session, and who answered it.

1. The policy of the folder answers what it can; the rest waits for a person, as long as its session or as the
   user has set. Silence is no consent: when the time is over, the question is denied.
2. The first answer counts. Whoever comes later is told who was first; everybody who listens is told of each
   question that is asked and of each that is closed, in that order.
3. "Allow for the session" is sent to the CLI and remembered here as well, because 2.1.37 and 2.1.120 take such a
   rule and ask again.
4. A CLI that comes back may not have got an answer and asks the same again: it gets the same answer.

It does not know the wire, the CLI's process, or how questions are shown.
"""

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from ide_bridge.errors import InvalidParams
from ide_bridge.session.approvals.permissions import for_session, rules_in, same
from ide_bridge.session.approvals.policy import PLAN, QUESTION, denied_by, is_for_people, judge
from ide_bridge.session.approvals.replies import Allowed, Answer, Denied, Verdict, reply
from ide_bridge.session.approvals.rules import Rule
from ide_bridge.session.approvals.settled import Settled, sign_of
from ide_bridge.session.approvals.titles import short, title_of
from ide_bridge.session.control.questions import CanUseTool
from ide_bridge.settings import ApprovalPolicy

__all__ = ["Allowed", "Answer", "Approval", "Closed", "Denied", "Inbox", "Listener", "Verdict", "title_of"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

_LETTERS = "abcdefghjkmnpqrstuvwxyz"
_ID_LENGTH = 4
_OPEN_LIMIT = 1000
_GRANTS_LIMIT = 500
_NAMED = 10

_KINDS: "dict[str, Kind]" = {QUESTION: "question", PLAN: "plan"}
_ENDS = {"allowed": "already allowed by", "denied": "already denied by", "withdrawn": "withdrawn by"}

Kind = Literal["tool", "question", "plan"]
Outcome = Literal["allowed", "denied", "withdrawn", "expired"]


class Approval(msgspec.Struct, frozen=True, rename="camel"):
    """A question that waits for a person."""

    id: str
    session: str
    request_id: str
    tool: str
    kind: Kind
    title: str
    input: dict[str, Any]
    suggestions: tuple[dict[str, Any], ...]
    """What "for the session" would add to the permissions of the session."""
    description: str | None
    reason: str | None
    blocked_path: str | None
    agent: str | None
    asked: float
    until: float | None


class Closed(msgspec.Struct, frozen=True):
    """What became of a question."""

    approval: Approval
    outcome: Outcome
    by: str
    reason: str


Listener = Callable[[Approval | Closed], None]


class Inbox:
    """All open questions; `policy` tells how those of a session in a folder are to be treated."""

    def __init__(self, policy: Callable[[str], ApprovalPolicy]) -> None:
        self._policy = policy
        self._open: dict[str, _Open] = {}
        self._settled = Settled()
        self._grants: dict[str, _Grants] = {}
        self._listeners: dict[object, Listener] = {}
        self._news: deque[Approval | Closed] = deque()
        self._is_telling = False
        self._is_closed = False

    # -- the session's side --------------------------------------------------------------------------------

    def ask(
        self, session: str, folder: str, request_id: str, question: CanUseTool, tell: Callable[[Verdict], None]
    ) -> Approval | None:
        """Take a question. None: it is decided already, and `tell` was called."""
        sign = sign_of(session, request_id, question)
        known = self._find(session, request_id)
        if known is not None and known.sign == sign:
            known.tell = tell
            return known.approval
        self.withdraw(session, request_id)
        policy = self._policy(folder)
        verdict = self._decided(session, folder, sign, question, policy)
        if verdict is not None:
            tell(verdict)
            return None
        waiting = _Open(
            self._approval(session, folder, request_id, question, policy), question, folder, sign, tell
        )
        self._open[waiting.approval.id] = waiting
        if policy.seconds:
            loop = asyncio.get_running_loop()
            waiting.timer = loop.call_later(policy.seconds, self._expire, waiting, policy.seconds)
        self._announce(waiting.approval)
        return waiting.approval

    def withdraw(self, session: str, request_id: str) -> None:
        """The CLI no longer wants an answer."""
        waiting = self._find(session, request_id)
        if waiting is not None:
            self._close(waiting, Closed(waiting.approval, "withdrawn", "the CLI", "It is no longer asked."))

    def leave(self, session: str) -> None:
        """The session has ended, and with it all that was allowed for it."""
        self._grants.pop(session, None)
        for waiting in [each for each in self._open.values() if each.approval.session == session]:
            self._close(waiting, Closed(waiting.approval, "withdrawn", "the session", "The session has ended."))

    def close(self) -> None:
        """The bridge is stopping: what is open goes unanswered, and what is still asked is denied."""
        self._is_closed = True
        for waiting in list(self._open.values()):
            self._close(waiting, Closed(waiting.approval, "withdrawn", "the bridge", "The bridge is stopping."))
        self._grants.clear()

    # -- the people's side ---------------------------------------------------------------------------------

    def open(self) -> list[Approval]:
        """What waits for a person, oldest first."""
        return [waiting.approval for waiting in self._open.values()]

    def decide(self, approval_id: str, answer: Answer, by: str) -> Closed:
        """Answer a question for good; raises `InvalidParams` if it is not open or the answer does not fit it."""
        waiting = self._open.get(_typed(approval_id))
        if waiting is None:
            raise InvalidParams(self._why_not_open(_typed(approval_id)))
        verdict = reply(waiting.question, answer, waiting.approval.suggestions)
        if isinstance(verdict, Allowed):
            self._check(waiting, verdict.input)
            if answer.for_session:
                self._grant(waiting)
        outcome: Outcome = "allowed" if isinstance(verdict, Allowed) else "denied"
        closed = Closed(waiting.approval, outcome, short(by.strip(), 60) or "somebody", answer.reason.strip())
        self._close(waiting, closed, verdict)
        return closed

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of every question and of its end, until what is returned is called."""
        sign = object()
        self._listeners[sign] = listener

        def unsubscribe() -> None:
            self._listeners.pop(sign, None)

        return unsubscribe

    # -- deciding ------------------------------------------------------------------------------------------

    def _decided(
        self, session: str, folder: str, sign: str, question: CanUseTool, policy: ApprovalPolicy
    ) -> Verdict | None:
        """What can be said to a question without a person."""
        if self._is_closed:
            return Denied("The bridge is stopping, so nobody can allow this any more.")
        if (before := self._settled.verdict(sign, question)) is not None:
            return before
        grants = self._grants.get(session, _NO_GRANTS)
        ruling = judge(question, folder, policy, grants.rules)
        if ruling is not None:
            return Allowed(question.input) if ruling.allows else Denied(f"Denied by the rule {ruling.by}.")
        if grants.signs and not is_for_people(question) and same(question, folder) in grants.signs:
            return Allowed(question.input)
        if len(self._open) >= _OPEN_LIMIT:
            return Denied(f"{_OPEN_LIMIT} questions wait for an answer already; ask again when some are answered.")
        return None

    def _check(self, waiting: "_Open", given: dict[str, Any]) -> None:
        """Refuse a changed input that a rule denies: rules that deny beat people who allow in a hurry."""
        changed = msgspec.structs.replace(waiting.question, input=given)
        denied = None
        if given is not waiting.question.input and not is_for_people(changed):
            denied = denied_by(changed, waiting.folder, self._policy(waiting.folder))
        if denied is not None:
            raise InvalidParams(f"What it was changed to is denied by the rule {denied}.")

    def _grant(self, waiting: "_Open") -> None:
        grants = self._grants.setdefault(waiting.approval.session, _Grants())
        grants.add(rules_in(waiting.approval.suggestions), same(waiting.question, waiting.folder))

    def _approval(
        self, session: str, folder: str, request_id: str, question: CanUseTool, policy: ApprovalPolicy
    ) -> Approval:
        now = time.time()
        return Approval(
            id=self._new_id(),
            session=session,
            request_id=request_id,
            tool=question.tool_name,
            kind=_KINDS.get(question.tool_name, "tool"),
            title=title_of(question.tool_name, question.input, folder),
            input=question.input,
            suggestions=for_session(question),
            description=question.description,
            reason=question.decision_reason,
            blocked_path=question.blocked_path,
            agent=question.agent_id,
            asked=now,
            until=now + policy.seconds if policy.seconds else None,
        )

    def _new_id(self) -> str:
        while True:
            found = "".join(secrets.choice(_LETTERS) for _ in range(_ID_LENGTH))
            if found not in self._open and found not in self._settled:
                return found

    # -- closing -------------------------------------------------------------------------------------------

    def _find(self, session: str, request_id: str) -> "_Open | None":
        asked = (session, request_id)
        return next(
            (each for each in self._open.values() if (each.approval.session, each.approval.request_id) == asked),
            None,
        )

    def _expire(self, waiting: "_Open", seconds: float) -> None:
        reason = f"Nobody answered within {seconds:g} s, so this is denied; go on without it."
        try:
            self._close(waiting, Closed(waiting.approval, "expired", "nobody", reason), Denied(reason))
        except Exception:
            logger.exception("Failed to tell a session that its question has expired")

    def _close(self, waiting: "_Open", closed: Closed, verdict: Verdict | None = None) -> None:
        del self._open[closed.approval.id]
        if waiting.timer is not None:
            waiting.timer.cancel()
        words = (
            f"{_ENDS[closed.outcome]} {closed.by}" if closed.outcome in _ENDS else "denied, as nobody answered,"
        )
        is_changed = isinstance(verdict, Allowed) and verdict.input is not waiting.question.input
        self._settled.add(closed.approval.id, waiting.sign, words, verdict, is_changed=is_changed)
        try:
            if verdict is not None:
                waiting.tell(verdict)
        finally:
            self._announce(closed)

    def _why_not_open(self, approval_id: str) -> str:
        if approval_id in self._settled:
            return f"{approval_id} was {self._settled.told(approval_id)}."
        if not self._open:
            return f"There is no approval {short(approval_id, 20)}: nothing waits for one."
        some = ", ".join(list(self._open)[:_NAMED])
        more = f" and {len(self._open) - _NAMED} more" if len(self._open) > _NAMED else ""
        return f"There is no approval {short(approval_id, 20)}; open are {some}{more}."

    def _announce(self, news: Approval | Closed) -> None:
        """Tell everybody, one piece of news after the other, also if a listener answers while it is told."""
        self._news.append(news)
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._news:
                self._tell_all(self._news.popleft())
        finally:
            self._is_telling = False

    def _tell_all(self, news: Approval | Closed) -> None:
        for listener in list(self._listeners.values()):
            try:
                listener(news)
            except Exception:
                logger.exception("Failed to tell a listener about an approval")


class _Open:
    """A question that waits, and the way back to whoever asked."""

    def __init__(
        self, approval: Approval, question: CanUseTool, folder: str, sign: str, tell: Callable[[Verdict], None]
    ) -> None:
        self.approval = approval
        self.question = question
        self.folder = folder
        self.sign = sign
        self.tell = tell
        self.timer: asyncio.TimerHandle | None = None


class _Grants:
    """What people have allowed for one session: rules, and the very questions they were asked."""

    def __init__(self) -> None:
        self.rules: dict[Rule, None] = {}
        self.signs: dict[str, None] = {}

    def add(self, rules: Iterable[Rule], sign: str) -> None:
        """Remember, and forget the oldest when there are too many."""
        self.rules = _newest(self.rules | dict.fromkeys(rules))
        self.signs = _newest(self.signs | {sign: None})


_NO_GRANTS = _Grants()


def _newest(known: dict[T, None]) -> dict[T, None]:
    return dict.fromkeys(list(known)[-_GRANTS_LIMIT:])


def _typed(approval_id: str) -> str:
    """An id as people type it."""
    return approval_id.strip().casefold()
