"""``ide-bridge serve``: a bridge in the foreground.

The lock is written before anything slow is imported. On a terminal it tells in human words what happens; with
``--json`` it prints one line when ready; otherwise it is quiet.

It does not know how the bridge works.
"""

import _signal as signal  # `signal` itself takes 3 ms to import, for enumerations that nobody needs here
import os
import sys

from ide_bridge.errors import SetupProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from ide_bridge.bridge import Bridge
    from ide_bridge.editor.interface import Editor
    from ide_bridge.fronts.claim import Claim

__all__ = ["add_arguments", "heed_signals", "run", "serve"]

EDITORS_GROUP = "ide_bridge.editors"
_STOPPED_BY = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


class _Signals:
    """The signals that end us: the first one is remembered, and told to the bridge; the rest change nothing.

    One handler from the first line to the last. It raises nothing, because it would do so anywhere, in the middle
    of writing the lock or of removing it; and it is not the event loop's, which puts the deadly default back when
    it is closed.
    """

    def __init__(self) -> None:
        self.came = False
        self.tell: Callable[[], object] | None = None

    def heed(self) -> None:
        """From now on, be asked to end, and not ended."""
        for number in _STOPPED_BY:
            signal.signal(number, self._asked)

    def ignore(self) -> None:
        """Let none through any more: the interpreter, on its way out, puts the deadly default back."""
        if hasattr(signal, "pthread_sigmask"):  # or Python complains of one that comes while the handler changes
            signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPED_BY)
        for number in _STOPPED_BY:
            signal.signal(number, signal.SIG_IGN)

    def _asked(self, *_signal: object) -> None:
        first, self.came = not self.came, True
        if first and self.tell is not None:
            self.tell()


_signals = _Signals()


def heed_signals() -> None:
    """Take signals before anything else is imported."""
    _signals.heed()


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
    heed_signals()
    from ide_bridge.fronts.claim import Claim

    try:
        if _signals.came:
            return 0
        claim = Claim(folders or ["."])
        try:
            return _serve_claimed(claim, json=json, linger=linger, editor_name=editor_name)
        finally:
            claim.close()
    finally:
        _signals.ignore()


def _seconds(text: str) -> float:
    import argparse

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not seconds > 0:
        raise argparse.ArgumentError(None, "--linger takes a number of seconds above 0.")
    return seconds


def _serve_claimed(claim: "Claim", *, json: bool, linger: float | None, editor_name: str | None) -> int:
    import gc

    gc.disable()  # thousands of objects are about to be made that will never be garbage
    import asyncio

    from ide_bridge.bridge import Bridge
    from ide_bridge.cli.logs import keep_logs
    from ide_bridge.workspace.workspace import Workspace

    gc.freeze()
    gc.enable()
    if _signals.came:
        return 0
    keep_logs(claim.state)
    editor = None if editor_name is None else _load_editor(editor_name)
    watched = not json and sys.stdout.isatty()
    workspace = Workspace.of_user(*claim.folders)
    bridge = Bridge(workspace, editor=editor, claim=claim, linger=linger, happening=_tell if watched else None)
    asyncio.run(_run_until_signal(bridge, lambda: _announce(bridge, claim, json=json)))
    if watched and not _signals.came:
        print(_farewell(linger), flush=True)
    return 0


async def _run_until_signal(bridge: "Bridge", ready: "Callable[[], None]") -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    _signals.tell = lambda: loop.call_soon_threadsafe(bridge.ask_to_stop)
    try:
        if not _signals.came:
            await bridge.run(ready=ready)
    finally:
        _signals.tell = None


def _announce(bridge: "Bridge", claim: "Claim", *, json: bool) -> None:
    _warn_of_others(claim)
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
        from ide_bridge.cli.printable import printable

        folders = printable(", ".join(claim.folders))
        print(f"Serving {folders} on port {claim.port} as “{printable(bridge.editor.name)}”.")
        print(f"Connect: run claude in that folder and type /ide, or start it with: {_own_command()} run claude")
        print("Ctrl-C stops.", flush=True)


def _warn_of_others(claim: "Claim") -> None:
    """Tell of bridges by which the CLI, in some folder of ours or of theirs, finds two and takes neither."""
    from ide_bridge.running import running_bridges

    others = [other for other in running_bridges() if other.pid != os.getpid()]
    for other in others:
        both = {inner for one in claim.folders for two in other.folders if (inner := _inner(one, two))}
        if both:
            _warn_of(other.pid, other.folders[0], min(both))


def _warn_of(pid: int, served: str, folder: str) -> None:
    from ide_bridge.cli.printable import printable
    from ide_bridge.fronts.discovery import shell_word

    text = (
        f"ide-bridge: {served} is served too, by the bridge with pid {pid}: in {folder} the CLI finds both and "
        f"takes neither by itself. Choose with /ide, or end that one with: ide-bridge stop {shell_word(served)}"
    )
    print(printable(text), file=sys.stderr, flush=True)


def _inner(one: str, two: str) -> str | None:
    """The folder of two that lies in the other, or is the other."""
    from ide_bridge.running import contains

    outer, inner = sorted((one, two), key=len)
    return inner if contains(outer, inner) else None


def _own_command() -> str:
    """What this user types to run us."""
    import shutil

    if shutil.which("ide-bridge") is not None:
        return "ide-bridge"
    program = os.path.abspath(sys.argv[0])
    if os.path.basename(program) == "__main__.py":
        return f"{_from_home(sys.executable)} -m ide_bridge"
    return _from_home(program)


def _from_home(path: str) -> str:
    from ide_bridge.fronts.discovery import shell_word

    home = os.path.join(os.path.expanduser("~"), "")
    return f"~/{shell_word(path[len(home) :])}" if path.startswith(home) else shell_word(path)


def _farewell(linger: float | None) -> str:
    if linger is None:
        return "Stopped by: ide-bridge stop"
    return f"Stopped, by ide-bridge stop or because nobody was connected for {linger:g} seconds."


def _tell(who: str, what: str) -> None:
    import time

    from ide_bridge.cli.printable import printable

    print(f"{time.strftime('%H:%M:%S')}  {printable(f'{who} {what}')}", flush=True)


def _load_editor(name: str) -> "Editor":
    """Make the adapter of that name; whoever asks for one does not want to be served without it."""
    from importlib.metadata import entry_points

    from ide_bridge.editor.interface import Editor

    offered = entry_points(group=EDITORS_GROUP)
    found = next((entry for entry in offered if entry.name == name), None)
    if found is None:
        names = ", ".join(sorted(entry.name for entry in offered))
        known = f"there are: {names}" if names else "none is installed"
        raise SetupProblem(f"There is no adapter called {name}; {known}.")
    try:
        editor = found.load()()
    except Exception as error:  # noqa: BLE001 - somebody else's code
        why = str(error) or type(error).__name__
        raise SetupProblem(f"The adapter {name} ({found.value}) cannot be loaded: {why}.") from None
    if not isinstance(editor, Editor):
        raise SetupProblem(f"The adapter {name} ({found.value}) is no Editor.")
    return editor
