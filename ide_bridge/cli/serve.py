"""``ide-bridge serve``: a bridge in the foreground.

The lock is written before anything slow is imported. On a terminal it tells in human words what happens; with
``--json`` it prints one line when ready; otherwise it is quiet.

It does not know how the bridge works.
"""

import _signal as signal  # `signal` itself takes 3 ms to import, for enumerations that nobody needs here
import os
import sys

from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from types import FrameType

    from ide_bridge.bridge import Bridge
    from ide_bridge.editor.interface import Editor

__all__ = ["add_arguments", "run", "serve"]

EDITORS_GROUP = "ide_bridge.editors"
_STOPPED_BY = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


class _Stopped(BaseException):
    """A signal came before the event loop was there to take it."""


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``serve``."""
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="what to serve; without, this folder")
    parser.add_argument("--json", action="store_true", help="print one line of JSON when ready")
    parser.add_argument(
        "--linger", type=_seconds, metavar="S", help="stop when nobody was connected for S seconds"
    )
    parser.add_argument("--editor", metavar="NAME", help=f"an adapter of the entry-point group {EDITORS_GROUP}")


def run(args: "argparse.Namespace") -> int:
    """Serve as the arguments say."""
    return serve(args.folders, json=args.json, linger=args.linger, editor_name=args.editor)


def serve(
    folders: "Sequence[str]", *, json: bool = False, linger: float | None = None, editor_name: str | None = None
) -> int:
    """Serve until a signal, ``ide-bridge stop``, or the end of the linger time."""
    for number in _STOPPED_BY:
        signal.signal(number, _stop_early)
    claim = None
    try:
        claim = Claim(folders or ["."])
        return _serve_claimed(claim, json=json, linger=linger, editor_name=editor_name)
    except _Stopped:
        return 0
    finally:
        if claim is not None:
            claim.close()


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise ValueError
    return seconds


def _stop_early(_number: int, _frame: "FrameType | None") -> None:
    raise _Stopped


def _serve_claimed(claim: Claim, *, json: bool, linger: float | None, editor_name: str | None) -> int:
    import gc

    gc.disable()  # thousands of objects are about to be made that will never be garbage
    import asyncio

    from ide_bridge.bridge import Bridge
    from ide_bridge.cli.logs import keep_logs
    from ide_bridge.workspace.workspace import Workspace

    gc.freeze()
    gc.enable()
    keep_logs(claim.state)
    editor = None if editor_name is None else _load_editor(editor_name)
    happening = None if json or not sys.stdout.isatty() else _tell
    workspace = Workspace(*claim.folders)
    bridge = Bridge(workspace, editor=editor, claim=claim, linger=linger, happening=happening)
    asyncio.run(_run_until_signal(bridge, lambda: _announce(bridge, claim, json=json)))
    return 0


async def _run_until_signal(bridge: "Bridge", ready: "Callable[[], None]") -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    for number in _STOPPED_BY:
        try:
            loop.add_signal_handler(number, bridge.ask_to_stop)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(bridge.ask_to_stop))
    await bridge.run(ready=ready)


def _announce(bridge: "Bridge", claim: Claim, *, json: bool) -> None:
    if json:
        import json as json_module

        ready = {
            "port": claim.port,
            "pid": os.getpid(),
            "lock": claim.lock.path,
            "workspaceFolders": claim.folders,
            "token_file": claim.token_file,
        }
        print(json_module.dumps(ready), flush=True)
    elif sys.stdout.isatty():
        folders = ", ".join(claim.folders)
        print(f"Serving {folders} on port {claim.port} as “{bridge.editor.name}”.")
        print("Connect: run claude in that folder and type /ide, or start it with: ide-bridge run claude")
        print("Ctrl-C stops.", flush=True)


def _tell(who: str, what: str) -> None:
    import time

    print(f"{time.strftime('%H:%M:%S')}  {who} {what}".translate(_VISIBLE), flush=True)


_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


def _load_editor(name: str) -> "Editor | None":
    """Find the adapter of that name; one that fails to load is named, and the folder is served without it."""
    from importlib.metadata import entry_points

    from ide_bridge.editor.interface import Editor

    offered = entry_points(group=EDITORS_GROUP)
    found = next((entry for entry in offered if entry.name == name), None)
    if found is None:
        known = ", ".join(sorted(entry.name for entry in offered)) or "none is installed"
        raise SetupProblem(f"There is no adapter called {name} ({known}).")
    try:
        editor = found.load()()
    except Exception as error:  # noqa: BLE001 - somebody else's code
        print(f"ide-bridge: The adapter {name} ({found.value}) was left out: {error}.", file=sys.stderr)
        return None
    if not isinstance(editor, Editor):
        print(f"ide-bridge: The adapter {name} ({found.value}) is no Editor and was left out.", file=sys.stderr)
        return None
    return editor
