"""``ide-bridge doctor``: find out why the CLI does not see the bridge.

It reads every lock there is, replays the CLI's own rules over them, and shakes hands with those that match, as
the CLI would; servers of other folders only hear a knock, for some end one conversation when another begins.

The rules, by the names that are printed. How the lock was found: ``match`` ``no-lock`` ``folder`` ``symlink``
``unicode`` ``several`` ``config-folder`` ``foreign-terminal`` ``sse-port``. The lock itself: ``dead-pid``
``garbage`` ``lock-name`` ``transport`` ``permissions``. The server: ``socket`` ``token`` ``subprotocol``
``initialize`` ``handshake``. The surroundings: ``auto-connect`` ``skip-auto-connect`` ``host-override`` ``proxy``.
What keeps a bridge from starting: ``workspace`` ``settings`` ``state-folder`` ``lock-folder``, and beside it
``linter``.

It does not know the rules of discovery themselves, and changes nothing but what ``--fix`` may delete: locks whose
process is gone.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ide_bridge.cli.obstacles import obstacles
from ide_bridge.cli.printable import printable
from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.discovery import (
    Finding,
    FoundLock,
    Here,
    Level,
    diagnose,
    distinct,
    matching,
    read_lock_file,
    read_locks,
    scanned_folders,
    taken,
)

if TYPE_CHECKING:
    import argparse

    from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, ClientSession, ClientWebSocketResponse

__all__ = ["add_arguments", "run"]

_HANDSHAKE_SECONDS = 3.0
_KNOCK_SECONDS = 0.5
_BOOT_CLOCK_SECONDS = 1.0
_PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_COLOURS: dict[Level, str] = {"ok": "green", "note": "dim", "warning": "yellow", "error": "bold red"}


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``doctor``."""
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help="where the CLI is started; without, here")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--fix", action="store_true", help="delete locks whose process is gone")


def run(args: "argparse.Namespace") -> int:
    """Examine, print; 0 when nothing stands in the way."""
    import asyncio

    here = _here(args.folder)
    findings = asyncio.run(_examine(here, fix=args.fix))
    ok = all(finding.level != "error" for finding in findings)
    if args.json:
        _print_json(findings, ok=ok)
    else:
        _print_lines(findings)
    return 0 if ok else 1


def _here(folder: str | None) -> Here:
    """What the CLI would see if it were started from this shell, in that folder."""
    import psutil

    try:
        real = os.path.realpath(folder or os.getcwd())
        os.listdir(real)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise SetupProblem(f"Cannot look into {folder or 'this folder'}: {why}. Name another one.") from None
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise SetupProblem("You have no home folder, so the CLI has no place for locks; set HOME.")
    ancestors: frozenset[int] = frozenset()
    with suppress(psutil.Error):
        ancestors = frozenset(parent.pid for parent in psutil.Process().parents())
    return Here(real, home, dict(os.environ), ancestors, _connects_by_itself(home))


def _connects_by_itself(home: str) -> bool:
    """Whether the user once said yes when the CLI asked."""
    import json

    path = os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or home, ".claude.json")
    with suppress(OSError, ValueError, RecursionError), open(path, "rb") as file:
        settings = json.load(file)
        return isinstance(settings, dict) and settings.get("autoConnectIde") is True
    return False


async def _examine(here: Here, *, fix: bool) -> list[Finding]:
    deleted = [_delete(lock) for lock in (await _locks(here))[0] if lock.stale] if fix else []
    locks, unreadable = await _locks(here)
    matches = matching(locks, here)
    shaken = await _shake_hands(matches, here)
    in_the_way = obstacles(here.folder, "warning" if matches else "error")
    return [*deleted, *unreadable, *diagnose(locks, here), *in_the_way, *shaken]


async def _locks(here: Here) -> tuple[list[FoundLock], list[Finding]]:
    """Every lock in every folder where one may lie, and the folders that cannot be read."""
    import asyncio

    locks: list[FoundLock] = []
    unreadable: list[Finding] = []
    for folder in _lock_folders(here):
        try:
            locks += read_locks(folder)
        except OSError as error:
            level: Level = "error" if folder in scanned_folders(here) else "note"
            text = f"The locks in {folder} cannot be read: {error.strerror}."
            fix = "Make it a folder that is yours and that you may read."
            unreadable.append(Finding("permissions", level, folder, text, fix))
    return list(await asyncio.gather(*map(_observed, locks))), unreadable


def _lock_folders(here: Here) -> list[str]:
    """Where the CLI looks, and where else a server may have put its lock."""
    from ide_bridge.fronts.lock import claude_folders
    from ide_bridge.running import running_bridges

    written = [*claude_folders()]
    with suppress(SetupProblem):
        written += [os.path.dirname(str(bridge["lock"])) for bridge in running_bridges() if "lock" in bridge]
    return distinct([*scanned_folders(here), *written])


async def _observed(lock: FoundLock) -> FoundLock:
    """The lock, with what its process and its port show."""
    from msgspec.structs import replace

    return replace(lock, reused=_is_reused(lock), listening=await _listens(lock.port))


def _is_reused(lock: FoundLock) -> bool:
    """Whether the process is younger than the lock that names it."""
    import psutil

    if lock.alive and isinstance(lock.pid, int):
        with suppress(psutil.Error):
            # Its age is reckoned from the time of boot, which the kernel gives in whole seconds.
            return bool(psutil.Process(lock.pid).create_time() > lock.modified + _BOOT_CLOCK_SECONDS)
    return False


async def _listens(port: int | None) -> bool:
    import asyncio

    if port is None:
        return False
    try:
        async with asyncio.timeout(_KNOCK_SECONDS):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


def _delete(lock: FoundLock) -> Finding:
    """Delete a stale lock, unless its server has come back to its port and written it again."""
    now = read_lock_file(lock.path)
    if now is not None and (now.pid, now.modified) != (lock.pid, lock.modified):
        return Finding("dead-pid", "ok", lock.path, "The lock was written again meanwhile, and stays.")
    try:
        os.unlink(lock.path)
    except FileNotFoundError:
        return Finding("dead-pid", "ok", lock.path, "The lock is gone already.")
    except OSError as error:
        text = f"The lock of process {lock.pid}, which is gone, cannot be deleted: {error.strerror}."
        return Finding("dead-pid", "warning", lock.path, text, "Delete it as the user who owns its folder.")
    return Finding("dead-pid", "ok", lock.path, f"Deleted the lock that process {lock.pid} left behind.")


async def _shake_hands(matches: Sequence[FoundLock], here: Here) -> list[Finding]:
    """Talk to every server that the CLI could take. Other transports were complained of already."""
    import asyncio

    from aiohttp import ClientSession

    choice = taken(matches, here)
    async with ClientSession(middlewares=(_stay,)) as session:
        speakers = [lock for lock in matches if lock.transport == "ws" and not lock.stale]
        levels: list[Level] = ["error" if choice in (None, lock) else "warning" for lock in speakers]
        return await asyncio.gather(*map(_shake_hand, [session] * len(speakers), speakers, levels))


async def _stay(request: "ClientRequest", handler: "ClientHandlerType") -> "ClientResponse":
    """Follow no redirection: it would carry the token to where the CLI never goes."""
    from aiohttp import ClientConnectionError

    response = await handler(request)
    if 300 <= response.status < 400:
        response.close()
        raise ClientConnectionError
    return response


async def _shake_hand(session: "ClientSession", lock: FoundLock, level: Level) -> Finding:
    """Connect as the CLI does; what the server says is judged, and never shown."""
    import asyncio

    from aiohttp import ClientError, WSServerHandshakeError

    try:
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            return await _converse(session, lock, level)
    except WSServerHandshakeError as error:
        if error.status in {401, 403}:
            text = f"{lock.label} refuses the token in its own lock (status {error.status})."
            return Finding("token", level, lock.path, text, "Restart the server, so that it writes a new lock.")
        text = f"{lock.label} does not open a WebSocket (status {error.status})."
    except TimeoutError:
        text = f"{lock.label} does not answer within {_HANDSHAKE_SECONDS:g} seconds."
    except (ClientError, OSError):
        text = f"Nothing that speaks WebSocket listens on the port of {lock.label}."
    return Finding("socket", level, lock.path, text, f"Restart the server, or end it: process {lock.pid}.")


async def _converse(session: "ClientSession", lock: FoundLock, level: Level) -> Finding:
    from aiohttp import ClientWSTimeout

    from ide_bridge.fronts.gate import HEADER_TOKEN
    from ide_bridge.fronts.lock import read_lock

    token = read_lock(lock.path).get("authToken")
    if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable()):
        text = "The token in the lock is no text that a header can carry."
        return Finding("token", level, lock.path, text, "Restart the server, so that it writes a new lock.")
    connecting = session.ws_connect(
        f"ws://127.0.0.1:{lock.port}/",
        protocols=("mcp",),
        headers={} if token is None else {HEADER_TOKEN: token},
        timeout=ClientWSTimeout(ws_close=_KNOCK_SECONDS),
    )
    async with connecting as socket:
        if socket.protocol != "mcp":
            text = f"{lock.label} does not answer with the subprotocol mcp, so the CLI hangs up."
            return Finding("subprotocol", level, lock.path, text, "Update the server or its editor's plug-in.")
        return _judged(await _initialize(socket), lock, level)


async def _initialize(socket: "ClientWebSocketResponse[bool]") -> object:
    """Introduce ourselves; give the result, or nothing if there is none."""
    import json

    from ide_bridge import __version__

    client = {"name": "ide-bridge doctor", "version": __version__}
    params = {"protocolVersion": _PROTOCOLS[0], "capabilities": {}, "clientInfo": client}
    await socket.send_json({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    async for message in socket:
        with suppress(ValueError, TypeError, RecursionError):
            answer = json.loads(message.data)
            if isinstance(answer, dict) and answer.get("id") == 0 and "method" not in answer:
                return answer.get("result")
    return None


def _judged(result: object, lock: FoundLock, level: Level) -> Finding:
    if isinstance(result, dict) and result.get("protocolVersion") in _PROTOCOLS:
        return Finding("handshake", "ok", lock.path, f"{lock.label} takes the token and answers.")
    text = f"{lock.label} does not answer initialize as MCP demands, so the CLI hangs up."
    return Finding("initialize", level, lock.path, text, "Update the server or its editor's plug-in.")


def _print_json(findings: Iterable[Finding], *, ok: bool) -> None:
    import json

    from msgspec import to_builtins

    # All ASCII, for a lock may hold what no terminal's encoding can say.
    print(json.dumps({"ok": ok, "findings": to_builtins(list(findings))}))


def _print_lines(findings: Iterable[Finding]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    for finding in findings:
        line = Text(f"{finding.level:8}", style=_COLOURS[finding.level])
        line.append(printable(f"{finding.rule}: {finding.text} [{finding.subject}]"), style="default")
        line.append(printable(f" {finding.fix}" if finding.fix else ""), style="bold")
        console.print(line)
