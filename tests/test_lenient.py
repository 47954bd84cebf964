import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ide_bridge.session.control.lenient import Shape, is_whole, mended, written


class Thing(msgspec.Struct):
    name: str
    size: int = 0
    parts: tuple[str, ...] = ()


THING = Shape(Thing)


@pytest.mark.parametrize(
    ("line", "thing"),
    [
        (b'{"name":"a","size":3}', Thing("a", 3)),
        (b'{"size":3,"more":[{}],"name":"a"}', Thing("a", 3)),
        (b'{"name":"a","size":"three","parts":["x"]}', Thing("a", 0, ("x",))),
        (b'{"name":"a","size":3,"parts":["x",4]}', Thing("a", 3)),
        (b'{"name":"a","size":"three","more":1}', Thing("a")),
    ],
)
def test_a_member_that_does_not_fit_is_as_if_it_were_missing(line, thing):
    assert THING.from_line(line) == thing
    assert THING.from_fields(json.loads(line)) == thing


@pytest.mark.parametrize("line", [b'{"size":3}', b'{"name":4}', b"{", b"[" * 5000])
def test_what_must_be_there_is_missed(line):
    with pytest.raises((ValueError, RecursionError)):
        THING.from_line(line)


@pytest.mark.parametrize(
    ("line", "is_it"),
    [
        (b'{"a":"\xf0\x9f\x98\x80 \\u00e9 \\n"}', True),
        (b'{"a":"\\ud83d"}', False),
        (b'{"a":"\\uDE00"}', False),
        (b'{"a":"\xf0\x9f"}', False),
    ],
)
def test_half_a_character_is_seen(line, is_it):
    assert is_whole(line) is is_it


@pytest.mark.parametrize(
    ("line", "better"),
    [
        (b'{"a": "x\\ud83d", "b": [1, 2.5]}', '{"a":"x\ufffd","b":[1,2.5]}'),
        (b'{"a":"\\ude00x"}', '{"a":"\ufffdx"}'),
        (b'{"a":"\\ud83d\\ude00"}', '{"a":"😀"}'),
        (b'{"a":"\\\\ud83d"}', '{"a":"\\\\ud83d"}'),
        (b'{"a":"\xf0\x9f"}', '{"a":"\ufffd"}'),
    ],
)
def test_half_characters_are_replaced_and_whole_ones_are_kept(line, better):
    assert mended(line) == better.encode()


@pytest.mark.parametrize("line", [b'{"a":"\\ud83d"', b'["\\ud83d",NaN]', b"[" * 100_000])
def test_what_is_no_json_is_not_mended(line):
    assert mended(line) == line


def test_what_is_written_is_one_line_for_every_reader():
    line = written({"a": "one\ntwo\r\u2028three\u2029\x85four"})
    assert json.loads(line)["a"] == "one\ntwo\r\u2028three\u2029\x85four"
    assert not set("\n\r\u2028\u2029") & set(line.decode())


def test_half_a_character_is_not_written():
    value = {"\ud800": ["x\ude00", ("y\ud83d", 1)], "n": float("nan"), "t": Thing("\udfff")}
    assert json.loads(written(value)) == {
        "\ufffd": ["x\ufffd", ["y\ufffd", 1]],
        "n": None,
        "t": {"name": "\ufffd", "size": 0, "parts": []},
    }


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=60, deadline=None)
@given(anything)
def test_what_is_written_says_what_was_given(value):
    assert json.loads(written(value)) == value


@settings(max_examples=60, deadline=None)
@given(anything)
def test_what_is_whole_stays_what_it_was(value):
    line = json.dumps(value).encode()
    assert json.loads(mended(line)) == value
