"""What an approval is about, so that a person can decide: the command, the change, the plan, the question.

Everything is shown that will be done, or it is said how much is not.

It does not know how it is answered.
"""

import difflib
import json
from collections.abc import Iterator
from typing import Any

import msgspec
from rich.text import Text

from ide_bridge.cli.printable import printable
from ide_bridge.cli.session.render import harmless, indented, shortened
from ide_bridge.session.approvals import Approval

__all__ = ["Choice", "Question", "details", "questions_of", "rule_of"]

_LINES = 60
_HEAD_LENGTH = 200
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class Choice(msgspec.Struct, frozen=True):
    """One of the answers that a question offers."""

    label: str
    description: str = ""


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """One question of those that are asked together."""

    question: str
    header: str = ""
    options: tuple[Choice, ...] = ()
    multi_select: bool = False


def questions_of(approval: Approval) -> tuple[Question, ...]:
    """The questions that are asked; none if it asks for permission, or in a way that is not understood."""
    if approval.kind != "question":
        return ()
    try:
        return msgspec.convert(approval.input.get("questions"), tuple[Question, ...], strict=False)
    except msgspec.ValidationError:
        return ()


def details(approval: Approval) -> list[Text]:
    """What is asked, without the choices of a question."""
    who = "A sub-agent" if approval.agent else "Claude"
    wants = {"question": "has a question", "plan": "has a plan"}.get(approval.kind, "wants to use ")
    tool = "" if approval.kind in ("question", "plan") else printable(approval.tool)
    head = Text.assemble(("? ", "bold yellow"), (f"{who} {wants}", "bold"), (tool, "bold yellow"))
    return [head, *_body(approval), *_circumstances(approval)]


def rule_of(approval: Approval) -> str:
    """What would not be asked again in this session, in the CLI's notation; nothing if that is not known."""
    found = [_rule(rule) for each in approval.suggestions for rule in each.get("rules") or () if _is_rule(rule)]
    found += [
        printable(f"{each['mode']} mode") for each in approval.suggestions if isinstance(each.get("mode"), str)
    ]
    return ", ".join(found)


def _is_rule(rule: object) -> bool:
    return isinstance(rule, dict) and isinstance(rule.get("toolName"), str)


def _rule(rule: dict[str, Any]) -> str:
    content = rule.get("ruleContent")
    return printable(rule["toolName"] + (f"({content})" if content else ""))


def _circumstances(approval: Approval) -> Iterator[Text]:
    if approval.description and approval.kind == "tool" and approval.description not in approval.title:
        yield indented(shortened(approval.description, _HEAD_LENGTH), "dim")
    if approval.reason:
        yield indented(f"It is asked because: {shortened(approval.reason, _HEAD_LENGTH)}", "dim")
    if approval.blocked_path:
        yield indented(f"It concerns {shortened(approval.blocked_path, _HEAD_LENGTH)}", "dim")


def _body(approval: Approval) -> list[Text]:
    if approval.kind == "question" and questions_of(approval):
        return []
    plan = approval.input.get("plan")
    if approval.kind == "plan" and isinstance(plan, str):
        return [_cut(plan)]
    return _of_tool(approval.input)


def _of_tool(given: dict[str, Any]) -> list[Text]:
    """By what the input has, and not by the tool's name: others have tools that are alike."""
    rest = {key: value for key, value in given.items() if key != "description"}
    if isinstance(command := rest.pop("command", None), str):
        return [_cut(command), *_rest(rest)]
    rest = dict(given)
    path = rest.pop("file_path", None)
    if not isinstance(path, str):
        return _rest(given)
    head = [indented(path, "bold")]
    if isinstance(content := rest.pop("content", None), str):
        return [*head, *_coloured([f"+{line}" for line in content.removesuffix("\n").split("\n")]), *_rest(rest)]
    old, new = rest.pop("old_string", None), rest.pop("new_string", None)
    if isinstance(old, str) and isinstance(new, str):
        changed = difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=2)
        return [*head, *_coloured(list(changed)[2:]), *_rest(rest)]
    return [*head, *_rest({key: value for key, value in given.items() if key != "file_path"})]


def _coloured(lines: list[str]) -> list[Text]:
    shown = [Text(f"  {harmless(line)}", _COLOURS.get(line[:1], "")) for line in lines[:_LINES]]
    return [*shown, *_more(len(lines))]


def _rest(given: dict[str, Any]) -> list[Text]:
    """What is in the input beside the things that are shown in their own way."""
    return [_cut(json.dumps(given, ensure_ascii=False, indent=2), "dim")] if given else []


def _cut(text: str, style: str = "") -> Text:
    lines = text.split("\n")
    shown = indented("\n".join(lines[:_LINES]), style)
    for more in _more(len(lines)):
        shown = Text("\n").join([shown, more])
    return shown


def _more(count: int) -> list[Text]:
    if count <= _LINES:
        return []
    return [Text(f"  … {count - _LINES} more lines, which [e] shows", "yellow")]
