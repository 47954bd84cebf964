"""One session: a CLI, what it is asked and what it says.

1. Every prompt goes through the ledger, which knows what the CLI may not have; that is sent whenever a CLI begins
   or comes back.
2. The state is what the CLI says it is; versions that say nothing work from a prompt until its result. An open
   approval makes it ``waiting``, whatever else is true.
3. What the CLI asks and we do not understand is refused at once, or it would wait for ever.
4. When the CLI is gone its approvals are closed and its requests fail. The session is ``stopped`` if we wanted
   that, and ``lost`` otherwise.

It does not know how the CLI was started, who watches, or what other sessions there are.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from msgspec import Raw

from ide_bridge.errors import BridgeError, InvalidParams, InvalidRequest
from ide_bridge.session import events
from ide_bridge.session.approvals import Approval, Closed, Inbox
from ide_bridge.session.approvals.replies import Denied, Verdict
from ide_bridge.session.approvals.titles import title_of
from ide_bridge.session.channel import Channel, Returned
from ide_bridge.session.control import Answered, Broken, Failed, Said, Withdrawn
from ide_bridge.session.control import Event as ControlEvent
from ide_bridge.session.control.messages import Assistant, Message, Result, StreamEvent, System, User
from ide_bridge.session.control.questions import Asked, CanUseTool
from ide_bridge.session.control.reports import Init, SessionStateChanged, SessionTitleChanged, Status
from ide_bridge.session.control.requests import Initialize, Interrupt, Request, SetModel, SetPermissionMode
from ide_bridge.session.ledger import Ledger
from ide_bridge.session.log import Log
from ide_bridge.session.records import Record, Records
from ide_bridge.session.run import Process, Run
from ide_bridge.session.telling import told

__all__ = ["Session", "first_line"]

logger = logging.getLogger(__name__)

START_SECONDS = 60.0
REQUEST_SECONDS = 15.0
_INTERRUPT_SECONDS = 1.0
_TITLE_LIMIT = 80
_HAD_IT = "Claude had this prompt before the session was lost; ask it to go on."
MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "delegate", "dontAsk", "plan")
_STATES: dict[str, events.StateName] = {"running": "working", "requires_action": "working", "idle": "idle"}


class Session:
    """One session, live or not."""

    def __init__(self, record: Record, records: Records, inbox: Inbox, changed: Callable[[], None]) -> None:
        self.record = record
        self.log = Log()
        self.problem = ""
        self._records = records
        self._inbox = inbox
        self._changed = changed
        self._state: events.StateName = "stopped" if record.stopped else "lost"
        self._phase: events.StateName = "idle"
        self._says_its_state = False
        self._in_turn = False
        self._waiting: dict[str, Approval] = {}
        self._ledger = Ledger(record)
        self._cost_before = 0.0
        self._is_kept = True
        self._run: Run | None = None
        self._task: asyncio.Task[None] | None = None

    # -- what is known of it --------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The CLI's own id for it, chosen by us."""
        return self.record.session

    @property
    def state(self) -> events.StateName:
        """What it is doing."""
        return self._state

    @property
    def is_live(self) -> bool:
        """Whether there is a CLI."""
        return self._run is not None

    def described(self) -> dict[str, object]:
        """What ``sessions`` shows of it."""
        record = self.record
        shown: dict[str, object] = {
            "session": record.session,
            "folder": record.folder,
            "title": record.title,
            "state": self._state,
            "model": record.model,
            "mode": record.mode,
            "version": record.version,
            "pid": self._run.process.pid if self._run else None,
            "over": record.over,
            "created": record.created,
            "changed": record.changed,
            "cost": record.cost,
            "approvals": [approval.id for approval in self._waiting.values()],
            "prompts": record.prompts,
        }
        if record.fork_of:
            shown["forkOf"] = record.fork_of
        if self.problem:
            shown["problem"] = self.problem
        return shown

    # -- running it -----------------------------------------------------------------------------------------

    def begin(self, channel: Channel, process: Process) -> None:
        """The CLI is there; from now on it is talked to."""
        self.problem = ""
        self.record.stopped = False
        self._phase, self._says_its_state, self._in_turn = "starting", False, False
        self._cost_before = self.record.cost or 0.0
        self._ledger.begin()
        self._run = Run(channel, process, self.record.version)
        self._task = asyncio.create_task(self._live(self._run))
        self._save()
        self._look()

    def begins_anew(self) -> None:
        """The CLI was ended before it had written anything down; only what was not sent yet is still known."""
        if self.record.begun:
            self.log.add(events.Notice("warning", "Claude was ended before it wrote this conversation down."))

    @property
    def open_prompts(self) -> list[str]:
        """The uuids of the prompts that are not known to be done."""
        return self._ledger.open

    def had(self, uuids: Collection[str]) -> None:
        """An earlier CLI had these prompts, and was ended before it was done with them."""
        self._ledger.cross_out(uuids)
        if uuids:
            self.log.add(events.Notice("info", _HAD_IT))

    async def stop(self) -> None:
        """End it on purpose, and return when nothing of it runs any more."""
        if (run := self._run) is not None:
            run.wanted = run.ending = True
            if self._in_turn:
                with contextlib.suppress(BridgeError):
                    await run.ask(Interrupt(), _INTERRUPT_SECONDS)
            await run.process.end()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def over(self) -> None:
        """Wait until a CLI that is on its way out is gone."""
        if self._run is not None and self._run.ending and self._task is not None:
            await asyncio.wait([self._task])

    # -- what it is asked -----------------------------------------------------------------------------------

    def prompt(self, text: str, uuid: str | None = None, by: str = "") -> str:
        """Have something done; gives the uuid by which the CLI knows it. The same uuid again changes nothing."""
        prompt = self._ledger.add(text, uuid)
        if prompt is None:
            return str(uuid)
        self.record.title = self.record.title or first_line(text)
        self._save()
        self.log.add(events.Prompt(prompt.uuid, text, by))
        if self._run is not None and self._run.ready:
            self._send_prompts(self._run)
        if self._phase == "idle":
            self._phase = "working"
        self._look()
        return prompt.uuid

    async def interrupt(self) -> None:
        """Break off what it is doing."""
        await self.request(Interrupt())

    async def set_model(self, model: str) -> None:
        """Let another model go on."""
        await self.request(SetModel(model))
        self.record.model = model
        self._save()

    async def set_mode(self, mode: str) -> None:
        """Have it ask more or less."""
        if mode not in MODES:
            raise InvalidParams(f"{mode!r} is no permission mode; there are {', '.join(MODES)}.")
        await self.request(SetPermissionMode(mode))
        self.record.mode = mode
        self._save()

    async def request(self, request: Request) -> dict[str, Any]:
        """Ask the CLI itself; raises ``RemoteError`` with its words, or says that it does not answer."""
        run = self._run
        if run is None:
            raise InvalidRequest(f"Session {self.id[:8]} is not running; resume it first.")
        if not run.ready and not isinstance(request, Initialize):
            await run.started.wait()
        return await run.ask(request, REQUEST_SECONDS)

    # -- approvals ------------------------------------------------------------------------------------------

    def approval_asked(self, approval: Approval) -> None:
        """A question of this session is open."""
        self._waiting[approval.id] = approval
        self.log.add(events.ApprovalAsked(approval))
        self._look()

    def approval_closed(self, closed: Closed) -> None:
        """A question of this session is open no longer."""
        if self._waiting.pop(closed.approval.id, None) is not None:
            self.log.add(events.ApprovalClosed(closed.approval.id, closed.outcome, closed.by, closed.reason))
            self._look()

    # -- the conversation -----------------------------------------------------------------------------------

    async def _live(self, run: Run) -> None:
        writing = asyncio.create_task(run.write())
        starting = asyncio.create_task(self._start(run))
        try:
            async for data in run.channel:
                if isinstance(data, Returned):
                    starting.cancel()
                    starting = asyncio.create_task(self._start(run, again=True))
                else:
                    await self._hear(run, data)
        except Exception:
            logger.exception("a session ended badly")
        finally:
            run.ending = True
            for task in (writing, starting):
                task.cancel()
            await asyncio.gather(writing, starting, return_exceptions=True)
            await self._ended(run)

    async def _start(self, run: Run, *, again: bool = False) -> None:
        """Say hello, find the questions that are open, and send what the CLI may not have."""
        try:
            await run.ask(Initialize(), START_SECONDS)
        except BridgeError as problem:
            if run is self._run:
                run.ending = True
                self.problem = self.problem or str(problem)
                await run.process.end()
            return
        run.ready = True
        run.started.set()
        if again and run.channel.missed:
            self._missed_something()
        for line in run.unanswered():
            run.send(line)
        self._send_prompts(run)
        if self._phase == "starting":
            self._phase = "idle" if self._ledger.is_clear else "working"
        self._look()

    def _send_prompts(self, run: Run) -> None:
        for prompt in self._ledger.to_send():
            run.send(run.control.prompt(prompt.text, prompt.uuid))

    def _missed_something(self) -> None:
        """The oldest CLIs do not say again what they said while they were away, and it may have been the end."""
        self.log.add(events.Notice("warning", "Some of what Claude said did not arrive; the transcript has it."))
        if not self._says_its_state:
            self._phase, self._in_turn = "idle", False

    async def _hear(self, run: Run, data: bytes) -> None:
        for number, event in enumerate(run.control.receive(data)):
            if number % 50 == 49:
                await asyncio.sleep(0)  # a chunk may hold thousands, and there are other sessions
            self._take(run, event)

    def _take(self, run: Run, event: ControlEvent) -> None:
        match event:
            case Said():
                self._said(event.message)
            case Asked():
                self._asked(run, event)
            case Withdrawn():
                self._inbox.withdraw(self.id, event.request_id)
            case Answered() | Failed():
                run.answered(event)
                for pending in run.control.pending(event.pending) if event.request_id in run.hellos else ():
                    self._take(run, pending)
            case Broken():
                self.log.add(
                    events.Notice("warning", f"The CLI said something that cannot be read: {event.reason}")
                )

    def _said(self, message: Message) -> None:
        if isinstance(message, User) and message.is_replay and message.uuid is not None:
            self._heard(message.uuid)
        elif isinstance(message, System):
            self._heed(message)
        elif isinstance(message, Assistant | StreamEvent) and not self._in_turn:
            self._in_turn, self._phase = True, "working"
            self._look()
        for event in told(message, lambda tool, given: title_of(tool, given, self.record.folder)):
            self.log.add(event)
        if isinstance(message, Result):
            self._turn_ended(message)
        self.log.add(events.Message(Raw(message.raw)))

    def _heed(self, message: System) -> None:
        match message:
            case Init():
                self.record.model = message.model or self.record.model
                self.record.mode = message.permission_mode or self.record.mode
                self._in_turn = True
                self._phase = "working"
                self._named(message.session_id)
            case SessionStateChanged() if message.state in _STATES:
                self._says_its_state = True
                self._phase = _STATES[message.state] if self._ledger.is_clear else "working"
            case SessionTitleChanged() if message.title:
                self.record.title = first_line(message.title)
            case Status() if message.permission_mode:
                self.record.mode = message.permission_mode
            case _:
                pass
        self._look()

    def _named(self, conversation: str | None) -> None:
        """``/clear`` begins another conversation, in another file; that is the one to resume then."""
        if conversation and conversation != (self.record.conversation or self.id):
            self.record.conversation = conversation
            self._save()

    def _turn_ended(self, message: Result) -> None:
        self._in_turn = False
        self._ledger.done()
        if (total := message.total_cost_usd) is not None:  # some count anew when they are resumed
            self.record.cost = total if total >= self._cost_before else self._cost_before + total
        if not self._says_its_state and self._ledger.is_clear:
            self._phase = "idle"
        self._save()
        self._look()

    def _heard(self, uuid: str) -> None:
        if not self._ledger.heard(uuid):
            return
        if not self._in_turn:  # an earlier CLI had it: nothing will come of it
            self.had([uuid])
            if self._ledger.is_clear:
                self._phase = "idle"
            self._look()
        self._save()

    def _asked(self, run: Run, asked: Asked) -> None:
        if not isinstance(asked.request, CanUseTool):
            run.send(run.control.refuse(asked.request_id, "This controller does not offer that."))
            return

        def tell(verdict: Verdict) -> None:
            if isinstance(verdict, Denied):
                run.send(run.control.deny(asked.request_id, verdict.message, interrupt=verdict.interrupt))
            else:
                run.send(run.control.allow(asked.request_id, verdict.input, verdict.permissions))

        self._inbox.ask(self.id, self.record.folder, asked.request_id, asked.request, tell)

    async def _ended(self, run: Run) -> None:
        code = await run.process.end()
        run.close()
        self._run = None
        self._inbox.leave(self.id)
        ended_well = run.wanted or (code == 0 and self._phase == "idle" and not self.problem)
        self.record.stopped = ended_well
        if not ended_well:
            self.problem = self.problem or _last_words(run.process.complaint) or f"The CLI ended with code {code}."
        self._phase = "idle"
        self._save()
        self.log.add(events.Ended(0 if run.wanted else code, "" if ended_well else self.problem))
        self._look()

    # -- keeping --------------------------------------------------------------------------------------------

    def _save(self) -> None:
        self.record.changed = time.time()
        try:
            self._records.save(self.record)
            self._is_kept = True
        except BridgeError as problem:
            if self._is_kept:
                self.log.add(events.Notice("warning", f"{problem} What is asked now is lost if the bridge ends."))
            self._is_kept = False

    def _look(self) -> None:
        """Find out the state, and tell if it is another."""
        if self._run is None:
            state: events.StateName = "stopped" if self.record.stopped else "lost"
        else:
            state = "waiting" if self._waiting and self._phase != "starting" else self._phase
        if state != self._state:
            self._state = state
            self.log.add(events.State(state))
            self._changed()


def _last_words(complaint: str) -> str:
    """The last line of a complaint that was meant for people."""
    lines = [line.strip() for line in complaint.splitlines() if not line.lstrip().startswith("{")]
    return next((line for line in reversed(lines) if line), "")


def first_line(text: str) -> str:
    """The beginning of a text, short enough for a list."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _TITLE_LIMIT else f"{line[: _TITLE_LIMIT - 1]}…"
