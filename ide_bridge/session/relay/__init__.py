"""The relay: CLIs at ``/``, front ends at ``/ws``, and a door that is not open to everyone.

Neither the CLI nor the front ends it is made for send a token. So a connection is let in if it comes from a
program of the user who runs the relay, or has the relay's token; in any case its Host must be ours, and a web page
must be one that the user has named. PROTOCOL.md, "The relay".

A CLI is never kept waiting by a front end: each has a backlog, and who lets it fill up is dropped with the close
code 1013. A front end that sends more than a CLI can take has to wait.

It does not know what the messages mean; ``switchboard`` does.
"""

import asyncio
import hmac
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from aiohttp import web

from ide_bridge.errors import Disconnected, SetupProblem
from ide_bridge.session.relay.neighbours import belongs_to_us
from ide_bridge.session.relay.switchboard import Cli, FrontEnd, Switchboard
from ide_bridge.session.sdk_server import LAST_REQUEST, Wire, upgrade
from ide_bridge.session.sdk_server.backlog import Backlog
from ide_bridge.wire.framing import MESSAGE_LIMIT, Lines, TooLarge

__all__ = ["DEFAULT_PORT", "Relay"]

DEFAULT_PORT = 8765
CLI_LIMIT = 64
FRONT_END_LIMIT = 64
FRONT_END_MESSAGE_LIMIT = 16 * 1024 * 1024
_FRONT_END_BACKLOG = 8 * 1024 * 1024
_CLI_BACKLOG = 4 * 1024 * 1024
_SHUTDOWN_SECONDS = 1.0
_GOING_AWAY = 1001
_TOO_SLOW = 1013
_HOST = "127.0.0.1"
_NAMES = (_HOST, "localhost", "[::1]")


class _Line:
    """One connection: what waits to be sent over it, and the two tasks that use it."""

    def __init__(self, wire: Wire, limit: int) -> None:
        self.wire = wire
        self.over = asyncio.Event()
        self._backlog: Backlog[bytes] = Backlog(limit)
        self._writing: asyncio.Task[None] | None = None
        self._goodbye = (_GOING_AWAY, "The relay stops.")

    def tell(self, line: bytes) -> None:
        """Send a line when its turn comes."""
        self._backlog.add(line, len(line))

    def tell_if_quick(self, line: bytes) -> None:
        """Send a line, or hang up on an end that has let too many wait."""
        if not self._backlog.offer(line, len(line)):
            self.hang_up(_TOO_SLOW, "You read too slowly.")

    async def deliver(self, line: bytes) -> None:
        """Send a line when there is room. Raises ``Disconnected`` when the other end is gone."""
        await self._backlog.put(line, len(line))

    def hang_up(self, code: int, reason: str) -> None:
        """Send nothing more but a goodbye."""
        if self._writing is not None and not self._writing.done():
            self._goodbye = (code, reason)
            self._writing.cancel()

    async def hold(self, reading: Coroutine[Any, Any, None]) -> None:
        """Read and write until one of the two ends."""
        hearing = asyncio.create_task(reading)
        self._writing = asyncio.create_task(self._write())
        try:
            await asyncio.wait({hearing, self._writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._backlog.close()
            await self.wire.close(*self._goodbye)
            hearing.cancel()
            self._writing.cancel()
            await asyncio.gather(hearing, self._writing, return_exceptions=True)
            self.over.set()
        if not hearing.cancelled():
            hearing.result()  # an accident of ours must not pass for the end of a conversation

    async def _write(self) -> None:
        while (line := await self._backlog.first()) is not None:
            try:
                await self.wire.send(line)
            except ConnectionError:
                return
            self._backlog.drop()


class Relay:
    """The listener, and everyone it has let in."""

    def __init__(
        self,
        token: str,
        *,
        origins: Collection[str] = (),
        auto_approve: bool = False,
        happening: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self._token = token
        self._origins = frozenset(origins)
        self._happening = happening
        self._board = Switchboard(happening, auto_approve=auto_approve)
        self._clis: dict[Cli, _Line] = {}
        self._fronts: dict[FrontEnd, _Line] = {}
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, port: int = DEFAULT_PORT) -> None:
        """Listen on this port of 127.0.0.1; on any that is free for 0."""
        application = web.Application()
        application.router.add_get("/", self._take_cli, allow_head=False)
        application.router.add_get("/ws", self._take_front_end, allow_head=False)
        runner = web.AppRunner(
            application, handle_signals=False, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, port).start()
        except OSError as error:
            await runner.cleanup()
            raise SetupProblem(
                f"Port {port} cannot be used: {error.strerror or error}; another relay may run. "
                "Choose another with --port."
            ) from None
        self._runner = runner
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Say goodbye to everyone. A CLI takes it as a lost connection, and tries to come back."""
        lines = [*self._clis.values(), *self._fronts.values()]
        for line in lines:
            line.hang_up(_GOING_AWAY, "The relay stops.")
        await asyncio.gather(*(line.over.wait() for line in lines))
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take_cli(self, request: web.Request) -> web.StreamResponse:
        self._admit(request)
        last = request.headers.get(LAST_REQUEST)
        again = self._board.known_by(last)
        if len(self._clis) >= CLI_LIMIT and again not in self._clis:
            raise web.HTTPServiceUnavailable(text="Too many CLIs are connected.\n")
        wire = await upgrade(request, MESSAGE_LIMIT)
        while again is not None and (before := self._clis.get(again)) is not None:
            before.wire.cut_soon()  # its loss was not noticed yet; what it had said comes first
            await before.over.wait()
        line = _Line(wire, _CLI_BACKLOG)
        cli = self._board.cli_joins(line.tell, last)
        self._clis[cli] = line
        try:
            await line.hold(self._hear_cli(cli, wire))
        finally:
            del self._clis[cli]
            self._board.cli_leaves(cli)
        return wire.response

    async def _hear_cli(self, cli: Cli, wire: Wire) -> None:
        lines = Lines(MESSAGE_LIMIT)
        async for data in wire:
            for said in lines.feed(data):
                if isinstance(said, TooLarge):
                    self._happening(f"{cli.name} said too much at once; {said.size} bytes were left out.")
                else:
                    self._board.cli_says(cli, said)

    async def _take_front_end(self, request: web.Request) -> web.StreamResponse:
        self._admit(request)
        if len(self._fronts) >= FRONT_END_LIMIT:
            raise web.HTTPServiceUnavailable(text="Too many front ends are connected.\n")
        wire = await upgrade(request, FRONT_END_MESSAGE_LIMIT)
        line = _Line(wire, _FRONT_END_BACKLOG)
        front = self._board.front_joins(line.tell_if_quick)
        self._fronts[front] = line
        try:
            await line.hold(self._hear_front_end(front, wire))
        finally:
            del self._fronts[front]
            self._board.front_leaves(front)
        return wire.response

    async def _hear_front_end(self, front: FrontEnd, wire: Wire) -> None:
        """A frame holds whole lines; browsers leave out the last newline."""
        async for data in wire:
            for said in data.split(b"\n"):
                if said.strip() and (for_cli := self._board.front_says(front, said)) is not None:
                    await self._pass_on(*for_cli)

    async def _pass_on(self, cli: Cli, line: bytes) -> None:
        if (connected := self._clis.get(cli)) is not None:
            try:
                await connected.deliver(line)
            except Disconnected:
                return  # everyone is told so

    def _admit(self, request: web.Request) -> None:
        """Let in who means us, is no unknown web page, and is this user or has the token."""
        named = [host.lower() for host in request.headers.getall("Host", [])]
        if named not in [[f"{name}:{self.port}"] for name in _NAMES] or request.rel_url.absolute:
            raise web.HTTPMisdirectedRequest(text="This is not a public server.\n")
        origins = request.headers.getall("Origin", [])
        if origins and (len(origins) > 1 or origins[0].lower() not in self._origins):
            raise web.HTTPForbidden(text="This page may not connect; name it with --origin.\n")
        if not self._has_token(request) and not _is_ours(request):
            raise web.HTTPUnauthorized(text="The token of the relay is needed.\n")

    def _has_token(self, request: web.Request) -> bool:
        asked = [f"Bearer {word}" for word in request.query.getall("token", [])]  # a page cannot set a header
        given = request.headers.getall("Authorization", []) + asked
        # aiohttp hands over bytes that are no UTF-8 as surrogates; they are given back as the bytes they were.
        words = [word.encode(errors="surrogateescape") for word in given]
        return len(words) == 1 and hmac.compare_digest(words[0], f"Bearer {self._token}".encode())


def _is_ours(request: web.Request) -> bool:
    """Whether the program at the other end is this user's."""
    transport = request.transport
    if transport is None:
        return False
    ours, theirs = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
    return bool(ours and theirs) and belongs_to_us(ours[:2], theirs[:2])
