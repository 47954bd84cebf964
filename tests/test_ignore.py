import pytest

from ide_bridge.workspace.ignore import NO_RULES, parse


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


def test_very_many_rules_are_fine():
    text = "".join(f"name{number}\n/place{number}/x\n!back{number}\n" for number in range(3000))
    assert rules(("", text)).hidden("", ["name2999", "name3000", "back7"]) == {"name2999"}
