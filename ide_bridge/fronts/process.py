"""Processes of clients: where they work.

It does not know what a client is.
"""

import os
import sys

__all__ = ["working_folder"]


def working_folder(pid: int) -> str | None:
    """The folder a process works in; None when it is gone or the system does not tell."""
    if sys.platform == "linux":
        try:
            folder = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return None
        return folder if os.path.isdir(folder) else None  # one that was removed has its name changed
    import psutil  # noqa: PLC0415 - 20 ms, and Linux needs none of it

    try:
        return str(psutil.Process(pid).cwd())
    except (psutil.Error, OSError, ValueError):
        return None
