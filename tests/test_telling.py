"""From the CLI's messages to what a person is told of them."""

import json

import pytest

from ide_bridge.session import events
from ide_bridge.session.control.messages import read
from ide_bridge.session.telling import RESULT_LIMIT, told


def say(**message):
    return list(told(read(json.dumps(message).encode()), lambda tool, given: f"{tool}!{len(given)}"))


def block(**content):
    return {"type": "assistant", "message": {"content": [content]}}


def test_pieces_are_text_and_those_of_a_sub_agent_are_left_out():
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hel"}}
    assert say(type="stream_event", event=delta) == [events.Text("Hel")]
    assert say(type="stream_event", event=delta, parent_tool_use_id="t") == []
    assert say(type="stream_event", event={"delta": {"type": "input_json_delta", "partial_json": "{"}}) == []
    assert say(type="stream_event", event={"type": "message_stop"}) == []


def test_blocks_of_an_answer():
    assert say(**block(type="text", text="Hello")) == [events.Said("Hello")]
    assert say(**block(type="thinking", thinking="Hm")) == [events.Thinking("Hm")]
    assert say(**block(type="tool_use", id="t1", name="Bash", input={"command": "ls"})) == [
        events.Tool("t1", "Bash", "Bash!1", {"command": "ls"})
    ]
    assert say(**block(type="text", text="")) == []
    assert say(**block(type="hologram")) == []
    assert say(**block(type="text", text="From below"), parent_tool_use_id="t9") == [
        events.Said("From below", "t9")
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image", "source": {}}], "[image]"),
        (None, ""),
        ("x" * (RESULT_LIMIT + 1), "x" * RESULT_LIMIT + "…"),
    ],
)
def test_results_of_tools(content, text):
    result = {"type": "tool_result", "tool_use_id": "t1", "content": content, "is_error": True}
    assert say(type="user", message={"content": [result]}) == [events.ToolResult("t1", ok=False, text=text)]


def test_an_echo_says_nothing_and_an_interrupt_does():
    assert say(type="user", isReplay=True, message={"content": "do it"}) == []
    (notice,) = say(type="user", message={"content": [{"type": "text", "text": "[Request interrupted by user]"}]})
    assert notice == events.Notice("info", "Request interrupted by user")
    assert say(type="user", message={"content": "a note of the CLI"}) == []


def test_a_result_says_whether_it_went_well_whatever_its_subtype_is():
    (well,) = say(type="result", subtype="success", result="Done.", duration_ms=1500, total_cost_usd=0.5)
    assert well == events.Result(ok=True, text="Done.", cost=0.5, seconds=1.5, reason="")
    (badly,) = say(type="result", subtype="success", is_error=True, result="529", terminal_reason="api_error")
    assert (badly.ok, badly.reason) == (False, "api_error")
    (broken,) = say(type="result", subtype="error_during_execution", errors=["a", "b"])
    assert (broken.ok, broken.text, broken.reason) == (False, "a\nb", "error_during_execution")


@pytest.mark.parametrize(
    ("message", "level", "words"),
    [
        (
            {"subtype": "permission_denied", "tool_name": "Bash", "message": "No."},
            "warning",
            "Bash was refused: No.",
        ),
        ({"subtype": "api_retry", "attempt": 2}, "warning", "attempt 2"),
        ({"subtype": "compact_boundary"}, "info", "compacted"),
        ({"subtype": "status", "status": "compacting"}, "info", "Compacting"),
        ({"subtype": "task_notification", "status": "completed", "summary": "tests"}, "info", "completed: tests"),
        ({"subtype": "session_writes_lost"}, "error", "make room"),
        ({"subtype": "local_command_output", "content": "cost: 1"}, "info", "cost: 1"),
        ({"subtype": "notification", "text": "look"}, "info", "look"),
        ({"subtype": "model_refusal_no_fallback"}, "warning", "refused"),
    ],
)
def test_reports_worth_a_line(message, level, words):
    (notice,) = say(type="system", **message)
    assert notice.level == level
    assert words in notice.text


@pytest.mark.parametrize(
    "message",
    [
        {"type": "system", "subtype": "init"},
        {"type": "system", "subtype": "status", "status": "requesting"},
        {"type": "system", "subtype": "of_tomorrow"},
        {"type": "of_tomorrow"},
        {"type": "keep_alive"},
    ],
)
def test_the_rest_says_nothing_here(message):
    assert say(**message) == []
