"""Writes transcripts as the CLI does, record by record.

It does not know what is read from them.
"""

import json
import uuid
from pathlib import Path
from typing import Any

__all__ = ["RECORDED", "Writer", "kinds", "texts"]

RECORDED = Path(__file__).parent / "wire" / "transcripts"


class Writer:
    """One file. Each record follows the last one written unless told otherwise, and each gives its uuid."""

    def __init__(self, path: Path, *, cwd: str = "/workspace") -> None:
        self.path = path
        self.cwd = cwd
        self.last: str | None = None

    def raw(self, data: bytes) -> None:
        """Writes bytes as they are."""
        with self.path.open("ab") as file:
            file.write(data)

    def note(self, kind: str, **members: Any) -> None:
        """Writes a record that is no part of the tree."""
        self.raw(json.dumps({"type": kind, **members}, ensure_ascii=False).encode() + b"\n")

    def record(self, kind: str, **members: Any) -> str:
        """Writes a record of the tree."""
        made = {"parentUuid": self.last, "isSidechain": False, "type": kind, "uuid": str(uuid.uuid4())}
        common = {"timestamp": "2026-11-18T05:07:57.976Z", "cwd": self.cwd, "version": "2.1.326"}
        record = made | common | members
        self.note(**{"kind": record.pop("type"), **record})
        self.last = record["uuid"]
        return self.last

    def prompt(self, content: Any, **members: Any) -> str:
        """Writes what the user asked for, or what the CLI says in the user's name."""
        return self.record("user", message={"role": "user", "content": content}, **members)

    def answer(self, *blocks: dict[str, Any], answer: str = "", **members: Any) -> str:
        """Writes a part of an answer."""
        message = {"id": answer or f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": list(blocks)}
        return self.record("assistant", message=message, **members)

    def said(self, text: str, **members: Any) -> str:
        """Writes an answer that is a text."""
        return self.answer({"type": "text", "text": text}, **members)

    def call(self, name: str, **members: Any) -> str:
        """Writes the call of a tool, whose id is its name."""
        return self.answer({"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}}, **members)

    def result(self, name: str, source: str, **members: Any) -> str:
        """Writes what came of a call."""
        block = {"type": "tool_result", "tool_use_id": name, "content": f"{name} done"}
        return self.prompt([block], **{"parentUuid": source, "sourceToolAssistantUUID": source, **members})

    def snapshot(self) -> str:
        """Writes one of the huge records that nobody wants to see."""
        return self.record(
            "attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["be kind " * 900]}
        )

    def compact(self, summary: str, **members: Any) -> str:
        """Writes the boundary of a compaction and the summary after it."""
        logical = {"parentUuid": None, "logicalParentUuid": self.last, "subtype": "compact_boundary"}
        boundary = self.record(
            "system", **(logical | members), compactMetadata={"trigger": "manual", "preTokens": 9}
        )
        self.prompt(summary, isCompactSummary=True)
        return boundary


def kinds(things: Any) -> list[str]:
    """Of which kinds the things shown are."""
    return [type(thing).__name__ for thing in things]


def texts(things: Any) -> list[str]:
    """What the things shown say, or are called."""
    return [
        getattr(thing, "text", None) or getattr(thing, "id", "") or getattr(thing, "name", "") for thing in things
    ]
