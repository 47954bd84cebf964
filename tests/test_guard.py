import os
import shutil
import sys
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ide_bridge.errors import FileProblem, NotShared, PathRefused
from ide_bridge.workspace.beneath import Way, best_way
from ide_bridge.workspace.guard import Guard, Place

WAYS = [way for way in Way if way is not Way.KERNEL or best_way() is Way.KERNEL]
NFC = unicodedata.normalize("NFC", "naïve-é")
NFD = unicodedata.normalize("NFD", "naïve-é")


@pytest.fixture(params=WAYS, ids=lambda way: way.value)
def way(request):
    return request.param


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "src" / "a").write_bytes(b"a")
    return tmp_path / "ws"


@pytest.fixture
def guard(ws, way):
    return Guard([str(ws)], way=way)


def contents(guard, path):
    descriptor = guard.open(guard.locate(path), os.O_RDONLY)
    try:
        return os.read(descriptor, 100)
    finally:
        os.close(descriptor)


def test_a_path_may_be_relative_absolute_or_start_at_the_root(guard, ws):
    for path in ("src/a", "/src/a", "./src/a", f"{ws}/src/a", f"{ws}//src/./a"):
        place = guard.locate(path)
        assert (place.root.path, place.relative, place.path) == (str(ws), "src/a", f"{ws}/src/a")
        assert contents(guard, path) == b"a"


def test_the_root_itself_is_a_place_but_no_file(guard, ws):
    for path in ("/", ".", str(ws), f"{ws}/"):
        assert guard.locate(path).relative == ""
        assert guard.locate(path).path == str(ws)
        with pytest.raises(FileProblem, match=r"^failed to read file: Is a directory$"):
            guard.open(guard.locate(path), os.O_RDONLY)


def test_an_absolute_path_elsewhere_means_one_below_the_root(guard, ws):
    assert guard.locate("/etc/passwd").path == f"{ws}/etc/passwd"
    assert guard.locate(f"{ws}-evil/a").path == f"{ws}{ws}-evil/a"


@pytest.mark.parametrize(
    "path", ["../ws/src/a", "src/../src/a", "..", "", "a\0", "\udc80", "a" * 256, "a/" * 2048 + "a"]
)
def test_refused_paths_never_reach_the_disk(path, tmp_path):
    guard = Guard([str(tmp_path / "does-not-exist")])
    with pytest.raises(PathRefused) as refused:
        guard.locate(path)
    assert refused.value.code == -32602
    assert "\n" not in str(refused.value)


def test_an_absolute_path_with_dot_dot_is_refused_inside_a_root_too(guard, ws):
    with pytest.raises(PathRefused):
        guard.locate(f"{ws}/../ws/src/a")


@given(path=st.text(st.sampled_from("a./\\~:\0é\n "), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_located_lies_below_the_root(tmp_path, path):
    try:
        place = Guard([str(tmp_path)]).locate(path)
    except PathRefused:
        return
    assert os.path.normpath(place.path) == place.path
    assert os.path.commonpath([place.path, tmp_path]) == str(tmp_path)


def test_a_root_given_through_a_link_is_known_by_both_names(ws, tmp_path, way):
    (tmp_path / "link").symlink_to("ws")
    guard = Guard([str(tmp_path / "link")], way=way)
    assert contents(guard, f"{tmp_path}/link/src/a") == b"a"
    assert contents(guard, f"{ws}/src/a") == b"a"


def test_an_absolute_link_by_the_name_the_root_was_given_is_followed(ws, tmp_path, way):
    (tmp_path / "link").symlink_to("ws")
    (ws / "to-a").symlink_to(tmp_path / "link" / "src" / "a")
    assert contents(Guard([str(tmp_path / "link")], way=way), "to-a") == b"a"


@pytest.fixture
def roots(ws, tmp_path):
    for name in ("lib", "deep/lib"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "f").write_text(name, encoding="utf-8")
    return [str(ws), str(tmp_path / "lib"), str(tmp_path / "deep" / "lib")]


def test_further_roots_are_reached_by_absolute_path_and_by_name(roots, way):
    guard = Guard(roots, way=way)
    assert [root.name for root in guard.roots] == ["ws", "lib", "lib-2"]
    assert contents(guard, f"{roots[2]}/f") == b"deep/lib"
    assert contents(guard, "lib/f") == b"lib"
    assert contents(guard, "lib-2/f") == b"deep/lib"
    assert guard.locate("lib") == Place(guard.roots[1], "")


def test_the_first_root_wins_over_the_name_of_another(roots, ws):
    guard = Guard(roots)
    assert guard.locate("/lib/f").path == f"{ws}/lib/f"
    (ws / "lib").mkdir()
    assert guard.locate("lib/f").path == f"{ws}/lib/f"
    assert guard.locate(f"{roots[1]}/f").path == f"{roots[1]}/f"


def test_a_root_inside_another_belongs_to_the_one_named_first(ws):
    outer_first = Guard([str(ws), str(ws / "src")]).locate(f"{ws}/src/a")
    assert (outer_first.root.path, outer_first.relative) == (str(ws), "src/a")
    inner_first = Guard([str(ws / "src"), str(ws)]).locate(f"{ws}/src/a")
    assert (inner_first.root.path, inner_first.relative) == (str(ws / "src"), "a")


def test_folders_may_come_and_go(roots, guard, ws):
    guard.set_folders(roots)
    place = guard.locate("lib/f")
    guard.set_folders([str(ws)])
    with pytest.raises(PathRefused, match="no longer part"):
        guard.open(place, os.O_RDONLY)
    with pytest.raises(PathRefused, match="no longer part"), guard.enter(place):
        pass
    assert not guard.exists(place)
    assert contents(guard, "src/a") == b"a"


def test_there_is_at_least_one_folder():
    with pytest.raises(ValueError, match="at least one folder"):
        Guard([])


@pytest.mark.parametrize(("on_disk", "asked"), [(NFC, NFD), (NFD, NFC)])
def test_a_name_in_the_other_normal_form_is_found(guard, ws, on_disk, asked):
    (ws / on_disk).mkdir()
    (ws / on_disk / on_disk).write_bytes(b"x")
    assert contents(guard, f"{asked}/{asked}") == b"x"
    assert contents(guard, f"{asked}/{on_disk}") == b"x"
    assert guard.exists(guard.locate(f"{asked}/{asked}"))


@pytest.mark.skipif(sys.platform == "darwin", reason="one file system there takes both forms for one name")
def test_the_exact_name_comes_before_the_other_normal_form(guard, ws):
    (ws / NFC).write_bytes(b"nfc")
    (ws / NFD).write_bytes(b"nfd")
    assert contents(guard, NFC) == b"nfc"
    assert contents(guard, NFD) == b"nfd"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("absent", "File not found"),
        ("absent/f", "File not found"),
        ("src", "Is a directory"),
        ("src/a/f", "Not a directory"),
    ],
)
def test_what_the_system_refuses_is_told_in_one_sentence(guard, path, text):
    with pytest.raises(FileProblem) as problem:
        guard.open(guard.locate(path), os.O_RDONLY)
    assert str(problem.value) == f"failed to read file: {text}"
    assert problem.value.code == -32603


def test_writing_is_told_from_reading(guard):
    with pytest.raises(FileProblem, match=r"^failed to write file: Is a directory$"):
        guard.open(guard.locate("src"), os.O_WRONLY)
    with pytest.raises(FileProblem, match=r"^failed to write file: File not found$"):
        guard.open(guard.locate("absent/f"), os.O_WRONLY | os.O_CREAT)


def test_a_path_too_long_for_one_call_is_walked_where_that_is_possible(guard, way):
    place = guard.locate("/".join(["d" * 254] * 16) + "/" + "f" * 15)
    assert len(place.relative) == 4095 < len(place.path)
    if way is Way.PATHS:
        with pytest.raises(OSError, match="File name too long"), guard.enter(place):
            pass
        return
    with guard.enter(place) as spot:
        os.close(spot.folder.open(spot.name, os.O_WRONLY | os.O_CREAT))
    os.close(guard.open(place, os.O_RDONLY))


def test_a_descriptor_never_waits_and_is_not_inherited(guard):
    descriptor = guard.open(guard.locate("src/a"), os.O_RDONLY)
    assert not os.get_blocking(descriptor)
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_a_file_can_be_made_with_the_mode_that_the_umask_leaves(guard, ws):
    os.close(guard.open(guard.locate("new"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640))
    umask = os.umask(0)
    os.umask(umask)
    assert (ws / "new").stat().st_mode & 0o777 == 0o640 & ~umask


def test_a_root_that_was_deleted_and_made_again_is_there_again(guard, ws):
    shutil.rmtree(ws)
    with pytest.raises(FileProblem, match="File not found"):
        contents(guard, "src/a")
    (ws / "src").mkdir(parents=True)
    (ws / "src" / "a").write_bytes(b"again")
    assert contents(guard, "src/a") == b"again"


def test_exists(guard, ws):
    (ws / "out").symlink_to("/etc/passwd")
    (ws / "in").symlink_to("src")
    (ws / "dangling").symlink_to("nowhere")
    for path in ("src", "src/a", "/", "in", "in/a"):
        assert guard.exists(guard.locate(path)), path
    for path in ("b", "src/b", "src/a/b", "out", "dangling"):
        assert not guard.exists(guard.locate(path)), path


def test_permission_is_asked_for_the_name_and_for_where_it_leads(ws, way):
    (ws / "innocent").symlink_to("src/a")
    asked = []

    def permit(place):
        asked.append(place.relative)
        if place.relative == "src/a":
            raise NotShared("not shared")

    guard = Guard([str(ws)], permit=permit, way=way)
    for use in (lambda place: guard.open(place, os.O_RDONLY), lambda place: guard.enter(place).__enter__()):
        asked.clear()
        with pytest.raises(NotShared):
            use(guard.locate("innocent"))
        assert asked == ["innocent", "src/a"]
        with pytest.raises(NotShared):
            use(guard.locate("src/a"))
