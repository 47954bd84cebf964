"""How a session is to begin, as front ends say it."""

import msgspec
import pytest

from ide_bridge.session.start import Start


def test_what_is_not_said_is_left_open():
    assert msgspec.json.decode(b'{"resume": "x", "fork": true}', type=Start) == Start(resume="x", fork=True)


def test_there_are_two_ways_to_talk_to_a_cli():
    with pytest.raises(msgspec.ValidationError, match="over"):
        msgspec.json.decode(b'{"over": "carrier pigeon"}', type=Start)
