"""A client: one connected CLI, what is known of it, and which of several is meant.

It does not know how it is connected, or what it may ask.
"""

import itertools
import os
import time
from collections.abc import Callable
from typing import Protocol

from ide_bridge.errors import InvalidParams
from ide_bridge.tools.registry import Context

__all__ = ["COMMAND", "Client", "Clients"]

Happening = Callable[[str, str], None] | None
"""Told in human words what happens: who, and what; None when nobody listens."""

COMMAND = "ide-bridge call"
"""What this user's own commands are called."""

_WHO_LIMIT = 40
_WHAT_LIMIT = 100


class Notify(Protocol):
    """Sends a notification; a later one with the same key replaces one that still waits."""

    def __call__(self, method: str, params: object = None, *, key: str | None = None) -> None:
        """Send it."""


def _nobody(method: str, params: object = None, *, key: str | None = None) -> None:
    """There is no way to tell this client anything."""


def _nothing() -> None:
    """Nobody wants to know."""


class Client:
    """One conversation with a CLI. Its name, version and pid come with its first messages.

    `changed` is called when one of them comes, `used` when it has something done.
    """

    def __init__(self, number: int, context: Context, happening: Happening) -> None:
        self.number = number
        self.context = context
        self.name = ""
        self.version = ""
        self.pid: int | None = None
        self.folder: str | None = None
        self.ready = False
        self.knows_tools = False
        self.listens = False
        self.active = time.monotonic()
        self.notify: Notify = _nobody
        self.changed: Callable[[], None] = _nothing
        self.used: Callable[[], None] = _nothing
        self._happening = happening

    @property
    def title(self) -> str:
        """What a person calls it."""
        return f"{self.name or 'a client'} {self.version}".strip()

    @property
    def is_watched(self) -> bool:
        """Whether somebody wants to know what it does."""
        return self._happening is not None

    @property
    def label(self) -> str:
        """What the audit log calls it."""
        return f"{self.name or 'a client'} {self.number}"

    def introduce(self, name: str, version: str, title: str) -> None:
        """It says who it is; its first word counts, or it could pass for another later."""
        if not self.name:
            self.name, self.version = name, version
            self.context.client_name = title or name
            self.says("connected")
            self.changed()

    def acts(self) -> None:
        """It has something done."""
        self.active = time.monotonic()
        self.used()

    def says(self, what: str, outcome: str = "") -> None:
        """Tell the user what this client does, and what came of it if that is not as it should be."""
        if self._happening is not None:
            ending = f" – {outcome}" if outcome else ""
            self._happening(_shortened(self.title, _WHO_LIMIT), _shortened(what, _WHAT_LIMIT) + ending)

    def described(self) -> dict[str, object]:
        """What ``status`` shows of it."""
        return {
            "client": self.number,
            "name": self.name,
            "version": self.version,
            "pid": self.pid,
            "folder": self.folder,
        }


class Clients:
    """Everyone who is connected."""

    def __init__(self, context: Context, happening: Happening, changed: Callable[[], None]) -> None:
        self._context = context
        self._happening = happening
        self._changed = changed
        self._numbers = itertools.count(1)
        self._chosen: int | None = None
        self._members: dict[int, Client] = {}

    def __len__(self) -> int:
        return len(self._members)

    def join(self) -> Client:
        """Someone connects."""
        client = Client(next(self._numbers), self._context, self._happening)
        client.context = self._context.for_another(client.number)
        client.changed = self._changed
        self._members[client.number] = client
        self._changed()
        return client

    def leave(self, client: Client) -> None:
        """Someone is gone."""
        if self._members.pop(client.number, None) is not None:
            client.says("disconnected")
            self._changed()

    def ready(self) -> list[Client]:
        """Those who can be told something."""
        return [client for client in self._members.values() if client.ready]

    def choose(self, number: int | None) -> None:
        """The user wants his mentions to go to this client from now on; None: to whichever fits."""
        if number is not None and number not in self._members:
            raise InvalidParams(f"There is no client {number}; status shows those that are connected.")
        self._chosen = number

    def for_file(self, path: str) -> Client | None:
        """The client to which a file is handed: the chosen one, else the best fitting that was active last."""
        ready = self.ready()
        chosen = next((client for client in ready if client.number == self._chosen), None)
        return chosen or max(ready, key=lambda client: (_fit(client, path), client.active), default=None)

    def described(self) -> list[dict[str, object]]:
        """What ``status`` shows: those who have introduced themselves."""
        return [client.described() for client in self._members.values() if client.name]


def _fit(client: Client, path: str) -> int:
    """How much of the way to a file the client's folder is; -1 when the file lies elsewhere."""
    if client.folder is None or not path.startswith(client.folder.rstrip(os.sep) + os.sep):
        return -1
    return len(client.folder)


def _shortened(text: str, limit: int) -> str:
    """Leave out the middle of what is too long: names differ at their ends."""
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
