"""The stage itself: nothing leaves this machine, and the real CLI takes the scripted model for a real one."""

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.claude_cli import NEWEST, OLD
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash, Edit, Read, Write
from tests.fakes.terminal import Terminal

ELSEWHERE = "192.0.2.1"  # reserved for documentation: nobody's address, but a way out would be tried


@pytest.fixture
def isolated(isolation_refused: str | None) -> None:
    if isolation_refused is not None:
        unavailable(isolation_refused)


def test_nothing_leaves_this_machine(isolated: None) -> None:
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection((ELSEWHERE, 80), timeout=5)


def test_nothing_leaves_through_a_child(isolated: None) -> None:
    attempt = f"import socket; socket.create_connection(({ELSEWHERE!r}, 80), timeout=5)"
    child = subprocess.run([sys.executable, "-c", attempt], capture_output=True, encoding="utf-8", timeout=30)
    assert "unreachable" in child.stderr


def test_loopback_is_there() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as here,
    ):
        assert here.getpeername() == server.getsockname()


@pytest.mark.real_cli
@pytest.mark.parametrize("version", [NEWEST, OLD])
def test_cli_follows_the_script(
    project: Path, api: MessagesApi, claude: Callable[..., Terminal], version: str
) -> None:
    old, new, third = (project / name for name in ("old.txt", "new.txt", "third.txt"))
    old.write_text("one\n", encoding="utf-8")
    edits = [Edit(old, "one", "eins"), Write(new, "zwei\n")]
    api.script("translate it", Read(old), edits, Bash(f"echo drei > {third}"), "All translated.")
    cli = claude(project, "--allowedTools=Edit,Write,Bash", version=version)
    cli.wait_for("❯")
    cli.type("please translate it")
    cli.wait_for("please translate it")
    cli.press_until("Enter", "All translated.")
    assert [file.read_text(encoding="utf-8") for file in (old, new, third)] == ["eins\n", "zwei\n", "drei\n"]
    assert "please translate it" in api.told()


def test_terminal_shows_its_last_screen_when_it_waits_in_vain(tmp_path: Path) -> None:
    with (
        Terminal(
            ["sh", "-c", "echo something else; exec sleep 60"], tmp_path, {"PATH": "/usr/bin:/bin"}
        ) as terminal,
        pytest.raises(AssertionError, match="something else"),
    ):
        terminal.wait_for("never shown", seconds=1)
