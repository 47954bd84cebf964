"""The log of a session: numbers without gaps, bounded, and no pieces for those who come later."""

import asyncio

import msgspec
from msgspec import Raw

from ide_bridge.session import events
from ide_bridge.session.log import Log


def texts(entries):
    return [msgspec.json.decode(entry.event)["text"] for entry in entries]


def numbers(entries):
    return [entry.number for entry in entries]


def test_events_are_numbered_from_one_and_kept_in_order():
    log = Log()
    for text in "abc":
        log.add(events.Text(text))
    assert numbers(log.since(0, raw=False)) == [1, 2, 3]
    assert texts(log.since(2, raw=False)) == ["b", "c"]
    assert log.next == 4
    assert log.missing(0, raw=True) == 0
    assert log.since(4, raw=False) == []


def test_the_clis_own_words_are_for_those_who_want_them():
    log = Log()
    log.add(events.Message(Raw(b'{"type":"keep_alive"}')))
    log.add(events.Said("a"))
    assert numbers(log.since(0, raw=False)) == [2]
    (first, _) = log.since(0, raw=True)
    assert msgspec.json.decode(first.event) == {"kind": "message", "message": {"type": "keep_alive"}}


def test_the_oldest_go_when_there_are_too_many():
    log = Log(count=100)
    for number in range(1000):
        log.add(events.Text(str(number)))
        assert len(log.since(0, raw=False)) <= 100
    assert texts(log.since(0, raw=False)) == [str(number) for number in range(900, 1000)]
    assert texts(log.since(998, raw=False)) == ["997", "998", "999"]
    assert (log.missing(0, raw=False), log.missing(891, raw=False), log.missing(901, raw=False)) == (200, 10, 0)


def test_the_oldest_go_when_they_are_too_large_together_but_the_newest_stays():
    log = Log(size=1000)
    for letter in "abc":
        log.add(events.Text(letter * 400))
    assert [text[0] for text in texts(log.since(0, raw=False))] == ["b", "c"]
    log.add(events.Text("d" * 5000))
    assert [text[0] for text in texts(log.since(0, raw=False))] == ["d"]
    log.add(events.Text("e"))
    assert [text[0] for text in texts(log.since(0, raw=False))] == ["e"]


def test_who_joins_later_gets_whole_blocks_and_the_pieces_of_the_one_being_said():
    log = Log()
    for event in (
        events.Text("Hel"),
        events.Text("lo"),
        events.Said("Hello"),
        events.Text("An"),
        events.Text("d"),
    ):
        log.add(event)
    assert texts(log.story(raw=False)) == ["Hello", "An", "d"]
    assert texts(log.since(0, raw=False)) == ["Hel", "lo", "Hello", "An", "d"]


def test_what_a_sub_agent_says_whole_does_not_end_the_pieces_of_the_answer():
    log = Log()
    for event in (events.Text("An"), events.Said("From below", "t1"), events.Text("d")):
        log.add(event)
    assert texts(log.story(raw=False)) == ["An", "From below", "d"]


def test_the_clis_own_words_push_out_no_event():
    log = Log(size=1000)
    log.add(events.Said("kept"))
    for _ in range(5):
        log.add(events.Message(Raw(b'"' + b"x" * 900 + b'"')))
    assert texts(log.since(0, raw=False)) == ["kept"]
    assert numbers(log.since(0, raw=True)) == [1, 6]
    assert (log.missing(1, raw=False), log.missing(1, raw=True)) == (0, 4)


async def test_waiting_for_an_event():
    log = Log()
    waiting = asyncio.create_task(log.reaches(2))
    log.add(events.Text("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    log.add(events.Text("b"))
    await asyncio.wait_for(waiting, 1)
    await asyncio.wait_for(log.reaches(1), 1)


async def test_who_no_longer_waits_is_forgotten():
    log = Log()
    waiting = asyncio.create_task(log.reaches(1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    log.add(events.Text("a"))
    assert log.next == 2
