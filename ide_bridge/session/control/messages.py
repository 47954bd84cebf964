"""The messages of the CLI: one line of JSON becomes one typed value.

1. A kind that is not known here is ``Unknown``, or a plain ``System``: it is passed on, and is never an error.
2. A member that does not fit its type is as if it were missing. A newer CLI may change one; the rest still counts.
3. The order of members means nothing, and is not stable.
4. What the model says, and what its API sends, stays JSON: it is theirs to change.

It does not know what answers what, or where the lines come from.
"""

from typing import Any

import msgspec
from msgspec import field
from msgspec.structs import force_setattr

from ide_bridge.errors import ParseError
from ide_bridge.session.control.lenient import Shape, is_whole, mended
from ide_bridge.session.control.reports import SYSTEM, Message, System

__all__ = [
    "ActiveGoal",
    "Assistant",
    "AuthStatus",
    "CommandLifecycle",
    "ControlCancelRequest",
    "ControlRequest",
    "ControlResponse",
    "ConversationReset",
    "KeepAlive",
    "Message",
    "PromptSuggestion",
    "RateLimitEvent",
    "Result",
    "StreamEvent",
    "StreamlinedText",
    "StreamlinedToolUseSummary",
    "System",
    "ToolProgress",
    "ToolUseSummary",
    "Unknown",
    "User",
    "read",
]


class Unknown(Message, frozen=True, kw_only=True):
    """A message of a kind that is not known here."""


class User(Message, frozen=True, kw_only=True):
    """What goes to the model: the result of a tool, an echoed prompt (``is_replay``), or a note of the CLI."""

    message: dict[str, Any] = field(default_factory=dict)
    is_replay: bool = field(default=False, name="isReplay")
    is_synthetic: bool = field(default=False, name="isSynthetic")
    tool_use_result: Any = None


class Assistant(Message, frozen=True, kw_only=True):
    """One block of the model's answer; blocks of one answer share ``message["id"]``."""

    message: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    aborted: bool = False


class StreamEvent(Message, frozen=True, kw_only=True):
    """A piece of the model's answer, as its API sends it."""

    event: dict[str, Any] = field(default_factory=dict)


class Result(Message, frozen=True, kw_only=True):
    """A turn is over. Whether it went well is in ``is_error``, not in ``subtype``."""

    is_error: bool = False
    result: str = ""
    errors: tuple[str, ...] = ()
    duration_ms: float = 0
    duration_api_ms: float = 0
    num_turns: int = 0
    total_cost_usd: float | None = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    model_usage: dict[str, Any] = field(default_factory=dict, name="modelUsage")
    permission_denials: tuple[dict[str, Any], ...] = ()
    structured_output: Any = None


class ToolProgress(Message, frozen=True, kw_only=True):
    """A tool is still running."""

    tool_use_id: str = ""
    tool_name: str = ""
    elapsed_time_seconds: float = 0
    task_id: str | None = None


class ToolUseSummary(Message, frozen=True, kw_only=True):
    """What some uses of tools amounted to."""

    summary: str = ""
    preceding_tool_use_ids: tuple[str, ...] = ()


class AuthStatus(Message, frozen=True, kw_only=True):
    """How far signing in has come."""

    is_authenticating: bool = field(default=False, name="isAuthenticating")
    output: tuple[str, ...] = ()
    error: str | None = None


class CommandLifecycle(Message, frozen=True, kw_only=True):
    """What became of a prompt with a uuid: ``queued``, ``started``, ``completed``, ``cancelled`` …"""

    command_uuid: str = ""
    state: str = ""


class RateLimitEvent(Message, frozen=True, kw_only=True):
    """How much of the user's plan is used up."""

    rate_limit_info: dict[str, Any] = field(default_factory=dict)


class PromptSuggestion(Message, frozen=True, kw_only=True):
    """What the user might say next."""

    suggestion: str = ""


class ConversationReset(Message, frozen=True, kw_only=True):
    """The conversation starts anew, under another id."""

    new_conversation_id: str = ""
    trigger: str | None = None


class ActiveGoal(Message, frozen=True, kw_only=True):
    """What the CLI works towards by itself; nothing, when that is over."""

    value: dict[str, Any] | None = None


class StreamlinedText(Message, frozen=True, kw_only=True):
    """The answer, where the CLI was asked to be brief."""

    text: str = ""


class StreamlinedToolUseSummary(Message, frozen=True, kw_only=True):
    """The uses of tools, where the CLI was asked to be brief."""

    tool_summary: str = ""


class KeepAlive(Message, frozen=True, kw_only=True):
    """Nothing, except that the CLI is there."""


class ControlRequest(Message, frozen=True, kw_only=True):
    """The CLI asks its controller."""

    request_id: str = ""
    request: dict[str, Any] = field(default_factory=dict)


class ControlResponse(Message, frozen=True, kw_only=True):
    """The CLI answers its controller."""

    response: dict[str, Any] = field(default_factory=dict)


class ControlCancelRequest(Message, frozen=True, kw_only=True):
    """The CLI no longer wants an answer."""

    request_id: str = ""


class _Head(msgspec.Struct):
    type: Any = None
    subtype: Any = None


_decode_head = msgspec.json.Decoder(_Head).decode
_UNKNOWN = Shape(Unknown)
_PLAIN = Shape(System)
_SYSTEM: dict[object, Shape[Any]] = {subtype: Shape(kind) for subtype, kind in SYSTEM.items()}
_BY_TYPE: dict[object, Shape[Any]] = {
    "active_goal": Shape(ActiveGoal),
    "assistant": Shape(Assistant),
    "auth_status": Shape(AuthStatus),
    "command_lifecycle": Shape(CommandLifecycle),
    "control_cancel_request": Shape(ControlCancelRequest),
    "control_request": Shape(ControlRequest),
    "control_response": Shape(ControlResponse),
    "conversation_reset": Shape(ConversationReset),
    "keep_alive": Shape(KeepAlive),
    "prompt_suggestion": Shape(PromptSuggestion),
    "rate_limit_event": Shape(RateLimitEvent),
    "result": Shape(Result),
    "stream_event": Shape(StreamEvent),
    "streamlined_text": Shape(StreamlinedText),
    "streamlined_tool_use_summary": Shape(StreamlinedToolUseSummary),
    "tool_progress": Shape(ToolProgress),
    "tool_use_summary": Shape(ToolUseSummary),
    "user": Shape(User),
}


def read(line: bytes) -> Message:
    """Understand one line as far as possible; raises ``ParseError`` if it is no JSON object."""
    if not is_whole(line):
        line = mended(line)
    try:
        head = _decode_head(line)
        message: Message = _shape(head.type, head.subtype).from_line(line)
    except ValueError as reason:
        raise ParseError(f"it is no JSON object ({reason})") from None
    except RecursionError:
        raise ParseError("it is nested too deeply") from None
    force_setattr(message, "raw", line)
    return message


def _shape(kind: object, subtype: object) -> Shape[Any]:
    if kind == "system":
        return _SYSTEM.get(subtype, _PLAIN) if isinstance(subtype, str) else _PLAIN
    return _BY_TYPE.get(kind, _UNKNOWN) if isinstance(kind, str) else _UNKNOWN
