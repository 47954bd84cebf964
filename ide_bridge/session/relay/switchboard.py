"""The switchboard of the relay: which CLI a front end means, what everybody is told, and who answered first.

1. Every line of a CLI goes to all front ends as it came, except what it says again after a reconnect.
2. A front end's message goes to the CLI of its `session_id`; without one, to the CLI that connected last. A
   session that nobody has is taken for that of the newest CLI that has not said yet which one it has.
3. A question of a CLI is open until the first answer. The other front ends get a `control_cancel_request` for it,
   as if the CLI had withdrawn it, and a status that says what became of it.
4. Whoever joins late is told that a CLI is there, and gets each one's last `system/init` and its open questions.
5. A CLI that comes back is known by the last thing it said, or by its session. It is greeted with `initialize`
   like any other; what it answers then tells which of its questions are still open, and these are asked again.

It does not know sockets: what it says to anybody is handed to a function.
"""

import itertools
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ide_bridge.errors import InvalidParams
from ide_bridge.session.relay.front_words import (
    Answer,
    Message,
    Nothing,
    Order,
    answer_line,
    control_line,
    read_words,
)
from ide_bridge.session.sdk_server.seen import Seen, mark_of

__all__ = ["Cli", "FrontEnd", "Switchboard", "Tell"]

Tell = Callable[[bytes], None]
"""Passes lines on, without waiting."""

_REMEMBERED = 64
_QUESTIONS = 1000
_NEEDS_A_PERSON = "AskUserQuestion"
_CONNECTED = "claude code connected"
_STILL_CONNECTED = "claude code is connected"
_DISCONNECTED = "claude code disconnected"
_MISSED = "claude code may have said something while it was not connected; its transcript has it"


class _Line(msgspec.Struct):
    """What the relay looks at in a line of a CLI; the rest passes through."""

    type: object = None
    subtype: object = None
    session_id: object = None
    request_id: object = None
    request: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()


class _Request(msgspec.Struct):
    subtype: str = ""
    tool_name: str = ""
    input: dict[str, Any] = {}


class _Pending(msgspec.Struct):
    request_id: str
    request: msgspec.Raw


class _Greeted(msgspec.Struct):
    subtype: str
    request_id: str
    response: msgspec.Raw = msgspec.Raw()
    pending_permission_requests: list[_Pending] = []


class _Question(msgspec.Struct, frozen=True):
    """What a CLI wants to know; `input` is None unless it is about the use of a tool."""

    line: bytes
    tool: str
    input: dict[str, Any] | None


class Cli:
    """One CLI, for as long as it is remembered, through all its connections."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.session = ""
        self.init: bytes | None = None
        self.answer_to_greeting: msgspec.Raw | None = None
        self.greeting = ""
        self.unheard: str | None = None
        self.questions: dict[str, _Question] = {}
        self.seen = Seen()
        self.tell: Tell = _nobody

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"Claude Code {self.number}"


class FrontEnd:
    """One connected front end."""

    def __init__(self, number: int, tell: Tell) -> None:
        self.number = number
        self.tell = tell

    @property
    def name(self) -> str:
        """What a person calls it."""
        return f"front end {self.number}"


class Switchboard:
    """Everyone who is connected. `happening` is told in words what happens, for the person who runs the relay."""

    def __init__(self, happening: Callable[[str], None], *, auto_approve: bool = False) -> None:
        self._happening = happening
        self._auto_approve = auto_approve
        self._clis: dict[int, Cli] = {}
        self._gone: dict[int, Cli] = {}
        self._fronts: dict[int, FrontEnd] = {}
        self._cli_numbers = itertools.count(1)
        self._front_numbers = itertools.count(1)

    def known_by(self, last: str | None) -> Cli | None:
        """The CLI, gone or not, that said this last, and so is the one that comes now."""
        known = itertools.chain(self._clis.values(), self._gone.values())
        return None if last is None else next((cli for cli in known if last in cli.seen), None)

    def cli_joins(self, tell: Tell, last: str | None = None) -> Cli:
        """A CLI has connected, or is back if it says what it said last; it is greeted."""
        again = self.known_by(last)
        cli = again or Cli(next(self._cli_numbers))
        cli.unheard = None if again else last
        self._gone.pop(cli.number, None)
        self._clis[cli.number] = cli
        cli.tell = tell
        cli.greeting = str(uuid.uuid4())
        self._happening(f"{cli.name} connected{' again' if again else ''}.")
        self._broadcast(_status(_CONNECTED))
        tell(control_line(cli.greeting, {"subtype": "initialize"}))
        return cli

    def cli_leaves(self, cli: Cli) -> None:
        """A CLI's connection is gone. It may come back, and is remembered for that."""
        del self._clis[cli.number]
        cli.tell = _nobody
        self._gone[cli.number] = cli
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
        self._happening(f"{cli.name} disconnected.")
        if not self._clis:
            self._broadcast(_status(_DISCONNECTED))
        else:  # a front end that knows of one CLI only would take all for gone
            self._broadcast(_status(_DISCONNECTED, session_id=cli.session))
            self._broadcast(_status(_STILL_CONNECTED))

    def cli_says(self, cli: Cli, line: bytes) -> None:
        """Pass a line of a CLI on, and remember what those need who come later."""
        heard = _read(line)
        if isinstance(heard.session_id, str) and heard.session_id:
            self._learn(cli, heard.session_id)
        if heard.type != "control_response":  # whose ids are the front ends', and they may use one twice
            mark = mark_of(line)
            if mark is not None and mark == cli.unheard:
                cli.unheard = None
            if mark is not None and mark in cli.seen:
                return
            cli.seen.add(mark)
        if heard.type == "control_response" and self._is_greeted(cli, heard.response):
            return
        self._broadcast(_text(line))
        if heard.type == "system" and heard.subtype == "init":
            cli.init = _text(line)
        elif isinstance(heard.request_id, str):
            self._note_control(cli, heard, heard.request_id, line)

    def front_joins(self, tell: Tell) -> FrontEnd:
        """A front end has connected; it is told how things stand."""
        front = FrontEnd(next(self._front_numbers), tell)
        self._happening(f"A front end connected: {front.name}.")
        if self._clis:
            tell(_status(_STILL_CONNECTED))
        for cli in self._clis.values():
            if cli.init is not None:
                tell(cli.init)
            for question in cli.questions.values():
                if question.input is not None:
                    tell(question.line)
        self._fronts[front.number] = front
        return front

    def front_leaves(self, front: FrontEnd) -> None:
        """A front end is gone."""
        if self._fronts.pop(front.number, None) is not None:
            self._happening(f"{front.name.capitalize()} disconnected.")

    def front_says(self, front: FrontEnd, line: bytes) -> tuple[Cli, bytes] | None:
        """What a front end's line is for a CLI, and for which; None when it is for none."""
        try:
            match read_words(line):
                case Message(session, message):
                    return self._meant(session), msgspec.json.encode(message) + b"\n"
                case Order() as order:
                    return self._ordered(front, order)
                case Answer() as answer:
                    return self._answered(front, answer)
                case Nothing():
                    return None
        except InvalidParams as problem:
            self._happening(f"{front.name.capitalize()} sent what cannot be passed on: {problem}")
            front.tell(_status(str(problem), level="error"))
            return None

    def _meant(self, session: str) -> Cli:
        if not self._clis:
            raise InvalidParams("No Claude Code is connected; start one with --sdk-url.")
        newest_first = list(reversed(self._clis.values()))
        if not session:
            return newest_first[0]
        for wanted in (session, ""):
            if (cli := next((cli for cli in newest_first if cli.session == wanted), None)) is not None:
                return cli
        raise InvalidParams(f"No Claude Code with the session {session[:100]} is connected.")

    def _ordered(self, front: FrontEnd, order: Order) -> tuple[Cli, bytes] | None:
        cli = self._meant(order.session)
        if order.request == {"subtype": "initialize"} and cli.answer_to_greeting is not None:
            # A CLI can be initialized once, and we had to; whoever asks for no more than that gets what we got.
            success = {"subtype": "success", "request_id": order.request_id, "response": cli.answer_to_greeting}
            front.tell(msgspec.json.encode({"type": "control_response", "response": success}) + b"\n")
            return None
        return cli, control_line(order.request_id, order.request)

    def _answered(self, front: FrontEnd, answer: Answer) -> tuple[Cli, bytes]:
        asked = (cli for cli in self._clis.values() if answer.request_id in cli.questions)
        if (cli := next(asked, None)) is None:
            raise InvalidParams("That question is not open; another front end may have answered it first.")
        question = cli.questions[answer.request_id]
        line = answer_line(answer, question.input)
        del cli.questions[answer.request_id]
        self._settle(answer.request_id, f"{question.tool} was {_outcome(answer)} by {front.name}", but=front)
        return cli, line

    def _note_control(self, cli: Cli, heard: _Line, request_id: str, line: bytes) -> None:
        if heard.type == "control_cancel_request":
            cli.questions.pop(request_id, None)
        elif heard.type == "control_request":
            question = _question(heard.request, _text(line))
            if self._auto_approve and question.input is not None and question.tool != _NEEDS_A_PERSON:
                cli.tell(answer_line(Answer(request_id, {"behavior": "allow"}), question.input))
                self._settle(request_id, f"{question.tool} was allowed by --auto-approve")
            else:
                cli.questions[request_id] = question
                if len(cli.questions) > _QUESTIONS:
                    del cli.questions[next(iter(cli.questions))]
                self._happening(f"{cli.name} asks: {question.tool}.")

    def _is_greeted(self, cli: Cli, response: msgspec.Raw) -> bool:
        """Whether that was for us alone: a CLI that is back says which of its questions are still open."""
        try:
            greeted = msgspec.json.decode(response, type=_Greeted)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if greeted.request_id != cli.greeting:
            return False
        if greeted.subtype == "success":
            cli.answer_to_greeting = greeted.response or msgspec.Raw(b"{}")
            return False
        if cli.unheard is not None:
            self._broadcast(_status(_MISSED, level="warning"))
        self._ask_again(cli, {each.request_id: each for each in greeted.pending_permission_requests})
        return True

    def _ask_again(self, cli: Cli, pending: dict[str, _Pending]) -> None:
        for request_id in cli.questions.keys() - pending.keys():
            del cli.questions[request_id]
            self._broadcast(_cancelled(request_id))
        for request_id, each in pending.items():
            asked = {"type": "control_request", "request_id": request_id, "request": each.request}
            line = msgspec.json.encode(asked) + b"\n"
            self._broadcast(line)
            self._note_control(cli, _read(line), request_id, line)

    def _settle(self, request_id: str, what: str, but: FrontEnd | None = None) -> None:
        """A question is answered: say so, and let those who still ask stop asking."""
        self._happening(f"{what}.")
        others = [front for front in self._fronts.values() if front is not but]
        _tell_all(others, _cancelled(request_id))
        _tell_all(others, _status(what))

    def _learn(self, cli: Cli, session: str) -> None:
        if cli.session == session:
            return
        cli.session = session
        self._happening(f"{cli.name} has the session {session[:100]}.")
        known = itertools.chain(self._clis.values(), self._gone.values())
        before = next((other for other in known if other is not cli and other.session == session), None)
        if before is not None:
            cli.seen = before.seen
            self._gone.pop(before.number, None)
            for request_id in before.questions.keys() - cli.questions.keys():
                self._broadcast(_cancelled(request_id))

    def _broadcast(self, line: bytes) -> None:
        _tell_all(list(self._fronts.values()), line)


def _nobody(_line: bytes) -> None:
    """There is nobody to tell."""


def _tell_all(fronts: Iterable[FrontEnd], line: bytes) -> None:
    for front in fronts:
        front.tell(line)


def _read(line: bytes) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Line()


def _question(request: msgspec.Raw, line: bytes) -> _Question:
    try:
        asked = msgspec.json.decode(request, type=_Request)
    except (msgspec.DecodeError, UnicodeDecodeError):
        asked = _Request()
    about_tool = asked.subtype == "can_use_tool"
    return _Question(line, asked.tool_name or asked.subtype, asked.input if about_tool else None)


def _outcome(answer: Answer) -> str:
    behavior = answer.response.get("behavior")
    return {"allow": "allowed", "deny": "denied"}.get(str(behavior), "answered")


def _status(text: str, **more: str) -> bytes:
    return msgspec.json.encode({"type": "status", "text": text, **more}) + b"\n"


def _cancelled(request_id: str) -> bytes:
    return msgspec.json.encode({"type": "control_cancel_request", "request_id": request_id}) + b"\n"


def _text(line: bytes) -> bytes:
    """A line that can be sent as text, which must be UTF-8."""
    return line.decode(errors="replace").encode() + b"\n"
