"""The story of a session as lines of text, and the rows of a screen."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ide_bridge.cli.session.render import Story, harmless, shortened
from ide_bridge.cli.session.screen import laid_out, rendered
from ide_bridge.session import events

ANSWER = "First *one*.\n\n```python\ndef f():\n\n    pass\n```\nThen\ntwo.\n\n- a\n- b\n"


def screen(console=None, width=60):
    return console or Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)


def told(*happened, plain=True):
    story = Story(plain=plain)
    return rendered(screen(), [line for event in happened for line in story.tell(event)])


def pieces(text, size):
    return [events.Text(text[at : at + size]) for at in range(0, len(text), size)]


def tool(title="Bash: ls", **more):
    return events.Tool("t", "Bash", title, {}, **more)


def test_a_turn_is_told_in_groups():
    assert told(
        events.Prompt("u", "fix it", "Vim"),
        events.Thinking("hm\nwell"),
        events.Said("I will.\n"),
        tool("Bash: pytest"),
        events.ToolResult("t", ok=True, text="\n3 passed\nin 1 s\n"),
        tool("Bash: false"),
        events.ToolResult("t", ok=False, text=""),
        events.Notice("warning", "Careful."),
        events.Said("Done."),
        events.Result(ok=True, text="Done.", cost=0.25, seconds=3.2, reason=""),
        events.Prompt("u", "more", "terminal"),
    ) == (
        "› fix it  (Vim)\n\n∴ hm (+1 line)\n\nI will.\n\n● Bash: pytest\n  ⎿ 3 passed (+1 line)\n● Bash: false\n"
        "  ⎿ failed\n• Careful.\n\nDone.\n✓ done in 3.2 s · $0.25\n\n› more\n"
    )


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (
            events.Result(ok=False, text="", cost=None, seconds=61, reason="aborted_tools"),
            "■ interrupted after 1 min 1 s",
        ),
        (
            events.Result(ok=False, text="Overloaded", cost=0.001, seconds=1, reason="api_error"),
            "✗ api error: Overloaded after 1.0 s · $0.0010",
        ),
        (events.Ended(1, "out of memory"), "■ Claude Code has ended with exit code 1: out of memory"),
        (events.Ended(None, ""), "■ Claude Code has ended"),
    ],
)
def test_how_a_turn_or_a_session_ends_is_one_line(result, line):
    assert told(result) == f"{line}\n"


def test_sub_agents_are_set_off():
    shown = told(tool("Read: a", agent="x"), events.Said("found\nit", "x"))
    assert shown == "  │ ● Read: a\n  │ found\n  │ it\n"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_an_answer_in_pieces_is_told_as_the_whole_one(size):
    whole = told(events.Said(ANSWER), plain=False).split("\n")
    in_pieces = told(*pieces(ANSWER, size), events.Said(ANSWER), plain=False).split("\n")
    assert [line for line in in_pieces if line] == [line for line in whole if line]


def test_what_is_complete_is_told_at_once_and_the_rest_is_the_tail():
    story = Story(plain=False)
    shown = [line for event in pieces(ANSWER, 3) for line in story.tell(event)]
    assert "First one." in rendered(screen(), shown)
    assert "pass" in rendered(screen(), shown)
    assert story.tail == "- a\n- b"
    story.tell(events.Said(ANSWER))
    assert story.tail == ""


def test_a_block_of_code_is_told_when_it_ends_and_not_at_its_blank_lines():
    story = Story(plain=False)
    assert story.tell(events.Text("```\none\n\n~~~\ntwo\n")) == []
    shown = rendered(screen(), story.tell(events.Text("```\nand ")))
    assert ("one" in shown, "two" in shown, story.tail) == (True, True, "and ")


def test_an_answer_that_breaks_off_is_kept():
    story = Story(plain=False)
    story.tell(events.Text("Half a sen"))
    shown = story.tell(events.Result(ok=False, text="", cost=None, seconds=1, reason="aborted_streaming"))
    assert rendered(screen(), shown) == "Half a sen\n■ interrupted after 1.0 s\n"
    assert story.tail == ""


def test_an_answer_that_is_another_than_its_pieces_is_told_whole():
    shown = told(events.Text("One.\n\nTw"), events.Said("Other.\n\nTwo."), plain=False)
    assert shown == "One.\n\nOther.\n\nTwo.\n"


def test_plain_lines_have_no_pieces():
    assert told(*pieces("Hello.\n\nYou.", 2), events.Said("Hello.\n\nYou.")) == "Hello.\n\nYou.\n"


def test_what_others_say_can_not_command_the_terminal():
    evil = "a\x1b[2J\x9b\u202eb\tc\r\nd"
    assert harmless(evil) == "a\\x1b[2J\\x9b\\u202eb    c\nd"
    happened = [
        events.Prompt("u", evil, evil),
        events.Said(evil),
        events.Thinking(evil),
        tool(evil),
        events.ToolResult("t", ok=True, text=evil),
        events.Result(ok=False, text=evil, cost=None, seconds=1, reason=evil),
        events.Notice("info", evil),
        events.Ended(1, evil),
        events.Text(evil + "\n\n" + evil),
    ]
    for plain in (True, False):
        assert not {"\x1b", "\x9b", "\u202e", "\r", "\t"} & set(told(*happened, plain=plain))


def test_links_say_where_they_lead():
    assert told(events.Said("[bank](http://evil.example)"), plain=False) == "bank (http://evil.example)\n"


def test_a_result_is_one_line_cut_to_the_width():
    long = events.ToolResult("t", ok=True, text="<tool_use_error>" + "x" * 100)
    assert told(long) == "  ⎿ " + "x" * 55 + "…\n"
    assert shortened("a" * 20, 10) == "a" * 9 + "…"
    assert shortened(" \n", 10) == ""


def test_markup_is_text():
    assert rendered(screen(), [Text("[red]:smile:[/]")]) == "[red]:smile:[/]\n"


@given(st.text("ab\n漢é", max_size=40), st.integers(0, 40), st.integers(2, 10))
def test_rows_hold_all_of_the_text_and_the_cursor_is_where_it_belongs(text, cursor, width):
    place = laid_out(text, min(cursor, len(text)), width)
    assert "".join(place.rows) == text.replace("\n", "")
    assert all(cell_len(row) <= width for row in place.rows)
    before = laid_out(text[: min(cursor, len(text))], 10**6, width)
    assert place.column <= width
    assert place.row in (before.row, before.row + 1)


def test_of_a_long_text_the_rows_around_the_cursor_are_kept():
    place = laid_out("\n".join("abcdefghij"), 10, 5)
    assert (place.row, place.column) == (5, 0)
    kept = place.cropped(3)
    assert (kept.rows, kept.row) == (["e", "f", "g"], 1)
    assert place.cropped(100) == place
    assert laid_out("\n".join("abc"), 5, 5).cropped(2).rows == ["b", "c"]


def test_a_prompt_in_the_middle_of_an_answer_has_nothing_printed_twice():
    shown = told(
        events.Text("one two "),
        events.Prompt("u", "typed while busy", "terminal"),
        events.Text("three"),
        events.Said("one two three"),
        plain=False,
    )
    assert [line.strip() for line in shown.splitlines() if line.strip()] == [
        "one two",
        "› typed while busy",
        "three",
    ]
