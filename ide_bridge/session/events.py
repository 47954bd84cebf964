"""What happens in a session, in the words in which front ends are told.

Each kind says what a person wants to know; whoever wants all of it asks for ``message``, the CLI's own words.

It does not know how the CLI says these things, or who is told.
"""

from typing import Any, Literal

import msgspec
from msgspec import Raw

__all__ = [
    "ApprovalAsked",
    "ApprovalClosed",
    "Ended",
    "Event",
    "Message",
    "Notice",
    "Prompt",
    "Result",
    "Said",
    "State",
    "StateName",
    "Text",
    "Thinking",
    "Tool",
    "ToolResult",
]

StateName = Literal["starting", "working", "waiting", "idle", "lost", "stopped"]


class Event(msgspec.Struct, frozen=True, tag_field="kind", rename="camel", omit_defaults=True):
    """Something that happened."""


class Prompt(Event, frozen=True, tag="prompt"):
    """Somebody asked for something."""

    uuid: str
    text: str
    by: str = ""


class Text(Event, frozen=True, tag="text"):
    """A piece of the answer, while it is being said."""

    text: str


class Said(Event, frozen=True, tag="said"):
    """A whole block of the answer; it replaces its pieces."""

    text: str
    agent: str | None = None


class Thinking(Event, frozen=True, tag="thinking"):
    """What the model thought."""

    text: str
    agent: str | None = None


class Tool(Event, frozen=True, tag="tool"):
    """A tool is called."""

    id: str
    tool: str
    title: str
    input: dict[str, Any]
    agent: str | None = None


class ToolResult(Event, frozen=True, tag="toolResult", omit_defaults=False):
    """What came of a tool."""

    id: str
    ok: bool
    text: str


class ApprovalAsked(Event, frozen=True, tag="approval"):
    """The CLI asks for permission."""

    approval: object


class ApprovalClosed(Event, frozen=True, tag="approvalClosed", omit_defaults=False):
    """A question for permission is no longer open."""

    approval: str
    outcome: str
    by: str
    reason: str


class State(Event, frozen=True, tag="state"):
    """The session is in another state now."""

    state: StateName


class Result(Event, frozen=True, tag="result", omit_defaults=False):
    """A turn has ended."""

    ok: bool
    text: str
    cost: float | None
    seconds: float
    reason: str


class Notice(Event, frozen=True, tag="notice"):
    """Something worth a line."""

    level: Literal["info", "warning", "error"]
    text: str


class Ended(Event, frozen=True, tag="ended", omit_defaults=False):
    """The CLI is gone; whatever its code was, it is 0 if we wanted that."""

    code: int
    text: str


class Message(Event, frozen=True, tag="message"):
    """A message of the CLI as it came."""

    message: Raw
