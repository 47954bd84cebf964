"""The links: plug-ins that attach over the private socket.

A plug-in's first request is ``hello``. Its answer leaves before anything else is asked of the editor, so that
whoever waits for it sees it first. What a plug-in tells before it has said hello is ignored.

It does not know what an attached editor is asked, or what its folders are good for.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from ide_bridge.editor.link import (
    LINK_VERSION,
    DecidedParams,
    Hello,
    Line,
    LinkEditor,
    MentionedParams,
    PathParams,
    PathsParams,
    SelectionParams,
)
from ide_bridge.editor.switch import EditorSwitch
from ide_bridge.errors import InvalidParams, InvalidRequest
from ide_bridge.fronts.client import Client
from ide_bridge.wire.dispatch import Method

__all__ = ["Links"]

logger = logging.getLogger(__name__)

Tell = Callable[[LinkEditor, Any], None]


class Links:
    """Everyone who has said hello."""

    def __init__(
        self,
        switch: EditorSwitch,
        line: Callable[[Client], Line],
        welcome: Callable[[], dict[str, object]],
        changed: Callable[[], None],
    ) -> None:
        self._switch = switch
        self._line = line
        self._welcome = welcome
        self._changed = changed
        self._editors: dict[Client, LinkEditor] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def methods(self) -> dict[str, Method[Client, Any]]:
        """What a plug-in may ask and tell."""
        return {
            "hello": Method(Hello, self._hello),
            "selectionChanged": self._event(SelectionParams, LinkEditor.selection_changed),
            "fileOpened": self._event(PathParams, _file_event("opened")),
            "fileClosed": self._event(PathParams, _file_event("closed")),
            "fileSaved": self._event(PathParams, _file_event("saved")),
            "fileFocused": self._event(PathParams, _file_event("focused")),
            "diagnosticsChanged": self._event(PathsParams, LinkEditor.diagnostics_changed),
            "mentioned": self._event(MentionedParams, LinkEditor.mentioned),
            "diffDecided": self._event(DecidedParams, LinkEditor.diff_decided),
        }

    @property
    def folders(self) -> Iterator[str]:
        """The folders that the attached editors have brought along."""
        for editor in self._editors.values():
            yield from (os.path.realpath(folder) for folder in editor.folders if os.path.isdir(folder))

    def tell_clients(self, clients: Sequence[object]) -> None:
        """Tell every editor who is connected."""
        for editor in self._editors.values():
            editor.tell_clients(clients)

    def tell(self, level: Literal["error", "warning", "info"], text: str) -> None:
        """Have every editor show a sentence."""
        for editor in self._editors.values():
            editor.tell(level, text)

    def notify(self, method: str, params: object) -> None:
        """Tell every plug-in something that an editor itself need not understand."""
        for client in self._editors:
            self._line(client).notify(method, params)

    def goodbye(self) -> None:
        """Tell every relay that we stop on purpose."""
        for client in self._editors:
            self._line(client).notify("goodbye")

    def left(self, client: Client) -> None:
        """The line to a plug-in, or to anybody else, has ended."""
        editor = self._editors.pop(client, None)
        if editor is not None:
            editor.leave()
            self._changed()

    async def close(self) -> None:
        """Leave nothing behind."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hello(self, client: Client, hello: Hello) -> dict[str, object]:
        hello.check()
        if client in self._editors:
            raise InvalidRequest("You have said hello already.")
        if not hello.editor.strip():
            raise InvalidParams("Say in `editor` what you are called.")
        editor = LinkEditor(hello, self._line(client))
        client.name = client.context.client_name = editor.name
        self._editors[client] = editor
        task = asyncio.create_task(self._attach(client, editor))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return {**self._welcome(), "link": LINK_VERSION}

    async def _attach(self, client: Client, editor: LinkEditor) -> None:
        if client not in self._editors:
            return
        self._changed()
        await self._switch.attach(editor)

    def _event(self, params: type[msgspec.Struct], tell: Tell) -> Method[Client, Any]:
        def call(client: Client, told: msgspec.Struct) -> None:
            editor = self._editors.get(client)
            if editor is None:
                raise InvalidRequest("Say hello first.")
            tell(editor, told)

        return Method(params, call)


def _file_event(kind: Literal["opened", "closed", "saved", "focused"]) -> Tell:
    return lambda editor, params: editor.file_event(kind, params)
