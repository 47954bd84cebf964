import asyncio

import pytest

from ide_bridge.answers import settled, then, waits


async def later(value):
    await asyncio.sleep(0)
    return value


def double(value):
    return value * 2


async def test_what_is_there_is_used_at_once_and_what_is_not_when_it_comes():
    assert then(2, double) == 4
    coming = then(later(2), double)
    assert waits(coming)
    assert await settled(coming) == 4
    assert await settled(4) == 4


async def test_every_kind_of_awaitable_is_waited_for():
    future = asyncio.get_running_loop().create_future()
    future.set_result(1)
    task = asyncio.create_task(later(2))
    for answer, value in ((future, 1), (task, 2), (later(3), 3)):
        assert waits(answer)
        assert await settled(then(answer, double)) == value * 2


@pytest.mark.parametrize("answer", [None, 0, "", [], b"x", later])
def test_a_plain_value_is_not_waited_for(answer):
    assert not waits(answer)


async def test_an_error_comes_out_where_the_answer_is_used():
    with pytest.raises(TypeError):
        then(None, double)
    with pytest.raises(TypeError):
        await settled(then(later(None), double))
