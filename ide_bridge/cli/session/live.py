"""The live view of a session in a terminal: it streams, and takes prompts and answers from the keyboard.

1. A line that is typed is the next prompt. Keys answer an approval only when nothing is being typed: they begin to
   count when the row that names them is shown, which is never while someone types.
2. Escape or Ctrl-C ends the turn; Ctrl-C when there is nothing to end, or Ctrl-D, leaves. The session goes on.
3. What is asked of the bridge is not waited for: its answer comes between the events.

It does not know how events look, how keys become text, or how rows are drawn.
"""

import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from rich.text import Text

from ide_bridge.cli.printable import printable
from ide_bridge.cli.session.asking import Asking, Decided, EditNeeded, More, Waits
from ide_bridge.cli.session.edit import edited
from ide_bridge.cli.session.keys import Key, Keys, TypedLine
from ide_bridge.cli.session.line import AnyEvent, Line, Reply, Told
from ide_bridge.cli.session.reach import environment_here
from ide_bridge.cli.session.render import Story
from ide_bridge.cli.session.screen import Screen
from ide_bridge.cli.session.waiting import Waiting
from ide_bridge.errors import SetupProblem
from ide_bridge.session import events
from ide_bridge.session.approvals import Approval

__all__ = ["Live"]

_ESCAPE_SECONDS = 0.05
_SETTLE_SECONDS = 0.15
_QUIET_SECONDS = 0.5
_PAST = 300
_BUSY = ("starting", "working", "waiting")
_CHUNK = 4096
_LABEL = "› "


class Live:
    """One terminal that is attached to one session."""

    def __init__(self, line: Line, screen: Screen, keyboard: int) -> None:
        self._line = line
        self._screen = screen
        self._keyboard = keyboard
        self._keys = Keys(in_lines=screen.is_dumb)
        self._typed = TypedLine()
        self._story = Story(plain=False)
        self._waiting = Waiting()
        self._state = line.session.state
        self._since = self._last_key = time.monotonic()
        self._past: deque[Told] | None = deque(maxlen=_PAST)
        self._past_is_cut = False
        self._settled = time.monotonic() + _SETTLE_SECONDS
        self._replies: dict[int, Callable[[str | None], None]] = {}
        self._interrupting = False
        self._last_asked: Asking | None = None
        self._left: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether the session goes on without us."""
        return self._state in (*_BUSY, "idle")

    def run(self) -> int:
        """Until the user leaves or the session ends; gives the exit code."""
        with selectors.DefaultSelector() as selector:
            for what in (self._keyboard, self._line, self._screen.signals):
                selector.register(what, selectors.EVENT_READ)
            self._hear(self._line.waiting())
            while self._left is None:
                self._settle()
                self._draw()
                self._handle([key.fileobj for key, _ in selector.select(self._patience())])
        return self._left

    def _handle(self, ready: list[Any]) -> None:
        if self._screen.signals in ready:
            self._heed(self._screen.take_signals())
        if self._keyboard in ready:
            self._read_keys()
        elif self._keys.is_in_doubt:
            self._press_all(self._keys.pause())
        if self._line in ready:
            self._hear(self._line.receive())

    def _patience(self) -> float | None:
        """How long to wait for something to happen before looking again."""
        now = time.monotonic()
        waits = [_ESCAPE_SECONDS] if self._keys.is_in_doubt else []
        if self._past is not None:
            waits.append(self._settled - now)
        elif self._waiting.next is not None and not self._typed.text:
            waits.append(self._last_key + _QUIET_SECONDS - now)
        if self._state in _BUSY:
            waits.append(1.0)  # the seconds that are shown
        return max(0.0, min(waits)) if waits else None

    def _settle(self) -> None:
        """What happens because nothing else does."""
        now = time.monotonic()
        if self._past is not None and now >= self._settled:
            self._tell_past(self._past)
        at_rest = not self._typed.text and now >= self._last_key + _QUIET_SECONDS
        if self._past is None and at_rest and self._waiting.next is not None:
            self._waiting.focus = self._waiting.next
        if self._waiting.focus is not None and self._waiting.focus is not self._last_asked:
            self._ask(self._waiting.focus)  # its keys must never stand below something else

    # -- what the bridge says ---------------------------------------------------------------------------------

    def _hear(self, heard: Sequence[Told | Reply]) -> None:
        for each in heard:
            if isinstance(each, Reply):
                self._replies.pop(each.id, _nothing)(each.problem)
            elif self._past is not None and each.number < self._line.next:
                self._past_is_cut |= len(self._past) == _PAST
                self._past.append(each)
                self._settled = time.monotonic() + _SETTLE_SECONDS
            else:
                if self._past is not None:
                    self._tell_past(self._past)
                self._tell(each.event)

    def _tell_past(self, past: deque[Told]) -> None:
        """What was before we came, as much as one wants to see; what is still open is asked at the end of it."""
        self._past = None
        if self._past_is_cut:
            self._say(f"… for what was before: ide-bridge session show {self._line.session.session[:8]}", "dim")
        for told in past:
            if isinstance(told.event, events.ApprovalAsked):
                self._waiting.add(msgspec.convert(told.event.approval, Approval))
            elif not isinstance(told.event, events.State):
                self._tell_story(told.event)
        for asking in self._waiting.all:
            self._ask(asking)

    def _tell(self, event: AnyEvent | None) -> None:
        if isinstance(event, events.ApprovalAsked):
            self._ask(self._waiting.add(msgspec.convert(event.approval, Approval)))
        elif isinstance(event, events.State):
            self._state_is(event.state)
        else:
            self._tell_story(event)
        if isinstance(event, events.Ended):
            self._left, self._state = (1 if event.text else 0), "stopped"

    def _tell_story(self, event: AnyEvent | None) -> None:
        if isinstance(event, events.Prompt):
            self._typed.remember(event.text)
        if isinstance(event, events.ApprovalClosed):
            self._show(self._waiting.closed(event))
        elif event is not None:
            lines = self._story.tell(event)
            self._screen.print(lines)
            self._last_asked = None if lines else self._last_asked

    def _ask(self, asking: Asking) -> None:
        first, *rest = asking.shown()
        self._screen.print([*self._story.begin(first), *rest])
        self._last_asked = asking

    def _state_is(self, state: str) -> None:
        if (self._state in _BUSY) != (state in _BUSY):
            self._since = time.monotonic()
        self._state = state
        self._interrupting = self._interrupting and state in _BUSY

    # -- what the user does -----------------------------------------------------------------------------------

    def _heed(self, signals: list[int]) -> None:
        if signal.SIGINT in signals:
            self._stop_something()
        if signal.SIGTSTP in signals:
            self._screen.pause()

    def _stop_something(self) -> None:
        """Ctrl-C: the turn; what was typed; or our watching."""
        if self._state in _BUSY and not self._interrupting:
            self._interrupt()
        elif self._typed.text and self._state not in _BUSY:
            self._typed.replace("")
        else:
            self._left = 0

    def _read_keys(self) -> None:
        try:
            data = os.read(self._keyboard, _CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._left = 0
        self._press_all(self._keys.feed(data))

    def _press_all(self, keys: list[Key]) -> None:
        for key in keys:
            if self._left is None:
                self._press(key)
        self._last_key = time.monotonic() if keys else self._last_key

    def _press(self, key: Key) -> None:
        asking = self._waiting.focus
        if key.name == "redraw":
            self._screen.clear()
        elif key.name == "ctrl-d" and not self._is_typing(asking):
            self._left = 0
        elif asking is not None:
            self._press_at(asking, key)
        elif key.name in ("enter", "escape", "tab"):
            self._press_alone(key.name)
        else:
            self._typed.press(key)

    def _is_typing(self, asking: Asking | None) -> bool:
        line = self._typed if asking is None else asking.typed
        return line is not None and bool(line.text)

    def _press_alone(self, name: str) -> None:
        if name == "tab":
            self._waiting.take_up()
        elif name == "enter":
            self._prompt()
        elif self._state in _BUSY:
            self._interrupt()

    def _press_at(self, asking: Asking, key: Key) -> None:
        at_keys = asking.typed is None
        if at_keys and key.name == "escape":
            self._interrupt()
        elif at_keys and key.name in ("tab", "pasted"):
            self._waiting.put_aside()
            self._typed.press(key)
        else:
            self._answer(asking, key)

    def _answer(self, asking: Asking, key: Key) -> None:
        match asking.press(key):
            case Decided(params):
                self._decide(asking, params)
            case More(shown):
                self._screen.print(shown)
            case Waits():
                self._waiting.put_aside()
            case EditNeeded(text):
                self._edit(asking, text)
            case None:
                pass

    def _edit(self, asking: Asking, text: str) -> None:
        try:
            step = asking.edited(edited(text, "input.json", self._screen))
        except SetupProblem as problem:
            step = str(problem)
        if isinstance(step, Decided):
            self._decide(asking, step.params)
        else:
            self._say(step, "yellow")

    # -- what the bridge is asked -----------------------------------------------------------------------------

    def _decide(self, asking: Asking, params: dict[str, Any]) -> None:
        name = asking.approval.id
        self._waiting.sent(name)
        self._request("decide", params, lambda problem: self._show(self._waiting.replied(name, problem)))

    def _prompt(self) -> None:
        text = self._typed.take()
        if not text.strip():
            return
        session = self._line.session.session
        if self.is_live:
            self._request("prompt", {"session": session, "text": text}, lambda why: self._refused(text, why))
            return
        given = {"resume": session, "prompt": text, "environment": environment_here()}
        self._say("Continuing the session …", "dim")
        self._request("startSession", given, lambda why: self._refused(text, why))

    def _refused(self, text: str, problem: str | None) -> None:
        """A prompt that was not taken is the user's again."""
        if problem is not None:
            self._say(problem, "red")
            self._typed.replace(self._typed.text or text)

    def _interrupt(self) -> None:
        self._interrupting = True
        self._request("interrupt", {"session": self._line.session.session}, self._show)

    def _request(self, method: str, params: dict[str, Any], replied: Callable[[str | None], None]) -> None:
        self._replies[self._line.send(method, params)] = replied

    # -- what is on the screen --------------------------------------------------------------------------------

    def _show(self, what: Text | str | None) -> None:
        """A line, or a complaint of the bridge."""
        if isinstance(what, str):
            self._say(what, "red")
        elif what is not None:
            self._screen.print(self._story.add(what))

    def _say(self, sentence: str, style: str) -> None:
        self._screen.print([Text(printable(sentence), style)])

    def _draw(self) -> None:
        asking = self._waiting.focus
        if self._past is not None:
            return
        if self._screen.is_dumb:
            self._screen.say_once(asking.hint().plain if asking else "" if self._state in _BUSY else self._state)
            return
        tail = self._story.tail
        above = [Text(tail)] if tail else []
        if asking is None:
            self._screen.draw([*above, self._status()], _LABEL, self._typed.text, self._typed.cursor)
        elif asking.typed is None:
            self._screen.draw([*above, asking.hint()], "", "", 0)
        else:
            self._screen.draw([*above, asking.hint()], asking.label, asking.typed.text, asking.typed.cursor)

    def _status(self) -> Text:
        waits = len(self._waiting)
        parts = [self._doing()]
        if waits:
            parts.append(f"{waits} question{'s' if waits > 1 else ''} waiting, Tab answers")
        if self._state in _BUSY:
            parts.append("Ctrl-C again leaves" if self._interrupting else "Esc interrupts")
        elif not self._typed.text:
            parts.append("Ctrl-D leaves")
        return Text(" · ".join(parts), "dim", no_wrap=True, overflow="ellipsis")

    def _doing(self) -> str:
        if self._interrupting:
            return "interrupting …"
        if self._state in _BUSY:
            return f"{self._state} {time.monotonic() - self._since:.0f} s"
        return self._state if self._state == "idle" else f"{self._state}, the next prompt continues it"


def _nothing(_problem: str | None) -> None:
    """Nobody waits for this reply any more."""
