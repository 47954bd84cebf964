import fcntl
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import Claim
from ide_bridge.fronts.lock import read_lock
from ide_bridge.running import running_bridges
from tests.fakes.surroundings import at_home


@pytest.fixture(autouse=True)
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def claim(project):
    claim = Claim([str(project)])
    yield claim
    claim.close()


def test_a_claim_listens_on_loopback_before_anything_serves(claim):
    with socket.create_connection(("127.0.0.1", claim.port), timeout=5) as line:
        assert line.getpeername() == ("127.0.0.1", claim.port)


def test_port_and_token_are_kept_for_the_next(project):
    seen = set()
    for _ in range(3):
        claim = Claim([str(project)])
        seen.add((claim.port, claim.token))
        claim.close()
    assert len(seen) == 1


def test_two_workspaces_share_neither_port_nor_token(home, claim):
    (home.path / "other").mkdir()
    other = Claim([str(home.path / "other")])
    try:
        assert other.port != claim.port
        assert other.token != claim.token
    finally:
        other.close()


def test_a_port_that_someone_took_meanwhile_is_given_up_and_the_token_with_it(project):
    first = Claim([str(project)])
    first.close()
    with socket.socket() as thief:
        thief.bind(("127.0.0.1", first.port))
        thief.listen()
        second = Claim([str(project)])
        second.close()
    assert second.port != first.port
    assert second.token != first.token
    third = Claim([str(project)])
    third.close()
    assert (third.port, third.token) == (second.port, second.token)


def test_the_token_is_private_long_and_bare(claim):
    token = Path(claim.token_file).read_text(encoding="ascii")
    assert token == claim.token == read_lock(claim.lock.path)["authToken"]
    assert len(bytes.fromhex(token)) == 32
    assert stat.S_IMODE(os.stat(claim.token_file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(claim.state).st_mode) == 0o700


@pytest.mark.parametrize("damage", ["", "short", "\0\0", "0", "65536", "-1", " 80", "1_0", "²", "9" * 5000])
def test_damaged_state_is_made_anew(project, damage):
    first = Claim([str(project)])
    first.close()
    for name in ("token", "port"):
        (Path(first.state) / name).write_text(damage, encoding="utf-8")
    second = Claim([str(project)])
    second.close()
    assert len(second.token) == 64
    assert second.token != first.token
    assert (Path(first.state) / "port").read_text(encoding="ascii") == str(second.port)


@pytest.mark.parametrize("odd", ["{}\r\n", " {}", "{}{}", "A{:.63}", "é{:.63}", "\n{:.63}"])
def test_a_token_that_no_header_could_carry_as_it_is_gives_way_to_a_new_one(project, odd):
    first = Claim([str(project)])
    first.close()
    Path(first.token_file).write_bytes(odd.format(first.token, first.token).encode())
    second = Claim([str(project)])
    second.close()
    assert second.port == first.port
    assert len(bytes.fromhex(second.token)) == 32
    assert first.token[:63] not in second.token
    assert Path(first.token_file).read_text(encoding="ascii") == second.token


@pytest.mark.parametrize("name", ["token", "port", "running"])
@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_state_that_is_no_file_is_told(home, project, name, kind):
    first = Claim([str(project)])
    first.close()
    path = Path(first.state) / name
    path.unlink()
    victim = home.path / "victim"
    victim.write_text("precious", encoding="utf-8")
    {"folder": path.mkdir, "link": lambda: path.symlink_to(victim), "fifo": lambda: os.mkfifo(path)}[kind]()
    with pytest.raises(SetupProblem, match=rf"/{name} cannot be used: .*; move it away"):
        Claim([str(project)])
    assert victim.read_text(encoding="utf-8") == "precious"
    assert running_bridges() == []
    assert home.locks() == []


def test_a_workspace_is_held_by_one_at_a_time_and_the_other_is_told_by_whom(project, claim):
    with pytest.raises(SetupProblem) as refused:
        Claim([str(project)])
    assert str(refused.value) == (
        f"This workspace is already served by the bridge with pid {os.getpid()}. "
        "Use it as it is, or end it with: ide-bridge stop"
    )
    assert Path(claim.lock.path).exists()


@pytest.fixture
def looker(project):
    """Another program that has taken the workspace's `running` for itself, as one does who only looks."""
    claim = Claim([str(project)])
    claim.close()
    running = Path(claim.state) / "running"
    with running.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield file


def test_who_only_looks_is_waited_for(project, looker):
    threading.Timer(0.1, fcntl.flock, (looker, fcntl.LOCK_UN)).start()
    Claim([str(project)]).close()


def test_who_never_lets_go_is_told_of_in_the_end(project, looker, monkeypatch):
    monkeypatch.setattr("ide_bridge.fronts.claim._HOLD_SECONDS", 0.05)
    with pytest.raises(
        SetupProblem, match=r"^Another program holds .*/running; end that program, or try again\.$"
    ):
        Claim([str(project)])


def test_one_who_only_looks_is_not_taken_for_a_bridge(project, looker):
    texts = dict.fromkeys(("lock", "socket", "token_file"), "")
    record = {"pid": os.getpid(), "port": 1, "workspaceFolders": [str(project)], **texts}
    looker.write(json.dumps(record).encode())
    looker.flush()
    assert running_bridges() == []
    fcntl.flock(looker, fcntl.LOCK_EX)
    assert running_bridges() == [record]


@pytest.mark.parametrize(
    "record", [b"", b"[" * 100_000, b"[]", b"1", b"\xff", b"{}", b'{"pid": "1"}', b'[["pid", 1]]', b'{"pid": 1}']
)
def test_a_record_that_no_bridge_wrote_shows_none(project, claim, record):
    assert len(running_bridges()) == 1
    (Path(claim.state) / "running").write_bytes(record)
    assert running_bridges() == []


def test_a_record_of_a_process_that_is_gone_shows_none(claim):
    running = Path(claim.state) / "running"
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    running.write_text(json.dumps(running_bridges()[0] | {"pid": process.pid}), encoding="utf-8")
    assert running_bridges() == []


def test_many_folders_with_long_names_do_not_hide_a_bridge(home, project, claim):
    folders = [home.path / f"{number}".rjust(250, "x") for number in range(300)]
    for folder in folders:
        folder.mkdir()
    claim.set_folders([str(project), *map(str, folders)])
    assert running_bridges()[0].folders == [str(project), *map(str, folders)]
    claim.set_folders([str(project)])
    assert running_bridges()[0].folders == [str(project)]


def test_a_claim_is_found_while_it_runs_and_not_afterwards(project, claim):
    (found,) = running_bridges()
    assert (found.pid, found.folders) == (os.getpid(), [str(project)])
    assert found["port"] == claim.port
    assert found["lock"] == claim.lock.path
    assert found["socket"] == claim.socket_path
    assert claim.token not in json.dumps(found)
    claim.close()
    claim.close()
    assert running_bridges() == []
    assert not os.path.exists(claim.lock.path)


def test_folders_that_join_are_told_everywhere(home, project, claim):
    (home.path / "b").mkdir()
    for folders in ([str(project), str(home.path / "b")], [str(project)]):
        claim.set_folders(folders)
        assert read_lock(claim.lock.path)["workspaceFolders"] == folders
        assert running_bridges()[0].folders == folders


def test_the_lock_has_the_real_and_composed_path(home):
    name = unicodedata.normalize("NFC", "é")
    (home.path / name).mkdir()
    (home.path / "link").symlink_to(name)
    claim = Claim([str(home.path / "link")])
    try:
        assert read_lock(claim.lock.path)["workspaceFolders"] == [str(home.path / name)]
    finally:
        claim.close()


def test_what_is_no_folder_is_told(home):
    (home.path / "file").touch()
    for path in (home.path / "file", home.path / "absent"):
        with pytest.raises(SetupProblem, match=r"is not a folder\.$"):
            Claim([str(path)])


def test_an_empty_name_is_no_name_for_this_folder():
    with pytest.raises(SetupProblem, match=r"^The name of a folder is empty; "):
        Claim([""])


def test_a_claim_that_fails_halfway_leaves_nothing_behind(home, project):
    (home.config / "ide").mkdir()
    (home.config / "ide").chmod(0o777)
    with pytest.raises(SetupProblem):
        Claim([str(project)])
    assert running_bridges() == []
    assert list((home.config / "ide").iterdir()) == []
    (home.config / "ide").chmod(0o700)
    Claim([str(project)]).close()


def test_the_listener_is_handed_over_once(claim):
    with socket.socket(fileno=claim.detach_listener()) as listener:
        assert listener.getsockname() == ("127.0.0.1", claim.port)
        with pytest.raises(SetupProblem, match="in use already"):
            claim.detach_listener()


def test_what_a_killed_bridge_left_is_swept(home, project):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    stale = home.config / "ide" / "1.lock"
    stale.parent.mkdir(mode=0o700)
    stale.write_text(json.dumps({"pid": process.pid, "writtenBy": "ide-bridge"}), encoding="utf-8")
    claim = Claim([str(project)])
    try:
        assert home.locks() == [Path(claim.lock.path)]
    finally:
        claim.close()


def test_a_lock_that_could_be_written_only_in_part_is_taken_back(home, project):
    first = Claim([str(project)])
    first.close()
    documented = home.path / ".config" / "claude" / "ide"
    (documented / f"{first.port}.lock").mkdir(parents=True)
    documented.chmod(0o700)
    with pytest.raises(SetupProblem, match="Is a directory; move it away"):
        Claim([str(project)])
    assert home.locks() == []
    assert running_bridges() == []


@pytest.mark.parametrize("named", ["the folder", "a folder below it", "a link to it"])
def test_a_folder_whose_name_is_not_utf_8_is_refused_in_one_sentence(home, named):
    odd = os.path.join(os.fsencode(home.path), b"caf\xe9")
    os.makedirs(os.path.join(odd, b"below"))
    os.symlink(odd, os.fsencode(home.path / "link"))
    folder = {"the folder": odd, "a folder below it": odd + b"/below", "a link to it": str(home.path / "link")}[
        named
    ]
    with pytest.raises(
        SetupProblem, match=r"^The path .*caf\udce9.* is not UTF-8, so no client .*; rename the folder\.$"
    ):
        Claim([os.fsdecode(folder)])
    assert running_bridges() == []
    assert home.locks() == []


# -- what someone deletes ----------------------------------------------------------------------------------


def files_of(claim):
    return {path.name: path.read_text(encoding="utf-8") for path in Path(claim.state).iterdir()}


def test_nothing_is_put_back_while_nothing_is_missing(claim):
    before = os.stat(claim.token_file).st_mtime_ns
    assert claim.restore() == []
    assert os.stat(claim.token_file).st_mtime_ns == before


@pytest.mark.parametrize("deleted", ["", "workspaces", "running", "token", "port"])
def test_what_is_deleted_under_a_running_bridge_is_put_back(home, project, claim, deleted):
    files = files_of(claim)
    whole = home.path / ".local" / "state" / "ide-bridge"
    gone = whole / deleted if deleted in ("", "workspaces") else Path(claim.state) / deleted
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    assert claim.restore() == ["the record of this bridge"]
    assert files_of(claim) == files
    assert os.path.isdir(os.path.dirname(claim.socket_path))
    assert [bridge["port"] for bridge in running_bridges()] == [claim.port]
    with pytest.raises(SetupProblem, match="already served by the bridge"):
        Claim([str(project)])
    assert claim.restore() == []


def test_the_folder_of_the_socket_is_made_again(claim):
    sockets = Path(claim.socket_path).parent
    shutil.rmtree(sockets)
    assert claim.restore() == []
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700


def test_the_lock_is_put_back_as_well(home, claim):
    Path(claim.lock.path).unlink()
    shutil.rmtree(claim.state)
    assert claim.restore() == ["the lock file", "the record of this bridge"]
    assert home.locks() == [Path(claim.lock.path)]


def test_a_record_that_was_put_back_is_let_go_of_in_the_end(project, claim):
    shutil.rmtree(claim.state)
    claim.restore()
    claim.close()
    assert running_bridges() == []
    again = Claim([str(project)])
    again.close()
    assert (again.port, again.token) == (claim.port, claim.token)


def test_another_bridge_that_came_meanwhile_keeps_what_is_its_own(project, claim):
    shutil.rmtree(claim.state)
    other = Claim([str(project)])
    try:
        files = files_of(other)
        assert claim.restore() == []
        assert files_of(other) == files
        assert [bridge["port"] for bridge in running_bridges()] == [other.port]
    finally:
        other.close()
    assert claim.restore() == ["the record of this bridge"]
    assert [bridge["port"] for bridge in running_bridges()] == [claim.port]
