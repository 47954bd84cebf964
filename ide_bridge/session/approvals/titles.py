"""Titles: one human line for what a tool is to do.

What is shown comes from anyone, and people decide by it. So nothing in it can command a terminal, turn text round
or hide; and of what is too long the beginning *and* the end are shown, since the end of a command line is where
something would be put out of sight.

It does not know who asks, or what is decided.
"""

import json
from collections.abc import Mapping
from typing import Any

from ide_bridge.session.approvals.policy import PLAN, QUESTION
from ide_bridge.session.approvals.rules import READERS, SHELL, WRITERS
from ide_bridge.session.approvals.spots import shown

__all__ = ["harmless", "short", "title_of"]

_TITLE_LIMIT = 200
_END = 60
_WORDS = {
    "Glob": "pattern",
    "Grep": "pattern",
    "WebFetch": "url",
    "WebSearch": "query",
    "Task": "description",
    "Agent": "description",
    "Skill": "skill",
    "SlashCommand": "command",
}


def title_of(tool: str, given: Mapping[str, Any], folder: str) -> str:
    """Say what a tool is to do, as ``Bash: mkdir x``."""
    name, text = _said(tool, given, folder)
    return f"{short(name, 60)}: {short(text)}"


def _said(tool: str, given: Mapping[str, Any], folder: str) -> tuple[str, str]:
    if tool == QUESTION:
        return "Question", _question(given)
    if tool == PLAN:
        return "Plan", _first_line(given.get("plan"))
    value = given.get("command") if tool == SHELL else given.get(_WORDS.get(tool, ""))
    path = given.get((READERS | WRITERS).get(tool, ""))
    where = shown(path, folder) if isinstance(path, str) else ""
    if isinstance(value, str):
        return tool, f"{value} in {where}" if where else value
    if where:
        return tool, where
    return _mcp_name(tool), _json(given)


def _question(given: Mapping[str, Any]) -> str:
    questions = given.get("questions")
    asked = [each["question"] for each in _objects(questions) if isinstance(each.get("question"), str)]
    if not asked:
        return _json(given)
    return asked[0] if len(asked) == 1 else f"{short(asked[0])} (and {len(asked) - 1} more)"


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _first_line(plan: object) -> str:
    lines = plan.splitlines() if isinstance(plan, str) else []
    return next((line.strip("# \t") for line in lines if line.strip("# \t")), "a plan without words")


def _mcp_name(tool: str) -> str:
    """``mcp__server__tool`` as people say it."""
    kind, _, rest = tool.partition("__")
    server, _, name = rest.partition("__")
    return f"{name} ({server})" if kind == "mcp" and server and name else tool


def _json(given: Mapping[str, Any]) -> str:
    return json.dumps(given, ensure_ascii=False)


def short(text: str, limit: int = _TITLE_LIMIT) -> str:
    """The text in one line, harmless, and cut in its middle if need be; how much is left out is said."""
    if len(text) > limit:
        end = min(_END, limit // 3)
        start = limit - end
        text = f"{text[:start]} …({len(text) - start - end} more)… {text[-end:]}"
    return harmless(text)


def harmless(text: str) -> str:
    """The text with everything made visible that could command, turn round or hide what is shown."""
    text = text.replace("\n", "⏎ ").replace("\t", " ")
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(letter: str) -> str:
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
