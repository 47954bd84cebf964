import base64
import json

import msgspec
import pytest

from ide_bridge.errors import ParseError
from ide_bridge.session.control import messages, reports
from ide_bridge.session.control.messages import (
    Assistant,
    Message,
    Result,
    StreamEvent,
    System,
    Unknown,
    User,
    read,
)
from ide_bridge.session.control.reports import Status

SAID = {
    "user": {"message": {"role": "user"}, "isReplay": True, "isSynthetic": True, "tool_use_result": [1]},
    "assistant": {"message": {"id": "m"}, "error": "rate_limit", "aborted": True},
    "stream_event": {"event": {"type": "ping"}},
    "result": {
        "is_error": True,
        "result": "done",
        "errors": ["e"],
        "duration_ms": 5.0,
        "duration_api_ms": 4.0,
        "num_turns": 2,
        "total_cost_usd": 0.5,
        "stop_reason": "end_turn",
        "terminal_reason": "completed",
        "api_error_status": 529,
        "usage": {"input_tokens": 1},
        "modelUsage": {"opus": {}},
        "permission_denials": [{"tool_name": "Bash"}],
        "structured_output": {"a": 1},
    },
    "tool_progress": {"tool_use_id": "t", "tool_name": "Bash", "elapsed_time_seconds": 2.5, "task_id": "k"},
    "tool_use_summary": {"summary": "s", "preceding_tool_use_ids": ["t"]},
    "auth_status": {"isAuthenticating": True, "output": ["o"], "error": "e"},
    "command_lifecycle": {"command_uuid": "c", "state": "queued"},
    "rate_limit_event": {"rate_limit_info": {"status": "allowed"}},
    "prompt_suggestion": {"suggestion": "s"},
    "conversation_reset": {"new_conversation_id": "n", "trigger": "clear"},
    "active_goal": {"value": {"condition": "c"}},
    "streamlined_text": {"text": "t"},
    "streamlined_tool_use_summary": {"tool_summary": "t"},
    "keep_alive": {},
    "control_request": {"request_id": "r", "request": {"subtype": "x"}},
    "control_response": {"response": {"subtype": "success"}},
    "control_cancel_request": {"request_id": "r"},
    "system/init": {
        "cwd": "/work",
        "model": "opus",
        "permissionMode": "plan",
        "claude_code_version": "2.1.37",
        "apiKeySource": "none",
        "output_style": "default",
        "tools": ["Bash"],
        "mcp_servers": [{"name": "mini", "status": "connected"}],
        "slash_commands": ["compact"],
        "agents": ["Explore"],
        "skills": ["s"],
        "plugins": [{"name": "p", "path": "/p"}],
    },
    "system/status": {
        "status": "compacting",
        "permissionMode": "plan",
        "compact_result": "failed",
        "compact_error": "e",
    },
    "system/compact_boundary": {
        "compact_metadata": {"trigger": "auto", "pre_tokens": 7, "post_tokens": 2, "duration_ms": 3}
    },
    "system/session_state_changed": {"state": "idle"},
    "system/session_title_changed": {"title": "t"},
    "system/session_writes_lost": {"error_code": "ENOSPC", "lost": ["transcript"]},
    "system/permission_denied": {
        "tool_name": "Bash",
        "tool_use_id": "t",
        "agent_id": "a",
        "decision_reason_type": "mode",
        "message": "m",
    },
    "system/api_retry": {
        "attempt": 1,
        "max_retries": 10,
        "retry_delay_ms": 500.5,
        "error_status": 529,
        "error": "overloaded",
    },
    "system/thinking_tokens": {"estimated_tokens": 5, "estimated_tokens_delta": 2},
    "system/task_started": {
        "task_id": "k",
        "tool_use_id": "t",
        "description": "d",
        "task_type": "local_agent",
        "subagent_type": "Explore",
    },
    "system/task_progress": {
        "task_id": "k",
        "tool_use_id": "t",
        "description": "d",
        "last_tool_name": "Bash",
        "summary": "s",
        "usage": {"total_tokens": 1},
    },
    "system/task_updated": {"task_id": "k", "patch": {"status": "running"}},
    "system/task_notification": {
        "task_id": "k",
        "tool_use_id": "t",
        "status": "completed",
        "output_file": "/f",
        "summary": "s",
    },
    "system/background_tasks_changed": {"tasks": [{"task_id": "k"}]},
    "system/hook_started": {"hook_id": "h", "hook_name": "n", "hook_event": "Stop"},
    "system/hook_progress": {
        "hook_id": "h",
        "hook_name": "n",
        "hook_event": "Stop",
        "stdout": "o",
        "stderr": "e",
        "output": "oe",
    },
    "system/hook_response": {
        "hook_id": "h",
        "hook_name": "n",
        "hook_event": "Stop",
        "stdout": "o",
        "stderr": "e",
        "output": "oe",
        "exit_code": 2,
        "outcome": "error",
    },
    "system/files_persisted": {
        "files": [{"filename": "f", "file_id": "i"}],
        "failed": [{"filename": "g", "error": "e"}],
        "processed_at": "now",
    },
    "system/local_command_output": {"content": "c"},
    "system/informational": {"content": "c", "level": "warning", "tool_use_id": "t"},
    "system/notification": {"key": "k", "text": "t", "priority": "low", "timeout_ms": 5},
    "system/commands_changed": {"commands": [{"name": "compact"}]},
    "system/plugin_install": {"status": "failed", "name": "n", "error": "e"},
    "system/memory_recall": {"mode": "select", "memories": [{"path": "/m"}]},
    "system/mirror_error": {"error": "e", "key": {"projectKey": "p"}},
    "system/worker_shutting_down": {"reason": "r"},
    "system/model_refusal_fallback": {
        "original_model": "a",
        "fallback_model": "b",
        "direction": "retry",
        "content": "c",
    },
    "system/model_refusal_no_fallback": {"original_model": "a", "content": "c"},
    "system/elicitation_complete": {"mcp_server_name": "m", "elicitation_id": "e"},
    "system/control_request_progress": {
        "request_id": "r",
        "status": "api_retry",
        "attempt": 1,
        "max_retries": 3,
    },
}
BASE = {"uuid": "u", "session_id": "s", "parent_tool_use_id": "p"}


def line(**members):
    return json.dumps(members, ensure_ascii=False).encode()


def kind_of(name):
    """The members that say what a message is."""
    kind, _, subtype = name.partition("/")
    return {"type": kind, "subtype": subtype or None}


@pytest.mark.parametrize("name", SAID)
def test_every_known_kind_has_a_type_of_its_own(name):
    message = read(line(**SAID[name], **BASE, **kind_of(name)))
    assert type(message).__name__ == "".join(word.capitalize() for word in name.split("/")[-1].split("_"))
    assert isinstance(message, System) == name.startswith("system/")
    assert json.loads(msgspec.json.encode(message)) == {
        **SAID[name],
        **BASE,
        **kind_of(name),
        "raw": base64.b64encode(message.raw).decode(),
    }


def test_every_type_is_tried_here_and_offered_by_its_module():
    kinds = {
        name: module
        for module in (messages, reports)
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Message) and kind.__module__ == module.__name__
    }
    assert all(name in module.__all__ for name, module in kinds.items())
    tried = {type(read(line(**kind_of(name)))).__name__ for name in SAID}
    assert tried == kinds.keys() - {"Message", "System", "Unknown"}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"type": "from_tomorrow", "subtype": "x", "n": 1}, Unknown),
        ({"type": "system", "subtype": "from_tomorrow", "n": 1}, System),
        ({"type": "system", "n": 1}, System),
        ({"type": "system", "subtype": ["init"]}, System),
        ({"type": ["user"]}, Unknown),
        ({"type": None}, Unknown),
        ({}, Unknown),
    ],
)
def test_what_is_not_known_is_kept_as_it_is(said, kind):
    message = read(line(**said))
    assert type(message) is kind
    assert message.type == (said.get("type") if isinstance(said.get("type"), str) else "")
    assert message.subtype == (said.get("subtype") if isinstance(said.get("subtype"), str) else None)
    assert message.raw == line(**said)
    assert message.fields == said


def test_a_status_may_be_over():
    message = read(line(type="system", subtype="status", status=None, permissionMode="plan"))
    assert isinstance(message, Status)
    assert (message.status, message.permission_mode) == (None, "plan")


def test_the_end_of_a_turn_is_understood_in_any_order_of_its_members():
    message = read(
        line(
            duration_api_ms=59,
            permission_denials=[{"tool_name": "Bash", "tool_use_id": "t", "tool_input": {}}],
            total_cost_usd=0.0012,
            modelUsage={"opus": {"costUSD": 0.0012}},
            is_error=True,
            subtype="success",
            api_error_status=529,
            terminal_reason="api_error",
            type="result",
            result="no",
            duration_ms=191,
            uuid="u",
        )
    )
    assert isinstance(message, Result)
    assert (message.is_error, message.subtype, message.terminal_reason) == (True, "success", "api_error")
    assert (message.total_cost_usd, message.duration_ms, message.api_error_status) == (0.0012, 191, 529)
    assert message.model_usage == {"opus": {"costUSD": 0.0012}}
    assert message.permission_denials[0]["tool_name"] == "Bash"


def test_an_end_of_turn_with_odd_members_is_still_the_end_of_a_turn():
    message = read(
        line(type="result", subtype="success", total_cost_usd="free", errors=[{}], is_error=True, uuid=5)
    )
    assert isinstance(message, Result)
    assert (message.is_error, message.total_cost_usd, message.errors, message.uuid) == (True, None, (), None)


def test_an_echoed_prompt_and_the_result_of_a_tool_are_told_apart():
    echoed = read(line(type="user", isReplay=True, uuid="mine", message={"role": "user", "content": "hi"}))
    result = read(
        line(type="user", message={"content": [{"type": "tool_result"}]}, tool_use_result={"stdout": ""})
    )
    assert isinstance(echoed, User)
    assert isinstance(result, User)
    assert (echoed.is_replay, echoed.uuid, echoed.message["content"]) == (True, "mine", "hi")
    assert (result.is_replay, result.tool_use_result) == (False, {"stdout": ""})


def test_pieces_and_blocks_of_an_answer_keep_the_models_json():
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "é😀"}}
    piece = read(line(type="stream_event", event=event, parent_tool_use_id=None))
    block = read(line(type="assistant", message={"content": [{"type": "text", "text": "x"}]}, error="rate_limit"))
    assert isinstance(piece, StreamEvent)
    assert isinstance(block, Assistant)
    assert piece.event == event
    assert (block.message["content"][0]["text"], block.error, block.aborted) == ("x", "rate_limit", False)


def test_a_member_called_raw_is_not_taken_for_the_line():
    for said in ("aGk=", "no base64!", 7):
        message = read(line(type="user", raw=said, uuid="u"))
        assert (message.raw, message.uuid) == (line(type="user", raw=said, uuid="u"), "u")


def test_half_an_emoji_costs_no_more_than_itself():
    said = b'{"type":"user","uuid":"u","tool_use_result":{"stdout":"cut \\ud83d"},"message":{"content":"\\ude00"}}'
    message = read(said)
    assert isinstance(message, User)
    assert message.message == {"content": "\ufffd"}
    assert message.tool_use_result == {"stdout": "cut \ufffd"}
    assert json.loads(message.raw) == message.fields


@pytest.mark.parametrize(
    "said", [b"", b"[]", b"7", b'"x"', b"null", b"{", b'{"type":"user"} {}', b"no", b'{"type":"\x01"}', b"\xff"]
)
def test_what_is_no_object_is_refused_in_words(said):
    with pytest.raises(ParseError, match="no JSON object"):
        read(said)


def test_what_is_nested_too_deeply_is_refused_in_words():
    with pytest.raises(ParseError, match="too deeply"):
        read(b'{"type":"user","message":{"content":' + b"[" * 100_000 + b"]" * 100_000 + b"}}")


def test_the_fields_of_a_message_that_was_never_a_line_are_empty():
    assert Unknown(raw=b"{").fields == {}
    assert Unknown(raw=b"[]").fields == {}
