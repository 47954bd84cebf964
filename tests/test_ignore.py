import itertools
import re
import time

import pytest

from ide_bridge.workspace import ignore
from ide_bridge.workspace.ignore import NO_RULES, RULE_LENGTH, RULE_LIMIT, parse

NAME = re.compile("/([^/]+/?)(?=/)")


def rules(*files, ignore_case=False):
    """Rules of files given from the farthest to the nearest, each as (folder, text)."""
    found = NO_RULES
    for base, text in files:
        content = text if isinstance(text, bytes) else text.encode()
        found = found.with_file(content, base, ignore_case=ignore_case)
    return found


def test_without_rules_nothing_is_hidden():
    assert NO_RULES.hidden("", ["a", "b/"]) == set()
    assert rules(("", ""), ("", "# nothing\n\n  \n")) == NO_RULES


def test_entries_are_hidden_by_name_at_any_depth():
    found = rules(("", "*.log\nbuild/\n"))
    for place in ("", "a/", "a/b/"):
        assert found.hidden(place, ["x", "x.log", "x.log/", "build", "build/"]) == {"x.log", "x.log/", "build/"}


def test_entries_are_hidden_by_where_they_lie():
    found = rules(("", "/top\na/b\na/**/z\n"))
    assert found.hidden("", ["top", "a/", "b", "z"]) == {"top"}
    assert found.hidden("a/", ["top", "b", "z"]) == {"b", "z"}
    assert found.hidden("a/c/d/", ["b", "z"]) == {"z"}


def test_places_count_from_the_folder_of_the_rule_file():
    found = rules(("src/", "/a\nb/c\n"))
    assert found.hidden("src/", ["a", "b/"]) == {"a"}
    assert found.hidden("src/b/", ["a", "c"]) == {"c"}


def test_the_last_rule_that_matches_decides():
    assert rules(("", "*.log\n!keep.log\n")).hidden("", ["a.log", "keep.log"]) == {"a.log"}
    assert rules(("", "!keep.log\n*.log\n")).hidden("", ["a.log", "keep.log"]) == {"a.log", "keep.log"}


def test_the_nearest_file_with_a_rule_that_matches_decides():
    found = rules(("", "*.log\n"), ("a/", "!keep.log\n"))
    assert found.hidden("a/", ["keep.log", "b.log"]) == {"b.log"}
    assert rules(("", "!keep.log\n"), ("a/", "*.log\n")).hidden("a/", ["keep.log"]) == {"keep.log"}


def test_an_exception_for_folders_spares_folders_only():
    assert rules(("", "x*\n!x1/\n")).hidden("", ["x1", "x1/", "x2/"]) == {"x1", "x2/"}


@pytest.mark.parametrize("entry", ["a b", "a\nb", "é", "𝄞", "\udcff"])
def test_odd_names_come_back_as_they_were(entry):
    assert rules(("", "*\n")).hidden("ü/", [entry, f"{entry}/"]) == {entry, f"{entry}/"}


def test_names_are_compared_byte_by_byte():
    found = rules(("", "é\n?x\n[\xe9]y\n"))
    assert found.hidden("", ["é", "éx", "ax", "éy"]) == {"é", "ax"}
    assert rules(("", b"\xff*\n")).hidden("", ["\udcffa", "a"]) == {"\udcffa"}


def test_case_is_ignored_on_demand_and_only_that_of_ascii():
    assert rules(("", "*.LOG\n")).hidden("", ["a.log"]) == set()
    found = rules(("", "*.LOG\nÉ\n/Top\n"), ignore_case=True)
    assert found.hidden("", ["a.log", "é", "tOP"]) == {"a.log", "tOP"}


def test_line_ends_and_marks_of_other_systems_are_taken_off():
    assert rules(("", b"\xef\xbb\xbfa\r\nb\r\nc")).hidden("", ["a", "b", "c"]) == {"a", "b", "c"}


def test_the_same_text_is_compiled_once_and_makes_equal_rules():
    assert parse(b"a\n") is parse(b"a\n")
    assert rules(("x/", "a\n")) == rules(("x/", "a\n"))
    assert hash(rules(("x/", "a\n"))) == hash(rules(("x/", "a\n")))
    assert rules(("x/", "a\n")) != rules(("y/", "a\n"))
    assert rules(("x/", "a\n")) != rules(("x/", "b\n"))
    assert rules(("x/", "a\n")) != "a"


def joined(entries):
    return f"/{'/'.join(entries)}/"


@pytest.mark.parametrize("room", [1, 2, 5, 7, 30])
def test_cut_in_pieces_names_stay_whole(room):
    entries = ["a", "bb/", "ccc", "d/", "e", "ffff/", "g/"]
    for count in range(1, len(entries) + 1):
        found = [name for piece in ignore._pieces(joined(entries[:count]), room) for name in NAME.findall(piece)]
        assert found == entries[:count]


@pytest.mark.parametrize("case", [False, True])
def test_cut_in_pieces_rules_and_names_say_the_same(monkeypatch, case):
    text = "".join(f"*n{number}\nf{number}/\n/p/x{number}\n!an{number}\n*q{number}*\n" for number in range(30))
    entries = [name for n in range(400) for name in (f"n{n}", f"f{n}/", f"f{n}", f"x{n}", f"aq{n}b", f"an{n}")]
    expected = rules(("", text), ignore_case=case).hidden("p/", entries)
    assert {"n1", "f2/", "x3", "aq4b"} < expected
    assert not {"an11", "f2"} & expected
    monkeypatch.setattr(ignore, "_PART_LENGTH", 40)
    monkeypatch.setattr(ignore, "_EFFORT", 400)
    parse.cache_clear()
    assert rules(("", text), ignore_case=case).hidden("p/", entries) == expected
    parse.cache_clear()


def test_only_so_many_rules_of_a_file_count_and_it_is_told_once(caplog):
    ignore._tell_cut.cache_clear()
    text = "".join(f"name{number}\n" for number in range(RULE_LIMIT + 1))
    found = rules(("", text)).hidden("", ["name0", f"name{RULE_LIMIT - 1}", f"name{RULE_LIMIT}"])
    assert found == {"name0", f"name{RULE_LIMIT - 1}"}
    assert rules(("", "x" * (RULE_LENGTH + 1) + "\ny\n")).hidden("", ["y"]) == {"y"}
    (record,) = caplog.records
    assert str(RULE_LIMIT) in record.getMessage()


def test_comments_and_blanks_are_not_counted(caplog):
    ignore._tell_cut.cache_clear()
    assert rules(("", "# x\n\n \n\r\n" * RULE_LIMIT + "y\n")).hidden("", ["y"]) == {"y"}
    assert not caplog.records


def test_who_is_stopped_stops_soon():
    text = "".join(f"*{number}*a*b*c*\n/x*{number}*a*b*c*\n" for number in range(4000))
    names = [f"{number:04}" + "abx" * 80 for number in range(2000)]
    ruled = rules(("", text))
    asked = []
    began = time.monotonic()
    ruled.hidden("", names, lambda: asked.append(time.monotonic()) or len(asked) > 3)
    assert len(asked) > 3
    assert time.monotonic() - began < 4


def test_no_single_step_takes_long(monkeypatch):
    """While an expression is being matched no other thread runs."""
    text = "".join(f"*{number}*a*b*c*\n" for number in range(2000)) + f"*{'a' * 200}b\n" * 50
    names = [f"{number:04}" + letters * 80 for number in range(1500) for letters in ("abx", "aaa")]
    ruled = rules(("", text))
    times = []
    ruled.hidden("", names[:1])
    ruled.hidden("", names, lambda: times.append(time.thread_time()) or len(times) > 150)
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 0.08


def test_very_many_rules_are_fine():
    text = "".join(f"name{number}\n/place{number}/x\n!back{number}\n" for number in range(3000))
    assert rules(("", text)).hidden("", ["name2999", "name3000", "back7"]) == {"name2999"}
