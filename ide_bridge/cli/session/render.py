"""The story of a session, for a person: events become lines of text.

1. Whatever a model or a tool says is made harmless first: it may not command the terminal, or turn text round.
2. An answer is shown as it comes. What is complete of it, paragraph by paragraph, is printed for good; the rest is
   the ``tail``, which changes until it is complete.
3. What is not for a terminal is plain: no pieces, no colours, nothing wrapped.

It does not know where the lines go, or what else is on the screen.
"""

import re
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from ide_bridge.cli.printable import printable
from ide_bridge.session import events
from ide_bridge.session.approvals import Approval

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

    from ide_bridge.cli.session.line import AnyEvent

__all__ = ["Story", "harmless", "indented", "outcome", "shortened"]

_RESULT_LENGTH = 200
_THOUGHT_LENGTH = 300
_TITLE_LENGTH = 400
_TAIL_LENGTH = 2_000
_FENCE = re.compile(r" {0,3}(```|~~~)")
_TAGS = re.compile(r"</?tool_use_error>")
_OUTCOMES = {
    "allowed": ("green", "allowed"),
    "denied": ("red", "denied"),
    "withdrawn": ("dim", "no longer asked"),
    "expired": ("red", "denied, because nobody answered in time"),
}
_LEVELS = {"info": "dim", "warning": "yellow", "error": "red"}


def harmless(text: str) -> str:
    """A text of several lines that cannot command a terminal."""
    return "\n".join(printable(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n"))


def shortened(text: str, length: int) -> str:
    """The first line of a text that says something, and how many more there are."""
    lines = [line.strip() for line in harmless(text).split("\n") if line.strip()]
    if not lines:
        return ""
    first = lines[0] if len(lines[0]) <= length else lines[0][: length - 1] + "…"
    return first if len(lines) == 1 else f"{first} (+{len(lines) - 1} line{'' if len(lines) == 2 else 's'})"


def indented(text: str, style: str = "", by: str = "  ") -> Text:
    """A harmless text of several lines, each moved to the right."""
    return Text("\n".join(by + line for line in harmless(text).split("\n")), style)


def outcome(name: str, by: str, reason: str) -> Text:
    """What became of an approval; without `by` it was the reader's own answer."""
    style, word = _OUTCOMES.get(name, ("", printable(name)))
    who = f"answered by {printable(by)}: " if by and name in ("allowed", "denied") else ""
    why = f": {printable(reason)}" if reason and name == "denied" else ""
    return Text(f"  → {who}{word}{why}", style)


class Story:
    """Tells the events of one session, one after the other."""

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self._streamed = ""
        self._printed = 0
        self._group = ""
        self._tell: dict[type, Callable[..., list[RenderableType]]] = {
            events.Prompt: self._prompt,
            events.Text: self._piece,
            events.Said: self._said,
            events.Thinking: self._thinking,
            events.Tool: self._tool,
            events.ToolResult: self._tool_result,
            events.Result: self._result,
            events.Notice: self._notice,
            events.Ended: self._ended,
        }

    @property
    def tail(self) -> str:
        """What has been said last of the paragraph that is not complete yet."""
        return harmless(self._streamed[max(self._printed, len(self._streamed) - _TAIL_LENGTH) :].strip("\n"))

    def tell(self, event: "AnyEvent") -> "list[RenderableType]":
        """What is to be printed for an event."""
        tell = self._tell.get(type(event))
        return [] if tell is None else tell(event)

    def lines(self, event: "AnyEvent | None") -> "list[RenderableType]":
        """What is to be printed where approvals are only told of."""
        if isinstance(event, events.ApprovalAsked):
            return self.line(_asked(msgspec.convert(event.approval, Approval)))
        if isinstance(event, events.ApprovalClosed):
            return self.line(outcome(event.outcome, event.by, event.reason))
        return [] if event is None else self.tell(event)

    def line(self, text: Text, group: str = "tools") -> "list[RenderableType]":
        """A line of another origin, set off from what is no kin of it."""
        return [*self._apart(group), text]

    def begin(self, text: Text) -> "list[RenderableType]":
        """A line that begins something: it is set off from everything."""
        return [*self._apart("tools", always=True), text]

    def add(self, text: Text) -> "list[RenderableType]":
        """A line that belongs to the one before it."""
        self._group = "tools"
        return [text]

    def _prompt(self, event: events.Prompt) -> "list[RenderableType]":
        by = f"  ({printable(event.by)})" if event.by not in ("", "terminal") else ""
        text = Text.assemble(("› ", "bold cyan"), (harmless(event.text), "bold"), (by, "dim"))
        return [*self._so_far(), *self._apart("prompt", always=True), text]

    def _piece(self, event: events.Text) -> "list[RenderableType]":
        if self._plain:
            return []
        self._streamed += event.text
        begun = self._streamed[self._printed :]
        if not (block := begun[: _complete(begun)]):
            return []
        self._printed += len(block)
        return [*self._apart("said"), *self._block(block)] if block.strip() else []

    def _said(self, event: events.Said) -> "list[RenderableType]":
        if event.agent is not None:
            return self.line(indented(event.text.strip("\n"), "dim", "  │ "))
        known = event.text.startswith(self._streamed[: self._printed])
        rest = event.text[self._printed :] if known else event.text
        self._forget()
        return [*self._apart("said"), *self._block(rest)] if rest.strip() else []

    def _thinking(self, event: events.Thinking) -> "list[RenderableType]":
        thought = shortened(event.text, _THOUGHT_LENGTH)
        return self.line(Text(f"∴ {thought}", "dim italic"), "thinking") if thought else []

    def _tool(self, event: events.Tool) -> "list[RenderableType]":
        inside = "  │ " if event.agent is not None else ""
        title = shortened(event.title or event.tool, _TITLE_LENGTH)
        return [*self._rest(), *self.line(Text.assemble((f"{inside}● ", "cyan"), title))]

    def _tool_result(self, event: events.ToolResult) -> "list[RenderableType]":
        text = shortened(_TAGS.sub("", event.text), _RESULT_LENGTH) or ("done" if event.ok else "failed")
        style = "dim" if event.ok else "red"
        return self.line(Text(f"  ⎿ {text}", style, no_wrap=True, overflow="ellipsis"))

    def _result(self, event: events.Result) -> "list[RenderableType]":
        cost = "" if event.cost is None else f" · ${event.cost:.{2 if event.cost >= 0.1 else 4}f}"
        if event.ok:
            return [*self._rest(), *self.line(Text(f"✓ done in {_time(event.seconds)}{cost}", "dim"), "result")]
        if event.reason.startswith("aborted"):
            return [
                *self._rest(),
                *self.line(Text(f"■ interrupted after {_time(event.seconds)}{cost}", "yellow"), "result"),
            ]
        why = printable(event.reason).replace("_", " ") or "failed"
        if (detail := shortened(event.text, _RESULT_LENGTH)) and detail not in why:
            why = f"{why}: {detail}"
        return [*self._rest(), *self.line(Text(f"✗ {why} after {_time(event.seconds)}{cost}", "red"), "result")]

    def _notice(self, event: events.Notice) -> "list[RenderableType]":
        return self.line(Text(f"• {shortened(event.text, _TITLE_LENGTH)}", _LEVELS.get(event.level, "")))

    def _ended(self, event: events.Ended) -> "list[RenderableType]":
        code = "" if event.code is None else f" with exit code {event.code}"
        why = f": {shortened(event.text, _TITLE_LENGTH)}" if event.text else ""
        style = "dim" if event.code == 0 else "red"
        return [*self._rest(), *self.line(Text(f"■ Claude Code has ended{code}{why}", style), "result")]

    def _block(self, text: str) -> "list[RenderableType]":
        text = harmless(text.strip("\n"))
        if self._plain:
            return [Text(text)]
        from ide_bridge.cli.session.markdown import markdown

        return [markdown(text)]

    def _rest(self) -> "list[RenderableType]":
        """What was said before it broke off."""
        rest = self._streamed[self._printed :]
        self._forget()
        return [*self._apart("said"), *self._block(rest)] if rest.strip() else []

    def _so_far(self) -> "list[RenderableType]":
        """What was said of a block that goes on: only the rest of it is printed when it is whole."""
        streamed, rest = self._streamed, self._rest()
        self._streamed, self._printed = streamed, len(streamed)
        return rest

    def _forget(self) -> None:
        self._streamed, self._printed = "", 0

    def _apart(self, group: str, *, always: bool = False) -> list[Text]:
        before, self._group = self._group, group
        kin = before == group and group != "said"
        return [Text("")] if before and group != "result" and (always or not kin) else []


def _complete(text: str) -> int:
    """As far as a text consists of whole paragraphs and whole blocks of code."""
    complete = position = 0
    fence = ""
    for line in text.split("\n")[:-1]:
        position += len(line) + 1
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
            complete = complete if fence else position
        elif not fence and not line.strip():
            complete = position
    return complete


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def _asked(approval: Approval) -> Text:
    """An approval for a reader who cannot answer right here."""
    answer = f"ide-bridge session approve {approval.id}, or deny {approval.id}"
    return Text(f"? {shortened(approval.title, _TITLE_LENGTH)}  [answer with: {answer}]", "yellow")
