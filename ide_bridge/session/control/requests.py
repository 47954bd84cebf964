"""What a controller asks the CLI, as types that become its JSON.

Which CLI knows what is in PROTOCOL.md. One that does not know a request answers with an error; the oldest ones do
not answer at all. A request without a type here is an ``Other``.

It does not know how a request is sent, or who waits for the answer.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, field

from ide_bridge.session.control.questions import McpMessage

__all__ = [
    "ApplyFlagSettings",
    "BackgroundTasks",
    "CancelAsyncMessage",
    "FileSuggestions",
    "GetBinaryVersion",
    "GetContextUsage",
    "GetHooksListing",
    "GetSessionCost",
    "GetSettings",
    "GetTaskOutput",
    "GetUsage",
    "Initialize",
    "Interrupt",
    "ListModels",
    "ListPermissionRules",
    "McpCall",
    "McpMessage",
    "McpReadResource",
    "McpReconnect",
    "McpSetServers",
    "McpStatus",
    "McpToggle",
    "Other",
    "ReadFile",
    "RegisterRepoRoot",
    "ReloadOutputStyles",
    "ReloadPlugins",
    "ReloadSkills",
    "RenameSession",
    "Request",
    "RewindFiles",
    "SeedReadState",
    "SetColor",
    "SetHasSubscribers",
    "SetMaxThinkingTokens",
    "SetModel",
    "SetPermissionMode",
    "StopTask",
    "UpdateSettings",
    "payload",
    "subtype_of",
]

Json = dict[str, Any]


class _Request(msgspec.Struct, frozen=True, tag_field="subtype", omit_defaults=True):
    """The base of all requests."""


class Initialize(_Request, frozen=True, tag="initialize", rename="camel", kw_only=True):
    """The first request: what the controller brings along. Once more, it finds the questions that are open."""

    hooks: dict[str, list[Json]] | None = None
    sdk_mcp_servers: list[str] | None = None
    json_schema: Json | None = None
    system_prompt: str | list[str] | None = None
    append_system_prompt: str | None = None
    agents: dict[str, Json] | None = None


class Interrupt(_Request, frozen=True, tag="interrupt"):
    """Break off the turn. An open question is withdrawn."""


class SetPermissionMode(_Request, frozen=True, tag="set_permission_mode"):
    """Ask more or less. Old CLIs take any word here, and mean nothing by it."""

    mode: str


class SetModel(_Request, frozen=True, tag="set_model"):
    """Let another model go on; ``default`` is the one it began with."""

    model: str


class SetMaxThinkingTokens(_Request, frozen=True, tag="set_max_thinking_tokens"):
    """How long the model may think; ``None`` is what it began with."""

    max_thinking_tokens: int | None


class McpStatus(_Request, frozen=True, tag="mcp_status"):
    """What MCP servers there are, and how they are."""


class McpSetServers(_Request, frozen=True, tag="mcp_set_servers"):
    """Have these MCP servers beside the configured ones, and no others that were set this way."""

    servers: dict[str, Json]


class McpToggle(_Request, frozen=True, tag="mcp_toggle", rename="camel"):
    """Switch an MCP server on or off."""

    server_name: str
    enabled: bool


class McpReconnect(_Request, frozen=True, tag="mcp_reconnect", rename="camel"):
    """Connect to an MCP server anew."""

    server_name: str


class McpCall(_Request, frozen=True, tag="mcp_call"):
    """Call a tool of an MCP server without the model; it has the tool's full name."""

    tool: str
    arguments: Json | UnsetType = UNSET


class McpReadResource(_Request, frozen=True, tag="mcp_read_resource", rename="camel"):
    """Read a resource of an MCP server."""

    server_name: str
    uri: str


class RewindFiles(_Request, frozen=True, tag="rewind_files"):
    """Undo what was done to files since a prompt, which is known by the uuid that we gave it."""

    user_message_id: str
    dry_run: bool = False


class GetContextUsage(_Request, frozen=True, tag="get_context_usage"):
    """What fills the model's context."""


class GetSessionCost(_Request, frozen=True, tag="get_session_cost"):
    """What the session has cost, in words."""


class GetUsage(_Request, frozen=True, tag="get_usage"):
    """How much of the user's plan is used up."""


class GetBinaryVersion(_Request, frozen=True, tag="get_binary_version"):
    """Which CLI it is."""


class GetSettings(_Request, frozen=True, tag="get_settings"):
    """The settings, together and one source at a time."""


class GetHooksListing(_Request, frozen=True, tag="get_hooks_listing"):
    """The user's hooks."""


class GetTaskOutput(_Request, frozen=True, tag="get_task_output"):
    """What work in the background has written last."""

    task_id: str


class ListModels(_Request, frozen=True, tag="list_models"):
    """The models there are to choose from."""


class ListPermissionRules(_Request, frozen=True, tag="list_permission_rules"):
    """What is allowed, denied or to be asked."""


class FileSuggestions(_Request, frozen=True, tag="file_suggestions"):
    """The files whose names may be meant."""

    query: str


class ReadFile(_Request, frozen=True, tag="read_file"):
    """A file, as the CLI sees it."""

    path: str
    max_bytes: int | UnsetType = UNSET
    encoding: str | UnsetType = UNSET


class RenameSession(_Request, frozen=True, tag="rename_session"):
    """Give the session a name."""

    title: str


class SetColor(_Request, frozen=True, tag="set_color"):
    """Give the session a colour."""

    color: str


class ApplyFlagSettings(_Request, frozen=True, tag="apply_flag_settings"):
    """Have these settings for the rest of the session."""

    settings: Json


class UpdateSettings(_Request, frozen=True, tag="update_settings"):
    """Write settings into one of the user's files: ``localSettings`` or ``userSettings``."""

    source: str
    settings: Json


class ReloadSkills(_Request, frozen=True, tag="reload_skills"):
    """Read the skills from the disk again."""


class ReloadPlugins(_Request, frozen=True, tag="reload_plugins"):
    """Read the CLI's plug-ins from the disk again."""


class ReloadOutputStyles(_Request, frozen=True, tag="reload_output_styles"):
    """Read the output styles from the disk again."""


class RegisterRepoRoot(_Request, frozen=True, tag="register_repo_root"):
    """Work in this folder too."""

    directory: str
    reload_claude_md: bool = False
    reload_plugins: bool = False
    reload_skills: bool = False


class SeedReadState(_Request, frozen=True, tag="seed_read_state"):
    """Take a file for read, as it was at that time (in milliseconds)."""

    path: str
    mtime: float


class BackgroundTasks(_Request, frozen=True, tag="background_tasks"):
    """Let what runs go on in the background: everything, or what one use of a tool has begun."""

    tool_use_id: str | UnsetType = UNSET


class StopTask(_Request, frozen=True, tag="stop_task"):
    """Stop work in the background."""

    task_id: str


class SetHasSubscribers(_Request, frozen=True, tag="set_has_subscribers"):
    """Whether anybody watches; ``None``, if that is not known."""

    has_subscribers: bool | None


class CancelAsyncMessage(_Request, frozen=True, tag="cancel_async_message"):
    """Take back a prompt that has not been taken up."""

    message_uuid: str


class Other(msgspec.Struct, frozen=True):
    """Any other request."""

    subtype: str
    fields: Json = field(default_factory=dict)


Request = _Request | McpMessage | Other


def subtype_of(request: Request) -> str:
    """The CLI's word for it."""
    return request.subtype if isinstance(request, Other) else str(request.__struct_config__.tag)


def payload(request: Request) -> object:
    """What stands in the member ``request``."""
    return {**request.fields, "subtype": request.subtype} if isinstance(request, Other) else request
