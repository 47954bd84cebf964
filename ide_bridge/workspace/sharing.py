"""What is shared: which files a client may touch at all, and what of the editor is pushed to it unasked.

Secrets lie in workspaces: keys, credentials, ``.env`` files. Those are kept from clients on every front, and the
refusal says which pattern did it. The patterns are gitignore's: the built-in ones, the user's own, and Claude's
``Read`` deny rules. How much is pushed of the rest is the policy, which the user may switch at any time.
Settings that change count from then on.

It does not know who asks, where patterns come from, or how anything is sent.
"""

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, get_args

import msgspec

from ide_bridge.errors import NotShared
from ide_bridge.model import Selection
from ide_bridge.settings import SECRETS, WORKSPACE_FILE_NAME, Policy, Settings, stricter
from ide_bridge.workspace.beneath import real_path
from ide_bridge.workspace.deny_list import DenyList
from ide_bridge.workspace.places import Place, Root, is_called, within

__all__ = ["Sharing"]

_POLICIES: tuple[Policy, ...] = get_args(Policy)


class _Patterns(NamedTuple):
    """Patterns, and the number of the one that denies a path."""

    lines: tuple[str, ...]
    find: Callable[[str], int | None]

    @classmethod
    def of(cls, lines: Sequence[str]) -> "_Patterns":
        return cls(tuple(lines), lru_cache(maxsize=4096)(DenyList(lines).find))


class Sharing:
    """The deny list, and the policy for what is pushed.

    `denied` are patterns that hold whatever the `settings` of the moment say, which are asked every time; `roots`
    are the folders of the workspace at the moment. `rules` names the rule that denies a place, or None; `ignored`
    says whether git ignores one, and is asked if such files are to be hidden.
    """

    def __init__(
        self,
        denied: Sequence[str] = (),
        *,
        settings: Callable[[], Settings] | None = None,
        roots: Callable[[], Sequence[Root]] = tuple,
        rules: Callable[[Place], str | None] | None = None,
        ignored: Callable[[Place], bool] | None = None,
    ) -> None:
        plain = Settings()
        self._ask = settings or (lambda: plain)
        self._denied = tuple(denied)
        self._roots = roots
        self._rules = rules
        self._ignored = ignored
        self._obeyed = self._ask()
        self._wanted = self._obeyed.share
        self._patterns = self._all_patterns()
        self._changed = False

    @property
    def policy(self) -> Policy:
        """What is pushed unasked. It may be set, but stays as strict as the settings demand."""
        settings = self._settings()
        return stricter(self._wanted, settings.at_least)

    @policy.setter
    def policy(self, policy: Policy) -> None:
        if policy not in _POLICIES:
            raise ValueError(f"{policy} is not in {_POLICIES}")
        self._settings()  # or what they say would be taken for the newer word
        self._wanted = policy

    def refresh(self) -> bool:
        """Look at the settings; tell whether they changed since this was asked last."""
        self._settings()
        changed, self._changed = self._changed, False
        return changed

    def _settings(self) -> Settings:
        settings = self._ask()
        if settings is not self._obeyed:
            before, self._obeyed = self._obeyed, settings
            self._patterns = self._all_patterns()
            if settings.share != before.share:  # the user's newest word, whichever way he has said it
                self._wanted = settings.share
            self._changed = True
        return settings

    def _all_patterns(self) -> _Patterns:
        return _Patterns.of((*SECRETS, *self._obeyed.deny, *self._denied))

    # -- what may be touched -------------------------------------------------------------------------------

    def permit(self, place: Place) -> None:
        """Refuse a place that is not shared, in the words of the pattern that matches it."""
        if place.relative and (pattern := self._denied_by(place)) is not None:
            raise NotShared(f"not shared: matches {pattern}")

    def permit_writing(self, place: Place) -> None:
        """Refuse to let a client change the file in which a workspace says what is shared."""
        if is_called(place.relative, WORKSPACE_FILE_NAME):
            raise NotShared(f"not written: {WORKSPACE_FILE_NAME} says what clients may touch")

    def permits(self, path: str) -> bool:
        """Whether an absolute path, and the file where its links end, lie inside and are shared."""
        places = self._places(path)
        return bool(places) and all(place.relative and self._denied_by(place) is None for place in places)

    def _denied_by(self, place: Place) -> str | None:
        settings = self._settings()
        patterns = self._patterns
        number = patterns.find(place.relative)
        if number is not None:
            return patterns.lines[number]
        if self._rules is not None and (rule := self._rules(place)) is not None:
            return rule
        hides = settings.hide_ignored and self._ignored is not None and self._ignored(place)
        return ".gitignore" if hides else None

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
        return self.policy != "off" and self.permits(path)

    def pushed(self, selection: Selection) -> Selection | None:
        """What clients are told of a selection: all of it, only where it is, or nothing."""
        if not self.shows(selection.path):
            return None
        return selection if self.policy == "full" else msgspec.structs.replace(selection, text="")


def _relative(rest: str) -> str:
    return rest.replace(os.sep, "/").strip("/")
