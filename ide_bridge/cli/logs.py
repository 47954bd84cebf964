"""Logs: what a running bridge tells its user, and what it keeps for whoever has to find a fault.

Warnings are sentences for the user, on stderr. Faults go with their traceback to a private file beside the
bridge's state; the user sees only the number of the incident.

It does not know who writes to the log.
"""

import logging
import os
import sys

__all__ = ["LOG_NAME", "keep_logs"]

LOG_NAME = "faults.log"
_SIZE_LIMIT = 1024 * 1024


def keep_logs(folder: str) -> None:
    """Send warnings to stderr and faults to a file in `folder`; libraries keep silent."""
    logging.basicConfig(level=logging.CRITICAL)
    warnings = logging.StreamHandler(sys.stderr)
    warnings.addFilter(lambda record: record.levelno == logging.WARNING)
    warnings.setFormatter(logging.Formatter("ide-bridge: %(message)s"))
    ours = logging.getLogger("ide_bridge")
    ours.setLevel(logging.WARNING)
    ours.propagate = False
    ours.handlers = [warnings, _faults(os.path.join(folder, LOG_NAME))]


def _faults(path: str) -> logging.Handler:
    handler = logging.FileHandler(path, "w" if _is_large(path) else "a", encoding="utf-8", delay=True)
    handler.setLevel(logging.ERROR)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    return handler


def _is_large(path: str) -> bool:
    try:
        return os.path.getsize(path) > _SIZE_LIMIT
    except OSError:
        return False
