import os
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ide_bridge.errors import PathRefused
from ide_bridge.workspace.beneath import Folder, Walk, Way, best_way, open_without_links
from ide_bridge.workspace.places import Place, Root

WAYS = [way for way in Way if way is not Way.KERNEL or best_way() is Way.KERNEL]


@pytest.fixture(params=WAYS, ids=lambda way: way.value)
def way(request):
    return request.param


@pytest.fixture
def root(tmp_path):
    (tmp_path / "ws").mkdir()
    return Root.of(str(tmp_path / "ws"), "ws")


def anything(place):
    pass


def end(root, relative, way=Way.DESCRIPTORS, *others):
    with Walk((root, *others), way).to(Place(root, relative), anything) as spot:
        return spot.place


def descriptors():
    return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="openat2 is Linux")
def test_the_kernel_is_used_where_it_can_refuse_links():
    release = tuple(map(int, os.uname().release.split(".")[:2]))
    assert best_way() is (Way.KERNEL if release >= (5, 6) else Way.DESCRIPTORS)


@pytest.mark.skipif(best_way() is not Way.KERNEL, reason="openat2 is Linux 5.6")
@pytest.mark.parametrize("path", ["link", "folder-link/f", "../secret", "/etc/passwd", "f/../../secret", "magic"])
def test_the_one_call_follows_no_link_and_never_leaves(tmp_path, path):
    ws = tmp_path / "ws"
    (ws / "folder").mkdir(parents=True)
    (ws / "folder" / "f").touch()
    (ws / "f").touch()
    (tmp_path / "secret").touch()
    (ws / "link").symlink_to("f")
    (ws / "folder-link").symlink_to("folder")
    (ws / "magic").symlink_to("/proc/self/exe")
    assert open_without_links(str(ws), path, os.O_RDONLY, 0) == -1
    descriptor = open_without_links(str(ws), "folder/f", os.O_RDONLY, 0)
    assert descriptor >= 0
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


@pytest.mark.skipif(best_way() is not Way.KERNEL, reason="openat2 is Linux 5.6")
def test_a_root_that_became_reachable_only_through_a_link_is_not_opened(tmp_path):
    (tmp_path / "a" / "ws").mkdir(parents=True)
    (tmp_path / "a" / "ws" / "f").touch()
    os.rename(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a").symlink_to("b")
    assert open_without_links(str(tmp_path / "a" / "ws"), "f", os.O_RDONLY, 0) == -1
    with pytest.raises(OSError, match="symbolic links"):
        Folder(str(tmp_path / "a" / "ws"), Way.KERNEL)


def test_a_walk_ends_where_the_links_end(root, way):
    ws = root.path
    os.makedirs(f"{ws}/a/b")
    os.symlink("b", f"{ws}/a/to-b")
    os.symlink(f"{ws}/a/to-b", f"{ws}/absolute")
    os.symlink("../../absolute/f", f"{ws}/a/b/up")
    os.symlink("/" + f"{ws}/a", f"{ws}/two-slashes")
    assert end(root, "absolute/f", way).relative == "a/b/f"
    assert end(root, "a/b/up", way).relative == "a/b/f"
    assert end(root, "two-slashes/to-b/up", way).relative == "a/b/f"


def test_dot_dot_in_a_link_means_the_parent_of_where_the_link_before_it_leads(root, way):
    ws = root.path
    os.makedirs(f"{ws}/deep/er/x")
    os.symlink("deep/er", f"{ws}/short")
    os.symlink("short/../f", f"{ws}/tricky")
    open(f"{ws}/deep/f", "wb").close()
    assert os.path.realpath(f"{ws}/tricky") == f"{ws}/deep/f"
    assert end(root, "tricky", way).relative == "deep/f"


def test_a_link_may_go_out_and_come_back(root, way, tmp_path):
    os.symlink(f"../../{tmp_path.name}/ws/f", f"{root.path}/detour")
    assert end(root, "detour", way).relative == "f"


def test_a_link_may_lead_into_another_root(root, way, tmp_path):
    (tmp_path / "other").mkdir()
    other = Root.of(str(tmp_path / "other"), "other")
    os.symlink("../other/sub/f", f"{root.path}/across")
    (tmp_path / "other" / "sub").mkdir()
    assert end(root, "across", way, other) == Place(other, "sub/f")
    with pytest.raises(PathRefused):
        end(root, "across", way)


@pytest.mark.parametrize(
    "target", ["..", "/", "../other", "/etc/passwd", "../ws-evil/f", "a/../../x", "/proc/self/root"]
)
def test_a_link_that_leaves_is_refused(root, way, tmp_path, target):
    os.makedirs(f"{root.path}/a")
    (tmp_path / "ws-evil").mkdir()
    os.symlink(target, f"{root.path}/link")
    for relative in ("link", "link/f"):
        with pytest.raises(PathRefused, match="leaves the workspace"):
            end(root, relative, way)


def test_forty_links_are_followed_and_one_more_is_not(root, way):
    os.symlink("f", f"{root.path}/link1")
    for number in range(2, 42):
        os.symlink(f"link{number - 1}", f"{root.path}/link{number}")
    assert end(root, "link40", way).relative == "f"
    with pytest.raises(OSError, match="symbolic links"):
        end(root, "link41", way)


def test_a_circle_of_links_ends(root, way):
    os.symlink("b", f"{root.path}/a")
    os.symlink("a/x", f"{root.path}/b")
    with pytest.raises(OSError, match="symbolic links"):
        end(root, "a", way)


def test_a_route_that_ends_in_a_folder_above_is_a_folder(root, way):
    os.makedirs(f"{root.path}/a/b")
    os.symlink("..", f"{root.path}/a/b/up")
    os.symlink(".", f"{root.path}/here")
    for relative in ("a/b/up", "here"):
        with pytest.raises(IsADirectoryError):
            end(root, relative, way)


def test_parents_are_made_only_after_the_end_of_the_route_is_allowed(root, way):
    os.mkdir(f"{root.path}/real")
    os.symlink("real/deep", f"{root.path}/link")
    asked = []

    def refuse(place):
        asked.append(place.relative)
        raise PathRefused("no")

    with (
        pytest.raises(PathRefused),
        Walk((root,), way).to(Place(root, "link/er/f"), refuse, make_parents=True),
    ):
        pass
    assert asked == ["real/deep/er/f"]
    assert os.listdir(f"{root.path}/real") == []
    with Walk((root,), way).to(Place(root, "link/er/f"), anything, make_parents=True) as spot:
        assert spot.place.relative == "real/deep/er/f"
    assert os.path.isdir(f"{root.path}/real/deep/er")


def test_nothing_is_made_for_a_link_that_goes_up_through_an_absent_folder(root, way):
    os.symlink("absent/../f", f"{root.path}/link")
    with (
        pytest.raises(FileNotFoundError),
        Walk((root,), way).to(Place(root, "link"), anything, make_parents=True),
    ):
        pass
    assert os.listdir(root.path) == ["link"]


def test_the_last_part_must_be_in_a_folder(root, way):
    open(f"{root.path}/file", "wb").close()
    with pytest.raises(NotADirectoryError):
        end(root, "file/f", way)
    with pytest.raises(FileNotFoundError):
        end(root, "absent/f", way)


def test_no_descriptor_is_left_behind(root, way):
    os.makedirs(f"{root.path}/a/b")
    os.symlink("a/b", f"{root.path}/link")
    os.symlink("/etc", f"{root.path}/out")
    before = descriptors()
    for relative in ("a/b/f", "link/f", "out/f", "absent/f", "link"):
        try:
            end(root, relative, way)
        except (PathRefused, OSError):
            continue
    assert descriptors() == before


def test_a_file_swapped_for_a_link_at_the_last_moment_is_not_opened(root, way, tmp_path):
    (tmp_path / "secret").touch()
    with Walk((root,), way).to(Place(root, "f"), anything) as spot:
        os.symlink("../secret", f"{root.path}/f")
        with pytest.raises(OSError, match="symbolic links"):
            spot.folder.open(spot.name, os.O_RDONLY)


def test_a_folder_swapped_for_a_link_at_the_last_moment_is_not_passed(root, way, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_bytes(b"secret")
    os.mkdir(f"{root.path}/a")
    with Walk((root,), way).to(Place(root, "a/f"), anything) as spot:
        os.rename(f"{root.path}/a", f"{root.path}/b")
        os.symlink("../outside", f"{root.path}/a")
        with pytest.raises(OSError, match=r"symbolic links|No such file"):
            spot.folder.open(spot.name, os.O_RDONLY)


def test_names_can_be_listed_and_a_folder_synced(root, way):
    open(f"{root.path}/f", "wb").close()
    with Folder(root.path, way) as folder:
        assert folder.names() == ["f"]
        folder.sync()


NAMES = st.sampled_from(["a", "b", "c"])
TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=4).map("/".join)
ENTRIES = st.lists(
    st.tuples(
        st.lists(NAMES, min_size=1, max_size=3),
        st.sampled_from(["file", "folder", "link", "absolute"]),
        TARGETS,
    ),
    max_size=10,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=ENTRIES, path=st.lists(NAMES, min_size=1, max_size=4).map("/".join))
def test_the_walk_agrees_with_the_system_about_links(tmp_path_factory, entries, path):
    """Whatever the tree: it ends where realpath says, if that is inside, and nowhere else."""
    outer = tmp_path_factory.mktemp("tree")
    ws = outer / "ws"
    ws.mkdir()
    for parts, kind, target in entries:
        spot = ws.joinpath(*parts)
        if not os.path.realpath(spot.parent).startswith(str(ws)):
            continue  # the tree is built inside only, even where a link of its own leads out
        try:
            spot.parent.mkdir(parents=True, exist_ok=True)
            if kind == "file":
                spot.write_text("x", encoding="utf-8")
            elif kind == "folder":
                spot.mkdir()
            else:
                spot.symlink_to(ws / target if kind == "absolute" else target)
        except OSError:
            continue
    root = Root.of(str(ws), "ws")
    try:
        real = os.path.realpath(ws / path, strict=True)
    except OSError:
        return
    leaves = real != str(ws) and not real.startswith(f"{ws}/")
    for way in WAYS:
        if leaves:
            with pytest.raises(PathRefused):
                end(root, path, way)
        elif os.path.isfile(real):
            assert end(root, path, way).path == real
