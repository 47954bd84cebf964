"""Dispatch alone, in this process, against ``jsonrpcserver.async_dispatch``: P3.

It does not know sockets. What differs between the two in the words of an error is none of its business; the
tests of dispatch list that with reasons.
"""

import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from jsonrpcserver import Success, async_dispatch
from msgspec import Raw

from ide_bridge.wire.dispatch import Dispatcher, Method, settle_later
from ide_bridge.wire.peer import Failure, Notification, Peer, Refused, Request, Response
from tests.bench.measuring import compare
from tests.bench.stage import Stage
from tests.bench.table import Figure

__all__ = ["dispatching"]

CALLS = 400
PLAIN = '{"jsonrpc": "2.0", "id": 7, "method": "subtract", "params": {"left": 42, "right": 23}}'
CORPUS = (
    PLAIN,
    '{"jsonrpc": "2.0", "id": "a", "method": "subtract", "params": [42, 23]}',
    '{"jsonrpc": "2.0", "id": 1, "method": "subtract", "params": {"left": 42}}',
    '{"jsonrpc": "2.0", "id": 1, "method": "missing"}',
    '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23]}',
    '{"jsonrpc": "2.0", "method": "missing"}',
    '{"jsonrpc": "2.0", "method": 1}',
    '{"jsonrpc": "2.0", "method"',
    "[]",
    "7",
    f'[{PLAIN}, {{"jsonrpc": "2.0", "method": "missing"}}, {{"jsonrpc": "2.0", "id": 9, "method": "missing"}}]',
)


class _Pair(msgspec.Struct):
    left: int
    right: int


_DISPATCHER: Dispatcher[None] = Dispatcher({"subtract": Method(_Pair, lambda _, pair: pair.left - pair.right)})


async def dispatching(_stage: Stage) -> list[Figure]:
    """P3: a plain request from text to text, and whether both answer alike."""
    found = await compare(lambda: _taken(_answer), lambda: _taken(_answer_of_reference))
    unequal = [
        text for text in CORPUS if _essence(await _answer(text)) != _essence(await _answer_of_reference(text))
    ]
    return [
        Figure("P3", "dispatch to async_dispatch", found.ratio, 0.10, found.in_time),
        Figure("P3", "messages answered differently", len(unequal), 0, f"of {len(CORPUS)}", unit=""),
    ]


async def _taken(answer: Callable[[str], Coroutine[None, None, str]]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        await answer(PLAIN)
    return (time.perf_counter() - start) / CALLS


async def _answer(text: str) -> str:
    peer = Peer()
    replies: list[bytes | None] = []
    for incoming in peer.receive(text.encode()):
        match incoming:
            case Request():
                served = _DISPATCHER.serve(None, incoming)
                outcome = served if isinstance(served, Raw | Failure) else await settle_later(served)
                replies.append(_reply(peer, incoming, outcome))
            case Notification():
                await _DISPATCHER.tell(None, incoming)
            case Refused(reply=reply):
                replies.append(reply)
            case Response():
                pass
    return next((reply.decode() for reply in replies if reply is not None), "")


def _reply(peer: Peer, asked: Request, outcome: Raw | Failure) -> bytes | None:
    return peer.error(asked, outcome) if isinstance(outcome, Failure) else peer.result(asked, outcome)


async def _subtract(left: int, right: int) -> object:
    return Success(left - right)


async def _answer_of_reference(text: str) -> str:
    return str(await async_dispatch(text, methods={"subtract": _subtract}))


def _essence(reply: str) -> object:
    """A reply without the words of its errors, and without the order a batch may choose."""
    answer = msgspec.json.decode(reply) if reply else None
    return sorted(map(_bare, answer)) if isinstance(answer, list) else _bare(answer)


def _bare(answer: Any) -> str:
    if answer is None:
        return ""
    code = answer.get("error", {}).get("code")
    return f"{answer['id']!r} {answer.get('result')!r} {code!r}"
