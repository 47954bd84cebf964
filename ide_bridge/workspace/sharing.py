"""What is shared: which files a client may touch at all, and what of the editor is pushed to it unasked.

Secrets lie in workspaces: keys, credentials, ``.env`` files. Those are kept from clients on every front, and the
refusal says which pattern did it. The patterns are gitignore's: the built-in ones, the user's own, and Claude's
``Read`` deny rules. How much is pushed of the rest is the policy, which the user may switch at any time.

It does not know who asks, where patterns come from, or how anything is sent.
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import get_args

import msgspec

from ide_bridge.errors import NotShared
from ide_bridge.model import Selection
from ide_bridge.settings import Policy
from ide_bridge.workspace.beneath import real_path
from ide_bridge.workspace.deny_list import DenyList
from ide_bridge.workspace.places import Place, Root, within

__all__ = ["DENIED", "Sharing"]

DENIED = (
    ".env*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    ".env.example/",
    ".env.sample/",
    ".env.template/",
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
    "**/.aws/credentials",
    ".ssh/",
    ".gnupg/",
)

_FROM_LOOSE_TO_STRICT: tuple[Policy, ...] = get_args(Policy)


class Sharing:
    """The deny list, and the policy for what is pushed.

    `rules` names the rule that denies a place, or None; `ignored` says whether git ignores one, and is only
    given if such files are to be hidden; `roots` are the folders of the workspace at the moment.
    """

    def __init__(
        self,
        patterns: Sequence[str] = (),
        *,
        policy: Policy = "full",
        at_least: Policy = "full",
        roots: Callable[[], Sequence[Root]] = tuple,
        rules: Callable[[Place], str | None] | None = None,
        ignored: Callable[[Place], bool] | None = None,
    ) -> None:
        self._patterns = (*DENIED, *patterns)
        self._find = lru_cache(maxsize=4096)(DenyList(self._patterns).find)
        self._roots = roots
        self._rules = rules
        self._ignored = ignored
        self._at_least = at_least
        self.policy = policy

    @property
    def policy(self) -> Policy:
        """What is pushed unasked. It may be set, but stays as strict as the workspace itself demands."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy = max(policy, self._at_least, key=_FROM_LOOSE_TO_STRICT.index)

    # -- what may be touched -------------------------------------------------------------------------------

    def permit(self, place: Place) -> None:
        """Refuse a place that is not shared, in the words of the pattern that matches it."""
        if place.relative and (pattern := self._denied_by(place)) is not None:
            raise NotShared(f"not shared: matches {pattern}")

    def permits(self, path: str) -> bool:
        """Whether an absolute path, and the file where its links end, lie inside and are shared."""
        places = self._places(path)
        return bool(places) and all(place.relative and self._denied_by(place) is None for place in places)

    def _denied_by(self, place: Place) -> str | None:
        number = self._find(place.relative)
        if number is not None:
            return self._patterns[number]
        if self._rules is not None and (rule := self._rules(place)) is not None:
            return rule
        return ".gitignore" if self._ignored is not None and self._ignored(place) else None

    def _places(self, path: str) -> list[Place]:
        """Find a path of the editor's as it is written and where it leads; nothing if that is not inside."""
        if not os.path.isabs(path):
            return []  # a buffer without a name, or one that is no file
        try:
            real = self._place(real_path(path))
        except ValueError:
            return []  # a name that no file can have
        written = self._place(os.path.normpath(path))
        return [] if real is None else [real] if written is None else [written, real]

    def _place(self, path: str) -> Place | None:
        found = ((root, within(path, root)) for root in self._roots())
        return next((Place(root, _relative(rest)) for root, rest in found if rest is not None), None)

    # -- what is pushed ------------------------------------------------------------------------------------

    def shows(self, path: str) -> bool:
        """Whether clients may be told that this file is open."""
        return self._policy != "off" and self.permits(path)

    def pushed(self, selection: Selection) -> Selection | None:
        """What clients are told of a selection: all of it, only where it is, or nothing."""
        if not self.shows(selection.path):
            return None
        return selection if self._policy == "full" else msgspec.structs.replace(selection, text="")


def _relative(rest: str) -> str:
    return rest.replace(os.sep, "/").strip("/")
