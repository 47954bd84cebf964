"""Where a path of a tool lies: inside the folder of its session or not, and which globs it fits.

1. To allow, a path must be absolute and ordinary; it must lie inside and fit both as it is written and where its
   links really lead. Relative paths would depend on where the CLI stands at the moment, which nobody knows here.
2. To deny, it is enough that one of its spellings fits, without regard to case, to how Unicode spells a letter and
   to characters nobody sees, because there are file systems that open ``.env`` by the name ``.ENV``.

Globs are gitignore's: one name fits at any depth, a slash anchors, and what lies in a folder that fits, fits too.
Other than there, ``!`` takes nothing back. ``//x`` begins at the root of the file system, ``~/x`` at home.

It follows links and reads nothing; it does not know tools or rules.
"""

import fnmatch
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

__all__ = ["certainly_fits", "inside", "is_named", "is_ordinary", "may_fit", "real_path", "shown"]

_PATH_LIMIT = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WILD = re.compile(r"[*?\[\\]")


def is_ordinary(path: object) -> bool:
    """Whether something is a path that can mean one place only, wherever the CLI stands."""
    return (
        isinstance(path, str)
        and len(path) <= _PATH_LIMIT
        and os.path.isabs(path)
        and _CONTROL.search(path) is None
        and ".." not in path.replace(os.sep, "/").split("/")
    )


def real_path(path: str) -> str:
    """Where a path leads, as far as there is anything; a name that no file can have leads nowhere else."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


def inside(path: str, folder: str) -> str | None:
    """An absolute path as seen from a folder, with ``/`` between its names; None if it lies elsewhere."""
    start = os.path.normcase(folder).rstrip(os.sep)
    whole = os.path.normcase(path)
    if whole != start and not whole.startswith(start + os.sep):
        return None
    return path[len(start) :].replace(os.sep, "/").strip("/")


def certainly_fits(path: str, glob: str, folder: str) -> bool:
    """Whether an ordinary path lies where a glob means, both as it is written and in truth."""
    base, rest = _base(glob, folder)
    real = inside(real_path(path), real_path(base))
    found = (inside(os.path.normpath(path), each) for each in (base, real_path(base)))
    written = next((each for each in found if each is not None), None)
    return real is not None and written is not None and _fits(rest, real) and _fits(rest, written)


def may_fit(path: str, globs: Iterable[str], folder: str) -> bool:
    """Whether a path may be meant by one of some globs, in any of the ways it can be read."""
    forms = tuple(_forms(path, folder))
    seen: dict[str, _Names] = {}
    for glob in globs:
        base, rest = _base(glob, folder)
        if base not in seen:
            seen[base] = _seen_from(base, forms)
        names = seen[base].inside | (seen[base].outside if _floats(rest) else frozenset())
        if any(_fits(_folded(rest), name, fold=True) for name in names):
            return True
    return False


def is_named(path: str, glob: str, folder: str) -> bool:
    """Whether a glob is no glob, but the name of this very file."""
    base, rest = _base(glob, folder)
    return _WILD.search(rest) is None and os.path.join(base, rest.strip("/")) == os.path.normpath(path)


def shown(path: str, folder: str) -> str:
    """A path for people: short inside the folder, and where it leads if that is outside."""
    absolute = os.path.normpath(os.path.join(folder, path))
    written = inside(absolute, os.path.normpath(folder))
    if written is None:
        return path
    real = real_path(absolute)
    leads = "" if inside(real, real_path(folder)) is not None else f" → {real}"
    return f"{written or '.'}{leads}"


def _base(glob: str, folder: str) -> tuple[str, str]:
    """The folder that a glob counts from, and the glob as it counts there."""
    if glob.startswith("//"):
        return os.sep, glob[1:]
    if glob.startswith("~/"):
        return os.path.expanduser("~"), glob[1:]
    return os.path.normpath(folder), glob.removeprefix("./")


def _forms(path: str, folder: str) -> Iterator[str]:
    absolute = os.path.join(folder, os.path.expanduser(path))
    yield os.path.normpath(absolute)
    yield real_path(absolute)


class _Names(NamedTuple):
    """How one path can be called: from a folder, and from the root where it lies elsewhere."""

    inside: frozenset[str]
    outside: frozenset[str]


def _seen_from(base: str, forms: Iterable[str]) -> _Names:
    bases = dict.fromkeys((base, real_path(base)))
    found = {form: [name for each in bases if (name := inside(form, each)) is not None] for form in forms}
    return _Names(
        frozenset(_folded(name) for names in found.values() for name in names),
        frozenset(_folded(form.replace(os.sep, "/")).strip("/") for form, names in found.items() if not names),
    )


def _floats(glob: str) -> bool:
    """Whether a glob fits at any depth, so that it means something outside of the folder too."""
    return "/" not in glob.rstrip("/") or glob.startswith("**/")


def _folded(text: str) -> str:
    if text.isascii():
        return text.casefold()
    seen = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", seen).casefold())


# -- globs -------------------------------------------------------------------------------------------------


def _fits(glob: str, relative: str, *, fold: bool = False) -> bool:
    parts = _compiled(glob, fold)
    reached = _onwards({0}, parts)
    for name in relative.split("/"):
        reached = _onwards({after for at in reached for after in _step(parts, at, name)}, parts)
        if len(parts) in reached:
            return True
    return False


def _step(parts: Sequence[re.Pattern[str] | None], at: int, name: str) -> Iterator[int]:
    if at == len(parts):
        return
    part = parts[at]
    if part is None:
        yield at
    elif part.match(name):
        yield at + 1


def _onwards(reached: set[int], parts: Sequence[re.Pattern[str] | None]) -> set[int]:
    """Pass over every ``**``, which may stand for nothing."""
    for at, part in enumerate(parts):
        if part is None and at in reached:
            reached.add(at + 1)
    return reached


@lru_cache(maxsize=4096)
def _compiled(glob: str, fold: bool) -> tuple[re.Pattern[str] | None, ...]:
    names = [name for name in glob.split("/") if name not in ("", ".")]
    if _floats(glob):
        names.insert(0, "**")
    flags = re.IGNORECASE if fold else 0
    return tuple(
        None if name == "**" else re.compile(fnmatch.translate(name.replace("[^", "[!")), flags) for name in names
    )
