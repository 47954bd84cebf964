"""What git ignores: whether one path, which need not exist, is hidden by the rules on its way.

`listing` answers the same for all files at once, later; this is for who asks about one, now. Rules inside the
workspace are read each time. What counts from outside (the user's excludes, folders above) is read anew at most
once a second, because git may have to be asked for it.

It does not know why somebody asks.
"""

import os
import time
from typing import NamedTuple

from ide_bridge.workspace.places import Place
from ide_bridge.workspace.repository import Repository, Standing, find, read_rules

__all__ = ["Hidden"]

_TRUSTED_SECONDS = 1.0


class _Ground(NamedTuple):
    """How a root stands: in which work tree, where in it, and under which rules from outside."""

    repository: Repository | None
    place: str
    standing: Standing
    until: float


class Hidden:
    """Asks git's rules; tracked files are never hidden, whatever a rule says of them."""

    def __init__(self) -> None:
        self._grounds: dict[str, _Ground] = {}

    def __call__(self, place: Place) -> bool:
        """Whether git ignores this file."""
        ground = self._ground(place.root.path)
        if not self._ruled_out(ground, place):
            return False
        return ground.repository is None or not _is_tracked(ground.repository, place)

    def _ground(self, root: str) -> _Ground:
        known = self._grounds.get(root)
        if known is None or time.monotonic() > known.until:
            known = self._grounds[root] = _look(root)
        return known

    def _ruled_out(self, ground: _Ground, place: Place) -> bool:
        standing = ground.standing
        rules = standing.rules
        parts = place.relative.split("/")
        folder = ""
        for number, part in enumerate(parts):
            content = read_rules(os.path.join(place.root.path, folder, ".gitignore"), follow=False)
            rules = rules.with_file(content, ground.place + folder, ignore_case=standing.ignore_case)
            entry = part if number == len(parts) - 1 else f"{part}/"
            if standing.hidden or rules.hidden(ground.place + folder, [entry]):
                return True
            folder += entry
        return False


def _look(root: str) -> _Ground:
    repository = find(root)
    if repository is None:
        return _Ground(None, "", Standing(), time.monotonic() + _TRUSTED_SECONDS)
    relative = os.path.relpath(root, repository.top).replace(os.sep, "/")
    place = "" if relative == "." else f"{relative}/"
    return _Ground(repository, place, repository.standing(place), time.monotonic() + _TRUSTED_SECONDS)


def _is_tracked(repository: Repository, place: Place) -> bool:
    """Ask git, which takes some milliseconds; few ask for a file that is ignored."""
    folder, name = os.path.split(place.path)
    return name in repository.tracked(folder)
