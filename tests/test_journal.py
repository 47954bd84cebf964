"""The journal and what is noted in it, on real files."""

import os
import stat
import threading

import pytest

from ide_bridge.errors import FileProblem, NotShared, SetupProblem
from ide_bridge.workspace.journal import TOO_LARGE, Journal, Limits, Lost
from ide_bridge.workspace.journalled import JournalledFiles, look
from ide_bridge.workspace.workspace import Workspace


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(project, state):
    workspace = Workspace(project)
    workspace.keep_journal(str(state))
    return workspace


@pytest.fixture
def journal(state):
    return Journal(str(state))


async def write(workspace, path, content, **options):
    return await workspace.write(workspace.locate(path), content, client="Claude Code", **options)


def texts(journal):
    """What is in the journal, the oldest first: file name, text before, text after."""
    return [
        (os.path.basename(entry.path), journal.text(entry, "before"), journal.text(entry, "after"))
        for entry in reversed(journal.entries())
    ]


async def test_a_write_is_noted_with_both_texts(workspace, journal, project):
    (project / "a.py").write_bytes(b"old\n")
    await write(workspace, "a.py", "new\n")
    await write(workspace, "sub/b.py", "b")
    assert texts(journal) == [("a.py", b"old\n", b"new\n"), ("b.py", None, b"b")]
    newest, oldest = journal.entries()
    assert (newest.new, oldest.new) == (True, False)
    assert (oldest.client, oldest.what, oldest.root) == ("Claude Code", "writeFile", str(project))
    assert oldest.path == str(project / "a.py")
    assert oldest.number < newest.number
    assert oldest.when <= newest.when
    assert oldest.undone is None


async def test_everything_is_private(workspace, journal, project):
    (project / "a").write_bytes(b"old")
    before = os.umask(0)
    try:
        await write(workspace, "a", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(journal.folder).st_mode) == 0o700
    modes = {
        name: stat.S_IMODE(os.stat(os.path.join(journal.folder, name)).st_mode)
        for name in os.listdir(journal.folder)
    }
    assert modes == {"00000001.json": 0o600, "00000001.before": 0o600, "00000001.after": 0o600}


async def test_a_workspace_without_a_journal_just_writes(project):
    workspace = Workspace(project)
    await write(workspace, "a", "1")
    await workspace.expect(str(project / "a"), "2")
    assert (project / "a").read_bytes() == b"1"


async def test_what_changes_nothing_and_what_fails_is_not_noted(workspace, journal, project):
    (project / "a").write_bytes(b"same")
    (project / "folder").mkdir()
    stamp = await write(workspace, "a", "same")
    (project / "a").write_bytes(b"somebody's")
    with pytest.raises(FileProblem):
        await write(workspace, "a", "new", expected=stamp)
    with pytest.raises(FileProblem):
        await write(workspace, "folder", "new")
    with pytest.raises(NotShared):
        await write(workspace, ".env", "new")
    assert journal.entries() == []


async def test_the_text_after_is_what_lies_on_the_disk(workspace, journal, project):
    for name, old, new in (
        ("crlf", b"a\r\nb\r\n", "x\ny\n"),
        ("lf", b"a\n", "x\r\n"),
        ("latin", b"\xe9\n", "é\n"),
    ):
        (project / name).write_bytes(old)
        await write(workspace, name, new)
        assert texts(journal)[-1] == (name, old, (project / name).read_bytes())


async def test_a_link_is_noted_where_it_ends_also_in_another_folder(tmp_path, state, journal):
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (two / "real").write_bytes(b"old")
    (one / "link").symlink_to(two / "real")
    workspace = Workspace(one, two)
    workspace.keep_journal(str(state))
    await write(workspace, "link", "new")
    (entry,) = journal.entries()
    assert (entry.root, entry.path) == (str(two), str(two / "real"))
    assert texts(journal) == [("real", b"old", b"new")]


async def test_a_kept_diff_is_noted_before_the_client_writes(workspace, journal, project):
    (project / "a").write_bytes(b"old")
    await workspace.expect(str(project / "a"), "new", client="Claude Code")
    await workspace.expect(str(project / "b"), "made", client="Claude Code")
    assert texts(journal) == [("a", b"old", b"new"), ("b", None, b"made")]
    assert {entry.what for entry in journal.entries()} == {"diff"}
    assert (project / "a").read_bytes() == b"old"


async def test_a_kept_diff_elsewhere_is_none_of_our_business(workspace, journal, project, tmp_path):
    (project / "out").symlink_to(tmp_path)
    for path in (tmp_path / "x", project / "out" / "x", project, tmp_path / "project-2" / "x"):
        await workspace.expect(str(path), "new")
    assert journal.entries() == []


async def test_of_a_file_that_is_not_shared_there_is_no_copy(workspace, journal, project):
    (project / ".env").write_bytes(b"SECRET")
    await workspace.expect(str(project / ".env"), "SECRET2")
    (entry,) = journal.entries()
    assert entry.lost == "the file is not shared, so there is no copy of it"
    assert os.listdir(journal.folder) == ["00000001.json"]


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may read everything")
async def test_a_file_that_cannot_be_read_is_written_all_the_same(workspace, journal, project):
    (project / "a").write_bytes(b"old")
    (project / "a").chmod(0o200)
    await write(workspace, "a", "new")
    (entry,) = journal.entries()
    assert entry.lost == "the file could not be read, so there is no copy of it"


@pytest.mark.parametrize(
    ("old", "new"), [(b"x" * 11, "y"), (b"x", "y" * 11), (b"x" * 11, "y" * 11), (b"", "é" * 6)]
)
def test_a_large_text_is_noted_without_copies(workspace, project, state, old, new):
    journal = Journal(str(state), Limits(text=10))
    (project / "a").write_bytes(old)
    journalled = JournalledFiles(workspace.guard, workspace.files, journal)
    journalled.write(workspace.locate("a"), new, expected=None, client="c")
    (entry,) = journal.entries()
    assert entry.lost == TOO_LARGE
    assert journal.text(entry, "before") == journal.text(entry, "after") == Lost(TOO_LARGE)
    assert os.listdir(journal.folder) == ["00000001.json"]
    assert (project / "a").read_bytes() == new.encode()


def test_looking_goes_up_to_the_limit_and_no_further(workspace, project):
    (project / "a").write_bytes(b"x" * 10)
    place = workspace.locate("a")
    assert look(workspace.guard, place, 10).data == b"x" * 10
    assert look(workspace.guard, place, 9).data == Lost(TOO_LARGE)
    assert look(workspace.guard, workspace.locate("b"), 9) == (None, None)


def note(journal, workspace, name, before, after):
    journal.note("c", "writeFile", workspace.locate(name), before, after)


def test_the_oldest_go_first_when_there_are_too_many(workspace, state):
    journal = Journal(str(state), Limits(changes=3))
    for number in range(5):
        note(journal, workspace, f"f{number}", None, b"x")
    assert [name for name, _, _ in texts(journal)] == ["f2", "f3", "f4"]
    assert len(os.listdir(journal.folder)) == 6
    again = Journal(str(state), Limits(changes=3))
    note(again, workspace, "f5", None, b"x")
    assert [name for name, _, _ in texts(again)] == ["f3", "f4", "f5"]
    assert [entry.number for entry in again.entries()] == [6, 5, 4]


def test_the_oldest_go_first_when_they_take_too_much_room(workspace, state):
    journal = Journal(str(state), Limits(total=100))
    for number in range(5):
        note(journal, workspace, f"f{number}", b"x" * 20, b"y" * 20)
    assert [name for name, _, _ in texts(journal)] == ["f3", "f4"]
    note(journal, workspace, "huge", b"x" * 100, b"y" * 100)
    assert [name for name, _, _ in texts(journal)] == ["huge"]
    note(journal, workspace, "small", b"1", b"2")
    assert [name for name, _, _ in texts(journal)] == ["small"]


def test_what_a_crash_left_behind_goes_with_the_oldest(workspace, state):
    journal = Journal(str(state))
    note(journal, workspace, "f1", None, b"x")
    for name in ("00000002.before", "00000002.json.new"):
        (state / "journal" / name).write_bytes(b"torn")
    (state / "journal" / "00000003.json").write_bytes(b'{"torn')
    (state / "journal" / "00000004.json").write_bytes(b"[]")
    (state / "journal" / "notes.json").write_bytes(b"{}")
    again = Journal(str(state), Limits(changes=1))
    assert [name for name, _, _ in texts(again)] == ["f1"]
    note(again, workspace, "f5", None, b"x")
    assert sorted(os.listdir(again.folder)) == ["00000005.after", "00000005.json", "notes.json"]


def test_a_journal_that_cannot_be_written_warns_once_and_fails_nobody(workspace, state, caplog):
    (state / "journal").write_bytes(b"in the way")
    journal = Journal(str(state))
    for name in ("a", "b"):
        note(journal, workspace, name, None, b"x")
    (warning,) = caplog.messages
    assert warning.startswith("What clients change cannot be taken back: the journal ")
    (state / "journal").unlink()
    note(journal, workspace, "c", None, b"x")
    assert texts(journal) == [("c", None, b"x")]


async def test_a_write_succeeds_without_a_journal_to_write_to(workspace, project, state, caplog):
    (state / "journal").write_bytes(b"in the way")
    await write(workspace, "a", "new")
    assert (project / "a").read_bytes() == b"new"
    assert len(caplog.messages) == 1


def test_a_change_that_cannot_be_noted_whole_leaves_nothing(workspace, state, caplog):
    journal = Journal(str(state))
    note(journal, workspace, "a", None, b"x")
    (state / "journal" / "00000002.json.new").mkdir()
    note(journal, workspace, "b", b"1", b"2")
    assert [name for name, _, _ in texts(journal)] == ["a"]
    assert sorted(os.listdir(journal.folder)) == ["00000001.after", "00000001.json", "00000002.json.new"]
    assert len(caplog.messages) == 1


@pytest.mark.skipif(os.name != "posix", reason="there are no such modes")
def test_a_journal_that_others_may_write_is_not_believed(workspace, journal):
    note(journal, workspace, "a", None, b"x")
    os.chmod(journal.folder, 0o777)
    with pytest.raises(SetupProblem, match="Others may write"):
        journal.entries()


def test_names_that_are_not_unicode_can_be_noted(journal, project):
    odd = project / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    workspace = Workspace(odd)
    note(journal, workspace, "a", None, b"x")
    (entry,) = journal.entries()
    assert entry.path == str(odd / "a")


def test_marks_are_kept_with_the_change(workspace, journal, state):
    note(journal, workspace, "a", None, b"x")
    (entry,) = journal.entries()
    journal.mark(entry, undone=True)
    (marked,) = Journal(str(state)).entries()
    assert marked.undone is not None
    assert marked.undone >= entry.when
    journal.mark(marked, undone=False)
    assert journal.entries() == [entry]


def test_a_text_that_has_gone_meanwhile_is_lost(workspace, journal):
    note(journal, workspace, "a", b"1", b"2")
    (entry,) = journal.entries()
    os.unlink(journal.copy_of(entry, "before"))
    assert isinstance(journal.text(entry, "before"), Lost)
    assert journal.text(entry, "after") == b"2"


async def test_writes_of_one_file_at_once_each_find_what_the_one_before_left(workspace, journal, project):
    (project / "a").write_bytes(b"start")
    place = workspace.locate("a")

    def write_some(number):
        for turn in range(5):
            workspace._write(place, f"{number}-{turn}", None, "c")

    threads = [threading.Thread(target=write_some, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chain = texts(journal)
    assert len(chain) == 20
    befores = [before for _, before, _ in chain]
    afters = [after for _, _, after in chain]
    assert befores == [b"start", *afters[:-1]]
    assert afters[-1] == (project / "a").read_bytes()
