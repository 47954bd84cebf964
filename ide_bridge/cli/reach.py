"""Reaching a running bridge: which one serves a folder, and asking it over its private socket.

Plain blocking sockets: a command asks one thing and ends.

It does not know what is asked.
"""

import json
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from ide_bridge.errors import Disconnected, RemoteError, SetupProblem
from ide_bridge.fronts.claim import Running, running_bridges
from ide_bridge.home import private_folder, state_folder

if TYPE_CHECKING:
    from ide_bridge.wire.framing import ContentLength

__all__ = ["ask", "find", "find_or_start", "workspace_of"]

_START_SECONDS = 15.0
_DETACHED_LINGER = 300
_POLL_SECONDS = 0.02


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
    if (running := find(folder)) is not None:
        return running
    workspace = workspace_of(folder)
    log = os.path.join(private_folder(state_folder()), "detached.log")
    command = [sys.executable, "-m", "ide_bridge", "serve", workspace, "--linger", str(_DETACHED_LINGER)]
    with open(log, "wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (running := find(folder)) is not None and os.path.exists(str(running["socket"])):
            return running
        if child.poll() is not None:
            break
        time.sleep(_POLL_SECONDS)
    with open(log, encoding="utf-8", errors="replace") as output_text:
        why = output_text.read().strip().removeprefix("ide-bridge: ") or "it did not come up in time"
    raise SetupProblem(f"The bridge for {workspace} could not be started: {why}")


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
    from ide_bridge.wire.framing import ContentLength

    request = {"jsonrpc": "2.0", "id": 1, "method": method} | ({} if params is None else {"params": params})
    framing = ContentLength()
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(seconds)
        try:
            line.connect(str(bridge["socket"]))
            line.sendall(framing.encode(json.dumps(request).encode()))
            answer = _receive(line, framing)
        except OSError as error:
            raise Disconnected(f"The bridge with pid {bridge.pid} does not answer: {error}.") from None
    if "error" in answer:
        raise RemoteError(answer["error"]["code"], answer["error"]["message"])
    result: object = answer.get("result")
    return result


def _receive(line: socket.socket, framing: "ContentLength") -> dict[str, Any]:
    while data := line.recv(65536):
        for frame in framing.feed(data):
            if isinstance(frame, bytes):
                answer: dict[str, Any] = json.loads(frame)
                return answer
    raise OSError("it closed the connection")
