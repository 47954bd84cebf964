"""Replies: what a person says to a question of the CLI, made into what the CLI understands.

Measured with 2.1.37, 2.1.120 and 2.1.326: an empty ``updatedInput`` means the original input to some and no
arguments to others, so an input is always whole. Answers to questions are texts by the text of the question, and
several choices are one text with commas between them; a list would be shown to the model without spaces.

It does not know who replies, or how the reply travels.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ide_bridge.errors import InvalidParams
from ide_bridge.session.approvals.policy import PLAN, QUESTION
from ide_bridge.session.approvals.titles import short
from ide_bridge.session.control.questions import CanUseTool

__all__ = ["Allowed", "Answer", "Denied", "Verdict", "asked_in", "reply"]

_NONE_CHOSEN = "none of them"
_DENIED = {
    QUESTION: "The user does not want to answer this.",
    PLAN: "The user does not agree with the plan yet: keep planning, and ask what to change.",
}
_DENIED_OTHERWISE = (
    "The user does not allow this. Do not try to reach the same in another way; ask what to do instead."
)


class Answer(msgspec.Struct, frozen=True):
    """What a person says."""

    behavior: Literal["allow", "deny"]
    reason: str = ""
    input: dict[str, Any] | None = None
    """The whole input, changed."""
    answers: dict[str, Any] | None = None
    """To questions, by their text: a text, or a list of texts where several may be chosen."""
    for_session: bool = False
    interrupt: bool = False


class Allowed(msgspec.Struct, frozen=True):
    """The tool runs with this input."""

    input: dict[str, Any]
    permissions: list[dict[str, Any]] | None = None


class Denied(msgspec.Struct, frozen=True):
    """The tool does not run, and the model is told why."""

    message: str
    interrupt: bool = False


Verdict = Allowed | Denied


def reply(question: CanUseTool, answer: Answer, permissions: Sequence[dict[str, Any]] = ()) -> Verdict:
    """Turn an answer into a verdict; raises `InvalidParams` for one that does not fit the question.

    `permissions` are those that the session gets if the answer holds for all of it.
    """
    if answer.behavior == "deny":
        otherwise = _DENIED.get(question.tool_name, _DENIED_OTHERWISE)
        return Denied(answer.reason.strip() or otherwise, answer.interrupt)
    given = _input(question, answer)
    if question.tool_name == QUESTION:
        given = _answered(question.input, given, answer.answers)
    elif answer.answers is not None:
        raise InvalidParams(f"{short(question.tool_name)} asks nothing; leave the answers out.")
    return Allowed(given, list(permissions) or None if answer.for_session else None)


def _input(question: CanUseTool, answer: Answer) -> dict[str, Any]:
    if answer.input is None:
        return question.input
    if not isinstance(answer.input, dict):
        raise InvalidParams("input must be an object: the whole input of the tool, as it is to be.")
    if not answer.input and question.input:
        raise InvalidParams("input is empty; send the whole input of the tool, not only what changes.")
    if answer.for_session:
        raise InvalidParams("A changed input can be allowed once, not for the whole session.")
    return answer.input


def asked_in(given: Mapping[str, Any]) -> dict[str, bool]:
    """The questions in an input, and whether several answers may be chosen."""
    questions = given.get("questions")
    found = [each for each in questions if isinstance(each, dict)] if isinstance(questions, list) else []
    return {
        each["question"]: each.get("multiSelect") is True
        for each in found
        if isinstance(each.get("question"), str)
    }


def _answered(original: dict[str, Any], given: dict[str, Any], answers: object) -> dict[str, Any]:
    asked = asked_in(original)
    answers = given.get("answers") if answers is None else answers
    if answers is None and not asked:
        return given
    if not isinstance(answers, dict):
        raise InvalidParams(f"Say the answers, an object with a text for each question: {_listed(asked)}.")
    if (unknown := next((text for text in answers if text not in asked), None)) is not None:
        raise InvalidParams(f'"{short(str(unknown))}" was not asked; the questions are: {_listed(asked)}.')
    if (missing := next((text for text in asked if text not in answers), None)) is not None:
        raise InvalidParams(f'"{short(missing)}" is not answered yet.')
    return given | {"answers": {text: _choice(text, answers[text], several=asked[text]) for text in asked}}


def _choice(question: str, value: object, *, several: bool) -> str:
    chosen = value if isinstance(value, list) else [value]
    texts = [each.strip() for each in chosen if isinstance(each, str)]
    if len(texts) != len(chosen) or not all(texts) or (not several and len(texts) != 1):
        kind = "a text or a list of texts" if several else "one text"
        raise InvalidParams(f'The answer to "{short(question)}" must be {kind}, and none may be empty.')
    return ", ".join(texts) or _NONE_CHOSEN


def _listed(asked: Mapping[str, bool]) -> str:
    return ", ".join(f'"{short(text)}"' for text in asked) or "none"
