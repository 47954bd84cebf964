import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.errors import PathRefused
from ide_bridge.workspace.places import (
    Place,
    Root,
    check_text,
    check_windows,
    check_windows_start,
    inside_git,
    root_names,
    split,
    within,
)


@pytest.mark.parametrize(
    "name", ["a..b", "..a", "a..", "...", "~x", "~", "~root", "-rf", "a b", "a\nb", "*", "é", "\\"]
)
def test_unusual_but_ordinary_names_are_accepted(name):
    assert split(name, windows=False) == [name]
    assert split(f"src/{name}/{name}", windows=False) == ["src", name, name]


@pytest.mark.parametrize("path", ["..", "../x", "a/..", "a/../b", "a/b/../../..", "./..", "/..", "//../x"])
def test_dot_dot_is_refused_even_where_it_would_stay_inside(path):
    with pytest.raises(PathRefused, match=r"contains '\.\.'"):
        split(path, windows=False)


@pytest.mark.parametrize("path", ["a/b", "./a/b", "a/./b", "a//b", "/a/b", "///a/b"])
def test_empty_and_dot_parts_say_nothing(path):
    assert split(path, windows=False) == ["a", "b"]


@pytest.mark.parametrize("path", ["", "/", ".", "./", "//", "/."])
def test_the_root_has_no_parts(path):
    assert split(path, windows=False) == []


@pytest.mark.parametrize("path", ["a/", "a/b//", "a/."])
def test_a_path_that_ends_like_a_folder_is_refused(path):
    with pytest.raises(PathRefused, match="ends like that of a folder"):
        split(path, windows=False)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
        ("x/" * 2048 + "y", "longer than 4096"),
        ("é/" * 1366, "longer than 4096"),
    ],
)
def test_what_is_no_path_is_refused(path, why):
    with pytest.raises(PathRefused, match=why):
        check_text(path)


def test_the_longest_path_and_name_are_accepted_and_one_byte_more_is_not():
    check_text("x" * 4096)
    assert split("é" * 127 + "x", windows=False) == ["é" * 127 + "x"]
    with pytest.raises(PathRefused, match="255 bytes"):
        split("é" * 128, windows=False)
    with pytest.raises(PathRefused, match="255 bytes"):
        split("a/" + "x" * 256, windows=False)


@given(st.text())
def test_whatever_the_text_only_plain_parts_come_out(text):
    try:
        check_text(text)
        parts = split(text, windows=False)
    except PathRefused:
        return
    assert not {"", ".", ".."} & set(parts)
    assert all("/" not in part and "\0" not in part and len(part.encode()) <= 255 for part in parts)


WINDOWS_STREAMS = ["a:b", "a:$DATA", "C:", "C:x"]
WINDOWS_DEVICES = [
    "con",
    "CON",
    "Con.txt",
    "con .txt",
    "nul",
    "NUL.tar.gz",
    "aux",
    "COM1",
    "com¹",
    "lpt9.log",
    "CONIN$",
]
WINDOWS_ENDINGS = ["a.", "a ", "...", "aux "]
WINDOWS_SHORT = ["GIT~1", "PROGRA~1", "LONGNA~12.TXT"]
WINDOWS_CHARACTERS = ["a<b", 'a"b', "a|b", "a?", "a*", "a\x01"]


@pytest.mark.parametrize(
    "name", [*WINDOWS_STREAMS, *WINDOWS_DEVICES, *WINDOWS_ENDINGS, *WINDOWS_SHORT, *WINDOWS_CHARACTERS]
)
def test_names_that_windows_reads_otherwise_are_refused(name):
    with pytest.raises(PathRefused):
        check_windows(["src", name])


@pytest.mark.parametrize(
    "name", ["console", "com", "com10", "nully.txt", "a~b", "x.con", ".git", "~1", "a b.c", "..a"]
)
def test_names_that_only_look_so_are_accepted_on_windows(name):
    check_windows([name])


def test_backslash_separates_on_windows_and_is_a_character_elsewhere():
    assert split(r"a\b/c", windows=True) == ["a", "b", "c"]
    assert split(r"a\b/c", windows=False) == [r"a\b", "c"]
    with pytest.raises(PathRefused):
        split(r"a\..\b", windows=True)


@pytest.mark.parametrize(
    "path", ["C:x", r"C:\Windows", "c:/x", r"\\server\share\x", "//server/share", r"\\?\C:\x", r"\\.\NUL"]
)
def test_drives_shares_and_devices_outside_are_refused_on_windows(path):
    with pytest.raises(PathRefused, match="outside the workspace"):
        check_windows_start(path)


@pytest.mark.parametrize("path", ["src/a", r"\src\a", "/src", "a"])
def test_paths_below_the_root_pass_the_windows_start_check(path):
    check_windows_start(path)


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        "a/.git/hooks/x",
        ".GIT/config",
        ".Git",
        ".g\u200cit/config",
        "\ufeff.git",
        "/ws/.git/a",
    ],
)
def test_git_is_recognised_however_it_is_spelled(path):
    assert inside_git(path)


@pytest.mark.parametrize("path", [".gitignore", ".github/x", "git", "a.git/x", ".gitmodules", ".git2/x"])
def test_what_only_begins_like_git_is_not_git(path):
    assert not inside_git(path)


def test_folders_of_one_name_get_names_of_their_own():
    assert root_names(["/a/lib", "/b/src", "/c/lib", "/d/lib-2", "/e/lib"]) == [
        "lib",
        "src",
        "lib-2",
        "lib-2-2",
        "lib-3",
    ]
    assert root_names(["/"]) == ["/"]


def test_a_root_is_recognised_as_given_as_it_is_and_in_both_normal_forms(tmp_path):
    real = tmp_path / "caf\u00e9"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    root = Root.of(str(tmp_path / "link"), "café")
    assert root.path == str(real)
    for spelling in (tmp_path / "link", real, tmp_path / "cafe\u0301"):
        assert within(f"{spelling}/a", root) == "/a"
        assert within(str(spelling), root) == ""


def test_a_folder_that_only_begins_with_the_same_letters_is_outside(tmp_path):
    root = Root.of(str(tmp_path / "ws"), "ws")
    assert within(f"{tmp_path}/ws-evil/a", root) is None
    assert within(str(tmp_path), root) is None


def test_the_whole_disk_can_be_a_root():
    root = Root.of(os.sep, os.sep)
    assert within("/etc/hosts", root) == "/etc/hosts"
    assert Place(root, "etc/hosts").path == "/etc/hosts"
    assert Place(root, "").path == "/"
