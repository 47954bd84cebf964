"""Patterns: which paths of a list a client's pattern means.

A pattern is a line of gitignore: ``*.js`` means files at any depth, a slash inside anchors it, ``**`` works, a
folder means all below it. What would hide nothing in git (a comment, a lone exception) means no file. The
length is bounded, and `globs` bounds the time.

It does not know where the paths come from.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from ide_bridge.errors import InvalidParams
from ide_bridge.workspace.globs import translate

__all__ = ["LENGTH_LIMIT", "Selector", "selector"]

LENGTH_LIMIT = 1024

Selector = Callable[[Iterable[str]], list[str]]


@lru_cache(maxsize=64)
def selector(pattern: str) -> Selector:
    """Return what picks from paths those the pattern means; the empty pattern means all."""
    if len(pattern) > LENGTH_LIMIT:
        raise InvalidParams(f"Invalid params: the pattern is longer than {LENGTH_LIMIT} characters.")
    if not _is_text(pattern):
        raise InvalidParams("Invalid params: the pattern is not valid Unicode (it has half of a surrogate pair).")
    if not pattern:
        return list
    glob = translate(pattern)
    if glob is None or not glob.hides:
        return _nothing
    below = "/" if glob.folders_only else "(?:/|\\Z)"
    matches = re.compile(f"(?:{glob.path}){below}", re.DOTALL).match
    return lambda paths: [path for path in paths if matches(path)]


def _nothing(_paths: Iterable[str]) -> list[str]:
    return []


def _is_text(pattern: str) -> bool:
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return False
    return True
