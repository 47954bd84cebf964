"""The tap: where the conversations with clients can be listened to, and recorded.

1. Every connection has a line. What passes over it is offered to the listeners in the order of the wire.
2. While nobody listens, a message costs one look at an empty set.
3. The token is masked before anything is offered, however it is spelled, and so are headers that carry a secret.
4. A recording may be slower than the wire. What does not fit into its limit is lost, and the recording says so at
   the place where it happened: ``{"dir": "LOST", "count": 3}``.

It does not know what the messages mean, or who wants a recording.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from msgspec import Raw

from ide_bridge.wire.peer import Peer

__all__ = ["Line", "Recording", "Tap"]

MASK = "…"
RECORDING_LIMIT = 128 * 1024 * 1024
_SECRET_HEADERS = {"x-claude-code-ide-authorization", "authorization", "proxy-authorization", "cookie"}

Details = Mapping[str, object]
Listener = Callable[[str, int, Details], None]
"""Told the direction (or CONNECT, OPEN, CLOSE), the number of the connection, and what there is to say."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_TOKEN_LETTER = rb"u00(3[0-9]|6[1-6])"  # a token is made of hexadecimal digits
_SPELLED_OUT = re.compile(rb"\\" + _TOKEN_LETTER)
_ESCAPE = re.compile(rb"\\(?:" + _TOKEN_LETTER + rb"|.)", re.DOTALL)


class Tap:
    """Every line of a bridge, and who listens."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._listeners: set[Listener] = set()
        self._open: dict[int, Line] = {}

    def connect(self, number: int, path: str, headers: Mapping[str, str], subprotocol: str | None) -> "Line":
        """A client was let in; what it says and is told goes over this line."""
        line = Line(number, self._token, self._listeners, self._open, subprotocol)
        if self._listeners:
            shown = {name: self._shown(name, value) for name, value in headers.items()}
            line.offer("CONNECT", {"path": path, "headers": shown})
            line.offer("OPEN", {"subprotocol": subprotocol})
        return line

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Offer everything from now on; call what is given back to hear no more.

        Who is connected already is offered as OPEN, without the CONNECT that nobody heard.
        """
        self._listeners.add(listener)
        for line in self._open.values():
            listener("OPEN", line.number, {"subprotocol": line.subprotocol})
        return lambda: self._listeners.discard(listener)

    def _shown(self, name: str, value: str) -> str:
        if name.lower() in _SECRET_HEADERS:
            return MASK
        return value.encode(errors="replace").decode().replace(self._token, MASK)


class Line:
    """One connection as the tap sees it."""

    def __init__(
        self,
        number: int,
        token: str,
        listeners: set[Listener],
        lines: "dict[int, Line]",
        subprotocol: str | None,
    ) -> None:
        self.number = number
        self.subprotocol = subprotocol
        self._token = token
        self._listeners = listeners
        self._lines = lines
        lines[number] = self

    def received(self, message: bytes) -> None:
        """The client says this."""
        if self._listeners:
            self.offer("C>S", _shown_message(message, self._token))

    def sent(self, message: bytes) -> None:
        """The client is told this."""
        if self._listeners:
            self.offer("S>C", _shown_message(message, self._token))

    def close(self, code: int | None) -> None:
        """The connection is gone; the second time this says nothing."""
        if self._lines.pop(self.number, None) is not None:
            self.offer("CLOSE", {"code": code})

    def offer(self, direction: str, details: Details) -> None:
        """Tell everyone who listens."""
        for listener in tuple(self._listeners):
            listener(direction, self.number, details)


class Recording:
    """One listener far away: sends it ``wire`` notifications as fast as it takes them."""

    def __init__(self, tap: Tap, send: Callable[[bytes], Awaitable[None]], limit: int = RECORDING_LIMIT) -> None:
        self._send = send
        self._limit = limit
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._start = time.monotonic()
        self._news = asyncio.Event()
        self._ending = False
        self._stop_listening = tap.listen(self._take)
        self._posting = asyncio.create_task(self._post())

    async def finish(self) -> None:
        """Listen no more, and return when all that was heard is sent."""
        self._stop_listening()
        self._ending = True
        self._news.set()
        await asyncio.wait([self._posting])

    def abandon(self) -> None:
        """Whoever wanted it is gone."""
        self._stop_listening()
        self._posting.cancel()

    def _take(self, direction: str, number: int, details: Details) -> None:
        record = _encode({"t": self._now(), "dir": direction, "conn": number, **details})
        if self._waiting and self._size + len(record) > self._limit:
            self._lost += 1
            return
        self._own_up()
        self._waiting.append(record)
        self._size += len(record)
        self._news.set()

    def _own_up(self) -> None:
        """Tell where messages are missing, and how many."""
        if self._lost:
            self._waiting.append(_encode({"t": self._now(), "dir": "LOST", "count": self._lost}))
            self._size += len(self._waiting[-1])
            self._lost = 0

    async def _post(self) -> None:
        try:
            while self._waiting or not self._ending:
                await self._news.wait()
                await self._post_waiting()
        except ConnectionError:
            self._stop_listening()

    async def _post_waiting(self) -> None:
        self._news.clear()
        while self._waiting:
            record = self._waiting.popleft()
            await self._send(Peer().notification("wire", Raw(record)))
            self._size -= len(record)
            if not self._waiting:
                self._own_up()

    def _now(self) -> int:
        return round((time.monotonic() - self._start) * 1000)


def _shown_message(message: bytes, token: str) -> Details:
    """A message on one line: as ``msg`` with all its oddities if it is JSON, else as the text ``raw``."""
    try:
        _decode(message)  # the formatter alone lets broken strings pass
        line = msgspec.json.format(message, indent=-1)
    except (ValueError, RecursionError):
        return {"raw": _masked(message, token).decode(errors="replace")}
    return {"msg": Raw(_masked(line, token))}


def _masked(text: bytes, token: str) -> bytes:
    if _SPELLED_OUT.search(text):
        plain = _ESCAPE.sub(_unescaped, text)
        text = plain if token.encode() in plain else text
    return text.replace(token.encode(), MASK.encode())


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode()) if escape[1] else escape[0]
