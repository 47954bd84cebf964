"""Push: what the editor reports, told to the clients it concerns.

A selection goes to every client, the first at once and what follows at most every so often, the last one always.
A mention goes to one client: the one the user chose, else the one whose folder fits best and that was active
last; while there is none it waits. What is told is what may be shared, and each share is a line of the audit log.

The CLI drops what it is told in the first moment after its ``tools/list`` and does not say when it begins to
listen. So a client that has just come is told the selection twice, at once and a moment later, and is handed
mentions, which must not come twice, only then.

It does not know how an editor or a client is reached.
"""

import asyncio
import logging
from collections import deque

from ide_bridge.fronts.client import Client, Clients
from ide_bridge.model import (
    DiagnosticsChanged,
    DiffDecided,
    Event,
    FileEvent,
    Mentioned,
    Selection,
    SelectionChanged,
)
from ide_bridge.tools.registry import Context
from ide_bridge.tools.selections import as_sent

__all__ = ["Push"]

logger = logging.getLogger(__name__)

SELECTION_SECONDS = 0.05
DEAF_SECONDS = 0.5
"""The real CLI took 20 to 120 ms. What it is told too early is lost, so there is room for slower machines."""

MENTION_SECONDS = 0.15
"""Between two mentions: CLI 2.1.37 keeps only the last of those that come together."""

MENTIONS_LIMIT = 100

_NOTHING: dict[str, object] = {
    "text": "",
    "selection": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}, "isEmpty": True},
}


class Push:
    """Follows one editor, which may be many behind a switch."""

    def __init__(self, clients: Clients, context: Context) -> None:
        self._clients = clients
        self._context = context
        self._mentions: deque[Mentioned] = deque(maxlen=MENTIONS_LIMIT)
        self._pause: asyncio.TimerHandle | None = None
        self._arriving: dict[Client, asyncio.TimerHandle] = {}
        self._handing: asyncio.TimerHandle | None = None
        self._stale = False
        self._sent: dict[str, object] = _NOTHING

    async def run(self) -> None:
        """Follow the editor until cancelled."""
        try:
            async for event in self._context.editor.events():
                self._take_safely(event)
        finally:
            for timer in (self._pause, self._handing, *self._arriving.values()):
                if timer is not None:
                    timer.cancel()

    def take(self, event: Event) -> None:
        """Pass one event on to whom it concerns."""
        match event:
            case SelectionChanged():
                self._context.selections.see(event.selection)
                self._selection_changed()
            case Mentioned():
                self._mentions.append(event)
                self._hand_over()
            case FileEvent(kind="closed"):
                self._context.selections.forget(event.path)
                self._selection_changed()
            case DiagnosticsChanged():
                self._context.problems.changed(event.paths)
            case DiffDecided():
                self._context.diffs.decide(event)
            case FileEvent():
                pass

    def _take_safely(self, event: Event) -> None:
        """One event that cannot be told must not keep the next from being told, least of all a decision."""
        try:
            self.take(event)
        except Exception:
            logger.exception("an event was lost")

    def welcome(self, client: Client) -> None:
        """Tell a client that has just come what the others know already, at once and when it surely listens."""
        if (waiting := self._arriving.get(client)) is not None:
            waiting.cancel()
        if not client.listens:
            self._arriving[client] = asyncio.get_running_loop().call_later(DEAF_SECONDS, self._greet, client)
        if client.knows_tools:
            self._send_latest(client)

    def policy_changed(self) -> None:
        """Other things may be shared now: what is shown must be shown anew, or no longer."""
        self._selection_changed()

    def _greet(self, client: Client) -> None:
        del self._arriving[client]
        client.listens = True
        self._send_latest(client)
        self._hand_over()

    # -- selections ----------------------------------------------------------------------------------------

    def _selection_changed(self) -> None:
        self._stale = True
        if self._pause is None:
            self._tell_selection()

    def _tell_selection(self) -> None:
        self._stale = False
        self._pause = asyncio.get_running_loop().call_later(SELECTION_SECONDS, self._pause_over)
        described = self._described()
        if described != self._sent:
            self._sent = described
            self._send_selection(self._clients.ready(), described)

    def _send_latest(self, client: Client) -> None:
        if client in self._clients.ready() and (described := self._described()) is not _NOTHING:
            self._send_selection([client], described)

    def _pause_over(self) -> None:
        self._pause = None
        if self._stale:
            self._tell_selection()

    def _described(self) -> dict[str, object]:
        latest = self._context.selections.latest
        shared = latest and self._context.workspace.sharing.pushed(latest)
        return _NOTHING if shared is None else _notification(shared)

    def _send_selection(self, clients: list[Client], described: dict[str, object]) -> None:
        for client in clients:
            client.notify("selection_changed", described, key="selection")
            if (path := described.get("filePath")) is not None:
                self._context.workspace.audit.share(client.label, _kind(described), str(path), _lines(described))

    # -- mentions ------------------------------------------------------------------------------------------

    def _hand_over(self) -> None:
        """Hand over the next mention, unless the one before is too fresh or nobody listens yet."""
        if self._handing is not None or not self._mentions:
            return
        client = self._clients.for_file(self._mentions[0].path)
        if client is not None and client.listens:
            self._mention(client, self._mentions.popleft())
            self._handing = asyncio.get_running_loop().call_later(MENTION_SECONDS, self._handed_over)

    def _handed_over(self) -> None:
        self._handing = None
        self._hand_over()

    def _mention(self, client: Client, mention: Mentioned) -> None:
        """Tell of it even when the file is not shared: the user himself hands it over."""
        lines = {"lineStart": mention.start_line, "lineEnd": mention.end_line}
        given = {name: line for name, line in lines.items() if line is not None}
        client.notify("at_mentioned", {"filePath": mention.path, **given})
        span = None if mention.start_line is None else (mention.start_line, mention.end_line or mention.start_line)
        self._context.workspace.audit.share(client.label, "mention", mention.path, span)


def _notification(selection: Selection) -> dict[str, object]:
    sent = as_sent(selection)
    ends = sent["selection"]
    is_empty = selection.range.start == selection.range.end
    return {
        **sent,
        "fileUrl": f"file://{selection.path}",
        "selection": {**(ends if isinstance(ends, dict) else {}), "isEmpty": is_empty},
    }


def _kind(described: dict[str, object]) -> str:
    return "selection" if described["text"] else "path"


def _lines(described: dict[str, object]) -> tuple[int, int] | None:
    match described:
        case {"selection": {"start": {"line": int(first)}, "end": {"line": int(last)}}}:
            return first, last
        case _:
            return None
