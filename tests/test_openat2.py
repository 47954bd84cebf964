"""The system call itself: what it opens, and what it refuses without saying more than -1."""

import ctypes
import errno
import os
import sys

import pytest

from ide_bridge.workspace.beneath import Way, best_way
from ide_bridge.workspace.openat2 import _OpenHow, last_error, openat2

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or best_way() is not Way.KERNEL, reason="openat2 is Linux 5.6"
)


def test_the_layout_the_kernel_expects():
    assert ctypes.sizeof(_OpenHow) == 24


def test_a_file_is_opened_and_made_with_its_mode(tmp_path):
    path = str(tmp_path.resolve() / "a")
    os.close(openat2(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640))
    assert os.stat(path).st_mode & 0o777 == 0o640 & ~_umask()
    os.close(openat2(path, os.O_RDONLY))


@pytest.mark.parametrize("path", ["link", "folder-link/a", "/proc/self/root/etc"])
def test_any_link_on_the_way_is_refused(tmp_path, path):
    folder = tmp_path.resolve()
    (folder / "folder").mkdir()
    (folder / "folder/a").write_bytes(b"")
    (folder / "link").symlink_to("folder/a")
    (folder / "folder-link").symlink_to("folder")
    assert openat2(os.path.join(folder, path), os.O_RDONLY) == -1
    assert last_error().errno == errno.ELOOP


def test_why_it_failed_can_be_asked(tmp_path):
    assert openat2(str(tmp_path.resolve() / "absent"), os.O_RDONLY) == -1
    assert isinstance(last_error(), FileNotFoundError)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
