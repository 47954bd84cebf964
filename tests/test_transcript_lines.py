import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ide_bridge.session.transcript import lines as transcript_lines
from ide_bridge.session.transcript.lines import lines_after, lines_before, read_at


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    descriptor = os.open(tmp_path_factory.mktemp("lines") / "file", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def write(file: int, data: bytes) -> None:
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, data)


@settings(max_examples=300, deadline=None)
@given(data=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"def\n"])).map(b"".join), block=st.integers(1, 9))
def test_forwards_and_backwards_give_the_lines_of_the_file_whatever_the_block(file, data, block):
    write(file, data)
    *whole, rest = data.split(b"\n")
    forwards = list(lines_after(file, 0, block=block))
    assert [line.data for line in forwards] == whole
    assert [line.after for line in forwards] == [line.place + len(line.data) + 1 for line in forwards]
    backwards = list(lines_before(file, len(data), block=block))[::-1]
    assert [line.data for line in backwards] == [line for line in [*whole, rest] if line]
    assert all(read_at(file, line.place, len(line.data)) == line.data for line in forwards + backwards)
    assert [line.whole for line in backwards] == [True] * (len(backwards) - bool(rest)) + [False] * bool(rest)


def test_a_line_over_the_limit_is_stepped_over(file, monkeypatch):
    monkeypatch.setattr(transcript_lines, "LINE_LIMIT", 10)
    data = b"one\n" + b"x" * 11 + b"\ntwo\n" + b"y" * 10 + b"\n"
    write(file, data)
    for block in (1, 4, 100):
        backwards = [line.data for line in lines_before(file, len(data), block=block)]
        assert backwards == [b"y" * 10, b"two", b"one"]
        forwards = list(lines_after(file, 0, block=block))
        assert [line.data for line in forwards] == [b"one", b"", b"two", b"y" * 10]
        assert forwards[-1].after == len(data)


def test_a_file_that_is_cut_meanwhile_ends_the_lines(file):
    write(file, b"one\n" * 100)
    lines = lines_before(file, 400, block=16)
    assert next(lines).data == b"one"
    os.ftruncate(file, 2)
    assert len(list(lines)) < 5
