"""What keeps a bridge from starting, found by looking: real modes, owners and files in an empty home."""

import os

import pytest

from ide_bridge.cli.obstacles import missing_linters, obstacles
from ide_bridge.errors import SetupProblem
from ide_bridge.fronts.claim import Claim
from ide_bridge.settings import Linter
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.surroundings import at_home

IS_ROOT = os.name == "posix" and os.getuid() == 0


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def state(home):
    return home.path / ".local" / "state" / "ide-bridge"


@pytest.fixture
def settings(home):
    path = home.path / ".config" / "ide-bridge" / "settings.toml"
    path.parent.mkdir(parents=True)
    return path


def found(project):
    return [(finding.rule, finding.subject, finding.text) for finding in obstacles(str(project), "error")]


def start(project):
    """Start as ``serve`` does; the obstacles must be those at which this fails."""
    claim = Claim([str(project)])
    try:
        Workspace.of_user(*claim.folders)
    finally:
        claim.close()


def tree(home):
    return sorted((path.relative_to(home.path), path.lstat().st_mode) for path in home.path.rglob("*"))


def test_in_a_new_home_nothing_is_in_the_way_and_nothing_is_made(home, project):
    before = tree(home)
    assert found(project) == []
    assert tree(home) == before
    start(project)
    assert found(project) == []


def test_a_folder_that_cannot_be_served_is_named(home):
    odd = os.fsdecode(os.path.join(os.fsencode(home.path), b"caf\xe9"))
    os.mkdir(odd)
    ((rule, subject, text),) = found(odd)
    assert (rule, subject) == ("workspace", odd)
    with pytest.raises(SetupProblem) as refused:
        start(odd)
    assert str(refused.value) == text


@pytest.mark.parametrize("whose", ["user", "workspace"])
def test_a_broken_settings_file_is_named(project, settings, whose):
    path = settings if whose == "user" else project / ".ide-bridge.toml"
    path.write_text('share = "some"', encoding="utf-8")
    text = f"{path} is not understood: share must be one of full, path, off."
    assert found(project) == [("settings", str(path), text)]
    with pytest.raises(SetupProblem, match="is not understood"):
        start(project)


def test_a_lock_folder_open_to_others_is_named_with_the_remedy(home, project):
    home.config.rename(home.path / "it's config")
    os.environ["CLAUDE_CONFIG_DIR"] = str(home.path / "it's config")
    locks = home.path / "it's config" / "ide"
    locks.mkdir()
    locks.chmod(0o777)
    (finding,) = obstacles(str(project), "warning")
    assert (finding.rule, finding.level, finding.subject) == ("lock-folder", "warning", str(locks))
    assert finding.text == f"Others may write in {locks}."
    assert finding.fix == f"""Run: chmod go-w '{home.path}/it'"'"'s config/ide'"""
    with pytest.raises(SetupProblem, match="Others may write in"):
        start(project)


def test_the_second_place_for_locks_counts_where_it_is_used(home, project):
    locks = home.path / ".config" / "claude" / "ide"
    locks.mkdir(parents=True)
    locks.chmod(0o777)
    assert found(project) == [("lock-folder", str(locks), f"Others may write in {locks}.")]
    with pytest.raises(SetupProblem, match="Others may write in"):
        start(project)


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_named(home, project):
    locks = home.config / "ide"
    locks.mkdir()
    os.chown(locks, 12345, 12345)
    assert found(project) == [("lock-folder", str(locks), f"{locks} belongs to another user.")]
    with pytest.raises(SetupProblem, match="belongs to another user"):
        start(project)


def test_of_the_state_folders_the_outermost_is_named(project, state):
    state.parent.mkdir(parents=True)
    state.write_text("in the way", encoding="utf-8")
    assert found(project) == [("state-folder", str(state), f"{state} is no folder.")]
    with pytest.raises(SetupProblem, match="cannot be made"):
        start(project)


def test_a_home_in_which_nothing_can_be_made_is_named(home, project, monkeypatch):
    (home.path / "file").touch()
    monkeypatch.setenv("HOME", str(home.path / "file" / "home"))
    place = home.path / "file" / "home" / ".local" / "state" / "ide-bridge"
    text = f"{place} cannot be made in {home.path / 'file'}: that is no folder."
    assert found(project) == [("state-folder", str(place), text)]
    with pytest.raises(SetupProblem, match="cannot be made"):
        start(project)


@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
def test_a_home_that_may_not_be_written_is_named(home, project, state):
    home.path.chmod(0o500)
    try:
        text = f"{state} cannot be made in {home.path}: you may not write there."
        assert found(project) == [("state-folder", str(state), text)]
    finally:
        home.path.chmod(0o700)


@pytest.mark.skipif(IS_ROOT, reason="root may read everything")
def test_a_workspace_that_may_not_be_read_is_told_of_as_the_folder_it_is(project):
    project.chmod(0o300)
    try:
        with pytest.raises(SetupProblem, match=f"^You may not read the folder {project};"):
            start(project)
    finally:
        project.chmod(0o700)


def test_a_linter_that_is_not_there_is_named_once(project, settings):
    (project / "own").write_text("#!/bin/sh\n", encoding="utf-8")
    (project / "own").chmod(0o755)
    programs = ["no-such-linter", "sh", "./own", "./absent", "no-such-linter", "/no/such"]
    linters = [Linter("*", (program, "{file}")) for program in programs]
    missing = list(missing_linters(linters, str(project)))
    assert [finding.subject for finding in missing] == ["no-such-linter", "./absent", "/no/such"]
    assert missing[0].text == "The linter no-such-linter cannot be started: there is no such program on your PATH."
    assert missing[0].fix == f"Install it, or take it out of {settings}"
    settings.write_text('[[linters]]\nglob = "*"\ncommand = ["no-such-linter"]', encoding="utf-8")
    assert [rule for rule, _, _ in found(project)] == ["linter"]
    start(project)
