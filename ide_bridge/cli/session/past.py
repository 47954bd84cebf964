"""Sessions that have been: those a bridge still knows, and those only the CLI's transcripts know.

It does not know how they are continued.
"""

import os
from collections.abc import Iterable

import msgspec

from ide_bridge.cli.reach import here
from ide_bridge.cli.session.reach import (
    LIST,
    SHORTEST,
    Known,
    Listed,
    Session,
    all_bridges,
    known_sessions,
    meant,
)
from ide_bridge.errors import SetupProblem
from ide_bridge.session.transcript.past import Past, past_session, past_sessions
from ide_bridge.session.transcript.places import find_transcript, is_session

__all__ = ["Origin", "newest_here", "origin_of", "past_of"]

_MANY = 10_000


class Origin(msgspec.Struct, frozen=True):
    """A session that can be continued or shown, and the folder it belongs to."""

    session: str
    folder: str
    known: Known | None = None


def past_of(folder: str, known: Iterable[str]) -> list[Listed]:
    """The sessions of a folder that no bridge knows, the newest first."""
    names = set(known)
    return [_listed(past) for past in past_sessions(folder) if past.session not in names]


def origin_of(word: str) -> Origin:
    """The session that a few letters, or its whole id, mean."""
    if (known := meant(word, known_sessions(all_bridges()))) is not None:
        return Origin(known.session.session, known.session.folder, known)
    fitting = _beginning_with(word) if len(word) >= SHORTEST else []
    if len(fitting) > 1:
        names = ", ".join(past.session[:13] for past in fitting)
        raise SetupProblem(f"Several sessions begin with {word} ({names}); give more of the one you mean.")
    if fitting:
        return Origin(fitting[0].session, fitting[0].folder or here())
    path = find_transcript(word.lower()) if is_session(word) else None
    if path is not None and (past := past_session(path)) is not None:
        return Origin(past.session, past.folder)
    raise SetupProblem(f"There is no session {word}; see which there are with: {LIST} --all")


def _beginning_with(word: str) -> list[Past]:
    return [past for past in past_sessions(here(), limit=_MANY) if past.session.startswith(word.lower())]


def newest_here() -> Origin:
    """The session of this folder that was used last and is not live."""
    folder = os.path.realpath(here())
    known = [each for each in known_sessions(all_bridges()) if each.session.folder == folder]
    live = {each.session.session for each in known if each.session.is_live}
    ended = [(each.session.changed, Origin(each.session.session, folder, each)) for each in known]
    ended += [(past.changed, Origin(past.session, folder)) for past in past_sessions(folder)]
    candidates = [(changed, origin) for changed, origin in ended if origin.session not in live]
    if not candidates:
        raise SetupProblem(
            "No session of this folder has ended; see those of others with: ide-bridge session list"
        )
    return max(candidates, key=lambda candidate: candidate[0])[1]


def _listed(past: Past) -> Listed:
    session = Session(past.session, "past", past.folder, past.title or "", changed=past.changed)
    return Listed(
        session, {key: value for key, value in msgspec.to_builtins(session).items() if value is not None}
    )
