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
from ide_bridge.home import (
    open_regular,
    private_folder,
    socket_folder,
    unusable,
    workspace_folder,
)
from ide_bridge.plain_json import to_json
from ide_bridge.running import is_alive, running_at, try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Claim", "real_folder"]

_BACKLOG = 128
_TOKEN_BYTES = 32
_HEXADECIMAL = frozenset("0123456789abcdef")
_STORED_LIMIT = 256
_HOLD_SECONDS = 1.0  # long enough for another to look or to say who it is, short enough to wait for
_HOLD_POLL_SECONDS = 0.002


class Claim:
    """One workspace's port, token and lock, from `open` to `close`."""

    def __init__(self, folders: "Sequence[str]", ide_name: str = "Folder") -> None:
        self.folders = self._claimed = [real_folder(folder) for folder in folders]
        self.state = private_folder(workspace_folder(self.folders[0]))
        self.token_file = os.path.join(self.state, "token")
        self._port_file = os.path.join(self.state, "port")
        self._running_file = os.path.join(self.state, "running")
        self._guard = _hold(self._running_file)
        self._listener: _socket.socket | None = None
        try:
            self._listener = self._bind()
            self.port = int(self._listener.getsockname()[1])
            self.token = self._stored_token()
            self.socket_path = os.path.join(_swept(socket_folder()), f"{os.getpid()}-{self.port}.sock")
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
        self.folders = [real_folder(folder) for folder in folders]
        self.lock.change(folders=self.folders)
        self._announce()

    def restore(self) -> list[str]:
        """Put back what someone deleted of the lock, and of the record by which the command line finds us.

        Gives what was put back, in words. While another program holds the record, only the lock is ours to mend.
        The socket is its listener's to mend, but the folder for it is there afterwards.
        """
        if self._guard < 0:
            return []
        if not os.path.isdir(sockets := os.path.dirname(self.socket_path)):
            private_folder(sockets)
        restored = ["the lock file"] if self.lock.restore() else []
        if not self._is_recorded() and self._record_anew():
            restored.append("the record of this bridge")
        return restored

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

    def _is_recorded(self) -> bool:
        """Whether the file we hold is the one that others look at, with port and token beside it."""
        try:
            held, seen = os.fstat(self._guard), os.stat(self._running_file)
        except OSError:
            return False
        return os.path.samestat(held, seen) and os.path.isfile(self.token_file) and os.path.isfile(self._port_file)

    def _record_anew(self) -> bool:
        """Write it all down again; False if the workspace has another holder by now."""
        private_folder(self.state)
        if not self._hold_again():
            return False
        _store(self.token_file, self.token)
        _store(self._port_file, str(self.port))
        self._announce()
        return True

    def _hold_again(self) -> bool:
        """Hold the file that lies there now, without waiting for anyone."""
        descriptor = open_regular(self._running_file, os.O_RDWR | os.O_CREAT)
        if os.path.samestat(os.fstat(descriptor), os.fstat(self._guard)):
            os.close(descriptor)
            return True
        if not try_lock(descriptor):
            os.close(descriptor)
            return False
        os.close(self._guard)
        self._guard = descriptor
        return True

    def _stored_token(self) -> str:
        token = _stored(self.token_file)
        if len(token) == _TOKEN_BYTES * 2 and _HEXADECIMAL.issuperset(token):
            return token
        token = os.urandom(_TOKEN_BYTES).hex()
        _store(self.token_file, token)
        return token

    def _bind(self) -> _socket.socket:
        listener = _listen_again(_stored(self._port_file))
        if listener is not None:
            return listener
        listener = _listen(0)  # a first start, or somebody else has the port now
        # Whoever has it now may be told the token by a CLI that comes back: it must not be ours any more.
        try:
            _store(self.token_file, "")
            _store(self._port_file, str(listener.getsockname()[1]))
        except BaseException:
            listener.close()
            raise
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
            "claimed": self._claimed,
            "lock": self.lock.path,
            "socket": self.socket_path,
            "token_file": self.token_file,
        }
        record = to_json(running).encode().ljust(os.fstat(self._guard).st_size)
        try:
            os.lseek(self._guard, 0, os.SEEK_SET)
            _write_all(self._guard, record)
        except OSError as error:
            raise unusable(self._running_file, error) from None


def _hold(path: str) -> int:
    """Take the workspace for this process; the system lets go of it even if we are killed."""
    try:
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise unusable(path, error) from None
    try:
        if not try_lock(descriptor):
            _wait_to_hold(descriptor, path)
    except OSError as error:
        os.close(descriptor)
        raise unusable(path, error) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _wait_to_hold(descriptor: int, path: str) -> None:
    """Whoever has it may only be looking, for a moment; a bridge will have said so by the end of the wait."""
    import time  # noqa: PLC0415 - few starts need it

    deadline = time.monotonic() + _HOLD_SECONDS
    while not try_lock(descriptor):
        if (bridge := running_at(path)) is not None:
            raise SetupProblem(
                f"This workspace is already served by the bridge with pid {bridge.pid}. "
                "Use it as it is, or end it with: ide-bridge stop"
            )
        if time.monotonic() > deadline:
            raise SetupProblem(f"Another program holds {path}; end that program, or try again.")
        time.sleep(_HOLD_POLL_SECONDS)


def _swept(folder: str) -> str:
    """The folder, without the sockets of bridges that were killed."""
    for name in os.listdir(folder):
        pid = name.partition("-")[0]
        if name.endswith(".sock") and pid.isascii() and pid.isdecimal() and not is_alive(int(pid)):
            try:
                os.unlink(os.path.join(folder, name))
            except OSError:  # somebody else swept it
                continue
    return folder


def _listen_again(port: str) -> _socket.socket | None:
    """The port of last time, if that is what was kept and nobody has taken it."""
    if not (port.isascii() and port.isdecimal() and 0 < len(port) <= 5 and 0 < int(port) < 1 << 16):
        return None
    try:
        return _listen(int(port))
    except OSError:
        return None


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
        with open(open_regular(path, os.O_RDONLY), "rb") as file:
            return file.read(_STORED_LIMIT).decode("ascii")
    except (OSError, ValueError):
        return ""


def _store(path: str, text: str) -> None:
    try:
        descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            _write_all(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise unusable(path, error) from None


def _write_all(descriptor: int, contents: bytes) -> None:
    while contents:
        contents = contents[os.write(descriptor, contents) :]


def real_folder(folder: str) -> str:
    """Where a folder really lies; raises `SetupProblem` for one that cannot be served."""
    if not folder:
        raise SetupProblem("The name of a folder is empty; name one, or none at all for this folder.")
    try:
        real = os.path.realpath(folder)
    except OSError:
        raise SetupProblem("The current folder was deleted; change to another one.") from None
    if not os.path.isdir(real):
        raise SetupProblem(f"{folder} is not a folder.")
    if not os.access(real, os.R_OK | os.X_OK):
        raise SetupProblem(f"You may not read the folder {folder}; correct its permissions, or serve another one.")
    if real.isascii():
        return real
    if not _is_unicode(real):
        raise SetupProblem(f"The path {real} is not UTF-8, so no client could be told of it; rename the folder.")
    import unicodedata  # noqa: PLC0415 - few paths need it

    composed = unicodedata.normalize("NFC", real)
    return composed if os.path.isdir(composed) else real


def _is_unicode(path: str) -> bool:
    """Whether a path can be written down: neither the lock nor any message can carry other bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
