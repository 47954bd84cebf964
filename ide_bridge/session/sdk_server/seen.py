"""What was heard already: the memory by which a message that is said again is known.

A CLI that lost its connection says its last messages again when it is back, up to 1000 of them; a POST whose
answer got lost is sent again as it was. Messages are known by their `uuid`, control traffic by its `request_id`;
what has neither, such as `keep_alive`, is always new. The memory is bounded, and longer than the CLI's.

It does not know how the messages came.
"""

import msgspec

__all__ = ["Seen", "mark_of"]

_LIMIT = 4096
_REQUESTS = ("control_request", "control_cancel_request")


class _Marks(msgspec.Struct):
    type: object = None
    uuid: object = None
    request_id: object = None
    response: msgspec.Raw = msgspec.Raw()


class _Response(msgspec.Struct):
    request_id: object = None


_decode = msgspec.json.Decoder(_Marks).decode
_decode_response = msgspec.json.Decoder(_Response).decode


def mark_of(line: bytes) -> str | None:
    """By what a message is known when it comes again; None when nothing tells."""
    try:
        message = _decode(line)
        if message.type == "control_response":
            answered = _decode_response(message.response).request_id
            return f"answer {answered}" if isinstance(answered, str) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if message.type in _REQUESTS:
        return f"{message.type} {message.request_id}" if isinstance(message.request_id, str) else None
    return message.uuid if isinstance(message.uuid, str) else None


class Seen:
    """The marks of the newest messages."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._marks: dict[str, None] = {}

    def __contains__(self, mark: object) -> bool:
        return mark in self._marks

    def add(self, mark: str | None) -> None:
        """Remember a message by its mark; the oldest is forgotten for it."""
        if mark is None:
            return
        self._marks[mark] = None
        if len(self._marks) > self._limit:
            del self._marks[next(iter(self._marks))]
