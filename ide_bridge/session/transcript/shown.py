"""What is shown of a transcript: the few kinds of things that were said and done.

The words for what also happens live (``prompt``, ``said``, ``tool`` …) are those of a session's events.

It does not know how the CLI writes them down.
"""

from typing import Any, Literal

import msgspec

__all__ = [
    "Command",
    "Compacted",
    "Interrupted",
    "Notice",
    "Prompt",
    "Said",
    "Shown",
    "Summary",
    "Thinking",
    "Tool",
    "ToolResult",
]


class Shown(msgspec.Struct, frozen=True, tag_field="kind", rename="camel", omit_defaults=True):
    """One thing to show: the uuid of its record, unique within the file, and when, in seconds; 0 if unknown."""

    uuid: str
    at: float


class _Text(Shown, frozen=True):
    text: str
    cut: bool = False
    """Whether only the beginning is here."""


class Prompt(_Text, frozen=True, tag="prompt"):
    """What the user asked for; `sent` is the uuid under which it was sent."""

    sent: str = ""
    images: tuple[str, ...] = ()
    """The media types of the images that came with it."""


class Command(Shown, frozen=True, tag="command"):
    """A command the user gave to the CLI, not to the model: ``/compact``, or ``!`` and a line for the shell."""

    name: str
    arguments: str = ""


class Said(_Text, frozen=True, tag="said"):
    """What the model answered."""

    unfinished: bool = False
    """Whether it was interrupted."""


class Thinking(_Text, frozen=True, tag="thinking"):
    """What the model thought."""


class Tool(Shown, frozen=True, tag="tool"):
    """A tool is called; `agent` is the sub-agent that was started by it."""

    id: str
    tool: str
    input: dict[str, Any]
    cut: bool = False
    agent: str | None = None


class ToolResult(_Text, frozen=True, tag="toolResult"):
    """What came of a tool."""

    id: str = ""
    ok: bool = True
    denied: bool = False
    """Whether it was not allowed to run."""
    images: tuple[str, ...] = ()
    agent: str | None = None


class Compacted(Shown, frozen=True, tag="compacted"):
    """The model was given a summary in the place of all that is before; a user still sees that."""

    trigger: str = ""
    tokens: int | None = None


class Summary(_Text, frozen=True, tag="summary"):
    """The summary the model was given."""


class Interrupted(Shown, frozen=True, tag="interrupted"):
    """The user stopped the answer, or a tool."""

    tool: bool = False


class Notice(_Text, frozen=True, tag="notice"):
    """Something worth a line: what a command printed, what went wrong."""

    level: Literal["info", "warning", "error"] = "info"
