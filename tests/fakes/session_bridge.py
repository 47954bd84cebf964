"""A bridge with sessions, as plug-ins see it: scripted, and without any session behind it.

An editor starts a small program in place of ``ide-bridge attach``, which brings the link to this process. What the
plug-in asks is written down and answered as the script has it; what a bridge would tell is told when a test wants.

It does not know which editor is at the other end, or how a real bridge comes by what it tells.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

__all__ = ["OTHER", "SESSION", "Refusal", "SessionBridge", "approval", "session_bridge"]

OTHER = "11112222-0000-4000-8000-000000000000"
SESSION = "0a1b2c3d-0000-4000-8000-000000000000"
PATIENCE = 20.0
PIPE = """
import os, socket, sys, threading
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def bring():
    while data := line.recv(1 << 16):
        while data:
            data = data[os.write(1, data):]
    os._exit(0)
threading.Thread(target=bring, daemon=True).start()
while data := os.read(0, 1 << 16):
    line.sendall(data)
"""

Json = dict[str, Any]


class Refusal(Exception):
    """An error as the answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def approval(name: str, tool: str = "Bash", **more: Any) -> Json:
    """A question for permission as it is told."""
    given = more.pop("input", {"command": "mkdir x"})
    return {
        "id": name, "session": SESSION, "requestId": f"r-{name}", "tool": tool, "kind": "tool",
        "title": f"{tool}: mkdir x", "input": given, "suggestions": [], "description": None, "reason": None,
        "blockedPath": None, "agent": None, "asked": 1.0, "until": None, **more,
    }  # fmt: skip


class SessionBridge:
    """One end of the link; ``command`` is what the editor runs to have the other."""

    def __init__(self) -> None:
        self.command = [sys.executable, "-c", PIPE]
        self.asked: list[tuple[str, Json]] = []
        self.by = ""
        self.live: list[Json] = []
        self.open: list[Json] = []
        self.answers: dict[str, Callable[[Json], Any]] = {
            "hello": self._hello,
            "status": self._status,
            "share": lambda _params: "full",
            "ask": self._ask,
            "sessions": lambda _params: self.live,
            "watchSession": lambda params: {"session": self.start(params["session"]), "next": 1},
            "approvals": lambda _params: self.open,
            "decide": self._decide,
            "interrupt": lambda _params: {},
            "stopSession": lambda params: self.start(params["session"]) | {"state": "stopped"},
        }
        self._writers: list[asyncio.StreamWriter] = []
        self._hearing = 0
        self._numbers = itertools.count(1)

    def refuse(self, method: str, code: int, message: str) -> None:
        """From now on a method is answered with an error."""

        def answer(_params: Json) -> Any:
            raise Refusal(code, message)

        self.answers[method] = answer

    async def wait_for(self, method: str, times: int = 1) -> Json:
        """The parameters of what the plug-in asks, once it has asked it as often."""
        async with asyncio.timeout(PATIENCE):
            while len(calls := [params for name, params in self.asked if name == method]) < times:
                await asyncio.sleep(0.005)
        return calls[times - 1]

    def calls(self, method: str) -> list[Json]:
        """The parameters of all that was asked under this name."""
        return [params for name, params in self.asked if name == method]

    def start(self, session: str) -> Json:
        """Have a session, or have one again."""
        if found := [one for one in self.live if one["session"] == session]:
            found[0]["state"] = "idle"
            return found[0]
        started = {"session": session, "title": "a title", "state": "idle", "changed": 1.0, "folder": "/x"}
        self.live.append(started)
        return started

    def happens(self, kind: str, session: str = SESSION, **details: Any) -> None:
        """Tell an event of a session."""
        event = {"kind": kind, **details}
        self.notify("sessionEvent", {"session": session, "number": next(self._numbers), "event": event})

    def ask_permission(self, question: Json) -> None:
        """Tell a question for permission to whoever is attached and to who watches."""
        self.open.append(question)
        self.notify("approvalAsked", question)
        self.happens("approval", question["session"], approval=question)

    def close_question(self, name: str, outcome: str, by: str, reason: str = "") -> None:
        """Tell that one is answered."""
        question = next(one for one in self.open if one["id"] == name)
        self.open.remove(question)
        closed = {"approval": name, "outcome": outcome, "by": by, "reason": reason}
        self.notify("approvalClosed", closed)
        self.happens("approvalClosed", question["session"], **closed)

    def forget(self) -> None:
        """Be another bridge, which was started in place of one that was killed."""
        self.open.clear()
        for session in self.live:
            session["state"] = "lost"
        self._numbers = itertools.count(1)

    def notify(self, method: str, params: Json) -> None:
        """Tell something."""
        self._send(self._writers[-1], {"method": method, "params": params})

    async def close(self) -> None:
        """Hang up."""
        for writer in self._writers:
            writer.close()
        while self._hearing:
            await asyncio.sleep(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear one plug-in until it goes."""
        self._writers.append(writer)
        self._hearing += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.split(b":")[1]))
                self._take(writer, json.loads(body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._hearing -= 1
            writer.close()

    def _take(self, writer: asyncio.StreamWriter, message: Json) -> None:
        params = message.get("params") or {}
        self.asked.append((message.get("method", ""), params))
        if "id" not in message or "method" not in message:
            return
        try:
            if message["method"] not in self.answers:
                raise Refusal(-32601, f"There is no {message['method']}.")
            reply: Json = {"result": self.answers[message["method"]](params)}
        except Refusal as refusal:
            reply = {"error": {"code": refusal.code, "message": str(refusal)}}
        self._send(writer, {"id": message["id"], **reply})

    def _send(self, writer: asyncio.StreamWriter, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _hello(self, params: Json) -> Json:
        self.by = params["editor"]
        return {"bridge": "0", "link": 1, "port": 1, "pid": 1, "clients": []}

    def _status(self, _params: Json) -> Json:
        waiting = {name: [one["id"] for one in self.open if one["session"] == name] for name in (SESSION, OTHER)}
        return {"sessions": [session | {"approvals": waiting[session["session"]]} for session in self.live]}

    def _ask(self, params: Json) -> Json:
        session = self.start(OTHER if params.get("new") else params.get("session", SESSION))
        return {"session": session["session"], "uuid": "u", "title": session["title"]}

    def _decide(self, params: Json) -> Json:
        outcome = {"allow": "allowed", "deny": "denied"}[params["behavior"]]
        self.close_question(params["approval"], outcome, self.by, params.get("reason", ""))
        return {"approval": params["approval"], "outcome": outcome, "by": self.by}


@asynccontextmanager
async def session_bridge() -> AsyncIterator[SessionBridge]:
    """A bridge to attach to while the block runs."""
    bridge = SessionBridge()
    server = await asyncio.start_server(bridge.serve, "127.0.0.1", 0, limit=1 << 26)
    bridge.command.append(str(server.sockets[0].getsockname()[1]))
    try:
        yield bridge
    finally:
        server.close()
        await bridge.close()
