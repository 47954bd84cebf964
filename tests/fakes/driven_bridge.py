"""A real bridge whose editor does what the test says: ``ide-bridge serve --editor driven``, a process of its own.

The editor is an adapter found as anybody's is, through an entry point. It takes its orders from a Unix socket,
one JSON array per line, and answers each with one line.

It does not know clients.
"""

import asyncio
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ide_bridge.model import Diagnostic, Diff, Position, Range
from tests.fakes.bridge_process import PATIENCE, BridgeProcess
from tests.fakes.memory_editor import MemoryEditor

__all__ = ["DrivenBridge", "DrivenEditor"]

ORDERS = "DRIVEN_EDITOR_SOCKET"
POLL = 0.02
START = Range(Position(0, 0), Position(0, 0))


class DrivenEditor(MemoryEditor):
    """An editor in memory whose user sits at the other end of a socket."""

    def __init__(self) -> None:
        super().__init__()
        self._later: dict[str, list[Diagnostic]] = {}

    async def start(self) -> None:
        await super().start()
        self._server = await asyncio.start_unix_server(self._obey, os.environ[ORDERS])

    async def close(self) -> None:
        self._server.close()
        await super().close()

    def file_changed(self, path: str) -> None:
        """Load it again, and check it as an editor with a linter does."""
        super().file_changed(path)
        if path in self._later:
            self.find(path, *self._later.pop(path))

    async def _obey(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while order := await reader.readline():
                writer.write(msgspec.json.encode(self._do(msgspec.json.decode(order))) + b"\n")
                await writer.drain()
        finally:
            writer.close()

    def _do(self, order: object) -> object:
        match order:
            case ["select", str(path), str(text), where]:
                self.select(path, text, msgspec.convert(where, Range))
            case ["shut", str(path)]:
                self.shut(path)
            case ["mention", str(path), start, end]:
                self.mention(path, start, end)
            case ["keep", int(number), contents]:
                self.keep(self.diffs[number], contents)
            case ["reject", int(number)]:
                self.reject(self.diffs[number])
            case ["find", str(path), found]:
                self.find(path, *msgspec.convert(found, list[Diagnostic]))
            case ["find later", str(path), found]:
                self._later[path] = msgspec.convert(found, list[Diagnostic])
            case ["diffs"]:
                return list(self.diffs.values())
            case _:
                raise ValueError(order)
        return None


class DrivenBridge(BridgeProcess):
    """Serves a folder, with an editor that is called Memory; the verbs are what its user does."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        home = Path(environment["HOME"])
        orders = home / "editor.sock"
        driven = {"PYTHONPATH": f"{_installed(home)}:{Path(__file__).parents[2]}", ORDERS: str(orders)}
        super().__init__(folder, {**environment, **driven}, "--editor", "driven")
        self._channel = socket.socket(socket.AF_UNIX)
        self._channel.settimeout(PATIENCE)
        self._channel.connect(str(orders))
        self._answers = self._channel.makefile("rb")

    def stop(self, *by: "signal.Signals") -> int:
        """Ends the bridge by a signal, as every bridge ends."""
        if by or True:
            ...
