"""Repository: what git knows about a folder, mostly read without starting git.

It finds the work tree, the rule files outside of it, and the tracked files (the one thing git is asked for).
It does not know the workspace, and never changes anything. Somebody else may have written what lies in the git
folder, so git runs in a way in which no setting there can make it start a program (see `_git`).
"""

import errno
import logging
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ide_bridge.workspace.ignore import NO_RULES, Rules

__all__ = ["Repository", "Standing", "find", "git_folder", "is_exhaustion", "read_rules"]

logger = logging.getLogger(__name__)

_TIME_LIMIT = 30.0
_LOOK = 0.1
_RULES_LIMIT = 4 * 1024 * 1024
_CHUNK = 64 * 1024
_TELLING = re.compile(rb"excludesfile|include|ignorecase", re.IGNORECASE)
_REDIRECTING = {
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_CONFIG"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
}
_EXHAUSTION = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}

# A missing object is fetched from a remote that the repository names, by a program that it names. The first
# forbids the fetch, the second, for a git that does not know the first, every way to reach a remote.
_HARMLESS = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_OPTIONS = (
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "core.fsmonitor="),  # empty, because an older git takes "false" for the name of a program
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "safe.bareRepository=explicit"),  # else a folder of the work tree could pass for a repository
)


class _Settings(NamedTuple):
    excludes_file: str | None
    ignore_case: bool


class Standing(NamedTuple):
    """How a folder stands before its own rule file is read: the rules from outside, and if they hide it."""

    rules: Rules = NO_RULES
    ignore_case: bool = False
    hidden: bool = False


class Repository(NamedTuple):
    """A work tree: its top folder, its own git folder, and the one it shares with linked work trees."""

    top: str
    git_dir: str
    common_dir: str

    def standing(self, place: str, stopped: Callable[[], bool] = bool) -> "Standing":
        """Look at the folder `place` of the work tree from outside: every rule but those inside it."""
        settings = self._settings(stopped)
        case = settings.ignore_case
        rules = NO_RULES
        for path in (settings.excludes_file, os.path.join(self.common_dir, "info", "exclude")):
            rules = rules.with_file(read_rules(path) if path else b"", "", ignore_case=case)
        for parent, child in _steps(place):
            content = read_rules(os.path.join(self.top, parent, ".gitignore"), follow=False)
            rules = rules.with_file(content, parent, ignore_case=case)
            if rules.hidden(parent, [child]):
                return Standing(rules, ignore_case=case, hidden=True)
        return Standing(rules, ignore_case=case)

    def sources(self, place: str, stopped: Callable[[], bool] = bool) -> list[str]:
        """Name the files outside `place` whose change may change how it stands."""
        inside = [*self._config_files(), os.path.join(self.common_dir, "info", "exclude")]
        above = [os.path.join(self.top, parent, ".gitignore") for parent, _ in _steps(place)]
        excludes_file = self._settings(stopped).excludes_file
        return [*inside, *above, *([excludes_file] if excludes_file else [])]

    def tracked(self, folder: str, stopped: Callable[[], bool] = bool) -> set[str]:
        """Ask git for the tracked files below `folder`, relative to it; none when git cannot say."""
        below = os.path.relpath(folder, self.top)
        # From the top, because a folder below could pass for a repository of its own.
        output = _git(self.top, "ls-files", "-z", "--cached", "--", below, stopped=stopped) or b""
        paths = set(os.fsdecode(output).split("\0"))
        paths.discard("")
        return paths if below == "." else {path[len(below) + 1 :] for path in paths}

    def holds(self, info: os.stat_result) -> bool:
        """Whether a file in the git folder is the one described, by whatever name it may have elsewhere."""
        return any(_holds(folder, info) for folder in {self.git_dir, self.common_dir})

    def _settings(self, stopped: Callable[[], bool]) -> _Settings:
        if not any(_TELLING.search(read_rules(path)) for path in self._config_files()) and not _env_config():
            return _Settings(_default_excludes(), ignore_case=False)
        wanted = r"^core\.(excludesfile|ignorecase)$"
        output = _git(self.top, "config", "-z", "--get-regexp", wanted, stopped=stopped) or b""
        found = dict(item.partition("\n")[::2] for item in os.fsdecode(output).split("\0") if item)
        named = found.get("core.excludesfile")
        excludes = os.path.join(self.top, os.path.expanduser(named)) if named else None
        case = found.get("core.ignorecase", "false").lower() in ("true", "yes", "on", "1", "")
        return _Settings(_default_excludes() if named is None else excludes, ignore_case=case)

    def _config_files(self) -> Iterator[str]:
        yield os.path.join(self.common_dir, "config")
        yield os.path.join(self.git_dir, "config.worktree")
        yield os.environ.get("GIT_CONFIG_GLOBAL") or os.path.expanduser("~/.gitconfig")
        yield os.path.join(_user_config(), "git", "config")
        yield os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"


def find(folder: str) -> Repository | None:
    """Find the work tree that `folder` belongs to."""
    top = folder
    while True:
        git_dir = git_folder(os.path.join(top, ".git"))
        if git_dir is not None:
            return Repository(top, git_dir, _common(git_dir))
        parent = os.path.dirname(top)
        if parent == top:
            return None
        top = parent


def git_folder(dot_git: str) -> str | None:
    """Return the git folder that a ``.git`` entry is or points to; None when it only bears the name."""
    git_dir = dot_git
    if not os.path.isdir(dot_git):
        content = os.fsdecode(read_rules(dot_git))
        if not content.startswith("gitdir: "):
            return None
        git_dir = os.path.join(os.path.dirname(dot_git), content.removeprefix("gitdir: ").rstrip("\r\n"))
    common = _common(git_dir)
    if not os.path.lexists(os.path.join(git_dir, "HEAD")):
        return None
    return git_dir if all(os.path.isdir(os.path.join(common, part)) for part in ("objects", "refs")) else None


def read_rules(path: str, *, follow: bool = True) -> bytes:
    """Read a rule file; one that is missing, unreadable, no file, or huge has no rules."""
    # Not blocking, because opening a pipe that bears the name would wait for its writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    try:
        descriptor = os.open(path, flags)
        try:
            return _read(descriptor)
        finally:
            os.close(descriptor)
    except ValueError:
        return b""
    except OSError as error:
        if is_exhaustion(error):
            raise
        return b""


def is_exhaustion(error: OSError) -> bool:
    """Whether the system, and not what was asked for, is the reason: then nothing follows from the error."""
    return error.errno in _EXHAUSTION


def _read(descriptor: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while size < _RULES_LIMIT and (chunk := os.read(descriptor, _CHUNK)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _steps(place: str) -> list[tuple[str, str]]:
    """List the way down to `place`: ``a/b/`` gives ``("", "a/")`` and ``("a/", "b/")``."""
    parts = [f"{part}/" for part in place.split("/")[:-1]]
    return [("".join(parts[:at]), part) for at, part in enumerate(parts)]


def _common(git_dir: str) -> str:
    named = os.fsdecode(read_rules(os.path.join(git_dir, "commondir"))).rstrip("\r\n")
    return os.path.normpath(os.path.join(git_dir, named)) if named else git_dir


def _user_config() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def _default_excludes() -> str:
    return os.path.join(_user_config(), "git", "ignore")


def _env_config() -> bool:
    return "GIT_CONFIG_COUNT" in os.environ or "GIT_CONFIG_PARAMETERS" in os.environ


def _holds(folder: str, info: os.stat_result) -> bool:
    """Look through a folder; what cannot be listed cannot be ruled out."""
    stack = [folder]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.inode() == info.st_ino and os.path.samestat(entry.stat(follow_symlinks=False), info):
                    return True
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
    return False


def _program() -> str | None:
    """Find git, never in a folder that is named relative to where it will run."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which("git", path=os.pathsep.join(filter(os.path.isabs, folders)))


def _git(folder: str, *arguments: str, stopped: Callable[[], bool] = bool) -> bytes | None:
    """Run git where a hostile repository may lie; None when it fails, takes too long, or is `stopped`."""
    program = _program()
    if program is None:
        logger.info("git cannot be asked in %s: there is none", folder)
        return None
    environment = {name: value for name, value in os.environ.items() if name not in _REDIRECTING} | _HARMLESS
    try:
        process = subprocess.Popen(
            [program, *_OPTIONS, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        if is_exhaustion(error):
            raise
        logger.info("git cannot be asked in %s: %s", folder, error)
        return None
    with process:
        return _output(process, stopped)


def _output(process: "subprocess.Popen[bytes]", stopped: Callable[[], bool]) -> bytes | None:
    deadline = time.monotonic() + _TIME_LIMIT
    while not stopped() and time.monotonic() < deadline:
        try:
            output, _ = process.communicate(timeout=_LOOK)
        except subprocess.TimeoutExpired:
            continue
        return output if process.returncode == 0 else None
    process.kill()
    return None
