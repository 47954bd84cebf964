"""The claim on a workspace: its port, its token, its lock, held by one bridge at a time.

Port and token are kept in the state folder and used again: a connected CLI comes back to the same port
with the same token and reads the lock no second time. The claim is made before anything slow is imported: the
lock stands a few milliseconds after the start, and a client that connects meanwhile waits in the backlog.

It does not know what is served on the port.
"""

import _socket  # the rest of `socket` takes 2 ms to import, and is not needed to bind
import os

from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.lock import Lock, lock_folders, sweep
from ide_bridge.fronts.plain_json import to_json
from ide_bridge.home import private_folder, socket_folder, state_folder, workspace_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Claim", "Running", "running_bridges"]

_BACKLOG = 128
_TOKEN_BYTES = 32


class Running(dict[str, object]):
    """What a running bridge says of itself: ``pid``, ``port``, ``workspaceFolders``, ``lock``, ``socket``."""

    @property
    def pid(self) -> int:
        """Its process."""
        return int(str(self["pid"]))

    @property
    def folders(self) -> list[str]:
        """The folders it serves."""
        folders = self["workspaceFolders"]
        return [str(folder) for folder in folders] if isinstance(folders, list) else []


class Claim:
    """One workspace's port, token and lock, from `open` to `close`."""

    def __init__(self, folders: "Sequence[str]", ide_name: str = "Folder") -> None:
        self.folders = [_real(folder) for folder in folders]
        self.state = private_folder(workspace_folder(self.folders[0]))
        self.token_file = os.path.join(self.state, "token")
        self._guard = _hold(os.path.join(self.state, "running"))
        self._listener: _socket.socket | None = None
        try:
            self._listener = self._bind()
            self.port = int(self._listener.getsockname()[1])
            self.token = self._stored_token()
            self.socket_path = os.path.join(socket_folder(), f"{os.getpid()}-{self.port}.sock")
            sweep(lock_folders())
            self.lock = Lock(self.port, self.token, self.folders, ide_name)
            self._publish()
        except BaseException:
            self._let_go()
            raise

    def detach_listener(self) -> int:
        """Hand over the listening socket; whoever takes it closes it."""
        if self._listener is None:
            raise SetupProblem("The port of this claim is in use already.")
        listener, self._listener = self._listener, None
        return listener.detach()

    def set_folders(self, folders: "Sequence[str]") -> None:
        """Folders joined or left: tell it in the lock and to the command line."""
        self.folders = [_real(folder) for folder in folders]
        self.lock.change(folders=self.folders)
        self._announce()

    def close(self) -> None:
        """Remove the lock first, then let the workspace go. Port and token are kept for the next bridge."""
        self.lock.remove()
        self._let_go()

    def _let_go(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._guard >= 0:
            os.ftruncate(self._guard, 0)
            os.close(self._guard)
            self._guard = -1

    def _stored_token(self) -> str:
        token = _stored(self.token_file)
        if len(token) >= _TOKEN_BYTES * 2:
            return token
        token = os.urandom(_TOKEN_BYTES).hex()
        _store(self.token_file, token)
        return token

    def _bind(self) -> _socket.socket:
        port_file = os.path.join(self.state, "port")
        try:
            return _listen(int(_stored(port_file)))
        except (OSError, OverflowError, ValueError):
            listener = _listen(0)  # a first start, or somebody else has the port now
        # Whoever has it now may be told the token by a CLI that comes back: it must not be ours any more.
        _store(self.token_file, "")
        _store(port_file, str(listener.getsockname()[1]))
        return listener

    def _publish(self) -> None:
        try:
            self._announce()
            self.lock.write()
        except BaseException:  # a signal in between must not leave a lock behind
            self.lock.remove()
            raise

    def _announce(self) -> None:
        running = {
            "pid": os.getpid(),
            "port": self.port,
            "workspaceFolders": self.folders,
            "lock": self.lock.path,
            "socket": self.socket_path,
            "token_file": self.token_file,
        }
        os.pwrite(self._guard, to_json(running).encode().ljust(_record_size(self._guard)), 0)


def running_bridges() -> list[Running]:
    """Every bridge of this user that runs now."""
    root = os.path.join(state_folder(), "workspaces")
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    return [found for name in names for found in _running(os.path.join(root, name, "running"))]


def _running(path: str) -> "Iterator[Running]":
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return
    try:
        if not _try_lock(descriptor):
            import json  # noqa: PLC0415 - not needed to claim

            try:
                yield Running(json.loads(os.pread(descriptor, 65536, 0)))
            except ValueError:  # it is just starting, and has written nothing yet
                return
    finally:
        os.close(descriptor)


def _hold(path: str) -> int:
    """Take the workspace for this process; the system lets go of it even if we are killed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if _try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    pid = next((found.pid for found in _running(path)), None)
    raise SetupProblem(
        f"This workspace is already served by the bridge with pid {pid}. "
        "Use it as it is, or end it with: ide-bridge stop"
    )


def _try_lock(descriptor: int) -> bool:
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
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _record_size(descriptor: int) -> int:
    return os.fstat(descriptor).st_size


def _listen(port: int) -> _socket.socket:
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _stored(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _store(path: str, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _real(folder: str) -> str:
    real = os.path.realpath(folder)
    if not os.path.isdir(real):
        raise SetupProblem(f"{folder} is not a folder.")
    if real.isascii():
        return real
    import unicodedata  # noqa: PLC0415 - few paths need it

    composed = unicodedata.normalize("NFC", real)
    return composed if os.path.isdir(composed) else real
