"""No write gets at git's own files, leaves the workspace, or leaves a file neither old nor new."""

import os
import subprocess
import threading
from contextlib import suppress

import pytest

from ide_bridge.errors import BridgeError, FileProblem, PathRefused
from ide_bridge.workspace.beneath import Way, best_way
from ide_bridge.workspace.files import Files
from ide_bridge.workspace.guard import Guard
from tests.hostile.swapping import attempts, needs_exchange, swapping

WAYS = [way for way in Way if way is not Way.KERNEL or best_way() is Way.KERNEL]
WRITES = 300


@pytest.fixture(params=WAYS, ids=lambda way: way.value)
def way(request):
    return request.param


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "ws" / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "ws" / ".git" / "config").write_text("[core]\n", encoding="utf-8")
    (tmp_path / "ws" / "sub").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("theirs", encoding="utf-8")
    return tmp_path / "ws"


def write(guard, path, content="x"):
    return Files(guard).write(guard.locate(path), content)


def tree(folder):
    return sorted(
        os.path.join(where, name) for where, folders, files in os.walk(folder) for name in folders + files
    )


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        ".git/hooks/post-checkout",
        ".git/new/deep/f",
        ".GIT/config",
        ".Git/hooks/x",
        ".g\u200cit/config",
        "/.git/config",
        "./.git/config",
        "{ws}/.git/config",
        "sub/.git",
        "sub/.GIT",
        "sub/.git/config",
        "sub/x/.git/y",
    ],
)
def test_nothing_of_git_is_written_by_name(ws, way, path):
    before = tree(ws)
    with pytest.raises(PathRefused, match=r"^nothing under \.git is written$"):
        write(Guard([str(ws)], way=way), path.format(ws=ws))
    assert tree(ws) == before


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (".git", "link/config"),
        (".git", "link/new/f"),
        (".git/config", "link"),
        (".git/absent", "link"),
        (".git/absent", "link/f"),
        ("{ws}/.git", "link/hooks/x"),
        ("sub/../.git/config", "link"),
        ("sub/.git/f", "link"),
    ],
)
def test_nothing_of_git_is_written_through_a_link(ws, way, target, path):
    (ws / "link").symlink_to(target.format(ws=ws))
    before = tree(ws)
    with pytest.raises(PathRefused, match=r"^nothing under \.git is written$"):
        write(Guard([str(ws)], way=way), path)
    assert tree(ws) == before
    assert (ws / ".git" / "config").read_text(encoding="utf-8") == "[core]\n"


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_RDONLY | os.O_CREAT])
def test_no_way_to_open_for_writing_gets_at_git(ws, way, flags):
    (ws / "link").symlink_to(".git/config")
    guard = Guard([str(ws)], way=way)
    for path in (".git/config", "link"):
        with pytest.raises(PathRefused, match=r"nothing under \.git"):
            guard.open(guard.locate(path), flags)
    assert (ws / ".git" / "config").read_text(encoding="utf-8") == "[core]\n"


def test_a_workspace_inside_git_is_not_written_either(ws, way):
    with pytest.raises(PathRefused, match=r"nothing under \.git"):
        write(Guard([str(ws / ".git")], way=way), "config")


def test_git_may_be_read(ws, way):
    guard = Guard([str(ws)], way=way)
    assert Files(guard).read(guard.locate(".git/config")) == "[core]\n"


def test_what_begins_like_git_may_be_written(ws, way):
    for path in (".gitignore", ".github/workflows/ci.yml", "x.git/f"):
        write(Guard([str(ws)], way=way), path)
        assert (ws / path).read_text(encoding="utf-8") == "x"


def test_folders_are_not_made_outside(ws, way):
    (ws / "link").symlink_to("../outside")
    (ws / "dangling").symlink_to("../outside/new")
    guard = Guard([str(ws)], way=way)
    for path in ("link/new/f", "dangling/f", "dangling"):
        with pytest.raises(PathRefused, match="leaves the workspace"):
            write(guard, path)
    assert os.listdir(ws.parent / "outside") == ["f"]


@needs_exchange
@pytest.mark.parametrize("way", [way for way in WAYS if way is not Way.PATHS], ids=lambda way: way.value)
@pytest.mark.parametrize("path", ["a/f", "a/new/f"])
def test_a_swap_while_writing_gains_nothing(ws, way, path):
    (ws / "a").mkdir()
    outside = ws.parent / "outside"
    guard = Guard([str(ws)], way=way)
    outcomes = set()
    with swapping(ws / "a", "../outside"):
        for _ in attempts(outcomes, {"written", PathRefused}, WRITES):
            try:
                write(guard, path, "mine")
                outcomes.add("written")
            except BridgeError as error:
                outcomes.add(type(error))
    assert {"written", PathRefused} <= outcomes  # both sides of the swap were met
    assert os.listdir(outside) == ["f"]
    assert (outside / "f").read_text(encoding="utf-8") == "theirs"


def test_a_reader_never_sees_half_a_text(ws, way):
    guard = Guard([str(ws)], way=way)
    texts = {"a" * 200_000, "b" * 300_000}
    place = guard.locate("f")
    Files(guard).write(place, "a" * 200_000)
    stop = threading.Event()

    def rewrite():
        while not stop.is_set():
            for text in texts:
                Files(guard).write(place, text)

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        seen = {Files(guard).read(place) for _ in range(WRITES)}
    finally:
        stop.set()
        thread.join(10)
    assert seen <= texts


def test_a_planted_temporary_file_is_not_followed(ws, way):
    """A link with the name pattern of ours is at most removed, never written through."""
    for number in range(3):
        (ws / f".{2**22 + number}-0011aabb.ide-bridge-tmp").symlink_to("../outside/f")
    with suppress(BridgeError):
        write(Guard([str(ws)], way=way), "f")
    assert (ws.parent / "outside" / "f").read_text(encoding="utf-8") == "theirs"
    assert (ws / "f").read_text(encoding="utf-8") == "x"


# -- several names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config", "hooks/post-checkout", "deep/er/file"])
def test_nothing_of_git_is_written_through_a_hard_link(ws, way, name):
    make_repository(ws)
    target = ws / ".git" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("theirs", encoding="utf-8")
    os.link(target, ws / "sub" / "harmless")
    before = tree(ws)
    with pytest.raises(PathRefused, match=r"^nothing under \.git is written, and the file is linked there$"):
        write(Guard([str(ws)], way=way), "sub/harmless")
    assert target.read_text(encoding="utf-8") == "theirs"
    assert tree(ws) == before


def test_nor_through_one_to_the_repository_above_the_workspace(ws):
    make_repository(ws)
    os.link(ws / ".git" / "config", ws / "sub" / "harmless")
    with pytest.raises(PathRefused, match=r"^nothing under \.git is written"):
        write(Guard([str(ws / "sub")]), "harmless")


def test_nor_through_one_from_another_root(ws, tmp_path):
    make_repository(ws)
    other = tmp_path / "other"
    other.mkdir()
    os.link(ws / ".git" / "config", other / "harmless")
    with pytest.raises(PathRefused, match=r"^nothing under \.git is written"):
        write(Guard([str(ws), str(other)]), f"{other}/harmless")


def test_a_file_with_several_names_elsewhere_is_written_under_all(ws, way):
    make_repository(ws)
    (ws / "a").write_text("old", encoding="utf-8")
    os.link(ws / "a", ws / "sub" / "b")
    write(Guard([str(ws)], way=way), "a", "new")
    assert (ws / "sub" / "b").read_text(encoding="utf-8") == "new"


def make_repository(ws):
    for part in ("objects", "refs"):
        (ws / ".git" / part).mkdir()
    (ws / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")


# -- a disk without room -----------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of three megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("reserving", [True, False])
@pytest.mark.parametrize("old", ["O" * 900_000, "O" * 1_200_000, ""])
def test_without_room_a_file_with_several_names_stays_as_it_is(small_disk, monkeypatch, old, reserving):
    if not reserving:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    (small_disk / "a").write_text(old, encoding="utf-8")
    os.link(small_disk / "a", small_disk / "b")
    with pytest.raises(FileProblem, match=r"^failed to write file: No space left on device$"):
        write(Guard([str(small_disk)]), "a", "N" * 1_600_000)
    assert (small_disk / "b").read_text(encoding="utf-8") == old
    assert sorted(os.listdir(small_disk)) == ["a", "b"]


def test_a_write_that_fails_leaves_no_folders(small_disk, way):
    (small_disk / "kept").mkdir()
    with pytest.raises(FileProblem, match="No space left"):
        write(Guard([str(small_disk)], way=way), "kept/p/q/new", "N" * 4_000_000)
    assert tree(small_disk) == [str(small_disk / "kept")]


def test_a_folder_that_somebody_uses_by_then_stays(ws, way):
    fail_in(Guard([str(ws)], way=way), "new/deeper/x", (ws / "new" / "theirs").touch)
    assert os.listdir(ws / "new") == ["theirs"]


def test_folders_are_not_removed_through_a_link_that_was_put_in_their_place(ws, way, tmp_path):
    (tmp_path / "outside" / "deeper").mkdir()

    def swap():
        os.rename(ws / "new", ws / "moved")
        os.symlink(tmp_path / "outside", ws / "new")

    fail_in(Guard([str(ws)], way=way), "new/deeper/x", swap)
    assert (tmp_path / "outside" / "deeper").is_dir()


def fail_in(guard, path, meanwhile):
    """Enters the folder of a path and fails there, after something else has happened."""
    with suppress(ZeroDivisionError), guard.enter(guard.locate(path)):
        meanwhile()
        raise ZeroDivisionError
