"""What front ends send, right and wrong, and what a CLI would get of it."""

import json

import pytest

from ide_bridge.errors import InvalidParams
from ide_bridge.session.relay.front_words import (
    Answer,
    Message,
    Nothing,
    Order,
    answer_line,
    control_line,
    read_words,
)

USER = {"type": "user", "message": {"role": "user", "content": "hello"}}
INPUT = {"command": "npm test"}


def read(message):
    return read_words(json.dumps(message).encode())


def answered(message, original=INPUT):
    """The response that a CLI would get for a front end's answer."""
    line = answer_line(read(message), original)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    written = json.loads(line)
    assert written.keys() == {"type", "response"}
    assert written["type"] == "control_response"
    return written["response"]


def test_a_prompt_is_written_with_all_that_a_cli_wants():
    assert read(USER) == Message("", {**USER, "parent_tool_use_id": None, "session_id": ""})
    full = {**USER, "session_id": "s", "uuid": "u", "parent_tool_use_id": "p", "priority": "now"}
    assert read(full) == Message("s", full)


def test_a_prompt_may_be_a_list_of_blocks():
    content = [{"type": "text", "text": "look"}, {"type": "image", "source": {"type": "base64", "data": ""}}]
    blocks = {**USER, "message": {"role": "user", "content": content}}
    assert read(blocks).message["message"]["content"] == content


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"{",
        b"",
        b"[]",
        b"5",
        b'"user"',
        b"null",
        b"\xff",
        b'{"type":"user","message":{"role":"user","content":"\xff"}}',
        b'{"type":"user","message":{"role":"user","content":"\\ud800"}}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"type":"user","message":{"role":"user","content":"x","n":NaN}}',
        b'{"type":"user","message":{"role":"user","content":"x"}} {"type":"user"}',
    ],
)
def test_what_is_no_json_object_is_refused(line):
    with pytest.raises(InvalidParams, match=r"JSON|deeply"):
        read_words(line)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({}, "The message does not fit: type is missing."),
        ({"type": 5}, "The message does not fit: type must be a text."),
        ({"type": "assistant"}, "No CLI takes a message of the type 'assistant'."),
        ({"type": "system"}, "No CLI takes a message of the type 'system'."),
        ({"type": "user"}, "A user message does not fit: message is missing."),
        ({"type": "user", "message": "hello"}, "A user message does not fit: message must be an object."),
        ({**USER, "message": {"content": "x"}}, "A user message does not fit: message.role is missing."),
        (
            {**USER, "message": {"role": "assistant", "content": "x"}},
            "The role of a user message must be user; the CLI would end on another.",
        ),
        (
            {**USER, "message": {"role": "user", "content": 5}},
            "A user message does not fit: message.content must be a text or a list.",
        ),
        (
            {**USER, "message": {"role": "user", "content": ["x"]}},
            "A user message does not fit: message.content[0] must be an object.",
        ),
        (
            {**USER, "message": {"role": "user", "content": ""}},
            "The content of a user message must not be empty.",
        ),
        ({**USER, "uuid": 5}, "A user message does not fit: uuid must be a text or null."),
        ({**USER, "session_id": 5}, "The message does not fit: session_id must be a text or null."),
        ({"type": "control_request", "request": {}}, "A control_request does not fit: request_id is missing."),
        ({"type": "control_request", "request_id": "r"}, "A control_request does not fit: request is missing."),
        (
            {"type": "control_request", "request_id": "r", "request": {}},
            "The request does not fit: subtype is missing.",
        ),
        (
            {"type": "update_environment_variables"},
            "An update_environment_variables does not fit: variables is missing.",
        ),
        ({"type": "control_response"}, "A control_response does not fit: response is missing."),
        (
            {"type": "control_response", "response": {"subtype": "nonsense", "request_id": "r"}},
            "response.subtype of a control_response must be success or error.",
        ),
        (
            {"type": "control_response", "request_id": "r", "permission": {"allow": "yes"}},
            "A control_response does not fit: permission.allow must be true or false.",
        ),
        (
            {"type": "control_cancel_request", "request_id": "r"},
            "A control_cancel_request cannot be passed on: Claude Code 2.1.37 ends on it.",
        ),
    ],
)
def test_what_would_harm_a_cli_is_refused_in_one_sentence(message, problem):
    with pytest.raises(InvalidParams) as refused:
        read(message)
    assert str(refused.value) == problem


def test_a_control_request_is_passed_on():
    request = {"subtype": "set_model", "model": "m"}
    order = read({"type": "control_request", "request_id": "r", "request": request, "session_id": "s"})
    assert order == Order("s", "r", request)
    line = control_line(order.request_id, order.request)
    assert json.loads(line) == {"type": "control_request", "request_id": "r", "request": request}
    assert line.endswith(b"\n")


def test_the_interrupt_of_the_documents_becomes_one_that_works():
    one, two = read({"type": "interrupt", "session_id": "s"}), read({"type": "interrupt"})
    assert (one.session, one.request, two.session) == ("s", {"subtype": "interrupt"}, "")
    assert one.request_id != two.request_id


def test_a_sign_of_life_is_for_nobody():
    assert read({"type": "keep_alive"}) == Nothing()


def test_variables_are_passed_on():
    variables = {"type": "update_environment_variables", "variables": {"A": "b"}}
    assert read(variables) == Message("", variables)


@pytest.mark.parametrize(
    "given",
    [
        {"response": {"subtype": "success", "request_id": "r", "response": {"behavior": "allow"}}},
        {
            "response": {
                "subtype": "success",
                "request_id": "r",
                "response": {"behavior": "allow", "updatedInput": {}},
            }
        },
        {
            "response": {
                "subtype": "success",
                "request_id": "r",
                "response": {"behavior": "allow", "updatedInput": INPUT},
            }
        },
        {"response": {"subtype": "can_use_tool_result", "request_id": "r", "result": {"behavior": "allow"}}},
        {"request_id": "r", "permission": {"allow": True}},
    ],
)
def test_every_way_to_allow_sends_the_whole_input(given):
    assert answered({"type": "control_response", **given}) == {
        "subtype": "success",
        "request_id": "r",
        "response": {"behavior": "allow", "updatedInput": INPUT},
    }


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"request_id": "r", "permission": {"allow": False}}, "The user does not allow this."),
        ({"request_id": "r", "permission": {"allow": False, "message": "no"}}, "no"),
        ({"request_id": "r", "permission": {"allow": False, "reason": "no"}}, "no"),
        (
            {"response": {"subtype": "can_use_tool_result", "request_id": "r", "result": {"behavior": "deny"}}},
            "The user does not allow this.",
        ),
        (
            {
                "response": {
                    "subtype": "success",
                    "request_id": "r",
                    "response": {"behavior": "deny", "message": "no"},
                }
            },
            "no",
        ),
    ],
)
def test_every_way_to_deny_sends_a_reason(given, reason):
    response = answered({"type": "control_response", **given})
    assert response["response"] == {"behavior": "deny", "message": reason}


def test_changed_input_new_rules_and_the_end_of_the_turn_are_passed_on():
    rules = [{"type": "addRules"}]
    allow = {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": rules}
    deny = {"behavior": "deny", "message": "no", "interrupt": True}
    for decision in (allow, deny):
        given = {"subtype": "success", "request_id": "r", "response": decision}
        assert answered({"type": "control_response", "response": given})["response"] == decision


@pytest.mark.parametrize(
    "response", [{}, {"behavior": "maybe"}, {"behavior": "allow", "updatedInput": "x"}, {"x": 1}]
)
def test_an_answer_that_decides_nothing_is_refused(response):
    given = {"subtype": "success", "request_id": "r", "response": response}
    with pytest.raises(InvalidParams, match="can_use_tool"):
        answered({"type": "control_response", "response": given})


def test_answers_to_other_questions_are_passed_on_as_they_are():
    given = {"subtype": "success", "request_id": "r", "response": {"continue": True}}
    assert answered({"type": "control_response", "response": given}, None) == given


def test_an_error_is_an_answer_too():
    given = {"subtype": "error", "request_id": "r", "error": "no idea"}
    assert answered({"type": "control_response", "response": given}) == given
    assert read({"type": "control_response", "response": {"subtype": "error", "request_id": "r"}}) == Answer(
        "r", {}, "The front end gave no reason."
    )
