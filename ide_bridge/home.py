"""Where the bridge keeps its own things: state, sockets, settings.

``platformdirs`` knows the rules of every system. Its import takes as long as the rest of the start together,
so the rule of Linux, two lines, stands here as well; a test holds the two equal.

It does not know what is kept. Of Claude Code it knows only which folder is its own.
"""

import errno
import os
import stat
import sys

from ide_bridge.errors import SetupProblem

__all__ = [
    "claude_folder",
    "config_folder",
    "open_regular",
    "private_folder",
    "socket_folder",
    "state_folder",
    "unusable",
    "workspace_folder",
]

_APP = "ide-bridge"
_NAME_LIMIT = 200
_SOCKET_PATH_LIMIT = 100
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def state_folder() -> str:
    """The folder for what survives a restart."""
    if sys.platform != "linux":
        from platformdirs import user_state_dir  # noqa: PLC0415 - slow to import, see above

        return user_state_dir(_APP, appauthor=False)
    return _xdg("XDG_STATE_HOME", ".local/state")


def config_folder() -> str:
    """The folder of the user's own settings."""
    if sys.platform != "linux":
        from platformdirs import user_config_dir  # noqa: PLC0415 - slow to import, see above

        return user_config_dir(_APP, appauthor=False)
    return _xdg("XDG_CONFIG_HOME", ".config")


def claude_folder() -> str:
    """The folder in which Claude Code keeps its things: locks, settings, transcripts."""
    return os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")


def workspace_folder(folder: str) -> str:
    """The state folder of one workspace, named after its first folder so that a person knows which."""
    name = folder.replace("%", "%25").replace("/", "%2F").replace("\\", "%5C").replace(":", "%3A")
    if len(os.fsencode(name)) > _NAME_LIMIT:
        import hashlib  # noqa: PLC0415 - slow to import, and few paths are that long

        name = hashlib.sha256(os.fsencode(folder)).hexdigest()
    return os.path.join(state_folder(), "workspaces", name)


def socket_folder() -> str:
    """A private folder whose path is short enough for a socket in it."""
    folder = os.path.join(state_folder(), "sockets")
    if len(os.fsencode(folder)) > _SOCKET_PATH_LIMIT - 12:
        import tempfile  # noqa: PLC0415 - slow to import, and few homes are that deep

        folder = os.path.join(tempfile.gettempdir(), f"{_APP}-{os.getuid()}")
    return private_folder(folder)


def private_folder(folder: str) -> str:
    """Make a folder that only we can enter, or refuse one that others could change.

    Our own state is ours alone from its top down, also where an older version let others look.
    """
    top = state_folder()
    if folder == top or folder.startswith(f"{top}{os.sep}"):
        below = folder[len(top) :].split(os.sep)[1:]
        for depth in range(len(below) + 1):
            _close(_made(os.path.join(top, *below[:depth])))
        return folder
    return _made(folder)


def _close(folder: str) -> None:
    try:
        if os.name == "posix" and os.stat(folder).st_mode & 0o077:
            os.chmod(folder, 0o700)
    except OSError as error:
        raise unusable(folder, error) from None


def _made(folder: str) -> str:
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.stat(folder)
    except OSError as error:
        remedy = _remedy(error, "set HOME, or what else names it, to a folder you may write in")
        raise SetupProblem(f"The folder {folder} cannot be made: {error.strerror}; {remedy}.") from None
    if os.name == "posix":
        if found.st_uid != os.getuid():
            raise SetupProblem(f"{folder} belongs to another user; remove it or choose another place.")
        if found.st_mode & 0o022:
            raise SetupProblem(f"Others may write in {folder}; run: chmod go-w '{folder}'")
    return folder


def open_regular(path: str, flags: int, *, follow: bool = False) -> int:
    """Open a file, private if it is new, and nothing but a file: a pipe would keep us waiting for ever."""
    descriptor = os.open(path, flags | _WITHOUT_WAITING | (0 if follow else _NO_LINK), 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no regular file", path)


def unusable(path: str, error: OSError) -> SetupProblem:
    """Tell the user which file of ours the system does not let us use, and what to do about it."""
    elsewhere = " or set HOME to another place" if error.errno == errno.ENOTDIR else " or correct its permissions"
    remedy = _remedy(error, f"move it away{elsewhere}")
    return SetupProblem(f"{path} cannot be used: {error.strerror}; {remedy}.")


def _remedy(error: OSError, otherwise: str) -> str:
    return "make room on the disk" if error.errno in _NO_ROOM else otherwise


def _xdg(variable: str, default: str) -> str:
    base = os.environ.get(variable, "")
    if not base.strip() or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), default)
    return os.path.join(base, _APP)
