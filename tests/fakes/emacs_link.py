"""The bridge's end of a link, held by a test.

The plug-in starts a program that copies bytes between its own pipes and a socket; the test is at the other end
of that socket, and speaks the link as the bridge does.

It does not know any editor.
"""

import asyncio
import itertools
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

__all__ = ["LinkEnd", "LinkRefused", "link_end"]

PATIENCE = 20.0

RELAY = """
import os, socket, sys, threading
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
def inwards():
    while data := os.read(0, 65536):
        peer.sendall(data)
    os._exit(0)
threading.Thread(target=inwards, daemon=True).start()
while data := peer.recv(65536):
    while data:
        data = data[os.write(1, data):]
last = os.environ.get("RELAY_SAYS", "")
sys.stderr.write("a word for the log\\n" + last + "\\n" if last else "")
sys.exit(3 if last else 0)
"""


class LinkRefused(Exception):
    """The plug-in answered with an error."""


class LinkEnd:
    """Speaks with the plug-ins that attach, one after another."""

    def __init__(self, socket: Path) -> None:
        self.command = [sys.executable, "-c", RELAY, str(socket)]
        self.hello: Any = None
        self.heard: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {"share": "full"}
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._news = asyncio.Event()

    async def attached(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Listens to one plug-in until it goes."""
        self._writer = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split()[0])
                self._receive(json.loads(await reader.readexactly(length)))
        except asyncio.IncompleteReadError:
            writer.close()

    async def request(self, method: str, **params: Any) -> Any:
        """Ask the plug-in; an error raises `LinkRefused`."""
        number = next(self._ids)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE):
            return await answer

    def notify(self, method: str, **params: Any) -> None:
        self._send({"method": method, "params": params})

    async def notification(self, method: str, fits: Callable[[Any], bool] = bool) -> Any:
        """The first thing of this kind that the plug-in tells; what came before it is forgotten."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for number, message in enumerate(self.heard):
                    if message["method"] == method and fits(message.get("params")):
                        del self.heard[: number + 1]
                        return message.get("params")
                self._news.clear()
                await self._news.wait()

    def hang_up(self) -> None:
        """Close the socket, as a bridge does that is stopped."""
        assert self._writer is not None
        self._writer.close()

    def _receive(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": method, "id": number}:
                self._answer(method, number, message.get("params"))
            case {"method": _}:
                self.heard.append(message)
                self._news.set()
            case {"id": number, "error": error}:
                self._waiting.pop(number).set_exception(LinkRefused(error["code"], error["message"]))
            case {"id": number}:
                self._waiting.pop(number).set_result(message.get("result"))

    def _answer(self, method: str, number: object, params: Any) -> None:
        assert isinstance(number, int), "ids are integers"
        if method == "hello":
            self.hello = params
        result = self.answers.get(method, {"clients": []})
        if isinstance(result, LinkRefused):
            code, message = result.args
            self._send({"id": number, "error": {"code": code, "message": message}})
        else:
            self._send({"id": number, "result": result(params) if callable(result) else result})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._writer is not None, "no plug-in is attached"
        body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


@asynccontextmanager
async def link_end() -> AsyncIterator[LinkEnd]:
    """Somebody to attach to, through ``command``."""
    with tempfile.TemporaryDirectory(prefix="link-") as private:
        socket = Path(private) / "socket"
        end = LinkEnd(socket)
        server = await asyncio.start_unix_server(end.attached, socket, limit=1 << 26)
        try:
            yield end
        finally:
            server.close()
            if end._writer is not None:
                end._writer.close()
