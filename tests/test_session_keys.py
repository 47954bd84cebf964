"""Keys from bytes, and the line that is typed with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.cli.session.keys import Key, Keys, TypedLine


def names(data):
    return [key.name for key in Keys().feed(data)]


def typed(*keys, text=""):
    """The line after these keys, with a bar where the cursor is."""
    line = TypedLine(text)
    for key in keys:
        line.press(Key(key) if len(key) > 1 else Key(key, key))
    return line.text[: line.cursor] + "|" + line.text[line.cursor :]


def test_what_types_is_its_own_name_and_the_rest_has_names():
    assert names("aé漢".encode()) == ["a", "é", "漢"]
    assert names(b"\r\n\t\x7f\x04\x15\x1b[A\x1bOD\x1b[1;5C\x1b[3~\x1b\r\x1bb") == [
        *("enter", "newline", "tab", "backspace", "ctrl-d", "erase-left"),
        *("up", "left", "word-right", "delete", "newline", "word-left"),
    ]


def test_sequences_that_nobody_knows_type_nothing():
    assert names(b"\x1b[1;2Pa\x1b[<0;1;1Mb\x1bOQ\x00c") == ["a", "b", "c"]
    assert names(b"\x1b[" + b"1" * 40) != []


def test_escape_alone_is_a_key_only_when_nothing_follows():
    keys = Keys()
    assert keys.feed(b"\x1b") == []
    assert keys.is_in_doubt
    assert [key.name for key in keys.pause()] == ["escape"]
    assert not keys.is_in_doubt
    assert keys.pause() == []
    assert keys.feed(b"\x1b") == []
    assert [key.name for key in keys.feed(b"[A")] == ["up"]
    assert names(b"\x1b\x1b[A") == ["escape", "up"]


def test_what_is_pasted_is_text_whatever_is_in_it():
    keys = Keys()
    assert keys.feed(b"\x1b[200~y\r\nrm -rf\x1b[A\r") == []
    assert not keys.is_in_doubt
    assert keys.pause() == []
    assert keys.feed(b"end\x1b[201~n") == [Key("pasted", "y\nrm -rf\x1b[A\nend"), Key("n", "n")]


@given(st.binary(max_size=60) | st.text("\x1b[1;~A", max_size=80).map(str.encode), st.integers(0, 80))
def test_bytes_may_be_cut_anywhere(data, cut):
    whole, halves = Keys(), Keys()
    assert halves.feed(data[:cut]) + halves.feed(data[cut:]) == whole.feed(data)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (["a", "b", "left", "c"], "ac|b"),
        (["a", "backspace", "backspace", "b"], "b|"),
        (["a", "b", "home", "delete"], "|b"),
        (["a", "home", "left", "end", "right", "b"], "ab|"),
        (["a", "newline", "b"], "a\nb|"),
        ([*"one two", "erase-word"], "one |"),
        ([*"one two", "word-left", "x"], "one x|two"),
        ([*"one two", "home", "word-right", "x"], "onex| two"),
        ([*"one", "left", "erase-left"], "|e"),
        ([*"one", "left", "erase-right"], "on|"),
        (["f5", "tab", "escape"], "|"),
    ],
)
def test_keys_type_erase_and_move(keys, line):
    assert typed(*keys) == line


def test_a_pasted_text_is_inserted_where_the_cursor_is():
    line = TypedLine("ad")
    line.press(Key("left"))
    line.press(Key("pasted", "b\nc"))
    assert (line.text, line.cursor) == ("ab\ncd", 4)


def test_what_was_sent_before_comes_again():
    line = TypedLine()
    for text in ("one", "two", "two", " "):
        line.replace(text)
        assert line.take() == text
    line.replace("unfinished")
    seen = []
    for key in ("up", "up", "up", "down", "down", "down"):
        line.press(Key(key))
        seen.append(line.text)
    assert seen == ["two", "one", "one", "two", "unfinished", "unfinished"]
