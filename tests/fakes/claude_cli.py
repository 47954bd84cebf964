"""The real Claude Code CLI from npm, as a person would start it, in a home that is thrown away.

It does not know the bridge: the two share a home, and find each other there as they would anywhere.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Self

from tests.fakes.programs import program, unavailable
from tests.fakes.terminal import Terminal

__all__ = ["LAST_OVER_SOCKET", "NEWEST", "OLD", "Home", "claude_command", "start_claude"]

NEWEST, LAST_OVER_SOCKET, OLD = "2.1.326", "2.1.120", "2.1.37"
INSTALLED = Path(__file__).parents[2] / ".cache" / "claude"
KEY = "sk-ant-api03-invented-for-tests-0123456789abcdefghij"


class Home:
    """One throw-away home with its config folder; the CLIs and bridges of one story share it."""

    def __init__(self) -> None:
        # Not under tmp_path: sockets below it must stay within 107 bytes of path.
        self.path = Path(tempfile.mkdtemp(prefix="home-")).resolve()
        self.config = self.path / ".claude-config"
        self.config.mkdir(mode=0o700)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)  # a CLI on its way out may still be writing here

    @property
    def environment(self) -> dict[str, str]:
        """All that a program is told about where it lives."""
        return {
            "HOME": str(self.path),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }

    def locks(self) -> list[Path]:
        """The lock files that a CLI would find."""
        return sorted((self.config / "ide").glob("*.lock"))

    def trust(self, folder: Path) -> None:
        """Answers beforehand what the CLI asks at the first start, and in a new folder."""
        file = self.config / ".claude.json"
        settings: dict[str, Any] = (
            json.loads(file.read_text(encoding="utf-8")) if file.exists() else _first_run_done()
        )
        settings.setdefault("projects", {})[str(folder)] = {"hasTrustDialogAccepted": True}
        file.write_text(json.dumps(settings), encoding="utf-8")


def _first_run_done() -> dict[str, Any]:
    return {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }


def claude_command(version: str) -> list[str]:
    """How to start this version: a native binary, or the script of the days before there was one."""
    packages = INSTALLED / version / "node_modules" / "@anthropic-ai"
    for binary in packages.glob("claude-code-*/claude"):
        return [str(binary)]
    script = packages / "claude-code" / "cli.js"
    if not script.exists():
        unavailable(f"Claude Code {version} is not installed; `make test` gets it")
    return [program("node"), str(script)]


def start_claude(home: Home, api_url: str, folder: Path, *flags: str, version: str, **variables: str) -> Terminal:
    """The CLI in a terminal of its own, with nothing in its environment but what is said here."""
    home.trust(folder)
    environment = home.environment | {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": api_url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
        # Notices and guesses of what might be typed next would stand where the stories look.
        "DISABLE_INSTALLATION_CHECKS": "1",
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
        "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
    }
    return Terminal([*claude_command(version), *flags], folder, environment | variables)
