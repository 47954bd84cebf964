"""What a front end of the relay says, checked and put right before it may reach a CLI.

A line that a CLI cannot read ends it: what is not JSON, a `user` whose role is another, and for 2.1.37 every type
it does not know, `control_cancel_request` among them. So a line is read here, held to its shape, and written
again. Shapes that front ends send though no CLI understands them are put right:

- ``{"type":"interrupt"}`` is the request `interrupt`;
- ``{"type":"control_response","request_id":…,"permission":{"allow":true}}`` and
  ``{…,"response":{"subtype":"can_use_tool_result","request_id":…,"result":{"behavior":…}}}`` are answers.

It does not know who is connected, nor what was asked.
"""

import uuid
from typing import Any, TypeVar

import msgspec

from ide_bridge.complaints import in_words
from ide_bridge.errors import InvalidParams

__all__ = ["Answer", "Message", "Nothing", "Order", "Words", "answer_line", "control_line", "read_words"]

_NO_REASON = "The user does not allow this."


class Message(msgspec.Struct, frozen=True):
    """Something for a session, in the CLI's own form: a prompt, or variables of its environment."""

    session: str
    message: dict[str, Any]


class Order(msgspec.Struct, frozen=True):
    """A control request."""

    session: str
    request_id: str
    request: dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request of a CLI; `error` instead of `response` when it could not be answered."""

    request_id: str
    response: dict[str, Any]
    error: str | None = None


class Nothing(msgspec.Struct, frozen=True):
    """A sign of life, which no CLI needs."""


Words = Message | Order | Answer | Nothing


class _Typed(msgspec.Struct):
    type: str
    session_id: str | None = None


class _Content(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]]


class _User(msgspec.Struct):
    message: _Content
    uuid: str | None = None
    parent_tool_use_id: str | None = None


class _Subtype(msgspec.Struct):
    subtype: str


class _Order(msgspec.Struct):
    request_id: str
    request: dict[str, Any]


class _Variables(msgspec.Struct):
    variables: dict[str, str]


class _Permission(msgspec.Struct):
    allow: bool
    message: str | None = None
    reason: str | None = None


class _Permitted(msgspec.Struct):
    request_id: str
    permission: _Permission


class _Response(msgspec.Struct):
    subtype: str
    request_id: str
    response: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: str | None = None


class _Responded(msgspec.Struct):
    response: _Response


class _Behavior(msgspec.Struct):
    behavior: str
    message: str | None = None
    interrupt: bool = False
    updatedInput: dict[str, Any] | None = None  # noqa: N815 - the wire's name
    updatedPermissions: list[dict[str, Any]] | None = None  # noqa: N815


T = TypeVar("T", bound=msgspec.Struct)


def read_words(line: bytes) -> Words:
    """Understand one line. Raises ``InvalidParams`` with a sentence for whoever sent it."""
    message = _object(line)
    typed = _as(_Typed, message, "The message")
    match typed.type:
        case "user":
            return _prompt(typed.session_id or "", message)
        case "control_response":
            return _answer(message)
        case "control_request":
            order = _as(_Order, message, "A control_request")
            _as(_Subtype, order.request, "The request")
            return Order(typed.session_id or "", order.request_id, order.request)
        case "interrupt":
            return Order(typed.session_id or "", str(uuid.uuid4()), {"subtype": "interrupt"})
        case "update_environment_variables":
            variables = _as(_Variables, message, "An update_environment_variables").variables
            return Message(typed.session_id or "", {"type": typed.type, "variables": variables})
        case "keep_alive":
            return Nothing()
        case "control_cancel_request":
            raise InvalidParams("A control_cancel_request cannot be passed on: Claude Code 2.1.37 ends on it.")
        case other:
            raise InvalidParams(f"No CLI takes a message of the type {other[:100]!r}.")


def answer_line(answer: Answer, original: dict[str, Any] | None) -> bytes:
    """The answer as a CLI wants it; `original` is the input that a `can_use_tool` asked about, None for others."""
    if answer.error is not None:
        return _line({"subtype": "error", "request_id": answer.request_id, "error": answer.error})
    response = answer.response if original is None else _permission(answer.response, original)
    return _line({"subtype": "success", "request_id": answer.request_id, "response": response})


def control_line(request_id: str, request: dict[str, Any]) -> bytes:
    """A control request, as one line."""
    message = {"type": "control_request", "request_id": request_id, "request": request}
    return msgspec.json.encode(message) + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidParams("That is not JSON; send one JSON object per line.") from None
    except RecursionError:
        raise InvalidParams("That is nested too deeply.") from None
    if not isinstance(message, dict):
        raise InvalidParams("That is no JSON object; send one JSON object per line.")
    return message


def _prompt(session: str, message: dict[str, Any]) -> Message:
    user = _as(_User, message, "A user message")
    if user.message.role != "user":
        raise InvalidParams("The role of a user message must be user; the CLI would end on another.")
    if not user.message.content:
        raise InvalidParams("The content of a user message must not be empty.")
    return Message(session, {"parent_tool_use_id": None, **message, "session_id": session})


def _answer(message: dict[str, Any]) -> Answer:
    if "permission" in message:
        permitted = _as(_Permitted, message, "A control_response")
        given = permitted.permission
        decision = {"behavior": "allow" if given.allow else "deny", "message": given.message or given.reason}
        return Answer(permitted.request_id, decision)
    response = _as(_Responded, message, "A control_response").response
    match response.subtype:
        case "success":
            return Answer(response.request_id, response.response or {})
        case "can_use_tool_result":
            return Answer(response.request_id, response.result or {})
        case "error":
            return Answer(response.request_id, {}, response.error or "The front end gave no reason.")
        case _:
            raise InvalidParams("response.subtype of a control_response must be success or error.")


def _permission(response: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """What is required of a decision: the whole input of what is allowed, and a reason for what is not."""
    given = _as(_Behavior, response, "The answer to can_use_tool")
    if given.behavior == "allow":
        permissions = {} if given.updatedPermissions is None else {"updatedPermissions": given.updatedPermissions}
        return {"behavior": "allow", "updatedInput": given.updatedInput or original, **permissions}
    if given.behavior == "deny":
        interrupt = {"interrupt": True} if given.interrupt else {}
        return {"behavior": "deny", "message": given.message or _NO_REASON, **interrupt}
    raise InvalidParams("behavior in the answer to can_use_tool must be allow or deny.")


def _line(response: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": "control_response", "response": response}) + b"\n"


def _as(kind: type[T], value: dict[str, Any], what: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"{what} does not fit: {in_words(error, kind)}.") from None
