"""A bridge that is going to be killed: a process of its own that runs one session and passes on what the CLI says.

It does not stop what it has started; that is what is tested.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil

__all__ = ["DoomedBridge", "is_gone"]

PROGRAM = """
import asyncio, json, os, sys
from ide_bridge.session.process import Cli, CliProcess, Launch, Patience

async def run(given):
    patience = Patience(*given["patience"])
    cli = Cli(tuple(given["command"]), (2, 1, 326))
    launch = Launch(given["session"], given["folder"])
    process = await CliProcess.start(
        cli, launch, environment=given["environment"], keep=given["keep"], patience=patience
    )
    os.write(1, b"%d\\n" % process.pid)
    await process.send(given["prompt"].encode() + b"\\n")
    async for data in process:
        os.write(1, data)

asyncio.run(run(json.loads(sys.argv[1])))
"""


class DoomedBridge:
    """Started at once; ``with`` ends it in any case."""

    def __init__(self, command, session, folder, environment, prompt, *, keep=(), patience=(5.0, 5.0)) -> None:
        message = {"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None}
        given = {
            "command": command,
            "session": session,
            "folder": str(folder),
            "environment": environment,
            "prompt": json.dumps(message | {"session_id": ""}),
            "keep": keep,
            "patience": patience,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(given)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            pass_fds=keep,
        )
        self.cli = int(self._line())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.kill()
        self._process.stdout.close()

    @property
    def keeper(self) -> int:
        """The process between the bridge and the CLI."""
        (keeper,) = psutil.Process(self._process.pid).children()
        return keeper.pid

    def wait_for(self, text: str) -> str:
        """The first line of the CLI that holds the text."""
        while text not in (line := self._line()):
            pass
        return line

    def kill(self) -> None:
        """Killed, as by a person who has lost patience, or a system that has lost memory."""
        self._process.kill()
        self._process.wait()

    def _line(self) -> str:
        line = self._process.stdout.readline().decode()
        assert line, "the bridge has ended"
        return line


def is_gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has looked at it since."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
