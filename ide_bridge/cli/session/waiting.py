"""The approvals that wait in one view: which are open, which one the keys answer, and who answered first.

1. Keys answer the one in ``focus``. The oldest gets it when the user is at rest, and gives it up when he says so.
2. Whether an answer was ours, the bridge's reply says; the event that tells everyone may come before it or after.

It does not know the bridge, the keyboard or the screen.
"""

from typing import TYPE_CHECKING

from ide_bridge.cli.printable import printable
from ide_bridge.cli.session.asking import Asking
from ide_bridge.cli.session.render import outcome

if TYPE_CHECKING:
    from rich.text import Text

    from ide_bridge.session import events
    from ide_bridge.session.approvals import Approval

__all__ = ["Waiting"]


class Waiting:
    """The open approvals of a session, the oldest first."""

    def __init__(self) -> None:
        self.focus: Asking | None = None
        self._open: dict[str, Asking] = {}
        self._aside: set[str] = set()
        self._sent: set[str] = set()
        self._taken: set[str] = set()
        self._unclear: dict[str, events.ApprovalClosed] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def all(self) -> list[Asking]:
        """Those that are open."""
        return list(self._open.values())

    @property
    def next(self) -> Asking | None:
        """The one that should be asked now."""
        candidates = (asking for name, asking in self._open.items() if name not in self._aside | self._sent)
        return None if self.focus is not None else next(candidates, None)

    def add(self, approval: "Approval") -> Asking:
        """Another one is open."""
        asking = self._open[approval.id] = Asking(approval)
        return asking

    def put_aside(self) -> None:
        """The user wants to answer it later."""
        if self.focus is not None:
            self._aside.add(self.focus.approval.id)
            self.focus = None

    def take_up(self) -> Asking | None:
        """The user wants to answer what he put aside: gives what has the focus now."""
        self._aside.clear()
        self.focus = self.next
        return self.focus

    def sent(self, approval: str) -> None:
        """It was answered here, and the bridge has not replied yet."""
        self._sent.add(approval)
        self.focus = None

    def replied(self, approval: str, problem: str | None) -> "Text | str | None":
        """The bridge took the answer, or says why not: gives what is to be shown, a complaint as it is."""
        self._sent.discard(approval)
        event = self._unclear.pop(approval, None)
        if event is not None:
            return self._close(event, by=event.by if problem else "")
        if problem is None:
            self._taken.add(approval)
        return problem

    def closed(self, event: "events.ApprovalClosed") -> "Text | None":
        """One is answered, here or elsewhere: gives what is to be shown."""
        if event.approval in self._sent:
            self._unclear[event.approval] = event
            return None
        ours = event.approval in self._taken
        self._taken.discard(event.approval)
        return self._close(event, by="" if ours else event.by)

    def _close(self, event: "events.ApprovalClosed", by: str) -> "Text | None":
        asking = self._open.pop(event.approval, None)
        self._aside.discard(event.approval)
        if self.focus is asking:
            self.focus = None
        return None if asking is None else outcome(event.outcome, printable(by), event.reason)
