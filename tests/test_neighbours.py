"""Who is at the other end, asked of the real kernel and of tables as it prints them."""

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.session.relay import neighbours
from ide_bridge.session.relay.neighbours import belongs_to_us, kept_token, owner_of_peer
from tests.fakes.surroundings import at_home

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's list is Linux's")
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = "   0: {} {} {} 00000000:00000000 00:00000000 00000000  {}        0 4711 1 0 20 4 30 10 -1\n"
OURS, THEIRS = ("127.0.0.1", 8765), ("127.0.0.1", 40000)
LISTENER, CALLER = "0100007F:223D", "0100007F:9C40"
CALLER_6, LISTENER_6 = "0000000000000000FFFF00000100007F:9C40", "0000000000000000FFFF00000100007F:223D"


@pytest.fixture
def connection():
    """Both ends of a real connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = socket.create_connection(listener.getsockname())
        here, _ = listener.accept()
        with caller, here:
            yield here, caller


def table(tmp_path, *rows):
    file = tmp_path / "tcp"
    file.write_text(HEAD + "".join(ROW.format(*row) for row in rows), encoding="ascii")
    return [str(file)]


@pytest.fixture
def somebody_else():
    """The first line of a program that another user runs."""
    line = "import os, socket, sys; os.setuid(4711)"
    if subprocess.run([sys.executable, "-I", "-S", "-c", line], capture_output=True, timeout=30).returncode:
        pytest.skip("this user cannot become another")
    return line


@linux_only
def test_our_own_program_is_ours(connection):
    here, _caller = connection
    assert owner_of_peer(here.getsockname(), here.getpeername()) == os.geteuid()
    if os.geteuid() != 65534:
        assert belongs_to_us(here.getsockname(), here.getpeername())


@linux_only
def test_a_program_that_speaks_ipv6_is_found_too():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET6) as caller:
        caller.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        caller.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        here, _ = listener.accept()
        with here:
            assert owner_of_peer(here.getsockname(), here.getpeername()) == os.geteuid()


@linux_only
def test_who_has_left_belongs_to_nobody(connection):
    here, caller = connection
    ours, theirs = here.getsockname(), here.getpeername()
    caller.close()
    assert owner_of_peer(ours, theirs) is None


@linux_only
def test_another_user_is_told_from_us(somebody_else):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        program = f"{somebody_else}; s = socket.socket(); s.connect({address!r}); sys.stdin.read()"
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdin=subprocess.PIPE) as caller:
            listener.settimeout(10)
            here, _ = listener.accept()
            with here:
                owner = owner_of_peer(here.getsockname(), here.getpeername())
                assert not belongs_to_us(here.getsockname(), here.getpeername())
            caller.communicate(timeout=10)
    assert owner == 4711


@linux_only
@pytest.mark.parametrize(
    ("row", "owner"),
    [
        ((CALLER, LISTENER, "01", 1000), 1000),
        ((CALLER_6, LISTENER_6, "01", 1000), 1000),
        ((CALLER, LISTENER, "06", 0), None),
        ((CALLER, LISTENER, "08", 1000), None),
        ((LISTENER, CALLER, "01", 1000), None),
        ((CALLER, "0100007F:0001", "01", 1000), None),
        (("0200007F:9C40", LISTENER, "01", 1000), None),
    ],
)
def test_only_the_callers_own_row_of_an_established_connection_counts(tmp_path, row, owner):
    if sys.byteorder == "little":
        assert owner_of_peer(OURS, THEIRS, table(tmp_path, row)) == owner


@linux_only
def test_two_rows_that_differ_tell_nothing(tmp_path):
    rows = [(CALLER, LISTENER, "01", 1000), (CALLER, LISTENER, "01", 1001)]
    assert owner_of_peer(OURS, THEIRS, table(tmp_path, *rows)) is None


def test_a_list_that_is_missing_or_strange_tells_nothing(tmp_path):
    (tmp_path / "strange").write_text(HEAD + "what\n", encoding="ascii")
    assert owner_of_peer(OURS, THEIRS, [str(tmp_path / "none"), str(tmp_path / "strange")]) is None


@linux_only
def test_the_number_of_all_unknown_users_is_nobody_we_know(connection, monkeypatch):
    here, _caller = connection
    monkeypatch.setattr(neighbours, "_nobody", os.geteuid)
    assert not belongs_to_us(here.getsockname(), here.getpeername())


@pytest.fixture
def folder():
    with at_home() as home:
        yield str(home.path / ".local/state/ide-bridge/relay")


def test_the_token_is_made_once_and_kept_private(folder):
    token, path = kept_token(folder)
    assert kept_token(folder) == (token, path)
    assert len(bytes.fromhex(token)) == 32
    assert Path(path).read_text(encoding="ascii") == token
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(folder) == ["token"]


@pytest.mark.parametrize("text", ["", "short", "g" * 64, "a" * 65])
def test_what_is_no_token_is_replaced(folder, text):
    path = Path(kept_token(folder)[1])
    path.write_text(text, encoding="ascii")
    token, _ = kept_token(folder)
    assert token != text
    assert kept_token(folder)[0] == token


def test_a_token_that_others_may_read_is_refused(folder):
    path = Path(kept_token(folder)[1])
    path.chmod(0o644)
    with pytest.raises(SetupProblem, match="Others may read the token"):
        kept_token(folder)


def test_those_who_start_at_once_have_the_same_token(folder):
    kept_token(folder)
    os.remove(os.path.join(folder, "token"))
    tokens = []
    programs = [threading.Thread(target=lambda: tokens.append(kept_token(folder)[0])) for _ in range(2)]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    assert Path(folder, "token").read_text(encoding="ascii") in tokens
