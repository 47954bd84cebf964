import re
import time
import warnings

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

from ide_bridge.errors import InvalidParams
from ide_bridge.workspace.patterns import LENGTH_LIMIT, selector
from tests.trees import git, isolate_git, put

NAMES = ["a", "b", "ab", "a.py", "c d", "[a]", "A", "-"]


def grown(depth=0):
    """The files of a tree in which the same name is a file at one depth and a folder at another."""
    for number, name in enumerate(NAMES):
        if depth < 3 and (number + depth) % 2 == 0:
            yield from (f"{name}/{path}" for path in grown(depth + 1))
        else:
            yield name


PATHS = sorted(grown())

DIVERGENT = {
    "a\\": "pathspec refuses a backslash at the end, in git it matches nothing",
    "a\\/b": "pathspec refuses an escaped slash, for git it is a slash",
    "\\/a": "pathspec refuses it, in git it matches nothing",
    "**\\/a": "pathspec refuses it, in git the two stars are a folder at least",
    "a**/b": "two stars after a name are one for pathspec, git begins afresh after the name",
    "A/**/": "for pathspec it means files right in the folder too, for git only what is in folders",
    "a\\/": "pathspec refuses it, in git it matches nothing",
    "!": "pathspec refuses it, in git it matches nothing",
    "a \\": "pathspec refuses it, in git it matches nothing",
    "***/b": "pathspec takes three stars for one, git for two",
    "a/***/b": "pathspec takes three stars for one, git for two",
    "a[!x]b": "a bracket that excludes matches a slash in pathspec, never in git",
    "a*[^x]b/": "a bracket that excludes matches a slash in pathspec, never in git",
    "[/a]": "a bracket with a slash matches nothing in pathspec, in git it matches the rest and anchors",
    "[z-a]": "pathspec refuses a range that runs backwards, git takes its first end alone",
    "[[:upper:]]": "pathspec knows no classes",
    "[\\a\\]": "a bracket that an escape leaves open ends for pathspec, not for git",
}


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    """Asks git itself which of the files one rule hides."""
    top = tmp_path_factory.mktemp("top")
    with pytest.MonkeyPatch.context() as monkeypatch:
        isolate_git(monkeypatch, tmp_path_factory.mktemp("home"))
        git(top, "init", "-q")
        put(top, *PATHS)

        def hidden(pattern):
            put(top, ".git/info/exclude", text=pattern)
            output = git(top, "ls-files", "-oi", "--exclude-standard", "-z").decode()
            return sorted(filter(None, output.split("\0")))

        yield hidden


def by_pathspec(pattern):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # its expressions have brackets Python wonders about
        try:
            spec = GitIgnoreSpec.from_lines([pattern])
        except (GitIgnorePatternError, re.error):
            return None
        return [path for path in PATHS if spec.match_file(path)]


pieces = [
    "a",
    "b",
    "ab",
    ".py",
    "c d",
    "A",
    "-",
    "*",
    "*",
    "**",
    "?",
    "/",
    "/",
    "/**/",
    "**/",
    "/**",
    "[ab]",
    "[!a]",
]
pieces += ["[a-c]", "[[:lower:]]", "[", "]", "\\", "\\*", "\\[", " ", "!", "#", "***", "x"]


@given(st.lists(st.sampled_from(pieces), min_size=1, max_size=6).map("".join))
@settings(max_examples=500, deadline=None)
@example("/**/")
@example("**")
@example("/")
def test_a_pattern_means_what_it_means_to_git(judge, pattern):
    assert selector(pattern)(PATHS) == judge(pattern)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_any_ascii_text_means_what_it_means_to_git(judge, pattern):
    assert selector(pattern)(PATHS) == judge(pattern)


usual = ["a", "b", "ab", "*.py", "a*", "?", "a?", "c d", "[ab]", "*"]
segments = st.lists(st.sampled_from([*usual, "**"]), max_size=4)


@given(st.sampled_from(["", "/", "!"]), segments, st.sampled_from([*usual, "a/", "*/", "**"]))
@settings(max_examples=300, deadline=None)
def test_a_pattern_of_the_usual_kind_means_what_it_means_to_pathspec(start, segments, end):
    pattern = start + "/".join([*segments, end])
    assert selector(pattern)(PATHS) == by_pathspec(pattern)


@pytest.mark.parametrize("pattern", DIVERGENT, ids=DIVERGENT.values())
def test_where_pathspec_and_git_disagree_git_is_followed(judge, pattern):
    assert by_pathspec(pattern) != judge(pattern)
    assert selector(pattern)(PATHS) == judge(pattern)


@pytest.mark.parametrize(
    ("pattern", "picked"),
    [
        ("", ["a.js", "src/a.js", "src/deep/b.js", "src/deep/{c}.js", "é.js"]),
        ("*.js", ["a.js", "src/a.js", "src/deep/b.js", "src/deep/{c}.js", "é.js"]),
        ("a.js", ["a.js", "src/a.js"]),
        ("/a.js", ["a.js"]),
        ("src/*.js", ["src/a.js"]),
        ("src/**/*.js", ["src/a.js", "src/deep/b.js", "src/deep/{c}.js"]),
        ("**/deep/*", ["src/deep/b.js", "src/deep/{c}.js"]),
        ("deep", ["src/deep/b.js", "src/deep/{c}.js"]),
        ("src/", ["src/a.js", "src/deep/b.js", "src/deep/{c}.js"]),
        ("a.js/", []),
        ("{a,b}.js", []),
        ("{c}.js", ["src/deep/{c}.js"]),
        ("é*", ["é.js"]),
        ("?.js", ["a.js", "src/a.js", "src/deep/b.js", "é.js"]),
        ("# comment", []),
        ("!*.js", []),
        ("   ", []),
        ("[", []),
        ("a.js\0.txt", ["a.js", "src/a.js"]),
    ],
)
def test_patterns_as_clients_write_them(pattern, picked):
    paths = ["a.js", "src/a.js", "src/deep/b.js", "src/deep/{c}.js", "é.js"]
    assert selector(pattern)(paths) == picked


def test_a_path_with_a_line_break_is_matched_whole():
    assert selector("*.py")(["a\n.py", "a.py\n", "a\n/b.py"]) == ["a\n.py", "a\n/b.py"]


def test_the_length_is_bounded():
    assert selector("a" * LENGTH_LIMIT)(["a" * LENGTH_LIMIT]) == ["a" * LENGTH_LIMIT]
    with pytest.raises(InvalidParams, match="longer than 1024"):
        selector("a" * (LENGTH_LIMIT + 1))


def test_half_of_a_surrogate_pair_is_refused():
    with pytest.raises(InvalidParams, match="not valid Unicode"):
        selector("a\ud800")


HOSTILE = [
    "*" * 1024,
    "*a" * 512,
    "a*" * 511 + "b",
    "*?" * 512,
    "**/" * 341,
    "a**/" * 255 + "b",
    "a**/" + "*a" * 500,
    "**/a/" * 204 + "b",
    "**/*a*/" * 146 + "b",
    "*/" * 512,
    "*a*/" * 255 + "b",
    "[" * 1024,
    "[a-z]" * 204,
    "[!a]*" * 204 + "b",
    "*[a]*[a]" * 127 + "b",
    "\\" * 1024,
    "\\*" * 512,
    "!" * 1024,
    "?" * 1024,
    "**/**/" * 170 + "x",
    "/**" * 341,
    "(a+)+" * 200,
    "[[:alpha:]]*" * 85 + "0",
]


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: f"{pattern[:8]} x{len(pattern)}")
def test_a_hostile_pattern_over_hostile_paths_is_over_soon(pattern):
    paths = [
        "a" * 255,
        "/".join(["a" * 255] * 15),
        "a/" * 2000 + "a",
        "ab" * 2000,
        "/".join(["aab" * 20] * 60),
    ] * 4
    began = time.monotonic()
    selector(pattern)(paths)
    assert time.monotonic() - began < 2
