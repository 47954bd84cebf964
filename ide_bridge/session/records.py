"""What is written down of a session, so that it can be found and continued when the bridge is gone.

One file per session in the workspace's state folder, replaced whole whenever something changes; and one lock per
session for all workspaces, held by whatever runs the session for as long as anything of it lives.

It does not know how a session is run.
"""

import contextlib
import logging
import os
import tempfile

import msgspec

from ide_bridge.errors import InvalidRequest
from ide_bridge.home import open_regular, private_folder, state_folder, unusable
from ide_bridge.running import try_lock

__all__ = ["Record", "Records", "Unconfirmed", "hold"]

logger = logging.getLogger(__name__)

_KEPT = 200
_SIZE_LIMIT = 64 * 1024 * 1024


class Unconfirmed(msgspec.Struct, frozen=True):
    """A prompt that the CLI is not known to be done with."""

    uuid: str
    text: str
    heard: bool = False
    """Whether it has said so; it is crossed out when it is done with it."""


class Record(msgspec.Struct):
    """All that must survive of a session; the conversation itself is in the CLI's transcript."""

    session: str
    folder: str
    created: float
    changed: float
    over: str = "pipes"
    command: tuple[str, ...] = ()
    version: str = ""
    arguments: tuple[str, ...] = ()
    title: str = ""
    model: str | None = None
    mode: str | None = None
    fork_of: str | None = None
    at: str | None = None
    """Where the one it is a fork of was cut."""
    conversation: str | None = None
    """The CLI's own id, when it has begun another conversation (``/clear``) than the one we named."""
    cost: float | None = None
    prompts: int = 0
    begun: bool = False
    """Whether the CLI knows the session by now: it can be resumed then."""
    stopped: bool = False
    """Whether it was ended on purpose, or ended by itself."""
    unconfirmed: tuple[Unconfirmed, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


class Records:
    """The records of one workspace."""

    def __init__(self, state: str) -> None:
        self._folder = private_folder(os.path.join(state, "sessions"))

    def all(self) -> list[Record]:
        """Those that can be read, the oldest first."""
        found = (self._read(name) for name in os.listdir(self._folder) if name.endswith(".json"))
        return sorted((record for record in found if record is not None), key=lambda record: record.created)

    def save(self, record: Record) -> None:
        """Replace what was written of it before: on the disk is the old one or the new one."""
        try:
            descriptor, path = tempfile.mkstemp(dir=self._folder, prefix=".new-")
            try:
                with open(descriptor, "wb") as file:
                    file.write(_encode(record))
                os.replace(path, self._path(record.session))
            except OSError:
                os.unlink(path)
                raise
        except OSError as error:
            raise unusable(self._folder, error) from None

    def prune(self) -> None:
        """Forget the oldest of those that have ended; their transcripts stay with the CLI."""
        ended = [record for record in self.all() if record.stopped]
        for record in ended[:-_KEPT]:
            with contextlib.suppress(OSError):
                os.unlink(self._path(record.session))

    def _path(self, session: str) -> str:
        return os.path.join(self._folder, f"{session}.json")

    def _read(self, name: str) -> Record | None:
        try:
            with open(open_regular(os.path.join(self._folder, name), os.O_RDONLY), "rb") as file:
                return _decode(file.read(_SIZE_LIMIT))
        except (OSError, ValueError, RecursionError) as error:
            logger.warning("a record of a session is left out: %s", error)
            return None


def hold(session: str) -> int:
    """Take the lock of a session; gives its descriptor, to be closed by whoever runs the session.

    The descriptor may be handed on to another process; the lock is free when the last one is closed.
    """
    path = os.path.join(private_folder(os.path.join(state_folder(), "sessions")), f"{session}.lock")
    try:
        descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise unusable(path, error) from None
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    raise InvalidRequest(f"Session {session[:8]} is running elsewhere, or is just ending; only one may write.")
