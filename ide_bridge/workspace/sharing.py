"""What is shared: which files of the workspace a client may touch at all.

Secrets lie in workspaces: keys, credentials, ``.env`` files. Those are kept from clients on every front, and
the refusal says which pattern did it. The patterns are gitignore's; the user's own settings may add to them.

It does not know who asks, and it does not look at the disk.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ide_bridge.errors import NotShared
from ide_bridge.workspace.places import Place

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["DENIED", "Sharing"]

DENIED = (
    ".env*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    "credentials.json",
    ".aws/credentials",
    ".ssh/",
    ".gnupg/",
)


class Sharing:
    """The deny list: built in, and the user's own patterns after it."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = (*DENIED, *patterns)
        self._match = lru_cache(maxsize=4096)(self._find)
        self._compiled: GitIgnoreSpec | None = None

    def permit(self, place: Place) -> None:
        """Refuse a place that is not shared; in the words of the pattern that matches it."""
        if place.relative and (pattern := self._match(place.relative)) is not None:
            raise NotShared(f"not shared: matches {pattern}")

    def _find(self, relative: str) -> str | None:
        if self._compiled is None:
            from pathspec import GitIgnoreSpec  # noqa: PLC0415 - a bridge that reads no file needs none

            self._compiled = GitIgnoreSpec.from_lines(self._patterns)
        found = self._compiled.check_file(os.path.normcase(relative).casefold())
        return self._patterns[found.index] if found.include and found.index is not None else None
