"""Sessions for this user's own commands and editors: the methods by which they are started, watched and answered.

Every watcher reads the session's log at its own speed: a slow one holds up nobody, and loses what the log no
longer has, which it is told.

It does not know how a session is run, or what an editor shows of it.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ide_bridge.errors import InvalidParams
from ide_bridge.fronts.client import COMMAND, Client
from ide_bridge.fronts.links import Links
from ide_bridge.session.start import Start
from ide_bridge.wire.connection import Connection
from ide_bridge.wire.dispatch import Method, NoParams

if TYPE_CHECKING:
    from ide_bridge.session.approvals import Approval, Closed
    from ide_bridge.session.controller import Controller
    from ide_bridge.session.session import Session

__all__ = ["Sessions"]

logger = logging.getLogger(__name__)

_AT_ONCE = 200
_JUST_SECONDS = 3600.0
_Line = Annotated[int, Meta(ge=0)]


class SessionParams(msgspec.Struct):
    """A message about one session; without a name, the only one that lives."""

    session: str | None = None


class PromptParams(SessionParams, kw_only=True):
    """The parameters of ``prompt``."""

    text: str
    uuid: str | None = None


class ModelParams(SessionParams, kw_only=True):
    """The parameters of ``setModel``."""

    model: str


class ModeParams(SessionParams, kw_only=True):
    """The parameters of ``setMode``."""

    mode: str


class WatchParams(SessionParams, kw_only=True, rename={"from_": "from"}):
    """The parameters of ``watchSession``: from which event on, and whether in the CLI's own words too."""

    from_: int | None = None
    raw: bool = False


class DecideParams(msgspec.Struct, rename="camel"):
    """The parameters of ``decide``."""

    approval: str
    behavior: Literal["allow", "deny"]
    reason: str = ""
    input: dict[str, Any] | None = None
    answers: dict[str, Any] | None = None
    for_session: bool = False
    interrupt: bool = False


class Place(msgspec.Struct):
    """A place in a file, as plug-ins tell it."""

    line: _Line
    column: _Line = 0


class AskParams(SessionParams, kw_only=True):
    """The parameters of ``ask``: a question from an editor, and what it is about."""

    text: str
    new: bool = False
    path: str | None = None
    start: Place | None = None
    end: Place | None = None
    selection: str | None = None


class Sessions:
    """Everyone who watches, and what they may ask."""

    def __init__(
        self,
        controller: "Callable[[], Controller]",
        line: Callable[[Client], Connection[Client]],
        links: Links,
        happens: Callable[[str, str], None],
    ) -> None:
        self._open = controller
        self._line = line
        self._links = links
        self._happens = happens
        self._controller: Controller | None = None
        self._watching: dict[tuple[Client, str], asyncio.Task[None]] = {}
        self._last_used: dict[Client, str] = {}
        self._asking: dict[Client, asyncio.Lock] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a session lives."""
        return self._controller is not None and self._controller.is_busy

    def described(self) -> list[dict[str, object]]:
        """What ``status`` shows: the sessions that live."""
        if self._controller is None:
            return []
        return [session.described() for session in self._controller.sessions if session.is_live]

    def methods(self) -> dict[str, Method[Client, Any]]:
        """What commands and plug-ins may ask."""
        return {
            "startSession": Method(Start, self._start),
            "sessions": Method(NoParams, lambda _client, _params: self._all()),
            "prompt": Method(PromptParams, self._prompt),
            "interrupt": Method(SessionParams, self._interrupt),
            "setModel": Method(ModelParams, self._set_model),
            "setMode": Method(ModeParams, self._set_mode),
            "stopSession": Method(SessionParams, self._stop),
            "watchSession": Method(WatchParams, self._watch),
            "unwatchSession": Method(SessionParams, self._unwatch),
            "approvals": Method(NoParams, lambda _client, _params: self._here.inbox.open()),
            "decide": Method(DecideParams, self._decide),
            "ask": Method(AskParams, self._ask),
        }

    def left(self, client: Client) -> None:
        """Somebody is gone; what he started goes on."""
        self._last_used.pop(client, None)
        self._asking.pop(client, None)
        for key in [key for key in self._watching if key[0] is client]:
            self._watching.pop(key).cancel()

    async def close(self) -> None:
        """End every session."""
        if self._controller is not None:
            await self._controller.close()
        watching = list(self._watching.values())
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)

    @property
    def _here(self) -> "Controller":
        if self._controller is None:
            self._controller = self._open()
            self._controller.inbox.subscribe(self._approval)
        return self._controller

    def _all(self) -> list[dict[str, object]]:
        return [session.described() for session in self._here.sessions]

    async def _start(self, client: Client, start: Start) -> dict[str, object]:
        session = await self._here.start(start, _name(client))
        self._happens(_short(session.id), f"started by {_name(client)} in {session.record.folder}")
        return session.described()

    async def _prompt(self, client: Client, params: PromptParams) -> dict[str, object]:
        session = self._here.find(params.session)
        return {"uuid": await self._here.prompt(session, params.text, params.uuid, _name(client))}

    async def _interrupt(self, _client: Client, params: SessionParams) -> dict[str, object]:
        await self._here.find(params.session).interrupt()
        return {}

    async def _set_model(self, _client: Client, params: ModelParams) -> dict[str, object]:
        session = self._here.find(params.session)
        await session.set_model(params.model)
        return session.described()

    async def _set_mode(self, _client: Client, params: ModeParams) -> dict[str, object]:
        session = self._here.find(params.session)
        await session.set_mode(params.mode)
        return session.described()

    async def _stop(self, _client: Client, params: SessionParams) -> dict[str, object]:
        session = self._here.find(params.session)
        await session.stop()
        return session.described()

    def _watch(self, client: Client, params: WatchParams) -> dict[str, object]:
        session = self._here.find(params.session)
        following = session.log.next
        self._begin_watching(client, session, params.from_, raw=params.raw)
        return {"session": session.described(), "next": following}

    def _unwatch(self, client: Client, params: SessionParams) -> dict[str, object]:
        session = self._here.find(params.session)
        if (task := self._watching.pop((client, session.id), None)) is not None:
            task.cancel()
        return {}

    def _decide(self, client: Client, params: DecideParams) -> dict[str, object]:
        from ide_bridge.session.approvals import Answer  # noqa: PLC0415 - a bridge without sessions needs none of it

        given = msgspec.structs.asdict(params)
        closed = self._here.inbox.decide(given.pop("approval"), Answer(**given), _name(client))
        return {"approval": closed.approval.id, "outcome": closed.outcome, "by": closed.by}

    async def _ask(self, client: Client, params: AskParams) -> dict[str, object]:
        if not params.text.strip():
            raise InvalidParams("Ask something; the question is empty.")
        async with self._asking.setdefault(client, asyncio.Lock()):  # or two quick questions begin two sessions
            session = await self._asked_session(client, params)
            self._last_used[client] = session.id
        if (client, session.id) not in self._watching:
            self._begin_watching(client, session, None, raw=False)
        text = _question(params, session.record.folder)
        uuid = await self._here.prompt(session, text, by=_name(client))
        return {"session": session.id, "uuid": uuid, "title": session.record.title}

    async def _asked_session(self, client: Client, params: AskParams) -> "Session":
        if params.session is not None and not params.new:
            return self._here.find(params.session)
        live = [session for session in self._here.sessions if session.is_live]
        if not params.new and (last := self._last_used.get(client)) is not None:
            return self._here.find(last)
        if not params.new and len(live) == 1:
            return live[0]
        if not params.new and not live and (lost := self._just_lost()) is not None:
            return lost
        return await self._here.start(Start(title=params.text.strip().splitlines()[0][:80]), _name(client))

    def _just_lost(self) -> "Session | None":
        """The session that went with the bridge before us; whoever asks on means that one."""
        lost = [session for session in self._here.sessions if session.state == "lost"]
        newest = max(lost, key=lambda session: session.record.changed, default=None)
        return newest if newest is not None and time.time() - newest.record.changed < _JUST_SECONDS else None

    def _begin_watching(self, client: Client, session: "Session", number: int | None, *, raw: bool) -> None:
        if (before := self._watching.pop((client, session.id), None)) is not None:
            before.cancel()
        pump = _pump(self._line(client), session, number, raw=raw)
        self._watching[client, session.id] = asyncio.create_task(pump)

    def _approval(self, happened: "Approval | Closed") -> None:
        from ide_bridge.session.approvals import Closed  # noqa: PLC0415 - a bridge without sessions needs none of it

        if isinstance(happened, Closed):
            told = {"approval": happened.approval.id, "outcome": happened.outcome}
            self._links.notify("approvalClosed", told | {"by": happened.by, "reason": happened.reason})
            self._happens(
                _short(happened.approval.session),
                f"{happened.outcome} by {happened.by}: {happened.approval.title}",
            )
        else:
            self._links.notify("approvalAsked", happened)
            self._happens(_short(happened.session), f"asks: {happened.title} ({happened.id})")


async def _pump(line: Connection[Client], session: "Session", number: int | None, *, raw: bool) -> None:
    """Send a session's events to one watcher, as fast as he takes them."""
    log = session.log
    entries = log.story(raw=raw) if number is None else log.since(number, raw=raw)
    following = log.next
    while True:
        for begin in range(0, len(entries), _AT_ONCE):
            for entry in entries[begin : begin + _AT_ONCE]:
                told = {"session": session.id, "number": entry.number, "event": entry.event}
                line.notify("sessionEvent", told)
            await line.told()
        await log.reaches(following)
        if (missing := log.missing(following, raw=raw)) > 0:
            notice = {
                "kind": "notice",
                "level": "warning",
                "text": f"{missing} events came too fast and are left out.",
            }
            line.notify("sessionEvent", {"session": session.id, "number": following, "event": notice})
        entries = log.since(following, raw=raw)
        following = log.next


def _short(session: str) -> str:
    return f"session {session[:8]}"


def _name(client: Client) -> str:
    """Who it is, in the word a person uses."""
    return "terminal" if client.name == COMMAND else client.name


def _question(params: AskParams, folder: str) -> str:
    """The question, and below it what it is about."""
    about = _about(params, folder)
    selection = (params.selection or "").strip("\n")
    if not selection:
        return f"{params.text}\n\n({about})" if about else params.text
    fence = "```"
    while fence in selection:
        fence += "`"
    heading = f"{about}:" if about else "Selected:"
    return f"{params.text}\n\n{heading}\n{fence}\n{selection}\n{fence}"


def _about(params: AskParams, folder: str) -> str:
    if params.path is None:
        return ""
    inside = params.path.startswith(folder.rstrip(os.sep) + os.sep)
    name = os.path.relpath(params.path, folder) if inside else params.path
    if params.start is None:
        return name
    first, last = params.start.line + 1, (params.end or params.start).line + 1
    return f"{name}, line {first}" if first == last else f"{name}, lines {first} to {last}"
