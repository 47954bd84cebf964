"""The real CLI with ``--sdk-url``: no terminal, no pipes, only the server it was given.

It does not know who serves it.
"""

import asyncio
import subprocess
import time
from pathlib import Path
from typing import Self

from tests.fakes.claude_cli import KEY, Home, claude_command

__all__ = ["NEWEST_SDK", "OLDEST_SDK", "SdkCli"]

NEWEST_SDK, OLDEST_SDK = "2.1.120", "2.1.37"
PATIENCE = 60.0
POLL = 0.02


class SdkCli:
    """Runs until it ends by itself or the ``with`` block ends."""

    def __init__(
        self, home: Home, api_url: str, folder: Path, sdk_url: str, *flags: str, version: str, **variables: str
    ) -> None:
        home.trust(folder)
        environment = home.environment | {
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": api_url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "IS_SANDBOX": "1",
        }
        self._log = home.path / f"cli-{version}-{time.monotonic_ns()}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*claude_command(version), "--sdk-url", sdk_url, "--permission-mode", "default", *flags],
                cwd=folder,
                env=environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        """What it has printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    async def ended(self) -> int:
        """Wait until it has ended by itself; gives its exit code."""
        async with asyncio.timeout(PATIENCE):
            while self.process.poll() is None:
                await asyncio.sleep(POLL)
        return self.process.returncode
