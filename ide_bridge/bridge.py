"""The bridge: puts the rooms together, and starts and stops them in the right order.

Start: claim (port, token, lock) → listener → private socket → watching. Stop: lock first, then clients, editors,
listener. From asyncio it is an ``async with``; from any other program a plain ``with`` runs it in a thread.

It does not know how a person started it or what a terminal is.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec
from aiohttp import web

from ide_bridge import __version__
from ide_bridge.editor.folder import FolderEditor
from ide_bridge.editor.interface import Editor
from ide_bridge.editor.switch import EditorSwitch
from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import Claim
from ide_bridge.fronts.claude import ClaudeFront
from ide_bridge.fronts.client import COMMAND, Client, Clients, Happening
from ide_bridge.fronts.gate import check_bearer, host_gate
from ide_bridge.fronts.links import Links
from ide_bridge.fronts.local import LocalFront, Record
from ide_bridge.fronts.mcp import mcp_methods
from ide_bridge.fronts.push import Push
from ide_bridge.fronts.sessions import Sessions
from ide_bridge.fronts.tap import Tap
from ide_bridge.in_thread import InThread
from ide_bridge.running import contains
from ide_bridge.session.sdk_server import SdkServer
from ide_bridge.settings import Policy
from ide_bridge.tools import diagnostics, diffs, documents, files, selection
from ide_bridge.tools.registry import Context, Registry
from ide_bridge.wire.connection import Connection
from ide_bridge.wire.dispatch import Dispatcher, Method, NoParams
from ide_bridge.workspace.listing import Change
from ide_bridge.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ide_bridge.session.controller import Controller

__all__ = ["Bridge"]

logger = logging.getLogger(__name__)

_LOCK_CHECK_SECONDS = 1.0
_PREPARE_DELAY_SECONDS = 0.005
_WATCH_DELAY_SECONDS = 0.25
_SHUTDOWN_SECONDS = 2.0


class Choose(msgspec.Struct):
    """The parameters of ``choose``: the client that gets the mentions; none: whichever fits."""

    client: int | None = None


class Share(msgspec.Struct):
    """The parameters of ``share``: the policy from now on; none: as it is."""

    policy: Policy | None = None


class Bridge:
    """One workspace, served to any number of clients."""

    def __init__(
        self,
        workspace: Workspace | str | os.PathLike[str],
        *,
        editor: Editor | None = None,
        claim: Claim | None = None,
        linger: float | None = None,
        happening: Happening = None,
    ) -> None:
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace.of_user(workspace)
        folder = FolderEditor(
            self.workspace.listing, self.workspace.settings.linters, folders=self.workspace.folders
        )
        self.editor = EditorSwitch(folder, self._editors_changed)
        self._first_editor = editor
        self._claim = claim
        self._linger = linger
        self._happening = happening
        self._registry = Registry(
            [*files.TOOLS, *documents.TOOLS, *selection.TOOLS, *diagnostics.TOOLS, *diffs.TOOLS]
        )
        self._context = Context(self.workspace, self.editor)
        self.workspace.listing.subscribe(self._file_changed)
        self.clients = Clients(self._context, happening, self._clients_changed)
        self._links = Links(self.editor, self._line_to, self._welcome, self._folders_changed)
        self._own_folders = tuple(self.workspace.folders)
        self._joining: asyncio.Task[None] | None = None
        self._push = Push(self.clients, self._context)
        self._sdk = SdkServer(check_bearer)
        self._sessions = Sessions(self._controller, self._line_to, self._links, self._tell)
        self._runner: web.AppRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._clock: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Event | None = None
        self._prepared: asyncio.Event | None = None
        self._thread: InThread | None = None

    @property
    def port(self) -> int:
        """The port clients connect to."""
        return self._claimed.port

    @property
    def token_file(self) -> str:
        """The private file that holds the token."""
        return self._claimed.token_file

    @property
    def lock(self) -> str:
        """The lock file by which the CLI finds us."""
        return self._claimed.lock.path

    async def start(self) -> None:
        """Serve. Returns as soon as a client can connect."""
        self._stopping = asyncio.Event()
        self._prepared = asyncio.Event()
        first = self._first_editor or self.editor
        if self._claim is None:
            self._claim = Claim(self.workspace.folders, first.name)
        else:
            self._claim.lock.change(ide_name=first.name)
        self.workspace.keep_journal(self._claim.state)
        try:
            await self._start_fronts(self._claim)
            await self._start_editors()
        except BaseException:
            await self.stop()
            raise
        work = (self._keep_lock(), self._watch_later(), self._push.run())
        self._tasks = [asyncio.create_task(each) for each in work]
        self._watch_the_clock()

    async def stop(self) -> None:
        """Stop serving: the lock goes first, so that nobody finds us any more."""
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.lock.remove()
        await self._context.diffs.stop()
        tasks = [*self._tasks, *([self._joining] if self._joining else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._clock is not None:
            self._clock.cancel()
        if self._runner is not None:
            await self._sessions.close()
            self._links.goodbye()
            await self._front.close()
            await self._local.close()
            await self._links.close()
            await self._context.problems.close()
            await self.editor.close()
            await self._runner.cleanup()
            await self.workspace.close()
            self._runner = None
        if claim is not None:
            claim.close()
        self.ask_to_stop()

    def ask_to_stop(self) -> None:
        """Let ``run`` end."""
        if self._stopping is not None:
            self._stopping.set()

    async def run(self, *, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until asked to stop; `ready` is called when the first question will be answered at full speed."""
        async with self:
            if self._prepared is not None:
                await self._prepared.wait()
            ready()
            if self._stopping is not None:
                await self._stopping.wait()

    def status(self) -> dict[str, object]:
        """What ``ide-bridge status`` shows."""
        return {
            "port": self.port,
            "pid": os.getpid(),
            "workspaceFolders": self._claimed.folders,
            "lock": self.lock,
            "clients": self.clients.described(),
            "editors": [_described(editor) for editor in self.editor.attached],
            "diffs": self._context.diffs.described(),
            "sharing": self.workspace.sharing.policy,
            "sessions": self._sessions.described(),
        }

    def share(self, policy: Policy | None = None) -> Policy:
        """Share more or less from now on; give what holds then, which a workspace may keep stricter."""
        if policy is not None:
            self.workspace.sharing.policy = policy
            self._push.policy_changed()
        return self.workspace.sharing.policy

    def problems(self) -> list[str]:
        """What did not work but does not stop us, in sentences."""
        notice = self.workspace.listing.notice
        return [*self._registry.problems, *([notice] if notice else [])]

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        self._thread = InThread(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._thread is not None:
            self._thread.close()

    @property
    def _claimed(self) -> Claim:
        if self._claim is None:
            raise SetupProblem("The bridge is not running; start it first.")
        return self._claim

    async def _start_fronts(self, claim: Claim) -> None:
        methods = mcp_methods(self._registry, self._push.welcome)
        tap = Tap(claim.token)
        self._front = ClaudeFront(self.clients, Dispatcher(methods), lambda: claim.token, tap)
        steering: dict[str, Method[Client, Any]] = {
            "status": Method(NoParams, lambda _client, _params: self.status()),
            "stop": Method(NoParams, lambda _client, _params: self.ask_to_stop()),
            "choose": Method(Choose, lambda _client, params: self.clients.choose(params.client)),
            "share": Method(Share, lambda _client, params: self.share(params.policy)),
            "record": Method(Record, lambda client, params: self._local.record(client, tap, on=params.on)),
        }
        dispatcher = Dispatcher({**methods, **steering, **self._links.methods(), **self._sessions.methods()})
        self._local = LocalFront(claim.socket_path, dispatcher, self._commander, self._left)
        application = web.Application(middlewares=[host_gate(claim.port)])
        self._front.add_routes(application.router)
        self._sdk.add_routes(application.router)
        self._runner = web.AppRunner(
            application, handle_signals=False, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        listener = socket.socket(fileno=claim.detach_listener())
        await web.SockSite(self._runner, listener).start()
        await self._local.start()

    async def _start_editors(self) -> None:
        await self.editor.start()
        if self._first_editor is not None:
            await self.editor.attach(self._first_editor)

    def _file_changed(self, change: Change) -> None:
        if change.kind != "deleted":
            self._context.problems.noticed(change.path)

    def _editors_changed(self) -> None:
        if self._claim is not None:
            self._claim.lock.change(ide_name=self.editor.name)
        self._watch_the_clock()

    def _clients_changed(self) -> None:
        self._links.tell_clients(self.clients.described())
        self._watch_the_clock()

    def _left(self, client: Client) -> None:
        self._links.left(client)
        self._sessions.left(client)

    def _controller(self) -> "Controller":
        """The sessions of this workspace; a bridge that has none loads nothing for them."""
        from ide_bridge.session.controller import Controller  # noqa: PLC0415 - see above

        claim, policy = self._claimed, self.workspace.approval_policy
        return Controller(claim.state, self._own_folders[0], policy, self._sdk, claim.port, self._watch_the_clock)

    def _line_to(self, client: Client) -> Connection[Client]:
        return self._local.line(client)

    def _welcome(self) -> dict[str, object]:
        return {
            "bridge": __version__,
            "port": self.port,
            "pid": os.getpid(),
            "clients": self.clients.described(),
        }

    def _folders_changed(self) -> None:
        if self._claim is not None and (self._joining is None or self._joining.done()):
            self._joining = asyncio.create_task(self._take_folders())

    async def _take_folders(self) -> None:
        """Serve what editors have brought along, for as long as they are attached."""
        while (wanted := _with_further(self._own_folders, self._links.folders)) != self.workspace.folders:
            await self.workspace.set_folders(wanted)
            with contextlib.suppress(SetupProblem):
                self._claimed.set_folders(wanted)

    def _commander(self) -> Client:
        commander = Client(0, self._context.for_another(0), self._happening)
        commander.name = commander.context.client_name = COMMAND
        commander.used = self._watch_the_clock
        return commander

    async def _keep_lock(self) -> None:
        while True:
            await asyncio.sleep(_LOCK_CHECK_SECONDS)
            if self.workspace.sharing.refresh():
                self._push.policy_changed()
            with contextlib.suppress(OSError, SetupProblem):
                for restored in [*self._claimed.restore(), *await self._local.restore()]:
                    self._tell("someone", f"deleted {restored}; it is back")

    async def _watch_later(self) -> None:
        """Do what takes time when the first client has had its answer: who connects should not wait for it."""
        await asyncio.sleep(_PREPARE_DELAY_SECONDS)
        try:
            self._registry.load_plugins()
            await self.workspace.listing.prepare()
        finally:
            if self._prepared is not None:
                self._prepared.set()
        await asyncio.sleep(_WATCH_DELAY_SECONDS)
        await self.workspace.start()

    def _tell(self, who: str, what: str) -> None:
        if self._happening is not None:
            self._happening(who, what)

    def _watch_the_clock(self) -> None:
        """With a linger time, stop when nobody has been here for that long."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        alone = not len(self.clients) and not self.editor.attached and not self._sessions.is_busy
        if self._linger is not None and self._claim is not None and alone:
            self._clock = asyncio.get_running_loop().call_later(self._linger, self.ask_to_stop)


def _described(editor: Editor) -> dict[str, object]:
    return {"name": editor.name, "version": editor.version, "pid": editor.pid}


def _with_further(folders: Sequence[str], further: Iterable[str]) -> list[str]:
    """The folders and those further ones that lie apart from all others."""
    united = list(folders)
    for folder in further:
        if not any(contains(folder, other) or contains(other, folder) for other in united):
            united.append(folder)
    return united
