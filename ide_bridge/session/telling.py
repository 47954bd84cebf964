"""From the CLI's messages to events: what a person wants to know of them.

1. One ``assistant`` line is one block; its pieces came before it as ``stream_event``.
2. Tool results are ``user`` lines of the CLI; so are the marks it leaves when a turn is interrupted.
3. ``result`` with subtype ``success`` may be an error all the same: ``is_error`` says so.
4. A message of a kind that is not known says nothing here; it is passed on as it is.

It does not know the session it is in, or who is told.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ide_bridge.session import events
from ide_bridge.session.control import reports
from ide_bridge.session.control.messages import Assistant, Message, Result, StreamEvent, System, User

__all__ = ["Titled", "told"]

RESULT_LIMIT = 4_000

Titled = Callable[[str, dict[str, Any]], str]
"""What a person calls the use of a tool, by its name and input."""


def told(message: Message, titled: Titled) -> Iterator[events.Event]:
    """The events that a message stands for."""
    if isinstance(message, StreamEvent):
        yield from _piece(message)
    elif isinstance(message, Assistant):
        yield from _blocks(message, titled)
    elif isinstance(message, User):
        yield from _results(message)
    elif isinstance(message, Result):
        yield _end_of_turn(message)
    elif isinstance(message, System) and (notice := _NOTICES.get(type(message), _nothing)(message)) is not None:
        yield notice


def _piece(message: StreamEvent) -> Iterator[events.Event]:
    if message.parent_tool_use_id is not None:
        return  # what a sub-agent says is told block by block
    delta = message.event.get("delta")
    if isinstance(delta, dict) and delta.get("type") == "text_delta" and (text := delta.get("text")):
        yield events.Text(str(text))


def _blocks(message: Assistant, titled: Titled) -> Iterator[events.Event]:
    agent = message.parent_tool_use_id
    for block in _parts(message.message):
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield events.Said(text, agent)
            case {"type": "thinking", "thinking": str(text)} if text:
                yield events.Thinking(text, agent)
            case {"type": "tool_use", "id": str(use), "name": str(tool), "input": dict(given)}:
                yield events.Tool(use, tool, titled(tool, given), given, agent)
            case _:
                pass


def _results(message: User) -> Iterator[events.Event]:
    if message.is_replay:
        return
    for block in _parts(message.message):
        match block:
            case {"type": "tool_result", "tool_use_id": str(use)}:
                text = _text(block.get("content"))
                yield events.ToolResult(use, not block.get("is_error"), _cut(text))
            case {"type": "text", "text": str(text)} if text.startswith("[Request interrupted"):
                yield events.Notice("info", text.strip("[]"))
            case _:
                pass


def _end_of_turn(message: Result) -> events.Event:
    failed = message.is_error or message.subtype != "success"
    reason = message.terminal_reason or (message.subtype if message.subtype != "success" else "") or ""
    text = message.result or "\n".join(message.errors)
    return events.Result(
        not failed, text, message.total_cost_usd, message.duration_ms / 1000, reason if failed else ""
    )


def _nothing(_report: System) -> None:
    return None


def _refused(report: reports.PermissionDenied) -> events.Notice:
    said = report.message or "It needs a permission that nobody was asked for."
    return events.Notice("warning", f"{report.tool_name or 'A tool'} was refused: {said}")


def _status(report: reports.Status) -> events.Notice | None:
    return events.Notice("info", "Compacting the conversation …") if report.status == "compacting" else None


def _task(report: reports.TaskNotification) -> events.Notice:
    return events.Notice("info", f"A task is {report.status or 'over'}: {report.summary}".rstrip(": "))


def _shown_anyway(report: reports.LocalCommandOutput | reports.Informational) -> events.Notice | None:
    return events.Notice("info", report.content) if report.content else None


def _refusal(report: reports.ModelRefusalFallback | reports.ModelRefusalNoFallback) -> events.Notice:
    return events.Notice("warning", report.content or "The model refused.")


_NOTICES: dict[type[System], Callable[[Any], events.Notice | None]] = {
    reports.PermissionDenied: _refused,
    reports.ApiRetry: lambda report: events.Notice(
        "warning", f"The model could not be reached; attempt {report.attempt} follows."
    ),
    reports.CompactBoundary: lambda _report: events.Notice("info", "The conversation was compacted."),
    reports.Status: _status,
    reports.TaskNotification: _task,
    reports.SessionWritesLost: lambda _report: events.Notice(
        "error", "The CLI cannot write its transcript; make room on the disk."
    ),
    reports.LocalCommandOutput: _shown_anyway,
    reports.Informational: _shown_anyway,
    reports.Notification: lambda report: events.Notice("info", report.text) if report.text else None,
    reports.ModelRefusalFallback: _refusal,
    reports.ModelRefusalNoFallback: _refusal,
}


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(_shown(part) for part in parts if isinstance(part, dict))


def _shown(part: dict[str, Any]) -> str:
    return str(part.get("text", "")) if part.get("type") == "text" else f"[{part.get('type', 'something')}]"


def _cut(text: str) -> str:
    return text if len(text) <= RESULT_LIMIT else f"{text[:RESULT_LIMIT]}…"
