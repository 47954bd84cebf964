"""A plug-in as a bridge meets one: it speaks the link over the private socket, and the test is its editor.

It does not know what a bridge makes of what it says.
"""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any, Self

__all__ = ["Plugin"]

PATIENCE = 5.0
FEATURES = ("selection", "diagnostics", "diff", "focus", "dirty")


class Plugin:
    """Answers with what `answers` has for a method, a value or a function of the params; it knows no others."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())
        self.answers: dict[str, Any] = {}
        self.silent: set[str] = set()
        self.requests: list[tuple[str, Any]] = []
        self.notifications: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    @classmethod
    async def connect(cls, socket: str) -> Self:
        return cls(*await asyncio.open_unix_connection(socket))

    def send(self, message: object) -> None:
        body = json.dumps(message).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def tell(self, method: str, **params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        number = next(self._ids)
        self._asked[number] = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE):
            return await self._asked[number]

    async def hello(self, name: str = "Plug", **further: object) -> dict[str, Any]:
        hello = {"link": 1, "editor": name, "version": "1.0", "features": FEATURES, "folders": [], "pid": 4711}
        return await self.ask("hello", **{**hello, **further})

    async def told(self, method: str) -> Any:
        """The params of the next notification of that name."""
        async with asyncio.timeout(PATIENCE):
            while True:
                name, params = await self.notifications.get()
                if name == method:
                    return params

    async def asked(self, method: str) -> Any:
        """The params with which it was asked, last."""
        async with asyncio.timeout(PATIENCE):
            while not (found := [params for name, params in self.requests if name == method]):
                await asyncio.sleep(0.005)
        return found[-1]

    async def close(self) -> None:
        self._writer.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        while header := await self._reader.readline():
            await self._reader.readline()
            self._take(json.loads(await self._reader.readexactly(int(header.split(b":")[1]))))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._asked.pop(message["id"]).set_result(message)
        elif "id" not in message:
            self.notifications.put_nowait((message["method"], message.get("params")))
        else:
            self.requests.append((message["method"], message.get("params")))
            self._answer(message)

    def _answer(self, message: dict[str, Any]) -> None:
        method = message["method"]
        if method in self.silent:
            return
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method in self.answers:
            answer = self.answers[method]
            reply["result"] = answer(message.get("params")) if isinstance(answer, Callable) else answer
        else:
            reply["error"] = {"code": -32601, "message": f"no {method}"}
        self.send(reply)
