"""Dispatch, alone and side by side with ``jsonrpcserver``, whose full path is the reference.

The reference reads the whole text by itself, as its users would call it; ours goes through peer and
dispatcher. What differs on purpose is listed in ``DIVERGENCES``, each with its reason, and has to differ.
"""

import asyncio
import inspect
import json
import logging
from typing import Annotated

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonrpcserver import Error, InvalidParams, Success, async_dispatch
from msgspec import Raw

from ide_bridge.errors import BridgeError, FileProblem, NotShared, PathRefused
from ide_bridge.wire.dispatch import Dispatcher, Method, NoParams, settle_later
from ide_bridge.wire.peer import Failure, Notification, Peer, Refused, Request

SECRET = "/home/someone/secret"


class Pair(msgspec.Struct):
    left: int
    right: int = 10


class Camel(msgspec.Struct, rename="camel"):
    file_path: Annotated[str, msgspec.Meta(max_length=5)]
    line: float = 0


async def soon(value):
    return value


def fail(error):
    raise error


async def fail_later(error):
    raise error


METHODS = {
    "subtract": Method(Pair, lambda _, pair: pair.left - pair.right),
    "later": Method(Pair, lambda _, pair: soon(pair.left - pair.right)),
    "nothing": Method(NoParams, lambda _, __: None),
    "camel": Method(Camel, lambda _, camel: [camel.file_path, camel.line]),
    "who": Method(NoParams, lambda who, _: who),
    "raw": Method(NoParams, lambda _, __: Raw(b'{"ready":true}')),
    "refuse": Method(NoParams, lambda _, __: Failure(-32000, "no", {"why": 1})),
    "problem": Method(NoParams, lambda _, __: fail(FileProblem("File not found"))),
    "problem_later": Method(NoParams, lambda _, __: fail_later(PathRefused("outside"))),
    "crash": Method(NoParams, lambda _, __: fail(RuntimeError(SECRET))),
    "crash_later": Method(NoParams, lambda _, __: fail_later(OSError(2, SECRET))),
    "unsendable": Method(NoParams, lambda _, __: object()),
    "unsendable_text": Method(NoParams, lambda _, __: "\udcff"),
}
DISPATCHER = Dispatcher(METHODS)


async def answer(message, dispatcher=DISPATCHER):
    """The one reply that peer and dispatcher give to a message, or None."""
    peer, replies = Peer(), []
    for incoming in peer.receive(message):
        match incoming:
            case Request():
                outcome = dispatcher.serve("me", incoming)
                outcome = outcome if isinstance(outcome, Raw | Failure) else await settle_later(outcome)
                give = peer.error if isinstance(outcome, Failure) else peer.result
                replies.append(give(incoming, outcome))
            case Notification():
                await dispatcher.tell("me", incoming)
            case Refused(reply=reply):
                replies.append(reply)
    (reply,) = [reply for reply in replies if reply is not None] or [None]
    return None if reply is None else json.loads(reply)


# --- the reference -----------------------------------------------------------------------------------------


async def subtract(left, right=10):
    if type(left) is not int or type(right) is not int:
        return InvalidParams()
    return Success(left - right)


async def nothing():
    return Success(None)


async def problem():
    return Error(FileProblem.code, "File not found")


async def crash():
    raise RuntimeError(SECRET)


REFERENCE = {"subtract": subtract, "later": subtract, "nothing": nothing, "problem": problem, "crash": crash}


async def reference(message):
    reply = await async_dispatch(message.decode(), methods=REFERENCE)
    return json.loads(reply) if reply else None


def essence(reply):
    """Code, id and result; a batch may be answered in any order."""
    if reply is None:
        return None
    if isinstance(reply, list):
        return sorted(map(essence, reply), key=repr)
    return (type(reply["id"]), reply["id"], reply.get("error", {}).get("code"), reply.get("result"))


def call(method, request_id=1, **members):
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **members}


def note(method, **members):
    return {"jsonrpc": "2.0", "method": method, **members}


CORPUS = [
    *(
        call(method, params=params)
        for method in ("subtract", "later")
        for params in (
            {"left": 3},
            {"left": 3, "right": 1},
            {"right": 1, "left": 2},
            [5],
            [5, 2],
            [5, 2, 1],
            [],
            {},
            {"left": "3"},
            {"left": None},
            {"left": 1.5},
            {"left": True},
            ["3"],
            {"right": 1},
            [[3]],
        )
    ),
    call("subtract"),
    call("nothing"),
    call("nothing", params={}),
    call("nothing", params=[]),
    call("nothing", params=[1]),
    call("unknown"),
    call("unknown", params=[1]),
    call(""),
    call("rpc.unknown", params={"a": 1}),
    call("problem"),
    *(call("subtract", request_id, params=[1]) for request_id in (0, -1, 2**60, 2**70, "", "a", "€", None, 1.5)),
    *(call(method, None) for method in ("problem", "unknown", "subtract")),
    note("subtract", params=[1]),
    note("subtract", params=["wrong"]),
    note("problem"),
    note("unknown"),
    [call("nothing")],
    [call("subtract", 1, params=[1]), call("later", "b", params={"left": 2}), note("nothing")],
    [call("unknown", 1), call("problem", 2), call("subtract", 3), call("subtract", 4, params=[9])],
    [note("nothing"), note("unknown")],
    [call("nothing", 1), call("nothing", 1)],
    [],
    1,
    "text",
    None,
    True,
    {},
    {"jsonrpc": "2.0"},
    {"method": "nothing"},
    *(call("nothing", request_id) for request_id in (True, [1], {}, 1.0)),
    note("nothing", params=7),
    note("crash"),
    {"jsonrpc": "1.0", "method": "nothing"},
    [note("unknown"), call("nothing")],
]
MALFORMED = [
    b"",
    b"{",
    b"[",
    b"nonsense",
    b'{"jsonrpc":"2.0","method":"nothing"',
    b'[{"jsonrpc":"2.0"},',
    b"{}{}",
    b"{'id':1}",
    b'{"jsonrpc":"2.0","id":"a\tb","method":"nothing"}',
    b'{"jsonrpc":"2.0","id":1,"method":"nothing"}\0',
    b'{"jsonrpc":"2.0","id":1,"method":"nothing","params":' + b"[" * 5000 + b"]" * 5000 + b"}",
]

NOTHING_KNOWN = (type(None), None, -32600, None)
NOT_JSON = (type(None), None, -32700, None)

# message, what the reference answers, what we answer, and why we do
DIVERGENCES = {
    "a wrong request keeps its id": (
        {"jsonrpc": "1.0", "id": 7, "method": "nothing"},
        (type(None), None, -32600, None),
        (int, 7, -32600, None),
        "A client that waits for 7 must learn that 7 failed; the id can be read.",
    ),
    "params that are no structure": (
        call("nothing", "p", params=7),
        (type(None), None, -32600, None),
        (str, "p", -32600, None),
        "As above: the id can be read.",
    ),
    "one wrong element": (
        [call("nothing", 1), 7, call("subtract", 2, params=[3])],
        (type(None), None, -32600, None),
        sorted([(int, 1, None, None), (type(None), None, -32600, None), (int, 2, None, -7)], key=repr),
        "The specification answers each element by itself.",
    ),
    "extra members": (
        call("nothing", 1, trace="x"),
        (type(None), None, -32600, None),
        (int, 1, None, None),
        "The specification does not forbid them, and clients send some.",
    ),
    "a response": (
        {"jsonrpc": "2.0", "id": 1, "result": 5},
        (type(None), None, -32600, None),
        None,
        "Both ends ask here; whoever answers answers starts an endless exchange.",
    ),
    "named params nobody asked for": (
        call("subtract", 1, params={"left": 1, "colour": "red"}),
        (int, 1, -32602, None),
        (int, 1, None, -9),
        "Newer clients send members that older bridges do not know.",
    ),
    "params that are null": (
        call("nothing", 1, params=None),
        NOTHING_KNOWN,
        (int, 1, -32600, None),
        "As for every wrong request: the id can be read.",
    ),
    "a method that is no name": (
        call(5),
        NOTHING_KNOWN,
        (int, 1, -32600, None),
        "As for every wrong request: the id can be read.",
    ),
    "a batch of nothing but wrong elements": (
        [1, [call("nothing")], {}],
        NOTHING_KNOWN,
        [NOTHING_KNOWN] * 3,
        "The specification answers each element by itself, also when all are wrong.",
    ),
    "a response in a batch": (
        [{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}],
        NOTHING_KNOWN,
        None,
        "As for a response that comes alone.",
    ),
    "a huge batch": (
        [call("nothing")] * 1001,
        [(int, 1, None, None)] * 1001,
        NOTHING_KNOWN,
        "One message must not make any amount of work.",
    ),
    "a number that is none": (
        b'{"jsonrpc":"2.0","id":1,"method":"subtract","params":[NaN]}',
        (int, 1, -32602, None),
        (int, 1, -32700, None),
        "NaN is not JSON; Python's own parser takes it all the same.",
    ),
    "an id beyond all numbers": (
        b'{"jsonrpc":"2.0","id":1e400,"method":"nothing"}',
        (float, float("inf"), None, None),
        NOT_JSON,
        "It could only be sent back as Infinity, which is not JSON.",
    ),
    "half a surrogate pair": (
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"nothing"}',
        (str, "\ud800", None, None),
        NOT_JSON,
        "It cannot be written as UTF-8, so nobody could be given it back.",
    ),
    "a byte order mark": (
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"nothing"}',
        NOT_JSON,
        (int, 1, -32700, None),
        "Wrong for both; the id can be read.",
    ),
}


@pytest.mark.parametrize("message", CORPUS, ids=json.dumps)
async def test_our_answer_is_that_of_the_reference(message):
    text = json.dumps(message).encode()
    assert essence(await answer(text)) == essence(await reference(text))


@pytest.mark.parametrize("text", MALFORMED)
async def test_malformed_text_is_answered_like_the_reference_does(text):
    assert essence(await answer(text)) == essence(await reference(text)) == (type(None), None, -32700, None)


@pytest.mark.parametrize(("message", "theirs", "ours", "reason"), DIVERGENCES.values(), ids=DIVERGENCES)
async def test_each_divergence_is_real(message, theirs, ours, reason):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    assert essence(await reference(text)) == theirs
    assert essence(await answer(text)) == ours
    assert ours != theirs, reason


async def test_the_reference_leaks_what_we_do_not():
    text = json.dumps(call("crash")).encode()
    theirs, ours = await reference(text), await answer(text)
    assert essence(theirs) == essence(ours)
    assert SECRET in theirs["error"]["data"]
    assert SECRET not in json.dumps(ours)


# --- the two ways of ours ----------------------------------------------------------------------------------

TWICE = [
    *(call(name) for name in METHODS if not name.startswith(("crash", "unsendable"))),
    call("camel", params={"filePath": "a", "line": 1}),
    call("camel", params={"filePath": "a", "line": "1"}),
    call("camel", params={"filePath": "toolong"}),
    call("camel", params={"file_path": "a"}),
    call("subtract", "x", params={"left": 1, "context": 3, "self": 4}),
    call("subtract", 1.5, params={"left": {}}),
    call("subtract", None, params={"left": 2**80}),
]


@pytest.mark.parametrize("message", TWICE, ids=json.dumps)
async def test_the_direct_way_equals_the_formal_way(message):
    alone = await answer(json.dumps(message).encode())
    assert [alone] == await answer(json.dumps([message]).encode())


def test_an_element_of_a_batch_goes_the_formal_way():
    """Otherwise the tests that compare the two ways would compare one with itself."""
    (alone,), (element,) = (
        Peer().receive(json.dumps(message).encode()) for message in (call("nothing"), [call("nothing")])
    )
    served = DISPATCHER.serve("me", element)
    assert inspect.iscoroutine(served)
    served.close()
    assert isinstance(DISPATCHER.serve("me", alone), Raw)


# Beyond 64 bits msgspec calls an integer a float when it reads JSON itself; only the words differ.
INTEGERS = st.integers(-(2**63), 2**64 - 1)
VALUES = st.none() | st.booleans() | INTEGERS | st.floats(-9, 9) | st.text(max_size=6) | st.just([1])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["subtract", "later", "camel", "nothing"]),
    st.dictionaries(st.sampled_from(["left", "right", "filePath", "line", "other"]), VALUES),
)
async def test_any_named_params_are_taken_equally_both_ways(method, params):
    message = msgspec.json.encode(call(method, params=params))
    assert [await answer(message)] == await answer(b"[%b]" % message)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**80])
@pytest.mark.parametrize("params", ["left", "filePath", "line"])
async def test_huge_numbers_are_taken_equally_both_ways_but_for_the_words(number, params):
    method = "subtract" if params == "left" else "camel"
    message = json.dumps(call(method, params={"filePath": "a", params: number})).encode()
    assert [essence(await answer(message))] == essence(await answer(b"[%b]" % message))


async def test_positional_params_follow_the_names_on_the_wire():
    assert (await answer(json.dumps(call("camel", params=["a", 2])).encode()))["result"] == ["a", 2.0]


# --- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["crash", "crash_later", "unsendable", "unsendable_text"])
@pytest.mark.parametrize("in_batch", [False, True])
async def test_only_an_incident_number_leaves(method, in_batch, caplog):
    message = json.dumps([call(method)] if in_batch else call(method)).encode()
    reply = await answer(message)
    error = (reply[0] if in_batch else reply)["error"]
    incident = error["data"].pop("incident")
    assert error == {"code": -32603, "message": "internal error", "data": {}}
    assert [record.getMessage() for record in caplog.records] == [f"incident {incident}"]
    assert caplog.records[0].exc_info is not None


async def test_every_incident_has_a_number_of_its_own():
    replies = [await answer(json.dumps(call("crash")).encode()) for _ in range(3)]
    assert len({reply["error"]["data"]["incident"] for reply in replies}) == 3


@pytest.mark.parametrize(
    ("method", "code", "text"), [("problem", -32603, "File not found"), ("problem_later", -32602, "outside")]
)
async def test_a_bridge_error_says_itself_what_may_be_read(method, code, text):
    assert (await answer(json.dumps(call(method)).encode()))["error"] == {"code": code, "message": text}


async def test_an_error_about_a_name_that_is_not_utf8_can_be_sent():
    dispatcher = Dispatcher({"m": Method(NoParams, lambda _, __: fail(NotShared("not shared: \udcff")))})
    reply = await answer(json.dumps(call("m")).encode(), dispatcher)
    assert reply["error"]["message"] == "not shared: ?"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "Invalid params: left is missing."),
        ({"left": "3"}, "Invalid params: left must be a whole number."),
        ([1, 2, 3], "Invalid params: at most 2 may be given."),
    ],
)
async def test_invalid_params_are_explained(params, text):
    assert (await answer(json.dumps(call("subtract", params=params)).encode()))["error"]["message"] == text


@pytest.mark.parametrize("params", [b'{"filePath":"\xff"}', b'["\xff"]'])
async def test_params_that_cannot_be_read_are_a_parse_error_with_the_id(params):
    reply = await answer(b'{"jsonrpc":"2.0","id":5,"method":"camel","params":%b}' % params)
    assert essence(reply) == (int, 5, -32700, None)


@pytest.mark.parametrize("params", [b'{"filePath":"a","x":%b}', b'["a",1,%b]'])
async def test_params_nested_too_deeply_are_a_parse_error_with_the_id(params):
    """Handed on as they would be if the peer had still been able to read them."""
    params = Raw(params % (b"[" * 5000 + b"]" * 5000))
    served = DISPATCHER.serve("me", Request(5, "camel", params))
    outcome = served if isinstance(served, Failure) else await settle_later(served)
    assert outcome == Failure(-32700, "Parse error: nested too deeply.")


async def wait_for_what_is_cancelled():
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.cancel)
    await future


@pytest.mark.parametrize("in_batch", [False, True])
async def test_a_method_whose_own_helper_was_cancelled_is_answered(in_batch, caplog):
    dispatcher = Dispatcher({"m": Method(NoParams, lambda _, __: wait_for_what_is_cancelled())})
    reply = await answer(json.dumps([call("m")] if in_batch else call("m")).encode(), dispatcher)
    assert (reply[0] if in_batch else reply)["error"]["message"] == "internal error"
    assert "CancelledError" in caplog.text


async def test_a_request_that_is_itself_cancelled_has_no_outcome():
    waiting = asyncio.create_task(settle_later(asyncio.get_running_loop().create_future()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


# --- notifications -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["crash", "crash_later", "problem", "unknown"])
async def test_a_notification_that_fails_stays_here(method):
    await DISPATCHER.tell("me", Notification(method))


async def test_a_notification_nobody_knows_is_not_worth_a_word(caplog):
    caplog.set_level(logging.DEBUG, "ide_bridge")
    await DISPATCHER.tell("me", Notification("unknown"))
    assert caplog.records == []


async def test_a_notification_reaches_its_method_with_context_and_params(caplog):
    caplog.set_level(logging.DEBUG, "ide_bridge")
    told = []
    dispatcher = Dispatcher(
        {
            "now": Method(Pair, lambda who, pair: told.append((who, pair.left))),
            "later": Method(NoParams, lambda who, _: tell_later(told, who)),
        }
    )
    await dispatcher.tell("me", Notification("now", Raw(b'{"left":1}')))
    await dispatcher.tell("me", Notification("later"))
    await dispatcher.tell("me", Notification("now", Raw(b'{"left":"wrong"}')))
    assert told == [("me", 1), "me"]
    assert "left must be a whole number" in caplog.text


async def test_a_notification_may_have_positional_params():
    told = []
    dispatcher = Dispatcher({"now": Method(Pair, lambda _, pair: told.append(pair))})
    await dispatcher.tell("me", Notification("now", Raw(b"[1,2]")))
    assert told == [Pair(1, 2)]


async def test_a_notification_whose_helper_was_cancelled_does_not_end_the_reading():
    dispatcher = Dispatcher({"m": Method(NoParams, lambda _, __: wait_for_what_is_cancelled())})
    await dispatcher.tell("me", Notification("m"))


async def tell_later(told, who):
    told.append(who)


def test_a_bridge_error_without_a_code_of_its_own_is_internal():
    outcome = Dispatcher({"m": Method(NoParams, lambda _, __: fail(BridgeError("no")))}).serve(
        None, Request(1, "m")
    )
    assert outcome == Failure(-32603, "no")
