"""The real CLI finds the bridge and connects to it: by itself, and when its user picks it from a list.

Little of the CLI's screen is matched, because it changes from version to version.
"""

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_cli import NEWEST, OLD, Home
from tests.fakes.terminal import Terminal

pytestmark = pytest.mark.real_cli

StartBridge = Callable[..., BridgeProcess]
StartClaude = Callable[..., Terminal]

PROMPT = "❯"
FOLDER_TICKED = re.compile(r"✔ *Folder|Folder *✔")
YES_OR_NO = re.compile(r"\bYes\b[\s\S]*\bNo\b")  # whether to connect by itself from now on
FOLDER_CHOSEN = re.compile(r"❯[\s\d.✔]*Folder")


def connected(version: str) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda clients: [(c["name"], c["version"]) for c in clients] == [("claude-code", version)]


def open_ide_list(cli: Terminal) -> None:
    cli.wait_for(PROMPT)
    cli.type("/ide")
    cli.wait_for("Manage IDE integrations")
    cli.press_until("Enter", "Folder")


@pytest.mark.parametrize("version", [NEWEST, OLD])
def test_ide_flag_connects_by_itself(
    project: Path, bridge: StartBridge, claude: StartClaude, version: str
) -> None:
    served = bridge(project)
    cli = claude(project, "--ide", version=version)
    served.wait_for_clients(connected(version))
    open_ide_list(cli)
    cli.wait_for(FOLDER_TICKED)


def test_ide_command_lists_the_bridge_and_connects(
    project: Path, bridge: StartBridge, claude: StartClaude
) -> None:
    served = bridge(project)
    cli = claude(project)
    open_ide_list(cli)
    assert not cli.shows(FOLDER_TICKED)
    assert served.clients() == []
    cli.press_until("Up", FOLDER_CHOSEN)
    cli.press_until("Enter", YES_OR_NO)
    cli.press_until("Enter", "Connected to Folder.")
    served.wait_for_clients(connected(NEWEST))


def test_client_is_forgotten_when_its_cli_ends(project: Path, bridge: StartBridge, claude: StartClaude) -> None:
    served = bridge(project)
    cli = claude(project, "--ide")
    served.wait_for_clients(connected(NEWEST))
    cli.close()
    served.wait_for_clients(lambda clients: clients == [])


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_stopped_bridge_leaves_no_lock(
    home: Home, project: Path, bridge: StartBridge, claude: StartClaude, by: signal.Signals
) -> None:
    served = bridge(project)
    assert home.locks() == [served.lock]
    claude(project, "--ide")
    served.wait_for_clients(connected(NEWEST))
    assert served.stop(by) == 0
    assert home.locks() == []
