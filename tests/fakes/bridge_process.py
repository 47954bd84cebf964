"""The bridge as its users run it: ``ide-bridge serve FOLDER --json``, a process of its own.

It does not know what is inside: it sees the command line, the lock, and what the two print.
"""

import json
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Self

__all__ = ["BridgeProcess"]

PROGRAM = [str(Path(sys.executable).with_name("ide-bridge"))]
PATIENCE = 20.0
POLL = 0.1


class BridgeProcess:
    """Serves until ``stop``, or until a ``with`` block ends; ``ready`` is what it printed when up."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *flags: str) -> None:
        self._environment = dict(environment)
        self._log = Path(environment["HOME"]) / "bridge.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*PROGRAM, "serve", str(folder), "--json", *flags],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        try:
            self.ready: dict[str, Any] = json.loads(self._first_line())
        except BaseException:
            self.stop(signal.SIGKILL)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    @property
    def lock(self) -> Path:
        """The lock file by which a CLI finds this bridge."""
        return Path(self.ready["lock"])

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def log(self) -> str:
        """What the bridges of this home have written to stderr."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def clients(self) -> list[dict[str, Any]]:
        """The connected clients, as ``ide-bridge status --json`` lists them for this bridge."""
        status = subprocess.run(
            [*PROGRAM, "status", "--json"], env=self._environment, capture_output=True, timeout=PATIENCE
        )
        assert status.returncode == 0, f"ide-bridge status failed: {status.stderr.decode(errors='replace')}"
        bridges = json.loads(status.stdout)["bridges"]
        return next((bridge["clients"] for bridge in bridges if bridge["pid"] == self.ready["pid"]), [])

    def wait_for_clients(self, wanted: Callable[[list[dict[str, Any]]], bool], seconds: float = 30) -> None:
        """Returns once the clients are as wanted; fails with the last list seen and the bridge's log."""
        deadline = time.monotonic() + seconds
        while not wanted(clients := self.clients()):
            if time.monotonic() > deadline:
                raise AssertionError(f"after {seconds:g} s the clients are {clients}; log:\n{self.log()}")
            time.sleep(POLL)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Ends the bridge by a signal and returns its exit code; the second time it only returns it."""
        if self._process.poll() is None:
            self._process.send_signal(by)
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"the bridge did not stop on {by.name}; log:\n{self.log()}") from None
        finally:
            self._output.close()

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _first_line(self) -> str:
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            line = self._output.readline() if selector.select(PATIENCE) else b""
        assert line, f"ide-bridge serve --json printed nothing; log:\n{self.log()}"
        return line.decode()
