"""The CLI as a program: where it is, which version, how it is started for a session, and in what environment.

It does not run a session, and does not know what is said in one.
"""

import asyncio
import contextlib
import os
import re
import shutil
import uuid
from collections.abc import Mapping, Sequence

import msgspec

from ide_bridge.errors import InvalidParams, SetupProblem
from ide_bridge.loopback import past_proxies
from ide_bridge.session.process.kept import Command, Kept, Patience

__all__ = ["Cli", "Launch", "arguments", "find_cli", "session_environment"]

_USUAL_PLACES = (".claude/local/claude", ".local/bin/claude")
_OLDEST = (2, 0, 0)
_LAST_WITH_SDK_URL = (2, 1, 120)
_VERSION = re.compile(rb"(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b")
_VERSION_SECONDS = 10.0
_VERSION_LIMIT = 4096
_REMEMBERED = 64

# What tells a CLI that it runs inside another one, or in the terminal of an IDE: it does not.
_FOREIGN = re.compile(
    r"CLAUDECODE|CLAUDE_BG_.*|CLAUDE_JOB_DIR|CLAUDE_SESSION_.*|CLAUDE_AGENT_SDK_(VERSION|CLIENT_APP)|"
    r"CLAUDE_CODE_(SSE_PORT|ENTRYPOINT|AUTO_CONNECT_IDE|EXECPATH|CHILD_.*|SESSION_.*|REMOTE(_.*)?|WORKER_EPOCH|"
    r".*_FILE_DESCRIPTOR)|ENABLE_IDE_INTEGRATION|TERM_PROGRAM(_VERSION)?|TERMINAL_EMULATOR|CURSOR_TRACE_ID|ZED_TERM"
)
# What a session decides by itself: said twice, the CLI would follow the last, and we would not know.
_OURS = re.compile(
    r"(-[prc].*|--(print|input-format|output-format|verbose|include-partial-messages|permission-prompt-tool|"
    r"permission-prompts|replay-user-messages|session-id|resume|resume-session-at|fork-session|continue|from-pr|"
    r"no-session-persistence|sdk-url|bg|background|teleport|cloud|worktree|tmux)(=.*)?)",
    re.DOTALL,
)
_MODE = re.compile(r"[A-Za-z]{1,40}")


class Cli(msgspec.Struct, frozen=True):
    """A Claude Code that can be started."""

    command: tuple[str, ...]
    version: tuple[int, int, int]

    @property
    def text(self) -> str:
        """Its version, as it says it."""
        return ".".join(map(str, self.version))


class Launch(msgspec.Struct, frozen=True):
    """What a session is started with; ``resume`` goes on with an old one, ``fork`` makes a copy of it first."""

    session: str
    folder: str
    resume: str | None = None
    fork: bool = False
    at: str | None = None
    model: str | None = None
    mode: str | None = None
    arguments: tuple[str, ...] = ()


_known: dict[tuple[object, ...], Cli] = {}


async def find_cli(command: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Cli:
    """The CLI that a command names, else the one the user would start; asked for its version once."""
    environment = os.environ if environment is None else environment
    found = (_program(command[0], environment) if command else _usual_program(environment), *command[1:])
    files = tuple((word, os.stat(word).st_mtime_ns) for word in found if os.path.isfile(word))
    key = (found, files)
    if key not in _known:
        cli = Cli(found, await _version(found, environment))
        if len(_known) >= _REMEMBERED:
            _known.clear()
        _known[key] = cli
    return _known[key]


def arguments(launch: Launch, version: tuple[int, int, int], sdk_url: str | None = None) -> list[str]:
    """The flags for a session; a value stands in one word with its flag, so that it cannot become another one."""
    chosen = [
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
        "--permission-prompt-tool=stdio",
        "--replay-user-messages",
        f"--permission-mode={_mode(launch.mode or 'default')}",
        *_identity(launch),
    ]
    if launch.model is not None:
        chosen.append(f"--model={_plain(launch.model, 'model')}")
    if sdk_url is not None:
        chosen.append(f"--sdk-url={_reachable(sdk_url, version)}")
    return [*chosen, *_extra(launch.arguments)]


def session_environment(environment: Mapping[str, str], token: str | None = None) -> dict[str, str]:
    """The environment for a session: not inside another one, and never through a proxy to this machine."""
    kept = past_proxies({name: value for name, value in environment.items() if not _FOREIGN.fullmatch(name)})
    kept["CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"] = "1"
    if token is not None:
        kept["CLAUDE_CODE_SESSION_ACCESS_TOKEN"] = token
    return kept


def _usual_program(environment: Mapping[str, str]) -> str:
    if found := _on_path("claude", environment):
        return found
    for place in _USUAL_PLACES:
        path = os.path.join(environment.get("HOME", ""), place)
        if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise SetupProblem("Claude Code was not found: there is no claude on your PATH; install it first.")


def _program(name: str, environment: Mapping[str, str]) -> str:
    if os.sep not in name:
        if found := _on_path(name, environment):
            return found
        raise SetupProblem(f"There is no program called {_shown(name)} on your PATH; name the Claude Code to run.")
    shown = _shown(name)
    if not os.path.isabs(name):
        raise SetupProblem(f"{shown} depends on where one is; name the Claude Code to run by its whole path.")
    if not os.path.exists(name):
        raise SetupProblem(f"There is no {shown}; name the Claude Code to run.")
    if not os.path.isfile(name) or not os.access(name, os.X_OK):
        raise SetupProblem(f"{shown} is no program; name the Claude Code to run.")
    return name


def _on_path(name: str, environment: Mapping[str, str]) -> str | None:
    """Look only where the place is certain: a relative entry would mean a folder that may be anyone's."""
    places = [place for place in environment.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(place)]
    return shutil.which(name, path=os.pathsep.join(places)) if places and name else None


async def _version(command: tuple[str, ...], environment: Mapping[str, str]) -> tuple[int, int, int]:
    asked = _shown(" ".join(command))
    words = (*command, "--version")
    kept = await Kept.run(Command(words, "/", session_environment(environment), patience=Patience(0.0, 0.5)))
    try:
        async with asyncio.timeout(_VERSION_SECONDS):
            said = await _beginning(kept)
            code = await kept.end()
    except TimeoutError:
        await kept.end()
        raise SetupProblem(f"{asked} --version gives no answer; run it by hand to see why.") from None
    match = _VERSION.match(said.strip())
    if match is None or code != 0:
        reason = _shown(said.decode(errors="replace") or kept.complaint) or "nothing"
        raise SetupProblem(f"{asked} --version says no version but: {reason}; name the Claude Code to run.")
    major, minor, patch = map(int, match.groups())
    if (major, minor, patch) < _OLDEST:
        raise SetupProblem(f"Claude Code {major}.{minor}.{patch} is too old to be run as a session; update it.")
    return major, minor, patch


async def _beginning(kept: Kept) -> bytes:
    """What it says until it has ended, or until it has said too much."""
    said = b""
    async with contextlib.aclosing(aiter(kept)) as output:
        async for data in output:
            said += data
            if len(said) > _VERSION_LIMIT:
                break
    return said[:_VERSION_LIMIT]


def _identity(launch: Launch) -> list[str]:
    session = f"--session-id={_id(launch.session)}"
    if launch.resume is None:
        if launch.fork or launch.at is not None:
            raise InvalidParams("Name the session to fork.")
        return [session]
    resumed = [f"--resume={_id(launch.resume)}"]
    if launch.at is not None:
        resumed.append(f"--resume-session-at={_id(launch.at)}")
    if launch.fork:
        return [*resumed, "--fork-session", session]
    if launch.session != launch.resume:
        raise InvalidParams("A session goes on under its own id; fork it to have another one.")
    return resumed


def _id(value: str) -> str:
    try:
        if str(uuid.UUID(value)) == value.lower():
            return value
    except ValueError:
        pass
    raise InvalidParams(f"{_shown(value)} is no session or message id, which looks like {uuid.UUID(int=0)}.")


def _mode(value: str) -> str:
    if not _MODE.fullmatch(value):
        raise InvalidParams(f"{_shown(value)} is no permission mode; one is default, another plan.")
    return value


def _plain(value: str, what: str) -> str:
    if not value or not value.isprintable():
        raise InvalidParams(f"{_shown(value) or 'An empty name'} is no {what}.")
    return value


def _reachable(sdk_url: str, version: tuple[int, int, int]) -> str:
    if version > _LAST_WITH_SDK_URL:
        raise SetupProblem(
            f"Claude Code {'.'.join(map(str, version))} accepts --sdk-url only for Anthropic's own servers, "
            f"2.1.120 was the last to come here; start the session over pipes."
        )
    return sdk_url


def _extra(words: Sequence[str]) -> Sequence[str]:
    for word in words:
        if _OURS.fullmatch(word):
            flag = _shown(word.partition("=")[0])
            raise InvalidParams(f"{flag} is decided by the session itself; leave it out of the arguments.")
    return words


def _shown(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return "".join(letter for letter in line[:200] if letter.isprintable())
