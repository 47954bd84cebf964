"""The pipes to a process, alone: nothing lost, nothing waited for that will not come."""

import asyncio
import contextlib
import os

import pytest

from ide_bridge.errors import Disconnected
from ide_bridge.session.process.pipes import LastWords, Sink, Source


async def test_a_source_gives_what_is_there_when_it_is_finished_and_no_more():
    reading, writing = os.pipe()
    source = Source(reading)
    os.write(writing, b"rest")
    waiting = asyncio.create_task(source.read())
    await waiting
    later = asyncio.create_task(source.read())
    await asyncio.sleep(0)
    os.write(writing, b"more")
    source.finish()
    assert (waiting.result(), await later, await source.read()) == (b"rest", b"more", b"")
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"too late")
    os.close(writing)


async def test_a_sink_whose_reader_has_gone_says_so():
    reading, writing = os.pipe()
    sink = Sink(writing, lambda: "gone")
    os.close(reading)
    with pytest.raises(Disconnected, match="gone"):
        await sink.send(b"x")
    await sink.close()


async def test_a_send_that_is_broken_off_before_anything_was_taken_is_not_sent():
    reading, writing = os.pipe()
    sink = Sink(writing, lambda: "gone")
    full = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            full += os.write(writing, b"." * 4096)
    sending = asyncio.create_task(sink.send(b"never"))
    await asyncio.sleep(0.01)
    sending.cancel()
    await asyncio.wait({sending})
    assert len(os.read(reading, full)) == full
    await sink.send(b"next")
    assert os.read(reading, 100) == b"next"
    sink.finish()
    os.close(reading)


async def test_a_sink_is_closed_in_time_though_nobody_reads():
    reading, writing = os.pipe()
    sink = Sink(writing, lambda: "gone")
    sending = asyncio.create_task(sink.send(b"x" * 1_000_000))
    await asyncio.sleep(0.01)
    await asyncio.wait_for(sink.close(), 5)
    with pytest.raises(Disconnected, match="gone"):
        await sending
    os.close(reading)


async def test_last_words_are_cut_at_a_line():
    reading, writing = os.pipe()
    words = LastWords(reading)
    os.write(writing, b"".join(b"line %d\n" % number for number in range(2000)))
    os.close(writing)
    words.finish()
    lines = words.text.splitlines()
    assert lines[-1] == "line 1999"
    assert all(line.startswith("line ") for line in lines)
