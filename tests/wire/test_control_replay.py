"""What real CLIs said to another controller, said to ours: it must understand all of it, and say the same."""

import json
from pathlib import Path

import msgspec
import pytest

from ide_bridge.session.control import Answered, Control, Failed, Said, Withdrawn, requests
from ide_bridge.session.control.messages import System, Unknown
from ide_bridge.session.control.questions import Asked, CanUseTool, HookCallback, McpMessage

RECORDINGS = sorted((Path(__file__).parent / "control").glob("*.ndjson"))
KINDS = {"can_use_tool": CanUseTool, "hook_callback": HookCallback, "mcp_message": McpMessage}
TYPED = {
    kind.__struct_config__.tag: kind
    for kind in vars(requests).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__struct_config__.tag
}
# Sent on purpose by whoever recorded it, to see what the CLI does: no controller should be able to.
WRONG = {
    "latest.stdio.interrupt.ndjson": [{"type": "interrupt"}],
    "v120.ws.interrupt.ndjson": [{"type": "interrupt"}],
    "latest.stdio.shapes-04.ndjson": ["can_use_tool_result"],
}


def recorded_in(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


class Replay:
    """One recording: the CLI's side is heard, the controller's side is said again and compared."""

    def __init__(self):
        self.control = Control()
        self.ours = {}
        self.unlike = []
        self.heard = 0

    def line(self, line):
        if line["dir"] == "cli>":
            self.hear(line["msg"])
        elif (said := self.say(line["msg"])) is None:
            self.unlike.append(line["msg"])
        else:
            assert json.loads(said) == self.expected(line["msg"])
            assert said.endswith(b"\n")
            assert said.count(b"\n") == 1

    def expected(self, message):
        match message["type"]:
            case "control_request":
                return {**message, "request_id": self.ours[message["request_id"]]}
            case "user":
                return {"uuid": "chosen", **message}
        return message

    def say(self, message):
        """What our controller says in this place; None if it cannot say that."""
        match message:
            case {"type": "user", "message": {"content": content}}:
                return self.control.prompt(content, message.get("uuid", "chosen"))
            case {"type": "control_request", "request_id": request_id, "request": request}:
                self.ours[request_id], line = self.control.request(typed(request), until=1.0)
                return line
            case {"type": "control_response", "response": {"request_id": request_id, "response": response}}:
                return self.answer(request_id, response)
        return None

    def answer(self, request_id, response):
        match response:
            case {"behavior": "allow", "updatedInput": given}:
                return self.control.allow(request_id, given, response.get("updatedPermissions"))
            case {"behavior": "deny", "message": message}:
                return self.control.deny(request_id, message, interrupt=response.get("interrupt", False))
        return self.control.answer(request_id, response)

    def hear(self, message):
        self.heard += 1
        self.check(message, *self.control.receive(json.dumps(self.to_us(message)).encode() + b"\n"))

    def to_us(self, message):
        """The same message, as an answer to the request that we have sent."""
        if message["type"] != "control_response":
            return message
        theirs = message["response"]["request_id"]
        return {**message, "response": {**message["response"], "request_id": self.ours.pop(theirs)}}

    def check(self, message, event):
        match message:
            case {"type": "control_request", "request_id": request_id, "request": request}:
                assert isinstance(event, Asked)
                assert event.request_id == request_id
                assert type(event.request) is KINDS[request["subtype"]]
                assert says_no_more_than(request, event.request)
                assert self.control.open[request_id] == event
            case {"type": "control_response", "response": {"subtype": "error", "error": "Already initialized"}}:
                assert event == Answered(event.request_id, {}, ())
            case {"type": "control_response", "response": {"subtype": "error", "error": error}}:
                assert isinstance(event, Failed)
                assert event.error == error
                assert event.code == message["response"].get("error_code")
            case {"type": "control_response", "response": response}:
                assert event == Answered(event.request_id, response.get("response", {}), ())
            case {"type": "control_cancel_request", "request_id": request_id}:
                assert event == Withdrawn(request_id)
            case _:
                assert isinstance(event, Said)
                assert type(event.message) not in {Unknown, System}
                assert event.message.fields == message
                assert says_no_more_than(message, event.message)


def typed(request):
    kind = TYPED.get(request["subtype"])
    if kind is None:
        return requests.Other(request["subtype"], {name: request[name] for name in request if name != "subtype"})
    return msgspec.convert(request, kind)


def says_no_more_than(message, understood):
    """Whether every typed member is what the CLI said: nothing lost on the way, nothing made up."""
    said = json.loads(msgspec.json.encode(understood))
    names = {field.encode_name: field for field in msgspec.structs.fields(understood) if field.name != "raw"}
    return all(
        said[name] == only(said[name], message[name]) if name in message else said[name] == nothing(field)
        for name, field in names.items()
    )


def only(said, value):
    """Of the CLI's value, what our type knows."""
    match said, value:
        case dict(), dict():
            return {name: only(said[name], value.get(name)) for name in said}
        case list(), list():
            return [only(*pair) for pair in zip(said, value, strict=True)]
    return value


def nothing(field):
    """What stands for a member that is missing."""
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return json.loads(msgspec.json.encode(default))


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
def test_a_recording_is_understood_and_said_again(file):
    replay, lines = Replay(), recorded_in(file)
    for line in lines:
        replay.line(line)
    assert replay.heard == sum(line["dir"] == "cli>" for line in lines) > 10
    assert [
        one if one["type"] == "interrupt" else one["response"]["subtype"] for one in replay.unlike
    ] == WRONG.get(file.name, [])
    assert len(replay.control.open) == ("can_use_tool_result" in WRONG.get(file.name, []))
    assert replay.ours == {}
    assert replay.control.deadline is None


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
def test_a_recording_in_one_piece_says_the_same_as_line_by_line(file):
    lines = [json.dumps(line["msg"]).encode() + b"\n" for line in recorded_in(file) if line["dir"] == "cli>"]
    whole, cut = Control(), Control()
    assert whole.receive(b"".join(lines)) == [event for line in lines for event in cut.receive(line)]


def test_the_recordings_show_most_of_what_can_be_asked():
    asked = {
        line["msg"]["request"]["subtype"]
        for file in RECORDINGS
        for line in recorded_in(file)
        if line["msg"]["type"] == "control_request"
    }
    assert len(asked & TYPED.keys()) >= 25
    assert asked - TYPED.keys() == {"can_use_tool", "hook_callback", "no_such_thing"}


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.name)
def test_a_recording_tells_neither_keys_nor_whose_machine_it_was(file):
    text = file.read_text(encoding="utf-8")
    assert not [place for place in ("/tmp/", "/root/", "/Users/", "sk-ant-") if place in text]
    assert text.count("/home/") == text.count("/home/user/")
