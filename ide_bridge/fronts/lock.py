"""The lock file: how Claude Code finds a server for its folder.

Written whole or not at all, private, put back when someone deletes it, removed only while it is still ours.
The rules the CLI reads it by are in PROTOCOL.md, "Discovery".

It does not know ports, sockets or clients.
"""

import os

from ide_bridge.home import claude_folder, open_regular, private_folder, unusable
from ide_bridge.plain_json import to_json
from ide_bridge.running import is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Lock", "claude_folders", "lock_folders", "read_lock", "sweep"]

MARK = "ide-bridge"


def claude_folders() -> list[str]:
    """Every folder in which some version of the CLI may look, the one we always write to first."""
    home = os.path.expanduser("~")
    first = claude_folder()
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return [os.path.join(first, "ide"), os.path.join(base, "claude", "ide")]


def lock_folders() -> list[str]:
    """The folders a lock is written to: the CLI's own, and the documented one where its parent exists."""
    first, documented = claude_folders()
    wanted = [first] + [documented] * (os.path.isdir(os.path.dirname(documented)) and documented != first)
    return [private_folder(folder) for folder in wanted]


class Lock:
    """One server's lock, in every folder where a CLI may look for it."""

    def __init__(self, port: int, token: str, folders: "Sequence[str]", ide_name: str) -> None:
        self._token = token
        self._folders = list(folders)
        self._ide_name = ide_name
        self.paths = [os.path.join(folder, f"{port}.lock") for folder in lock_folders()]
        self._bytes = b""

    @property
    def path(self) -> str:
        """Where today's CLI reads it."""
        return self.paths[0]

    def write(self) -> None:
        """Write the lock everywhere."""
        self._bytes = self._contents()
        for path in self.paths:
            _write_private(path, self._bytes)

    def change(self, *, ide_name: str | None = None, folders: "Sequence[str] | None" = None) -> None:
        """Write it again under another name or for other folders, if that is a change."""
        self._ide_name = ide_name or self._ide_name
        self._folders = list(folders or self._folders)
        if self._contents() != self._bytes:
            self.write()

    def restore(self) -> bool:
        """Put back what someone deleted; tell whether that was needed."""
        missing = [path for path in self.paths if not os.path.exists(path)]
        for path in missing:
            private_folder(os.path.dirname(path))
            _write_private(path, self._bytes)
        return bool(missing)

    def remove(self) -> None:
        """Remove every copy that still holds what we wrote."""
        for path in self.paths:
            try:
                if _read(path) == self._bytes:
                    os.unlink(path)
            except OSError:  # gone already
                continue

    def _contents(self) -> bytes:
        lock = {
            "pid": os.getpid(),
            "workspaceFolders": self._folders,
            "ideName": self._ide_name,
            "transport": "ws",
            "runningInWindows": os.name == "nt",
            "authToken": self._token,
            "writtenBy": MARK,
        }
        return to_json(lock).encode()


def sweep(folders: "Sequence[str]") -> list[str]:
    """Remove locks that we left behind in a crash; give their paths. Foreign and living ones stay."""
    swept = []
    for path, lock in _locks(folders):
        if lock.get("writtenBy") == MARK and not is_alive(lock.get("pid")):
            try:
                os.unlink(path)
            except OSError:  # somebody else swept it
                continue
            swept.append(path)
    return swept


def read_lock(path: str) -> dict[str, object]:
    """Read a lock as the CLI does; what is not a JSON object has no fields."""
    import json  # noqa: PLC0415 - not needed to write our own

    try:
        lock = json.loads(_read(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return lock if isinstance(lock, dict) else {}


def _locks(folders: "Sequence[str]") -> "Iterator[tuple[str, dict[str, object]]]":
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for path in (os.path.join(folder, name) for name in names if name.endswith(".lock")):
            yield path, read_lock(path)


def _read(path: str) -> bytes:
    with open(open_regular(path, os.O_RDONLY, follow=True), "rb") as file:
        return file.read(1024 * 1024)


def _write_private(path: str, contents: bytes) -> None:
    """Rename a finished private file into place: no reader ever sees half a lock, or another's token."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _remove(temporary)
        with open(open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise unusable(path, error) from None
    finally:
        _remove(temporary)  # what could not be finished holds the token all the same


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # it is not there, or it is a folder and will be told of
        return
