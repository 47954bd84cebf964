"""The switch: all attached editors, seen as one.

It unites their open files, sends everything else to the one that had the focus last and can do it, and falls
back to the folder editor while there is none. A diff outlives the editor that shows it: the next one that
attaches is asked to show it again.

It does not know how editors attach, and it decides nothing about diffs.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import msgspec

from ide_bridge.answers import Answer, settled
from ide_bridge.editor.interface import Editor, Feature
from ide_bridge.errors import BridgeError, Unsupported
from ide_bridge.model import (
    Diagnostic,
    Diff,
    DiffDecided,
    Event,
    FileEvent,
    OpenFile,
    Range,
    Selection,
    SelectionChanged,
)

__all__ = ["EditorSwitch"]

logger = logging.getLogger(__name__)


class EditorSwitch(Editor):
    """Every attached editor, the one with the newest focus first, and one to fall back to."""

    def __init__(self, fallback: Editor, changed: Callable[[], None] = lambda: None) -> None:
        self._fallback = fallback
        self._changed = changed
        self._attached: list[Editor] = []
        self._joined: list[Editor] = []
        self._listening: dict[Editor, asyncio.Task[None]] = {}
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._diffs: dict[int, Diff] = {}
        self._shown_by: dict[int, Editor] = {}
        self._selected_in: dict[Editor, str] = {}
        self._closing = False

    @property
    def attached(self) -> Sequence[Editor]:
        """The attached editors, the one with the newest focus first."""
        return tuple(self._attached)

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the editor that attached last."""
        return (self._joined or [self._fallback])[-1].name

    @property
    def features(self) -> frozenset[Feature]:  # type: ignore[override]
        """What at least one of them can do."""
        return self._fallback.features.union(*[editor.features for editor in self._attached])

    async def start(self) -> None:
        """Start the editor to fall back to."""
        self._closing = False
        await self._fallback.start()
        self._listen(self._fallback)

    async def close(self) -> None:
        """Let every editor go."""
        self._closing = True
        for editor in [*self._attached, self._fallback]:
            await self._let_go(editor)
        for left in (self._attached, self._joined, self._diffs, self._shown_by):
            left.clear()

    async def attach(self, editor: Editor) -> None:
        """Let an editor join; it leaves when its events end."""
        await editor.start()
        self._attached.insert(0, editor)
        self._joined.append(editor)
        self._listen(editor)
        self._changed()
        await self._offer_diffs()

    async def detach(self, editor: Editor) -> None:
        """Let an editor leave; what it showed waits for another."""
        if editor not in self._attached:
            return
        self._attached.remove(editor)
        self._joined.remove(editor)
        for number in [number for number, shower in self._shown_by.items() if shower is editor]:
            del self._shown_by[number]
        if (path := self._selected_in.pop(editor, None)) is not None:
            self._events.put_nowait(FileEvent("closed", path))  # with the editor goes what is selected in it
        await self._let_go(editor)
        self._changed()
        await self._offer_diffs()

    def open_files(self) -> Answer[Sequence[OpenFile]]:
        """What is open in any of them; the file of the one with the newest focus is the active one."""
        if len(self._attached) > 1:
            return self._united_files()
        return self._first.open_files()

    def current_file(self) -> Answer[OpenFile | None]:
        """The file the user looks at, in the editor with the newest focus."""
        return self._first.current_file()

    def selection(self) -> Answer[Selection | None]:
        """What is selected in the editor with the newest focus."""
        return self._able("selection").selection()

    def diagnostics(self, path: str | None) -> Answer[Sequence[Diagnostic]]:
        """The problems that the editor with the newest focus knows."""
        return self._able("diagnostics").diagnostics(path)

    def open_file(self, path: str, where: Range | None, *, focus: bool) -> Answer[None]:
        """Open a file in the editor with the newest focus."""
        return self._first.open_file(path, where, focus=focus)

    async def save_file(self, path: str) -> bool:
        """Save a file in whichever editor has it open."""
        return await self._any(path, lambda editor: editor.save_file(path))

    async def close_file(self, path: str) -> bool:
        """Close a file in whichever editor has it open."""
        return await self._any(path, lambda editor: editor.close_file(path))

    async def show_diff(self, diff: Diff) -> None:
        """Show a diff in the editor with the newest focus that can; it stays ours until decided or closed."""
        self._diffs[diff.id] = diff
        await self._show(diff)

    async def close_diff(self, diff_id: int) -> None:
        """Take a diff off the screen, wherever it is shown."""
        shower = self._shown_by.get(diff_id)
        self._forget(diff_id)
        if shower is not None:
            await settled(shower.close_diff(diff_id))

    def read_buffer(self, path: str) -> Answer[str | None]:
        """The unsaved text of a file, in whichever editor has it."""
        able = [editor for editor in self._attached if "dirty" in editor.features]
        return able[0].read_buffer(path) if len(able) == 1 else _first_text(able, path)

    async def file_changed(self, path: str) -> None:
        """Tell every editor that a client has written a file."""
        for editor in self._everyone():
            await settled(editor.file_changed(path))

    async def events(self) -> AsyncIterator[Event]:
        """What the user does, in any of them."""
        while True:
            yield await self._events.get()

    # -- inside --------------------------------------------------------------------------------------------

    @property
    def _first(self) -> Editor:
        return self._attached[0] if self._attached else self._fallback

    def _everyone(self) -> Iterator[Editor]:
        yield from self._attached
        yield self._fallback

    def _able(self, feature: Feature) -> Editor:
        return next((editor for editor in self._everyone() if feature in editor.features), self._first)

    async def _any(self, path: str, ask: Callable[[Editor], Answer[bool]]) -> bool:
        """Ask every editor until one says yes; who cannot do it at all is passed over."""
        refusal: Unsupported | None = None
        for editor in self._attached or [self._fallback]:
            try:
                if await settled(ask(editor)):
                    return True
            except Unsupported as error:
                refusal = error
        if refusal is not None and len(self._attached) <= 1:
            raise refusal
        logger.debug("no editor has %s open", path)
        return False

    async def _united_files(self) -> Sequence[OpenFile]:
        found: dict[str, OpenFile] = {}
        for editor in self._attached:
            for file in await settled(editor.open_files()):
                active = file.active and editor is self._first
                found.setdefault(file.path, msgspec.structs.replace(file, active=active))
        return list(found.values())

    async def _show(self, diff: Diff) -> None:
        shower = self._able("diff")
        self._shown_by[diff.id] = shower
        await settled(shower.show_diff(diff))

    def _forget(self, diff_id: int) -> None:
        self._diffs.pop(diff_id, None)
        self._shown_by.pop(diff_id, None)

    async def _offer_diffs(self) -> None:
        """Have what nobody shows any more shown by somebody else, if there is one."""
        waiting = [diff for number, diff in self._diffs.items() if number not in self._shown_by]
        for diff in waiting if "diff" in self.features else ():
            try:
                await self._show(diff)
            except Exception as error:  # noqa: BLE001 - one editor's failure is no reason to lose the diff
                self._shown_by.pop(diff.id, None)
                logger.info("a diff waits for another editor: %s", error)

    def _listen(self, editor: Editor) -> None:
        self._listening[editor] = asyncio.create_task(self._pass_on(editor))

    async def _pass_on(self, editor: Editor) -> None:
        try:
            async for event in editor.events():
                if self._is_its_business(editor, event):
                    self._notice(editor, event)
                    self._events.put_nowait(event)
        except BridgeError as error:
            logger.info("%s is gone: %s", editor.name, error)
        except Exception:
            logger.exception("the events of %s ended badly", editor.name)
        if not self._closing:
            await self.detach(editor)

    def _is_its_business(self, editor: Editor, event: Event) -> bool:
        """Whether an editor may say this: a diff is decided only where it is shown."""
        return not isinstance(event, DiffDecided) or self._shown_by.get(event.diff, editor) is editor

    def _notice(self, editor: Editor, event: Event) -> None:
        focused = isinstance(event, SelectionChanged) or (isinstance(event, FileEvent) and event.kind == "focused")
        if focused and editor in self._attached:
            self._attached.remove(editor)
            self._attached.insert(0, editor)
        if isinstance(event, SelectionChanged) and event.selection is not None:
            self._selected_in[editor] = event.selection.path
        if isinstance(event, DiffDecided):
            self._forget(event.diff)

    async def _let_go(self, editor: Editor) -> None:
        listening = self._listening.pop(editor, None)
        if listening is not None and listening is not asyncio.current_task():
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        try:
            await editor.close()
        except Exception:
            logger.exception("%s did not close well", editor.name)


async def _first_text(editors: Sequence[Editor], path: str) -> str | None:
    for editor in editors:
        text = await settled(editor.read_buffer(path))
        if text is not None:
            return text
    return None
