"""Where plug-ins are examined: a program that speaks the link itself, or an editor whose plug-in attaches.

Both start what they are given in a temporary folder, again if it has gone, and end it when all is done.

It does not know what is checked, nor who is told.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ide_bridge.conform.host import Host
from ide_bridge.conform.people import Actor
from ide_bridge.conform.person import Person
from ide_bridge.conform.subject import Subject
from ide_bridge.conform.verdict import Nonconforming
from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import Claim

__all__ = ["EditorStage", "Offer", "ProgramStage"]

HELLO_SECONDS = 15.0
END_SECONDS = 2.0
POLL_SECONDS = 0.02
_LOG_BYTES = 64 * 1024
_SIZE = (40, 120)


class _LinkStage:
    """A folder, and whoever is attached in it."""

    def __init__(self, root: Path, otherwise: Person) -> None:
        self._root = Path(os.path.realpath(root))
        self._otherwise = otherwise
        self.name = ""
        self._present: Subject | None = None
        self._host: Host | None = None

    async def subject(self) -> Subject:
        """A living editor: the one there is, or, when it has gone, another."""
        if self._present is None or self._present.gone:
            await self._leave()
            self._present = await self._meet()
        return self._present

    async def close(self) -> None:
        """End what was started."""
        await self._leave()

    async def _meet(self) -> Subject:
        host = self._host = await self._start()
        editor = await host.attached(HELLO_SECONDS)
        self.name = editor.name
        return Subject(editor, Actor(host.connection, self._otherwise), self._root, host)

    async def _start(self) -> Host:
        """Start it, and give the line to it."""
        raise NotImplementedError

    async def _end(self) -> None:
        """End it."""
        raise NotImplementedError

    async def _leave(self) -> None:
        if self._present is not None:
            await self._present.close()
            self._present = None
        if self._host is not None:
            await self._host.close()
            self._host = None
        await self._end()


class ProgramStage(_LinkStage):
    """A program with the link on its standard input and output; ``log`` is what it has written to stderr."""

    def __init__(self, command: Sequence[str], root: Path, otherwise: Person) -> None:
        super().__init__(root, otherwise)
        self.log = b""
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._logging: asyncio.Task[None] | None = None

    async def _start(self) -> Host:
        try:
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=self._root,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise SetupProblem(f"{self._command[0]} cannot be started: {error.strerror}.") from None
        self._logging = asyncio.create_task(self._keep_log(process))
        if process.stdin is None or process.stdout is None:
            raise SetupProblem(f"{self._command[0]} has no standard streams.")
        return Host(process.stdout, process.stdin)

    async def _end(self) -> None:
        """Its input has ended already; who does not take that as a hint is ended."""
        process, self._process = self._process, None
        if process is None:
            return
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                if number is not None:
                    process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_SECONDS)
                break
        if self._logging is not None:
            await asyncio.wait([self._logging], timeout=END_SECONDS)  # a child of its may hold the pipe open
            self._logging.cancel()

    async def _keep_log(self, process: asyncio.subprocess.Process) -> None:
        while process.stderr is not None and (data := await process.stderr.read(_LOG_BYTES)):
            self.log = (self.log + data)[-_LOG_BYTES:]


class Offer:
    """A private socket, found by ``ide-bridge attach`` as a bridge's would be, where plug-ins meet a host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._claim = Claim([str(folder)], "conform")
        self._waiting: asyncio.Queue[Host] = asyncio.Queue()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Let plug-ins come."""
        path = self._claim.socket_path
        self._server = await asyncio.start_unix_server(self._accept, path)
        os.chmod(path, 0o600)

    async def next_host(self, seconds: float) -> Host:
        """The plug-in that comes next."""
        try:
            async with asyncio.timeout(seconds):
                return await self._waiting.get()
        except TimeoutError:
            raise Nonconforming(
                f"Expected the plug-in to start `ide-bridge attach` in {self._folder}; "
                f"none had attached after {seconds:g} s."
            ) from None

    async def close(self) -> None:
        """Let nobody come any more."""
        if self._server is not None:
            self._server.close()
            with suppress(OSError):
                os.unlink(self._claim.socket_path)
        self._claim.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._waiting.put_nowait(Host(reader, writer))


class EditorStage(_LinkStage):
    """An editor in a pseudo-terminal, whose plug-in starts ``ide-bridge attach`` itself."""

    def __init__(
        self, command: Sequence[str], root: Path, environment: Mapping[str, str], otherwise: Person
    ) -> None:
        super().__init__(root, otherwise)
        self.log = b""
        self._command = command
        self._environment = environment
        self._offer: Offer | None = None
        self._pid = 0
        self._terminal = -1

    async def close(self) -> None:
        """End the editor first: a relay that lives would start a bridge in our place."""
        await super().close()
        if self._offer is not None:
            await self._offer.close()

    async def _start(self) -> Host:
        if self._offer is None:
            self._offer = Offer(self._root)
            await self._offer.open()
        self._pid, self._terminal = _start_in_terminal(self._command, self._root, self._environment)
        asyncio.get_running_loop().add_reader(self._terminal, self._look)
        return await self._offer.next_host(HELLO_SECONDS)

    async def _end(self) -> None:
        if not self._pid:
            return
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            if await self._gone_after(number):
                break
        self._pid = 0
        asyncio.get_running_loop().remove_reader(self._terminal)
        os.close(self._terminal)

    async def _gone_after(self, number: signal.Signals) -> bool:
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            if _is_gone(self._pid):
                return True
            await asyncio.sleep(POLL_SECONDS)
        return False

    def _look(self) -> None:
        """An editor whose screen nobody reads would stop."""
        try:
            data = os.read(self._terminal, _LOG_BYTES)
        except OSError:  # so Linux says that nobody is there any more
            data = b""
        self.log = (self.log + data)[-_LOG_BYTES:]
        if not data:
            asyncio.get_running_loop().remove_reader(self._terminal)


def _is_gone(pid: int) -> bool:
    """Whether a child of ours has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True


def _start_in_terminal(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, int]:
    """Start a program in a new pseudo-terminal that is its own; gives its pid and our end."""
    import fcntl  # noqa: PLC0415 - absent on Windows, where there is no pseudo-terminal either
    import pty  # noqa: PLC0415
    import struct  # noqa: PLC0415
    import termios  # noqa: PLC0415

    sys.stdout.flush()
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(folder)
            os.execvpe(command[0], list(command), dict(environment))  # noqa: S606 - the user named the program
        except OSError as error:
            os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", *_SIZE, 0, 0))
    return pid, terminal
