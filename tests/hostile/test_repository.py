"""Whatever lies in a ``.git``: listing the files runs no program of its choice, and ends."""

import asyncio
import os
import time
from contextlib import suppress

import pytest

from ide_bridge.errors import Disconnected
from ide_bridge.workspace import repository
from ide_bridge.workspace.index import Index
from ide_bridge.workspace.listing import Listing
from ide_bridge.workspace.repository import find
from tests.trees import git, isolate_git, put


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    isolate_git(monkeypatch, home)
    return home


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "it-ran"


@pytest.fixture
def program(tmp_path, mark):
    """A program that leaves a mark, whatever it is asked to do."""
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\ntouch '{mark}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def top(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    git(top, "init", "-q")
    put(top, "in/f", "out/g", "out/deep/h", "top")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    return top


def listed(top):
    index = Index([str(top)], lambda: None)
    index.refresh()
    return index.paths


def lose_a_tree(top):
    """Makes the index sparse, and takes away the tree that it takes to read it whole."""
    git(top, "sparse-checkout", "init", "--cone", "--sparse-index")
    git(top, "sparse-checkout", "set", "in")
    tree = git(top, "rev-parse", "HEAD:out").decode().strip()
    os.unlink(top / ".git/objects" / tree[:2] / tree[2:])
    git(top, "config", "core.repositoryformatversion", "1")
    git(top, "config", "extensions.partialClone", "origin")
    git(top, "config", "remote.origin.promisor", "true")


REMOTES = {
    "ssh": {"remote.origin.url": "ssh://elsewhere/x", "core.sshCommand": "{program}"},
    "ext": {"remote.origin.url": "ext::{program}", "protocol.ext.allow": "always"},
    "file": {"remote.origin.url": "{top}", "remote.origin.uploadpack": "{program}", "protocol.allow": "always"},
    "proxy": {"remote.origin.url": "git://elsewhere/x", "core.gitProxy": "{program}"},
    "helper": {"remote.origin.url": "x", "remote.origin.vcs": "program", "protocol.allow": "always"},
}


@pytest.mark.parametrize("without", ["", "GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"])
@pytest.mark.parametrize("remote", REMOTES)
def test_what_is_missing_is_not_fetched(top, program, mark, monkeypatch, remote, without):
    lose_a_tree(top)
    for name, value in REMOTES[remote].items():
        git(top, "config", name, value.format(program=program, top=top))
    program.with_name("git-remote-program").symlink_to(program)
    monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(program.parent)]))
    monkeypatch.delitem(repository._HARMLESS, without, raising=False)  # either is enough
    assert "in/f" in listed(top)
    assert not mark.exists()


@pytest.mark.parametrize(
    "setting",
    [
        *("core.fsmonitor", "core.pager", "pager.ls-files", "core.askPass", "core.editor", "core.sshCommand"),
        *("core.alternateRefsCommand", "diff.external", "filter.x.clean", "filter.x.smudge", "filter.x.process"),
        *("diff.x.textconv", "credential.helper", "gpg.program", "uploadpack.packObjectsHook", "alias.ls-files"),
    ],
)
def test_no_setting_names_a_program_that_is_run(top, program, mark, setting):
    put(top, ".gitattributes", text="* filter=x diff=x\n")
    git(top, "config", setting, str(program))
    put(top, "in/f", text="other")
    assert "in/f" in listed(top)
    assert find(str(top)).standing("").rules is not None
    assert not mark.exists()


def test_no_setting_of_an_included_file_either(top, program, mark, tmp_path):
    put(tmp_path, "included", text=f"[core]\n\tfsmonitor = {program}\n\texcludesFile = x\n")
    git(top, "config", "include.path", str(tmp_path / "included"))
    assert "in/f" in listed(top)
    assert not mark.exists()


def test_no_hook_is_run(top, program, mark):
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "query-watchman"):
        (top / ".git/hooks").mkdir(exist_ok=True)
        (top / ".git/hooks" / hook).symlink_to(program)
    git(top, "config", "core.hooksPath", str(top / ".git/hooks"))
    mark.unlink(missing_ok=True)
    os.utime(top / "in/f")
    assert "in/f" in listed(top)
    assert not mark.exists()


def test_a_folder_that_passes_for_a_repository_is_not_taken_for_one(top, program, mark):
    inner = top / "in"
    git(inner, "init", "-q", "--bare", ".")
    git(inner, "--git-dir=.", "config", "core.fsmonitor", str(program))
    git(top, "add", "-A")
    assert {"f", "HEAD", "config"} <= find(str(inner)).tracked(str(inner))
    assert not mark.exists()


def test_a_program_called_git_in_the_folder_is_not_run(top, program, mark, monkeypatch):
    (top / "git").symlink_to(program)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", os.environ["PATH"]]))
    monkeypatch.chdir(top)
    assert "in/f" in find(str(top)).tracked(str(top))
    assert not mark.exists()


@pytest.mark.parametrize("started", [False, True])
async def test_a_git_that_waits_forever_ends_with_the_listing(top, started):
    git(top, "config", "include.path", "more")
    os.mkfifo(top / ".git/more")
    listing = Listing([str(top)])
    reading = asyncio.create_task(listing.start() if started else listing.count())
    while not (listing._reading or listing._future_index):
        await asyncio.sleep(0.01)
    began = time.monotonic()
    await listing.close()
    assert time.monotonic() - began < 2
    with suppress(Disconnected):
        await reading
