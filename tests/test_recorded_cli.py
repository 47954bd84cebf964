"""The fake CLI is held to what the recordings show, or the tests that stand on it would prove nothing."""

import json
import subprocess
import time
import uuid

import pytest

from tests.fakes.recorded_cli import COMMAND

FLAGS = ["--include-partial-messages", "--replay-user-messages", "--permission-prompt-tool=stdio"]


class Talk:
    """A conversation with one fake CLI."""

    def __init__(self, folder, *flags, **variables):
        environment = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1", "CLAUDE_CONFIG_DIR": str(folder / "config")}
        self.process = subprocess.Popen(
            [*COMMAND, *FLAGS, *flags],
            cwd=folder,
            env=environment | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def send(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def prompt(self, *lines, **more):
        self.send(type="user", message={"role": "user", "content": "\n".join(lines)}, **more)

    def request(self, **request):
        self.send(type="control_request", request_id=request["subtype"], request=request)

    def respond(self, asked, **response):
        body = {"subtype": "success", "request_id": asked["request_id"], "response": response}
        self.send(type="control_response", response=body)

    def hear(self, **wanted):
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.items() >= wanted.items():
                return message
        raise AssertionError(f"it ended without {wanted}: {self.process.stderr.read().decode()}")

    def end(self):
        self.process.stdin.close()
        said = self.process.stdout.read()
        assert self.process.stderr.read() == b""
        assert self.process.wait(10) == 0
        return [json.loads(line) for line in said.splitlines()]


@pytest.fixture
def talk(tmp_path):
    with Talk(tmp_path) as talk:
        yield talk


def states(lines):
    return [line["state"] for line in lines if line.get("subtype") == "session_state_changed"]


def test_it_is_silent_until_it_is_spoken_to_and_starts_quickly(talk):
    begun = time.monotonic()
    talk.request(subtype="initialize")
    assert talk.hear()["response"]["pending_permission_requests"] == []
    assert time.monotonic() - begun < 2
    assert talk.end() == []


def test_each_turn_begins_with_init(talk):
    talk.prompt("one")
    talk.prompt("two")
    lines = talk.end()
    assert [line["subtype"] for line in lines if line["type"] == "system"][1:3] == ["init", "status"]
    assert len([line for line in lines if line.get("subtype") == "init"]) == 2
    assert [line["result"] for line in lines if line["type"] == "result"] == [
        "fake answer: one",
        "fake answer: two",
    ]
    assert states(lines) == ["running", "idle"] * 2


@pytest.mark.parametrize(
    ("response", "outcome", "error"),
    [
        ({"behavior": "allow", "updatedInput": {"command": "ls"}}, 'ran Bash {"command": "ls"}', False),
        ({"behavior": "deny", "message": "not today"}, "not today", True),
        ({"permission": {"allow": True}}, "Invalid permission response", True),
    ],
)
def test_a_tool_is_asked_for_and_the_answer_counts(talk, response, outcome, error):
    talk.prompt('@tool Bash {"command": "mkdir x"}', "@text done")
    talk.hear(state="requires_action")
    asked = talk.hear(type="control_request")
    assert asked["request"]["input"] == {"command": "mkdir x"}
    assert asked["request"]["permission_suggestions"][0]["rules"][0]["ruleContent"] == "mkdir x"
    talk.respond(asked, **response)
    (result,) = talk.hear(type="user")["message"]["content"]
    while result["type"] != "tool_result":
        (result,) = talk.hear(type="user")["message"]["content"]
    assert (result["content"], result["is_error"]) == (outcome, error)
    assert talk.hear(type="result")["result"] == "done"


def test_a_rule_for_the_session_spares_the_next_question(talk):
    talk.prompt('@tool Bash {"command": "mkdir x"}')
    rules = [{"toolName": "Bash", "ruleContent": "mkdir:*"}]
    update = {"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}
    talk.respond(talk.hear(type="control_request"), behavior="allow", updatedInput={}, updatedPermissions=[update])
    talk.hear(type="result")
    talk.prompt('@tool Bash {"command": "mkdir y"}')
    assert "control_request" not in {line["type"] for line in talk.end()}


def test_an_interrupt_withdraws_the_question_and_ends_the_turn(talk):
    talk.prompt("@tool Bash {}", "@text never said")
    asked = talk.hear(type="control_request")
    talk.request(subtype="initialize")
    assert talk.hear(type="control_response")["response"]["pending_permission_requests"] == [asked]
    talk.request(subtype="interrupt")
    assert talk.hear(type="control_cancel_request")["request_id"] == asked["request_id"]
    result = talk.hear(type="result")
    assert (result["subtype"], result["is_error"]) == ("error_during_execution", True)
    talk.prompt("still there?")
    assert talk.hear(type="result")["subtype"] == "success"


def test_an_interrupt_cuts_what_is_being_said(talk):
    talk.prompt("@events 1000 20")
    talk.hear(type="stream_event", event={"type": "content_block_delta", "index": 0, "delta": delta("w3 ")})
    talk.request(subtype="interrupt")
    (block,) = talk.hear(type="assistant")["message"]["content"]
    assert block["text"].startswith("w0 w1 w2 w3 ")
    assert len(block["text"].split()) < 100


def delta(text):
    return {"type": "text_delta", "text": text}


def test_events_come_in_order_and_at_their_rate(talk):
    begun = time.monotonic()
    talk.prompt("@events 50 200")
    events = [line["event"] for line in talk.end() if line["type"] == "stream_event"]
    pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert pieces == [f"w{number} " for number in range(50)]
    assert time.monotonic() - begun > 0.2


def test_what_is_said_during_a_turn_is_taken_up_after_a_tool(talk):
    talk.prompt("@tool Bash {}", "@text first")
    asked = talk.hear(type="control_request")
    talk.prompt("@text second")
    talk.respond(asked, behavior="allow", updatedInput={})
    results = [line["result"] for line in talk.end() if line["type"] == "result"]
    assert results == ["second"]


def test_a_turn_of_its_own_follows(talk):
    talk.prompt("@text first", "@later and then")
    assert [line["result"] for line in talk.end() if line["type"] == "result"] == ["first", "and then"]


def test_a_question_nobody_can_answer_any_more_is_refused_and_the_turn_finished(talk):
    talk.prompt("@tool Bash {}", "@text finished")
    talk.hear(type="control_request")
    assert talk.end()[-1]["state"] == "idle"


def test_a_prompt_is_run_once_also_after_a_resume_and_a_fork_is_a_copy(tmp_path):
    session, fork, number = (str(uuid.uuid4()) for _ in range(3))
    flags = [
        [f"--session-id={session}"],
        ["--resume", session],
        ["--resume", session, "--fork-session", "--session-id", fork],
    ]
    results = []
    for each in flags:
        with Talk(tmp_path, *each) as talk:
            talk.prompt("hello", uuid=number)
            talk.prompt("hello", uuid=number)
            lines = talk.end()
            assert [line["uuid"] for line in lines if line.get("isReplay")] == [number] * 2
            results.append(len([line for line in lines if line["type"] == "result"]))
    assert results == [1, 0, 0]
    records = {file.stem: records_of(file) for file in (tmp_path / "config/projects").glob("*/*.jsonl")}
    messages = {name: [r["uuid"] for r in each if "uuid" in r] for name, each in records.items()}
    assert messages[session] == messages[fork]
    assert {record["sessionId"] for record in records[fork]} == {fork}
    assert [record["parentUuid"] for record in records[session] if "uuid" in record] == [None, number]
    with Talk(tmp_path, f"--session-id={session}") as talk:
        assert talk.process.wait(10) == 1
        assert b"already in use" in talk.process.stderr.read()
    with Talk(tmp_path, f"--resume={number}") as talk:
        assert talk.process.wait(10) == 1


def records_of(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("line", [b"no json\n", b'{"type":"user","message":{"role":"assistant"}}\n', b"[]\n"])
def test_bad_input_ends_it(talk, line):
    talk.process.stdin.write(line)
    talk.process.stdin.close()
    assert talk.process.wait(10) == 1


def test_modes_and_models_are_set_as_recorded(talk):
    answers = []
    for request in (
        {"subtype": "set_permission_mode", "mode": "plan"},
        {"subtype": "set_permission_mode", "mode": "delegate"},
        {"subtype": "set_permission_mode", "mode": "bypassPermissions"},
        {"subtype": "set_model", "model": "haiku"},
        {"subtype": "no_such_thing"},
    ):
        talk.request(**request)
        answer = talk.hear(type="control_response")["response"]
        answers.append(answer.get("response") or answer.get("error", "").partition(":")[0])
    assert answers[0] == {"mode": "plan"}
    assert answers[3:] == [{"model": "haiku"}, "Unsupported control request subtype"]
    assert all("Cannot set permission mode" in answer for answer in answers[1:3])
    talk.prompt("hello")
    init = talk.hear(subtype="init")
    assert (init["permissionMode"], init["model"]) == ("plan", "haiku")


def test_an_older_version_is_initialized_only_once(tmp_path):
    with Talk(tmp_path, RECORDED_CLI_VERSION="2.1.120") as talk:
        talk.request(subtype="initialize")
        talk.request(subtype="initialize")
        assert [talk.hear()["response"]["subtype"] for _ in range(2)] == ["success", "error"]
