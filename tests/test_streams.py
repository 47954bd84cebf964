"""A channel over real sockets; the test holds the other end as plain bytes."""

import asyncio
import contextlib
import socket
import struct

import pytest

from ide_bridge.wire import streams as module
from ide_bridge.wire.framing import ContentLength, Lines, TooLarge
from ide_bridge.wire.streams import StreamChannel

BLOCK = b"x" * 1024 * 1024


@contextlib.asynccontextmanager
async def channel_and_other_end(framing):
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    theirs.setblocking(False)
    with theirs:
        yield StreamChannel(reader, writer, framing), theirs
    writer.transport.abort()
    await asyncio.sleep(0)


@pytest.fixture
async def pair():
    async with channel_and_other_end(ContentLength(20)) as both:
        yield both


async def collect(channel):
    async with asyncio.timeout(5):
        return [message async for message in channel]


async def receive(other, size):
    data = b""
    async with asyncio.timeout(5):
        while len(data) < size and (piece := await asyncio.get_running_loop().sock_recv(other, size)):
            data += piece
    return data


async def send_until_stuck(channel):
    """Send what the other end does not read, until a message waits; give the task that does."""
    while True:
        sending = asyncio.create_task(channel.send(BLOCK))
        done, _ = await asyncio.wait([sending], timeout=0.1)
        if not done:
            return sending


async def test_messages_come_in_frames(pair):
    channel, other = pair
    other.sendall(
        b"Content-Length: 2\r\n\r\n{}Content-Length: 21\r\n\r\n" + b"x" * 21 + b"Content-Length: 1\r\n\r\n7"
    )
    other.shutdown(socket.SHUT_WR)
    assert await collect(channel) == [b"{}", TooLarge(21), b"7"]


async def test_messages_go_out_in_frames(pair):
    channel, other = pair
    await channel.send(b"{}")
    await channel.send(b"7")
    expected = b"Content-Length: 2\r\n\r\n{}Content-Length: 1\r\n\r\n7"
    assert await receive(other, len(expected)) == expected


async def test_the_framing_is_the_one_given():
    async with channel_and_other_end(Lines()) as (channel, other):
        await channel.send(b"{}")
        assert await receive(other, 3) == b"{}\n"


async def test_nonsense_ends_the_channel_after_what_came_before_it(pair):
    channel, other = pair
    other.sendall(b"Content-Length: 1\r\n\r\n7Nonsense\r\n\r\n")
    messages = aiter(channel)
    assert await asyncio.wait_for(anext(messages), 5) == b"7"
    other.sendall(b"more")
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(anext(messages), 5)


async def test_an_other_end_that_is_killed_is_just_gone():
    accepted = asyncio.Queue()
    server = await asyncio.start_server(lambda *streams: accepted.put_nowait(streams), "127.0.0.1", 0)
    async with server:
        other = socket.create_connection(server.sockets[0].getsockname())
        other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing becomes a reset
        reader, writer = await asyncio.wait_for(accepted.get(), 5)
        channel = StreamChannel(reader, writer, ContentLength())
        other.close()
        assert await collect(channel) == []
        with pytest.raises(ConnectionError):
            await channel.send(b"{}")
        await channel.close(1001, "")


async def test_the_sender_waits_while_the_other_end_does_not_read(pair):
    channel, other = pair
    sending = await send_until_stuck(channel)
    while not sending.done():
        await receive(other, len(BLOCK))
    await sending


async def test_closing_sends_what_was_said_before(pair):
    channel, other = pair
    await channel.send(b"{}")
    await channel.close(1000, "bye")
    await channel.close(1000, "once more")
    assert await receive(other, 1000) == b"Content-Length: 2\r\n\r\n{}"


async def test_closing_does_not_wait_for_ever_for_one_who_does_not_read(pair, monkeypatch):
    monkeypatch.setattr(module, "_CLOSE_SECONDS", 0.05)
    channel, _other = pair
    sending = await send_until_stuck(channel)
    reading = asyncio.create_task(collect(channel))
    async with asyncio.timeout(5):
        await channel.close(1008, "You do not read.")
        assert await reading == []
        await sending
        await channel.close(1001, "")
