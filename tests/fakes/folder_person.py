"""The person at a plain folder: whatever he works with, all that is seen of it is files that change.

It does not know what is checked.
"""

import os
from pathlib import Path
from typing import Any

from ide_bridge.conform.people import Acting
from ide_bridge.conform.person import Cannot

__all__ = ["FolderPerson"]


class FolderPerson(Acting):
    """Opens a file by changing when it was changed; can do nothing else that a folder would notice."""

    async def open(self, path: str) -> None:
        os.utime(path)

    async def text(self, path: str) -> str:
        return Path(path).read_bytes().decode()

    async def _act(self, deed: str, **_given: object) -> Any:
        raise Cannot(f"nobody can {deed.replace('_', ' ')} in a plain folder")
