"""The control protocol: both ends of it that matter to a controller, without its I/O.

Bytes of the CLI come in and become events; what a controller says goes out, one whole line at a time.

1. A question of the CLI is open until it is answered, refused or withdrawn. It is answered once; asked twice, as
   some CLIs do when they come back, it is one question.
2. Permission is given with the whole input and refused with a reason, always: without these some CLIs refuse, run
   the tool without its arguments, or end.
3. Every request of ours has a deadline, for the oldest CLIs say nothing to what they do not know. An answer that
   fits no request is dropped.
4. A second ``initialize`` finds what is open. Some CLIs call that an error, some do not; here it is one thing.
5. A request is taken back on the wire only where the CLI is known to understand that; old ones end.
6. A line that cannot be read is told, and the next one is read. Nothing that comes in raises.

It does not know who decides, what time it is, or how bytes travel.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import field

from ide_bridge.errors import ParseError
from ide_bridge.session.control.lenient import Shape, written
from ide_bridge.session.control.messages import (
    ControlCancelRequest,
    ControlRequest,
    ControlResponse,
    Message,
    read,
)
from ide_bridge.session.control.questions import Asked, CanUseTool, UserDialog, asked
from ide_bridge.session.control.requests import Request, payload, subtype_of
from ide_bridge.wire.framing import MESSAGE_LIMIT, Lines, TooLarge

__all__ = ["Answered", "Broken", "Control", "Event", "Failed", "Said", "Withdrawn"]

Version = tuple[int, int, int]

REMEMBERED = 1000  # what a CLI says again at most when it comes back
_ALREADY = "Already initialized"
_LAST_WITHOUT_CANCEL: Version = (2, 1, 120)  # ignores it; 2.1.37 ends with exit code 1


class Said(msgspec.Struct, frozen=True):
    """Everything that is neither a question nor an answer."""

    message: Message


class Withdrawn(msgspec.Struct, frozen=True):
    """A question of the CLI needs no answer any more."""

    request_id: str


class Answered(msgspec.Struct, frozen=True):
    """The CLI has done what it was asked. ``pending``: after ``initialize``, the questions that are open."""

    request_id: str
    response: dict[str, Any]
    pending: tuple[Asked, ...] = ()


class Failed(msgspec.Struct, frozen=True):
    """The CLI has not done what it was asked, or has not answered in time."""

    request_id: str
    error: str
    pending: tuple[Asked, ...] = ()
    code: str | None = None


class Broken(msgspec.Struct, frozen=True):
    """A line of the CLI cannot be read."""

    reason: str


Event = Said | Asked | Withdrawn | Answered | Failed | Broken


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    subtype: str = ""
    request_id: str = ""
    response: dict[str, Any] = field(default_factory=dict)
    error: str = "The CLI refused, and did not say why."
    error_code: str | None = None
    pending_permission_requests: list[Any] = field(default_factory=list)
    pending_user_dialog_requests: list[Any] = field(default_factory=list)


_ANSWER = Shape(_Answer)


class _Sent(msgspec.Struct):
    """A request of ours that is not answered yet; lines are numbered in the order they are sent."""

    subtype: str
    line: bytes
    until: float
    number: int


class Control:
    """The controller's end of one conversation with one CLI. Where its version is not known, it may be any."""

    def __init__(self, version: Version | None = None, *, limit: int = MESSAGE_LIMIT) -> None:
        self._can_cancel = version is not None and version > _LAST_WITHOUT_CANCEL
        self._lines = Lines(limit)
        self._sent: dict[str, _Sent] = {}
        self._open: dict[str, Asked] = {}
        self._settled: dict[str, int] = {}
        self._number = 0

    # -- what the CLI says ----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes, cut anywhere; give what they say."""
        events: list[Event] = []
        for frame in self._lines.feed(data):
            if isinstance(frame, TooLarge):
                events.append(Broken(f"a line of {frame.size:,} bytes is too long"))
            elif (event := self._take(frame)) is not None:
                events.append(event)
        return events

    def _take(self, line: bytes) -> Event | None:
        try:
            message = read(line)
        except ParseError as reason:
            return Broken(str(reason))
        if isinstance(message, ControlRequest):
            return self._asked(message)
        if isinstance(message, ControlResponse):
            return self._answered(message)
        if isinstance(message, ControlCancelRequest):
            return self._withdrawn(message.request_id)
        return Said(message)

    def _asked(self, message: ControlRequest) -> Event | None:
        if not message.request_id:
            return Broken("a question has no id, and so cannot be answered")
        if message.request_id in self._open or message.request_id in self._settled:
            return None
        question = asked(message.request_id, message.request)
        self._open[message.request_id] = question
        return question

    def _withdrawn(self, request_id: str) -> Withdrawn | None:
        if self._close(request_id) is None:
            return None
        return Withdrawn(request_id)

    def _answered(self, message: ControlResponse) -> Event | None:
        answer = _ANSWER.from_fields(message.response)
        request = self._sent.pop(answer.request_id, None)
        if request is None:
            return None
        pending = tuple(self._pending_since(request.number, answer))
        is_repeated = request.subtype == "initialize" and answer.error == _ALREADY
        if answer.subtype == "success" or is_repeated:
            return Answered(answer.request_id, answer.response, pending)
        return Failed(answer.request_id, answer.error, pending, answer.error_code)

    def _pending_since(self, number: int, answer: _Answer) -> Iterable[Asked]:
        """The questions that an answer lists, without those that we answered after we had asked for it."""
        for listed in (*answer.pending_permission_requests, *answer.pending_user_dialog_requests):
            question = _listed(listed)
            if question is not None and self._settled.get(question.request_id, -1) < number:
                yield question

    # -- what we ask ----------------------------------------------------------------------------------------

    def prompt(self, content: str | list[dict[str, Any]], uuid: str) -> bytes:
        """Have something done; the CLI runs no uuid twice."""
        message = {"role": "user", "content": content}
        return self._line(
            {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "", "uuid": uuid}
        )

    def request(self, request: Request, *, until: float) -> tuple[str, bytes]:
        """Ask for something; the id tells which answer belongs to it."""
        request_id = f"ide-bridge-{self._number + 1}"
        line = self._line({"type": "control_request", "request_id": request_id, "request": payload(request)})
        self._sent[request_id] = _Sent(subtype_of(request), line, until, self._number)
        return request_id, line

    def again(self, request_id: str) -> bytes | None:
        """Ask for the same once more, because the CLI may not have heard it; ``None`` if it has answered."""
        request = self._sent.get(request_id)
        if request is None:
            return None
        self._number += 1
        request.number = self._number
        return request.line

    def cancel(self, request_id: str) -> bytes | None:
        """Want no answer any more; ``None`` if it has come, or if the CLI cannot be told."""
        if self._sent.pop(request_id, None) is None or not self._can_cancel:
            return None
        return self._line({"type": "control_cancel_request", "request_id": request_id})

    @property
    def deadline(self) -> float | None:
        """When the next request of ours has waited for too long."""
        return min((request.until for request in self._sent.values()), default=None)

    def expire(self, now: float) -> list[Failed]:
        """Give up the requests whose deadline has passed."""
        late = [request_id for request_id, request in self._sent.items() if request.until <= now]
        return [Failed(request_id, _silence(self._sent.pop(request_id))) for request_id in late]

    # -- what we answer -------------------------------------------------------------------------------------

    @property
    def open(self) -> Mapping[str, Asked]:
        """The questions that the CLI waits for."""
        return MappingProxyType(self._open)

    def allow(
        self,
        request_id: str,
        updated_input: dict[str, Any],
        updated_permissions: list[dict[str, Any]] | None = None,
    ) -> bytes | None:
        """Let a tool run with this input, which is all it gets; ``None`` if that is not asked (any more)."""
        verdict: dict[str, Any] = {"behavior": "allow", "updatedInput": updated_input}
        if updated_permissions:
            verdict["updatedPermissions"] = updated_permissions
        return self._answer(request_id, verdict, about_tool=True)

    def deny(self, request_id: str, message: str, *, interrupt: bool = False) -> bytes | None:
        """Do not let a tool run, and tell the model why; ``None`` if that is not asked (any more)."""
        verdict: dict[str, Any] = {"behavior": "deny", "message": message or "The user does not want this."}
        if interrupt:
            verdict["interrupt"] = True
        return self._answer(request_id, verdict, about_tool=True)

    def answer(self, request_id: str, response: dict[str, Any]) -> bytes | None:
        """Answer any question that is not about a tool; ``None`` if there is none (any more)."""
        return self._answer(request_id, response, about_tool=False)

    def refuse(self, request_id: str, error: str) -> bytes | None:
        """Say that a question cannot be answered; ``None`` if it is not open (any more)."""
        if self._close(request_id) is None:
            return None
        return self._response({"subtype": "error", "request_id": request_id, "error": error})

    def pending(self, asked: Sequence[Asked]) -> list[Event]:
        """Take what the CLI says is open: what is new to us, or not answered after all, and what is over.

        It lists tools and dialogs only. Hooks and messages for MCP servers stay as they are.
        """
        listed = {question.request_id: question for question in asked}
        over = [
            request_id
            for request_id, question in self._open.items()
            if isinstance(question.request, CanUseTool | UserDialog) and request_id not in listed
        ]
        withdrawn = [found for request_id in over if (found := self._withdrawn(request_id)) is not None]
        new = {request_id: question for request_id, question in listed.items() if request_id not in self._open}
        self._open.update(new)
        return [*withdrawn, *new.values()]

    def _answer(self, request_id: str, response: dict[str, Any], *, about_tool: bool) -> bytes | None:
        question = self._open.get(request_id)
        if question is None or isinstance(question.request, CanUseTool) != about_tool:
            return None
        line = self._response({"subtype": "success", "request_id": request_id, "response": response})
        self._close(request_id)
        return line

    def _close(self, request_id: str) -> Asked | None:
        question = self._open.pop(request_id, None)
        if question is not None:
            self._settled.pop(request_id, None)
            self._settled[request_id] = self._number
            if len(self._settled) > REMEMBERED:
                del self._settled[next(iter(self._settled))]
        return question

    def _response(self, response: dict[str, Any]) -> bytes:
        return self._line({"type": "control_response", "response": response})

    def _line(self, message: dict[str, Any]) -> bytes:
        self._number += 1
        return self._lines.encode(written(message))


def _listed(listed: object) -> Asked | None:
    match listed:
        case {"request_id": str(request_id), "request": dict(request)}:
            return asked(request_id, request)
        case _:
            return None


def _silence(request: _Sent) -> str:
    return f"The CLI did not answer in time; it may be too old to know {request.subtype}."
