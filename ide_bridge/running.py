"""The bridges that run now: which one serves a folder, and starting one where none does.

A bridge holds a file for as long as it lives and has written down in it who it is; the system lets go of that file
even when the bridge is killed. Everything here is quick to import: an editor waits for it.

It does not know what a bridge does, or how to talk to one.
"""

import os
import sys
import time

from ide_bridge.errors import SetupProblem
from ide_bridge.home import open_regular, private_folder, state_folder, unusable
from ide_bridge.plain_json import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

__all__ = [
    "DETACHED_LINGER",
    "Running",
    "contains",
    "find",
    "find_or_start",
    "is_alive",
    "running_at",
    "running_bridges",
    "try_lock",
    "workspace_of",
]

_START_SECONDS = 15.0
DETACHED_LINGER = 300
_POLL_SECONDS = 0.02
_RECORD_LIMIT = 16 * 1024 * 1024
_RECORD = {"pid": int, "port": int, "workspaceFolders": list, "lock": str, "socket": str, "token_file": str}
# The current folder may be anyone's, and must not be where Python looks for programs: ours is named instead.
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import ide_bridge; del sys.path[0]; "
    "from ide_bridge.cli import main; sys.exit(main())"
)


class Running(dict[str, object]):
    """What a running bridge says of itself: ``pid``, ``port``, ``workspaceFolders``, ``lock``, ``socket`` …"""

    @property
    def pid(self) -> int:
        """Its process."""
        return int(str(self["pid"]))

    @property
    def folders(self) -> list[str]:
        """The folders it serves."""
        return self._paths("workspaceFolders")

    @property
    def claimed(self) -> list[str]:
        """The folders it was started for, without those that editors brought along."""
        return self._paths("claimed") or self.folders[:1]

    def _paths(self, key: str) -> list[str]:
        paths = self.get(key)
        return [str(path) for path in paths] if isinstance(paths, list) else []


def running_bridges() -> list[Running]:
    """Every bridge of this user that runs now."""
    root = os.path.join(state_folder(), "workspaces")
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable(root, error) from None
    found = (running_at(os.path.join(root, name, "running")) for name in names)
    return [bridge for bridge in found if bridge is not None]


def running_at(path: str) -> Running | None:
    """The bridge that holds this file, if one does; the lock is asked last, so as not to be in its way."""
    try:
        descriptor = open_regular(path, os.O_RDWR)
    except OSError:
        return None
    try:
        found = _recorded(descriptor)
        return None if found is None or try_lock(descriptor, shared=True) else found
    except OSError:
        return None
    finally:
        os.close(descriptor)


def find(folder: str) -> Running | None:
    """The running bridge whose workspace contains the folder; of several, the innermost."""
    real = os.path.realpath(folder)
    fitting = [
        (len(root), bridge) for bridge in running_bridges() for root in bridge.folders if contains(root, real)
    ]
    return max(fitting, key=lambda found: found[0])[1] if fitting else None


def contains(outer: str, inner: str) -> bool:
    """Whether a folder is another one or lies below it; both are real paths."""
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)


def find_or_start(folder: str, workspace: "Sequence[str]" = ()) -> Running:
    """The bridge of the folder; when none runs, one is started for the workspace, apart from this terminal."""
    folders = workspace or [workspace_of(folder)]
    log = os.path.join(private_folder(state_folder()), "detached.log")
    child: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        running = find(folder)
        if running is not None and os.path.exists(str(running["socket"])):
            return running
        if running is None and child is None:
            child = _start_detached(folders, log)
        elif running is None and child is not None and child.poll() is not None:
            break
        time.sleep(_POLL_SECONDS)  # its own start, or that of another who came first
    with open(log, encoding="utf-8", errors="replace") as output:
        why = output.read().strip().removeprefix("ide-bridge: ")
    why = why or f"it did not say why; see what it says to: ide-bridge serve '{folders[0]}'"
    raise SetupProblem(f"The bridge for {folders[0]} could not be started: {why}")


def workspace_of(folder: str) -> str:
    """The git top level above a folder, else the folder itself."""
    real = os.path.realpath(folder)
    current = real
    while not os.path.lexists(os.path.join(current, ".git")):
        parent = os.path.dirname(current)
        if parent == current:
            return real
        current = parent
    return current


def is_alive(pid: object) -> bool:
    """Whether a process of that number runs, by the CLI's own test: signal 0."""
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return False
    if os.name == "nt":
        import psutil  # noqa: PLC0415 - 20 ms, and only Windows lacks signal 0

        return bool(psutil.pid_exists(pid))
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file, or tell that another has it; a `shared` lock is for looking, and many may look."""
    try:
        import fcntl  # noqa: PLC0415 - absent on Windows
    except ImportError:
        import msvcrt  # noqa: PLC0415

        try:
            os.lseek(descriptor, 1 << 30, os.SEEK_SET)
            getattr(msvcrt, "locking")(descriptor, getattr(msvcrt, "LK_NBLCK"), 1)  # noqa: B009
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _recorded(descriptor: int) -> Running | None:
    """What a bridge wrote down of itself, unless it is gone, has just begun, or never was a bridge."""
    if os.fstat(descriptor).st_size == 0:
        return None
    with open(descriptor, "rb", closefd=False) as file:
        text = file.read(_RECORD_LIMIT)
    try:
        record = from_json(text.decode())
        found = Running(record if isinstance(record, dict) else {})
        complete = all(isinstance(found[key], kind) for key, kind in _RECORD.items())
    except (ValueError, KeyError, RecursionError):
        return None
    return found if complete and is_alive(found["pid"]) else None


def _start_detached(folders: "Sequence[str]", log: str) -> "subprocess.Popen[bytes]":
    import subprocess  # noqa: PLC0415 - slow to import, and most find a bridge that runs

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    serve = ["serve", *folders, "--linger", str(DETACHED_LINGER)]
    try:
        with open(open_regular(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as output:
            return subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, package, *serve],
                cwd=os.path.dirname(log),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        raise unusable(error.filename or log, error) from None
