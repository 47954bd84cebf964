"""The controller: all sessions of one workspace.

1. A session's id is chosen here, also for a fork, so that it is known from the first moment.
2. One writer per session: its lock is held by whatever runs it, in any bridge, until nothing of it runs any more.
3. Sessions belong to no front end. They end when they are stopped, when their CLI ends, or with the bridge.
4. What the bridge before us ran and did not stop is ``lost``, and can be resumed; what the CLI had not got is sent
   then.

It does not know who asks, or how.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from uuid import UUID, uuid4

import msgspec

from ide_bridge.errors import InvalidParams, InvalidRequest, SetupProblem
from ide_bridge.session.approvals import Approval, Closed, Inbox
from ide_bridge.session.channel import Channel, Returned
from ide_bridge.session.process import CliProcess
from ide_bridge.session.process.programs import Cli, Launch, find_cli
from ide_bridge.session.records import Record, Records, hold
from ide_bridge.session.sdk_server import SdkChannel, SdkServer
from ide_bridge.session.session import Session, first_line
from ide_bridge.session.start import Start
from ide_bridge.session.transcript.past import past_session
from ide_bridge.session.transcript.places import find_transcript
from ide_bridge.session.transcript.prompts import prompts_in
from ide_bridge.settings import ApprovalPolicy

__all__ = ["Controller"]

Policy = Callable[[str], ApprovalPolicy]

LIVE_LIMIT = 100
_SHORTEST = 4
_ENDING_SECONDS = 25.0
_LOOK_SECONDS = 0.1


class Controller:
    """Starts sessions, finds them, and ends them all when the bridge ends."""

    def __init__(
        self, state: str, folder: str, policy: Policy, sdk: SdkServer, port: int, changed: Callable[[], None]
    ) -> None:
        self.inbox = Inbox(policy)
        self._policy = policy
        self._folder = folder
        self._sdk = sdk
        self._port = port
        self._changed = changed
        self._records = Records(state)
        self._records.prune()
        self._sessions = {record.session: self._known(record) for record in self._records.all()}
        self._reviving: dict[str, asyncio.Lock] = {}
        self._environments: dict[str, Mapping[str, str]] = {}
        self._launching = 0
        self._is_closing = False
        self._unsubscribe = self.inbox.subscribe(self._approval)

    @property
    def sessions(self) -> list[Session]:
        """All that are known here, the oldest first."""
        return sorted(self._sessions.values(), key=lambda session: session.record.created)

    @property
    def is_busy(self) -> bool:
        """Whether a session lives."""
        return any(session.is_live for session in self._sessions.values())

    def find(self, beginning: str | None) -> Session:
        """The session whose id begins like this; without a beginning, the only one that lives."""
        if beginning is None:
            live = [session for session in self.sessions if session.is_live]
            if len(live) == 1:
                return live[0]
            raise InvalidParams(f"Say which session: {len(live) or 'none'} of them are running.")
        found = [session for session in self.sessions if session.id.startswith(beginning.lower())]
        if len(beginning) < _SHORTEST or not found:
            raise InvalidParams(f"There is no session {beginning!r} here; `ide-bridge session list` shows them.")
        if len(found) > 1:
            raise InvalidParams(f"{len(found)} sessions begin with {beginning}; say more of it.")
        return found[0]

    async def start(self, start: Start, by: str = "") -> Session:
        """Begin a session, continue one, or fork one."""
        if start.prompt is not None:
            _not_empty(start.prompt)
        origin = self._origin(start.resume) if start.resume else None
        session = self._prepared(start, origin)
        async with self._turn_of(session):
            await session.over()
            if session.is_live:
                raise InvalidRequest(f"Session {session.id[:8]} is running already; attach to it.")
            await self._launch(session, start, origin)
        if start.prompt is not None:
            session.prompt(start.prompt, by=by)
        return session

    async def prompt(self, session: Session, text: str, uuid: str | None = None, by: str = "") -> str:
        """Have something done, by a session that is resumed first if need be."""
        _not_empty(text)
        checked = _checked(uuid, "uuid of a prompt") if uuid else None
        await self.revive(session)
        return session.prompt(text, checked, by)

    async def revive(self, session: Session) -> None:
        """Continue a session that is not running, with the environment it was started in as far as we know it."""
        async with self._turn_of(session):
            await session.over()
            if not session.is_live:
                await self._launch(session, Start(command=session.record.command), session.id)

    async def close(self) -> None:
        """End every session; returns when nothing of them runs any more."""
        self._is_closing = True
        self.inbox.close()
        for turn in list(self._reviving.values()):
            async with turn:  # what is being launched is there then, and can be ended
                pass
        await asyncio.gather(*(session.stop() for session in self._sessions.values()), return_exceptions=True)
        self._unsubscribe()

    # -- starting -------------------------------------------------------------------------------------------

    def _prepared(self, start: Start, origin: str | None) -> Session:
        """The session that is to run, not yet running."""
        if origin is not None and not start.fork:
            return self._sessions.get(origin) or self._known(self._new_record(start, origin, origin))
        return self._known(self._new_record(start, str(uuid4()), origin))

    def _new_record(self, start: Start, session: str, origin: str | None) -> Record:
        now = time.time()
        return Record(
            session,
            _real(start.folder or (self._home_of(origin) if origin else None) or self._folder),
            created=now,
            changed=now,
            over=start.over or "pipes",
            arguments=start.arguments,
            title=first_line(start.title),
            fork_of=origin if origin != session else None,
            at=start.at,
            begun=origin == session,
        )

    def _turn_of(self, session: Session) -> asyncio.Lock:
        """Who starts a session waits for whoever else is starting it."""
        return self._reviving.setdefault(session.id, asyncio.Lock())

    async def _launch(self, session: Session, start: Start, origin: str | None) -> None:
        self._launching += 1
        try:
            self._check_room()
            environment = start.environment or self._environments.get(session.id) or dict(os.environ)
            await self._launch_in(environment, session, start, origin)
        finally:
            self._launching -= 1
        self._changed()

    def _check_room(self) -> None:
        if self._is_closing:
            raise InvalidRequest("The bridge is stopping; start it again first.")
        if self._launching + sum(session.is_live for session in self._sessions.values()) > LIVE_LIMIT:
            raise InvalidRequest(f"{LIVE_LIMIT} sessions are running; stop one first.")

    async def _launch_in(
        self, environment: Mapping[str, str], session: Session, start: Start, origin: str | None
    ) -> None:
        """What is decided here is kept only when the CLI runs."""
        record = session.record
        chosen = msgspec.structs.replace(
            record,
            model=start.model or record.model,
            mode=start.mode or record.mode,
            over=start.over or record.over,
        )
        cli = await find_cli(start.command or record.command, environment)
        lock = await _lock_of(session)
        try:
            launch = self._plan(chosen, origin, start.at, environment)
            if origin == session.id:
                await self._prepare(session, launch)
            channel, process = await self._run(cli, launch, chosen.over, environment, lock)
        finally:
            os.close(lock)  # the keeper of the CLI holds it from now on
        record.model, record.mode, record.over = chosen.model, chosen.mode, chosen.over
        record.command, record.version = (cli.command if start.command else record.command), cli.text
        self._sessions[session.id] = session
        self._environments[session.id] = environment
        session.begin(channel, process)

    def _plan(self, record: Record, origin: str | None, at: str | None, environment: Mapping[str, str]) -> Launch:
        """How to start the CLI. What it was lost before it had written begins anew, as a fork if it was one."""
        session = record.session
        if origin == record.session:
            origin = session = record.conversation or record.session
            if not _is_written(record, environment):
                origin, at, session = record.fork_of, record.at, record.session
        return Launch(
            session,
            record.folder,
            resume=origin,
            fork=origin is not None and origin != session,
            at=at,
            model=record.model,
            mode=record.mode,
            arguments=(*record.arguments, *self._denials(record.folder)),
        )

    async def _prepare(self, session: Session, launch: Launch) -> None:
        """Before a session goes on: see what the CLI before had of it."""
        if launch.resume is None or launch.fork:
            session.begins_anew()
            return
        path = find_transcript(launch.resume, session.record.folder) if session.open_prompts else None
        if path is not None:
            session.had(await asyncio.to_thread(prompts_in, path, session.open_prompts))

    def _denials(self, folder: str) -> list[str]:
        """What the user denies is told to the CLI too: it does not ask before everything."""
        return [f"--disallowedTools={rule}" for rule in self._policy(folder).deny]

    async def _run(
        self, cli: Cli, launch: Launch, over: str, environment: Mapping[str, str], lock: int
    ) -> tuple[Channel, CliProcess]:
        if over == "pipes":
            process = await CliProcess.start(cli, launch, environment=environment, keep=(lock,))
            return process, process
        channel = self._sdk.expect(launch.session)
        url = f"ws://127.0.0.1:{self._port}{channel.path}"
        process = await CliProcess.start(
            cli, launch, environment=environment, keep=(lock,), sdk_url=url, token=channel.token
        )
        return _Socket(self._sdk, launch.session, channel, process), process

    # -- finding --------------------------------------------------------------------------------------------

    def _known(self, record: Record) -> Session:
        return Session(record, self._records, self.inbox, self._changed)

    def _origin(self, beginning: str) -> str:
        """The whole id of a session that is to be continued or forked: one of ours, or any the CLI has."""
        ours = [known for known in self._sessions if known.startswith(beginning.lower())]
        if len(beginning) >= _SHORTEST and len(ours) == 1:
            return ours[0]
        session = _checked(beginning)
        if find_transcript(session) is None:
            raise InvalidParams(
                f"There is no session {beginning} to resume; `ide-bridge session list --all` shows them."
            )
        return session

    def _home_of(self, session: str) -> str | None:
        """The folder in which a session was begun; the CLI finds it nowhere else."""
        if (ours := self._sessions.get(session)) is not None:
            return ours.record.folder
        path = find_transcript(session)
        past = past_session(path) if path else None
        return past.folder if past else None

    def _approval(self, happened: Approval | Closed) -> None:
        approval = happened.approval if isinstance(happened, Closed) else happened
        session = self._sessions.get(approval.session)
        if session is None:
            return
        if isinstance(happened, Closed):
            session.approval_closed(happened)
        else:
            session.approval_asked(happened)


class _Socket:
    """A channel over the socket that also ends when its process does: a CLI that is gone does not come back."""

    def __init__(self, sdk: SdkServer, session: str, channel: SdkChannel, process: CliProcess) -> None:
        self._sdk = sdk
        self._session = session
        self._channel = channel
        self._watching = asyncio.create_task(self._watch(process))

    @property
    def missed(self) -> bool:
        """Whether something was said while the connection was broken."""
        return self._channel.unheard is not None

    def __aiter__(self) -> AsyncIterator[bytes | Returned]:
        return self._channel.__aiter__()

    async def send(self, data: bytes) -> None:
        """Send whole lines."""
        await self._channel.send(data)

    async def close(self) -> None:
        """Let the CLI go."""
        self._watching.cancel()
        await self._channel.close()
        self._sdk.forget(self._session)

    async def _watch(self, process: CliProcess) -> None:
        async for _ in process:  # it says nothing here, and ends as soon as the CLI does
            pass
        await self._channel.close()
        self._sdk.forget(self._session)


def _is_written(record: Record, environment: Mapping[str, str]) -> bool:
    """Whether the CLI can resume a session; where it looks for it, we may not be able to."""
    if any(environment.get(name) != os.environ.get(name) for name in ("CLAUDE_CONFIG_DIR", "HOME")):
        return record.begun
    return find_transcript(record.conversation or record.session, record.folder) is not None


async def _lock_of(session: Session) -> int:
    """Take the lock; what is left of a session that was lost may need a while to end."""
    deadline = time.monotonic() + (_ENDING_SECONDS if session.state == "lost" else 0)
    while True:
        try:
            return hold(session.id)
        except InvalidRequest:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(_LOOK_SECONDS)


def _real(folder: str) -> str:
    with contextlib.suppress(ValueError):  # no name of a file has a zero in it
        real = os.path.realpath(os.path.expanduser(folder))
        if os.path.isdir(real):
            return real
    raise SetupProblem(f"{folder!r} is not a folder; name one that exists.")


def _not_empty(prompt: str) -> None:
    if not prompt.strip():
        raise InvalidParams("Say what is to be done; the prompt is empty.")


def _checked(uuid: str, what: str = "id of a session") -> str:
    try:
        return str(UUID(uuid))
    except ValueError:
        raise InvalidParams(f"{uuid!r} is not the {what}; one looks like {uuid4()}.") from None
