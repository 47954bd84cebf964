"""Sessions in this process, run by a CLI without a model: the bridge, and a front end on its private socket.

It does not know what is tested. What it starts it ends.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ide_bridge.bridge import Bridge
from ide_bridge.errors import RemoteError
from ide_bridge.wire.framing import ContentLength
from tests.fakes import recorded_cli
from tests.fakes.surroundings import at_home

__all__ = ["Front", "hosted"]

Json = dict[str, Any]
PATIENCE = 20.0


class Front:
    """A line to the bridge: answers come to those who asked, events are kept by session."""

    def __init__(self, bridge: Bridge, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.bridge = bridge
        self.events: dict[str, list[Json]] = {}
        self.numbers: dict[str, list[int]] = {}
        self.told: list[tuple[str, Json]] = []
        self._reader, self._writer = reader, writer
        self._framing = ContentLength()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._news = asyncio.Condition()
        self._listening = asyncio.create_task(self._listen())

    async def ask(self, method: str, **params: object) -> Any:
        """Ask; raises what is answered as an error."""
        number = len(self._asked) + 1
        self._asked[number] = asyncio.get_running_loop().create_future()
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._writer.write(self._framing.encode(json.dumps(request).encode()))
        await self._writer.drain()
        return await asyncio.wait_for(self._asked[number], PATIENCE)

    async def start(self, prompt: str | None = None, **params: object) -> str:
        """Start a session and watch it."""
        started = await self.ask("startSession", prompt=prompt, command=recorded_cli.COMMAND, **params)
        await self.ask("watchSession", session=started["session"])
        return str(started["session"])

    async def shown(self, session: str) -> Json:
        """What the bridge says of a session."""
        return next(shown for shown in await self.ask("sessions") if shown["session"] == session)

    async def until(self, session: str, wanted: Callable[[Json], bool], after: int = 0) -> Json:
        """The first event that is as wanted, after so many."""
        async with asyncio.timeout(PATIENCE), self._news:
            while True:
                for event in self.events.get(session, [])[after:]:
                    if wanted(event):
                        return event
                await self._news.wait()

    async def kind(self, session: str, kind: str, after: int = 0, **fields: object) -> Json:
        """The first event of a kind with these fields."""
        return await self.until(
            session, lambda event: event["kind"] == kind and fields.items() <= event.items(), after
        )

    async def hang_up(self) -> None:
        """Leave without a word."""
        self._writer.close()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        while data := await self._reader.read(1 << 18):
            for frame in self._framing.feed(data):
                assert isinstance(frame, bytes)
                self._take(json.loads(frame))
            async with self._news:
                self._news.notify_all()

    def _take(self, message: Json) -> None:
        if message.get("method") == "sessionEvent":
            params = message["params"]
            self.events.setdefault(params["session"], []).append(params["event"])
            self.numbers.setdefault(params["session"], []).append(params["number"])
        elif "method" in message:
            self.told.append((message["method"], message["params"]))
        elif "error" in message:
            self._asked[message["id"]].set_exception(
                RemoteError(message["error"]["code"], message["error"]["message"])
            )
        else:
            self._asked[message["id"]].set_result(message["result"])


class Hosted:
    """A bridge in a home of its own, and any number of front ends."""

    def __init__(self, bridge: Bridge, project: Path) -> None:
        self.bridge = bridge
        self.project = project
        self.fronts: list[Front] = []

    async def front(self) -> Front:
        """One more front end."""
        path = next(Path(os.environ["HOME"]).rglob(f"{os.getpid()}-{self.bridge.port}.sock"))
        self.fronts.append(Front(self.bridge, *await asyncio.open_unix_connection(path)))
        return self.fronts[-1]


@asynccontextmanager
async def hosted(**variables: str) -> AsyncIterator[Hosted]:
    """A bridge for an empty project, in a home that is thrown away."""
    with at_home() as home:
        os.environ.update(variables)
        project = home.path / "project"
        project.mkdir()
        async with Bridge(project) as bridge:
            stage = Hosted(bridge, project)
            try:
                yield stage
            finally:
                for front in stage.fronts:
                    await front.hang_up()
