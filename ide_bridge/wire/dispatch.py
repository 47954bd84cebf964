"""Dispatch: from a request to the function that serves it, and from its outcome to an answer.

This is the one place where exceptions become wire errors. A ``BridgeError`` says itself what the other end
may read; anything else is an accident, which is logged with an incident number, and only the number leaves.

A plain single request (known method, parameters as an object or none) is served directly. Everything else,
batch elements, positional parameters, unknown names, goes through ``jsonrpcserver``, one checked request at a
time; a test holds both ways equal. The package costs 75 ms to import, so it is imported when first needed.

It does not know sockets, clients or MCP.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec
from msgspec import Raw

from ide_bridge.answers import waits
from ide_bridge.complaints import in_words
from ide_bridge.errors import BridgeError, InvalidParams, ParseError
from ide_bridge.wire.peer import Failure, Notification, Request

__all__ = ["Dispatcher", "Method", "NoParams", "decode_params", "settle_later"]

logger = logging.getLogger(__name__)

C = TypeVar("C")
P = TypeVar("P", bound=msgspec.Struct)

Outcome = Raw | Failure
Served = object | Awaitable[object]

_encode = msgspec.json.Encoder().encode
_EMPTY = Raw(b"{}")


class NoParams(msgspec.Struct):
    """The parameters of a method that takes none; what is sent all the same is ignored."""


class Method(Generic[C, P]):
    """A function that serves a request, and the type of its parameters.

    A function that need not wait returns its result at once; one that must wait returns an awaitable.
    """

    __slots__ = ("call", "decode", "params")

    def __init__(self, params: type[P], call: Callable[[C, P], Served]) -> None:
        self.params = params
        self.call = call
        self.decode: Callable[[Raw], P] = msgspec.json.Decoder(params).decode


class Taker(Protocol[P]):
    """What takes parameters: a method, or a tool."""

    params: type[P]
    decode: Callable[[Any], P]


class Dispatcher(Generic[C]):
    """The methods one kind of peer offers, each served with the context of who asks."""

    def __init__(self, methods: Mapping[str, Method[C, Any]]) -> None:
        self._methods = dict(methods)

    def serve(self, context: C, request: Request) -> Outcome | Awaitable[object]:
        """Answer at once where nothing has to be waited for, else give what ``settle_later`` waits for."""
        method = self._methods.get(request.method)
        if method is None or request.batch is not None or not _is_object(request.params):
            return self._serve_formally(context, request)
        try:
            served = method.call(context, decode_params(method, request.params or _EMPTY))
            return served if waits(served) else _settle(served)
        except Exception as error:  # noqa: BLE001 - the boundary: nothing may leak past it
            return failure_from(error)

    async def tell(self, context: C, notification: Notification) -> None:
        """Pass a notification on; a name nobody knows is nobody's business, and errors stay here."""
        if notification.method not in self._methods:
            return
        outcome = self.serve(context, Request(None, notification.method, notification.params))
        if not isinstance(outcome, Raw | Failure):
            outcome = await settle_later(outcome)
        if isinstance(outcome, Failure):
            logger.debug("notification %s: %s", notification.method, outcome.message)

    async def _serve_formally(self, context: C, request: Request) -> Outcome:
        from jsonrpcserver import async_dispatch_to_serializable  # noqa: PLC0415 - 75 ms, rarely needed

        try:
            message = _as_message(request)
        except (ValueError, RecursionError) as error:
            return failure_from(_unreadable(error))
        answer: Any = await async_dispatch_to_serializable(
            message,
            methods=self._formal_methods,
            context=context,
            deserializer=lambda given: given,
            validator=lambda given: given,
        )
        return msgspec.convert(answer["error"], Failure) if "error" in answer else cast(Raw, answer["result"])

    @cached_property
    def _formal_methods(self) -> dict[str, Callable[..., Awaitable[object]]]:
        return {name: _formal(method) for name, method in self._methods.items()}


def decode_params(taker: Taker[P], params: Raw) -> P:
    """Decode parameters into their type, or say in one sentence what does not fit."""
    try:
        return taker.decode(params)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"Invalid params: {in_words(error, taker.params)}.") from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from None


def failure_from(error: BaseException) -> Failure:
    """Turn an exception into what the other end may know of it."""
    if isinstance(error, BridgeError):
        text = str(error).encode(errors="replace").decode()  # a file name on disk need not be UTF-8
        return Failure(error.code, text)
    incident = secrets.token_hex(4)
    logger.error("incident %s", incident, exc_info=error)
    return Failure(BridgeError.code, "internal error", {"incident": incident})


async def settle_later(served: Awaitable[object]) -> Outcome:
    """Wait for a method that could not answer at once."""
    try:
        return _settle(await served)
    except asyncio.CancelledError as error:
        if _are_we_cancelled():
            raise
        return failure_from(error)  # something it waited for was cancelled, and who asked must still be told
    except Exception as error:  # noqa: BLE001 - the boundary: nothing may leak past it
        return failure_from(error)


def _are_we_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _settle(result: object) -> Outcome:
    return result if isinstance(result, Raw | Failure) else Raw(_encode(result))


def _is_object(params: Raw | None) -> bool:
    return params is None or bytes(memoryview(params)[:1]) == b"{"


def _as_message(request: Request) -> dict[str, object]:
    message: dict[str, object] = {"jsonrpc": "2.0", "method": request.method, "id": request.id}
    if request.params is not None:
        message["params"] = msgspec.json.decode(request.params)
    return message


def _formal(method: Method[C, Any]) -> Callable[..., Awaitable[object]]:
    from jsonrpcserver import JsonRpcError, Success  # noqa: PLC0415 - 75 ms, rarely needed

    async def call(context: C, /, *positional: object, **named: object) -> object:
        try:
            params = _convert(method.params, positional, named)
            served = method.call(context, params)
            return Success(_settle(await served if waits(served) else served))
        except Exception as error:  # noqa: BLE001 - the boundary: nothing may leak past it
            failure = failure_from(error)
            raise JsonRpcError(failure.code, failure.message, failure.data) from None

    return call


def _convert(params: type[P], positional: Sequence[object], named: Mapping[str, object]) -> P:
    fields = msgspec.structs.fields(params)
    if len(positional) > len(fields):
        raise InvalidParams(f"Invalid params: at most {len(fields)} may be given.")
    given = {field.encode_name: value for field, value in zip(fields, positional, strict=False)} | {**named}
    try:
        for name in {field.encode_name for field in fields if field.type is Raw}.intersection(given):
            given[name] = Raw(_encode(given[name]))  # it was decoded with the rest, and is to be so later
        return msgspec.convert(given, params)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"Invalid params: {in_words(error, params)}.") from None


def _unreadable(error: Exception) -> ParseError:
    text = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return ParseError(f"Parse error: {text}.")
