"""The stages on which editors are held to the contract: in memory, a plain folder, and the real ones.

A real editor attaches as it does at home: its plug-in starts ``ide-bridge attach``, which finds the private socket
that we offer. It does not know what is checked.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

from ide_bridge.conform.examine import Stage
from ide_bridge.conform.people import Nobody
from ide_bridge.conform.stages import Offer, ProgramStage
from ide_bridge.conform.subject import Subject
from ide_bridge.editor.folder import FolderEditor
from ide_bridge.workspace.workspace import Workspace
from tests.fakes import plugin_process
from tests.fakes.folder_person import FolderPerson
from tests.fakes.memory_person import BufferEditor, MemoryPerson

__all__ = ["EDITORS", "stage_for"]

EDITORS = ("memory", "folder", "example", "vim", "nvim", "newer_nvim", "emacs")
COMMAND = [str(Path(sys.executable).with_name("ide-bridge"))]
HELLO_SECONDS = 30.0


def stage_for(name: str, root: Path, environment: Mapping[str, str]) -> Stage:
    """The stage of one editor."""
    if name == "example":
        return ProgramStage([sys.executable, plugin_process.__file__], root, Nobody())
    kinds = {"memory": MemoryStage, "folder": FolderStage}
    return kinds[name](root) if name in kinds else DriverStage(name, root, environment)


class MemoryStage:
    """An editor in this very process."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._present: Subject | None = None

    async def subject(self) -> Subject:
        if self._present is None or self._present.gone:
            editor = BufferEditor()
            self._present = Subject(editor, MemoryPerson(editor), self._root)
        return self._present

    async def close(self) -> None:
        if self._present is not None:
            await self._present.close()


class FolderStage:
    """A plain folder that is watched."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._workspace = Workspace(root)
        self._present: Subject | None = None

    async def subject(self) -> Subject:
        if self._present is None:
            editor = FolderEditor(self._workspace.listing)
            await editor.start()
            await self._workspace.start()
            self._present = Subject(editor, FolderPerson(), self._root)
        return self._present

    async def close(self) -> None:
        if self._present is not None:
            await self._present.close()
            await self._present.editor.close()
        await self._workspace.close()


class DriverStage:
    """A real editor, with somebody who presses its keys."""

    def __init__(self, name: str, root: Path, environment: Mapping[str, str]) -> None:
        self._name = name
        self._root = Path(os.path.realpath(root))
        self._environment = environment
        self._offer: Offer | None = None
        self._running = AsyncExitStack()
        self._present: Subject | None = None

    async def subject(self) -> Subject:
        if self._present is None or self._present.gone:
            await self._leave()
            self._present = await self._meet()
        return self._present

    async def close(self) -> None:
        await self._leave()
        if self._offer is not None:
            await self._offer.close()

    async def _meet(self) -> Subject:
        start = _driver(self._name)
        if self._offer is None:
            self._offer = Offer(self._root)
            await self._offer.open()
        person = await self._running.enter_async_context(start(self._root, self._environment, COMMAND))
        host = await self._offer.next_host(HELLO_SECONDS)
        self._running.push_async_callback(host.close)
        return Subject(await host.attached(HELLO_SECONDS), person, self._root, host)

    async def _leave(self) -> None:
        if self._present is not None:
            await self._present.close()
            self._present = None
        await self._running.aclose()
        self._running = AsyncExitStack()


def _driver(name: str):
    return getattr(import_module(f"tests.fakes.{name}"), name)
