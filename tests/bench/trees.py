"""Trees of files as projects have them: nested, partly tracked by git, partly ignored.

It does not know who lists them.
"""

import subprocess
from pathlib import Path

import msgspec

__all__ = ["Tree", "git_paths", "grow"]

IGNORED = "node_modules/\n*.log\n/build/\n"
FOLDERS_PER_PARENT = 25
TRACKED_PACKAGES = 5
TIMEOUT = 60


class Tree(msgspec.Struct, frozen=True):
    """A work tree, and how many folders of it are not ignored."""

    path: Path
    folders: int


def grow(path: Path, *, folders: int, files: int) -> Tree:
    """Make a git work tree of that many folders and files, plus a tenth as many that are ignored."""
    path.mkdir()
    (path / ".gitignore").write_text(IGNORED, encoding="utf-8")
    leaves = [path / f"package{n // FOLDERS_PER_PARENT}" / f"part{n}" for n in range(folders)]
    for leaf in leaves:
        leaf.mkdir(parents=True)
    for n in range(files - 1):
        (leaves[n % folders] / f"module{n}{'.py' if n % 3 else '.txt'}").touch()
    _ignore_some(path, leaves, files // 10)
    _git(path, "init", "--quiet")
    _git(path, "add", *(f"package{n}" for n in range(TRACKED_PACKAGES)))
    return Tree(path, folders)


def git_paths(path: Path) -> list[str]:
    """Every path git would take: the list that ours has to equal."""
    listed = _git(path, "ls-files", "-co", "--exclude-standard", "-z")
    return sorted(listed.decode().split("\0")[:-1])


def _ignore_some(path: Path, leaves: list[Path], files: int) -> None:
    dependencies = path / "node_modules" / "dependency"
    dependencies.mkdir(parents=True)
    for n in range(files):
        name = dependencies / f"index{n}.js" if n % 2 else leaves[n % len(leaves)] / f"trace{n}.log"
        name.touch()


def _git(path: Path, *arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(path), *arguments], check=True, capture_output=True, timeout=TIMEOUT
    ).stdout
