"""A deny list: what git says of the same lines, and the spellings by which a file system lets a name in."""

import random
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.workspace.deny_list import DenyList
from tests.fakes.programs import program

NAMES = ["a", "b", "ab", ".env", "x.key", "keys"]
PIECES = ["a", "b", "*", "a*", "?", "*.key", ".env", "**", "keys", "[ab]"]


@pytest.mark.parametrize(
    ("lines", "path", "number"),
    [
        ([], "a", None),
        ([".env*"], ".env", 0),
        ([".env*"], "a/b/.env.local", 0),
        ([".env*"], ".env/inside", 0),
        ([".env*"], "a.env", None),
        ([".env*", "!.env.example"], ".env.example", None),
        (["!.env.example", ".env*"], ".env.example", 1),
        ([".ssh/"], ".ssh/config", 0),
        ([".ssh/"], "home/.ssh/keys/one", 0),
        ([".ssh/"], ".ssh", None),
        (["/top"], "top", 0),
        (["/top"], "a/top", None),
        (["a/b"], "a/b/c", 0),
        (["a/b"], "c/a/b", None),
        (["**/a/*.key"], "x/a/y.key", 0),
        (["keys", "!keys/public"], "keys/public", 0),
        (["keys/*", "!keys/public"], "keys/public", None),
        (["keys/*", "!keys/public"], "keys/private", 0),
        (["# a comment", "", "a"], "a", 2),
        (["a", "b", "a"], "a", 2),
    ],
)
def test_the_last_line_that_matches_decides(lines, path, number):
    assert DenyList(lines).find(path) == number


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (".env*", ".ENV"),
        ("Secrets/", "sEcReTs/x"),
        ("*.PEM", "a.pem"),
        ("[A-C].txt", "b.txt"),
        ("[[:upper:]].txt", "b.txt"),
        (".pgpass", ".pgpaß"),
        (".ssh/", ".ſſh/x"),
        ("*.key", "a.\u212aey"),
        ("caf\u00e9", "cafe\u0301"),
        ("cafe\u0301", "CAF\u00c9"),
        (".env", ".e\u200cnv"),
        ("stra\u00dfe", "stra\u00dfe"),
        ("stra\u00dfe", "STRA\u1e9eE"),
    ],
)
def test_a_name_is_kept_back_however_a_file_system_lets_one_spell_it(line, path):
    assert DenyList([line]).find(path) == 0


def said_by_git(folder, lines, paths):
    """The number of the line by which git ignores each path, None when it does not."""
    (folder / ".gitignore").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = subprocess.run(
        [program("git"), "-c", "core.ignorecase=true", "check-ignore", "-v", "-n", "-z", "--no-index", "--stdin"],
        input="".join(f"{path}\0" for path in paths),
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        timeout=30,
    )
    fields = done.stdout.split("\0")
    records = zip(fields[1::4], fields[2::4], fields[3::4], strict=False)
    found = {path: int(at) - 1 if at and not rule.startswith("!") else None for at, rule, path in records}
    return [found[path] for path in paths]


def test_lines_mean_what_they_mean_to_git(tmp_path):
    subprocess.run([program("git"), "init", "-q", tmp_path], check=True, timeout=30)
    dice = random.Random(20)
    paths = ["/".join(dice.choices(NAMES, k=dice.randint(1, 4))) for _ in range(150)]
    for _ in range(40):
        lines = [
            dice.choice(["", "", "!"])
            + dice.choice(["", "/"])
            + "/".join(dice.choices(PIECES, k=dice.choice([1, 1, 2, 3])))
            + dice.choice(["", "", "/"])
            for _ in range(dice.randint(1, 6))
        ]
        deny = DenyList(lines)
        told = dict(zip(paths, said_by_git(tmp_path, lines, paths), strict=True))
        assert {path: deny.find(path) for path in paths} == told, lines


@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=20))
def test_no_line_and_no_path_is_too_strange(lines, path):
    number = DenyList(lines).find(path)
    assert number is None or not lines[number].startswith("!")


@given(st.lists(st.sampled_from(PIECES), max_size=4), st.sampled_from(PIECES), st.sampled_from(NAMES))
def test_a_further_line_never_lets_anything_out(lines, further, path):
    if DenyList(lines).find(path) is not None:
        assert DenyList([*lines, further]).find(path) is not None
