"""No path, whatever it says and whatever lies on disk, gets at anything outside the workspace."""

import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ide_bridge.errors import BridgeError, FileProblem, PathRefused
from ide_bridge.workspace.beneath import Way, best_way
from ide_bridge.workspace.files import Files
from ide_bridge.workspace.guard import Guard
from tests.hostile.swapping import attempts, needs_exchange, swapping

WAYS = [way for way in Way if way is not Way.KERNEL or best_way() is Way.KERNEL]
SECRET = "secret"
SWAPS = 2000


@pytest.fixture(params=WAYS, ids=lambda way: way.value)
def way(request):
    return request.param


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text(SECRET, encoding="utf-8")
    return tmp_path / "ws"


def read(guard, path):
    return Files(guard).read(guard.locate(path))


@pytest.mark.parametrize(
    "path",
    [
        "../outside/f",
        "/../outside/f",
        "./../outside/f",
        "a/../../outside/f",
        "..//outside/f",
        "../ws/../outside/f",
        "{ws}/../outside/f",
        "{ws}/./../outside/f",
        "//{ws}/../outside/f",
        "{ws}-x/../outside/f",
        "{outside}/f",
        "/{outside}/f",
        "file://{outside}/f",
        "/proc/self/root{outside}/f",
        "/proc/self/cwd",
        "..\\outside\\f",
        "%2e%2e/outside/f",
        "..%c0%afoutside/f",
        "~/f",
        "../outside/f\0.txt",
        "..\u2215outside/f",
        ".\u200b./outside/f",
        "\uff0e\uff0e/outside/f",
    ],
)
def test_no_spelling_of_a_path_leaves(ws, way, path):
    guard = Guard([str(ws)], way=way)
    with pytest.raises(BridgeError) as refused:
        read(guard, path.format(ws=ws, outside=ws.parent / "outside"))
    assert SECRET not in str(refused.value)
    assert str(ws.parent) not in str(refused.value)


PARTS = st.sampled_from(
    ["..", ".", "", "f", "outside", "ws", "link", "up", "~", "\\", "..\\", "\u2024\u2024", "root"]
)


@given(path=st.lists(PARTS, max_size=8).map("/".join))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_combination_of_parts_leaves(tmp_path_factory, path):
    base = tmp_path_factory.getbasetemp() / "combinations"
    ws = base / "ws"
    if not ws.exists():
        ws.mkdir(parents=True)
        (base / "outside").mkdir()
        (base / "outside" / "f").write_text(SECRET, encoding="utf-8")
        (ws / "up").symlink_to("..")
        (ws / "link").symlink_to("../outside")
        (ws / "root").symlink_to("/")
    for way in WAYS:
        guard = Guard([str(ws)], way=way)
        with suppress(BridgeError):
            assert read(guard, path) != SECRET


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("link", "../outside/f", "link"),
        ("link", "../outside", "link/f"),
        ("link", "{outside}/f", "link"),
        ("link", "{outside}", "link/f"),
        ("link", "/", "link{outside}/f"),
        ("link", "/proc/self/cwd", "link/f"),
        ("link", "/proc/self/root{outside}/f", "link"),
        ("link", "//{outside}/f", "link"),
        ("link", "./.././outside/f", "link"),
    ],
)
def test_no_link_leaves(ws, way, link, target, path):
    outside = ws.parent / "outside"
    (ws / link).symlink_to(target.format(outside=outside))
    guard = Guard([str(ws)], way=way)
    with pytest.raises(PathRefused):
        read(guard, path.format(outside=outside))
    with pytest.raises(PathRefused):
        Files(guard).write(guard.locate(path.format(outside=outside)), "x")
    assert (outside / "f").read_text(encoding="utf-8") == SECRET


def test_no_chain_of_links_leaves(ws, way):
    (ws / "a").symlink_to("b")
    (ws / "b").symlink_to("c/d")
    (ws / "c").mkdir()
    (ws / "c" / "d").symlink_to(ws / "e")
    (ws / "e").symlink_to("../outside/f")
    with pytest.raises(PathRefused):
        read(Guard([str(ws)], way=way), "a")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")
@pytest.mark.parametrize(
    "path", ["cwd/pyproject.toml", "root/etc/passwd", "exe", "fd/0", "task/{pid}/root/etc/passwd"]
)
def test_magic_links_are_not_followed(way, path):
    with pytest.raises(BridgeError):
        read(Guard(["/proc/self"], way=way), path.format(pid=os.getpid()))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")
def test_a_magic_link_to_an_open_file_is_only_its_text(ws, way):
    with (ws.parent / "outside" / "f").open("rb") as secret, pytest.raises(BridgeError):
        read(Guard(["/proc/self"], way=way), f"fd/{secret.fileno()}")


def test_fifos_and_sockets_are_refused_at_once(ws, way):
    os.mkfifo(ws / "fifo")
    (ws / "to-fifo").symlink_to("fifo")
    here = Path.cwd()
    os.chdir(ws)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
    finally:
        os.chdir(here)
    guard = Guard([str(ws)], way=way)
    for path in ("fifo", "socket", "to-fifo"):
        with pytest.raises(FileProblem, match=r"^failed to read file: Not a regular file$"):
            read(guard, path)
        with pytest.raises(FileProblem, match=r"^failed to write file: Not a regular file$"):
            Files(guard).write(guard.locate(path), "x")
        with pytest.raises(FileProblem, match=r"^failed to write file: Not a regular file$"):
            guard.open(guard.locate(path), os.O_WRONLY)
    assert stat.S_ISFIFO((ws / "fifo").stat().st_mode)


@pytest.mark.skipif(not hasattr(os, "mknod") or os.geteuid() != 0, reason="only root makes devices")
def test_devices_are_refused(ws, way):
    try:
        os.mknod(ws / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError as error:
        pytest.skip(f"no devices here: {error}")
    guard = Guard([str(ws)], way=way)
    with pytest.raises(FileProblem, match=r"Not a regular file|Permission denied"):
        read(guard, "zero")
    with pytest.raises(FileProblem, match="Not a regular file"):
        Files(guard).write(guard.locate("zero"), "x")


RACE_FREE = [way for way in WAYS if way is not Way.PATHS]


@needs_exchange
@pytest.mark.parametrize("way", RACE_FREE, ids=lambda way: way.value)
@pytest.mark.parametrize(("spot", "target"), [("a", "../outside"), ("a/f", "../../outside/f")])
def test_a_swap_between_check_and_open_gains_nothing(ws, way, spot, target):
    (ws / "a").mkdir()
    (ws / "a" / "f").write_text("fine", encoding="utf-8")
    guard = Guard([str(ws)], way=way)
    seen = set()
    with swapping(ws / spot, target):
        for _ in attempts(seen, {"fine", PathRefused}, SWAPS):
            try:
                seen.add(read(guard, "a/f"))
            except BridgeError as error:
                seen.add(type(error))
    assert SECRET not in seen
    assert {"fine", PathRefused} <= seen  # both sides of the swap were met


@needs_exchange
@pytest.mark.parametrize("way", RACE_FREE, ids=lambda way: way.value)
def test_a_link_swapped_for_one_that_leaves_gains_nothing(ws, way):
    (ws / "a").mkdir()
    (ws / "a" / "f").write_text("fine", encoding="utf-8")
    (ws / "inside").symlink_to("a")
    guard = Guard([str(ws)], way=way)
    seen = set()
    with swapping(ws / "inside", "../outside"):
        for _ in attempts(seen, {"fine", PathRefused}, SWAPS):
            try:
                seen.add(read(guard, "inside/f"))
            except BridgeError as error:
                seen.add(type(error))
    assert SECRET not in seen
    assert {"fine", PathRefused} <= seen
