import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from ide_bridge.fronts.process import working_folder

WAITING = "import sys; print(flush=True); sys.stdin.read()"


@contextmanager
def working_in(folder):
    """A process that works in a new folder."""
    folder.mkdir()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", WAITING], cwd=folder, **pipes)
    try:
        process.stdout.readline()
        yield process
    finally:
        process.communicate()


def test_where_a_process_works(tmp_path):
    folder = tmp_path / "ein é ordner"
    with working_in(folder) as process:
        assert working_folder(process.pid) == str(folder)
    assert working_folder(process.pid) is None
    assert working_folder(os.getpid()) == os.getcwd()


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**31, 2**70])
def test_a_number_that_is_no_process_works_nowhere(pid):
    assert working_folder(pid) is None


def test_a_folder_that_is_gone_is_no_folder(tmp_path):
    folder = tmp_path / "gone"
    with working_in(folder) as process:
        folder.rmdir()
        assert working_folder(process.pid) is None


@pytest.mark.parametrize("pid", [0, -1, 2**70])
def test_where_the_system_has_no_proc(monkeypatch, pid):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert working_folder(os.getpid()) == os.getcwd()
    assert working_folder(pid) is None
