"""A linter's process: one command run to its end, and what it said.

It gets no shell and no input, and a process group of its own, which is ended as a whole: when its time is up,
when it says too much, and when whoever waits for it is cancelled.

It does not know what the command is for, but how to have its words understood.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from typing import cast

from ide_bridge.editor.lint_output import Finding, parse

__all__ = ["OUTPUT_LIMIT", "LintProcess", "run_process"]

OUTPUT_LIMIT = 1024 * 1024
_END_SECONDS = 2.0
_COMPLAINT_LIMIT = 200


class LintProcess(asyncio.SubprocessProtocol):
    """A linter's process, and the beginning of what it says; ``code`` stays ``None`` while it has not ended."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.code: int | None = None
        self.cut = False
        self._said = {1: bytearray(), 2: bytearray()}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has started."""
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It says something."""
        said = self._said[fd]
        self.cut = self.cut or len(said) + len(data) > OUTPUT_LIMIT
        said += data[: OUTPUT_LIMIT - len(said)]
        if self.cut:
            self.kill()

    def process_exited(self) -> None:
        """It has ended, but what it started may still have its pipes."""
        self._exited.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        """It has ended, and nobody can write to its pipes any more."""
        self.code = self._transport.get_returncode()
        self.ended.set_result(None)

    def kill(self) -> None:
        """End it with everything it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            else:
                self._transport.kill()

    async def end(self) -> None:
        """End it if need be, and wait until it has; what fled from its group keeps no pipe of ours."""
        if not self.ended.done():
            self.kill()
            # Closing looks after the process, and would take its exit code away from the loop.
            await asyncio.wait({self._exited}, timeout=_END_SECONDS)
        self._transport.close()
        await asyncio.wait({self.ended}, timeout=_END_SECONDS)

    def findings(self) -> list[Finding]:
        """What it found; compilers tell it on the second stream."""
        return [finding for said in self._said.values() for finding in parse(said.decode(errors="replace"))]

    def complaint(self) -> str:
        """The first line it said, to be shown to the user."""
        lines = (line for fd in (2, 1) for line in self._said[fd].decode(errors="replace").splitlines())
        first = next((line.strip() for line in lines if line.strip()), "")
        shown = "".join(character if character.isprintable() else "?" for character in first[:_COMPLAINT_LIMIT])
        return f" and said: {shown}" if shown else " and said nothing."


async def run_process(command: Sequence[str], folder: str, seconds: float) -> LintProcess:
    """Run a command in a folder to its end; one that takes too long is ended, and has no code."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    starting = asyncio.ensure_future(
        asyncio.get_running_loop().subprocess_exec(
            LintProcess, *command, cwd=folder, stdin=nothing, stdout=pipe, stderr=pipe, start_new_session=True
        )
    )
    try:
        _, process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError, ValueError):
            await (await starting)[1].end()  # a start that is broken off would leave behind what it started
        raise
    try:
        done, _ = await asyncio.wait({process.ended}, timeout=seconds)
    finally:
        await process.end()
    if not done:
        process.code = None
    return process
