"""Sessions wherever they run: asking every bridge of this user, and finding the session that a few letters mean.

The bridge of the current folder is asked first, and what it knows goes before what others know.

It does not know what is done with a session.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ide_bridge.cli.printable import printable
from ide_bridge.cli.reach import ask, here
from ide_bridge.errors import BridgeError, MethodNotFound, RemoteError, SetupProblem
from ide_bridge.running import find, is_alive, running_bridges
from ide_bridge.session.approvals import Approval

if TYPE_CHECKING:
    from ide_bridge.running import Running

__all__ = [
    "LIST",
    "LIVE",
    "Known",
    "Listed",
    "Open",
    "Session",
    "all_bridges",
    "as_session",
    "called",
    "environment_here",
    "known_sessions",
    "meant",
    "meant_or_only",
    "open_approvals",
    "short",
]

LIST = "ide-bridge session list"
LIVE = ("starting", "working", "waiting", "idle")
SHORTEST = 4
_SHOWN = 8
_SECONDS = 5


class Session(msgspec.Struct, frozen=True, rename="camel"):
    """What a bridge says of a session."""

    session: str
    state: str
    folder: str
    title: str = ""
    model: str | None = None
    mode: str | None = None
    version: str | None = None
    over: str | None = None
    created: float = 0.0
    changed: float = 0.0
    cost: float | None = None
    approvals: tuple[str, ...] = ()
    fork_of: str | None = None
    problem: str | None = None

    @property
    def is_live(self) -> bool:
        """Whether a CLI runs it now."""
        return self.state in LIVE


class Listed(msgspec.Struct, frozen=True):
    """A session, and the words in which a program is told of it."""

    session: Session
    said: dict[str, Any]


class Known(Listed, frozen=True):
    """A session, and the bridge that has it."""

    bridge: "Running"

    def ask(self, method: str, params: Mapping[str, object] | None = None, *, seconds: float = 30) -> object:
        """Ask its bridge something about it."""
        return ask(self.bridge, method, {"session": self.session.session, **(params or {})}, seconds=seconds)


class Open(msgspec.Struct, frozen=True):
    """An approval that waits, and the bridge it waits in."""

    bridge: "Running"
    approval: Approval
    said: dict[str, Any]


def all_bridges() -> "list[Running]":
    """Every bridge that runs, this folder's first."""
    ours = find(here())
    running = running_bridges()
    if ours is None:
        return running
    return [ours, *(bridge for bridge in running if bridge.pid != ours.pid)]


def known_sessions(bridges: "Iterable[Running]") -> list[Known]:
    """The sessions of these bridges; one that does not answer, or is too old to know of sessions, has none."""
    return [Known(as_session(said), said, bridge) for bridge in bridges for said in _asked(bridge, "sessions")]


def open_approvals(bridges: "Iterable[Running]") -> list[Open]:
    """What waits for an answer, the oldest first."""
    found = [
        Open(bridge, msgspec.convert(said, Approval), said)
        for bridge in bridges
        for said in _asked(bridge, "approvals")
    ]
    return sorted(found, key=lambda each: each.approval.asked)


def as_session(said: object) -> Session:
    """A bridge's words for a session, checked."""
    return msgspec.convert(said, Session)


def meant(word: str, known: Sequence[Known]) -> Known | None:
    """The session whose id begins so; None when there is none, and an error when there are several."""
    fitting = [each for each in known if each.session.session == word]
    if not fitting and len(word) >= SHORTEST:
        fitting = [each for each in known if each.session.session.startswith(word.lower())]
    if len(fitting) > 1:
        names = ", ".join(short(each.session.session, known) for each in fitting)
        raise SetupProblem(f"Several sessions begin with {word} ({names}); give more of the one you mean.")
    return fitting[0] if fitting else None


def meant_or_only(word: str | None) -> Known:
    """The session that a word means; without one, the only one that is live, in this folder's bridge or in all."""
    bridges = all_bridges()
    if word is not None:
        return _named(word, bridges)
    ours = find(here())
    for among in ([ours] if ours is not None else [], bridges):
        live = [each for each in known_sessions(among) if each.session.is_live]
        if len(live) == 1:
            return live[0]
        if live:
            raise SetupProblem(f"Several sessions are live; name one of them: {_enumerated(live)}.")
    raise SetupProblem("No session is live; start one with: ide-bridge session start")


def short(session: str, among: Iterable[Listed]) -> str:
    """As much of an id as tells it from the others."""
    others = [each.session.session for each in among if each.session.session != session]
    length = _SHOWN
    while length < len(session) and any(other.startswith(session[:length]) for other in others):
        length += 1
    return session[:length]


def called(session: Session) -> str:
    """A session's title for a line of text."""
    return printable(session.title) or "untitled"


def environment_here() -> dict[str, str]:
    """This terminal's environment, as far as it can be told in JSON."""
    return {name: value for name, value in os.environ.items() if _is_text(name) and _is_text(value)}


def _named(word: str, bridges: "Sequence[Running]") -> Known:
    for among in (bridges[:1], bridges[1:]):
        if (found := meant(word, known_sessions(among))) is not None:
            return found
    raise SetupProblem(f"There is no session {word}; see which there are with: {LIST} --all")


def _enumerated(live: Sequence[Known]) -> str:
    return ", ".join(f"{short(each.session.session, live)} ({called(each.session)})" for each in live)


def _asked(bridge: "Running", method: str) -> list[dict[str, Any]]:
    try:
        answer = ask(bridge, method, {}, seconds=_SECONDS)
    except RemoteError as error:
        if error.remote_code == MethodNotFound.code:
            return []
        raise
    except BridgeError as error:
        if is_alive(bridge.pid):  # it has not just ended, but hangs; the others may still answer
            print(printable(f"ide-bridge: {error}"), file=sys.stderr)
        return []
    return answer if isinstance(answer, list) else []


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
