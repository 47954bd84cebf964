"""``ide-bridge status``: which bridges run, and who is connected to them.

It does not know how a bridge finds that out.
"""

import re
from typing import TYPE_CHECKING, Any

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.cli.reach import ask
from ide_bridge.errors import BridgeError, SetupProblem
from ide_bridge.running import Running, running_bridges

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from rich.text import Text

__all__ = ["add_arguments", "run"]

_PADDING = re.compile(r" +((?:\x1b\[[\d;]*m)*)$", re.MULTILINE)


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``status``."""
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: "argparse.Namespace") -> int:
    """Ask every bridge, and print what they say."""
    running = running_bridges()
    bridges, problems = [_status(bridge) for bridge in running], _problems(running)
    if args.json:
        print(json_text({"bridges": bridges} | ({"problems": problems} if problems else {})))
    elif not bridges:
        print("No bridge is running. Start one with: ide-bridge serve")
    else:
        _print_table(bridges)
        print(*map(printable, problems), sep="\n", end="\n" if problems else "")
    return 0


def _status(bridge: Running) -> dict[str, Any]:
    """What the bridge says; what it wrote down at its start if it does not answer."""
    known: dict[str, Any] = {
        **{key: bridge[key] for key in ("port", "pid", "workspaceFolders", "lock")},
        "clients": [],
        "editors": [],
        "diffs": [],
        "sessions": [],
    }
    try:
        answer = ask(bridge, "status", seconds=3)
    except BridgeError as error:
        return known | {"problem": str(error)}
    return answer if isinstance(answer, dict) else known


def _problems(bridges: list[Running]) -> list[str]:
    """What does not work as the user has set it, in sentences, each once."""
    from ide_bridge.cli.obstacles import missing_linters
    from ide_bridge.settings import load_settings

    sentences: dict[str, None] = {}
    for folder in (folder for bridge in bridges for folder in bridge.folders[:1]):
        try:
            found = missing_linters(load_settings([folder]).linters, folder)
            sentences |= dict.fromkeys(f"{each.text} {each.fix}" for each in found)
        except SetupProblem as problem:
            sentences[str(problem)] = None
    return list(sentences)


def _print_table(bridges: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    with_sessions = any(bridge.get("sessions") for bridge in bridges)
    columns = ["workspace", "port", "pid", "editors", "clients", *(["sessions"] if with_sessions else [])]
    table = Table(*columns, box=None, pad_edge=False)
    for bridge in bridges:
        sessions = [_cell(map(_session, bridge.get("sessions", [])))] if with_sessions else []
        table.add_row(
            _cell(bridge["workspaceFolders"]),
            str(bridge["port"]),
            str(bridge["pid"]),
            _cell(editor["name"] for editor in bridge["editors"]),
            _cell([bridge["problem"]] if "problem" in bridge else map(_client, bridge["clients"])),
            *sessions,
        )
    console = Console()
    with console.capture() as captured:
        console.print(table)
    print(_PADDING.sub(r"\1", captured.get()), end="")


def _cell(names: "Iterable[str]") -> "Text":
    """One name a line, as it is: what others call themselves is no markup, and no command to the terminal."""
    from rich.text import Text

    return Text("\n".join(map(printable, names)) or "–")


def _session(session: dict[str, Any]) -> str:
    return f"{session['session'][:8]} {session['state']}: {session['title']}".rstrip(": ")


def _client(client: dict[str, Any]) -> str:
    pid = f" (pid {client['pid']})" if client["pid"] else ""
    return f"{client['name']} {client['version']}{pid}"
