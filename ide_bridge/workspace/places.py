"""Places: paths as clients write them, and the rules a path must keep before the disk is touched.

Nothing here looks at the disk, so nothing here knows whether a file exists or where a link leads; that is
`beneath`. The one exception is `Root.of`, which asks once where a folder really lies.
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from ide_bridge.errors import PathRefused

__all__ = [
    "Place",
    "Root",
    "check_windows",
    "inside_git",
    "is_called",
    "normal_forms",
    "root_names",
    "split",
    "within",
]

PATH_LIMIT = 4096
NAME_LIMIT = 255
WINDOWS = os.name == "nt"

_WINDOWS_FORBIDDEN = re.compile(r'[<>:"|?*\x00-\x1f]')
_WINDOWS_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)", re.IGNORECASE)
_WINDOWS_SHORT = re.compile(r"[^.]{1,6}~[0-9]{1,6}(\.[^.]{0,3})?$")

# Apple's HFS+ does not see these in a name, so `.g<U+200C>it` opens `.git` there.
_UNSEEN = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))


class Root(NamedTuple):
    """One folder of the workspace.

    ``spellings`` are the ways an absolute path may begin and still lie here: the folder as it was given and
    as it really is, each also in both Unicode normal forms, without a separator at the end.
    """

    path: str
    name: str
    spellings: tuple[str, ...]

    @classmethod
    def of(cls, folder: str, name: str) -> "Root":
        """Look up where `folder` really lies; it need not exist."""
        real = os.path.realpath(folder)
        spellings = (form for path in (real, os.path.abspath(folder)) for form in (path, *normal_forms(path)))
        return cls(real, name, tuple(dict.fromkeys(os.path.normcase(s).rstrip(os.sep) for s in spellings)))


class Place(NamedTuple):
    """A path that passed the rules; `relative` has ``/`` between its parts, and none for the root itself."""

    root: Root
    relative: str

    @property
    def path(self) -> str:
        """The absolute path, in the system's own spelling."""
        if os.sep == "/":
            return f"{self.root.path.rstrip('/')}/{self.relative}" if self.relative else self.root.path
        return os.path.join(self.root.path, *self.relative.split("/")) if self.relative else self.root.path


def root_names(folders: Sequence[str]) -> list[str]:
    """Name each folder by its last part; the next of the same name becomes ``name-2``, then ``name-3`` …"""
    names: list[str] = []
    for folder in folders:
        base = PurePath(folder).name or folder
        name, count = base, 1
        while name in names:
            count += 1
            name = f"{base}-{count}"
        names.append(name)
    return names


def normal_forms(text: str) -> tuple[str, ...]:
    """Return the two spellings Unicode offers for `text`, or nothing when there is only one."""
    if text.isascii():
        return ()
    return unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)


def within(path: str, root: Root) -> str | None:
    """Return what follows when the absolute `path` begins with `root`, else None."""
    folded = os.path.normcase(path)
    for spelling in root.spellings:
        if folded == spelling or folded.startswith(spelling + os.sep):
            return path[len(spelling) :]
    return None


def split(path: str, *, windows: bool = WINDOWS) -> list[str]:
    """Take the part of a path below a root to pieces, or refuse it."""
    parts = (path.replace("\\", "/") if windows else path).split("/")
    if ".." in parts:
        raise PathRefused("the path contains '..', which is refused even where it would stay inside")
    if "" in parts or "." in parts:
        parts = _without_empty(parts)
    if len(path) * 4 > NAME_LIMIT and any(len(part.encode()) > NAME_LIMIT for part in parts):
        raise PathRefused(f"the path has a name of more than {NAME_LIMIT} bytes")
    if windows:
        check_windows(parts)
    return parts


def _without_empty(parts: list[str]) -> list[str]:
    kept = [part for part in parts if part not in ("", ".")]
    if kept and parts[-1] in ("", "."):
        raise PathRefused("the path ends like that of a folder, but a file is wanted")
    return kept


def check_text(path: str) -> None:
    """Refuse what is no path at all."""
    if not path:
        raise PathRefused("the path is empty")
    if "\0" in path:
        raise PathRefused("the path contains a NUL character")
    try:
        size = len(path) if path.isascii() else len(path.encode())
    except UnicodeEncodeError:
        raise PathRefused("the path is not valid Unicode (it has half of a surrogate pair)") from None
    if size > PATH_LIMIT:
        raise PathRefused(f"the path is longer than {PATH_LIMIT} bytes")


def check_windows(parts: Sequence[str]) -> None:
    """Refuse the names that Windows reads as something other than a file of that name."""
    for part in parts:
        if _WINDOWS_FORBIDDEN.search(part):
            raise PathRefused(
                "the path has a character that no Windows file name may have, or names a stream or drive"
            )
        if part.endswith((".", " ")):
            raise PathRefused("the path has a name that ends in a dot or a space, which Windows drops")
        if _WINDOWS_DEVICE.match(part):
            raise PathRefused("the path names a Windows device")
        if _WINDOWS_SHORT.match(part):
            raise PathRefused("the path has a short (8.3) name; use the long one")


def check_windows_start(path: str) -> None:
    """Refuse a path outside every root that begins with a drive, a share or a device on Windows."""
    if path.replace("/", "\\").startswith("\\\\") or path[1:2] == ":":
        raise PathRefused("the path lies outside the workspace")


def inside_git(path: str) -> bool:
    """Whether a part of the path is git's own folder (or file), however a file system lets one spell it."""
    parts = path.replace("\\", "/").split("/") if WINDOWS else path.split("/")
    return any(is_called(part, ".git") for part in parts)


def is_called(part: str, name: str) -> bool:
    """Whether a file system may take one for the other, an ASCII name in small letters."""
    return part.translate(_UNSEEN).casefold() == name
