import os
import subprocess
import sys

import pytest

from ide_bridge.fronts.process import working_folder


def test_where_a_process_works(tmp_path):
    folder = tmp_path / "ein é ordner"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], cwd=folder, stdin=subprocess.PIPE
    )
    try:
        assert working_folder(process.pid) == str(folder)
        assert working_folder(os.getpid()) == os.getcwd()
    finally:
        process.communicate()
    assert working_folder(process.pid) is None


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**31, 2**70])
def test_a_number_that_is_no_process_works_nowhere(pid):
    assert working_folder(pid) is None


def test_a_folder_that_is_gone_is_no_folder(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"], cwd=folder, stdin=-1, stdout=-1
    )
    try:
        process.stdout.readline()
        folder.rmdir()
        assert working_folder(process.pid) is None
    finally:
        process.communicate()


@pytest.mark.parametrize("pid", [0, -1, 2**70])
def test_where_the_system_has_no_proc(monkeypatch, pid):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert working_folder(os.getpid()) == os.getcwd()
    assert working_folder(pid) is None
