"""From a record to what is shown of it.

1. One record gives any number of things to show: an answer is a list of blocks, most records give none.
2. ``isMeta`` and texts in the CLI's own tags are not the user's words: commands are shown as commands, what they
   printed as notices, reminders and the like not at all. Only a text that is nothing but tags counts as tags; who
   types some into a prompt sees them there.
3. Long texts are cut; `whole` gives all of it.
4. A member that is missing, or is something else than it should be, says nothing; it is no reason to fail.

It does not know the tree: which record came before it is no matter here.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal

from ide_bridge.session.transcript.records import Record, agent_in, read_attachment
from ide_bridge.session.transcript.shown import (
    Command,
    Compacted,
    Interrupted,
    Notice,
    Prompt,
    Said,
    Shown,
    Summary,
    Thinking,
    Tool,
    ToolResult,
)

__all__ = ["show"]

Level = Literal["info", "warning", "error"]

_RESULT_LIMIT = 4_000
_TEXT_LIMIT = 100_000
_INPUT_LIMIT = 20_000
_INPUT_ITEMS = 1_000

_INTERRUPTED = {"[Request interrupted by user]": False, "[Request interrupted by user for tool use]": True}
_REFUSED = "The user doesn't want to proceed with this tool use."
_TAGGED = re.compile(r"\s*<(?P<tag>[a-z][a-z_-]*)>(?P<text>.*?)</(?P=tag)>\s*", re.DOTALL)
_REMINDERS = {"system-reminder", "local-command-caveat", "ide_opened_file", "ide_selection"}
_PRINTED: dict[str, Level] = {
    "local-command-stdout": "info",
    "local-command-stderr": "warning",
    "bash-stdout": "info",
    "bash-stderr": "warning",
}
_OWN_TAGS = {
    *_REMINDERS,
    *_PRINTED,
    "command-name",
    "command-message",
    "command-args",
    "bash-input",
    "task-notification",
}
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use"}


def show(record: Record, *, whole: bool = False) -> list[Shown]:
    """What is shown of a record, in order."""
    if not isinstance(record.uuid, str):
        return []
    showing = _Showing(record.uuid, _seconds(record.timestamp), whole=whole)
    if record.type == "user":
        return list(showing.user(record))
    if record.type == "assistant":
        return list(showing.assistant(record))
    if record.type == "system":
        return list(showing.system(record))
    return list(showing.attachment(bytes(record.attachment))) if record.type == "attachment" else []


class _Showing:
    """What all that is shown of one record has in common."""

    def __init__(self, uuid: str, at: float, *, whole: bool) -> None:
        self._uuid = uuid
        self._at = at
        self._whole = whole

    # -- kinds of records ---------------------------------------------------------------------------------------

    def user(self, record: Record) -> Iterator[Shown]:
        blocks = _blocks(_member(record.message, "content"))
        if record.isCompactSummary is True:
            yield Summary(self._uuid, self._at, *self._cut(_texts(blocks)))
        elif record.isMeta is not True:
            for block in blocks:
                if block.get("type") == "tool_result":
                    yield self._result(block, record)
            yield from self._words([block for block in blocks if block.get("type") != "tool_result"], self._uuid)

    def assistant(self, record: Record) -> Iterator[Shown]:
        blocks = _blocks(_member(record.message, "content"))
        if record.isApiErrorMessage is True:
            yield self._notice(_texts(blocks), "error")
        elif _member(record.message, "model") != "<synthetic>":
            for block in blocks:
                yield from self._answer(block, unfinished=record.isAbortedMidStream is True)

    def system(self, record: Record) -> Iterator[Shown]:
        if record.subtype == "compact_boundary":
            tokens = _member(record.compactMetadata, "preTokens")
            trigger = _text(_member(record.compactMetadata, "trigger"))
            yield Compacted(self._uuid, self._at, trigger, tokens if isinstance(tokens, int) else None)
        elif record.isMeta is not True and isinstance(record.content, str):
            tags = _tags(record.content)
            yield from self._tagged(tags) if tags else self._notices(record.content, _level(record.level))

    def attachment(self, data: bytes) -> Iterator[Shown]:
        """A prompt that was sent while the model was busy is only here; nothing else is for the eye."""
        attachment = read_attachment(data)
        if attachment is not None and attachment.type == "queued_command":
            yield from self._words(_blocks(attachment.prompt), _text(attachment.source_uuid) or self._uuid)

    # -- parts of records ---------------------------------------------------------------------------------------

    def _words(self, blocks: list[dict[str, Any]], sent: str) -> Iterator[Shown]:
        """The user's own words, in between those of the CLI."""
        typed: list[str] = []
        for text in (_text(block.get("text")) for block in blocks if block.get("type") == "text"):
            if (tool := _INTERRUPTED.get(text)) is not None:
                yield Interrupted(self._uuid, self._at, tool)
            elif tags := _tags(text):
                yield from self._tagged(tags)
            elif text:
                typed.append(text)
        images = _images(blocks)
        if typed or images:
            yield Prompt(self._uuid, self._at, *self._cut("\n".join(typed)), sent, images)

    def _tagged(self, tags: list[tuple[str, str]]) -> Iterator[Shown]:
        named = dict(tags)
        if "command-name" in named:
            yield Command(
                self._uuid, self._at, named["command-name"].strip(), named.get("command-args", "").strip()
            )
        if "bash-input" in named:
            yield Command(self._uuid, self._at, "!", named["bash-input"].strip())
        for tag, text in tags:
            if tag in _PRINTED:
                yield from self._notices(text, _PRINTED[tag])
            elif tag == "task-notification":
                summary = _SUMMARY.search(text)
                yield from self._notices(summary[1] if summary else "", "info")

    def _answer(self, block: dict[str, Any], *, unfinished: bool) -> Iterator[Shown]:
        kind = _text(block.get("type"))
        if kind == "text":
            if text := _text(block.get("text")):
                yield Said(self._uuid, self._at, *self._cut(text), unfinished)
        elif kind == "thinking":
            if text := _text(block.get("thinking")):
                yield Thinking(self._uuid, self._at, *self._cut(text))
        elif kind in _CALLS:
            yield self._call(block)
        elif isinstance(block.get("tool_use_id"), str):
            yield self._result(block, None)

    def _call(self, block: dict[str, Any]) -> Tool:
        given = block.get("input")
        values = given if isinstance(given, dict) else {}
        shortened = values if self._whole else {key: _shortened(value) for key, value in values.items()}
        named = _text(block.get("id")), _text(block.get("name"))
        return Tool(self._uuid, self._at, *named, shortened, cut=shortened != values)

    def _result(self, block: dict[str, Any], record: Record | None) -> ToolResult:
        parts = _blocks(block.get("content"))
        text, cut = self._cut(_texts(parts), _RESULT_LIMIT)
        failed = block.get("is_error") is True
        return ToolResult(
            self._uuid,
            self._at,
            text,
            cut,
            _text(block.get("tool_use_id")),
            not failed,
            failed
            and (text.startswith(_REFUSED) or (record is not None and isinstance(record.toolDenialKind, str))),
            _images(parts),
            agent_in(bytes(record.toolUseResult)) if record else None,
        )

    def _notices(self, text: str, level: Level) -> Iterator[Notice]:
        if plain := _COLOUR.sub("", text).strip():
            yield self._notice(plain, level)

    def _notice(self, text: str, level: Level) -> Notice:
        return Notice(self._uuid, self._at, *self._cut(text, _RESULT_LIMIT), level)

    def _cut(self, text: str, limit: int = _TEXT_LIMIT) -> tuple[str, bool]:
        return (text, False) if self._whole or len(text) <= limit else (text[:limit], True)


def _tags(text: str) -> list[tuple[str, str]]:
    """The tags that a text is made of; none if anything but the CLI's own tags is in it."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TAGGED.match(text, at)
        if match is None or match["tag"] not in _OWN_TAGS:
            return []
        found.append((match["tag"], match["text"]))
        at = match.end()
    return found


def _blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _texts(blocks: Iterable[dict[str, Any]]) -> str:
    return "\n".join(_text(block.get("text")) for block in blocks if block.get("type") == "text")


def _images(blocks: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    found = (block.get("source") for block in blocks if block.get("type") in ("image", "document"))
    return tuple(_text(_member(source, "media_type")) or "image" for source in found)


def _level(value: object) -> Level:
    return value if value in ("warning", "error") else "info"


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(timestamp: object) -> float:
    try:
        return datetime.fromisoformat(_text(timestamp)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _shortened(value: object) -> object:
    if isinstance(value, str):
        return value[:_INPUT_LIMIT]
    if isinstance(value, list):
        return [_shortened(item) for item in value[:_INPUT_ITEMS]]
    if isinstance(value, dict):
        return {key: _shortened(value[key]) for key in list(value)[:_INPUT_ITEMS]}
    return value
