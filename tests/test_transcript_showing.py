"""What is shown of single records, well formed and not."""

import json
from typing import Any

import msgspec
import pytest

from ide_bridge.session.transcript.records import agent_in, answer_of, read_head, read_object, read_record
from ide_bridge.session.transcript.showing import show
from ide_bridge.session.transcript.shown import (
    Command,
    Compacted,
    Interrupted,
    Notice,
    Prompt,
    Said,
    Shown,
    Summary,
    Thinking,
    Tool,
    ToolResult,
)

AT = 1794978477.976
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}


def of(kind: str, *, whole: bool = False, **members: Any) -> list[Shown]:
    line = json.dumps({"type": kind, "uuid": "u", "timestamp": "2026-11-18T05:07:57.976Z", **members}).encode()
    record = read_record(line)
    assert record is not None
    return show(record, whole=whole)


def of_user(content: Any, **members: Any) -> list[Shown]:
    return of("user", message={"role": "user", "content": content}, **members)


def of_model(*blocks: Any, **members: Any) -> list[Shown]:
    return of("assistant", message={"role": "assistant", "content": list(blocks)}, **members)


def test_the_users_words_are_a_prompt():
    assert of_user("do it") == [Prompt("u", AT, "do it", sent="u")]
    assert of_user([{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}]) == [
        Prompt("u", AT, "a\nb", sent="u", images=("image/png",))
    ]
    assert of_user([IMAGE]) == [Prompt("u", AT, "", sent="u", images=("image/png",))]


def test_words_about_records_do_not_make_a_record_another_one():
    text = '{"type":"prompt_snapshot","uuid":"x"} "type":"api-request-shape" <command-name> isMeta: true'
    assert of_user(text) == [Prompt("u", AT, text, sent="u")]


@pytest.mark.parametrize(
    "content",
    [
        "<local-command-caveat>The command below</local-command-caveat>",
        [{"type": "text", "text": "<system-reminder>be kind</system-reminder>"}],
        [{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}],
        "",
        [],
        None,
        5,
        [5, None, {"type": "text"}],
    ],
)
def test_what_nobody_said_is_not_shown(content):
    assert of_user(content) == []


def test_meta_records_are_not_the_users_words():
    assert of_user("the CLI says", isMeta=True) == []


def test_a_reminder_beside_a_prompt_is_left_out():
    blocks = [{"type": "text", "text": text} for text in ("<ide_selection>x</ide_selection>", "why?")]
    assert of_user(blocks) == [Prompt("u", AT, "why?", sent="u")]


def test_tags_that_the_user_types_into_a_prompt_stay():
    for text in ("what is <command-name>/x</command-name>?", "<b>bold</b>", "<system-reminder>open", "<a></b>"):
        assert of_user(text) == [Prompt("u", AT, text, sent="u")]


def test_commands_are_shown_as_commands():
    name = "<command-name>/review</command-name>\n   <command-message>review</command-message>\n"
    assert of_user(f"{name}<command-args> a b </command-args>") == [Command("u", AT, "/review", "a b")]
    assert of_user("<command-message>x</command-message>\n<command-name>/x</command-name>") == [
        Command("u", AT, "/x")
    ]
    assert of_user("<bash-input>ls</bash-input>") == [Command("u", AT, "!", "ls")]


def test_what_commands_print_is_a_notice_without_colours():
    assert of_user("<local-command-stdout>\x1b[2mdone\x1b[22m </local-command-stdout>") == [
        Notice("u", AT, "done")
    ]
    printed = "<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>"
    assert of_user(printed) == [Notice("u", AT, "a"), Notice("u", AT, "b", level="warning")]
    assert of_user("<local-command-stdout></local-command-stdout>") == []
    assert of("system", subtype="local_command", content="<local-command-stdout>x</local-command-stdout>") == [
        Notice("u", AT, "x")
    ]


def test_a_task_that_ended_is_a_notice():
    text = '<task-notification>\n<task-id>a</task-id>\n<summary>Agent "x" finished</summary>\n</task-notification>'
    assert of_user(text, origin={"kind": "task-notification"}) == [Notice("u", AT, 'Agent "x" finished')]


def test_interrupts():
    assert of_user("[Request interrupted by user]") == [Interrupted("u", AT)]
    assert of_user([{"type": "text", "text": "[Request interrupted by user for tool use]"}]) == [
        Interrupted("u", AT, tool=True)
    ]


def test_a_prompt_that_waited_is_a_prompt_under_the_uuid_it_was_sent_with():
    attachment = {"type": "queued_command", "prompt": "also", "source_uuid": "s", "commandMode": "prompt"}
    assert of("attachment", attachment=attachment) == [Prompt("u", AT, "also", sent="s")]
    assert of("attachment", attachment={"type": "queued_command", "prompt": [IMAGE]}) == [
        Prompt("u", AT, "", sent="u", images=("image/png",))
    ]
    for other in ({"type": "prompt_snapshot", "prompt": "x"}, {"type": "date"}, "x", None, [], {"type": {}}):
        assert of("attachment", attachment=other) == []


def test_answers_are_shown_block_by_block():
    assert of_model(
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}},
    ) == [Thinking("u", AT, "hm"), Said("u", AT, "so"), Tool("u", AT, "t", "Bash", {"command": "ls"})]
    assert of_model({"type": "thinking", "thinking": ""}, {"type": "redacted_thinking", "data": "x"}, {}, 5) == []
    assert of_model({"type": "text", "text": "half"}, isAbortedMidStream=True) == [
        Said("u", AT, "half", unfinished=True)
    ]


def test_what_the_cli_says_in_the_models_name_is_an_error_or_nothing():
    assert of_model({"type": "text", "text": "API Error: 529"}, isApiErrorMessage=True) == [
        Notice("u", AT, "API Error: 529", level="error")
    ]
    message = {"model": "<synthetic>", "content": [{"type": "text", "text": "No response requested."}]}
    assert of("assistant", message=message) == []


def test_results_say_how_it_went():
    block = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a"}, IMAGE]}
    assert of_user([block], toolUseResult={"agentId": "a1", "content": []}) == [
        ToolResult("u", AT, "a", id="t", images=("image/png",), agent="a1")
    ]
    failed = {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}
    assert of_user([failed], toolUseResult="Error: no") == [ToolResult("u", AT, "no", id="t", ok=False)]
    assert of_user([failed], toolDenialKind="user-rejected") == [
        ToolResult("u", AT, "no", id="t", ok=False, denied=True)
    ]
    refused = failed | {
        "content": "The user doesn't want to proceed with this tool use. The tool use was rejected"
    }
    (result,) = of_user([refused])
    assert isinstance(result, ToolResult)
    assert result.denied


def test_a_tool_that_the_api_runs_has_its_result_in_the_answer():
    assert of_model(
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result"}]},
    ) == [Tool("u", AT, "s", "web_search", {"query": "x"}), ToolResult("u", AT, "", id="s")]


def test_a_compaction_is_a_boundary_and_a_summary():
    metadata = {"trigger": "auto", "preTokens": 110}
    assert of("system", subtype="compact_boundary", compactMetadata=metadata) == [Compacted("u", AT, "auto", 110)]
    assert of("system", subtype="compact_boundary", compactMetadata=5) == [Compacted("u", AT)]
    assert of_user("This session", isCompactSummary=True) == [Summary("u", AT, "This session")]


def test_what_the_cli_notes_for_the_eye_is_a_notice():
    assert of("system", subtype="informational", content="Careful", level="warning") == [
        Notice("u", AT, "Careful", level="warning")
    ]
    assert of("system", subtype="x", content="Fine", level="odd") == [Notice("u", AT, "Fine")]
    assert of("system", subtype="stop_hook_summary", hookCount=1) == []
    assert of("system", subtype="x", content="hidden", isMeta=True) == []


@pytest.mark.parametrize("kind", ["progress", "summary", "api-request-shape", "file-history-snapshot", "", "new"])
def test_other_records_are_not_shown(kind):
    assert of(kind, message={"content": "x"}, content="x") == []


def test_a_record_without_a_uuid_or_a_time():
    assert of_user("x", uuid=None) == []
    for timestamp in (None, 5, "never", "9999-99-99"):
        assert of_user("x", timestamp=timestamp) == [Prompt("u", 0.0, "x", sent="u")]


def test_long_texts_are_cut_unless_the_whole_is_asked_for():
    (said,) = of_model({"type": "text", "text": "x" * 200_000})
    assert isinstance(said, Said)
    assert (len(said.text), said.cut) == (100_000, True)
    given = {"content": "x" * 50_000, "items": list(range(5_000)), "deep": [{"a": ["x" * 50_000]}], "n": 1}
    (tool,) = of_model({"type": "tool_use", "id": "t", "name": "Write", "input": given})
    assert isinstance(tool, Tool)
    assert tool.cut
    assert len(msgspec.json.encode(tool)) < 60_000
    (whole,) = of("assistant", whole=True, message={"content": [{"type": "tool_use", "id": "t", "input": given}]})
    assert isinstance(whole, Tool)
    assert (whole.input, whole.cut) == (given, False)


def test_what_is_shown_goes_over_the_wire_by_its_kind():
    (prompt,) = of_user("do it")
    assert json.loads(msgspec.json.encode(prompt)) == {
        "kind": "prompt",
        "uuid": "u",
        "at": AT,
        "text": "do it",
        "sent": "u",
    }
    (result,) = of_user([{"type": "tool_result", "tool_use_id": "t", "content": "x"}])
    assert json.loads(msgspec.json.encode(result))["kind"] == "toolResult"


# -- reading ----------------------------------------------------------------------------------------------------


def test_a_head_is_read_wherever_its_members_stand():
    members = {"uuid": "u", "parentUuid": "p", "type": "user", "attachment": {"uuid": "no", "type": "no"}}
    for order in (list(members), list(reversed(members))):
        head = read_head(json.dumps({key: members[key] for key in order}).encode())
        assert head is not None
        assert (head.uuid, head.parentUuid, head.type) == ("u", "p", "user")


@pytest.mark.parametrize("line", [b"", b"5", b"[]", b"{", b'{"uuid":', b"\xff", b'{"a":' * 5_000, b"[" * 100_000])
def test_what_is_no_record_is_none(line):
    assert read_head(line) is None
    assert read_record(line) is None
    assert read_object(line) == {}
    assert answer_of(line) is None


def test_the_answer_a_record_belongs_to():
    assert answer_of(b'{"message":{"content":[{"id":"x"}],"id":"msg_1"}}') == "msg_1"
    for line in (b"{}", b'{"message":5}', b'{"message":{"id":5}}', b'{"message":{}}'):
        assert answer_of(line) is None


def test_the_sub_agent_in_a_result():
    assert agent_in(b'{"content":["x"],"agentId":"a1"}') == "a1"
    for result in (b"", b'"Error"', b"{}", b'{"agentId":5}'):
        assert agent_in(result) is None


def test_broken_texts_are_mended():
    record = read_record(b'{"uuid":"\\ud83d\\ude00 \\ud83d","content":"\xff"}')
    assert record is not None
    assert (record.uuid, record.content) == ("😀 �", "�")
