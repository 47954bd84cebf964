"""A client: one connected CLI, and what is known of it.

It does not know how it is connected, or what it may ask.
"""

import itertools
from collections.abc import Callable

from ide_bridge.tools.registry import Context

__all__ = ["Client", "Clients"]

Happening = Callable[[str, str], None] | None
"""Told in human words what happens: who, and what; None when nobody listens."""


class Client:
    """One conversation with a CLI. Its name, version and pid come with its first messages."""

    def __init__(self, number: int, context: Context, happening: Happening) -> None:
        self.number = number
        self.context = context
        self.name = ""
        self.version = ""
        self.pid: int | None = None
        self.ready = False
        self._happening = happening

    @property
    def title(self) -> str:
        """What a person calls it."""
        return f"{self.name or 'a client'} {self.version}".strip()

    @property
    def is_watched(self) -> bool:
        """Whether somebody wants to know what it does."""
        return self._happening is not None

    def says(self, what: str) -> None:
        """Tell the user what this client does."""
        if self._happening is not None:
            self._happening(self.title, what)

    def described(self) -> dict[str, object]:
        """What ``status`` shows of it."""
        return {"name": self.name, "version": self.version, "pid": self.pid}


class Clients:
    """Everyone who is connected."""

    def __init__(self, context: Context, happening: Happening, changed: Callable[[], None]) -> None:
        self._context = context
        self._happening = happening
        self._changed = changed
        self._numbers = itertools.count(1)
        self._members: dict[int, Client] = {}

    def __len__(self) -> int:
        return len(self._members)

    def join(self) -> Client:
        """Someone connects."""
        client = Client(next(self._numbers), self._context.for_another(), self._happening)
        self._members[client.number] = client
        self._changed()
        return client

    def leave(self, client: Client) -> None:
        """Someone is gone."""
        if self._members.pop(client.number, None) is not None:
            client.says("disconnected")
            self._changed()

    def described(self) -> list[dict[str, object]]:
        """What ``status`` shows: those who have introduced themselves."""
        return [client.described() for client in self._members.values() if client.name]
