"""The rules by which Claude Code chooses a server, replayed over locks that were found.

1. Locks lie in ``$CLAUDE_CONFIG_DIR/ide`` and ``~/.claude/ide``, which count once if they are one folder; the
   file's name is the port.
2. A lock counts while its pid lives; one without a pid counts while its port answers.
3. It matches if the CLI's real folder is one of its folders or lies below one, by whole components. The lock's
   folders are not resolved: a link matches nothing. Older CLIs do not compose Unicode either.
4. In another editor's terminal only a lock whose pid is an ancestor of the CLI matches.
5. ``CLAUDE_CODE_SSE_PORT`` names a lock that matches in spite of 3 and 4, and is taken before all others if it
   is the only one of that port.
6. Otherwise exactly one lock must match; of several none is taken, and nothing is said.
7. ``transport`` must be ``ws``.

It does not know processes, sockets or the terminal: who asks brings what was seen, and prints the answer.
"""

import os
import shlex
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from msgspec import Struct

from ide_bridge.fronts.lock import read_lock
from ide_bridge.running import is_alive

__all__ = [
    "Finding",
    "FoundLock",
    "Here",
    "Level",
    "diagnose",
    "distinct",
    "matching",
    "read_lock_file",
    "read_locks",
    "scanned_folders",
    "shell_word",
    "taken",
]

Level = Literal["ok", "note", "warning", "error"]

_OFF = ("0", "false", "no", "off")


class Finding(Struct, frozen=True):
    """One rule and how it went: what was found, and what to do about it."""

    rule: str
    level: Level
    subject: str
    text: str
    fix: str = ""


class FoundLock(Struct, frozen=True):
    """A lock as it was found, without its token."""

    path: str
    port: int | None
    pid: object
    folders: tuple[str, ...]
    name: str
    transport: object
    modified: float
    exposed: bool
    alive: bool
    reused: bool = False
    listening: bool = False

    @property
    def counts(self) -> bool:
        """Whether the CLI takes it for a living server's (rule 2)."""
        return self.port is not None and (self.alive if self.pid else self.listening)

    @property
    def stale(self) -> bool:
        """Whether its server is gone for certain, even if another process has the pid by now."""
        # What is no process number (the CLI reads "12" as one, and 0 as none) proves nothing.
        known = self.port is not None and type(self.pid) is int and self.pid > 0
        return known and (not self.alive or (self.reused and not self.listening))

    @property
    def label(self) -> str:
        """What a person calls it."""
        return f"{self.name or 'A server without a name'} (port {self.port})"


class Here(Struct, frozen=True):
    """Where the CLI would be started: its real folder, its environment, the processes above it."""

    folder: str
    home: str
    environment: Mapping[str, str]
    ancestors: frozenset[int] = frozenset()
    auto_connect: bool = False

    @property
    def chosen_port(self) -> str:
        """The port that the environment names, as it stands there."""
        return self.environment.get("CLAUDE_CODE_SSE_PORT", "").strip()

    @property
    def foreign_terminal(self) -> str:
        """The setting by which the CLI believes itself in another editor's terminal, or nothing."""
        if self.environment.get("TERM_PROGRAM") == "vscode":
            return "TERM_PROGRAM=vscode"
        if self.environment.get("FORCE_CODE_TERMINAL"):
            return "FORCE_CODE_TERMINAL"
        if "jetbrains" in self.environment.get("TERMINAL_EMULATOR", "").lower():
            return "TERMINAL_EMULATOR"
        return ""


def shell_word(text: str) -> str:
    """Write a name as a person can paste it into a shell, also one that no screen can show."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = (char if char.isprintable() and char not in "\\'" else _bytes_of(char) for char in text)
    return f"$'{''.join(escaped)}'"


def _bytes_of(char: str) -> str:
    # A name on disk may have single bytes that are no text; a lock, which anyone may write, has worse.
    errors = "surrogateescape" if "\udc80" <= char <= "\udcff" else "replace"
    return "".join(f"\\x{byte:02x}" for byte in char.encode(errors=errors))


def scanned_folders(here: Here) -> list[str]:
    """Where the CLI looks for locks (rule 1)."""
    usual = os.path.join(here.home, ".claude", "ide")
    chosen = here.environment.get("CLAUDE_CONFIG_DIR")
    return distinct([os.path.join(here.folder, chosen, "ide"), usual] if chosen else [usual])


def distinct(folders: Iterable[str]) -> list[str]:
    """Each folder once, under the first of its names."""
    names: dict[str, str] = {}
    for folder in folders:
        names.setdefault(os.path.realpath(folder), os.path.normpath(folder))
    return list(names.values())


def read_locks(folder: str) -> list[FoundLock]:
    """Read every lock in a folder, the newest first; a folder that is missing has none."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".lock")]
    except FileNotFoundError:
        return []
    read = (read_lock_file(os.path.join(folder, name)) for name in sorted(names))
    return sorted((lock for lock in read if lock), key=lambda lock: -lock.modified)


def read_lock_file(path: str) -> FoundLock | None:
    """Read one lock; nothing if it is gone by now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    # A pipe or a device under a lock's name would keep its reader waiting for ever.
    fields = read_lock(path) if stat.S_ISREG(status.st_mode) else {}
    stem = os.path.basename(path).removesuffix(".lock")
    pid, name = fields.get("pid"), fields.get("ideName")
    return FoundLock(
        path=path,
        port=int(stem) if _is_port(stem) else None,
        pid=pid,
        folders=_texts(fields.get("workspaceFolders")),
        name=name if isinstance(name, str) else "",
        transport=fields.get("transport"),
        modified=status.st_mtime,
        exposed=os.name == "posix" and bool(status.st_mode & 0o077) and "authToken" in fields,
        alive=is_alive(pid),
    )


def matching(locks: Iterable[FoundLock], here: Here) -> list[FoundLock]:
    """The locks that the CLI would choose from."""
    scanned = scanned_folders(here)
    return [lock for lock in locks if os.path.dirname(lock.path) in scanned and _matches(lock, here)]


def taken(matches: Sequence[FoundLock], here: Here) -> FoundLock | None:
    """The one that it would take without asking (rules 5 and 6)."""
    chosen = [lock for lock in matches if str(lock.port) == here.chosen_port]
    only = chosen if len(chosen) == 1 else matches
    return only[0] if len(only) == 1 else None


def diagnose(locks: Sequence[FoundLock], here: Here) -> list[Finding]:
    """Everything that can be said without talking to a server."""
    matches = matching(locks, here)
    return [
        *_choice(locks, matches, here),
        *(found for lock in locks for found in _refusal(lock, here, locks, matches)),
        *(found for lock in matches for found in _flaws(lock, here)),
        *_environment(here),
    ]


def _texts(entries: object) -> tuple[str, ...]:
    return (
        tuple(entry for entry in entries if isinstance(entry, str) and entry) if isinstance(entries, list) else ()
    )


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65536


def _matches(lock: FoundLock, here: Here) -> bool:
    if not lock.counts:
        return False
    if str(lock.port) == here.chosen_port:
        return True
    fits = _holds(lock.folders, here.folder) or _on(here.environment.get("CLAUDE_CODE_IDE_SKIP_VALID_CHECK"))
    return fits and not _shut_out(lock, here)


def _shut_out(lock: FoundLock, here: Here) -> bool:
    return bool(here.foreign_terminal) and lock.pid not in here.ancestors


def _holds(folders: Iterable[str], folder: str, *, composed: bool = True) -> bool:
    return any(_contains(entry, folder, composed=composed) for entry in folders)


def _contains(outer: str, inner: str, *, composed: bool = True) -> bool:
    """Whether `inner` is `outer` or below it, by their spelling alone (rule 3)."""
    outer = os.path.normpath(os.path.join(inner, outer))
    if composed:
        outer, inner = unicodedata.normalize("NFC", outer), unicodedata.normalize("NFC", inner)
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)


def _resolved(folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        with suppress(OSError, ValueError):
            yield os.path.realpath(folder)


def _choice(locks: Sequence[FoundLock], matches: Sequence[FoundLock], here: Here) -> Iterator[Finding]:
    choice, scanned = taken(matches, here), scanned_folders(here)
    start = f"Start one with: ide-bridge serve {shell_word(here.folder)}"
    if choice:
        yield Finding("match", "ok", choice.path, f"The CLI takes {choice.label} for {here.folder}.")
    elif matches:
        yield _several(matches, here)
    elif not any(_served(lock) and os.path.dirname(lock.path) in scanned for lock in locks):
        places = " or ".join(scanned)
        yield Finding("no-lock", "error", here.folder, f"No living server has a lock in {places}.", start)
    if here.chosen_port and here.chosen_port not in [str(lock.port) for lock in matches]:
        text = f"CLAUDE_CODE_SSE_PORT is {here.chosen_port}, and no living server has that port."
        level: Level = "warning" if choice else "error"
        yield Finding("sse-port", level, "CLAUDE_CODE_SSE_PORT", text, "Run: unset CLAUDE_CODE_SSE_PORT")


def _several(matches: Sequence[FoundLock], here: Here) -> Finding:
    labels = ", ".join(lock.label for lock in matches)
    text = f"{len(matches)} locks match {here.folder}, so the CLI takes none: {labels}."
    if len({lock.port for lock in matches}) == 1:
        fix = f"One server has two locks; delete one: rm {shell_word(matches[-1].path)}"
    else:
        fix = f"Choose one with /ide or: export CLAUDE_CODE_SSE_PORT={matches[0].port}; or end the others."
    return Finding("several", "error", here.folder, text, fix)


def _refusal(
    lock: FoundLock, here: Here, locks: Sequence[FoundLock], matches: Sequence[FoundLock]
) -> Iterator[Finding]:
    """Why the CLI does not take this lock: the first rule that fails."""
    level: Level = "note" if matches else "error"
    if lock.port is None:
        text = "The file's name is not a port, so the CLI cannot use this lock."
        yield Finding("lock-name", "warning", lock.path, text, f"Delete it: rm {shell_word(lock.path)}")
    elif lock.stale:
        wanted = lock in matches or (not matches and _holds(lock.folders, here.folder))
        yield _dead(lock, "error" if wanted else "warning")
    elif lock in matches:
        return
    elif not lock.counts or not lock.folders:
        yield _garbage(lock)
    elif os.path.dirname(lock.path) not in scanned_folders(here):
        yield from _unscanned(lock, here, locks, level)
    elif _holds(lock.folders, here.folder):
        yield _terminal(lock, here, level)
    else:
        yield _elsewhere(lock, here, level)


def _served(lock: FoundLock) -> bool:
    return lock.counts and not lock.stale and bool(lock.folders)


def _garbage(lock: FoundLock) -> Finding:
    text = f"The lock cannot be understood, or names no {'folder' if lock.counts else 'living process'}."
    fix = f"If its server is gone, delete it: rm {shell_word(lock.path)}"
    return Finding("garbage", "warning", lock.path, text, fix)


def _dead(lock: FoundLock, level: Level) -> Finding:
    if lock.alive:
        text = f"Another process has pid {lock.pid} by now, and nothing listens on port {lock.port}."
    elif lock.listening:
        text = f"Process {lock.pid} is gone though port {lock.port} answers; the CLI deletes the lock."
    else:
        text = f"Process {lock.pid} is gone; its lock was left behind."
    fix = "Run: ide-bridge doctor --fix"
    if lock.listening:
        fix += "; and let the server write the pid of a process that lives as long as the port."
    return Finding("dead-pid", level, lock.path, text, fix)


def _unscanned(lock: FoundLock, here: Here, locks: Sequence[FoundLock], level: Level) -> Iterator[Finding]:
    scanned = scanned_folders(here)
    seen = any(other.port == lock.port and os.path.dirname(other.path) in scanned for other in locks)
    if seen or not _holds(lock.folders, here.folder):
        return
    text = f"{lock.label} serves this folder, but the CLI does not look in {os.path.dirname(lock.path)}."
    fix = "Start server and CLI with the same CLAUDE_CONFIG_DIR, or without one."
    yield Finding("config-folder", level, lock.path, text, fix)


def _terminal(lock: FoundLock, here: Here, level: Level) -> Finding:
    text = (
        f"{lock.label} serves this folder, but {here.foreign_terminal} says that this is another editor's "
        "terminal, where the CLI takes only that editor's own server."
    )
    return Finding("foreign-terminal", level, lock.path, text, f"Run: export CLAUDE_CODE_SSE_PORT={lock.port}")


def _elsewhere(lock: FoundLock, here: Here, level: Level) -> Finding:
    serves = ", ".join(lock.folders) or "no folder"
    if _holds(_resolved(lock.folders), here.folder):
        text = f"{lock.label} names {serves}, a link; the CLI compares with the real folder {here.folder}."
        return Finding(
            "symlink", level, lock.path, text, f"Start the server in the real folder {shell_word(here.folder)}"
        )
    if any(_contains(here.folder, os.path.join(here.folder, folder)) for folder in lock.folders):
        text = f"{lock.label} serves {serves}, below {here.folder}: the CLI offers it in /ide only."
        return Finding(
            "folder", level, lock.path, text, f"Run: cd {shell_word(lock.folders[0])}, or choose it with /ide"
        )
    text = f"{lock.label} serves {serves}, not {here.folder}."
    fix = f"Start the CLI there, or a server here: ide-bridge serve {shell_word(here.folder)}"
    return Finding("folder", level, lock.path, text, fix)


def _flaws(lock: FoundLock, here: Here) -> Iterator[Finding]:
    """What is wrong with a lock that matches."""
    if lock.transport != "ws":
        text = f'{lock.label} does not say "transport": "ws", so the CLI asks for /sse and not for a socket.'
        fix = f'Let the server write "transport": "ws" into {lock.path}; restarting or updating it may do.'
        yield Finding("transport", "error", lock.path, text, fix)
    if _holds(lock.folders, here.folder) and not _holds(lock.folders, here.folder, composed=False):
        text = "The lock spells the folder in another Unicode form; older CLIs do not find it."
        fix = f"Start the server in the folder as it is spelled on disk: {shell_word(here.folder)}"
        yield Finding("unicode", "warning", lock.path, text, fix)
    if os.path.dirname(lock.path) != scanned_folders(here)[0]:
        text = "The lock is not in CLAUDE_CONFIG_DIR; new CLIs look in ~/.claude too, older ones do not."
        fix = "Start the server with the CLI's CLAUDE_CONFIG_DIR."
        yield Finding("config-folder", "warning", lock.path, text, fix)
    if lock.exposed:
        text = "Other users of this machine may read the token in this lock."
        yield Finding("permissions", "warning", lock.path, text, f"Run: chmod 600 {shell_word(lock.path)}")


def _environment(here: Here) -> Iterator[Finding]:
    """What the environment does to every lock."""
    setting = here.environment.get("CLAUDE_CODE_AUTO_CONNECT_IDE", "").strip().lower()
    if setting in _OFF:
        text = f"CLAUDE_CODE_AUTO_CONNECT_IDE={setting} forbids connecting, even with --ide."
        fix = "Run: unset CLAUDE_CODE_AUTO_CONNECT_IDE"
        yield Finding("skip-auto-connect", "error", "CLAUDE_CODE_AUTO_CONNECT_IDE", text, fix)
    elif not (setting or here.auto_connect or here.chosen_port):
        text = "Nothing tells the CLI to connect by itself."
        yield Finding("auto-connect", "note", here.folder, text, "Start it with: claude --ide, or use /ide")
    host = here.environment.get("CLAUDE_CODE_IDE_HOST_OVERRIDE", "")
    if host not in ("", "127.0.0.1", "localhost"):
        text = f"The CLI connects to {host} and not to this machine's 127.0.0.1."
        fix = "Run: unset CLAUDE_CODE_IDE_HOST_OVERRIDE"
        yield Finding("host-override", "warning", "CLAUDE_CODE_IDE_HOST_OVERRIDE", text, fix)
    yield from _proxy(here.environment)


def _proxy(environment: Mapping[str, str]) -> Iterator[Finding]:
    wanted = ("http_proxy", "https_proxy", "all_proxy")
    names = [name for name, value in sorted(environment.items()) if value and name.lower() in wanted]
    exempt = "no_proxy" if environment.get("no_proxy") else "NO_PROXY"
    if names and not {"*", "127.0.0.1"} & set(environment.get(exempt, "").replace(",", " ").split()):
        text = f"{names[0]} is set and {exempt} leaves out 127.0.0.1: the CLI may ask the proxy for the port."
        fix = f'Run: export {exempt}="127.0.0.1,localhost${{{exempt}:+,${exempt}}}"'
        yield Finding("proxy", "warning", names[0], text, fix)


def _on(setting: str | None) -> bool:
    return bool(setting) and str(setting).strip().lower() not in _OFF
