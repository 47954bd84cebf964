import json

import pytest

from ide_bridge.session.sdk_server.seen import Seen, mark_of


@pytest.mark.parametrize(
    ("message", "mark"),
    [
        ({"type": "assistant", "uuid": "u"}, "u"),
        ({"uuid": "u"}, "u"),
        ({"type": "control_request", "request_id": "r"}, "control_request r"),
        ({"type": "control_cancel_request", "request_id": "r"}, "control_cancel_request r"),
        ({"type": "control_response", "response": {"subtype": "success", "request_id": "r"}}, "answer r"),
        ({"type": "keep_alive"}, None),
        ({"type": "assistant", "uuid": 5}, None),
        ({"type": "control_request"}, None),
        ({"type": "control_request", "request_id": None, "uuid": "u"}, None),
        ({"type": "control_response"}, None),
        ({"type": "control_response", "response": 5}, None),
        ({"type": "control_response", "response": {"request_id": 5}}, None),
        ({"type": ["x"], "uuid": "u"}, "u"),
        ([], None),
        (5, None),
    ],
)
def test_a_message_is_known_by_its_uuid_and_control_traffic_by_its_request_id(message, mark):
    assert mark_of(json.dumps(message).encode()) == mark


@pytest.mark.parametrize("line", [b"", b"{", b"\xff", b"[" * 100_000, b'{"type":"control_response","response":['])
def test_what_is_no_message_is_always_new(line):
    assert mark_of(line) is None


def test_the_oldest_is_forgotten_first_and_never_more_than_need_be():
    seen = Seen(limit=3)
    for mark in ("a", "b", None, "c", "b", "d"):
        seen.add(mark)
    assert [mark in seen for mark in "abcd"] == [False, True, True, True]


def test_the_memory_is_longer_than_the_buffer_of_the_cli():
    seen = Seen()
    for number in range(3000):
        seen.add(str(number))
    assert all(str(number) in seen for number in range(3000))
