from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ide_bridge.errors import ParseError
from ide_bridge.wire.framing import ContentLength, Lines, TooLarge

LIMIT = 20
BROKEN = "broken"

LINES = [
    (b"", []),
    (b"{}", []),
    (b"{}\n", [b"{}"]),
    (b"{}\r\n", [b"{}"]),
    (b"\n\r\n  \n{}\n", [b"{}"]),
    (b"1\n2\n3", [b"1", b"2"]),
    (b"x" * 20 + b"\n", [b"x" * 20]),
    (b"x" * 21 + b"\n", [TooLarge(21)]),
    (b"x" * 99 + b"\n{}\n", [TooLarge(99), b"{}"]),
]
HEADERS = [
    (b"", []),
    (b"Content-Length: 2\r\n\r\n{", []),
    (b"Content-Length: 2\r\n\r\n{}", [b"{}"]),
    (b"content-length:2\r\n\r\n{}", [b"{}"]),
    (b"Content-Type: x\r\nCONTENT-LENGTH :  2 \r\n\r\n{}", [b"{}"]),
    (b"Content-Length: 0\r\n\r\nContent-Length: 1\r\n\r\n7", [b"", b"7"]),
    (b"Content-Length: 20\r\n\r\n" + b"x" * 20, [b"x" * 20]),
    (b"Content-Length: 21\r\n\r\n" + b"x" * 20, []),
    (b"Content-Length: 21\r\n\r\n" + b"x" * 21 + b"Content-Length: 1\r\n\r\n7", [TooLarge(21), b"7"]),
    (b"Content-Length: 3\r\n\r\n\xe2\x82\xac", ["€".encode()]),
    (b"Content-Length: 4\r\n\r\n\r\n\r\n", [b"\r\n\r\n"]),
    (b"\r\n\r\n", [BROKEN]),
    (b"Content-Length: -1\r\n\r\n", [BROKEN]),
    (b"Content-Length: \xb2\r\n\r\n", [BROKEN]),
    (b"Content-Length: 1e3\r\n\r\n", [BROKEN]),
    (b"Content-Length: 1" + b"0" * 15 + b"\r\n\r\n", [BROKEN]),
    (b"Content-Type: json\r\n\r\n{}", [BROKEN]),
    (b"Content-Length: 1\r\n\r\n7Nonsense\r\n\r\n", [b"7", BROKEN]),
    (b"x" * 4096, []),
    (b"x" * 4100, [BROKEN]),
]


def cuts():
    return st.lists(st.integers(0, 5000), max_size=12)


def cut(stream, places):
    edges = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def read(framing, pieces):
    """Everything the stream gives, a last empty piece included, up to the place where it breaks."""
    frames = []
    try:
        for piece in [*pieces, b""]:
            frames += framing.feed(piece)
    except ParseError:
        frames.append(BROKEN)
    return frames


@pytest.mark.parametrize(("stream", "frames"), LINES)
def test_lines(stream, frames):
    assert read(Lines(LIMIT), [stream]) == frames


@pytest.mark.parametrize(("stream", "frames"), HEADERS)
def test_content_length(stream, frames):
    assert read(ContentLength(LIMIT), [stream]) == frames


@pytest.mark.parametrize(
    ("framing", "stream", "frames"),
    [(Lines, *row) for row in LINES] + [(ContentLength, *row) for row in HEADERS],
)
def test_a_byte_at_a_time_gives_the_same(framing, stream, frames):
    assert read(framing(LIMIT), [stream[at : at + 1] for at in range(len(stream))]) == frames


@given(st.lists(st.sampled_from([b"{}", b"x" * 25, b"\n", b"\r\n", b" ", b"12"])).map(b"".join), cuts())
def test_any_cut_of_lines_gives_the_same(stream, places):
    assert read(Lines(LIMIT), cut(stream, places)) == read(Lines(LIMIT), [stream])


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40).map(ContentLength().encode),
            st.sampled_from([b"\r\n\r\n", b"Content-Length: x\r\n\r\n", b"X: y\r\n"]),
        )
    ).map(b"".join),
    cuts(),
)
@example(b"Content-Length: 1\r\n\r\n7Nonsense\r\n\r\n", [30])
@example(b"X: ".ljust(4074, b"x") + b"\r\nContent-Length: 1\r\n\r\n7", [4097])
@example(b"X: ".ljust(4077, b"x") + b"\r\nContent-Length: 1\r\n\r\n7", [4098])
@example(b"X: ".ljust(4078, b"x") + b"\r\nContent-Length: 1\r\n\r\n7", [4099])
@example(b"X: ".ljust(5000, b"x") + b"\r\nContent-Length: 1\r\n\r\n7", [4200])
def test_any_cut_of_content_length_gives_the_same(stream, places):
    assert read(ContentLength(LIMIT), cut(stream, places)) == read(ContentLength(LIMIT), [stream])


@given(st.lists(st.binary(max_size=40)), cuts())
def test_content_length_gives_back_what_was_encoded(messages, places):
    stream = b"".join(map(ContentLength().encode, messages))
    expected = [TooLarge(len(message)) if len(message) > LIMIT else message for message in messages]
    assert read(ContentLength(LIMIT), cut(stream, places)) == expected


@given(st.lists(st.text("ab{}[] é", min_size=1).map(str.strip).filter(bool).map(str.encode)), cuts())
def test_lines_give_back_what_was_encoded(messages, places):
    stream = b"".join(map(Lines().encode, messages))
    expected = [TooLarge(len(message)) if len(message) > LIMIT else message for message in messages]
    assert read(Lines(LIMIT), cut(stream, places)) == expected


@given(st.lists(st.binary(max_size=200)))
def test_nothing_but_a_parse_error_comes_out(pieces):
    for framing in (Lines(LIMIT), ContentLength(LIMIT)):
        assert all(isinstance(frame, bytes | TooLarge | str) for frame in read(framing, pieces))


@pytest.mark.parametrize(
    ("nonsense", "reason"), [(b"Nonsense\r\n\r\n", "no Content-Length"), (b"x" * 5000, "does not end")]
)
def test_a_broken_stream_stays_broken(nonsense, reason):
    framing = ContentLength()
    for data in (nonsense, b"Content-Length: 2\r\n\r\n{}", b""):
        with pytest.raises(ParseError, match=reason):
            framing.feed(data)
    assert not framing._buffer


@pytest.mark.parametrize(
    ("framing", "start"), [(Lines, b"x" * LIMIT), (ContentLength, b"Content-Length: 900000\r\n\r\n")]
)
def test_what_is_too_large_is_not_held_in_memory(framing, start):
    reader = framing(LIMIT)
    reader.feed(start)
    for _ in range(100):
        reader.feed(b"x" * 8000)
    held = sum(map(len, reader._parts)) if framing is Lines else len(reader._buffer)
    assert held == 0
