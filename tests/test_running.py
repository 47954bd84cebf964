import os

import pytest

from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import Claim
from ide_bridge.running import find, find_or_start, is_alive, running_bridges, workspace_of
from tests.fakes.surroundings import at_home


@pytest.fixture
def project():
    with at_home() as home:
        folder = home.path / "project"
        (folder / "sub" / "deep").mkdir(parents=True)
        yield folder


def test_the_innermost_bridge_that_contains_the_folder_is_found(project):
    outer, inner = Claim([str(project)]), Claim([str(project / "sub")])
    assert find(str(project / "sub" / "deep"))["port"] == inner.port
    assert find(str(project))["port"] == outer.port
    assert find(str(project.parent)) is None
    assert len(running_bridges()) == 2
    inner.close()
    assert find(str(project / "sub" / "deep"))["port"] == outer.port
    outer.close()


def test_a_folder_that_only_begins_alike_is_another(project):
    project.with_name("project2").mkdir()
    claim = Claim([str(project)])
    assert find(str(project.with_name("project2"))) is None
    claim.close()


def test_what_a_bridge_was_started_for_is_told_apart_from_what_joined(project):
    claim = Claim([str(project / "sub")])
    claim.set_folders([str(project / "sub"), str(project)])
    running = find(str(project))
    assert running.folders == [str(project / "sub"), str(project)]
    assert running.claimed == [str(project / "sub")]
    claim.close()


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b"7", b'{"pid": 1}', b"\xff", b"[" * 100_000])
def test_a_record_that_is_none_is_passed_over(project, record):
    claim = Claim([str(project)])
    with open(os.path.join(claim.state, "running"), "wb") as file:
        file.write(record)
    assert running_bridges() == []
    claim.close()


def test_the_workspace_of_a_folder_is_the_git_top_level(project):
    assert workspace_of(str(project / "sub")) == str(project / "sub")
    (project / ".git").mkdir()
    assert workspace_of(str(project / "sub" / "deep")) == str(project)


def test_a_bridge_that_cannot_be_started_says_why(project):
    (project / ".ide-bridge.toml").write_text("share = 7\n", encoding="utf-8")
    with pytest.raises(SetupProblem, match=r"could not be started.*ide-bridge\.toml"):
        find_or_start(str(project))


def test_who_is_alive(project):
    assert is_alive(os.getpid())
    assert not is_alive(2**40)
    assert not is_alive(True)
