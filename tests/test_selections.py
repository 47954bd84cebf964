import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.model import Position, Selection
from ide_bridge.positions import to_utf16
from ide_bridge.tools.selections import TEXT_LIMIT, Selections, as_sent, in_utf16
from tests.fakes.memory_editor import span


def selected(text, where, first_line=None, last_line=None, path="/w/a"):
    return Selection(path, text, span(*where), first_line, last_line)


def columns(selection):
    start, end = in_utf16(selection)
    assert (start.line, end.line) == (selection.range.start.line, selection.range.end.line)
    return start.column, end.column


def test_the_last_one_is_remembered_until_its_file_is_closed():
    selections = Selections()
    first, second = selected("1", (0, 0, 0, 1)), selected("2", (0, 0, 0, 1), path="/w/b")
    assert selections.latest is None
    selections.forget("/w/a")
    selections.see(first)
    selections.see(second)
    selections.see(None)
    assert selections.latest is second
    selections.forget("/w/a")
    assert selections.latest is second
    selections.forget("/w/b")
    assert selections.latest is None


def test_it_is_written_as_clients_want_it():
    assert as_sent(selected("b\nc", (1, 4, 2, 1))) == {
        "text": "b\nc",
        "filePath": "/w/a",
        "selection": {"start": {"line": 1, "character": 4}, "end": {"line": 2, "character": 1}},
    }


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (selected("c", (0, 2, 0, 3), "abc"), (2, 3)),
        (selected("c", (0, 1, 0, 2), "😀c"), (2, 3)),
        (selected("😀", (0, 1, 0, 2), "a😀b"), (1, 3)),
        (selected("😀b", (0, 2, 0, 4), "😀😀😀b"), (4, 7)),
        (selected("é漢", (0, 1, 0, 3), "😀é漢"), (2, 4)),
        (selected("e\u0301", (0, 1, 0, 3), "😀e\u0301"), (2, 4)),
        (selected("b\n😀c", (0, 1, 1, 2), "😀b"), (2, 3)),
        (selected("b\n", (0, 1, 1, 0), "😀b"), (2, 0)),
        (selected("", (0, 1, 0, 1), "😀"), (2, 2)),
        (selected("", (0, 1, 0, 1), "😀", "😀"), (2, 2)),
        (selected("", (0, 1, 3, 1), "😀", "😀x"), (2, 2)),
    ],
)
def test_columns_count_utf16_units(selection, expected):
    assert columns(selection) == expected


def test_where_the_line_is_not_known_a_column_is_taken_as_it_is():
    assert columns(selected("b", (0, 1, 0, 2))) == (1, 2)
    assert columns(selected("😀", (0, 1, 0, 2))) == (1, 3)
    assert columns(selected("x\ny", (0, 1, 1, 9), "😀")) == (2, 9)


def test_a_column_beyond_its_line_is_its_end():
    assert columns(selected("", (0, 9, 0, 9), "😀a", "😀a")) == (3, 3)


@given(st.lists(st.text("aé漢😀\u0301", max_size=6), min_size=1, max_size=4), st.data())
def test_any_selection_comes_out_as_utf16_says(lines, data):
    places = sorted(data.draw(st.tuples(st.integers(0, len(lines) - 1), st.integers(0, 6))) for _ in range(2))
    (first, start), (last, end) = ((line, min(column, len(lines[line]))) for line, column in places)
    inside = [lines[first][start:end]] if first == last else [lines[first][start:], *lines[first + 1 : last]]
    text = "\n".join(inside if first == last else [*inside, lines[last][:end]])
    expected = Position(first, to_utf16(lines[first], start)), Position(last, to_utf16(lines[last], end))
    assert in_utf16(selected(text, (first, start, last, end), lines[first], lines[last])) == expected
    assert in_utf16(selected(text, (first, start, last, end), lines[first])) == expected


def test_a_whole_book_is_cut_to_what_a_client_can_read():
    sent = as_sent(selected("\x01" * 20_000_000, (0, 0, 500_000, 0), "", ""))
    assert len(sent["text"]) == TEXT_LIMIT
    assert sent["selection"]["end"] == {"line": 500_000, "character": 0}
