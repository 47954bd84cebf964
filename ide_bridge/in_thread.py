"""A bridge in a thread of its own, for programs without an event loop.

It does not know what it runs, beyond that it can be run and asked to stop.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Protocol

__all__ = ["InThread"]


class Runs(Protocol):
    """What can be run until it is asked to stop."""

    async def run(self, *, ready: Callable[[], None] = ...) -> None:
        """Run; tell when it is ready."""

    def ask_to_stop(self) -> None:
        """Let ``run`` end."""


class InThread:
    """Something that runs beside the program; made when it is ready, or has failed."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ide-bridge", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def close(self) -> None:
        """Have it stop, and wait until it is gone."""
        with contextlib.suppress(RuntimeError):  # it may have stopped by itself, and its loop is closed then
            self._loop.call_soon_threadsafe(self._runs.ask_to_stop)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._runs.run(ready=self._started.set))
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for us
                self._error = error
            finally:
                self._started.set()
