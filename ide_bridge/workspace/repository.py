"""Repository: what git knows about a folder, mostly read without starting git.

It finds the work tree, the rule files outside of it, and the tracked files (the one thing git is asked for).
It does not know the workspace, and never changes anything: git runs without optional locks, without the
file-system monitor a hostile repository might name, and without the caller's ``GIT_DIR``.
"""

import contextlib
import logging
import os
import re
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from ide_bridge.workspace.ignore import NO_RULES, Rules

__all__ = ["Repository", "Standing", "find", "git_folder", "read_rules"]

logger = logging.getLogger(__name__)

_TIME_LIMIT = 60
_RULES_LIMIT = 4 * 1024 * 1024
_TELLING = re.compile(rb"excludesfile|include|ignorecase", re.IGNORECASE)
_REDIRECTING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE")


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

    def standing(self, place: str) -> "Standing":
        """Look at the folder `place` of the work tree from outside: every rule but those inside it."""
        settings = self._settings()
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

    def sources(self, place: str) -> list[str]:
        """Name the files outside `place` whose change may change how it stands."""
        inside = [*self._config_files(), os.path.join(self.common_dir, "info", "exclude")]
        above = [os.path.join(self.top, parent, ".gitignore") for parent, _ in _steps(place)]
        excludes_file = self._settings().excludes_file
        return [*inside, *above, *([excludes_file] if excludes_file else [])]

    def tracked(self, folder: str) -> set[str]:
        """Ask git for the tracked files below `folder`, relative to it; none when git cannot say."""
        output = _git(folder, "ls-files", "-z", "--cached")
        return set(os.fsdecode(output or b"").split("\0")) - {""}

    def _settings(self) -> _Settings:
        if not any(_TELLING.search(read_rules(path)) for path in self._config_files()) and not _env_config():
            return _Settings(_default_excludes(), ignore_case=False)
        output = _git(self.top, "config", "-z", "--get-regexp", r"^core\.(excludesfile|ignorecase)$") or b""
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
    with contextlib.suppress(OSError, ValueError):
        # Not blocking, because opening a pipe that bears the name would wait for its writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
        with open(os.open(path, flags), "rb") as file:
            return file.read(_RULES_LIMIT)
    return b""


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


def _git(folder: str, *arguments: str) -> bytes | None:
    environment = {name: value for name, value in os.environ.items() if name not in _REDIRECTING}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIME_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.info("git cannot be asked in %s: %s", folder, error)
        return None
    return done.stdout if done.returncode == 0 else None
