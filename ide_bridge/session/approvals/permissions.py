"""Permissions for a session: what of the CLI's suggestions a person agrees to with "allow for this session".

The CLI suggests rules for its settings files, folders and modes. Nothing of that may reach a file of the user's,
so every suggestion is made one for the session; and none may open more than was asked about: no mode that stops
asking, no whole shell, no whole disk. With a command line the CLI often suggests the mode ``acceptEdits``, in
which it then runs any ``rm`` in the folder unasked; so a command line never changes the mode.

It does not know who agreed, or whether the CLI obeys.
"""

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ide_bridge.session.approvals.rules import READERS, SHELL, WRITERS, Rule, command_of, path_of
from ide_bridge.session.approvals.spots import real_path
from ide_bridge.session.control.questions import CanUseTool

__all__ = ["for_session", "rules_in", "same"]

_MODES = ("default", "acceptEdits", "plan")
_LIMIT = 50


def for_session(question: CanUseTool) -> tuple[dict[str, Any], ...]:
    """The suggestions as far as a session may take them, with the session as their destination."""
    modes = () if question.tool_name == SHELL else _MODES
    found = (kept for each in question.permission_suggestions if (kept := _kept(each, modes)) is not None)
    return tuple(kept | {"destination": "session"} for kept, _ in zip(found, range(_LIMIT), strict=False))


def rules_in(permissions: Iterable[Mapping[str, Any]]) -> Iterator[Rule]:
    """The rules among the permissions that `for_session` gave."""
    for each in permissions:
        for rule in each.get("rules", ()):
            yield Rule(rule["toolName"], rule.get("ruleContent"))


def same(question: CanUseTool, folder: str) -> str:
    """A sign that two questions share if they are about the same: a command line, a file, else the whole input."""
    tool = question.tool_name
    about: object = question.input
    if tool == SHELL and (line := command_of(question)) is not None:
        about = line
    elif tool in WRITERS or tool == "Read":
        path = path_of(question, folder)
        about = [path, real_path(os.path.join(folder, path))] if isinstance(path, str) else about
    return hashlib.sha256(json.dumps([tool, about], sort_keys=True).encode()).hexdigest()


def _kept(suggestion: Mapping[str, Any], modes: Collection[str]) -> dict[str, Any] | None:
    kind = suggestion.get("type")
    if kind == "addRules" and suggestion.get("behavior") == "allow":
        rules = [rule for each in _list(suggestion.get("rules")) if (rule := _rule(each)) is not None]
        return {"type": kind, "rules": rules, "behavior": "allow"} if rules else None
    if kind == "addDirectories":
        folders = [each for each in _list(suggestion.get("directories")) if _is_narrow(each)]
        return {"type": kind, "directories": folders} if folders else None
    if kind == "setMode" and suggestion.get("mode") in modes:
        return {"type": kind, "mode": suggestion["mode"]}
    return None


def _rule(given: object) -> dict[str, str] | None:
    tool = given.get("toolName") if isinstance(given, dict) else None
    what = given.get("ruleContent") if isinstance(given, dict) else None
    if not isinstance(tool, str) or not tool or not isinstance(what, str | None):
        return None
    if what is None:
        return None if tool in {SHELL, *READERS, *WRITERS} else {"toolName": tool}
    return {"toolName": tool, "ruleContent": what} if what.strip(" :*/.~") else None


def _is_narrow(folder: object) -> bool:
    """Whether a folder is less than the whole disk or all the user has."""
    if not isinstance(folder, str) or not os.path.isabs(folder):
        return False
    real = real_path(folder)
    home = real_path(os.path.expanduser("~"))
    return not (home == real or home.startswith(real.rstrip(os.sep) + os.sep))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
