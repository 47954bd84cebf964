"""Where the CLI keeps its transcripts, and how their files are called.

1. A transcript is ``<config>/projects/<slug>/<session>.jsonl``; beside it, ``<session>/`` has what belongs to it.
2. The slug is made from the resolved folder: each UTF-16 unit that is no ASCII letter or digit becomes ``-``.
   Longer than 200, it is cut and a hash of the folder follows; versions up to 2.1.37 did not cut it.
3. Several folders may share a slug, and a slug says nothing of its folder: the records do.
4. A session id is a UUID and nothing else; what is given as one becomes part of a path only after that is certain.

It does not know what is in a transcript.
"""

import os
import re

from ide_bridge.errors import InvalidParams
from ide_bridge.home import claude_folder

__all__ = [
    "agent_of",
    "agents_folder",
    "find_transcript",
    "is_session",
    "project_folders",
    "projects_folder",
    "slug",
]

_SESSION = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_AGENT = re.compile(r"agent-([0-9A-Za-z_-]{1,128})\.jsonl")
_OTHER = re.compile(r"[^0-9A-Za-z]")
_LIMIT = 200
_NAME_LIMIT = 255
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def projects_folder() -> str:
    """The folder with one folder for each slug."""
    return os.path.join(claude_folder(), "projects")


def slug(folder: str) -> str:
    """The name that the CLI gives to the folder it runs in."""
    real = os.path.realpath(folder)
    dashed = _dashed(real)
    return dashed if len(dashed) <= _LIMIT else f"{dashed[:_LIMIT]}-{_base36(_hash(real))}"


def project_folders(folder: str) -> list[str]:
    """Where transcripts of a folder may lie: as the CLI of today names it, and as old ones did."""
    names = dict.fromkeys([slug(folder), _dashed(os.path.realpath(folder))])
    return [os.path.join(projects_folder(), name) for name in names if len(name) <= _NAME_LIMIT]


def is_session(name: str) -> bool:
    """Whether this is a session id, and so can be part of a path."""
    return _SESSION.fullmatch(name) is not None


def find_transcript(session: str, folder: str | None = None) -> str | None:
    """The transcript of a session; of several, which a moved project may leave behind, the one written last."""
    if not is_session(session):
        raise InvalidParams("A session is named by its id, such as 01234567-89ab-cdef-0123-456789abcdef.")
    likely = (
        [] if folder is None else [os.path.join(place, f"{session}.jsonl") for place in project_folders(folder)]
    )
    found = [path for path in likely if os.path.isfile(path)]
    return max(found or _everywhere(f"{session}.jsonl"), key=_changed, default=None)


def agents_folder(transcript: str) -> str:
    """Where the transcripts of a session's sub-agents lie; those of a sub-agent's own lie beside it."""
    if agent_of(os.path.basename(transcript)) is not None:
        return os.path.dirname(transcript)
    return os.path.join(transcript.removesuffix(".jsonl"), "subagents")


def agent_of(name: str) -> str | None:
    """The id of the sub-agent whose transcript has this name."""
    match = _AGENT.fullmatch(name)
    return match[1] if match else None


def _everywhere(name: str) -> list[str]:
    root = projects_folder()
    try:
        folders = os.listdir(root)
    except OSError:
        return []
    paths = (os.path.join(root, folder, name) for folder in folders)
    return [path for path in paths if os.path.isfile(path)]


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _units(text: str) -> list[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


def _dashed(real: str) -> str:
    return _OTHER.sub(lambda other: "-" * len(_units(other[0])), real)


def _hash(real: str) -> int:
    value = 0
    for unit in _units(real):
        value = (value * 31 + unit) & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >> 31 else value)


def _base36(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"
