import asyncio

import pytest

from ide_bridge.answers import Later, dismiss, settled, then, waits


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


async def test_what_goes_wrong_can_be_made_an_answer():
    async def fails():
        raise ValueError("no")

    assert await Later(fails(), double, str) == "no"
    assert await Later(later("x"), int, lambda error: type(error).__name__) == "ValueError"
    with pytest.raises(ValueError, match="no"):
        await Later(fails(), double)


def test_what_nobody_waits_for_is_dismissed_with_all_it_was_made_of():
    dismiss(then(then(later(1), double), double))
    dismiss(None)
    dismiss("text")
