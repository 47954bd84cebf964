import json

import pytest

from ide_bridge.session import control as control_module
from ide_bridge.session.control import Answered, Broken, Control, Failed, Said, Withdrawn
from ide_bridge.session.control.messages import Assistant, KeepAlive, Unknown
from ide_bridge.session.control.questions import (
    Asked,
    CanUseTool,
    HookCallback,
    McpMessage,
    OtherRequest,
    UserDialog,
)
from ide_bridge.session.control.requests import Initialize, Interrupt, McpStatus, Other, SetModel

BASH = {
    "subtype": "can_use_tool",
    "tool_name": "Bash",
    "input": {"command": "ls", "timeout": 5},
    "tool_use_id": "t",
}
MAY_IT = CanUseTool(tool_name="Bash", input={"command": "ls", "timeout": 5}, tool_use_id="t")
HOOK = {"subtype": "hook_callback", "callback_id": "pre", "input": {}}
RULE = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


@pytest.fixture
def control():
    return Control()


def line(**members):
    return json.dumps(members).encode() + b"\n"


def question(request_id, request=BASH):
    return {"type": "control_request", "request_id": request_id, "request": request}


def ask(control, request_id, request=BASH):
    """Let the CLI ask."""
    return control.receive(line(**question(request_id, request)))


def success(request_id, response=None, **more):
    held = {} if response is None else {"response": response}
    return line(type="control_response", response={"subtype": "success", "request_id": request_id, **held, **more})


def error(request_id, error="no", **more):
    return line(
        type="control_response", response={"subtype": "error", "request_id": request_id, "error": error, **more}
    )


# -- what the CLI says ------------------------------------------------------------------------------------------


def test_what_is_neither_question_nor_answer_is_said(control):
    events = control.receive(line(type="assistant", uuid="a") + line(type="keep_alive") + line(type="tomorrow"))
    assert [type(event.message) for event in events] == [Assistant, KeepAlive, Unknown]
    assert all(isinstance(event, Said) for event in events)


def test_bytes_may_be_cut_anywhere(control):
    data = line(type="assistant", uuid="é") + line(**question("r"))
    events = [event for at in range(len(data)) for event in control.receive(data[at : at + 1])]
    assert events == Control().receive(data)
    assert len(events) == 2


def test_a_line_that_cannot_be_read_does_not_stop_the_next(control):
    events = control.receive(b"Debugger attached.\n[]\n\n" + b"[" * 100_000 + b"\n" + line(type="keep_alive"))
    assert [type(event) for event in events] == [Broken, Broken, Broken, Said]
    assert "no JSON object" in events[0].reason


def test_a_line_over_the_limit_is_passed_over():
    control = Control(limit=100)
    events = control.receive(line(type="user", text="x" * 2000) + line(type="keep_alive"))
    assert events[0] == Broken("a line of 2,028 bytes is too long")
    assert isinstance(events[1], Said)


def test_a_line_of_many_megabytes_is_read(control):
    text = "x" * (20 * 1024 * 1024)
    (event,) = control.receive(line(type="assistant", message={"content": text}))
    assert event.message.message["content"] == text


# -- what the CLI asks ------------------------------------------------------------------------------------------


def test_a_question_is_open_until_it_is_answered(control):
    assert ask(control, "r") == [Asked("r", MAY_IT)]
    assert control.open == {"r": Asked("r", MAY_IT)}
    assert control.allow("r", MAY_IT.input) is not None
    assert control.open == {}


def test_what_is_open_cannot_be_changed_from_outside(control):
    ask(control, "r")
    with pytest.raises(TypeError):
        control.open["r"] = None


def test_permission_is_given_with_the_whole_input(control):
    ask(control, "r")
    assert json.loads(control.allow("r", MAY_IT.input)) == {
        "type": "control_response",
        "response": {
            "subtype": "success",
            "request_id": "r",
            "response": {"behavior": "allow", "updatedInput": {"command": "ls", "timeout": 5}},
        },
    }


@pytest.mark.parametrize(("rules", "said"), [([RULE], {"updatedPermissions": [RULE]}), ([], {}), (None, {})])
def test_permission_can_be_given_for_more_than_once(control, rules, said):
    ask(control, "r")
    response = json.loads(control.allow("r", {}, rules))["response"]["response"]
    assert response == {"behavior": "allow", "updatedInput": {}, **said}


def test_permission_is_refused_with_a_reason(control):
    ask(control, "r")
    assert json.loads(control.deny("r", "not here"))["response"] == {
        "subtype": "success",
        "request_id": "r",
        "response": {"behavior": "deny", "message": "not here"},
    }


def test_a_refusal_without_a_reason_gets_one(control):
    ask(control, "r")
    assert json.loads(control.deny("r", ""))["response"]["response"]["message"]


def test_a_refusal_can_end_the_turn(control):
    ask(control, "r")
    response = json.loads(control.deny("r", "stop", interrupt=True))["response"]["response"]
    assert response == {"behavior": "deny", "message": "stop", "interrupt": True}


def test_a_question_is_answered_once(control):
    ask(control, "r")
    assert control.deny("r", "no") is not None
    assert control.allow("r", {}) is None
    assert control.deny("r", "no") is None
    assert control.refuse("r", "no") is None
    assert control.answer("r", {}) is None


def test_nothing_is_said_to_a_question_that_was_never_asked(control):
    assert control.allow("r", {}) is None
    assert control.refuse("r", "no") is None


def test_hooks_and_mcp_messages_are_answered_as_they_are(control):
    rpc = {"subtype": "mcp_message", "server_name": "s", "message": {"jsonrpc": "2.0", "id": 1, "method": "m"}}
    assert ask(control, "h", HOOK) == [Asked("h", HookCallback(callback_id="pre", input={}))]
    assert ask(control, "m", rpc) == [Asked("m", McpMessage("s", rpc["message"]))]
    response = {"mcp_response": {"jsonrpc": "2.0", "id": 1, "result": {}}}
    assert json.loads(control.answer("m", response)) == {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": "m", "response": response},
    }
    assert json.loads(control.answer("h", {}))["response"]["response"] == {}


def test_a_question_about_a_tool_takes_no_free_answer_and_others_take_no_verdict(control):
    ask(control, "tool")
    ask(control, "hook", HOOK)
    assert control.answer("tool", {"permission": {"allow": True}}) is None
    assert control.allow("hook", {}) is None
    assert control.deny("hook", "no") is None
    assert set(control.open) == {"tool", "hook"}


def test_what_is_not_understood_can_be_refused(control):
    assert ask(control, "r", {"subtype": "tomorrow", "a": 1}) == [Asked("r", OtherRequest("tomorrow", {"a": 1}))]
    assert json.loads(control.refuse("r", "Not offered here.")) == {
        "type": "control_response",
        "response": {"subtype": "error", "request_id": "r", "error": "Not offered here."},
    }
    assert control.open == {}


@pytest.mark.parametrize("request_", ["x", None, [], {"subtype": None}])
def test_a_question_that_is_none_can_be_refused(control, request_):
    (event,) = control.receive(line(type="control_request", request_id="r", request=request_))
    assert isinstance(event.request, OtherRequest)
    assert control.refuse("r", "What?") is not None


def test_a_question_without_an_id_is_told(control):
    assert control.receive(line(type="control_request", request=BASH)) == [
        Broken("a question has no id, and so cannot be answered")
    ]


def test_a_question_that_is_withdrawn_is_no_longer_open(control):
    ask(control, "r")
    assert control.receive(line(type="control_cancel_request", request_id="r")) == [Withdrawn("r")]
    assert control.open == {}
    assert control.allow("r", {}) is None


def test_only_an_open_question_can_be_withdrawn(control):
    assert control.receive(line(type="control_cancel_request", request_id="r")) == []
    assert control.receive(line(type="control_cancel_request")) == []


def test_a_question_said_again_is_one_question(control):
    ask(control, "open")
    ask(control, "answered")
    ask(control, "withdrawn")
    control.allow("answered", {})
    control.receive(line(type="control_cancel_request", request_id="withdrawn"))
    assert [ask(control, name) for name in ("open", "answered", "withdrawn")] == [[], [], []]
    assert set(control.open) == {"open"}


def test_what_was_answered_long_ago_is_forgotten(control, monkeypatch):
    monkeypatch.setattr(control_module, "REMEMBERED", 2)
    for name in "abc":
        ask(control, name)
        control.deny(name, "no")
    assert [len(ask(control, name)) for name in "abc"] == [1, 0, 0]


# -- what we ask ------------------------------------------------------------------------------------------------


def test_a_prompt_is_one_line_with_our_uuid(control):
    data = control.prompt("one\ntwo", "u-1")
    assert data.count(b"\n") == 1
    assert json.loads(data) == {
        "type": "user",
        "message": {"role": "user", "content": "one\ntwo"},
        "parent_tool_use_id": None,
        "session_id": "",
        "uuid": "u-1",
    }


def test_a_prompt_may_have_blocks(control):
    blocks = [{"type": "text", "text": "what is this?"}, {"type": "image", "source": {"type": "base64"}}]
    assert json.loads(control.prompt(blocks, "u"))["message"]["content"] == blocks


def test_a_prompt_with_half_a_character_does_not_fail(control):
    assert json.loads(control.prompt("x\ud83d", "u"))["message"]["content"] == "x\ufffd"


def test_an_answer_belongs_to_its_request(control):
    first, sent = control.request(McpStatus(), until=5.0)
    second, _ = control.request(SetModel("opus"), until=5.0)
    assert first != second
    assert json.loads(sent) == {
        "type": "control_request",
        "request_id": first,
        "request": {"subtype": "mcp_status"},
    }
    events = control.receive(success(second, {"model": "opus"}) + success(first))
    assert events == [Answered(second, {"model": "opus"}), Answered(first, {})]


def test_a_request_of_any_other_kind_can_be_made(control):
    _, sent = control.request(Other("tomorrow", {"a": 1}), until=5.0)
    assert json.loads(sent)["request"] == {"subtype": "tomorrow", "a": 1}


def test_a_request_can_fail_in_the_words_of_the_cli(control):
    request_id, _ = control.request(SetModel("x"), until=5.0)
    events = control.receive(error(request_id, "no such model", error_code="bad_model"))
    assert events == [Failed(request_id, "no such model", (), "bad_model")]


@pytest.mark.parametrize("response", [{"subtype": "error"}, {"subtype": "tomorrow"}, {"error": 7}])
def test_an_answer_that_makes_no_sense_is_a_failure(control, response):
    request_id, _ = control.request(Interrupt(), until=5.0)
    (event,) = control.receive(line(type="control_response", response={"request_id": request_id, **response}))
    assert isinstance(event, Failed)
    assert "did not say why" in event.error


@pytest.mark.parametrize("response", [None, [], "done"])
def test_a_success_without_content_is_a_success(control, response):
    request_id, _ = control.request(Interrupt(), until=5.0)
    assert control.receive(success(request_id, response=response)) == [Answered(request_id, {})]


def test_an_answer_that_fits_no_request_is_dropped(control):
    request_id, _ = control.request(Interrupt(), until=5.0)
    assert control.receive(success("other")) == []
    assert control.receive(line(type="control_response", response={"subtype": "success", "request_id": 7})) == []
    assert control.receive(line(type="control_response", response=[])) == []
    assert len(control.receive(success(request_id))) == 1
    assert control.receive(success(request_id)) == []


def test_our_own_answer_said_back_to_us_is_dropped(control):
    ask(control, "r")
    assert control.receive(control.allow("r", {})) == []


def test_a_request_that_is_not_answered_fails_at_its_deadline(control):
    late, _ = control.request(Other("no_such_thing"), until=5.0)
    later, _ = control.request(Interrupt(), until=9.0)
    assert control.deadline == 5.0
    assert control.expire(4.9) == []
    (failed,) = control.expire(5.0)
    assert (failed.request_id, failed.pending) == (late, ())
    assert "no_such_thing" in failed.error
    assert control.deadline == 9.0
    assert control.receive(success(late)) == []
    assert [failed.request_id for failed in control.expire(100.0)] == [later]
    assert control.deadline is None


def test_a_request_can_be_made_once_more_until_it_is_answered(control):
    request_id, sent = control.request(Interrupt(), until=5.0)
    assert control.again(request_id) == sent
    control.receive(success(request_id))
    assert control.again(request_id) is None


def test_a_request_can_be_taken_back():
    control = Control((2, 1, 326))
    request_id, _ = control.request(Interrupt(), until=5.0)
    assert json.loads(control.cancel(request_id)) == {"type": "control_cancel_request", "request_id": request_id}
    assert control.cancel(request_id) is None
    assert control.receive(success(request_id)) == []
    assert control.deadline is None


@pytest.mark.parametrize("version", [None, (2, 1, 37), (2, 1, 120)])
def test_a_cli_that_may_end_of_it_is_not_told_that_a_request_is_taken_back(version):
    control = Control(version)
    request_id, _ = control.request(Interrupt(), until=5.0)
    assert control.cancel(request_id) is None
    assert control.deadline is None


# -- after the CLI has come back --------------------------------------------------------------------------------


def listed_as(way, request_id, *questions, **more):
    """The answer to a second ``initialize``: an error in old CLIs, a success in new ones."""
    listed = {"pending_permission_requests": [question(name) for name in questions], **more}
    if way == "error":
        return error(request_id, "Already initialized", **listed)
    return success(request_id, {}, **listed)


@pytest.mark.parametrize("way", ["error", "success"])
def test_a_second_initialize_finds_the_open_questions(control, way):
    request_id, _ = control.request(Initialize(), until=5.0)
    events = control.receive(listed_as(way, request_id, "a", "b"))
    assert events == [Answered(request_id, {}, (Asked("a", MAY_IT), Asked("b", MAY_IT)))]
    assert control.open == {}
    assert control.pending(events[0].pending) == [Asked("a", MAY_IT), Asked("b", MAY_IT)]
    assert set(control.open) == {"a", "b"}
    assert control.allow("a", {}) is not None


def test_another_request_that_is_called_already_initialized_has_failed(control):
    request_id, _ = control.request(SetModel("x"), until=5.0)
    (event,) = control.receive(listed_as("error", request_id, "a"))
    assert event == Failed(request_id, "Already initialized", (Asked("a", MAY_IT),))


def test_dialogs_are_listed_beside_questions(control):
    request_id, _ = control.request(Initialize(), until=5.0)
    dialog = question("d", {"subtype": "request_user_dialog", "dialog_kind": "k", "payload": {}})
    (event,) = control.receive(listed_as("success", request_id, "a", pending_user_dialog_requests=[dialog]))
    assert [asked.request_id for asked in event.pending] == ["a", "d"]
    assert event.pending[1].request == UserDialog(dialog_kind="k")


def test_what_is_no_question_in_the_list_is_passed_over(control):
    request_id, _ = control.request(Initialize(), until=5.0)
    odd = [7, {}, {"request_id": 7, "request": {}}, {"request_id": "x", "request": "x"}, question("a")]
    (event,) = control.receive(success(request_id, {}, pending_permission_requests=odd))
    assert event.pending == (Asked("a", MAY_IT),)


def test_what_is_no_longer_listed_is_withdrawn_except_hooks_which_never_are(control):
    ask(control, "gone")
    ask(control, "kept")
    ask(control, "hook", HOOK)
    assert control.pending([Asked("kept", MAY_IT)]) == [Withdrawn("gone")]
    assert set(control.open) == {"kept", "hook"}


def test_an_answer_that_was_lost_is_asked_for_again(control):
    ask(control, "r")
    control.allow("r", {})
    request_id, _ = control.request(Initialize(), until=5.0)
    (event,) = control.receive(listed_as("error", request_id, "r"))
    assert control.pending(event.pending) == [Asked("r", MAY_IT)]
    assert control.deny("r", "changed my mind") is not None


@pytest.mark.parametrize("way", ["error", "success"])
def test_an_answer_given_while_the_list_was_on_its_way_is_not_asked_for_again(control, way):
    ask(control, "r")
    request_id, _ = control.request(Initialize(), until=5.0)
    control.allow("r", {})
    (event,) = control.receive(listed_as(way, request_id, "r"))
    assert event.pending == ()
    assert control.pending(event.pending) == []


def test_an_answer_given_before_the_list_was_asked_for_once_more_may_be_lost(control):
    ask(control, "r")
    request_id, _ = control.request(Initialize(), until=5.0)
    control.allow("r", {})
    control.again(request_id)
    (event,) = control.receive(listed_as("success", request_id, "r"))
    assert event.pending == (Asked("r", MAY_IT),)


def test_an_answer_that_cannot_be_written_leaves_the_question_open(control):
    ask(control, "r")
    with pytest.raises(TypeError):
        control.allow("r", {"x": object()})
    assert control.allow("r", {}) is not None
