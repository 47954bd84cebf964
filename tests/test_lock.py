import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.lock import Lock, claude_folders, lock_folders, read_lock, sweep
from ide_bridge.running import is_alive
from tests.fakes.surroundings import at_home

TOKEN = "t" * 64


@pytest.fixture(autouse=True)
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def written(folders=("/w",), name="Vim"):
    lock = Lock(4711, TOKEN, folders, name)
    lock.write()
    return lock


def put(folder, port, **fields):
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{port}.lock"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path


def test_the_lock_says_what_the_cli_reads(home):
    lock = written(["/w/é", "/x"])
    assert lock.path == str(home.config / "ide" / "4711.lock")
    assert json.loads(Path(lock.path).read_text(encoding="utf-8")) == {
        "pid": os.getpid(),
        "workspaceFolders": ["/w/é", "/x"],
        "ideName": "Vim",
        "transport": "ws",
        "runningInWindows": False,
        "authToken": TOKEN,
        "writtenBy": "ide-bridge",
    }


def test_the_lock_and_its_folder_are_private_whatever_the_umask(home):
    before = os.umask(0)
    try:
        lock = written()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(lock.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(home.config / "ide").st_mode) == 0o700
    assert os.listdir(home.config / "ide") == ["4711.lock"]


def test_without_a_config_folder_it_lies_in_the_home(home, monkeypatch):
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert written().paths == [str(home.path / ".claude" / "ide" / "4711.lock")]


def test_the_documented_folder_gets_a_copy_only_where_its_parent_exists(home, monkeypatch):
    assert len(lock_folders()) == 1
    (home.path / ".config" / "claude").mkdir(parents=True)
    lock = written()
    copy = home.path / ".config" / "claude" / "ide" / "4711.lock"
    assert lock.paths == [str(home.config / "ide" / "4711.lock"), str(copy)]
    assert copy.read_bytes() == Path(lock.path).read_bytes()
    lock.remove()
    assert not copy.exists()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.path / "xdg"))
    assert claude_folders()[1] == str(home.path / "xdg" / "claude" / "ide")


def test_never_both_the_config_folder_and_the_home(home):
    (home.path / ".claude").mkdir()
    assert lock_folders() == [str(home.config / "ide")]


def test_a_lock_folder_that_cannot_be_made_is_told_in_one_sentence(home, monkeypatch):
    (home.path / "file").touch()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.path / "file"))
    with pytest.raises(SetupProblem, match=r"^The folder .*/ide cannot be made: Not a directory; set HOME, or "):
        lock_folders()


def test_what_was_deleted_comes_back_as_it_was(home):
    lock = written()
    before = Path(lock.path).read_bytes()
    assert not lock.restore()
    os.unlink(lock.path)
    os.rmdir(home.config / "ide")
    assert lock.restore()
    assert Path(lock.path).read_bytes() == before
    assert stat.S_IMODE(os.stat(lock.path).st_mode) == 0o600


def test_a_change_is_written_and_no_change_is_not():
    lock = written()
    first = os.stat(lock.path)
    lock.change(ide_name="Vim")
    assert os.stat(lock.path).st_ino == first.st_ino
    lock.change(ide_name="Emacs", folders=["/a", "/b"])
    assert read_lock(lock.path)["ideName"] == "Emacs"
    assert read_lock(lock.path)["workspaceFolders"] == ["/a", "/b"]


def test_no_reader_ever_sees_half_a_lock():
    lock = written()
    stop = threading.Event()

    def rewrite():
        number = 0
        while not stop.is_set():
            number += 1
            lock.change(ide_name=f"Editor {number}" + "x" * (number % 500))

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        names = {read_lock(lock.path).get("ideName") for _ in range(500)}
    finally:
        stop.set()
        writer.join()
    assert None not in names


def test_only_a_lock_that_is_still_ours_is_removed():
    lock = written()
    Path(lock.path).write_text("{}", encoding="utf-8")
    lock.remove()
    assert Path(lock.path).exists()
    lock.write()
    lock.remove()
    lock.remove()
    assert not Path(lock.path).exists()


def test_a_planted_link_is_not_followed(home):
    victim = home.path / "victim"
    victim.write_text("precious", encoding="utf-8")
    folder = home.config / "ide"
    folder.mkdir(mode=0o700)
    (folder / "4711.lock").symlink_to(victim)
    (folder / f"4711.lock.{os.getpid()}.tmp").symlink_to(victim)
    lock = written()
    assert victim.read_text(encoding="utf-8") == "precious"
    assert not os.path.islink(lock.path)
    assert os.listdir(folder) == ["4711.lock"]


def test_a_lock_that_cannot_be_written_leaves_no_copy_of_the_token(home):
    (home.config / "ide" / "4711.lock").mkdir(parents=True, mode=0o700)
    (home.config / "ide").chmod(0o700)
    with pytest.raises(SetupProblem, match=r"4711\.lock cannot be used: Is a directory; move it away"):
        written()
    assert os.listdir(home.config / "ide") == ["4711.lock"]


def test_a_pipe_under_the_name_of_a_lock_keeps_nobody_waiting(home):
    lock = written()
    os.unlink(lock.path)
    os.mkfifo(lock.path)
    assert read_lock(lock.path) == {}
    assert sweep([str(home.config / "ide")]) == []
    lock.remove()
    assert stat.S_ISFIFO(os.stat(lock.path).st_mode)
    lock.write()
    assert read_lock(lock.path)["authToken"] == TOKEN


def test_what_we_left_behind_is_swept_and_nothing_else(home, dead_pid):
    folder = home.config / "ide"
    ours = put(folder, 1, pid=dead_pid, writtenBy="ide-bridge")
    kept = [
        put(folder, 2, pid=os.getpid(), writtenBy="ide-bridge"),
        put(folder, 3, pid=dead_pid, ideName="VS Code"),
        put(folder, 5),
    ]
    (folder / "6.lock").write_text("garbage", encoding="utf-8")
    (folder / "7.lock").mkdir()
    (folder / "note.txt").write_text(ours.read_text(encoding="utf-8"), encoding="utf-8")
    assert sweep([str(folder), str(home.path / "absent")]) == [str(ours)]
    assert not ours.exists()
    assert all(path.exists() for path in [*kept, folder / "6.lock", folder / "7.lock", folder / "note.txt"])


@pytest.mark.parametrize("text", ["", "[]", "1", "{", "\udcff", "[" * 100_000])
def test_what_is_no_lock_has_no_fields(home, text):
    path = home.path / "x.lock"
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert read_lock(str(path)) == {}


def test_a_pid_is_alive_by_the_clis_own_test(dead_pid):
    assert is_alive(os.getpid())
    assert is_alive(1)
    for pid in (dead_pid, 0, -1, True, None, "1", 1.5, 1 << 80):
        assert not is_alive(pid)
