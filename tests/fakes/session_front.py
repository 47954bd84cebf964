"""A front end of sessions: speaks to a running bridge over its private socket, as the commands and plug-ins do.

It keeps every event it is told, and lets a test wait for one. It does not know what a session is made of.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Self

from ide_bridge.cli.reach import Conversation
from ide_bridge.running import Running

__all__ = ["SessionFront"]

Json = dict[str, Any]
POLL = 0.005


class SessionFront:
    """One line to a bridge, for asking, and one more for each session that is watched."""

    def __init__(self, socket: str, pid: int) -> None:
        self._bridge = Running({"socket": socket, "pid": pid})
        self.events: dict[str, list[Json]] = {}
        self.numbers: dict[str, list[int]] = {}
        self._watching: list[Conversation] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for conversation in self._watching:
            conversation.hang_up()
        for thread in self._threads:
            thread.join(10)

    def ask(self, method: str, params: object = None, *, seconds: float = 60) -> Any:
        """Ask the bridge; raises what it answers with as an error."""
        with Conversation(self._bridge, seconds=seconds) as conversation:
            return conversation.request(method, params)

    def start(self, **params: object) -> str:
        """Start a session and watch it."""
        session = str(self.ask("startSession", params)["session"])
        self.watch(session)
        return session

    def watch(self, session: str, **params: object) -> None:
        """Keep the events of a session from now on."""
        conversation = Conversation(self._bridge)
        conversation.request("watchSession", {"session": session, **params})
        self.events.setdefault(session, [])
        self.numbers.setdefault(session, [])
        self._watching.append(conversation)
        self._threads.append(threading.Thread(target=self._listen, args=(conversation, session), daemon=True))
        self._threads[-1].start()

    def state(self, session: str) -> str:
        """What the session is doing."""
        return str(self.described(session)["state"])

    def described(self, session: str) -> Json:
        """What the bridge says of a session."""
        return next(shown for shown in self.ask("sessions") if shown["session"] == session)

    def wait_for(self, session: str, kind: str, *, after: int = 0, seconds: float = 40, **fields: object) -> Json:
        """The first event of a kind, with these fields, after so many events."""
        return self.wait_until(
            session, lambda event: event["kind"] == kind and fields.items() <= event.items(), after, seconds
        )

    def wait_until(
        self, session: str, wanted: Callable[[Json], bool], after: int = 0, seconds: float = 40
    ) -> Json:
        """The first event that is as wanted, after so many events."""
        deadline = time.monotonic() + seconds
        while True:
            known = self.events[session]
            for event in known[after:]:
                if wanted(event):
                    return event
            if time.monotonic() > deadline:
                shown = "\n".join(json.dumps(event)[:300] for event in known[-40:])
                raise AssertionError(f"not within {seconds:g} s; the last events are:\n{shown}")
            time.sleep(POLL)

    def count(self, session: str) -> int:
        """How many events there are until now."""
        return len(self.events[session])

    def told(self, session: str, kind: str) -> list[Json]:
        """All events of a kind."""
        return [event for event in self.events[session] if event["kind"] == kind]

    def _listen(self, conversation: Conversation, session: str) -> None:
        try:
            for message in _each(conversation):
                if message.get("method") == "sessionEvent":
                    self.numbers[session].append(message["params"]["number"])
                    self.events[session].append(message["params"]["event"])
        except Exception:  # noqa: BLE001 - the bridge is gone; what was heard is kept
            return


def _each(conversation: Conversation) -> Iterator[Json]:
    for frames in conversation.messages():
        for frame in frames:
            yield json.loads(frame)
