"""``ide-bridge session approve | deny [ID]``: answer what a session asks for, without watching it.

Without an id the only open approval is meant; when several are open they are listed, and nothing is answered: a
wrong guess could do harm.

It does not know what happens to an answer.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.reach import ask
from ide_bridge.cli.session.details import questions_of
from ide_bridge.cli.session.listing import approval_lines
from ide_bridge.cli.session.reach import Open, all_bridges, open_approvals
from ide_bridge.cli.session.words import json_object
from ide_bridge.errors import SetupProblem

if TYPE_CHECKING:
    import argparse

    from ide_bridge.session.approvals import Approval

__all__ = ["approve", "deny"]


def approve(args: "argparse.Namespace") -> int:
    """Allow it: once, for the session, with another input, or by answering its questions."""
    chosen = _chosen(args.approval, open_approvals(all_bridges()), "approve")
    given: dict[str, Any] = {}
    if args.session:
        given["forSession"] = True
    if args.input is not None:
        given["input"] = json_object(args.input)
    if args.answer or questions_of(chosen.approval):
        given["answers"] = _answers(chosen.approval, args.answer)
    return _decide(chosen, "allow", given, as_json=args.json)


def deny(args: "argparse.Namespace") -> int:
    """Refuse it, and say why."""
    waiting = open_approvals(all_bridges())
    name, words = args.approval, args.reason
    if name is not None and " " in name.strip() and name not in _names(waiting):
        name, words = None, [name, *words]  # whoever leaves out the id begins with the reason
    chosen = _chosen(name, waiting, "deny")
    given: dict[str, Any] = {"reason": " ".join(words)} if words else {}
    if args.interrupt:
        given["interrupt"] = True
    return _decide(chosen, "deny", given, as_json=args.json)


def _decide(chosen: Open, behavior: str, given: dict[str, Any], *, as_json: bool) -> int:
    params = {"approval": chosen.approval.id, "behavior": behavior, **given}
    answer = ask(chosen.bridge, "decide", params)
    done = "Allowed" if behavior == "allow" else "Denied"
    print(json_text(answer) if as_json else printable(f"{done}: {chosen.approval.title}"))
    return 0


def _chosen(name: str | None, waiting: Sequence[Open], command: str) -> Open:
    if name is not None:
        found = [each for each in waiting if each.approval.id == name.lower()]
        if not found:
            raise SetupProblem(f"No approval {name} is open; see which are with: ide-bridge session approvals")
        return found[0]
    if not waiting:
        raise SetupProblem("Nothing waits for an answer.")
    if len(waiting) > 1:
        print(*approval_lines(waiting), sep="\n", file=sys.stderr)
        raise SetupProblem(f"{len(waiting)} approvals are open; name one: ide-bridge session {command} ID")
    return waiting[0]


def _names(waiting: Sequence[Open]) -> list[str]:
    return [each.approval.id for each in waiting]


def _answers(approval: "Approval", given: Sequence[str]) -> dict[str, str]:
    """What was answered, by the questions; each may be named by its number."""
    questions = [question.question for question in questions_of(approval)]
    named = {
        **{str(number): question for number, question in enumerate(questions, 1)},
        **dict(zip(questions, questions, strict=True)),
    }
    answers: dict[str, str] = {}
    for text in given:
        known = [name for name in named if text.startswith(f"{name}=")]
        if not known:
            raise SetupProblem(f"There is no such question: {text}; it is asked: {_numbered(questions)}")
        name = max(known, key=len)
        answers[named[name]] = text[len(name) + 1 :]
    if missing := [question for question in questions if question not in answers]:
        raise SetupProblem(f'Say --answer "QUESTION=ANSWER" for each of these: {_numbered(missing)}')
    return answers


def _numbered(questions: Sequence[str]) -> str:
    return "; ".join(f"{number}. {question}" for number, question in enumerate(questions, 1)) or "nothing"
