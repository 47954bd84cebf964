import asyncio

import pytest

from ide_bridge.errors import Disconnected
from ide_bridge.session.sdk_server.backlog import Backlog


async def take(backlog):
    entry = await backlog.first()
    backlog.drop()
    return entry


async def test_entries_come_in_the_order_they_were_put():
    backlog = Backlog(100)
    for number in range(5):
        await backlog.put(number, 1)
    assert [await take(backlog) for _ in range(5)] == [0, 1, 2, 3, 4]


async def test_an_entry_stays_the_first_until_it_is_dropped():
    backlog = Backlog(100)
    await backlog.put("a", 1)
    assert [await backlog.first(), await backlog.first()] == ["a", "a"]


async def test_who_finds_no_room_waits_until_there_is_some():
    backlog = Backlog(10)
    await backlog.put("a", 9)
    await backlog.put("b", 9)
    waiting = [asyncio.create_task(backlog.put(name, 9)) for name in "cd"]
    await asyncio.sleep(0)
    assert await take(backlog) == "a"
    await asyncio.wait(waiting, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    assert [task.done() for task in waiting] == [True, False]
    assert [await take(backlog), await take(backlog)] == ["b", "c"]
    assert await asyncio.wait_for(take(backlog), 5) == "d"


async def test_an_offer_is_refused_when_there_is_no_room():
    backlog = Backlog(10)
    assert [backlog.offer("a", 50), backlog.offer("b", 1)] == [True, False]
    assert await take(backlog) == "a"
    assert backlog.offer("b", 1)


async def test_a_closed_backlog_gives_what_it_has_and_takes_no_more():
    backlog = Backlog(10)
    backlog.add("a", 50)
    blocked = asyncio.create_task(backlog.put("b", 1))
    await asyncio.sleep(0)
    backlog.close()
    with pytest.raises(Disconnected):
        await blocked
    assert not backlog.offer("c", 1)
    assert await take(backlog) == "a"
    assert await backlog.first() is None


async def test_who_waits_for_an_entry_learns_of_the_end():
    backlog = Backlog(10)
    waiting = asyncio.create_task(backlog.first())
    await asyncio.sleep(0)
    backlog.close()
    assert await asyncio.wait_for(waiting, 5) is None
