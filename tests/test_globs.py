import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ide_bridge.workspace.globs import Glob, translate


def matches(line, path):
    glob = translate(line)
    return glob is not None and re.fullmatch(glob.path, path, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("line", "hides", "folders_only", "by_name", "depth"),
    [
        ("a", True, False, True, None),
        ("!a", False, False, True, None),
        ("a/", True, True, True, None),
        ("/a", True, False, False, 0),
        ("a/b", True, False, False, 1),
        ("/a/b/c/", True, True, False, 2),
        ("*.py", True, False, True, None),
        ("**/a", True, False, True, None),
        ("a/**", True, False, False, None),
        ("a/**/b", True, False, False, None),
        ("**/a/b", True, False, False, None),
        ("a/*/b", True, False, False, 2),
        ("a**/b", True, False, False, None),
        ("[a/]", True, False, False, 0),
        ("\\!a", True, False, True, None),
        ("\\#a", True, False, True, None),
    ],
)
def test_a_line_is_taken_apart(line, hides, folders_only, by_name, depth):
    glob = translate(line)
    assert glob is not None
    assert (glob.hides, glob.folders_only, glob.by_name, glob.depth) == (hides, folders_only, by_name, depth)


@pytest.mark.parametrize(
    "line", ["", " ", "   ", "# comment", "#", "!", "a\\", "[", "[a", "[[:nope:]]", "\\/a", "a\\/", "/"]
)
def test_a_line_that_can_match_nothing_is_none(line):
    assert translate(line) is None or not any(matches(line, path) for path in ("a", "a/a", "[", "/", "#", "[a"))


@pytest.mark.parametrize(
    ("line", "path", "fits"),
    [
        ("a", "a", True),
        ("a", "x/y/a", True),
        ("a", "ab", False),
        ("a/b", "x/a/b", False),
        ("a*b*c", "aXbXbXc", True),
        ("a*b*c", "abXc/", False),
        ("*a*a", "aXaXa", True),
        ("*ab", "aab", True),
        ("*", "x/y", True),
        ("a?c", "a/c", False),
        ("a[!b]c", "a/c", False),
        ("a[/]c", "a/c", False),
        ("**/a/**/b", "a/b", True),
        ("**/a/**/b", "x/a/y/a/z/b", True),
        ("a/**/b/*/c", "a/b/b/x/c", True),
        ("a/**/b/*/c", "a/b/x/b/y/c", True),
        ("a/**/*b/c/**/d", "a/b/c/xb/c/e/d", True),
        ("a\\ ", "a ", True),
        ("a ", "a", True),
        ("a\\  ", "a ", True),
        ("a\t", "a\t", True),
        (" a", " a", True),
        ("\\a", "a", True),
        ("[]]", "]", True),
        ("[!]]", "]", False),
        ("[a-]", "-", True),
        ("[\\]-a]", "^", True),
        ("[z-a]", "z", True),
        ("[z-a]", "b", False),
        ("[[:digit:]x]", "7", True),
        ("[[:space:]]", "\n", True),
        ("[![:alnum:]]", "é", True),
        ("a.c", "abc", False),
        ("(a|b)+", "a", False),
        ("a\0b", "a", True),
    ],
)
def test_paths_are_matched_as_by_git(line, path, fits):
    assert matches(line, path) is fits


@given(st.text(max_size=20))
@settings(max_examples=500, deadline=None)
def test_every_line_is_translated_into_an_expression_or_nothing(line):
    glob = translate(line)
    if glob is not None:
        assert isinstance(glob, Glob)
        re.compile(glob.path)


@given(st.text("ab*?[!]/\\ ", max_size=12), st.text("ab/", min_size=1, max_size=12))
@settings(max_examples=500, deadline=None)
def test_a_glob_of_fixed_depth_matches_at_no_other(line, path):
    glob = translate(line)
    if glob is not None and glob.depth is not None and matches(line, path):
        assert path.count("/") == glob.depth


@pytest.mark.parametrize(
    "line",
    [
        "*a" * 500 + "b",
        "**/" * 300 + "b",
        "**/a/" * 200 + "b",
        "a/**/" * 200 + "b",
        "*/" * 500 + "b",
        "a**/" * 250 + "b",
        "**/*a*a*a/" * 100 + "b",
        "[ab]*" * 200 + "c",
        "?*" * 500 + "c",
    ],
)
def test_no_line_can_make_matching_run_away(line):
    began = time.monotonic()
    glob = translate(line)
    assert glob is not None
    expression = re.compile(glob.path, re.DOTALL)
    for path in ("a" * 255, "/".join(["a" * 200] * 20), "a/" * 2000 + "a", "aaab/" * 500 + "a"):
        expression.fullmatch(path)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("line", ["//", "**//", "***//"])
def test_a_line_that_means_an_empty_name_means_nothing(line):
    assert translate(line) is None
