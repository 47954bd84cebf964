"""An approval that is being answered with keys: one key for what can be said with one, a typed line for the rest.

1. ``y`` once, ``s`` for this session, ``n`` no, with a reason; ``e`` changes the input first; ``w`` lets it wait.
2. A question is answered with the number of a choice, or with ``o`` in one's own words; of several questions one
   after the other. A plan is agreed to or not.
3. Escape goes back from a typed line to the keys.

It does not know who asks, where the keys come from, or who is told the answer.
"""

import json
from typing import Any

import msgspec
from rich.text import Text

from ide_bridge.cli.printable import printable
from ide_bridge.cli.session.details import details, questions_of, rule_of
from ide_bridge.cli.session.keys import Key, TypedLine
from ide_bridge.session.approvals import Approval

__all__ = ["Asking", "Decided", "EditNeeded", "More", "Waits"]


class Decided(msgspec.Struct, frozen=True):
    """The answer: what is sent with ``decide``."""

    params: dict[str, Any]


class EditNeeded(msgspec.Struct, frozen=True):
    """The input is to be changed in an editor, as this text."""

    text: str


class Waits(msgspec.Struct, frozen=True):
    """It is put aside."""


class More(msgspec.Struct, frozen=True):
    """There is something more to show."""

    shown: list[Text]


Step = Decided | EditNeeded | Waits | More | None


class Asking:
    """One approval, as far as it is answered."""

    def __init__(self, approval: Approval) -> None:
        self.approval = approval
        self.typed: TypedLine | None = None
        self.label = ""
        self._aim = ""
        self._questions = questions_of(approval)
        self._answers: dict[str, str] = {}
        self._at = 0
        self._chosen: set[int] = set()
        self._edited: str | None = None

    def shown(self) -> list[Text]:
        """What it is about."""
        return [*details(self.approval), *self._question_shown()]

    def hint(self) -> Text:
        """The keys that mean something now."""
        if self.typed is not None:
            return Text("Enter sends it · Esc goes back", "dim")
        return Text.assemble(
            *(part for key, text in self._keys() for part in ((f"[{key}]", "bold"), f" {text}  "))
        )

    def press(self, key: Key) -> Step:
        """What follows from a key."""
        if self.typed is not None:
            return self._typed(self.typed, key)
        if key.name == "pasted":
            return None
        return self._chose(key) if self._questions else self._answered(key)

    def edited(self, text: str) -> "Decided | str":
        """The input has come back from the editor; gives the answer, or what is wrong with it."""
        self._edited = text
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            return f"This is no JSON, so nothing was sent: {printable(str(error))}. [e] opens it again."
        if not isinstance(given, dict):
            return "The input of a tool is an object in braces, so nothing was sent. [e] opens it again."
        if given == self.approval.input:
            return "The input is as it was, so nothing was sent. [y] allows it."
        return self._allow(input=given)

    def _keys(self) -> list[tuple[str, str]]:
        if self._questions:
            question = self._questions[self._at]
            numbers = f"1-{min(9, len(question.options))}"
            choose = [(numbers, "choose")] if question.options else []
            done = [("Enter", "done")] if question.multi_select and self._chosen else []
            return [*choose, *done, ("o", "in your own words"), ("n", "no answer"), ("w", "wait")]
        if self.approval.kind == "plan":
            return [("y", "yes"), ("n", "no, with a reason"), ("w", "wait")]
        rule = rule_of(self.approval)
        session = f"for this session ({rule})" if rule else "for this session"
        edit = ("e", "edit the input")
        return [("y", "once"), ("s", session), ("n", "no, with a reason"), edit, ("w", "wait")]

    def _answered(self, key: Key) -> Step:
        name = key.name.lower()
        if name == "y":
            return self._allow()
        if name in ("n", "w"):
            return self._refused_or_waits(name)
        if self.approval.kind == "plan":
            return None
        if name == "s":
            return self._allow(forSession=True)
        return self._edit() if name == "e" else None

    def _refused_or_waits(self, name: str) -> Step:
        if name == "w":
            return Waits()
        self._type("reason", "Tell Claude why (or nothing): ")
        return None

    def _edit(self) -> Step:
        command = self.approval.input.get("command")
        if isinstance(command, str):
            self._type("command", "Run instead: ", command)
            return None
        as_it_was = json.dumps(self.approval.input, ensure_ascii=False, indent=2) + "\n"
        return EditNeeded(as_it_was if self._edited is None else self._edited)

    def _type(self, aim: str, label: str, text: str = "") -> None:
        self._aim, self.label, self.typed = aim, label, TypedLine(text)

    def _typed(self, line: TypedLine, key: Key) -> Step:
        if key.name == "escape":
            self.typed, self.label = None, ""
            return None
        if key.name != "enter":
            line.press(key)
            return None
        text = line.text.strip()
        if self._aim == "reason":
            return self._decide("deny", reason=text)
        if not text:
            return None
        self.typed, self.label = None, ""
        if self._aim == "own words":
            return self._answer(text)
        same = text == self.approval.input["command"].strip()
        return self._allow() if same else self._allow(input=self.approval.input | {"command": text})

    # -- questions --------------------------------------------------------------------------------------------

    def _chose(self, key: Key) -> Step:
        name = key.name.lower()
        if name in ("n", "w"):
            return self._refused_or_waits(name)
        if name == "o":
            self._type("own words", "Your answer: ")
            return None
        question = self._questions[self._at]
        if name == "enter" and self._chosen:
            return self._answer(", ".join(question.options[number].label for number in sorted(self._chosen)))
        if name not in list("123456789") or int(name) > len(question.options):
            return None
        number = int(name) - 1
        if not question.multi_select:
            return self._answer(question.options[number].label)
        self._chosen ^= {number}
        chosen = ", ".join(str(each + 1) for each in sorted(self._chosen)) or "none"
        return More([Text(f"  chosen: {chosen}", "dim")])

    def _answer(self, answer: str) -> Step:
        self._answers[self._questions[self._at].question] = answer
        self._chosen = set()
        self._at += 1
        if self._at < len(self._questions):
            return More(self._question_shown())
        return self._allow(answers=self._answers)

    def _question_shown(self) -> list[Text]:
        if not self._questions:
            return []
        question = self._questions[self._at]
        several = "  (several may be chosen)" if question.multi_select else ""
        lines = [Text.assemble((f"  {printable(question.question)}", "bold"), (several, "dim"))]
        for number, choice in enumerate(question.options[:9], 1):
            why = f"  {printable(choice.description)}" if choice.description else ""
            lines.append(Text.assemble((f"  {number}. ", "cyan"), printable(choice.label), (why, "dim")))
        return lines

    # -- the answer -------------------------------------------------------------------------------------------

    def _allow(self, **more: object) -> Decided:
        return self._decide("allow", **more)

    def _decide(self, behavior: str, **more: object) -> Decided:
        said = {key: value for key, value in more.items() if value != ""}
        return Decided({"approval": self.approval.id, "behavior": behavior, **said})
