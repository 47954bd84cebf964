"""The way to one CLI, whatever it is made of.

It does not know what is said over it.
"""

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

__all__ = ["Channel", "Returned"]


class Returned(msgspec.Struct, frozen=True):
    """The CLI was gone and has come back: what was sent last may not have arrived."""


class Channel(Protocol):
    """Pipes, or a socket that the CLI may come back to."""

    @property
    def missed(self) -> bool:
        """Whether the CLI has said something that never came, and will not come again."""

    def __aiter__(self) -> AsyncIterator[bytes | Returned]:
        """What the CLI says, cut anywhere, until it is gone for good."""

    async def send(self, data: bytes) -> None:
        """Send whole lines; wait while the CLI cannot keep up. Raises ``Disconnected`` when it is gone."""

    async def close(self) -> None:
        """Say that no more will come; safe to call twice."""
