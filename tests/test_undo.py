"""Taking back what a client changed: as a user types it, in an empty home, mostly without a bridge."""

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.cli import main
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import PathRefused
from ide_bridge.home import workspace_folder
from ide_bridge.tools import files
from ide_bridge.tools.registry import Context
from ide_bridge.workspace import undoing
from ide_bridge.workspace.files import Stamp
from ide_bridge.workspace.journal import Journal, Limits
from ide_bridge.workspace.undoing import Outcome, make_again, take_back
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_client import connect_to
from tests.fakes.surroundings import at_home


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def project(home, monkeypatch):
    folder = home.path / "project"
    folder.mkdir()
    (folder / "a.py").write_bytes(b"0\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def journal(project):
    return Journal(workspace_folder(str(project)))


@pytest.fixture
def workspace(project):
    return in_journal(Workspace(project))


def in_journal(workspace):
    os.makedirs(state := workspace_folder(workspace.path), mode=0o700, exist_ok=True)
    workspace.keep_journal(state)
    return workspace


async def write(workspace, path, content, client="Claude Code"):
    await workspace.write(workspace.locate(path), content, client=client)


@pytest.fixture
def undo(capsys):
    """Runs the command; gives what it says."""

    def run(*arguments, code=0):
        capsys.readouterr()
        assert main(["undo", *arguments]) == code
        output, error = capsys.readouterr()
        assert bool(error) == bool(code)
        return (error if code else output).removesuffix("\n")

    return run


def at(journal, number=0):
    return time.strftime("at %H:%M", time.localtime(journal.entries()[number].when))


async def test_the_newest_change_is_taken_back_then_the_one_before(workspace, project, undo, journal):
    await write(workspace, "a.py", "1\n")
    await write(workspace, "b.py", "b\n")
    await write(workspace, "a.py", "2\n")
    again = "; to have it again: ide-bridge undo --redo"
    assert undo() == f"Took back what Claude Code wrote to a.py {at(journal)}{again}"
    assert (project / "a.py").read_bytes() == b"1\n"
    assert undo() == f"Removed b.py, which Claude Code made {at(journal, 1)}{again}"
    assert not (project / "b.py").exists()
    undo()
    assert (project / "a.py").read_bytes() == b"0\n"
    nothing = "There is no change in this workspace to take back; see what there is with: ide-bridge undo --list"
    assert undo(code=1) == f"ide-bridge: {nothing}"


async def test_a_file_can_be_named(workspace, project, undo, home, monkeypatch):
    await write(workspace, "a.py", "1\n")
    await write(workspace, "sub/b.py", "b\n")
    assert undo("a.py").startswith("Took back what Claude Code wrote to a.py")
    assert (project / "a.py").read_bytes() == b"0\n"
    assert "of a.py to take back" in undo("a.py", code=1)
    monkeypatch.chdir(home.path)
    assert undo("project/sub/b.py").startswith(f"Removed {os.path.join('project', 'sub', 'b.py')}, ")
    assert "of missing to take back" in undo("missing", code=1)


async def test_a_file_is_looked_for_here_first_and_then_from_the_top(workspace, project, undo, monkeypatch):
    for path in ("x.txt", "sub/x.txt", "y.txt", "sub/z.txt"):
        await write(workspace, path, "1\n")
    monkeypatch.chdir(project / "sub")
    assert undo("x.txt").startswith("Removed x.txt, which")
    assert (project / "x.txt").exists()
    assert undo("y.txt").startswith(f"Removed {project / 'y.txt'}, which")
    assert undo("sub/z.txt").startswith("Removed z.txt, which")
    assert undo("y.txt", "--redo").startswith(f"Wrote to {project / 'y.txt'} again")
    assert undo("absent.txt", code=1).startswith("ide-bridge: There is no change of absent.txt to take back;")


async def test_folders_made_for_a_new_file_go_with_it_if_they_are_empty(workspace, project, undo):
    (project / "old").mkdir()
    for path in ("a/b/c/new.txt", "old/kept/new.txt"):
        await write(workspace, path, "1\n")
    (project / "old" / "kept" / "mine.txt").touch()
    undo()
    undo()
    assert sorted(path.name for path in project.iterdir()) == ["a.py", "old"]
    assert [path.name for path in (project / "old" / "kept").iterdir()] == ["mine.txt"]
    undo("--redo")
    assert (project / "a" / "b" / "c" / "new.txt").read_bytes() == b"1\n"
    undo()
    assert not (project / "a").exists()


async def test_a_folder_that_was_there_before_stays_though_it_is_empty(workspace, project, undo):
    (project / "old").mkdir()
    await write(workspace, "old/made/new.txt", "1\n")
    undo()
    assert [path.name for path in (project / "old").iterdir()] == []


async def test_folders_the_client_made_for_a_kept_diff_go_too(workspace, project, undo):
    await workspace.expect(str(project / "d" / "e" / "new.txt"), "1\n", client="Claude Code")
    (project / "d" / "e").mkdir(parents=True)
    (project / "d" / "e" / "new.txt").write_bytes(b"1\n")
    undo()
    assert not (project / "d").exists()


async def test_a_folder_that_became_a_link_is_not_gone_through(workspace, project, undo):
    await write(workspace, "a/b/new.txt", "1\n")
    (project / "a").rename(project / "moved")
    (project / "a").symlink_to("moved")
    undo()
    assert (project / "a").is_symlink()
    assert (project / "moved" / "b").is_dir()


async def test_what_was_taken_back_can_be_made_again_in_turn(workspace, project, undo, journal):
    for content in ("1\n", "2\n", "3\n"):
        await write(workspace, "a.py", content)
    await write(workspace, "b.py", "b\n")
    for _ in range(4):
        undo()
    assert (project / "a.py").read_bytes() == b"0\n"
    assert undo("--redo") == f"Wrote to a.py again what Claude Code wrote {at(journal)}."
    assert (project / "a.py").read_bytes() == b"1\n"
    undo("--redo", "b.py")
    assert (project / "b.py").read_bytes() == b"b\n"
    undo("--redo")
    undo("--redo")
    assert (project / "a.py").read_bytes() == b"3\n"
    assert "to make again" in undo("--redo", code=1)
    undo("a.py")
    assert (project / "a.py").read_bytes() == b"2\n"


async def test_a_file_changed_since_is_left_alone_and_explained(workspace, project, undo, journal):
    await write(workspace, "a.py", "1\n")
    (project / "a.py").write_bytes(b"mine\n")
    (entry,) = journal.entries()
    before, after = journal.copy_of(entry, "before"), journal.copy_of(entry, "after")
    assert undo(code=1) == (
        f"ide-bridge: a.py has changed since Claude Code wrote to it {at(journal)}, so it was left alone; "
        f"the text before is in {before}, what was written is in {after}"
    )
    assert (project / "a.py").read_bytes() == b"mine\n"
    assert (Path(before).read_bytes(), Path(after).read_bytes()) == (b"0\n", b"1\n")
    (project / "a.py").write_bytes(b"1\n")
    undo()
    assert (project / "a.py").read_bytes() == b"0\n"
    (project / "a.py").write_bytes(b"mine again\n")
    assert "has changed since what Claude Code wrote" in undo("--redo", code=1)
    assert (project / "a.py").read_bytes() == b"mine again\n"


@pytest.mark.parametrize("now", [b"b\nmine", b"b", b"b\r\n", b""])
async def test_a_new_file_goes_only_if_it_holds_exactly_what_was_written(workspace, project, undo, now):
    await write(workspace, "b.py", "b\n")
    (project / "b.py").write_bytes(now)
    assert "b.py has changed since" in undo(code=1)
    assert (project / "b.py").read_bytes() == now


async def test_a_file_removed_since_stays_so(workspace, project, undo):
    await write(workspace, "a.py", "1\n")
    (project / "a.py").unlink()
    assert "a.py was removed since" in undo(code=1)
    assert not (project / "a.py").exists()


async def test_what_is_back_already_is_passed_with_a_word(workspace, project, undo, journal):
    await write(workspace, "a.py", "1\n")
    await write(workspace, "b.py", "b\n")
    (project / "b.py").unlink()
    said = undo()
    assert said == f"b.py is already as it was before Claude Code changed it {at(journal)}; nothing was written."
    undo()
    assert (project / "a.py").read_bytes() == b"0\n"


async def test_bytes_and_mode_come_back_as_they_were(workspace, project, undo):
    old = {
        "lf": b"a\n",
        "crlf": b"a\r\nb\r\n",
        "mixed": b"a\r\nb\n",
        "latin": b"\xe9\n",
        "binary": b"\0\1",
        "empty": b"",
    }
    for name, data in old.items():
        (project / name).write_bytes(data)
        (project / name).chmod(0o750)
        await write(workspace, name, "x\r\ny\r\n")
    for name, data in old.items():
        undo(name)
        assert (project / name).read_bytes() == data
        assert stat.S_IMODE((project / name).stat().st_mode) == 0o750
        undo("--redo", name)
        assert (project / name).read_bytes() == b"x\r\ny\r\n"


@pytest.mark.parametrize(
    ("old", "kept", "written"),
    [
        (b"0\n", "1\n", b"1\n"),
        (b"0\r\n1\r\n", "2\n3\n", b"2\r\n3\r\n"),
        (b"0\n", "1", b"1\n"),
        (b"0\n", "1\n", b"1"),
        (b"0\n", "1\n\n", b"1\n"),
        (b"\xef\xbb\xbf0\n", "1\n", b"\xef\xbb\xbf1\n"),
        (None, "1\n", b"1\n"),
        (None, "1\n", b"1\r\n"),
    ],
)
async def test_a_kept_diff_is_taken_back_though_the_client_has_its_own_line_ends(
    workspace, project, undo, old, kept, written
):
    file = project / "diff.py"
    if old is not None:
        file.write_bytes(old)
    await workspace.expect(str(file), kept, client="Claude Code")
    file.write_bytes(written)
    undo()
    assert (file.read_bytes() if file.exists() else None) == old
    undo("--redo")
    assert file.read_bytes() == written


@pytest.mark.parametrize("written", [b"1\n\n", b"1 \n", b"1\n2", b"\r\n1\n"])
async def test_a_kept_diff_with_other_differences_has_changed_since(workspace, project, undo, written):
    await workspace.expect(str(project / "a.py"), "1\n")
    (project / "a.py").write_bytes(written)
    assert "a.py has changed since a client wrote to it" in undo(code=1)
    assert (project / "a.py").read_bytes() == written


async def test_a_kept_diff_that_was_never_written_is_nothing_to_take_back(workspace, project, undo):
    await workspace.expect(str(project / "a.py"), "1\n")
    assert undo().startswith("a.py is already as it was before a client changed it")
    assert (project / "a.py").read_bytes() == b"0\n"


async def test_a_change_without_copies_says_why(workspace, project, undo):
    (project / ".env").write_bytes(b"0")
    await workspace.expect(str(project / ".env"), "1", client="Claude Code")
    (project / ".env").write_bytes(b"1")
    assert undo(code=1).endswith("cannot be taken back: the file is not shared, so there is no copy of it.")


async def test_the_list_shows_everything_the_newest_first(workspace, project, undo):
    assert undo("--list") == "No client has changed anything here."
    assert json.loads(undo("--list", "--json")) == {"changes": []}
    await write(workspace, "a.py", "1\n")
    await write(workspace, "sub/b.py", "b\n", client="")
    undo("a.py")
    newest, oldest = undo("--list").splitlines()
    assert newest.endswith("  a client  writeFile  sub/b.py")
    assert oldest.endswith("  Claude Code  writeFile  a.py  (taken back)")
    assert undo("--list", "a.py") == oldest
    (described,) = json.loads(undo("--list", "--json", "a.py"))["changes"]
    assert Path(described.pop("before")).read_bytes() == b"0\n"
    assert Path(described.pop("after")).read_bytes() == b"1\n"
    assert described.pop("when").startswith(oldest[:10])
    assert described == {
        "client": "Claude Code",
        "what": "writeFile",
        "path": str(project / "a.py"),
        "new": False,
        "undone": True,
        "problem": None,
    }


async def test_programs_get_the_sentence_and_the_change(workspace, project, undo):
    await write(workspace, "b.py", "b\n")
    answer = json.loads(undo("--json"))
    assert answer["text"].startswith("Removed b.py")
    assert answer["change"]["path"] == str(project / "b.py")
    assert (answer["change"]["undone"], answer["change"]["before"]) == (True, None)


async def test_names_cannot_command_the_terminal(workspace, project, undo):
    await write(workspace, "a\x1b[31m\n.py", "1\n", client="\x1b]0;x\x07")
    for said in (undo("--list"), undo()):
        assert "a\\x1b[31m\\x0a.py" in said
        assert "\x1b" not in said
        assert "\n" not in said


async def test_a_change_of_another_day_has_its_date(workspace, project, undo, journal):
    await write(workspace, "a.py", "1\n")
    record = os.path.join(journal.folder, "00000001.json")
    with open(record, encoding="utf-8") as file:
        entry = json.load(file)
    with open(record, "w", encoding="utf-8") as file:
        json.dump(entry | {"when": 1_000_000_000.0}, file)
    assert "wrote to a.py on 2001-09-09 at " in undo()


async def test_the_innermost_workspace_is_meant_unless_a_file_says_otherwise(project, undo, monkeypatch):
    (project / "inner" / "deep").mkdir(parents=True)
    outer, inner = in_journal(Workspace(project)), in_journal(Workspace(project / "inner"))
    await write(inner, "b.py", "b\n")
    await write(outer, "inner/c.py", "c\n")
    monkeypatch.chdir(project / "inner" / "deep")
    assert undo("../c.py").startswith("Removed ")
    undo()
    assert not (project / "inner" / "b.py").exists()
    assert "no change in this workspace" in undo(code=1)


async def test_the_running_bridge_says_which_workspace_is_meant(project, undo, monkeypatch):
    inner, other = project / "inner", project.parent / "other"
    inner.mkdir()
    other.mkdir()
    await write(in_journal(Workspace(project)), "inner/c.py", "c\n")
    async with Bridge(Workspace(inner, other)) as bridge, connect_to(bridge) as client:
        monkeypatch.chdir(inner)
        assert "no change in this workspace" in undo(code=1)
        await client.request("writeFile", {"path": str(other / "b.py"), "content": "b\n"})
        monkeypatch.chdir(other)
        assert undo().startswith("Removed b.py")
        assert undo("../project/inner/c.py").startswith("Removed ")


async def test_the_client_is_named(workspace, undo):
    context = Context(workspace, Editor())
    context.client_name = "Some CLI"
    await files.write_file.call(context, files.WriteFile("a.py", "1\n"))
    assert undo().startswith("Took back what Some CLI wrote to a.py")


async def test_a_file_that_changes_in_the_last_moment_is_left_alone(workspace, project):
    place = workspace.locate("a.py")
    for expected in (None, Stamp(0, 0, 0)):
        for data in (None, b"x"):
            assert not undoing._put(workspace.guard, place, expected, data)
    assert (project / "a.py").read_bytes() == b"0\n"


async def test_line_ends_may_make_a_text_longer_than_is_kept(project, journal, workspace):
    journal.limits = Limits(text=8)
    journal.note("c", "diff", workspace.locate("a.py"), b"0\n", b"1\n" * 4)
    (project / "a.py").write_bytes(b"1\r\n" * 4)
    assert take_back(journal, journal.entries()[0]) is Outcome.DONE
    assert (project / "a.py").read_bytes() == b"0\n"


async def test_a_link_that_leads_out_is_not_followed(workspace, project, home, journal):
    await write(workspace, "sub/b.py", "b\n")
    (entry,) = journal.entries()
    outside = home.path / "outside"
    (project / "sub").rename(outside)
    (project / "sub").symlink_to(outside)
    with pytest.raises(PathRefused, match="leaves the workspace"):
        take_back(journal, entry)
    assert (outside / "b.py").read_bytes() == b"b\n"


async def test_outcomes_are_marked_only_when_something_came_of_it(workspace, project, journal):
    await write(workspace, "a.py", "1\n")
    (entry,) = journal.entries()
    (project / "a.py").write_bytes(b"mine")
    assert take_back(journal, entry) is Outcome.CHANGED
    assert journal.entries() == [entry]
    (project / "a.py").write_bytes(b"1\n")
    assert take_back(journal, entry) is Outcome.DONE
    (undone,) = journal.entries()
    assert undone.undone is not None
    assert take_back(journal, undone) is Outcome.ALREADY
    assert make_again(journal, undone) is Outcome.DONE
    assert journal.entries() == [entry]
    os.unlink(journal.copy_of(entry, "after"))
    assert take_back(journal, entry) is Outcome.LOST


async def test_a_journal_in_the_way_is_one_sentence(project, undo, journal):
    os.makedirs(journal.folder, mode=0o700)
    os.chmod(journal.folder, 0o777)
    assert undo(code=1).startswith("ide-bridge: Others may write in ")


async def test_what_a_client_of_a_bridge_writes_can_be_taken_back(project, undo):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        await client.request("writeFile", {"path": "a.py", "content": "1\n"})
        await client.call_tool("writeFile", {"path": "b.py", "content": "b\n"})
        assert undo().startswith("Removed b.py")
        assert undo().startswith("Took back what ")
        assert (project / "a.py").read_bytes() == b"0\n"
        undo("--redo")
        assert await client.request("readFile", {"path": "a.py"}) == "1\n"
    assert undo("a.py").startswith("Took back what ")


def test_the_command_needs_no_bridge_that_runs(home, project):
    def run(*arguments):
        return subprocess.run(
            [*PROGRAM, *arguments], env=home.environment, capture_output=True, encoding="utf-8", timeout=30
        )

    with BridgeProcess(project, home.environment):
        run("call", "writeFile", json.dumps({"path": "a.py", "content": "1\n"}))
    assert (project / "a.py").read_bytes() == b"1\n"
    done = run("undo")
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "a.py").read_bytes() == b"0\n"
    refused = run("undo")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert run("undo", "--list", "--redo").returncode == 2
