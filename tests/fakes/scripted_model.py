"""A model that says what a test told it to: which answer a request gets, and the events that carry it.

It does not know HTTP, and keeps no conversation: how far a script has come is read off the request itself, so
that any number of CLIs may talk at once. A step whose tool the request does not offer (the CLI also asks for
titles and summaries) is answered with plain text.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Bash",
    "Edit",
    "GetDiagnostics",
    "Json",
    "Read",
    "ScriptedModel",
    "Step",
    "ToolUse",
    "Write",
    "events",
    "texts",
]

Json = dict[str, Any]  # bodies are taken as they come: their shape is the CLI's business

FALLBACK = "Understood."
REMINDER = "<system-reminder>"  # put into the user's messages by the CLI, not typed by the user


@dataclass(frozen=True)
class ToolUse:
    """One call the model makes; the subclasses spell the tools that stories need."""

    name: str
    input: Json


class Read(ToolUse):
    """Reads a file; the CLI lets a model edit only what it has read."""

    def __init__(self, file: Path) -> None:
        super().__init__("Read", {"file_path": str(file)})


class Edit(ToolUse):
    """Replaces one text in a file."""

    def __init__(self, file: Path, old: str, new: str) -> None:
        super().__init__("Edit", {"file_path": str(file), "old_string": old, "new_string": new})


class Write(ToolUse):
    """Writes a whole file."""

    def __init__(self, file: Path, content: str) -> None:
        super().__init__("Write", {"file_path": str(file), "content": content})


class Bash(ToolUse):
    """Runs a command line."""

    def __init__(self, command: str) -> None:
        super().__init__("Bash", {"command": command, "description": "Runs a command"})


class GetDiagnostics(ToolUse):
    """Asks the bridge for the problems of one file, or of all."""

    def __init__(self, uri: str | None = None) -> None:
        super().__init__("mcp__ide__getDiagnostics", {} if uri is None else {"uri": uri})


Block = str | ToolUse
Step = Block | Sequence[Block]


class ScriptedModel:
    """Answers each prompt with the steps of its script, one per request."""

    def __init__(self) -> None:
        self._scripts: dict[str, list[list[Block]]] = {}
        self._ids = itertools.count(1)

    def script(self, prompt: str, *steps: Step) -> None:
        """Answers prompts that contain ``prompt``; the newest script wins, a list is one step."""
        self._scripts.pop(prompt, None)
        self._scripts[prompt] = [_blocks(step) for step in steps]

    def answer(self, request: Json) -> Json:
        """The whole message that answers the body of a request."""
        offered = {tool.get("name") for tool in request.get("tools") or []}
        blocks = self._blocks_for(request["messages"])
        if any(isinstance(block, ToolUse) and block.name not in offered for block in blocks):
            blocks = [FALLBACK]
        content = [self._content(block) for block in blocks]
        uses_tools = any(block["type"] == "tool_use" for block in content)
        return {
            "id": f"msg_{next(self._ids):024}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content,
            "stop_reason": "tool_use" if uses_tools else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }

    def _blocks_for(self, messages: Sequence[Json]) -> list[Block]:
        """The step is as far into the script as the model has answered since the prompt."""
        answered = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                answered += 1
            elif message["role"] == "user" and (steps := self._script_for(message)):
                return steps[answered] if answered < len(steps) else [FALLBACK]
        return [FALLBACK]

    def _script_for(self, message: Json) -> list[list[Block]] | None:
        typed = "\n".join(text for text in _typed(message["content"]) if not text.startswith(REMINDER))
        newest_first = reversed(self._scripts.items())
        return next((steps for prompt, steps in newest_first if prompt in typed), None)

    def _content(self, block: Block) -> Json:
        if isinstance(block, str):
            return {"type": "text", "text": block}
        return {
            "type": "tool_use",
            "id": f"toolu_{next(self._ids):024}",
            "name": block.name,
            "input": block.input,
        }


def events(message: Json) -> Iterator[Json]:
    """The message as the real API streams it."""
    opening: Json = {"content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    yield {"type": "message_start", "message": message | opening}
    for index, block in enumerate(message["content"]):
        empty, delta = _start_and_delta(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "ping"}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


def texts(value: object) -> Iterator[str]:
    """Every text anywhere in a part of a body: prompts, reminders, results, whatever nests them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key in ("text", "content", "input"):
            yield from texts(value.get(key))


def _typed(content: str | Sequence[Json]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def _blocks(step: Step) -> list[Block]:
    return [step] if isinstance(step, str | ToolUse) else list(step)


def _start_and_delta(block: Json) -> tuple[Json, Json]:
    if block["type"] == "text":
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
    return block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
