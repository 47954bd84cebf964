"""Reaching a running bridge: asking it over its private socket.

Plain blocking sockets: a command asks one thing and ends, or listens until it has heard enough.

It does not know what is asked.
"""

import json
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from ide_bridge.errors import Disconnected, RemoteError, SetupProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ide_bridge.running import Running

__all__ = ["Conversation", "ask", "here"]

_CHUNK = 256 * 1024
_LARGEST = 8  # a message can be told of in a message several times as long


def here() -> str:
    """The current folder."""
    try:
        return os.getcwd()
    except OSError:
        raise SetupProblem("The current folder was deleted; change to another one.") from None


def ask(bridge: "Running", method: str, params: object = None, *, seconds: float = 30) -> object:
    """Ask a running bridge; give its result, or raise its error."""
    with Conversation(bridge, seconds=seconds) as conversation:
        return conversation.request(method, params)


class Conversation:
    """A line to a running bridge that may stay open: it also tells what the bridge says unasked."""

    def __init__(self, bridge: "Running", *, seconds: float | None = None) -> None:
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

    def hang_up(self) -> None:
        """Let whoever reads from this line, in another thread, see its end."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
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
