"""A JSON-RPC 2.0 peer: one end of a conversation, without its I/O.

Both ends may ask. Bytes come in and become requests, notifications and responses; answers and questions go
out as bytes.

1. Every request is answered at most once, with the id it came with: integer, string, fraction or null.
2. A message that can be read but is wrong is answered with an error; its id is kept if it can be made out.
3. A response is never answered. One that fits no open question is dropped.
4. The elements of a batch are taken one by one; their answers leave together, as one array, when the last is
   given. An element that needs no answer has none, and a batch of such elements is not answered at all.
5. ``params`` stay undecoded: whoever serves the method knows their type.

It does not know what methods exist, what a socket is, or what time it is.
"""

import json
import math
from typing import TypeGuard

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ide_bridge.errors import BridgeError, InvalidParams, InvalidRequest, ParseError

__all__ = ["Failure", "Id", "Incoming", "Notification", "Peer", "Refused", "Request", "Response"]

Id = int | float | str | None

_encode = msgspec.json.Encoder().encode
_decode_any = msgspec.json.Decoder().decode
_BATCH_LIMIT = 1000
_BATCH_BYTES = 64 * 1024 * 1024
_SALVAGE_LIMIT = 1024 * 1024


class _Envelope(msgspec.Struct):
    jsonrpc: str | UnsetType = UNSET
    id: Id | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Result(msgspec.Struct):
    jsonrpc: str
    id: Id
    result: object


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """The error object of JSON-RPC."""

    code: int
    message: str
    data: object = None


_BATCH_TOO_LARGE = Failure(BridgeError.code, "The answers of this batch are too large together; ask one by one.")


class _Error(msgspec.Struct):
    jsonrpc: str
    id: Id
    error: Failure


class _Call(msgspec.Struct, omit_defaults=True):
    jsonrpc: str
    method: str
    params: object = None
    id: int | UnsetType = UNSET


class Batch:
    """The answers of one batch, gathered until none is missing."""

    __slots__ = ("_answers", "_open", "_size")

    def __init__(self) -> None:
        self._answers: list[Raw] = []
        self._open = 0
        self._size = 0

    def expect(self) -> None:
        """One more element will be answered or dropped."""
        self._open += 1

    def settle(self, answer: bytes | None, request_id: Id = None) -> bytes | None:
        """One element is done; give the whole array if it was the last."""
        self._open -= 1
        if answer is not None and self._size + len(answer) > _BATCH_BYTES:
            answer = _encode(_Error("2.0", request_id, _BATCH_TOO_LARGE))
        if answer is not None:
            self._size += len(answer)
            self._answers.append(Raw(answer))
        if self._open or not self._answers:
            return None
        return _encode(self._answers)


class Request(msgspec.Struct, frozen=True):
    """A question from the other end. ``params`` is an object, an array, or absent."""

    id: Id
    method: str
    params: Raw | None = None
    batch: Batch | None = None


class Notification(msgspec.Struct, frozen=True):
    """Something the other end tells us, without wanting an answer."""

    method: str
    params: Raw | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer to a question of ours."""

    id: int
    result: Raw | None = None
    error: Failure | None = None


class Refused(msgspec.Struct, frozen=True):
    """A message that was wrong; ``reply`` is what to send back."""

    reply: bytes


Incoming = Request | Notification | Response | Refused

_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_elements = msgspec.json.Decoder(list[Raw]).decode
_decode_failure = msgspec.json.Decoder(Failure).decode


class Peer:
    """One end of a JSON-RPC conversation."""

    def __init__(self, last_id: int = 0) -> None:
        self._last_id = last_id
        self._asked: set[int] = set()

    def receive(self, message: bytes) -> list[Incoming]:
        """Take one message as it came; give what is to be acted on."""
        try:
            envelope = _decode_envelope(message)
        except (ValueError, RecursionError):
            return self._receive_odd(message)
        return _one_or_none(self._classify(envelope, None))

    def request(self, method: str, params: object = None) -> tuple[int, bytes]:
        """Ask the other end; the id tells which response answers it."""
        self._last_id += 1
        self._asked.add(self._last_id)
        return self._last_id, _encode(_Call("2.0", method, params, self._last_id))

    def notification(self, method: str, params: object = None) -> bytes:
        """Tell the other end."""
        return _encode(_Call("2.0", method, params))

    def forget(self, request_id: int) -> None:
        """Take no answer to this question any more."""
        self._asked.discard(request_id)

    def result(self, request: Request, result: object) -> bytes | None:
        """Answer; ``None`` means that the answer waits for the rest of its batch."""
        answer = _encode(_Result("2.0", request.id, result))
        return answer if request.batch is None else request.batch.settle(answer, request.id)

    def error(self, request: Request, failure: Failure) -> bytes | None:
        """Answer with an error."""
        answer = _encode(_Error("2.0", request.id, failure))
        return answer if request.batch is None else request.batch.settle(answer, request.id)

    def drop(self, request: Request) -> bytes | None:
        """Leave a request without an answer, because it was cancelled; its batch may be complete now."""
        return None if request.batch is None else request.batch.settle(None)

    def refuse(self, reason: BridgeError, request_id: Id = None) -> bytes:
        """Answer a message that never became a request."""
        return _encode(_Error("2.0", request_id, Failure(reason.code, str(reason))))

    def _receive_odd(self, message: bytes) -> list[Incoming]:
        try:
            elements = _decode_elements(message) if isinstance(_decode_any(message), list) else None
        except (ValueError, RecursionError) as reason:
            return [self._unreadable(message, reason)]
        if elements is None:
            return _one_or_none(self._classify_wrong(message))
        return self._receive_batch(elements)

    def _receive_batch(self, elements: list[Raw]) -> list[Incoming]:
        if not elements:
            return [self._invalid("An empty batch asks for nothing.", None)]
        if len(elements) > _BATCH_LIMIT:
            return [Refused(self.refuse(InvalidRequest(f"A batch may have at most {_BATCH_LIMIT} elements.")))]
        batch = Batch()
        batch.expect()
        found = [incoming for element in elements for incoming in self._receive_element(element, batch)]
        if (reply := batch.settle(None)) is not None:
            found.append(Refused(reply))
        return found

    def _receive_element(self, element: Raw, batch: Batch) -> list[Incoming]:
        try:
            incoming = self._classify(_decode_envelope(element), batch)
        except (ValueError, RecursionError):
            incoming = self._classify_wrong(bytes(element))
        if isinstance(incoming, Refused):
            batch.expect()
            batch.settle(incoming.reply)
            return []
        return _one_or_none(incoming)

    def _classify(self, envelope: _Envelope, batch: Batch | None) -> Incoming | None:
        method, params = envelope.method, envelope.params
        if method is UNSET:
            if envelope.result is not UNSET or envelope.error is not UNSET:
                return self._response(envelope)
            return self._invalid("A request needs a method.", envelope.id)
        if envelope.jsonrpc != "2.0":
            return self._invalid('The member "jsonrpc" must be "2.0".', envelope.id)
        if params is not UNSET and bytes(memoryview(params)[:1]) not in {b"{", b"["}:
            return self._invalid('The member "params" must be an object or an array.', envelope.id)
        given = None if params is UNSET else params
        if envelope.id is UNSET:
            return Notification(method, given)
        if batch is not None:
            batch.expect()
        return Request(envelope.id, method, given, batch)

    def _response(self, envelope: _Envelope) -> Response | None:
        answered = envelope.id
        if not isinstance(answered, int) or answered not in self._asked:
            return None
        self._asked.discard(answered)
        if envelope.error is UNSET or bytes(envelope.error) == b"null":
            return Response(answered, None if envelope.result is UNSET else envelope.result)
        return Response(answered, error=_failure_from(envelope.error))

    def _invalid(self, reason: str, request_id: Id | UnsetType) -> Refused:
        return Refused(self.refuse(InvalidRequest(reason), None if request_id is UNSET else request_id))

    def _classify_wrong(self, message: bytes) -> Refused | None:
        """Say what is wrong with a message that is JSON and does not fit the envelope."""
        try:
            found = _decode_any(message)
        except RecursionError as too_deep:  # bearable for the caller, but not one call further down
            return self._unreadable(message, too_deep)
        if not isinstance(found, dict):
            return self._invalid("A message must be an object.", None)
        if "method" not in found and ("result" in found or "error" in found):
            return None  # a response, however wrong, is never answered
        reason = "The message does not fit JSON-RPC 2.0."
        try:
            _decode_envelope(message)
        except (ValueError, RecursionError) as error:
            reason = f"Invalid Request: {error}."
        return self._invalid(reason, _salvage(message)[0])

    def _unreadable(self, message: bytes, reason: Exception) -> Refused:
        request_id, halved = _salvage(message)
        if halved:
            wrong = InvalidParams("Invalid params: a text is not valid Unicode (it has half of a surrogate pair).")
            return Refused(self.refuse(wrong, request_id))
        text = "nested too deeply" if isinstance(reason, RecursionError) else str(reason)
        return Refused(self.refuse(ParseError(f"Parse error: {text}."), request_id))


def _one_or_none(incoming: Incoming | None) -> list[Incoming]:
    return [] if incoming is None else [incoming]


def _failure_from(error: Raw) -> Failure:
    try:
        return _decode_failure(error)
    except (ValueError, RecursionError):
        return Failure(-32603, "The other end answered with an error that cannot be read.")


def _salvage(message: bytes) -> tuple[Id, bool]:
    """Find the id of a message our strict parser refuses; True when it has half of a surrogate pair in its params.

    The standard library's parser is more forgiving.
    """
    if len(message) > _SALVAGE_LIMIT:
        return None, False
    try:
        found: object = json.loads(message)
    except (ValueError, RecursionError):
        return None, False
    if not isinstance(found, dict):
        return None, False
    request_id = found.get("id")
    return (request_id if _can_be_sent_back(request_id) else None), _has_half_a_pair(found.get("params"))


def _has_half_a_pair(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except RecursionError:
        return False
    return False


def _can_be_sent_back(request_id: object) -> TypeGuard[Id]:
    if isinstance(request_id, str):
        return not any("\ud800" <= character <= "\udfff" for character in request_id)
    if isinstance(request_id, float):
        return math.isfinite(request_id)
    return isinstance(request_id, int) and not isinstance(request_id, bool)
