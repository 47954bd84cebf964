"""What runs in a thread beside a program: told when it is ready, when it fails, and when to stop."""

import asyncio
import threading

import pytest

from ide_bridge.in_thread import InThread


class Clock:
    def __init__(self, failure=None):
        self.failure = failure
        self.thread = None

    async def run(self, *, ready=lambda: None):
        if self.failure is not None:
            raise self.failure
        self.thread = threading.current_thread()
        self.stopping = asyncio.Event()
        ready()
        await self.stopping.wait()

    def ask_to_stop(self):
        self.stopping.set()


def test_it_is_ready_when_it_is_made_and_gone_when_it_is_closed():
    clock = Clock()
    beside = InThread(clock)
    assert clock.thread is not None
    assert clock.thread.is_alive()
    beside.close()
    assert not clock.thread.is_alive()


def test_a_failure_is_raised_where_it_was_made():
    with pytest.raises(ZeroDivisionError):
        InThread(Clock(ZeroDivisionError()))


def test_closing_twice_is_harmless():
    beside = InThread(Clock())
    beside.close()
    beside.close()
