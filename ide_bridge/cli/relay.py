"""``ide-bridge relay``: CLIs that were started with ``--sdk-url`` on one side, front ends on the other.

It tells in human words who comes, goes and decides; with ``--json`` it prints one line when ready, and no more.

It does not know what the relay passes on.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.errors import SetupProblem

if TYPE_CHECKING:
    import argparse
    import asyncio
    from collections.abc import Sequence

    from ide_bridge.session.relay import Relay

__all__ = ["add_arguments", "run"]

_STOPPED_BY = ("SIGINT", "SIGTERM", "SIGHUP")


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``relay``."""
    parser.add_argument(
        "--port", type=int, default=8765, metavar="N", help="the port on 127.0.0.1; 8765 if not said, 0 for any"
    )
    parser.add_argument(
        "--auto-approve", action="store_true", help="allow every tool that a CLI wants to use, without asking"
    )
    parser.add_argument(
        "--origin",
        action="append",
        default=[],
        metavar="URL",
        help="let this web page connect, such as http://localhost:5173; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON when ready")


def run(args: "argparse.Namespace") -> int:
    """Relay until a signal."""
    import asyncio

    from ide_bridge.cli.logs import keep_logs
    from ide_bridge.home import private_folder, state_folder

    if not 0 <= args.port <= 65535:
        raise SetupProblem(f"There is no port {args.port}; choose one from 1 to 65535, or 0 for any that is free.")
    origins = _origins(args.origin)
    folder = private_folder(os.path.join(state_folder(), "relay"))
    keep_logs(folder)
    asyncio.run(_relay(args, origins, folder))
    return 0


async def _relay(args: "argparse.Namespace", origins: "Sequence[str]", folder: str) -> None:
    from ide_bridge.session.relay import Relay
    from ide_bridge.session.relay.neighbours import kept_token

    stopping = _stopped_by_signal()
    token, token_file = kept_token(folder)
    happening = _quiet if args.json else _tell
    relay = Relay(token, origins=origins, auto_approve=args.auto_approve, happening=happening)
    await relay.start(args.port)
    try:
        _announce(relay, token_file, auto_approve=args.auto_approve, json=args.json)
        await stopping.wait()
    finally:
        await relay.stop()


def _stopped_by_signal() -> "asyncio.Event":
    """An event that the first signal sets; a second one ends us at once."""
    import asyncio

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in _STOPPED_BY if hasattr(signal, name)]

    def stop() -> None:
        for number in numbers:
            loop.remove_signal_handler(number)
        stopping.set()

    with suppress(NotImplementedError):  # Windows, where Ctrl-C ends us by an exception
        for number in numbers:
            loop.add_signal_handler(number, stop)
    return stopping


def _announce(relay: "Relay", token_file: str, *, auto_approve: bool, json: bool) -> None:
    cli, front_end = f"ws://127.0.0.1:{relay.port}", f"ws://127.0.0.1:{relay.port}/ws"
    if json:
        ready = {"port": relay.port, "pid": os.getpid(), "cli": cli, "frontEnd": front_end}
        print(json_text({**ready, "token_file": token_file, "autoApprove": auto_approve}), flush=True)
    else:
        print(f"Relaying on port {relay.port}.")
        print(f"Start Claude Code, 2.1.120 or older, with: claude --sdk-url {cli}")
        print(f"Front ends connect to {front_end}")
        print(f"Programs of other users need the token in {printable(token_file)}")
        print("Ctrl-C stops.", flush=True)
    if auto_approve:
        print(
            "ide-bridge: WARNING: --auto-approve is on: whatever a connected CLI wants to do is allowed, commands "
            "and changes of files included, and nobody is asked.",
            file=sys.stderr,
            flush=True,
        )


def _origins(given: "Sequence[str]") -> list[str]:
    """Web pages as browsers name them: scheme, host, and the port if it is not the usual one."""
    from urllib.parse import urlsplit

    origins = []
    for url in given:
        parts = urlsplit(url)
        if not parts.scheme or not parts.netloc or parts.path not in {"", "/"} or parts.query or parts.fragment:
            raise SetupProblem(f"{url} is no origin; name a page like this: --origin http://localhost:5173")
        origins.append(f"{parts.scheme}://{parts.netloc}".lower())
    return origins


def _tell(what: str) -> None:
    with suppress(OSError):  # a terminal that was closed must not end anyone's session
        print(f"{time.strftime('%H:%M:%S')}  {printable(what)}", flush=True)


def _quiet(_what: str) -> None:
    """Programs do not want to know."""
