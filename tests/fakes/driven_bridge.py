"""A real bridge whose editor does what the test says: ``ide-bridge serve --editor driven``, a process of its own.

The editor is an adapter found as anybody's is, through an entry point. It takes its orders through a Unix socket:
one JSON array in a line for each connection, and one value as the answer.

It does not know clients.
"""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ide_bridge.model import Diagnostic, Diff, Position, Range
from tests.fakes.bridge_process import PATIENCE, BridgeProcess
from tests.fakes.memory_editor import MemoryEditor

__all__ = ["DrivenBridge", "DrivenEditor"]

ORDERS = "DRIVEN_EDITOR_SOCKET"
REPOSITORY = Path(__file__).parents[2]
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
        order = msgspec.json.decode(await reader.readline())
        writer.write(msgspec.json.encode(self._do(order)))
        await writer.drain()
        writer.close()

    def _do(self, order: object) -> object:
        match order:
            case ["diffs"]:
                return list(self.diffs.values())
            case ["reloaded"]:
                return self.reloaded
            case ["keep all"]:
                return [self.keep(diff) for diff in list(self.diffs.values())]
            case _:
                self._act(order)
                return None

    def _act(self, order: object) -> None:
        match order:
            case ["select", str(path), str(text), where]:
                self.select(path, text, msgspec.convert(where, Range))
            case ["shut", str(path)]:
                self.shut(path)
            case ["mention", str(path), int() | None as start, int() | None as end]:
                self.mention(path, start, end)
            case ["keep", int(number), str() | None as contents]:
                self.keep(self.diffs[number], contents)
            case ["reject", int(number)]:
                self.reject(self.diffs[number])
            case ["find", str(path), found]:
                self.find(path, *msgspec.convert(found, list[Diagnostic]))
            case ["find later", str(path), found]:
                self._later[path] = msgspec.convert(found, list[Diagnostic])
            case _:
                raise ValueError(order)


class DrivenBridge(BridgeProcess):
    """Serves a folder, with an editor that is called Memory; the verbs are what its user does."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        home = Path(environment["HOME"])
        self._orders = home / "editor.sock"
        driven = {"PYTHONPATH": f"{_installed(home)}:{REPOSITORY}", ORDERS: str(self._orders)}
        super().__init__(folder, {**environment, **driven}, "--editor", "driven")

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def select(self, file: Path, text: str, where: Range) -> None:
        """Select something; it is the test that says what text lies there."""
        self._order("select", str(file), text, where)

    def look_at(self, file: Path) -> None:
        """Put the cursor into a file."""
        self.select(file, "", START)

    def shut(self, file: Path) -> None:
        """Close a file."""
        self._order("shut", str(file))

    def mention(self, file: Path, start_line: int | None = None, end_line: int | None = None) -> None:
        """Hand a file, or lines of it, to a client."""
        self._order("mention", str(file), start_line, end_line)

    def find(self, file: Path, *problems: Diagnostic) -> None:
        """Find these problems in a file, and no others."""
        self._order("find", str(file), problems)

    def find_later(self, file: Path, *problems: Diagnostic) -> None:
        """Find these problems in a file once a client has written it."""
        self._order("find later", str(file), problems)

    def diffs(self) -> list[Diff]:
        """The diffs on the screen."""
        return msgspec.convert(self._order("diffs"), list[Diff])

    def wait_for_diff(self, file: Path) -> Diff:
        """The diff of a file, as soon as it is on the screen."""
        self._wait_until(lambda: self._shows(file), f"no diff of {file}")
        return next(diff for diff in self.diffs() if diff.path == str(file))

    def wait_for_no_diff(self, file: Path) -> None:
        """Returns when no diff of the file is on the screen any more."""
        self._wait_until(lambda: not self._shows(file), f"still a diff of {file}")

    def wait_for_reload(self, file: Path) -> None:
        """Returns when the editor was told that a client has written the file."""
        self._wait_until(lambda: str(file) in msgspec.convert(self._order("reloaded"), list[str]), "not told")

    def keep(self, diff: Diff, contents: str | None = None) -> None:
        """Keep a diff, perhaps changed."""
        self._order("keep", diff.id, contents)

    def keep_next(self) -> None:
        """Keep what is, or comes, on the screen without looking at it."""
        self._wait_until(lambda: bool(self._order("keep all")), "no diff")

    def reject(self, diff: Diff) -> None:
        """Close the window of a diff."""
        self._order("reject", diff.id)

    def _shows(self, file: Path) -> bool:
        return any(diff.path == str(file) for diff in self.diffs())

    def _wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"{otherwise} after {PATIENCE:g} s; log:\n{self.log()}"
            time.sleep(POLL)

    def _order(self, *words: object) -> object:
        with socket.socket(socket.AF_UNIX) as channel, channel.makefile("rb") as answers:
            channel.settimeout(PATIENCE)
            channel.connect(str(self._orders))
            channel.sendall(msgspec.json.encode(words) + b"\n")
            answer = answers.read()
        assert answer, f"the editor did not understand {words}; log:\n{self.log()}"
        return msgspec.json.decode(answer)


def _installed(home: Path) -> Path:
    """A folder on the path in which the adapter is installed, as pip would leave it."""
    site = home / "site"
    info = site / "driven-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: driven\nVersion: 1.0\n", encoding="utf-8")
    entry = f"[ide_bridge.editors]\ndriven = {__name__}:DrivenEditor\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")
    return site
