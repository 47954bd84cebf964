import json

import msgspec
import pytest

from ide_bridge.session.control import requests
from ide_bridge.session.control.questions import McpMessage
from ide_bridge.session.control.requests import Initialize, Other, SetMaxThinkingTokens, payload, subtype_of

SAID = [
    (Initialize(), {"subtype": "initialize"}),
    (
        Initialize(
            hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["pre"]}]},
            sdk_mcp_servers=["mini"],
            json_schema={"type": "object"},
            system_prompt=["be", "brief"],
            append_system_prompt="please",
            agents={"a": {"description": "d", "prompt": "p"}},
        ),
        {
            "subtype": "initialize",
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["pre"]}]},
            "sdkMcpServers": ["mini"],
            "jsonSchema": {"type": "object"},
            "systemPrompt": ["be", "brief"],
            "appendSystemPrompt": "please",
            "agents": {"a": {"description": "d", "prompt": "p"}},
        },
    ),
    (requests.Interrupt(), {"subtype": "interrupt"}),
    (requests.SetPermissionMode("plan"), {"subtype": "set_permission_mode", "mode": "plan"}),
    (requests.SetModel("default"), {"subtype": "set_model", "model": "default"}),
    (SetMaxThinkingTokens(4000), {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 4000}),
    (SetMaxThinkingTokens(None), {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": None}),
    (requests.McpStatus(), {"subtype": "mcp_status"}),
    (McpMessage("s", {"id": 1}), {"subtype": "mcp_message", "server_name": "s", "message": {"id": 1}}),
    (requests.McpSetServers({}), {"subtype": "mcp_set_servers", "servers": {}}),
    (requests.McpToggle("s", enabled=False), {"subtype": "mcp_toggle", "serverName": "s", "enabled": False}),
    (requests.McpReconnect("s"), {"subtype": "mcp_reconnect", "serverName": "s"}),
    (requests.McpCall("mcp__s__t"), {"subtype": "mcp_call", "tool": "mcp__s__t"}),
    (requests.McpCall("t", {}), {"subtype": "mcp_call", "tool": "t", "arguments": {}}),
    (
        requests.McpReadResource("s", "ui://x"),
        {"subtype": "mcp_read_resource", "serverName": "s", "uri": "ui://x"},
    ),
    (requests.RewindFiles("u"), {"subtype": "rewind_files", "user_message_id": "u"}),
    (
        requests.RewindFiles("u", dry_run=True),
        {"subtype": "rewind_files", "user_message_id": "u", "dry_run": True},
    ),
    (requests.GetContextUsage(), {"subtype": "get_context_usage"}),
    (requests.GetSessionCost(), {"subtype": "get_session_cost"}),
    (requests.GetUsage(), {"subtype": "get_usage"}),
    (requests.GetBinaryVersion(), {"subtype": "get_binary_version"}),
    (requests.GetSettings(), {"subtype": "get_settings"}),
    (requests.GetHooksListing(), {"subtype": "get_hooks_listing"}),
    (requests.GetTaskOutput("t"), {"subtype": "get_task_output", "task_id": "t"}),
    (requests.ListModels(), {"subtype": "list_models"}),
    (requests.ListPermissionRules(), {"subtype": "list_permission_rules"}),
    (requests.FileSuggestions("hel"), {"subtype": "file_suggestions", "query": "hel"}),
    (requests.ReadFile("a"), {"subtype": "read_file", "path": "a"}),
    (
        requests.ReadFile("a", 5, "base64"),
        {"subtype": "read_file", "path": "a", "max_bytes": 5, "encoding": "base64"},
    ),
    (requests.RenameSession("x"), {"subtype": "rename_session", "title": "x"}),
    (requests.SetColor("blue"), {"subtype": "set_color", "color": "blue"}),
    (requests.ApplyFlagSettings({}), {"subtype": "apply_flag_settings", "settings": {}}),
    (
        requests.UpdateSettings("localSettings", {"outputStyle": "x"}),
        {"subtype": "update_settings", "source": "localSettings", "settings": {"outputStyle": "x"}},
    ),
    (requests.ReloadSkills(), {"subtype": "reload_skills"}),
    (requests.ReloadPlugins(), {"subtype": "reload_plugins"}),
    (requests.ReloadOutputStyles(), {"subtype": "reload_output_styles"}),
    (requests.RegisterRepoRoot("d"), {"subtype": "register_repo_root", "directory": "d"}),
    (requests.SeedReadState("a", 1.5), {"subtype": "seed_read_state", "path": "a", "mtime": 1.5}),
    (requests.BackgroundTasks(), {"subtype": "background_tasks"}),
    (requests.BackgroundTasks("t"), {"subtype": "background_tasks", "tool_use_id": "t"}),
    (requests.StopTask("t"), {"subtype": "stop_task", "task_id": "t"}),
    (requests.SetHasSubscribers(None), {"subtype": "set_has_subscribers", "has_subscribers": None}),
    (requests.CancelAsyncMessage("u"), {"subtype": "cancel_async_message", "message_uuid": "u"}),
    (Other("from_tomorrow", {"a": 1}), {"subtype": "from_tomorrow", "a": 1}),
    (Other("this", {"subtype": "that"}), {"subtype": "this"}),
]


@pytest.mark.parametrize(("request_", "said"), SAID, ids=lambda value: str(value)[:40])
def test_a_request_says_what_the_cli_expects(request_, said):
    assert json.loads(msgspec.json.encode(payload(request_))) == said
    assert subtype_of(request_) == said["subtype"]


def test_every_request_is_tried_here():
    kinds = {name for name in requests.__all__ if isinstance(getattr(requests, name), type)}
    assert kinds == {type(request).__name__ for request, _ in SAID}
