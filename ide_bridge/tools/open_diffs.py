"""Open diffs: changes that clients have proposed, each waiting for a person's decision.

A diff belongs to one client and one tab name. It ends exactly once: kept, rejected, closed by its client, or
together with its client or the bridge; every end but the first is a rejection, and takes it off the screen.

It does not know how an editor shows a diff, which editor does, or what a client calls the answers.
"""

import asyncio
import itertools
import logging
from typing import Any, NamedTuple

from ide_bridge.answers import settled
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import Unsupported
from ide_bridge.model import Diff, DiffDecided

__all__ = ["OpenDiffs"]

logger = logging.getLogger(__name__)

DIFFS_LIMIT = 512
BYTES_LIMIT = 256 * 1024 * 1024
"""Of one client: so many open diffs, and so much text in them."""
SHOW_SECONDS = 5.0
STOP_SECONDS = 1.0


class _Open(NamedTuple):
    diff: Diff
    client: int
    decided: asyncio.Future[str | None]


class OpenDiffs:
    """Every diff that waits for its decision."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._numbers = itertools.count(1)
        self._open: dict[tuple[int, str], _Open] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, client: int, path: str, tab: str, contents: str) -> str | None:
        """Have a diff shown and wait for the decision: the final text, or None when it is rejected."""
        if "diff" not in self._editor.features:
            raise Unsupported("No editor here can show a diff; decide in the terminal.")
        self.close(client, tab)
        self._check_limits(client, contents)
        diff = Diff(next(self._numbers), path, tab, contents)
        one = self._open[client, tab] = _Open(diff, client, asyncio.get_running_loop().create_future())
        try:
            await self._show(one)
            return await one.decided
        except BaseException:
            self._take_off(diff)
            raise
        finally:
            if self._open.get((client, tab)) is one:
                del self._open[client, tab]

    def decide(self, event: DiffDecided) -> None:
        """The user has decided in his editor; what is no longer open is no longer his to decide."""
        for one in self._open.values():
            if one.diff.id == event.diff and not one.decided.done():
                kept = one.diff.contents if event.contents is None else event.contents
                one.decided.set_result(kept if event.decision == "kept" else None)

    def close(self, client: int, tab: str) -> bool:
        """The client wants it closed, which rejects it; False when there is no such diff (any more)."""
        one = self._open.pop((client, tab), None)
        if one is None:
            return False
        if not one.decided.done():
            one.decided.set_result(None)
            self._take_off(one.diff)
        return True

    def close_all(self, client: int) -> int:
        """Close every diff of one client; tell how many there were."""
        tabs = [tab for owner, tab in self._open if owner == client]
        return sum(self.close(client, tab) for tab in tabs)

    async def stop(self) -> None:
        """Reject what is open, so that every client gets its answer before we are gone."""
        for client, tab in list(self._open):
            self.close(client, tab)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()

    def described(self) -> list[dict[str, object]]:
        """What ``status`` shows."""
        return [
            {"client": one.client, "path": one.diff.path, "title": one.diff.title} for one in self._open.values()
        ]

    def _check_limits(self, client: int, contents: str) -> None:
        sizes = [len(one.diff.contents) for one in self._open.values() if one.client == client]
        if len(sizes) >= DIFFS_LIMIT or sum(sizes) + len(contents) > BYTES_LIMIT:
            raise Unsupported("Too many diffs are open; decide or close some first.")

    async def _show(self, one: _Open) -> None:
        """Have the editor show it; what is decided before that need not be shown any more."""
        showing = asyncio.create_task(settled(self._editor.show_diff(one.diff)))
        self._own(showing)
        either: set[asyncio.Future[Any]] = {showing, one.decided}
        try:
            done, _ = await asyncio.wait(either, timeout=SHOW_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if showing in done:
                showing.result()
            elif not done:
                raise Unsupported("The editor does not show the diff; decide in the terminal.")
        finally:
            showing.cancel()

    def _take_off(self, diff: Diff) -> None:
        """Have the editor close it; nobody waits for that."""
        self._own(asyncio.create_task(self._close(diff)))

    async def _close(self, diff: Diff) -> None:
        try:
            await settled(self._editor.close_diff(diff.id))
        except Exception as error:  # noqa: BLE001 - an editor that is gone has closed everything
            logger.debug("diff %d was not closed: %s", diff.id, error)

    def _own(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._disown)

    def _disown(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.debug("a diff was not shown: %s", error)
