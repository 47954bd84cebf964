"""Reaching a running bridge: which one serves a folder, and asking it over its private socket.

Plain blocking sockets: a command asks one thing and ends, or listens until it has heard enough.

It does not know what is asked.
"""

import json
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

import ide_bridge
from ide_bridge.errors import Disconnected, RemoteError, SetupProblem
from ide_bridge.fronts.claim import Running, running_bridges
from ide_bridge.home import open_regular, private_folder, state_folder, unusable

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Conversation", "ask", "find", "find_or_start", "here", "workspace_of"]

_START_SECONDS = 15.0
_DETACHED_LINGER = 300
_POLL_SECONDS = 0.02
_CHUNK = 256 * 1024
# The current folder may be anyone's, and must not be where Python looks for programs: ours is named instead.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import ide_bridge; del sys.path[0]; "
    "from ide_bridge.cli import main; sys.exit(main())"
)
_LARGEST = 8  # a message can be told of in a message several times as long


def here() -> str:
    """The current folder."""
    try:
        return os.getcwd()
    except OSError:
        raise SetupProblem("The current folder was deleted; change to another one.") from None


def find(folder: str) -> Running | None:
    """The running bridge whose workspace contains the folder; of several, the innermost."""
    real = os.path.realpath(folder)
    fitting = [
        (len(root), bridge)
        for bridge in running_bridges()
        for root in bridge.folders
        if real == root or real.startswith(root.rstrip(os.sep) + os.sep)
    ]
    return max(fitting, key=lambda found: found[0])[1] if fitting else None


def find_or_start(folder: str) -> Running:
    """The bridge of the folder; started, apart from this terminal, when none runs."""
    workspace = workspace_of(folder)
    log = os.path.join(private_folder(state_folder()), "detached.log")
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        running = find(folder)
        if running is not None and os.path.exists(str(running["socket"])):
            return running
        if running is None and child is None:
            child = _start_detached(workspace, log)
        elif running is None and child is not None and child.poll() is not None:
            break
        time.sleep(_POLL_SECONDS)  # its own start, or that of another who came first
    with open(log, encoding="utf-8", errors="replace") as output:
        why = output.read().strip().removeprefix("ide-bridge: ")
    why = why or f"it did not say why; see what it says to: ide-bridge serve '{workspace}'"
    raise SetupProblem(f"The bridge for {workspace} could not be started: {why}")


def _start_detached(workspace: str, log: str) -> "subprocess.Popen[bytes]":
    package = os.path.dirname(os.path.dirname(os.path.abspath(ide_bridge.__file__)))
    serve = ["serve", workspace, "--linger", str(_DETACHED_LINGER)]
    try:
        with open(open_regular(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, package, *serve],
                cwd=os.path.dirname(log),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise unusable(error.filename or log, error) from None


def workspace_of(folder: str) -> str:
    """The git top level above a folder, else the folder itself."""
    real = os.path.realpath(folder)
    current = real
    while not os.path.lexists(os.path.join(current, ".git")):
        parent = os.path.dirname(current)
        if parent == current:
            return real
        current = parent
    return current


def ask(bridge: Running, method: str, params: object = None, *, seconds: float = 30) -> object:
    """Ask a running bridge; give its result, or raise its error."""
    with Conversation(bridge, seconds=seconds) as conversation:
        return conversation.request(method, params)


class Conversation:
    """A line to a running bridge that may stay open: it also tells what the bridge says unasked."""

    def __init__(self, bridge: Running, *, seconds: float | None = None) -> None:
        from ide_bridge.wire.framing import MESSAGE_LIMIT, ContentLength

        self._bridge = bridge
        self._framing = ContentLength(_LARGEST * MESSAGE_LIMIT)
        self._last_id = 0
        self._unread: list[bytes] = []
        self._line = socket.socket(socket.AF_UNIX)
        self._line.settimeout(seconds)
        try:
            self._line.connect(str(bridge["socket"]))
        except OSError as error:
            self._line.close()
            raise self._silent(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._line.close()

    def request(self, method: str, params: object = None) -> object:
        """Ask, and wait for the result; what else is said meanwhile is kept for `messages`."""
        asked = self.send(method, params)
        for frames in self._received():
            for number, frame in enumerate(frames):
                if (answer := json.loads(frame)).get("id") == asked:
                    self._unread += frames[number + 1 :]
                    return _result(answer)
                self._unread.append(frame)
        raise self._silent(OSError("it closed the connection"))

    def send(self, method: str, params: object = None) -> int:
        """Ask without waiting; gives the id that the answer will have."""
        self._last_id += 1
        given = {} if params is None else {"params": params}
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method} | given
        try:
            self._line.sendall(self._framing.encode(json.dumps(request).encode()))
        except OSError as error:
            raise self._silent(error) from None
        return self._last_id

    def messages(self) -> "Iterator[list[bytes]]":
        """What the bridge says, as many at a time as have come, until it is gone."""
        unread, self._unread = self._unread, []
        yield unread
        yield from self._received()

    def _received(self) -> "Iterator[list[bytes]]":
        try:
            while data := self._line.recv(_CHUNK):
                yield [frame for frame in self._framing.feed(data) if isinstance(frame, bytes)]
        except OSError as error:
            raise self._silent(error) from None

    def _silent(self, error: OSError) -> Disconnected:
        return Disconnected(f"The bridge with pid {self._bridge.pid} does not answer: {error}.")


def _result(answer: dict[str, Any]) -> object:
    if "error" in answer:
        raise RemoteError(answer["error"]["code"], answer["error"]["message"])
    result: object = answer.get("result")
    return result
