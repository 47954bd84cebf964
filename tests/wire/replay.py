"""A recorded conversation, held once more: the client's side is played, the bridge's side is compared.

Every line of a recording is taken in its order. What the client said is said again over a real WebSocket. What it
was told must be told again: an answer is awaited by its id; before a notification the editor's user does what it
tells of. Diffs are decided as they were, and what was kept is written to the disk before the client asks for all
problems, as the CLI does.

Only what a client can see counts, by its meaning: not who the server says it is, how a tool is described, or when
something happened. Where the recorded server was not us, some of its answers mean the same in other words;
`meaning` lists them.

It does not know how the bridge works, nor what the recordings are about.
"""

import asyncio
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from ide_bridge.bridge import Bridge
from ide_bridge.model import Diagnostic, Diff, Selection, SelectionChanged
from tests.fakes.claude_client import ClaudeClient, connect_to
from tests.fakes.memory_editor import MemoryEditor, span

__all__ = ["Replay", "recorded_in"]

Json = Any  # messages are taken as they come: their shape is what is compared

RECORDED_FOLDER = "/workspace"
PATIENCE = 10.0
LAST = "last"


def recorded_in(file: Path, folder: Path) -> list[Json]:
    """The lines of a recording, as if it had been made in this folder."""
    text = file.read_text(encoding="utf-8").replace(RECORDED_FOLDER, str(folder))
    return [json.loads(line) for line in text.splitlines()]


class CheckingEditor(MemoryEditor):
    """Looks at a file again when a client has written it, as one with a linter does."""

    def file_changed(self, path: str) -> None:
        super().file_changed(path)
        self.find(path, *self.found.get(path, ()))


class Replay:
    """One recording against one bridge. `expected` and `seen` grow side by side."""

    def __init__(self, lines: list[Json], bridge: Bridge, editor: CheckingEditor) -> None:
        self.expected: list[Json] = []
        self.seen: list[Json] = []
        self._lines = list(without_repetitions(lines))
        self._bridge = bridge
        self._editor = editor
        self._clients: dict[object, Conversation] = {}
        self._kept: dict[str, str] = {}

    async def run(self) -> None:
        """Play it to the end; what came and was not in the recording is seen, too."""
        async with AsyncExitStack() as open_clients:
            for line in self._lines:
                await self._play(line, open_clients)
            for conversation in self._clients.values():
                self.seen += await conversation.rest()

    async def _play(self, line: Json, open_clients: AsyncExitStack) -> None:
        match line["dir"]:
            case "OPEN":
                self._select_beforehand(line["conn"])
                client = await open_clients.enter_async_context(connect_to(self._bridge))
                self._clients[line["conn"]] = Conversation(line["conn"], client)
            case "C>S" if "raw" in line:
                await self._clients[line["conn"]].client.socket.send_str(line["raw"])
            case "C>S":
                await self._say(self._clients[line["conn"]], line["msg"])
            case "S>C":
                await self._hear(self._clients[line["conn"]], line["msg"])
            case "CLOSE":
                conversation = self._clients.pop(line["conn"])
                self.seen += await conversation.rest()
                await conversation.client.socket.close()

    async def _say(self, conversation: "Conversation", message: Json) -> None:
        if message.get("method") == "ide_connected":
            message = {**message, "params": {"pid": os.getpid()}}  # the recorded one may be anybody's here
        if called(message) == "getDiagnostics":
            self._prepare_diagnostics(message["params"], self._answer_to(conversation, message))
        await conversation.say(message)
        if called(message) == "openDiff" and not failed(self._answer_to(conversation, message)):
            await self._shown(message["params"]["arguments"]["tab_name"])  # no client goes on before

    def _prepare_diagnostics(self, asked: Json, answer: Json) -> None:
        """Let the editor know the problems that the recorded answer tells of."""
        if "uri" not in asked.get("arguments", {}):
            for path, text in self._kept.items():
                Path(path).write_text(text, encoding="utf-8")
            self._kept.clear()
            self._editor.found.clear()
        for file in json.loads(texts(answer)[0]):
            self._editor.found[path_of(file["uri"])] = [diagnostic(file, one) for one in file["diagnostics"]]

    async def _hear(self, conversation: "Conversation", message: Json) -> None:
        request = conversation.asked.get(message.get("id"))
        if "method" in message:
            self._cause(conversation, message)
        elif called(request) == "openDiff":
            await self._decide(conversation, request, message)
        heard = await conversation.hear(message.get("id"), message.get("method"))
        self.expected.append(meaning(request, message))
        self.seen.append(meaning(request, heard, recorded=message))

    def _cause(self, conversation: "Conversation", notification: Json) -> None:
        """Let the editor's user do what a notification tells of, unless it is told already."""
        told = notification.get("params", {})
        match notification["method"]:
            case "selection_changed":
                self._select(selection_of(told))
            case "at_mentioned" if not conversation.has_heard("at_mentioned"):
                self._editor.mention(told["filePath"], told.get("lineStart"), told.get("lineEnd"))

    def _select_beforehand(self, number: object) -> None:
        """What a client is told right after the list of tools was selected before it came."""
        told = [line["msg"] for line in self._lines if line["dir"] == "S>C" and line["conn"] == number]
        for answer, following in pairwise(told):
            if "tools" in answer.get("result", ()) and following.get("method") == "selection_changed":
                self._select(selection_of(following["params"]))

    def _select(self, selection: Selection | None) -> None:
        before, self._editor.selected = self._editor.selected, selection
        if selection is None and before is not None:
            self._editor.shut(before.path)
        elif selection != before:
            self._editor.report(SelectionChanged(selection))

    async def _decide(self, conversation: "Conversation", request: Json, answer: Json) -> None:
        """Let the editor's user decide a diff as he did, unless the client has closed it itself."""
        asked = request["params"]["arguments"]
        if failed(answer) or asked["tab_name"] in conversation.closed_tabs:
            return
        shown = await self._shown(asked["tab_name"])
        assert (shown.path, shown.contents) == (asked["new_file_path"], asked["new_file_contents"])
        verdict, *contents = texts(answer)
        if verdict == "FILE_SAVED":
            self._kept[shown.path] = contents[0]
            self._editor.keep(shown, None if contents[0] == shown.contents else contents[0])
        else:
            self._editor.reject(shown)

    async def _shown(self, title: str) -> Diff:
        async with asyncio.timeout(PATIENCE):
            while not (found := [diff for diff in self._editor.diffs.values() if diff.title == title]):
                await asyncio.sleep(0.005)
        return found[0]

    def _answer_to(self, conversation: "Conversation", request: Json) -> Json:
        return next(
            line["msg"]
            for line in self._lines
            if line["dir"] == "S>C"
            and line["conn"] == conversation.number
            and fits(line["msg"], request["id"], None)
        )


class Conversation:
    """One client, its questions, and what it has heard but not yet been asked about."""

    def __init__(self, number: object, client: ClaudeClient) -> None:
        self.number = number
        self.client = client
        self.asked: dict[object, Json] = {}
        self.closed_tabs: set[str] = set()
        self._heard: list[Json] = []
        self._selection: Json = None

    async def say(self, message: Json) -> None:
        if "id" in message:
            self.asked[message["id"]] = message
        if called(message) == "close_tab":
            self.closed_tabs.add(message["params"]["arguments"]["tab_name"])
        await self.client.socket.send_str(json.dumps(message, ensure_ascii=False))

    async def hear(self, wanted_id: object, method: str | None) -> Json:
        """The next message with this id or of this method; others wait for their turn."""
        while not (found := [one for one in self._heard if fits(one, wanted_id, method)]):
            message = await self.client.receive()
            if not self._is_repeated(message):
                self._heard.append(message)
        self._heard.remove(found[0])
        return found[0]

    def _is_repeated(self, message: Json) -> bool:
        """Whether a selection is told a second time, which new clients are, because the CLI may miss the first."""
        if message.get("method") != "selection_changed":
            return False
        before, self._selection = self._selection, message
        return before == message

    def has_heard(self, method: str) -> bool:
        return any(one.get("method") == method for one in self._heard)

    async def rest(self) -> list[Json]:
        """What came beyond the recording, up to the answer to one last question."""
        if self.client.socket.closed:
            return self._heard
        await self.say({"jsonrpc": "2.0", "id": LAST, "method": "ping"})
        await self.hear(LAST, None)
        return self._heard


def without_repetitions(lines: Iterable[Json]) -> Iterator[Json]:
    """Leave out selections that a client was told a second time: how soon that is depends on the machine."""
    told: dict[object, Json] = {}
    for line in lines:
        message = line.get("msg", {})
        if line["dir"] == "S>C" and message.get("method") == "selection_changed":
            if told.get(line["conn"]) == message:
                continue
            told[line["conn"]] = message
        yield line


def fits(message: Json, wanted_id: object, method: str | None) -> bool:
    """Whether it is the answer to that id, or the notification of that method."""
    if method is not None:
        return bool(message.get("method") == method)
    return "method" not in message and message.get("id") == wanted_id


def called(request: Json) -> str | None:
    """The tool that a request calls, if it calls one."""
    is_call = request is not None and request.get("method") == "tools/call"
    return request["params"]["name"] if is_call else None


def failed(answer: Json) -> bool:
    """Whether a request or a tool went wrong."""
    return "error" in answer or bool(answer["result"].get("isError"))


def meaning(request: Json, message: Json, recorded: Json = None) -> Json:
    """What a message says to a client that has asked this; of tools, those that were recorded."""
    result = message.get("result")
    if request is None or result is None:
        return message
    method, tool = request["method"], called(request)
    if method == "initialize":
        offered = {name: value for name, value in result["capabilities"].items() if name != "logging"}
        result = {"protocolVersion": result["protocolVersion"], "capabilities": offered}
    elif method == "tools/list":
        result = tools(message) & tools(recorded or message)
    elif tool == "openDiff" and texts(message)[0] in {"TAB_CLOSED", "DIFF_REJECTED"}:
        result = "rejected"  # a second text is optional; a tab closed by the client itself may be called closed
    elif tool == "getDiagnostics":
        result = [{**file, "fresh": None} for file in json.loads(texts(message)[0])]
    return {**message, "result": result}


def tools(answer: Json) -> set[str]:
    """The names of the tools that are offered to everybody."""
    offered = answer["result"]["tools"]
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in offered)
    return {tool["name"] for tool in offered} - {"executeCode"}


def texts(answer: Json) -> list[str]:
    """The texts in the answer of a tool."""
    return [block["text"] for block in answer["result"]["content"]]


def path_of(uri: str) -> str:
    """The path in a URI as the CLI writes it: nothing is encoded."""
    return uri.removeprefix("file://")


def selection_of(told: Json) -> Selection | None:
    """What must have been selected for this to be told."""
    if "filePath" not in told:
        return None
    start, end = told["selection"]["start"], told["selection"]["end"]
    where = span(start["line"], start["character"], end["line"], end["character"])
    return Selection(told["filePath"], told["text"], where)


def diagnostic(file: Json, told: Json) -> Diagnostic:
    """The problem that is told of."""
    start, end = told["range"]["start"], told["range"]["end"]
    where = span(start["line"], start["character"], end["line"], end["character"])
    severity = told["severity"].lower()
    source, code = told.get("source", ""), told.get("code", "")
    return Diagnostic(path_of(file["uri"]), where, severity, told["message"], source, code)
