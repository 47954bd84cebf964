"""MCP, as every front speaks it: initialize, ping, tools, and empty prompts and resources.

The methods of the workspace answer here as well, directly by name, without ``initialize``.

It does not know sockets or HTTP, and of a client only what it says of itself.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw

from ide_bridge import __version__
from ide_bridge.answers import Later, waits
from ide_bridge.errors import BridgeError, InvalidParams, NotShared, PathRefused
from ide_bridge.fronts.client import Client
from ide_bridge.fronts.process import working_folder
from ide_bridge.tools.registry import Registry, Texts, Tool
from ide_bridge.wire.dispatch import Method, NoParams, decode_params, failure_from

__all__ = ["DIRECT", "METHODS", "PROTOCOL_VERSIONS", "mcp_methods"]

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
DIRECT = ("readFile", "writeFile", "listFiles", "getWorkspaceInfo", "getOpenFiles", "getCurrentFile")
METHODS = (
    *DIRECT,
    *("initialize", "notifications/initialized", "ide_connected", "ping", "tools/list", "tools/call"),
    *("prompts/list", "resources/list"),
)
"""All that `mcp_methods` gives, for who has no bridge to ask."""


LASTING_SECONDS = 0.3
"""What takes longer is told when it has lasted so long, and again only if it fails: it may wait for a person."""

_encode = msgspec.json.Encoder().encode
_NO_ARGUMENTS = Raw(b"{}")
_NULL = Raw(b"null")


class ClientInfo(msgspec.Struct, frozen=True):
    """Who the client says it is."""

    name: str = ""
    version: str = ""
    title: str = ""


class Initialize(msgspec.Struct, rename="camel"):
    """The parameters of ``initialize`` that matter to us."""

    protocol_version: str = ""
    client_info: ClientInfo = ClientInfo()


class Connected(msgspec.Struct):
    """The parameters of ``ide_connected``."""

    pid: int | None = None


class CallTool(msgspec.Struct):
    """The parameters of ``tools/call``."""

    name: str
    arguments: Raw = _NO_ARGUMENTS


class _Text(msgspec.Struct, tag="text"):
    text: str


class _ToolResult(msgspec.Struct, rename="camel", omit_defaults=True):
    content: list[_Text]
    is_error: bool = False


def mcp_methods(registry: Registry, welcome: Callable[[Client], None]) -> dict[str, Method[Client, Any]]:
    """The methods a client may call on any front; `welcome` is called as it comes and asks for tools."""

    @cache
    def listed() -> Raw:
        registry.load_plugins()
        return Raw(_encode({"tools": [_listed(tool) for tool in registry.values()]}))

    methods: dict[str, Method[Client, Any]] = {
        "initialize": Method(Initialize, _initialize),
        "notifications/initialized": Method(NoParams, lambda client, _params: _initialized(client, welcome)),
        "ide_connected": Method(Connected, _ide_connected),
        "ping": Method(NoParams, lambda _client, _params: {}),
        "tools/list": Method(NoParams, lambda client, _params: _list_tools(client, listed(), welcome)),
        "tools/call": Method(CallTool, lambda client, params: _call_tool(registry, client, params)),
        "prompts/list": Method(NoParams, lambda _client, _params: {"prompts": []}),
        "resources/list": Method(NoParams, lambda _client, _params: {"resources": []}),
    }
    for name in DIRECT:
        methods[name] = _direct(registry[name])
    return methods


def _initialize(client: Client, params: Initialize) -> Mapping[str, object]:
    client.introduce(params.client_info.name, params.client_info.version, params.client_info.title)
    wanted = params.protocol_version
    return {
        "protocolVersion": wanted if wanted in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
        "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "ide-bridge", "version": __version__},
    }


def _initialized(client: Client, welcome: Callable[[Client], None]) -> None:
    client.ready = True
    welcome(client)


def _ide_connected(client: Client, params: Connected) -> None:
    client.pid = params.pid
    client.folder = None if params.pid is None else working_folder(params.pid)
    client.changed()


def _list_tools(client: Client, listed: Raw, welcome: Callable[[Client], None]) -> Raw:
    client.knows_tools = True
    if client.ready:
        welcome(client)
    return listed


def _listed(tool: Tool[Any]) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}


def _direct(tool: Tool[Any]) -> Method[Client, Any]:
    def call(client: Client, params: Any) -> object:  # noqa: ANN401 - the tool's own type, checked by its decoder
        return _told(client, tool, params)

    return Method(tool.params, call)


def _call_tool(registry: Registry, client: Client, call: CallTool) -> object:
    tool = registry.get(call.name) or registry.of_plugin(call.name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {call.name}")
    params = decode_params(tool, _NO_ARGUMENTS if call.arguments == _NULL else call.arguments)
    try:
        result = _told(client, tool, params)
    except Exception as error:  # noqa: BLE001 - a tool that fails says so in its result
        return _failed(error)
    return Later(result, _tool_result, _failed) if waits(result) else _tool_result(result)


def _tool_result(result: object) -> _ToolResult:
    if isinstance(result, Texts):
        return _ToolResult([_Text(text) for text in result])
    text = result if isinstance(result, str) else _encode(result).decode()
    return _ToolResult([_Text(text)])


def _failed(error: Exception) -> _ToolResult:
    failure = failure_from(error)
    incident = "" if isinstance(error, BridgeError) else f" ({failure.data})"
    return _ToolResult([_Text(failure.message + incident)], is_error=True)


def _told(client: Client, tool: Tool[Any], params: msgspec.Struct) -> object:
    """Do what a client asks for; the user, if he watches, is told what it is and whether it went well."""
    client.acts()
    if not client.is_watched:
        return tool.call(client.context, params)
    story = _Story(client, _in_words(tool, params))
    try:
        result = tool.call(client.context, params)
    except Exception as error:
        story.fails(error)
        raise
    if not waits(result):
        return story.ends(result)
    story.lasts()
    return Later(result, story.ends, story.fails_later)


def _in_words(tool: Tool[Any], params: msgspec.Struct) -> str:
    said = f"uses {tool.name}" if tool.says is None else tool.says(params)
    return f"{said}(no path)" if said.endswith(" ") else said


class _Story:
    """What the user is told of one call, in one line if it does not last."""

    def __init__(self, client: Client, what: str) -> None:
        self._client = client
        self._what = what
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False

    def lasts(self) -> None:
        """It is not done yet."""
        self._timer = asyncio.get_running_loop().call_later(LASTING_SECONDS, self._begin)

    def ends(self, result: object) -> object:
        """It went well; gives what came of it."""
        self._stop_timer()
        if not self._begun:
            self._client.says(self._what)
        return result

    def fails(self, error: Exception) -> None:
        """It was not allowed, or did not work."""
        self._stop_timer()
        self._client.says(self._what, "refused" if isinstance(error, NotShared | PathRefused) else "failed")

    def fails_later(self, error: Exception) -> object:
        """It failed after a while; whoever asked is still to learn of it."""
        self.fails(error)
        raise error

    def _begin(self) -> None:
        self._begun = True
        self._client.says(self._what)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
