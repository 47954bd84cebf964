"""The record of what an editor reports, for checks that wait for it or demand that it does not come.

It does not know what is checked, nor how the events travelled.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from ide_bridge.conform.verdict import Nonconforming, demand
from ide_bridge.editor.interface import Editor
from ide_bridge.model import (
    DiagnosticsChanged,
    DiffDecided,
    Event,
    FileEvent,
    Mentioned,
    Selection,
    SelectionChanged,
)

__all__ = ["EVENT_SECONDS", "E", "Record", "in_words", "selection_in_words"]

E = TypeVar("E", SelectionChanged, FileEvent, DiagnosticsChanged, Mentioned, DiffDecided)

EVENT_SECONDS = 5.0
_TOLD = 3
_SHOWN_CHARACTERS = 60


class Record:
    """Every event of an editor, from the first to the last; ``over`` once it is gone."""

    def __init__(self, editor: Editor) -> None:
        self.over = False
        self._events: list[Event] = []
        self._seen = 0
        self._news = asyncio.Event()
        self._listening = asyncio.create_task(self._listen(editor))

    async def close(self) -> None:
        """Listen no more."""
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening

    def forget(self) -> None:
        """What was reported so far is of no interest."""
        self._seen = len(self._events)

    def since(self, kind: type[E]) -> list[E]:
        """What was reported of a kind since it was last said that the past is of no interest."""
        return [event for event in self._events[self._seen :] if isinstance(event, kind)]

    async def first(self, kind: type[E], fits: Callable[[E], bool], expected: str) -> E:
        """Wait for an event; ``expected`` says in words for which."""
        await self._until(lambda: self.over or any(map(fits, self.since(kind))))
        came = self.since(kind)
        for event in filter(fits, came):
            return event
        raise Nonconforming(f"Expected {expected}; {self._instead(came)}.")

    async def end(self) -> None:
        """Wait until the editor is gone."""
        await self._until(lambda: self.over)
        demand(self.over, f"Expected the editor to go; it was still there after {EVENT_SECONDS:g} s")

    async def _until(self, so: Callable[[], bool]) -> None:
        """Wait for news until it is so, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(EVENT_SECONDS):
                while not so():
                    self._news.clear()
                    await self._news.wait()

    def _instead(self, came: Sequence[Event]) -> str:
        if not came:
            gone = "before the editor was gone" if self.over else f"within {EVENT_SECONDS:g} s"
            return f"nothing of the kind came {gone}"
        return "what came was " + ", ".join(in_words(event) for event in came[-_TOLD:])

    async def _listen(self, editor: Editor) -> None:
        try:
            async for event in editor.events():
                self._events.append(event)
                self._news.set()
        finally:
            self.over = True
            self._news.set()


def in_words(event: Event) -> str:
    """An event as one would tell it."""
    if isinstance(event, SelectionChanged):
        return "no selection" if event.selection is None else selection_in_words(event.selection)
    if isinstance(event, FileEvent):
        return f"{event.path} {event.kind}"
    if isinstance(event, DiagnosticsChanged):
        return f"other diagnostics in {', '.join(event.paths) or 'no file'}"
    if isinstance(event, Mentioned):
        lines = "" if event.start_line is None else f", lines {event.start_line} to {event.end_line}"
        return f"a mention of {event.path}{lines}"
    text = "" if event.contents is None else f" as {_short(event.contents)}"
    return f"diff {event.diff} {event.decision}{text}"


def selection_in_words(selection: Selection) -> str:
    """A selection as one would tell it."""
    start, end = selection.range.start, selection.range.end
    where = f"{start.line}:{start.column} to {end.line}:{end.column} of {selection.path}"
    return f"{_short(selection.text)} selected from {where}" if selection.text else f"the cursor at {where}"


def _short(text: str) -> str:
    """A text as Python would write it, and not all of a long one."""
    cut = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return ascii(cut) if not cut.isprintable() and not cut.isascii() else repr(cut)
