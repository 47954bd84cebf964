"""A line to a bridge on which a session is watched: events come, and answers to what was asked meanwhile.

It can be waited for together with other things, such as a keyboard. An event of a kind that is not known here
comes from a newer bridge: it has no meaning, but keeps its words.

It does not know who watches.
"""

import selectors
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from ide_bridge.cli.reach import Conversation
from ide_bridge.cli.session.reach import Session, as_session
from ide_bridge.errors import Disconnected
from ide_bridge.session import events

if TYPE_CHECKING:
    from ide_bridge.cli.session.reach import Known

__all__ = ["AnyEvent", "Line", "Reply", "Told"]

_CHUNK = 256 * 1024
_SECONDS = 30
_NEVER = 2**53  # the number of an event that no session will reach

AnyEvent = (
    events.Prompt
    | events.Text
    | events.Said
    | events.Thinking
    | events.Tool
    | events.ToolResult
    | events.ApprovalAsked
    | events.ApprovalClosed
    | events.State
    | events.Result
    | events.Notice
    | events.Ended
    | events.Message
)


class Told(msgspec.Struct, frozen=True):
    """One event of the session, and its words."""

    number: int
    event: AnyEvent | None
    words: Raw


class Reply(msgspec.Struct, frozen=True):
    """The answer to a request; `problem` says why it failed."""

    id: int
    problem: str | None = None


class _Error(msgspec.Struct):
    message: str


class _SessionEvent(msgspec.Struct):
    number: int
    event: Raw


class _Frame(msgspec.Struct):
    id: int | None = None
    method: str | None = None
    params: Raw = Raw(b"")
    error: _Error | None = None


class _Watched(msgspec.Struct):
    session: dict[str, object]
    next: int


_decode_frame = msgspec.json.Decoder(_Frame).decode
_decode_told = msgspec.json.Decoder(_SessionEvent).decode
_events_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class Line(Conversation):
    """Watches one session: from its beginning, as much of it as the bridge has kept, or only what comes."""

    def __init__(self, known: "Known", *, raw: bool = False, only_new: bool = False) -> None:
        super().__init__(known.bridge, seconds=_SECONDS)
        try:
            asked = {"session": known.session.session, "raw": raw, **({"from": _NEVER} if only_new else {})}
            watched = msgspec.convert(self.request("watchSession", asked), _Watched)
        except BaseException:
            self.close()
            raise
        self.session: Session = as_session(watched.session)
        self.next = watched.next
        """The first event that is not of the past."""

    def fileno(self) -> int:
        """What a selector waits for."""
        return self._line.fileno()

    def close(self) -> None:
        """Let go of the bridge; the session goes on."""
        self._line.close()

    def waiting(self) -> list[Told | Reply]:
        """What came together with the answer to the first request."""
        frames, self._unread = self._unread, []
        return _heard(frames)

    def receive(self) -> list[Told | Reply]:
        """What has come; called when the selector says so. Raises ``Disconnected`` when the bridge is gone."""
        try:
            data = self._line.recv(_CHUNK)
        except OSError as error:
            raise self._silent(error) from None
        if not data:
            raise self._silent(OSError("it closed the connection"))
        return _heard([frame for frame in self._framing.feed(data) if isinstance(frame, bytes)])

    def told(self, seconds: float | None = None) -> Iterator[Told]:
        """Every event, for whoever waits for nothing else; ends when the bridge is gone, or is silent so long."""
        yield from _events(self.waiting())
        with selectors.DefaultSelector() as selector:
            selector.register(self, selectors.EVENT_READ)
            while selector.select(seconds):
                try:
                    heard = self.receive()
                except Disconnected:
                    return
                yield from _events(heard)


def _events(heard: list[Told | Reply]) -> Iterator[Told]:
    return (each for each in heard if isinstance(each, Told))


def _heard(frames: list[bytes]) -> list[Told | Reply]:
    found: list[Told | Reply] = []
    for frame in map(_decode_frame, frames):
        if frame.method == "sessionEvent":
            told = _decode_told(frame.params)
            found.append(Told(told.number, _event(told.event), Raw(bytes(told.event))))
        elif frame.method is None and frame.id is not None:
            found.append(Reply(frame.id, None if frame.error is None else frame.error.message))
    return found


def _event(words: Raw) -> AnyEvent | None:
    try:
        return _events_decoder.decode(words)
    except msgspec.ValidationError:
        return None
