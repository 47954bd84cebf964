"""How a session is to begin: what a front end may say about it.

It does not know how any of it is done.
"""

from typing import Literal

import msgspec

__all__ = ["Over", "Start"]

Over = Literal["pipes", "sdk-url"]
"""How we talk to the CLI: over its streams, or over a socket that it opens itself."""


class Start(msgspec.Struct, rename="camel"):
    """A session to begin, or with ``resume`` to continue, or with ``fork`` to copy."""

    folder: str | None = None
    prompt: str | None = None
    model: str | None = None
    mode: str | None = None
    resume: str | None = None
    fork: bool = False
    at: str | None = None
    over: Over | None = None
    title: str = ""
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] | None = None
    command: tuple[str, ...] = ()
