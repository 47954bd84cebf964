"""The CLI's end of the socket: speaks as Claude Code does, over a real WebSocket.

It does not know the bridge's insides: it has a port, a token, and what the wire carries. ``knock`` is for those
who have no manners: it sends the head of a request as it is given and tells how it was answered.

What comes while something else is waited for is set aside, in order: several requests may be open at once, and
notifications come when they come. ``unread`` is what nobody has asked for.
"""

import asyncio
import itertools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

from ide_bridge.bridge import Bridge

__all__ = [
    "TOKEN_HEADER",
    "ClaudeClient",
    "Refused",
    "connect",
    "connect_to",
    "eventually",
    "knock",
    "texts",
    "upgrade_head",
]

TOKEN_HEADER = "X-Claude-Code-Ide-Authorization"
PATIENCE = 10.0
CLI_LIMIT = 16 * 1024 * 1024


class Refused(Exception):
    """The answer was an error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ClaudeClient:
    """One connected CLI."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self.socket = socket
        self.unread: list[Any] = []
        self._ids = itertools.count()

    async def initialize(self, version: str = "2025-11-25", name: str = "claude-code", pid: int = 4711) -> Any:
        """The CLI's first words, in its order; gives the answer to ``initialize``."""
        info = {"name": name, "version": "2.1.326", "title": "Claude Code"}
        params = {"protocolVersion": version, "capabilities": {"roots": {"listChanged": True}}, "clientInfo": info}
        answer = await self.request("initialize", params)
        await self.notify("notifications/initialized")
        await self.notify("ide_connected", {"pid": pid})
        return answer

    async def introduce(self, name: str = "claude-code", pid: int = 4711) -> None:
        """All the CLI says before the user says anything."""
        await self.initialize(name=name, pid=pid)
        await self.request("tools/list")

    async def request(self, method: str, params: object = None) -> Any:
        """Ask and wait for the answer; an error raises ``Refused``."""
        return await self.answer(await self.ask(method, params))

    async def ask(self, method: str, params: object = None) -> int:
        """Ask without waiting; gives the id."""
        asked = next(self._ids)
        await self._send({"id": asked, "method": method}, params)
        return asked

    async def answer(self, asked: int) -> Any:
        """Wait for the answer to what was asked; an error raises ``Refused``."""
        return result_of(await self._first(lambda message: message.get("id") == asked), asked)

    async def notification(self, method: str) -> Any:
        """Wait for the next notification of that name; gives its params."""
        return (await self._first(lambda message: message.get("method") == method)).get("params")

    async def notify(self, method: str, params: object = None) -> None:
        await self._send({"method": method}, params)

    async def call_tool(self, name: str, arguments: object = None) -> Any:
        return await self.answer(await self.ask_tool(name, arguments))

    async def ask_tool(self, name: str, arguments: object = None) -> int:
        """Call a tool without waiting; gives the id."""
        given = {} if arguments is None else {"arguments": arguments}
        return await self.ask("tools/call", {"name": name, **given, "_meta": {"progressToken": 1}})

    async def say(self, message: str | bytes) -> Any:
        """Send a message as it is, text as a text frame and bytes as a binary one; gives the answer."""
        if isinstance(message, str):
            await self.socket.send_str(message)
        else:
            await self.socket.send_bytes(message)
        return await self.receive()

    async def receive(self) -> Any:
        """The next message of the bridge, decoded."""
        return self.unread.pop(0) if self.unread else await self._next()

    async def _first(self, fits: Callable[[Any], bool]) -> Any:
        for number, message in enumerate(self.unread):
            if fits(message):
                return self.unread.pop(number)
        async with asyncio.timeout(PATIENCE):
            while not fits(message := await self._next()):
                self.unread.append(message)
        return message

    async def _next(self) -> Any:
        message = await self.socket.receive(PATIENCE)
        assert message.type is WSMsgType.TEXT, f"not a message: {message}"
        return json.loads(message.data)

    async def closed(self) -> int | None:
        """Wait until the bridge has closed; gives the close code."""
        while (message := await self.socket.receive(PATIENCE)).type is WSMsgType.TEXT:
            pass
        assert message.type in {WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.CLOSING}, message
        return self.socket.close_code

    async def _send(self, message: dict[str, object], params: object) -> None:
        given = {} if params is None else {"params": params}
        await self.socket.send_str(json.dumps({"jsonrpc": "2.0", **message, **given}))


def result_of(answer: Any, asked: object) -> Any:
    """The result in an answer to that id."""
    assert answer["jsonrpc"] == "2.0"
    assert answer["id"] == asked
    if "error" in answer:
        assert "result" not in answer
        raise Refused(**answer["error"])
    return answer["result"]


def texts(answer: Any) -> list[str]:
    """The texts of a tool's result that is a success."""
    assert answer.keys() == {"content"}, answer
    assert all(block.keys() == {"type", "text"} and block["type"] == "text" for block in answer["content"])
    return [block["text"] for block in answer["content"]]


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until something is true."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def connect(port: int, token: str, limit: int = CLI_LIMIT) -> AsyncIterator[ClaudeClient]:
    """Connect as the CLI does; it reads no message over the limit."""
    headers = {TOKEN_HEADER: token, "User-Agent": "claude-code/2.1.326 (cli)"}
    async with (
        ClientSession() as session,
        session.ws_connect(
            f"http://127.0.0.1:{port}/", headers=headers, protocols=("mcp",), compress=15, max_msg_size=limit
        ) as socket,
    ):
        assert socket.protocol == "mcp", "the CLI drops a server that does not speak mcp"
        yield ClaudeClient(socket)


def connect_to(bridge: Bridge, limit: int = CLI_LIMIT) -> Any:
    """Connect to a bridge of this process."""
    return connect(bridge.port, Path(bridge.token_file).read_text(encoding="ascii"), limit)


class Answer(NamedTuple):
    """What came back before any WebSocket was spoken."""

    status: int
    head: str
    body: str


def upgrade_head(port: int, *headers: str, host: str | None = None) -> list[str]:
    """The lines with which a WebSocket begins, and further ones."""
    return [
        "GET / HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{port}'}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: mcp",
        *headers,
    ]


async def knock(port: int, lines: Iterable[str]) -> Answer:
    """Send these lines as the head of a request; gives status, head and body of the answer."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1"))
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = re.search(r"^content-length: *(\d+)", head, re.IGNORECASE | re.MULTILINE)
            body = (await reader.readexactly(int(length[1]) if length else 0)).decode()
        finally:
            writer.close()
            await writer.wait_closed()
    return Answer(int(head.split()[1]), head, body)
