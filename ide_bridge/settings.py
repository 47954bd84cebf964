"""Settings: what the user has decided, in ``settings.toml`` of his config folder.

A workspace may hold a file of its own, ``.ide-bridge.toml``; it is somebody else's word, so it can only make
things stricter: share less, deny more. Commands are never taken from it.

It does not know what the settings mean to those who obey them.
"""

import logging
import os
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from ide_bridge.complaints import in_words
from ide_bridge.errors import SetupProblem
from ide_bridge.home import config_folder, open_regular

__all__ = [
    "FILE_NAME",
    "WORKSPACE_FILE_NAME",
    "Linter",
    "LiveSettings",
    "Policy",
    "Settings",
    "load_settings",
    "stricter",
]

logger = logging.getLogger(__name__)

FILE_NAME = "settings.toml"
WORKSPACE_FILE_NAME = ".ide-bridge.toml"
_SIZE_LIMIT = 1024 * 1024
_TRUSTED_SECONDS = 1.0

Policy = Literal["full", "path", "off"]
"""What is pushed unasked: the selected text, only which file it is in, nothing."""

S = TypeVar("S", bound=msgspec.Struct)

_STRICTNESS: tuple[Policy, ...] = ("full", "path", "off")


class Linter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command that finds problems in the files a glob means; ``{file}`` in it stands for the file."""

    glob: str
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    seconds: Annotated[float, Meta(gt=0, le=300)] = 30.0


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every setting, with what holds when nothing is said."""

    share: Policy = "full"
    at_least: Policy = "full"
    """The loosest policy that can be switched to at run time; `share` counts as far as it is stricter."""
    deny: tuple[str, ...] = ()
    hide_ignored: bool = False
    linters: tuple[Linter, ...] = ()

    def tightened(self, theirs: "WorkspaceSettings") -> "Settings":
        """Obey a workspace where it asks for less."""
        return msgspec.structs.replace(
            self,
            at_least=stricter(self.at_least, theirs.share),
            deny=(*self.deny, *(pattern for pattern in theirs.deny if not pattern.startswith("!"))),
            hide_ignored=self.hide_ignored or theirs.hide_ignored,
        )


class WorkspaceSettings(msgspec.Struct, frozen=True):
    """What a workspace may say; the rest of its file is ignored."""

    share: Policy = "full"
    deny: tuple[str, ...] = ()
    hide_ignored: bool = False


def load_settings(folders: Sequence[str] = ()) -> Settings:
    """Read the user's settings, and what the folders of a workspace add to them."""
    return LiveSettings(folders)()


class LiveSettings:
    """The settings as the files have them now: a change is seen within a second, when somebody asks.

    The first reading raises `SetupProblem` for a file that is not understood. Later such a file keeps what it said
    before, and the user is told, once.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._folders: Callable[[], Sequence[str]] = lambda: folders
        self._users = _File(os.path.join(config_folder(), FILE_NAME), Settings)
        self._theirs = {folder: _File(_in(folder), WorkspaceSettings) for folder in folders}
        self._users.read()
        for theirs in self._theirs.values():
            theirs.read()
        self._until = time.monotonic() + _TRUSTED_SECONDS
        self._settings = self._united()

    def follow(self, folders: Callable[[], Sequence[str]]) -> None:
        """Ask from now on which folders the workspace has."""
        self._folders = folders

    def __call__(self) -> Settings:
        """What holds now; the same object for as long as nothing changes."""
        now = time.monotonic()
        if now > self._until:
            self._until = now + _TRUSTED_SECONDS
            self._look()
        return self._settings

    def _look(self) -> None:
        self._theirs = {
            folder: self._theirs.get(folder) or _File(_in(folder), WorkspaceSettings) for folder in self._folders()
        }
        self._users.look()
        for theirs in self._theirs.values():
            theirs.look()
        united = self._united()
        if united != self._settings:
            self._settings = united

    def _united(self) -> Settings:
        settings = self._users.said
        for theirs in self._theirs.values():
            settings = settings.tightened(theirs.said)
        return settings


class _File(Generic[S]):
    """One settings file: what it said when it could last be understood."""

    def __init__(self, path: str, kind: type[S]) -> None:
        self.said: S = kind()
        self._path = path
        self._kind = kind
        self._seen: tuple[int, ...] | None = None
        self._warned = False

    def read(self) -> None:
        """Take what it says; raises `SetupProblem` if that is not understood."""
        self._seen = self._state()
        self.said = _read(self._path, self._kind) or self._kind()
        self._warned = False

    def look(self) -> None:
        """Read it again if it is another by now, and complain once if it is not understood."""
        if self._state() == self._seen:
            return
        try:
            self.read()
        except SetupProblem as problem:
            if not self._warned:
                self._warned = True
                logger.warning("%s What it said before still holds.", problem)

    def _state(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)
        except (OSError, ValueError):
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def stricter(one: Policy, other: Policy) -> Policy:
    """The one that lets out less."""
    return max(one, other, key=_STRICTNESS.index)


def _in(folder: str) -> str:
    return os.path.join(folder, WORKSPACE_FILE_NAME)


def _read(path: str, kind: type[S]) -> S | None:
    try:
        with open(open_regular(path, os.O_RDONLY, follow=True), "rb") as file:
            import tomllib  # noqa: PLC0415 - most users have no such file

            return msgspec.convert(tomllib.loads(file.read(_SIZE_LIMIT).decode()), kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SetupProblem(f"{path} cannot be read: {error.strerror}.") from None
    except msgspec.ValidationError as error:
        raise SetupProblem(f"{path} is not understood: {in_words(error, kind)}.") from None
    except ValueError as error:
        raise SetupProblem(f"{path} is not understood: {error}.") from None
