"""A process under a keeper: its streams, its end, and the certainty that nothing of it stays behind.

The keeper is told by a lifeline, a pipe that ends when we close it and also when we are killed. By a second pipe
it tells us when the process has started and when it has ended, at once, whoever may still have its streams.

It does not know what process it is.
"""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import ClassVar, Self

import msgspec

from ide_bridge.errors import InvalidParams, SetupProblem
from ide_bridge.session.process import keeper
from ide_bridge.session.process.pipes import LastWords, Sink, Source

__all__ = ["Kept", "Patience"]

_START_SECONDS = 30.0
_OUTER_SECONDS = 15.0
_LOOK_SECONDS = 0.02
_KILLED = 128 + signal.SIGKILL


class Patience(msgspec.Struct, frozen=True):
    """How long a process may take to end: after its input has ended, and after it was told to, in seconds."""

    finish: float = 5.0
    obey: float = 5.0


class Command(msgspec.Struct, frozen=True):
    """What to run, where, and with what around it."""

    words: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    keep: Sequence[int] = ()
    streams: bool = True
    patience: Patience = Patience()


class _Ends(msgspec.Struct, frozen=True):
    """Our ends of the pipes."""

    lifeline: int
    news: int
    words: int
    input: int | None
    output: int | None


class Kept:
    """One process and all that it starts; a channel to it, unless it was started without streams."""

    missed: ClassVar[bool] = False
    name: ClassVar[str] = "The program"

    def __init__(self, command: Command, ends: _Ends, process: "subprocess.Popen[bytes]") -> None:
        self.pid = 0
        self._command = command
        self._keeper = process
        self._lifeline: int | None = ends.lifeline
        self._news, self._unread_news = ends.news, b""
        self._words = LastWords(ends.words)
        self._output = None if ends.output is None else Source(ends.output)
        self._input = None if ends.input is None else Sink(ends.input, self._farewell)
        self._readers = 0
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[int] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._burial: asyncio.Task[None] | None = None
        os.set_blocking(self._news, False)
        self._loop.add_reader(self._news, self._take_news)

    @classmethod
    async def run(cls, command: Command) -> Self:
        """Start a command, named by its path; raises ``SetupProblem`` when that cannot be."""
        kept = cls(command, *_start_keeper(command))
        try:
            async with asyncio.timeout(_START_SECONDS):
                await kept._started
        except TimeoutError:
            await kept.end()
            raise SetupProblem(f"{command.words[0]} could not be started in time; try it again.") from None
        except BaseException:
            await kept.end()
            raise
        return kept

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """What the process says, cut anywhere, until it is gone, or will say no more."""
        if self._output is None:
            await asyncio.shield(self._ended)
            return
        self._readers += 1
        try:
            while data := await self._output.read():
                yield data
        finally:
            self._readers -= 1

    async def send(self, data: bytes) -> None:
        """Send whole lines; wait while the process does not read. Raises ``Disconnected`` when it is gone."""
        if self._input is None:
            raise SetupProblem(f"{self.name} does not read its standard input; use the connection it has made.")
        await self._input.send(data)

    async def close(self) -> None:
        """End the process's input; safe to call twice."""
        if self._input is not None:
            await self._input.close()

    @property
    def complaint(self) -> str:
        """The last it said on standard error, a few kilobytes at the most."""
        return self._words.text

    async def wait(self) -> int:
        """Wait until the process and all it has started are gone; gives its code, 128 and more for a signal."""
        await self._gone.wait()
        return self._ended.result()

    async def end(self) -> int:
        """End the process in steps, with everything it has started; gives its code."""
        await self.close()
        self._release()
        if self._output is not None and not self._readers:
            self._output.discard()
        patience = self._command.patience
        for seconds in (patience.finish + patience.obey + _OUTER_SECONDS, _OUTER_SECONDS):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await self.wait()
            self._keeper.kill()
        return _KILLED

    def _take_news(self) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._news, 4096)
            *lines, self._unread_news = (self._unread_news + data).split(b"\n")
            for line in lines:
                self._heed(*line.decode().split())
            if not data:
                self._loop.remove_reader(self._news)
                os.close(self._news)
                self._burial = self._loop.create_task(self._bury())

    def _heed(self, what: str, number: str) -> None:
        if what == "ended":
            self._finish(int(number))
        elif what == "started":
            self.pid = int(number)
            _settle(self._started, self.pid)
        elif not self._started.done():
            self._started.set_exception(_not_run(self._command.words[0], os.strerror(int(number))))

    def _finish(self, code: int) -> None:
        """The process is gone: end what depends on it, after the last it said."""
        _settle(self._ended, code)
        self._words.finish()
        for stream in (self._input, self._output):
            if stream is not None:
                stream.finish()

    async def _bury(self) -> None:
        """The keeper is gone, and so is everything else, unless it was killed."""
        if not self._ended.done() and self.pid:
            await self._end_orphans()
        self._finish(_KILLED)
        self._release()
        await asyncio.to_thread(self._keeper.wait)  # it has closed its last descriptor, so this takes no time
        if not self._started.done():
            self._started.set_exception(_not_run(sys.executable, self.complaint or "it ended at once"))
        self._gone.set()

    async def _end_orphans(self) -> None:
        """Do the keeper's work, as far as the family can still be told from others."""
        orphans = self._family()
        for number, seconds in ((signal.SIGTERM, keeper.GRACE_SECONDS), (signal.SIGKILL, keeper.GRACE_SECONDS)):
            deadline = self._loop.time() + seconds
            orphans |= self._family()
            for pid in orphans:
                keeper.kill(pid, number)
            while orphans and self._loop.time() < deadline:
                await asyncio.sleep(_LOOK_SECONDS)
                orphans = {pid: orphans[pid] for pid in keeper.same(keeper.processes(), orphans)}

    def _family(self) -> dict[int, keeper.Process]:
        table = keeper.processes()
        group = {pid for pid, (_, number, _) in table.items() if number == self.pid}
        return {pid: table[pid] for pid in keeper.below(self.pid, table) | group}

    def _release(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _farewell(self) -> str:
        last = self.complaint.rpartition("\n")[2]
        return f"{self.name} has ended and said: {last}" if last else f"{self.name} has ended."


def _settle(future: asyncio.Future[int], number: int) -> None:
    if not future.done():
        future.set_result(number)


def _start_keeper(command: Command) -> tuple[_Ends, "subprocess.Popen[bytes]"]:
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:

        def pipe(*, inwards: bool) -> tuple[int, int]:
            reading, writing = os.pipe()
            their, our = (writing, reading) if inwards else (reading, writing)
            theirs.callback(os.close, their)
            ours.callback(os.close, our)
            return their, our

        try:
            lifeline, news, words = pipe(inwards=False), pipe(inwards=True), pipe(inwards=True)
            given, said = (pipe(inwards=False), pipe(inwards=True)) if command.streams else (None, None)
            process = _popen(command, (lifeline[0], news[0]), (given and given[0], said and said[0], words[0]))
        except OSError as error:
            raise _not_started(error, command.folder) from None
        except ValueError:
            raise InvalidParams("A null character, or = in a variable's name, cannot be passed on.") from None
        ours.pop_all()
        return _Ends(lifeline[1], news[1], words[1], given and given[1], said and said[1]), process


def _popen(
    command: Command, pipes: tuple[int, int], streams: tuple[int | None, int | None, int]
) -> "subprocess.Popen[bytes]":
    descriptors = ",".join(map(str, (*pipes, *command.keep)))
    patience = f"{command.patience.finish},{command.patience.obey}"
    locale = command.environment.get("LC_CTYPE", "")
    given, said, words = streams
    return subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, descriptors, patience, locale, *command.words],
        cwd=command.folder,
        env=command.environment,
        stdin=subprocess.DEVNULL if given is None else given,
        stdout=words if said is None else said,
        stderr=words,
        pass_fds=(*pipes, *command.keep),
        start_new_session=True,  # what is typed in the bridge's terminal is not meant for its sessions
    )


def _not_started(error: OSError, folder: str) -> SetupProblem:
    if error.filename == folder or not os.path.isdir(folder):
        return SetupProblem(f"The folder {folder} cannot be entered: {error.strerror}; choose another one.")
    if error.errno in {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}:
        return SetupProblem(f"No further session can be started: {error.strerror}; stop one first.")
    return _not_run(sys.executable, error.strerror or "it is unusable")


def _not_run(program: str, reason: str) -> SetupProblem:
    return SetupProblem(f"{program} cannot be run: {reason}; install it anew, or name another.")
