"""The transcript of a session: what was said and done, page by page from its end, and what is added to it.

A file may have hundreds of megabytes, nearly all of it not for the eye. It is read backwards, no further than a
page needs. `news` reads on from where the last look ended. All of this may be called from any thread.

It does not know who writes the file, nor when there is something new: `watch` does.
"""

import os
import re
import threading
from collections.abc import Iterator

import msgspec

from ide_bridge.errors import InvalidParams
from ide_bridge.session.transcript.index import Index
from ide_bridge.session.transcript.places import agent_of, agents_folder
from ide_bridge.session.transcript.records import read_object, read_record
from ide_bridge.session.transcript.showing import show
from ide_bridge.session.transcript.shown import Notice, Prompt, Said, Shown, Tool, ToolResult
from ide_bridge.session.transcript.tree import Kind, Node

__all__ = ["Agent", "Branch", "News", "Page", "Transcript"]

_NEWS_BYTES = 4 * 1024 * 1024
_META_LIMIT = 64 * 1024
_TITLE_LIMIT = 200
_CURSOR = re.compile(r"(?P<place>[0-9]{1,18}):(?P<uuid>.*)", re.DOTALL)
_GAP = "Some of the conversation is missing from the transcript here."
_GONE = "This part of the transcript is no longer there; begin again with the newest page."


class Page(msgspec.Struct, frozen=True, rename="camel"):
    """A stretch of a branch, oldest first; `before` asks for the one before it, and is None at the beginning."""

    shown: tuple[Shown, ...]
    before: str | None


class News(msgspec.Struct, frozen=True, rename="camel"):
    """What was added to the file."""

    shown: tuple[Shown, ...]
    branched: bool = False
    """Whether it goes on from further back than the end of what was the living branch."""
    anew: bool = False
    """Whether the file is another one than before: forget everything, this is its beginning."""


class Branch(msgspec.Struct, frozen=True, rename="camel"):
    """A way through the tree that is not the living one; a page of it is asked for by its leaf."""

    leaf: str
    fork: str | None
    """The last record that it shares with the living branch, or with one listed before it."""
    title: str
    at: float


class Agent(msgspec.Struct, frozen=True, rename="camel"):
    """A sub-agent, with a transcript of its own; `call` is the tool call that started it, if that is known."""

    id: str
    path: str
    type: str = ""
    description: str = ""
    call: str | None = None


class Transcript:
    """One file, which need not be there yet."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._index = Index(path, side=agent_of(os.path.basename(path)) is not None)

    def page(self, before: str | None = None, limit: int = 50, *, leaf: str | None = None) -> Page:
        """The newest page of the living branch, or of the one with this leaf; or the page before another.

        A page is a little longer than the limit where it would begin in the middle of an answer.
        """
        with self._lock, self._index.opened():
            if before is None:
                self._index.anew = False
                self._index.catch_up()
            self._index.begin()
            return self._page(self._start(before, leaf), max(1, limit))

    def news(self) -> News | None:
        """What was added since the last newest page, or the last news; None if nothing was."""
        with self._lock, self._index.opened():
            anew, self._index.anew = self._index.anew, False
            leaf = None if anew else self._index.tree.newest
            added = self._index.read_on(_NEWS_BYTES)
            if not added and not anew:
                return None
            things = [thing for number in added for thing in self._shown(number)]
            branched = leaf is not None and bool(added) and self._branched(leaf)
            return News(tuple(self._with_agents(things)), branched, anew)

    def whole(self, uuid: str) -> tuple[Shown, ...]:
        """All that a record shows, with nothing cut."""
        with self._lock, self._index.opened():
            self._index.begin()
            number = self._index.find(uuid)
            return () if number is None else tuple(self._shown(number, whole=True))

    def branches(self) -> list[Branch]:
        """The branches that are not alive, the newest first; for this the whole file is read."""
        with self._lock, self._index.opened():
            self._index.catch_up()
            while self._index.back_up():
                pass
            return list(self._dead_branches())

    def agents(self) -> list[Agent]:
        """The sub-agents of the session."""
        folder = agents_folder(self.path)
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return []
        found = ((agent_of(name), os.path.join(folder, name)) for name in names)
        return [_agent(agent, path) for agent, path in found if agent is not None]

    # -- pages --------------------------------------------------------------------------------------------------

    def _start(self, before: str | None, leaf: str | None) -> int | None:
        if before is not None:
            match = _CURSOR.fullmatch(before)
            number = self._index.at(int(match["place"])) if match else None
            if match is None or number is None or self._index.tree[number].uuid != match["uuid"]:
                raise InvalidParams(_GONE)
            return self._index.parent(number)
        if leaf is None:
            return self._index.tree.newest
        if (number := self._index.find(leaf)) is None:
            raise InvalidParams(_GONE)
        return number

    def _page(self, start: int | None, limit: int) -> Page:
        things: dict[int, list[Shown]] = {}
        count, number = 0, start
        while number is not None:
            things[number] = self._shown(number)
            count += len(things[number])
            parent = self._index.parent(number)
            if parent is not None and self._index.is_gap(number, parent):
                things[number].insert(0, Notice(self._index.tree[number].uuid, 0.0, _GAP, level="warning"))
            if parent is None or (count >= limit and self._may_end(number, parent)):
                break
            number = parent
        way = list(things)
        for other in self._index.tree.company(way, self._index.same_answer):
            things[other] = self._shown(other)
        ordered = [thing for number in sorted(things) for thing in things[number]]
        more = bool(way) and self._index.parent(way[-1]) is not None
        return Page(tuple(self._with_agents(ordered)), _cursor(self._index.tree[way[-1]]) if more else None)

    def _may_end(self, number: int, parent: int) -> bool:
        """Whether a page can begin here: not within an answer, and not if nothing is left for the one before."""
        if self._index.tree[number].kind == Kind.RESULT or self._index.same_answer(number, parent):
            return False
        return bool(self._shown(parent))

    def _shown(self, number: int, *, whole: bool = False) -> list[Shown]:
        record = read_record(self._index.line(number))
        return [] if record is None else show(record, whole=whole)

    # -- branches -----------------------------------------------------------------------------------------------

    def _dead_branches(self) -> Iterator[Branch]:
        tree = self._index.tree
        known: set[int] = set()
        for leaf in tree.leaves():
            own: list[int] = []
            number: int | None = leaf
            while number is not None and number not in known:
                own.append(number)
                number = self._index.parent(number)
            known.update(own, tree.company(own if number is None else [*own, number], self._index.same_answer))
            if leaf != tree.newest and tree.has_words(own):
                title, at = self._title(own)
                yield Branch(tree[leaf].uuid, None if number is None else tree[number].uuid, title, at)

    def _title(self, numbers: list[int]) -> tuple[str, float]:
        """The first words of a branch, and when they were said."""
        for number in reversed(numbers):
            for thing in self._shown(number):
                if isinstance(thing, Prompt | Said):
                    return " ".join(thing.text.split())[:_TITLE_LIMIT], thing.at
        return "", 0.0

    def _branched(self, leaf: int) -> bool:
        """Whether the living branch has left out something that was on it when it ended in this leaf."""
        tree = self._index.tree
        way: list[int] = []
        number = tree.newest
        while number is not None and number > leaf:
            way.append(number)
            number = self._index.parent(number)
        if number is None:
            return True
        way.append(number)
        kept = {*way, *tree.company(way, self._index.same_answer)}
        return tree.has_words(each for each in range(number + 1, leaf + 1) if each not in kept)

    # -- sub-agents ---------------------------------------------------------------------------------------------

    def _with_agents(self, things: list[Shown]) -> Iterator[Shown]:
        """Tell of each call which sub-agent it started: new CLIs note it in a file, old ones in the result."""
        started: dict[str, str] = {}
        if any(isinstance(thing, Tool) and thing.tool in ("Agent", "Task") for thing in things):
            started = {agent.call: agent.id for agent in self.agents() if agent.call is not None}
        started |= {
            each.id: each.agent for each in things if isinstance(each, ToolResult) and each.agent is not None
        }
        for thing in things:
            if isinstance(thing, Tool) and thing.id in started:
                yield msgspec.structs.replace(thing, agent=started[thing.id])
            else:
                yield thing


def _cursor(node: Node) -> str:
    # The place as well: where a compaction has written a record twice, its uuid alone would not say which.
    return f"{node.place}:{node.uuid}"


def _agent(agent: str, path: str) -> Agent:
    try:
        with open(path.removesuffix(".jsonl") + ".meta.json", "rb") as file:
            meta = read_object(file.read(_META_LIMIT))
    except OSError:
        meta = {}
    told = [
        value if isinstance(value := meta.get(key), str) else ""
        for key in ("agentType", "description", "toolUseId")
    ]
    return Agent(agent, path, told[0], told[1], told[2] or None)
