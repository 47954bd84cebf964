import ctypes
import functools
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ide_bridge.errors import FileProblem
from ide_bridge.workspace.beneath import Folder, Way, best_way
from ide_bridge.workspace.replacing import Old, replace

WAYS = [way for way in Way if way is not Way.KERNEL or best_way() is Way.KERNEL]
NOBODY = 65534
OLD, NEW = b"old text\n" * 1000, b"the new text\n" * 2000


@pytest.fixture(params=WAYS, ids=lambda way: way.value)
def way(request):
    return request.param


@pytest.fixture
def place():
    """A folder that every user may reach, which pytest's own folders are not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(os.path.realpath(name))


@contextmanager
def as_nobody():
    """Be a user without rights for a while; who may do everything proves nothing."""
    if os.geteuid() != 0:
        with without_capabilities():
            yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextmanager
def without_capabilities():
    """Put aside what the namespace of this test run gives even to an ordinary user."""
    if sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None)
    version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
    mine = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 of each
    assert libc.capget(version_3, mine) == 0
    reduced = (ctypes.c_uint32 * 6)(0, mine[1], mine[2], 0, mine[4], mine[5])
    assert libc.capset(version_3, reduced) == 0
    try:
        yield
    finally:
        assert libc.capset(version_3, mine) == 0


def write(place, data, name="f", way=None):
    with Folder(str(place), way or best_way()) as folder:
        return replace(folder, name, data, Old.find(folder, name), None)


def leftovers(place):
    return sorted(name for name in os.listdir(place) if name.endswith(".ide-bridge-tmp"))


def fill(place, name="f", data=OLD):
    (place / name).write_bytes(data)
    return place / name


def dead_pid():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_a_file_is_replaced_not_overwritten(place, way):
    file = fill(place)
    with file.open("rb") as reader:
        write(place, NEW, way=way)
        assert reader.read() == OLD
    assert file.read_bytes() == NEW


def test_a_file_with_several_names_keeps_them(place, way):
    file = fill(place)
    os.link(file, place / "twin")
    write(place, b"short", way=way)
    assert (place / "twin").read_bytes() == b"short"
    assert file.stat().st_nlink == 2
    assert leftovers(place) == []


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Python knows extended attributes on Linux only")
def test_extended_attributes_are_kept(place, way):
    file = fill(place)
    try:
        os.setxattr(file, "user.mark", b"kept")
    except OSError as error:
        pytest.skip(f"the file system has no extended attributes: {error}")
    write(place, NEW, way=way)
    assert os.getxattr(file, "user.mark") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_and_group_are_kept_by_who_may_set_them(place, way):
    file = fill(place)
    os.chown(file, 1234, 4321)
    before = file.stat().st_ino
    write(place, NEW, way=way)
    info = file.stat()
    assert (info.st_uid, info.st_gid) == (1234, 4321)
    assert info.st_ino != before
    assert file.read_bytes() == NEW


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_is_written_in_place(place, way):
    file = fill(place)
    os.chown(file, 1234, 4321)
    file.chmod(0o666)
    before = file.stat().st_ino
    with as_nobody():
        write(place, NEW, way=way)
    info = file.stat()
    assert (info.st_uid, info.st_gid, info.st_ino) == (1234, 4321, before)
    assert file.read_bytes() == NEW
    assert leftovers(place) == []


def test_in_a_folder_where_nothing_can_be_made_the_file_is_written_in_place(place, way):
    (place / "closed").mkdir()
    file = fill(place / "closed")
    file.chmod(0o666)
    (place / "closed").chmod(0o555)
    with as_nobody():
        write(place / "closed", NEW, way=way)
        with pytest.raises(PermissionError):
            write(place / "closed", NEW, "new", way=way)
    assert file.read_bytes() == NEW
    (place / "closed").chmod(0o755)


def test_a_folder_that_may_be_passed_but_not_listed_can_be_written_in(place):
    (place / "blind").mkdir()
    (place / "blind").chmod(0o333)
    with as_nobody():
        write(place / "blind", NEW)
    (place / "blind").chmod(0o755)
    assert (place / "blind" / "f").read_bytes() == NEW


def test_a_read_only_file_is_not_replaced_behind_its_back(place, way):
    file = fill(place)
    file.chmod(0o444)
    with as_nobody(), pytest.raises(PermissionError):
        write(place, NEW, way=way)
    assert file.read_bytes() == OLD
    assert leftovers(place) == []


@pytest.mark.skipif(sys.platform != "linux", reason="mount namespaces are Linux")
def test_a_file_mounted_by_itself_is_written_in_place(place):
    fill(place)
    fill(place, "mounted", b"")
    code = """
        import sys
        from ide_bridge.workspace.files import Files
        from ide_bridge.workspace.guard import Guard

        guard = Guard([sys.argv[1]])
        Files(guard).write(guard.locate("mounted"), "new")
    """
    mount = 'mount --bind "$1/f" "$1/mounted" || exit 77; exec "$0" - "$1"'
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, sys.executable, place],
        input=textwrap.dedent(code),
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert (place / "f").read_bytes() == b"new"
    assert leftovers(place) == []


@pytest.mark.skipif(os.name == "nt", reason="limits of a process are POSIX")
def test_a_full_disk_leaves_the_old_text_and_no_leftover(place):
    fill(place, data=b"old")
    code = """
        import resource, signal, sys
        from ide_bridge.workspace.files import Files
        from ide_bridge.workspace.guard import Guard

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        guard = Guard([sys.argv[1]])
        try:
            Files(guard).write(guard.locate("f"), "x" * 5000)
        except Exception as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), place], capture_output=True, encoding="utf-8"
    )
    assert done.stdout == "failed to write file: File too large\n", done.stderr
    assert (place / "f").read_bytes() == b"old"
    assert leftovers(place) == []


def test_what_a_dead_process_left_goes_and_what_a_living_one_has_stays(place, way):
    dead, living = dead_pid(), os.getpid()
    names = {
        f".{dead}-0011aabb.ide-bridge-tmp": False,
        f".{living}-0011aabb.ide-bridge-tmp": True,
        f".{10**30}-0011aabb.ide-bridge-tmp": False,
        f".{dead}-0011aabb-1.ide-bridge-tmp": True,
        f".x{dead}-0011aabb.ide-bridge-tmp": True,
        f".{dead}-0011aabb.ide-bridge-tmp.txt": True,
    }
    for name in names:
        fill(place, name)
    write(place, NEW, way=way)
    assert {name: (place / name).exists() for name in names} == names


def test_a_copy_of_a_torn_file_goes_once_that_file_is_whole_again(place):
    file = fill(place)
    os.link(file, place / "twin")
    copy = fill(place, f".{dead_pid()}-0011aabb-{file.stat().st_ino}.ide-bridge-tmp", NEW)
    write(place, b"x", "other")
    assert copy.exists()
    write(place, b"x")
    assert not copy.exists()


def at_once(*calls):
    """Run all calls at the same moment; raise what any of them raised."""
    with ThreadPoolExecutor(len(calls)) as pool:
        start = threading.Barrier(len(calls))
        for result in [pool.submit(lambda call=call: (start.wait(10), call())) for call in calls]:
            result.result(30)


@pytest.mark.parametrize("names", [1, 2])
def test_writers_at_once_leave_one_whole_text(place, way, names):
    """By rename, and in place for a file with two names; texts differ in length, so a mixture shows."""
    file = fill(place)
    if names == 2:
        os.link(file, place / "twin")
    texts = [bytes([65 + number]) * 50_000 * (number + 1) for number in range(4)]
    for _ in range(40):
        at_once(*(functools.partial(write, place, text, way=way) for text in texts))
        assert file.read_bytes() in texts
    assert leftovers(place) == []


STEPS = (
    "open",
    "close",
    "write",
    "fsync",
    "replace",
    "fchmod",
    "fchown",
    "ftruncate",
    "fstat",
    "stat",
    "unlink",
    "listdir",
)


def die_at(step, place, way):
    """Write, but be killed just before the given call to the system; a write is cut in half first."""
    best_way()
    count = 0

    def hurried(name, real):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count == step:
                if name == "write":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in STEPS:
        setattr(os, name, hurried(name, getattr(os, name)))
    write(place, NEW, way=way)


def killed_at(step, place, way):
    child = multiprocessing.get_context("fork").Process(target=die_at, args=(step, place, way))
    child.start()
    child.join(20)
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode != 0


def deaths(place, way, prepare):
    """A fresh folder for every step at which a writer can die, each after the death."""
    for step in range(1, 200):
        folder = place / str(step)
        folder.mkdir()
        prepare(folder)
        if not killed_at(step, folder, way):
            return
        yield folder
    pytest.fail("the writer never finishes")


def test_killed_at_any_step_the_file_is_the_old_or_the_new_one(place, way):
    seen = set()
    for folder in deaths(place, way, lambda folder: fill(folder).chmod(0o751)):
        text = (folder / "f").read_bytes()
        assert text in (OLD, NEW)
        assert stat.S_IMODE((folder / "f").stat().st_mode) == 0o751
        seen.add(text)
        write(folder, b"next")
        assert os.listdir(folder) == ["f"]
    assert seen == {OLD, NEW}


def test_killed_at_any_step_a_new_file_is_absent_or_whole(place, way):
    seen = set()
    for folder in deaths(place, way, os.fspath):
        text = (folder / "f").read_bytes() if (folder / "f").exists() else None
        assert text in (None, NEW)
        seen.add(text)
        write(folder, b"next")
        assert os.listdir(folder) == ["f"]
    assert seen == {None, NEW}


def test_killed_at_any_step_the_text_of_a_hard_linked_file_is_somewhere_whole(place, way):
    torn = 0
    for folder in deaths(place, way, lambda folder: os.link(fill(folder), folder / "twin")):
        text = (folder / "f").read_bytes()
        if text not in (OLD, NEW):
            torn += 1
            (copy,) = leftovers(folder)
            assert (folder / copy).read_bytes() == NEW
            write(folder, b"x", "other")
            assert leftovers(folder) == [copy]
        write(folder, b"next")
        assert (folder / "twin").read_bytes() == b"next"
        assert leftovers(folder) == []
    assert torn


def test_a_text_that_changed_meanwhile_is_not_written_over_in_place_either(place, way):
    file = fill(place)
    os.link(file, place / "twin")
    with Folder(str(place), way) as folder:
        stamp = replace(folder, "f", OLD, Old.find(folder, "f"), None)
        file.write_bytes(b"changed")
        with pytest.raises(FileProblem, match="changed on disk"):
            replace(folder, "f", NEW, Old.find(folder, "f"), stamp)
    assert file.read_bytes() == b"changed"
    assert leftovers(place) == []


def test_every_write_in_place_leaves_another_stamp(place, way, monkeypatch):
    """Even when the clock of the file system stands still, which it does for milliseconds."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    (place / "a").write_bytes(b"0")
    os.link(place / "a", place / "b")
    with Folder(str(place), way) as folder:
        stamps = [replace(folder, "a", b"%d" % (n % 10), Old.find(folder, "a"), None) for n in range(50)]
    assert len(set(stamps)) == 50
