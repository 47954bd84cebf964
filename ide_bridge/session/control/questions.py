"""What the CLI asks its controller, as types.

1. A question that does not fit its type, or whose kind is not known, is an ``OtherRequest``: it can still be
   refused, and a question that is never answered holds up the session for ever.
2. An optional member that makes no sense costs that member, not the question.

It does not know who answers, or how a question reaches us.
"""

import contextlib
from typing import Any

import msgspec
from msgspec import field

from ide_bridge.session.control.lenient import Shape

__all__ = [
    "Asked",
    "CanUseTool",
    "Elicitation",
    "HookCallback",
    "McpMessage",
    "OtherRequest",
    "Question",
    "ToolServer",
    "UserDialog",
    "asked",
]


class ToolServer(msgspec.Struct, frozen=True):
    """The MCP server that a tool belongs to."""

    name: str
    source: str = ""


class CanUseTool(msgspec.Struct, frozen=True, kw_only=True):
    """May this tool run with this input? Questions to the user and plans to agree on come this way too."""

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str = ""
    permission_suggestions: tuple[dict[str, Any], ...] = ()
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    title: str | None = None
    description: str | None = None
    display_name: str | None = None
    agent_id: str | None = None
    requires_user_interaction: bool = False
    server_policy_ask_only: bool = False
    mcp_server: ToolServer | None = None


class HookCallback(msgspec.Struct, frozen=True, kw_only=True):
    """A hook that was registered with ``initialize`` has come to pass."""

    callback_id: str
    input: dict[str, Any]
    tool_use_id: str | None = None


class McpMessage(msgspec.Struct, frozen=True, tag_field="subtype", tag="mcp_message"):
    """JSON-RPC for an MCP server on the other end, whichever end that is."""

    server_name: str
    message: dict[str, Any]


class Elicitation(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server wants something from the user: fields to fill in, or a page to visit."""

    mcp_server_name: str
    message: str
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None


class UserDialog(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI wants one of its own dialogs shown."""

    dialog_kind: str
    payload: dict[str, Any] = field(default_factory=dict)
    tool_use_id: str | None = None


class OtherRequest(msgspec.Struct, frozen=True):
    """A question of a kind that is not known here, or one that cannot be understood."""

    subtype: str
    fields: dict[str, Any]


Question = CanUseTool | HookCallback | McpMessage | Elicitation | UserDialog | OtherRequest


class Asked(msgspec.Struct, frozen=True):
    """The CLI asks, and waits for the answer."""

    request_id: str
    request: Question


_SHAPES: dict[str, Shape[Any]] = {
    "can_use_tool": Shape(CanUseTool),
    "hook_callback": Shape(HookCallback),
    "mcp_message": Shape(McpMessage),
    "elicitation": Shape(Elicitation),
    "request_user_dialog": Shape(UserDialog),
}


def asked(request_id: str, request: dict[str, Any]) -> Asked:
    """Understand a question as far as possible."""
    subtype = request.get("subtype")
    kind = subtype if isinstance(subtype, str) else ""
    if (shape := _SHAPES.get(kind)) is not None:
        with contextlib.suppress(msgspec.ValidationError):
            return Asked(request_id, shape.from_fields(request))
    return Asked(
        request_id, OtherRequest(kind, {name: value for name, value in request.items() if name != "subtype"})
    )
