"""An empty home for a bridge inside the test process: nothing of this machine's user is read or written.

It does not know the bridge. Processes get the same through ``Home.environment``.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.claude_cli import Home

__all__ = ["at_home"]

ELSEWHERE = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR")


@contextmanager
def at_home() -> Iterator[Home]:
    """This process lives in a home that is thrown away when the block ends."""
    before = dict(os.environ)
    with Home() as home:
        for name in ELSEWHERE:
            os.environ.pop(name, None)
        os.environ.update(home.environment)
        try:
            yield home
        finally:
            os.environ.clear()
            os.environ.update(before)
