"""What the CLI reports beside the conversation: the base of all its messages, and every kind of ``system``.

A kind that is not known here is a plain ``System``. Members have the CLI's own names, in Python's spelling; what
has no type here is in ``fields``.

It does not know how a line becomes one of these, or what a person should be told of it.
"""

from typing import Any

import msgspec
from msgspec import field

__all__ = [
    "SYSTEM",
    "ApiRetry",
    "BackgroundTasksChanged",
    "CommandsChanged",
    "CompactBoundary",
    "ControlRequestProgress",
    "ElicitationComplete",
    "FilesPersisted",
    "HookProgress",
    "HookResponse",
    "HookStarted",
    "Informational",
    "Init",
    "LocalCommandOutput",
    "MemoryRecall",
    "Message",
    "MirrorError",
    "ModelRefusalFallback",
    "ModelRefusalNoFallback",
    "Notification",
    "PermissionDenied",
    "PluginInstall",
    "SessionStateChanged",
    "SessionTitleChanged",
    "SessionWritesLost",
    "Status",
    "System",
    "TaskNotification",
    "TaskProgress",
    "TaskStarted",
    "TaskUpdated",
    "ThinkingTokens",
    "WorkerShuttingDown",
]

_decode = msgspec.json.Decoder().decode


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the CLI. ``raw`` is the line as it came, without its end and with every character whole."""

    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    raw: bytes = b""

    @property
    def fields(self) -> dict[str, Any]:
        """Everything it says, in the CLI's own spelling; nothing, if it is nested too deeply to be read."""
        try:
            found = _decode(self.raw)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


class System(Message, frozen=True, kw_only=True):
    """A report of the CLI; of a kind that is not known here, unless it is one of those below."""


class McpServer(msgspec.Struct, frozen=True):
    """An MCP server, as ``init`` lists it."""

    name: str = ""
    status: str = ""


class Init(System, frozen=True, kw_only=True):
    """A turn begins: what the CLI works with. It comes once per turn, not once per session."""

    cwd: str = ""
    model: str = ""
    permission_mode: str = field(default="", name="permissionMode")
    claude_code_version: str = ""
    api_key_source: str = field(default="", name="apiKeySource")
    output_style: str = ""
    tools: tuple[str, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    slash_commands: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    plugins: tuple[dict[str, Any], ...] = ()


class Status(System, frozen=True, kw_only=True):
    """What it is busy with (``requesting``, ``compacting``), or a new permission mode."""

    status: str | None = None
    permission_mode: str | None = field(default=None, name="permissionMode")
    compact_result: str | None = None
    compact_error: str | None = None


class Compaction(msgspec.Struct, frozen=True):
    """How a conversation was compacted."""

    trigger: str = ""
    pre_tokens: int = 0
    post_tokens: int | None = None
    duration_ms: int | None = None


class CompactBoundary(System, frozen=True, kw_only=True):
    """The conversation before this was replaced by a summary."""

    compact_metadata: Compaction = Compaction()


class SessionStateChanged(System, frozen=True, kw_only=True):
    """``running``, ``requires_action`` or ``idle``; only if the environment asks for it."""

    state: str = ""


class SessionTitleChanged(System, frozen=True, kw_only=True):
    """The session has another name."""

    title: str = ""


class SessionWritesLost(System, frozen=True, kw_only=True):
    """The disk is full: the transcript is no longer written."""

    error_code: str = ""
    lost: tuple[str, ...] = ()


class PermissionDenied(System, frozen=True, kw_only=True):
    """A tool was refused without anybody having been asked."""

    tool_name: str = ""
    tool_use_id: str = ""
    agent_id: str | None = None
    decision_reason_type: str | None = None
    message: str = ""


class ApiRetry(System, frozen=True, kw_only=True):
    """The model could not be reached; it is tried again."""

    attempt: int = 0
    max_retries: int = 0
    retry_delay_ms: float = 0
    error_status: int | None = None
    error: Any = None


class ThinkingTokens(System, frozen=True, kw_only=True):
    """How much has been thought so far, where the thoughts themselves are not shown."""

    estimated_tokens: int = 0
    estimated_tokens_delta: int = 0


class TaskStarted(System, frozen=True, kw_only=True):
    """Work in the background has begun: a sub-agent, or a command."""

    task_id: str = ""
    tool_use_id: str | None = None
    description: str = ""
    task_type: str | None = None
    subagent_type: str | None = None


class TaskProgress(System, frozen=True, kw_only=True):
    """Work in the background goes on."""

    task_id: str = ""
    tool_use_id: str | None = None
    description: str = ""
    last_tool_name: str | None = None
    summary: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)


class TaskUpdated(System, frozen=True, kw_only=True):
    """Something about work in the background is different now."""

    task_id: str = ""
    patch: dict[str, Any] = field(default_factory=dict)


class TaskNotification(System, frozen=True, kw_only=True):
    """Work in the background has ended: ``completed``, ``failed`` or ``stopped``."""

    task_id: str = ""
    tool_use_id: str | None = None
    status: str = ""
    output_file: str = ""
    summary: str = ""


class BackgroundTasksChanged(System, frozen=True, kw_only=True):
    """All work in the background, as it is now."""

    tasks: tuple[dict[str, Any], ...] = ()


class HookStarted(System, frozen=True, kw_only=True):
    """A hook of the user runs."""

    hook_id: str = ""
    hook_name: str = ""
    hook_event: str = ""


class HookProgress(HookStarted, frozen=True, kw_only=True):
    """A hook of the user has written something."""

    stdout: str = ""
    stderr: str = ""
    output: str = ""


class HookResponse(HookProgress, frozen=True, kw_only=True):
    """A hook of the user is done: ``success``, ``error`` or ``cancelled``."""

    exit_code: int | None = None
    outcome: str = ""


class FilesPersisted(System, frozen=True, kw_only=True):
    """Files were uploaded, or could not be."""

    files: tuple[dict[str, Any], ...] = ()
    failed: tuple[dict[str, Any], ...] = ()
    processed_at: str = ""


class LocalCommandOutput(System, frozen=True, kw_only=True):
    """What a slash command printed that needed no model."""

    content: str = ""


class Informational(System, frozen=True, kw_only=True):
    """Something the terminal would show: ``info``, ``notice``, ``suggestion`` or ``warning``."""

    content: str = ""
    level: str = "info"
    tool_use_id: str | None = None


class Notification(System, frozen=True, kw_only=True):
    """Something the terminal would show for a moment."""

    key: str = ""
    text: str = ""
    priority: str = ""
    timeout_ms: int | None = None


class CommandsChanged(System, frozen=True, kw_only=True):
    """All slash commands, as they are now."""

    commands: tuple[dict[str, Any], ...] = ()


class PluginInstall(System, frozen=True, kw_only=True):
    """How far the installation of a plug-in of the CLI has come."""

    status: str = ""
    name: str | None = None
    error: str | None = None


class MemoryRecall(System, frozen=True, kw_only=True):
    """The CLI has remembered something that matters in this turn."""

    mode: str = ""
    memories: tuple[dict[str, Any], ...] = ()


class MirrorError(System, frozen=True, kw_only=True):
    """A copy of the transcript could not be kept."""

    error: str = ""
    key: dict[str, Any] = field(default_factory=dict)


class WorkerShuttingDown(System, frozen=True, kw_only=True):
    """The CLI is about to end, and says why."""

    reason: str = ""


class ModelRefusalFallback(System, frozen=True, kw_only=True):
    """The model refused, and another one goes on."""

    original_model: str = ""
    fallback_model: str = ""
    direction: str = ""
    content: str = ""


class ModelRefusalNoFallback(System, frozen=True, kw_only=True):
    """The model refused, and there is no other one."""

    original_model: str = ""
    content: str = ""


class ElicitationComplete(System, frozen=True, kw_only=True):
    """What an MCP server wanted from the user is done."""

    mcp_server_name: str = ""
    elicitation_id: str = ""


class ControlRequestProgress(System, frozen=True, kw_only=True):
    """A request of ours takes longer."""

    request_id: str = ""
    status: str = ""
    attempt: int | None = None
    max_retries: int | None = None


SYSTEM: dict[str, type[System]] = {
    "api_retry": ApiRetry,
    "background_tasks_changed": BackgroundTasksChanged,
    "commands_changed": CommandsChanged,
    "compact_boundary": CompactBoundary,
    "control_request_progress": ControlRequestProgress,
    "elicitation_complete": ElicitationComplete,
    "files_persisted": FilesPersisted,
    "hook_progress": HookProgress,
    "hook_response": HookResponse,
    "hook_started": HookStarted,
    "informational": Informational,
    "init": Init,
    "local_command_output": LocalCommandOutput,
    "memory_recall": MemoryRecall,
    "mirror_error": MirrorError,
    "model_refusal_fallback": ModelRefusalFallback,
    "model_refusal_no_fallback": ModelRefusalNoFallback,
    "notification": Notification,
    "permission_denied": PermissionDenied,
    "plugin_install": PluginInstall,
    "session_state_changed": SessionStateChanged,
    "session_title_changed": SessionTitleChanged,
    "session_writes_lost": SessionWritesLost,
    "status": Status,
    "task_notification": TaskNotification,
    "task_progress": TaskProgress,
    "task_started": TaskStarted,
    "task_updated": TaskUpdated,
    "thinking_tokens": ThinkingTokens,
    "worker_shutting_down": WorkerShuttingDown,
}
