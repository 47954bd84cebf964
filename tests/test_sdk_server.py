"""The --sdk-url server over real sockets: a CLI that comes, goes, comes back, repeats itself and is refused."""

import asyncio
import hmac
import io
import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError, web

from ide_bridge.errors import Disconnected
from ide_bridge.session import sdk_server
from ide_bridge.session.channel import Returned
from ide_bridge.session.sdk_server import SdkServer

PATIENCE = 10
SESSION = "0f0e0d0c-1111-4222-8333-444455556666"


def admit(request, token):
    """As the bridge does it: no pages, and the token once."""
    if "Origin" in request.headers:
        raise web.HTTPForbidden
    given = request.headers.getall("Authorization", [])
    if len(given) != 1 or not hmac.compare_digest(given[0].encode(), f"Bearer {token}".encode()):
        raise web.HTTPUnauthorized


@pytest.fixture
async def served():
    """The server, and the address it is served at."""
    server = SdkServer(admit)
    application = web.Application()
    server.add_routes(application.router)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    server.forget(SESSION)
    await runner.cleanup()


@pytest.fixture
def channel(served):
    return served.expect(SESSION)


@pytest.fixture
async def http():
    async with ClientSession() as session:
        yield session


@pytest.fixture
def cli(served, channel, http):
    """``cli(last=…)`` connects as the CLI does."""

    @asynccontextmanager
    async def connect(*, last=None, token=None, path=None):
        headers = {"Authorization": f"Bearer {token or channel.token}"}
        headers |= {"X-Last-Request-Id": last} if last else {}
        async with http.ws_connect(served.url + (path or channel.path), headers=headers, max_msg_size=0) as socket:
            yield socket

    return connect


def message(number, **more):
    return {"type": "assistant", "uuid": f"u{number}", "number": number, **more}


async def say(socket, *messages):
    for each in messages:
        await socket.send_str(json.dumps(each) + "\n")


async def heard(channel, count):
    """The next so many messages that the reader gets."""
    entries = []
    async with asyncio.timeout(PATIENCE):
        async for entry in channel:
            assert isinstance(entry, Returned) or entry.find(b"\n") == len(entry) - 1
            entries.append(entry if isinstance(entry, Returned) else json.loads(entry))
            if len(entries) == count:
                break
    return entries


async def received(socket):
    """The next line that the CLI gets."""
    frame = await socket.receive(PATIENCE)
    assert frame.type is WSMsgType.TEXT, frame
    assert frame.data.endswith("\n")
    return frame.data


async def closed_with(socket):
    async with asyncio.timeout(PATIENCE):
        while (frame := await socket.receive()).type not in {WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.ERROR}:
            pass
        return frame.data if frame.type is WSMsgType.CLOSE else None


async def eventually(condition):
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


async def test_what_is_said_comes_in_whole_lines_and_in_order(channel, cli):
    async with cli() as socket:
        await say(socket, *(message(number) for number in range(50)))
        assert await heard(channel, 50) == [message(number) for number in range(50)]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("cut", [1, 2, 3, 7, 64])
async def test_frames_may_be_cut_anywhere(channel, cli, binary, cut):
    said = [message(1, text="Zeile"), message(2), message(3)]
    data = "".join(json.dumps(each) + "\n" for each in said)
    async with cli() as socket:
        for start in range(0, len(data), cut):
            piece = data[start : start + cut]
            await (socket.send_bytes(piece.encode()) if binary else socket.send_str(piece))
        assert await heard(channel, 3) == said


async def test_a_character_may_be_cut_in_the_middle_of_its_bytes(channel, cli):
    data = (json.dumps(message(1, text="über 🙂"), ensure_ascii=False) + "\n").encode()
    async with cli() as socket:
        for byte in data:
            await socket.send_bytes(bytes([byte]))
        assert await heard(channel, 1) == [message(1, text="über 🙂")]


async def test_a_frame_without_a_final_newline_is_completed_by_the_next(channel, cli):
    async with cli() as socket:
        await socket.send_str('{"type":"assistant",')
        await socket.send_str('"uuid":"a"}\n{"type":"assistant","uuid":"b"}')
        await socket.send_str("\n")
        assert [each["uuid"] for each in await heard(channel, 2)] == ["a", "b"]


async def test_what_is_sent_before_the_cli_comes_waits_for_it(channel, cli):
    await channel.send(b'{"type":"one"}\n')
    await channel.send(b'{"type":"two"}\n{"type":"three"}\n')
    async with cli() as socket:
        assert await received(socket) == '{"type":"one"}\n'
        assert await received(socket) == '{"type":"two"}\n{"type":"three"}\n'


async def test_a_cli_that_comes_back_says_its_buffer_again_and_is_heard_once(channel, cli):
    async with cli() as socket:
        await say(socket, *(message(number) for number in range(5)))
        assert len(await heard(channel, 5)) == 5
    async with cli(last="u4") as socket:
        await say(socket, *(message(number) for number in range(7)))
        assert await heard(channel, 3) == [Returned(), message(5), message(6)]
        assert channel.unheard is None


async def test_a_whole_buffer_of_the_cli_is_remembered(channel, cli):
    said = [message(number) for number in range(1000)]
    for times in range(3):
        async with cli() as socket:
            await say(socket, *said, message(1000 + times))
            fresh = [*said, message(1000)] if times == 0 else [Returned(), message(1000 + times)]
            assert await heard(channel, len(fresh)) == fresh


async def test_control_traffic_said_again_is_heard_once_too(channel, cli):
    question = {"type": "control_request", "request_id": "q", "request": {"subtype": "can_use_tool"}}
    answer = {"type": "control_response", "response": {"subtype": "success", "request_id": "q"}}
    withdrawn = {"type": "control_cancel_request", "request_id": "q"}
    said = [question, answer, withdrawn]
    async with cli() as socket:
        await say(socket, *said, *said, {"type": "keep_alive"}, {"type": "keep_alive"})
        assert await heard(channel, 5) == [*said, {"type": "keep_alive"}, {"type": "keep_alive"}]


async def test_what_the_cli_said_last_and_nobody_heard_is_named(channel, cli):
    async with cli() as socket:
        await say(socket, message(1))
        await heard(channel, 1)
    async with cli(last="u2") as socket:
        assert await heard(channel, 1) == [Returned()]
        assert channel.unheard == "u2"
        await say(socket, message(2))
        assert await heard(channel, 1) == [message(2)]
        assert channel.unheard is None


async def test_half_a_line_is_not_joined_with_what_the_next_connection_says(channel, cli):
    async with cli() as socket:
        await socket.send_str('{"type":"assistant","uuid":"u1","number"')
        await say(socket)
    async with cli() as socket:
        await say(socket, message(1))
        assert await heard(channel, 2) == [Returned(), message(1)]


async def test_what_is_sent_while_the_cli_is_away_is_there_when_it_is_back(channel, cli):
    async with cli() as socket:
        await channel.send(b'{"type":"one"}\n')
        await received(socket)
    await eventually(lambda: not channel.is_connected)
    await channel.send(b'{"type":"two"}\n')
    async with cli() as socket:
        assert await received(socket) == '{"type":"two"}\n'


async def test_a_second_connection_takes_the_place_of_the_first_which_is_heard_out(channel, cli):
    async with cli() as first:
        await say(first, *(message(number) for number in range(100)))
        async with cli(last="u99") as second:
            await say(second, message(99), message(100))
            entries = await heard(channel, 102)
            assert await closed_with(first) is None
            await channel.send(b'{"type":"hello"}\n')
            assert await received(second) == '{"type":"hello"}\n'
    assert [each for each in entries if not isinstance(each, Returned)] == [message(n) for n in range(101)]


async def test_the_order_is_kept_when_the_first_had_more_to_say_than_was_read(channel, cli):
    text = "x" * 100_000
    async with cli() as first:
        await say(first, *(message(number, text=text) for number in range(50)))
        async with cli() as second:
            await say(second, message(50))
            entries = await heard(channel, 52)
    assert [each if isinstance(each, Returned) else each["number"] for each in entries] == [
        *range(50),
        Returned(),
        50,
    ]


async def test_of_many_connections_at_once_one_is_left(channel, cli):
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:

        async def knock():
            async with cli() as socket:
                return await closed_with(socket)

        for _ in range(20):
            tasks.create_task(knock())
        await eventually(lambda: channel.is_connected)
        await asyncio.sleep(0)
        await channel.close()


async def test_sending_waits_while_too_much_waits_already(channel, cli):
    line = b"x" * 1_000_000 + b"\n"
    sending = asyncio.create_task(send_all(channel, [line] * 10))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await asyncio.shield(sending)
    async with cli() as socket:
        for _ in range(10):
            assert len(await received(socket)) == len(line)
        await sending


async def send_all(channel, lines):
    for line in lines:
        await channel.send(line)


async def test_a_reader_that_does_not_read_stops_the_cli_and_loses_nothing(channel, cli):
    text = "x" * 100_000
    async with cli() as socket:

        async def talk():
            await say(socket, *(message(number, text=text) for number in range(400)))

        talking = asyncio.create_task(talk())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncio.shield(talking)
        assert [each["number"] for each in await heard(channel, 400)] == list(range(400))
        await talking


async def test_close_sends_what_waits_and_then_4001(channel, cli):
    async with cli() as socket:
        await channel.send(b'{"type":"last"}\n')
        closing = asyncio.create_task(channel.close())
        assert await received(socket) == '{"type":"last"}\n'
        assert await closed_with(socket) == 4001
        await closing
    assert [entry async for entry in channel] == []
    with pytest.raises(Disconnected):
        await channel.send(b"{}\n")
    await channel.close()


async def test_close_does_not_wait_for_a_cli_that_does_not_read(channel, cli):
    async with cli() as socket:
        socket._conn.transport.pause_reading()
        await send_all(channel, [b"x" * 4_000_000 + b"\n"] * 2)
        async with asyncio.timeout(5):
            await channel.close()
        socket._conn.transport.resume_reading()


async def test_close_lets_a_cli_go_whose_words_nobody_reads(channel, cli):
    async with cli() as socket:
        talking = asyncio.create_task(say(socket, *(message(n, text="x" * 100_000) for n in range(200))))
        await eventually(lambda: channel._inbox._size >= channel._inbox._limit)
        async with asyncio.timeout(5):
            await channel.close()
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)


async def test_a_closed_channel_gives_what_was_heard_before(channel, cli):
    async with cli() as socket:
        await say(socket, message(1))
        await eventually(lambda: channel._inbox._entries)
        await channel.close()
    assert [json.loads(entry) async for entry in channel] == [message(1)]


async def test_who_was_closed_or_forgotten_is_not_let_in_again(served, channel, cli):
    async with cli() as socket:
        served.forget(SESSION)
        assert await closed_with(socket) == 4001
    with pytest.raises(WSServerHandshakeError) as refused:
        async with cli():
            pass
    assert refused.value.status == 401


async def test_a_session_that_is_expected_anew_has_another_token(served, channel, cli):
    again = served.expect(SESSION)
    assert again.token != channel.token
    assert len(bytes.fromhex(again.token)) >= 32
    with pytest.raises(WSServerHandshakeError):
        async with cli():
            pass
    async with cli(token=again.token) as socket:
        await say(socket, message(1))
        assert await heard(again, 1) == [message(1)]


async def test_a_line_over_the_limit_ends_the_session_for_good(served, channel, cli, monkeypatch):
    monkeypatch.setattr(sdk_server, "MESSAGE_LIMIT", 1000)
    async with cli() as socket:
        await say(socket, message(1))
        await socket.send_str("x" * 600)
        await socket.send_str("x" * 600)
        await socket.send_str("\n")
        assert await closed_with(socket) == 4001
    assert [json.loads(entry) async for entry in channel] == [message(1)]


async def test_a_frame_over_the_limit_ends_the_session_for_good(served, channel, cli, monkeypatch):
    monkeypatch.setattr(sdk_server, "MESSAGE_LIMIT", 1000)
    async with cli() as socket:
        await socket.send_str("x" * 1001)
        assert await closed_with(socket) == 1009
    assert [entry async for entry in channel] == []
    with pytest.raises(WSServerHandshakeError):
        async with cli():
            pass


@pytest.fixture
def post(served, channel, http):
    """``post(body)`` speaks as a hybrid CLI does; gives the status."""

    async def send(body, *, path=f"/sdk/session/{SESSION}/events", token=None):
        headers = {"Authorization": f"Bearer {token or channel.token}"}
        data = body if isinstance(body, bytes) else json.dumps(body, indent=1).encode()
        async with (
            asyncio.timeout(PATIENCE),
            http.post(served.url + path, data=io.BytesIO(data), headers=headers) as answer,
        ):
            return answer.status

    return send


@pytest.mark.parametrize("path", [f"/sdk/session/{SESSION}/events", f"/sdk/{SESSION}/events"])
async def test_a_hybrid_cli_listens_on_the_socket_and_speaks_by_post(channel, cli, post, path):
    async with cli(path=f"/sdk/ws/{SESSION}") as socket:
        await channel.send(b'{"type":"user"}\n')
        assert await received(socket) == '{"type":"user"}\n'
        assert await post({"events": [message(1)]}, path=path) == 200
        assert await post({"events": [message(2, text="a\nb"), message(3)]}, path=path) == 200
        assert await post({"events": []}, path=path) == 200
        assert await heard(channel, 3) == [message(1), message(2, text="a\nb"), message(3)]


async def test_a_repeated_post_is_answered_and_heard_once(channel, post):
    batch = {"events": [message(1), {"type": "control_request", "request_id": "q"}]}
    assert [await post(batch) for _ in range(3)] == [200, 200, 200]
    assert await post({"events": [message(2)]}) == 200
    assert await heard(channel, 3) == [*batch["events"], message(2)]


async def test_a_post_that_found_no_room_is_taken_when_it_is_repeated(channel, post, monkeypatch):
    monkeypatch.setattr(sdk_server, "_POST_SECONDS", 0.1)
    large = "x" * 3_000_000
    batch = {"events": [message(number, text=large) for number in range(4)]}
    assert await post(batch) == 503
    assert [each["number"] for each in await heard(channel, 2)] == [0, 1]
    assert await post(batch) == 200
    assert [each["number"] for each in await heard(channel, 2)] == [2, 3]


async def test_a_large_post_is_taken(channel, post):
    posted = asyncio.create_task(post({"events": [message(1, text="x" * 20_000_000)]}))
    assert [each["number"] for each in await heard(channel, 1)] == [1]
    assert await posted == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b'{"events":5}', b'{"events":[', b"[" * 100_000, b'{"events":["\xff"', b"\xff"],
)
async def test_a_body_that_is_no_batch_is_refused(channel, post, body):
    assert await post(body) == 400


async def test_a_body_over_the_limit_is_refused(channel, post, monkeypatch):
    monkeypatch.setattr(sdk_server, "MESSAGE_LIMIT", 1000)
    assert await post({"events": [message(1, text="x" * 2000)]}) == 413


async def test_plain_http_is_told_what_is_served_here(served, channel, http):
    headers = {"Authorization": f"Bearer {channel.token}"}
    async with http.get(served.url + channel.path, headers=headers) as answer:
        assert (answer.status, await answer.text()) == (426, "A WebSocket is served here.\n")
