"""The host: the bridge's end of one link, for examining who is at the other end.

It answers what a bridge answers, and sees the plug-in as an `Editor`, exactly as the bridge does. Where a bridge
would make do with what it last knew, the host says what went wrong.

It does not know how the plug-in was started.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec import Raw

from ide_bridge.conform.ear import Ear
from ide_bridge.conform.record import EVENT_SECONDS
from ide_bridge.conform.shapes import ANSWERS, misfit
from ide_bridge.conform.verdict import Nonconforming, Refused
from ide_bridge.editor.link import (
    LINK_VERSION,
    DecidedParams,
    Hello,
    LinkEditor,
    MentionedParams,
    PathParams,
    PathsParams,
    SelectionParams,
)
from ide_bridge.errors import Disconnected, RemoteError
from ide_bridge.settings import Policy
from ide_bridge.wire.connection import Connection
from ide_bridge.wire.dispatch import Dispatcher, Method, NoParams

__all__ = ["Host"]

POLL_SECONDS = 0.01


class _Share(msgspec.Struct):
    policy: Policy = "full"


class Host:
    """One conversation with a plug-in; a strict `Line` for its `LinkEditor` and for the checks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ear = Ear(reader, writer)
        self.connection: Connection[Host] = Connection(self._ear, Dispatcher(_methods()), self)
        self._running = asyncio.create_task(self.connection.run())
        self._offences: list[str] = []
        self.editor: LinkEditor | None = None
        self._running.add_done_callback(self._left)

    @property
    def complaints(self) -> list[str]:
        """What the plug-in sent that is not the link protocol, in words."""
        return self._ear.complaints

    @property
    def gone(self) -> bool:
        """Whether the plug-in has left."""
        return self._running.done()

    async def attached(self, seconds: float) -> LinkEditor:
        """Wait for the plug-in to introduce itself."""
        deadline = time.monotonic() + seconds
        while self.editor is None:
            if self.gone or time.monotonic() > deadline:
                raise Nonconforming(self._silence(seconds))
            await asyncio.sleep(POLL_SECONDS)
        self._offences = list(self.complaints)
        return self.editor

    async def close(self) -> None:
        """Hang up."""
        self._running.cancel()
        with suppress(asyncio.CancelledError):
            await self._running

    # -- the line ------------------------------------------------------------------------------------------

    async def request(self, method: str, params: object, *, timeout: float) -> Raw:  # noqa: ASYNC109 - the deadline
        """Ask, with patience; an answer that is missing, an error or out of shape is nonconforming."""
        patience = max(timeout, EVENT_SECONDS)
        try:
            answer = await self.connection.request(method, params, timeout=patience)
        except TimeoutError:
            raise Nonconforming(f"Expected an answer to {method}; none came within {patience:g} s.") from None
        except RemoteError as error:
            raise Refused(f"Expected an answer to {method}; the error {error.remote_code} came: {error}") from None
        except Disconnected:
            raise Nonconforming(f"Expected an answer to {method}; the other end was gone.") from None
        if wrong := misfit(ANSWERS, method, answer):
            raise Nonconforming(
                f"Expected an answer to {method} as the link has it; what came does not fit: {wrong}."
            )
        return answer

    def notify(self, method: str, params: object = None, *, key: str | None = None) -> None:
        """Tell."""
        self.connection.notify(method, params, key=key)

    async def ask(self, method: str, params: object) -> object:
        """Ask; give the answer as it is."""
        answer: object = msgspec.json.decode(await self.request(method, params, timeout=EVENT_SECONDS))
        return answer

    async def refusal(self, method: str, params: object) -> int | None:
        """Ask what should be refused; gives the code of the error, ``None`` when it was granted."""
        try:
            await self.connection.request(method, params, timeout=EVENT_SECONDS)
        except RemoteError as error:
            return error.remote_code
        except TimeoutError:
            raise Nonconforming(f"Expected an answer to {method}; none came within {EVENT_SECONDS:g} s.") from None
        except Disconnected:
            raise Nonconforming(f"Expected an answer to {method}; the other end was gone.") from None
        return None

    async def burst(self, requests: Sequence[tuple[str, object]]) -> tuple[list[int], list[int]]:
        """Ask everything at once; gives the ids as they were asked, and in the order of the answers."""
        before = len(self._ear.answered)
        asked = [self.request(method, params, timeout=EVENT_SECONDS) for method, params in requests]
        await asyncio.gather(*asked)
        answered = self._ear.answered[before:]
        return sorted(answered), answered

    def introduction(self) -> list[str]:
        """What is wrong with how the plug-in introduced itself."""
        first = [] if self._ear.first == "hello" else [f"The first message was {self._ear.first}."]
        return [*first, *self._offences]

    # -- what the plug-in asks -----------------------------------------------------------------------------

    def hello(self, hello: Hello) -> dict[str, object]:
        """Take the introduction."""
        hello.check()
        self.editor = LinkEditor(hello, self)
        return {"bridge": "conform", "link": LINK_VERSION, "port": 0, "pid": os.getpid(), "clients": []}

    def status(self) -> dict[str, object]:
        """What a bridge without clients says of itself."""
        lists: dict[str, object] = {name: [] for name in ("workspaceFolders", "clients", "diffs")}
        editors = [{"name": self.editor.name}] if self.editor else []
        return {"port": 0, "pid": os.getpid(), "lock": "", **lists, "editors": editors, "sharing": "full"}

    def _left(self, running: "asyncio.Task[None]") -> None:
        if not running.cancelled() and (error := running.exception()) is not None:
            self.complaints.append(f"The conversation broke down: {error}.")
        if self.editor is not None:
            self.editor.leave()

    def _silence(self, seconds: float) -> str:
        if self.complaints:
            return f"Expected hello as the link has it. {self.complaints[0]}"
        if self._ear.first is not None:
            return f"Expected the request hello as the first message; {self._ear.first} came."
        return f"Expected hello; {'the program ended' if self.gone else f'nothing came within {seconds:g} s'}."


def _methods() -> dict[str, Method[Host, Any]]:
    """What a plug-in may ask and tell."""
    return {
        "hello": Method(Hello, Host.hello),
        "status": Method(NoParams, lambda host, _params: host.status()),
        "share": Method(_Share, lambda _host, params: params.policy),
        "choose": Method(NoParams, lambda _host, _params: None),
        "selectionChanged": _event(SelectionParams, "selection_changed"),
        "fileOpened": _file_event("opened"),
        "fileClosed": _file_event("closed"),
        "fileSaved": _file_event("saved"),
        "fileFocused": _file_event("focused"),
        "diagnosticsChanged": _event(PathsParams, "diagnostics_changed"),
        "mentioned": _event(MentionedParams, "mentioned"),
        "diffDecided": _event(DecidedParams, "diff_decided"),
    }


def _event(params: type[msgspec.Struct], name: str) -> Method[Host, Any]:
    def call(host: Host, told: msgspec.Struct) -> None:
        if host.editor is not None:
            getattr(host.editor, name)(told)

    return Method(params, call)


def _file_event(kind: Literal["opened", "closed", "saved", "focused"]) -> Method[Host, Any]:
    def call(host: Host, told: PathParams) -> None:
        if host.editor is not None:
            host.editor.file_event(kind, told)

    return Method(PathParams, call)
