import pytest

from ide_bridge.session.control.questions import (
    Asked,
    CanUseTool,
    Elicitation,
    HookCallback,
    McpMessage,
    OtherRequest,
    ToolServer,
    UserDialog,
    asked,
)

ALLOWED = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


@pytest.mark.parametrize(
    ("request_", "question"),
    [
        (
            {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "t"},
            CanUseTool(tool_name="Bash", input={"command": "ls"}, tool_use_id="t"),
        ),
        (
            {
                "tool_name": "mcp__mini__shout",
                "subtype": "can_use_tool",
                "mcp_server": {"name": "mini", "source": "dynamic"},
                "display_name": "Shout",
                "description": "louder",
                "title": "Shout it",
                "input": {},
                "permission_suggestions": [ALLOWED],
                "blocked_path": "/etc",
                "decision_reason": "because",
                "decision_reason_type": "rule",
                "agent_id": "a1",
                "requires_user_interaction": True,
                "server_policy_ask_only": True,
                "tool_use_id": "t",
                "from_tomorrow": {},
            },
            CanUseTool(
                tool_name="mcp__mini__shout",
                input={},
                tool_use_id="t",
                permission_suggestions=(ALLOWED,),
                blocked_path="/etc",
                decision_reason="because",
                decision_reason_type="rule",
                title="Shout it",
                description="louder",
                display_name="Shout",
                agent_id="a1",
                requires_user_interaction=True,
                server_policy_ask_only=True,
                mcp_server=ToolServer("mini", "dynamic"),
            ),
        ),
        (
            {"subtype": "hook_callback", "callback_id": "pre", "input": {"hook_event_name": "PreToolUse"}},
            HookCallback(callback_id="pre", input={"hook_event_name": "PreToolUse"}),
        ),
        (
            {"subtype": "mcp_message", "server_name": "mini", "message": {"method": "tools/list"}},
            McpMessage("mini", {"method": "tools/list"}),
        ),
        (
            {"subtype": "elicitation", "mcp_server_name": "mini", "message": "Who?", "mode": "form"},
            Elicitation(mcp_server_name="mini", message="Who?", mode="form"),
        ),
        (
            {"subtype": "request_user_dialog", "dialog_kind": "k", "payload": {"a": 1}},
            UserDialog(dialog_kind="k", payload={"a": 1}),
        ),
    ],
)
def test_every_known_question_is_typed(request_, question):
    assert asked("r", request_) == Asked("r", question)


@pytest.mark.parametrize(
    ("request_", "subtype", "fields"),
    [
        ({"subtype": "from_tomorrow", "a": 1}, "from_tomorrow", {"a": 1}),
        ({"subtype": "can_use_tool", "tool_name": "Bash"}, "can_use_tool", {"tool_name": "Bash"}),
        ({"subtype": "can_use_tool", "input": {}}, "can_use_tool", {"input": {}}),
        (
            {"subtype": "can_use_tool", "tool_name": "Bash", "input": "ls"},
            "can_use_tool",
            {"tool_name": "Bash", "input": "ls"},
        ),
        ({"subtype": ["x"]}, "", {}),
        ({}, "", {}),
    ],
)
def test_what_cannot_be_understood_can_still_be_refused(request_, subtype, fields):
    assert asked("r", request_) == Asked("r", OtherRequest(subtype, fields))


def test_an_odd_detail_does_not_cost_the_question():
    said = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "blocked_path": ["/"]}
    assert asked("r", said).request == CanUseTool(tool_name="Bash", input={"command": "ls"})
