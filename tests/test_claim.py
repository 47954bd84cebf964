import json
import os
import socket
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import Claim, running_bridges
from ide_bridge.fronts.lock import read_lock
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


@pytest.mark.parametrize("damage", ["", "short", "\0\0"])
def test_damaged_state_is_made_anew(project, damage):
    first = Claim([str(project)])
    first.close()
    for name in ("token", "port"):
        (Path(first.state) / name).write_text(damage, encoding="ascii")
    second = Claim([str(project)])
    second.close()
    assert len(second.token) == 64
    assert second.token != first.token


def test_a_workspace_is_held_by_one_at_a_time_and_the_other_is_told_by_whom(project, claim):
    with pytest.raises(SetupProblem) as refused:
        Claim([str(project)])
    assert str(refused.value) == (
        f"This workspace is already served by the bridge with pid {os.getpid()}. "
        "Use it as it is, or end it with: ide-bridge stop"
    )
    assert Path(claim.lock.path).exists()


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
    with pytest.raises(OSError, match="directory"):
        Claim([str(project)])
    assert home.locks() == []
    assert running_bridges() == []
