"""Columns in code points, UTF-16 units and bytes: conversions agree with a count by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.positions import from_bytes, from_utf16, to_bytes, to_utf16

LINE = "aé𝄞z"


@pytest.mark.parametrize(("column", "units", "size"), [(0, 0, 0), (1, 1, 1), (2, 2, 3), (3, 4, 7), (4, 5, 8)])
def test_a_column_is_the_same_place_in_every_count(column, units, size):
    assert to_utf16(LINE, column) == units
    assert from_utf16(LINE, units) == column
    assert to_bytes(LINE, column) == size
    assert from_bytes(LINE, size) == column


def test_inside_a_character_means_its_beginning():
    assert from_utf16(LINE, 3) == 2
    assert from_bytes(LINE, 5) == 2


@pytest.mark.parametrize("line", ["", "abc", LINE])
def test_beyond_the_end_means_the_end_and_before_the_beginning_means_the_beginning(line):
    assert to_utf16(line, 99) == to_utf16(line, len(line))
    assert from_utf16(line, 99) == len(line)
    assert to_bytes(line, 99) == len(line.encode())
    assert from_bytes(line, 99) == len(line)
    assert to_utf16(line, -1) == from_utf16(line, -1) == to_bytes(line, -1) == from_bytes(line, -1) == 0


@given(st.text(), st.integers(0, 50))
def test_there_and_back(line, column):
    place = min(column, len(line))
    assert from_utf16(line, to_utf16(line, column)) == place
    assert from_bytes(line, to_bytes(line, column)) == place
    assert to_utf16(line, column) == sum(2 if ord(char) > 0xFFFF else 1 for char in line[:place])
