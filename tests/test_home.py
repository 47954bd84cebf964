import errno
import os
import stat
import sys

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge import home
from ide_bridge.errors import SetupProblem
from tests.fakes.surroundings import at_home


@pytest.fixture(autouse=True)
def own_home():
    with at_home() as found:
        yield found


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs is asked directly")
@pytest.mark.parametrize("base", [None, "", "  ", "relative/path", "/absolute/path"])
def test_our_two_lines_say_what_platformdirs_says(monkeypatch, base):
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        if base is not None:
            monkeypatch.setenv(variable, base)
    assert home.state_folder() == platformdirs.user_state_dir("ide-bridge", appauthor=False)
    assert home.config_folder() == platformdirs.user_config_dir("ide-bridge", appauthor=False)


paths = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).map("/".__add__)


@given(first=paths, second=paths)
def test_every_workspace_has_a_folder_of_its_own(first, second):
    one, other = home.workspace_folder(first), home.workspace_folder(second)
    assert (one == other) == (first == second)
    assert os.path.dirname(one) == os.path.join(home.state_folder(), "workspaces")
    assert len(os.fsencode(os.path.basename(one))) <= 255


def test_a_person_can_tell_which_workspace_a_folder_belongs_to():
    assert os.path.basename(home.workspace_folder("/home/me/100%")) == "%2Fhome%2Fme%2F100%25"


def test_sockets_get_a_short_path_even_in_a_deep_home(own_home, monkeypatch):
    assert home.socket_folder() == str(own_home.path / ".local/state/ide-bridge/sockets")
    monkeypatch.setenv("XDG_STATE_HOME", str(own_home.path / ("deep" * 30)))
    monkeypatch.setattr("tempfile.tempdir", str(own_home.path))
    short = home.socket_folder()
    assert short == str(own_home.path / f"ide-bridge-{os.getuid()}")
    assert len(short) < 88
    assert stat.S_IMODE(os.stat(short).st_mode) == 0o700


def test_a_private_folder_is_made_with_its_parents_and_may_be_there_already(own_home):
    folder = str(own_home.path / "a" / "b")
    for _ in range(2):
        assert home.private_folder(folder) == folder
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def modes(*folders):
    return [stat.S_IMODE(os.stat(folder).st_mode) for folder in folders]


def test_our_state_is_private_from_the_top_down_and_is_made_so(own_home):
    top = home.state_folder()
    below = os.path.join(top, "workspaces", "x")
    assert home.private_folder(below) == below
    levels = (top, os.path.dirname(below), below)
    assert modes(*levels) == [0o700] * 3
    for folder in levels:
        os.chmod(folder, 0o755)
    assert home.private_folder(below) == below
    assert modes(*levels) == [0o700] * 3
    above = os.path.dirname(top)
    os.chmod(above, 0o755)
    home.private_folder(below)
    assert modes(above) == [0o755], "what is not ours stays as it is"
    os.chmod(top, 0o777)
    with pytest.raises(SetupProblem, match=f"^Others may write in {top};"):
        home.private_folder(below)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_may_write_is_refused_with_the_remedy(own_home, mode):
    folder = own_home.path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(SetupProblem) as refused:
        home.private_folder(str(folder))
    assert str(refused.value) == f"Others may write in {folder}; run: chmod go-w '{folder}'"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(own_home):
    folder = own_home.path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.raises(SetupProblem, match="belongs to another user"):
        home.private_folder(str(folder))


def test_a_folder_that_cannot_be_made_is_told_with_the_remedy(own_home):
    (own_home.path / "file").touch()
    folder = own_home.path / "file" / "folder"
    with pytest.raises(SetupProblem) as refused:
        home.private_folder(str(folder))
    assert str(refused.value) == (
        f"The folder {folder} cannot be made: Not a directory; "
        "set HOME, or what else names it, to a folder you may write in."
    )


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
def test_only_a_regular_file_is_opened_and_nothing_is_waited_for(own_home, flags):
    file, pipe, link = (own_home.path / name for name in ("file", "pipe", "link"))
    os.close(home.open_regular(str(file), flags | os.O_CREAT))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    os.mkfifo(pipe)
    link.symlink_to(file)
    for path in (pipe, link, own_home.path, "/dev/zero"):
        with pytest.raises(OSError, match=str(path)):
            home.open_regular(str(path), flags)
    os.close(home.open_regular(str(link), flags, follow=True))


def test_a_full_disk_and_a_wrong_file_have_different_remedies():
    told = [
        str(home.unusable("/f", OSError(number, os.strerror(number)))) for number in (errno.ENOSPC, errno.EISDIR)
    ]
    assert told == [
        "/f cannot be used: No space left on device; make room on the disk.",
        "/f cannot be used: Is a directory; move it away or correct its permissions.",
    ]
