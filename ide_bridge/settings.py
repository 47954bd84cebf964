"""Settings: what the user has decided, in ``settings.toml`` of his config folder.

A workspace may hold a file of its own, ``.ide-bridge.toml``; it is somebody else's word, so it can only make
things stricter: share less, deny more. Commands are never taken from it.

It does not know what the settings mean to those who obey them.
"""

import os
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from ide_bridge.errors import SetupProblem
from ide_bridge.home import config_folder

__all__ = ["FILE_NAME", "WORKSPACE_FILE_NAME", "Linter", "Policy", "Settings", "load_settings"]

FILE_NAME = "settings.toml"
WORKSPACE_FILE_NAME = ".ide-bridge.toml"
_SIZE_LIMIT = 1024 * 1024

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
    """The loosest policy that can be switched to at run time."""
    deny: tuple[str, ...] = ()
    hide_ignored: bool = False
    linters: tuple[Linter, ...] = ()

    def tightened(self, theirs: "WorkspaceSettings") -> "Settings":
        """Obey a workspace where it asks for less."""
        return msgspec.structs.replace(
            self,
            share=_stricter(self.share, theirs.share),
            at_least=_stricter(self.at_least, theirs.share),
            deny=(*self.deny, *(pattern for pattern in theirs.deny if not pattern.startswith("!"))),
            hide_ignored=self.hide_ignored or theirs.hide_ignored,
        )


class WorkspaceSettings(msgspec.Struct, frozen=True):
    """What a workspace may say; the rest of its file is ignored."""

    share: Policy = "full"
    deny: tuple[str, ...] = ()
    hide_ignored: bool = False


def load_settings(folders: tuple[str, ...] = ()) -> Settings:
    """Read the user's settings, and what the folders of a workspace add to them."""
    settings = _read(os.path.join(config_folder(), FILE_NAME), Settings) or Settings()
    settings = msgspec.structs.replace(settings, share=_stricter(settings.share, settings.at_least))
    for folder in folders:
        theirs = _read(os.path.join(folder, WORKSPACE_FILE_NAME), WorkspaceSettings)
        settings = settings.tightened(theirs) if theirs is not None else settings
    return settings


def _stricter(one: Policy, other: Policy) -> Policy:
    return max(one, other, key=_STRICTNESS.index)


def _read(path: str, kind: type[S]) -> S | None:
    try:
        with open(path, "rb") as file:
            import tomllib  # noqa: PLC0415 - most users have no such file

            return msgspec.convert(tomllib.loads(file.read(_SIZE_LIMIT).decode()), kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SetupProblem(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise SetupProblem(f"{path} is not understood: {error}.") from None
