"""The ledger of a session's prompts: which the CLI may not have, so that each is run once and none is lost.

1. A prompt is written down before it is sent. The CLI's echo says that it has heard it, and the end of the turn
   that it is done: then it is crossed out. What a CLI heard and did not live to write down is not lost with it.
2. Older versions echo no slash command. One that was sent is done with the next turn in which nothing was heard.
3. What is in the transcript was taken up, and is never sent again. The rest is, under the same uuid, and no CLI
   runs a uuid twice.

It does not know how a prompt travels, or where the record is kept.
"""

from collections.abc import Collection
from uuid import uuid4

import msgspec

from ide_bridge.errors import Unsupported
from ide_bridge.session.records import Record, Unconfirmed

__all__ = ["Ledger"]

WAITING_LIMIT = 500
_REMEMBERED = 10_000


class Ledger:
    """The prompts in a record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._known: dict[str, None] = dict.fromkeys(prompt.uuid for prompt in record.unconfirmed)
        self._sent: set[str] = set()
        self._was_heard = False

    @property
    def is_clear(self) -> bool:
        """Whether the CLI has heard everything."""
        return all(prompt.heard for prompt in self._record.unconfirmed)

    @property
    def open(self) -> list[str]:
        """The uuids that are not crossed out."""
        return [prompt.uuid for prompt in self._record.unconfirmed]

    def add(self, text: str, uuid: str | None) -> Unconfirmed | None:
        """Write a prompt down; ``None`` if it is known already. Without a uuid it gets one."""
        if uuid is not None and uuid in self._known:
            return None
        if len(self._record.unconfirmed) >= WAITING_LIMIT:
            raise Unsupported(f"{WAITING_LIMIT} prompts are waiting; let the session come to them first.")
        prompt = Unconfirmed(uuid or str(uuid4()), text)
        self._record.unconfirmed = (*self._record.unconfirmed, prompt)
        self._record.prompts += 1
        self._remember(prompt.uuid)
        return prompt

    def to_send(self) -> list[Unconfirmed]:
        """What the CLI may not have; it counts as sent from now on."""
        waiting = [prompt for prompt in self._record.unconfirmed if not prompt.heard]
        self._sent |= {prompt.uuid for prompt in waiting}
        return waiting

    def begin(self) -> None:
        """Another CLI takes over: what is not crossed out by now, it has not heard."""
        self._sent.clear()
        self._was_heard = False
        self._record.unconfirmed = tuple(
            msgspec.structs.replace(prompt, heard=False) for prompt in self._record.unconfirmed
        )

    def heard(self, uuid: str) -> bool:
        """The CLI echoes something; gives whether it is one of these prompts, for it has echoes of its own too."""
        if uuid not in self.open:
            return False
        self._was_heard = True
        self._record.begun = True
        self._record.unconfirmed = tuple(
            msgspec.structs.replace(prompt, heard=True) if prompt.uuid == uuid else prompt
            for prompt in self._record.unconfirmed
        )
        return True

    def done(self) -> None:
        """A turn has ended."""
        left = [prompt for prompt in self._record.unconfirmed if not prompt.heard]
        if not self._was_heard and left and left[0].uuid in self._sent and left[0].text.lstrip().startswith("/"):
            del left[0]
        self._was_heard = False
        self._record.unconfirmed = tuple(left)

    def cross_out(self, uuids: Collection[str]) -> None:
        """These were taken up."""
        kept = (prompt for prompt in self._record.unconfirmed if prompt.uuid not in uuids)
        self._record.unconfirmed = tuple(kept)

    def _remember(self, uuid: str) -> None:
        self._known[uuid] = None
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
