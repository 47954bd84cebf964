import asyncio
import os
import subprocess
import threading
from contextlib import AsyncExitStack

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import FileProblem
from ide_bridge.model import OpenFile
from ide_bridge.tools import files, seen
from ide_bridge.tools.registry import Context
from ide_bridge.workspace.workspace import IN_PLACE_LIMIT, Workspace
from tests.fakes.claude_client import Refused, connect_to
from tests.fakes.surroundings import at_home

CHANGED = "failed to write file: The file changed on disk since it was read"
UNSAVED = "failed to write file: It has unsaved changes in the editor; save or discard them first"


class Buffers(Editor):
    """An editor with unsaved texts, and files that are open."""

    name = "Buffers"
    features = frozenset({"dirty"})

    def __init__(self):
        self.unsaved = {}
        self.open = []

    async def open_files(self):
        return [OpenFile(str(path), active=number == 0) for number, path in enumerate(self.open)]

    async def read_buffer(self, path):
        return self.unsaved.get(path)


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
async def client(project):
    async with Bridge(project) as bridge, connect_to(bridge) as client:
        yield client


@pytest.fixture
def editor():
    return Buffers()


@pytest.fixture
async def edited(project, editor):
    """A client of a bridge whose editor has buffers."""
    async with Bridge(project, editor=editor) as bridge, connect_to(bridge) as client:
        yield client


async def refusal(client, method, params):
    with pytest.raises(Refused) as refused:
        await client.request(method, params)
    return refused.value.code, refused.value.message


def write(path, text):
    path.write_text(text, encoding="utf-8")


def read(path):
    return path.read_bytes().decode()


async def test_the_methods_answer_before_initialize(project, client):
    write(project / "a.py", "é𝄞\n")
    assert await client.request("readFile", {"path": "a.py"}) == "é𝄞\n"
    assert await client.request("writeFile", {"path": "new/deep/b.py", "content": "b\n"}) is True
    assert read(project / "new/deep/b.py") == "b\n"
    assert await client.request("getOpenFiles") is not None
    assert await client.request("getWorkspaceInfo", {}) is not None


@pytest.mark.parametrize("path", ["a.py", "/a.py", "./a.py", "{project}/a.py", "sub//../a.py"])
async def test_a_path_may_be_relative_absolute_or_begin_at_the_root(project, client, path):
    write(project / "a.py", "a")
    if ".." in path:
        code, text = await refusal(client, "readFile", {"path": path})
        assert (code, ".." in text) == (-32602, True)
    else:
        assert await client.request("readFile", {"path": path.format(project=project)}) == "a"


@pytest.mark.parametrize("path", ["../x", "a/../b", "/etc/passwd/..", "", "a\0b", "sub/"])
async def test_what_is_no_path_inside_is_refused_as_wrong_parameters(client, path):
    for method, more in (("readFile", {}), ("writeFile", {"content": "x"})):
        code, _ = await refusal(client, method, {"path": path, **more})
        assert code == -32602


async def test_names_that_only_look_dangerous_are_ordinary(project, client):
    for name in ("a..b", "~x", "..."):
        assert await client.request("writeFile", {"path": name, "content": name}) is True
        assert await client.request("readFile", {"path": name}) == name
    assert {entry.name for entry in project.iterdir()} == {"a..b", "~x", "..."}


async def test_links_inside_are_followed_and_links_out_are_refused(home, project, client):
    write(home.path / "secret", "secret")
    write(project / "real", "real")
    (project / "inside").symlink_to("real")
    (project / "outside").symlink_to(home.path / "secret")
    assert await client.request("readFile", {"path": "inside"}) == "real"
    assert (await refusal(client, "readFile", {"path": "outside"}))[0] == -32602
    assert (await refusal(client, "writeFile", {"path": "outside", "content": "x"}))[0] == -32602
    assert read(home.path / "secret") == "secret"


async def test_what_the_file_system_cannot_serve_is_told_in_its_words(project, client):
    (project / "folder").mkdir()
    missing = await refusal(client, "readFile", {"path": "absent"})
    assert missing == (-32603, "failed to read file: File not found")
    assert await refusal(client, "readFile", {"path": "folder"}) == (-32603, "failed to read file: Is a directory")


@pytest.mark.parametrize("params", [None, {}, {"path": 1}, {"path": None}, [1, 2, 3]])
async def test_parameters_that_do_not_fit_are_wrong_parameters(client, params):
    assert (await refusal(client, "readFile", params))[0] == -32602


async def test_what_is_kept_back_says_which_pattern_did_it(project, client):
    write(project / ".env.local", "KEY=1")
    (project / "innocent").symlink_to(".env.local")
    for path in (".env.local", "innocent"):
        assert await refusal(client, "readFile", {"path": path}) == (-32603, "not shared: matches .env*")
        written = await refusal(client, "writeFile", {"path": path, "content": ""})
        assert written == (-32603, "not shared: matches .env*")
    assert read(project / ".env.local") == "KEY=1"


async def test_nothing_of_gits_own_is_written(project, client):
    (project / ".git").mkdir()
    code, text = await refusal(client, "writeFile", {"path": ".git/config", "content": "x"})
    assert (code, text) == (-32602, "nothing under .git is written")
    assert os.listdir(project / ".git") == []


async def test_a_write_keeps_the_mode_and_the_line_ends(project, client):
    (project / "run.bat").write_bytes(b"a\r\nb\r\n")
    (project / "run.bat").chmod(0o750)
    assert await client.request("writeFile", {"path": "run.bat", "content": "c\nd\n"}) is True
    assert (project / "run.bat").read_bytes() == b"c\r\nd\r\n"
    assert (project / "run.bat").stat().st_mode & 0o7777 == 0o750


async def test_a_text_of_any_permitted_size_is_read(project, client):
    for size in (0, IN_PLACE_LIMIT, IN_PLACE_LIMIT + 1, 10 * 1024 * 1024):
        write(project / "big", "x" * size)
        assert await client.request("readFile", {"path": "big"}) == "x" * size
    write(project / "big", "x" * (10 * 1024 * 1024 + 1))
    told = await refusal(client, "readFile", {"path": "big"})
    assert told == (-32603, "failed to read file: File too large (11 MiB, the limit is 10 MiB)")


async def test_the_listing_equals_what_git_lists(project, client):
    for path in ("src/b.js", "src/deep/c.js", "top.js", "a.py", "ignored.log", "kept.log"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        write(project / path, "")
    write(project / ".gitignore", "*.log\n")
    git = ["git", "-C", str(project), "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-f", "kept.log"], check=True)
    listed = subprocess.run([*git, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True)
    assert await client.request("listFiles", {}) == sorted(listed.stdout.decode().split())
    assert "kept.log" in await client.request("listFiles")
    assert await client.request("listFiles", {"pattern": "*.js"}) == ["src/b.js", "src/deep/c.js", "top.js"]
    assert await client.request("listFiles", {"pattern": "src/*.js"}) == ["src/b.js"]
    assert await client.request("listFiles", {"pattern": "src/**"}) == ["src/b.js", "src/deep/c.js"]
    assert await client.request("listFiles", {"pattern": "*.rs"}) == []
    info = await client.request("getWorkspaceInfo")
    assert info == {"name": "project", "path": str(project), "fileCount": 6, "type": "git"}


async def test_a_plain_folder_is_described_as_one_and_further_roots_are_named(home, project):
    other = home.path / "other"
    other.mkdir()
    write(project / "a", "")
    write(other / "b", "there")
    async with Bridge(Workspace(project, other)) as bridge, connect_to(bridge) as client:
        info = await client.request("getWorkspaceInfo")
        assert info == {
            "name": "project",
            "path": str(project),
            "fileCount": 2,
            "type": "folder",
            "folders": [str(project), str(other)],
        }
        assert await client.request("listFiles") == ["a", "other/b"]
        assert await client.request("readFile", {"path": "other/b"}) == "there"


async def test_open_files_are_named_as_the_listing_names_them(project, editor, edited):
    assert await edited.request("getOpenFiles") == []
    assert await edited.request("getCurrentFile") is None
    editor.open = [project / "src" / "é.py", project / "b.py", project.parent / "elsewhere.py"]
    assert await edited.request("getOpenFiles", {}) == ["src/é.py", "b.py"]
    assert await edited.request("getCurrentFile", {}) == "src/é.py"


async def test_an_unsaved_buffer_is_read_and_never_overwritten(project, editor, edited):
    write(project / "a", "on disk")
    editor.unsaved[str(project / "a")] = "on screen"
    assert await edited.request("readFile", {"path": "a"}) == "on screen"
    assert await refusal(edited, "writeFile", {"path": "a", "content": "x"}) == (-32603, UNSAVED)
    assert read(project / "a") == "on disk"
    editor.unsaved.clear()
    assert await edited.request("readFile", {"path": "a"}) == "on disk"
    assert await edited.request("writeFile", {"path": "a", "content": "x"}) is True


async def test_a_buffer_that_is_not_shared_is_not_read_either(project, editor, edited):
    editor.unsaved[str(project / ".env")] = "KEY=1"
    assert await refusal(edited, "readFile", {"path": ".env"}) == (-32603, "not shared: matches .env*")


@pytest.mark.parametrize("size", [1, IN_PLACE_LIMIT + 1])
async def test_a_file_that_changed_since_it_was_read_is_left_alone_until_it_is_read_again(project, client, size):
    write(project / "a", "x" * size)
    await client.request("readFile", {"path": "a"})
    write(project / "a", "somebody's work")
    for _ in range(2):
        assert await refusal(client, "writeFile", {"path": "a", "content": "mine"}) == (-32603, CHANGED)
    assert read(project / "a") == "somebody's work"
    assert await client.request("readFile", {"path": "a"}) == "somebody's work"
    assert await client.request("writeFile", {"path": "a", "content": "mine"}) is True
    assert read(project / "a") == "mine"


async def test_a_client_may_go_on_writing_what_it_wrote_itself(project, client):
    write(project / "a", "1")
    await client.request("readFile", {"path": "a"})
    for text in ("2", "3"):
        assert await client.request("writeFile", {"path": "a", "content": text}) is True
    write(project / "a", "somebody's")
    assert await refusal(client, "writeFile", {"path": "a", "content": "4"}) == (-32603, CHANGED)


async def test_what_was_never_read_is_written_without_question(project, client):
    write(project / "a", "1")
    write(project / "a", "2")
    assert await client.request("writeFile", {"path": "a", "content": "3"}) is True


async def test_each_client_is_held_to_what_it_read_itself(project):
    write(project / "a", "1")
    async with Bridge(project) as bridge, connect_to(bridge) as one, connect_to(bridge) as other:
        await one.request("readFile", {"path": "a"})
        assert await other.request("writeFile", {"path": "a", "content": "2"}) is True
        assert await refusal(one, "writeFile", {"path": "a", "content": "3"}) == (-32603, CHANGED)
        assert await other.request("writeFile", {"path": "a", "content": "4"}) is True


async def test_as_a_tool_the_write_is_held_to_the_same(project, client):
    write(project / "a", "1")
    await client.call_tool("readFile", {"path": "a"})
    write(project / "a", "22")
    answer = await client.call_tool("writeFile", {"path": "a", "content": "3"})
    assert answer == {"content": [{"type": "text", "text": CHANGED}], "isError": True}


async def test_a_file_deleted_since_may_be_made_again_once_the_client_knows(project, client):
    write(project / "a", "1")
    await client.request("readFile", {"path": "a"})
    (project / "a").unlink()
    assert await refusal(client, "writeFile", {"path": "a", "content": "2"}) == (-32603, CHANGED)
    assert (await refusal(client, "readFile", {"path": "a"}))[1] == "failed to read file: File not found"
    assert await client.request("writeFile", {"path": "a", "content": "2"}) is True


async def test_a_read_that_failed_is_not_taken_for_knowledge(project, client):
    write(project / "a", "text")
    await client.request("readFile", {"path": "a"})
    (project / "a").write_bytes(b"\0binary")
    assert (await refusal(client, "readFile", {"path": "a"}))[1] == "failed to read file: Not a text file (binary)"
    assert await refusal(client, "writeFile", {"path": "a", "content": "x"}) == (-32603, CHANGED)


async def test_a_buffer_that_was_saved_since_it_was_read_is_left_alone(project, editor, edited):
    write(project / "a", "on disk")
    editor.unsaved[str(project / "a")] = "half a sentence"
    await edited.request("readFile", {"path": "a"})
    editor.unsaved.clear()
    write(project / "a", "the whole sentence")
    assert await refusal(edited, "writeFile", {"path": "a", "content": "x"}) == (-32603, CHANGED)


async def test_a_link_and_its_target_are_one_file(project, client):
    write(project / "real", "1")
    (project / "link").symlink_to("real")
    for read_as, first, second in (("real", "link", "real"), ("link", "real", "link")):
        await client.request("readFile", {"path": read_as})
        assert await client.request("writeFile", {"path": first, "content": "2"}) is True
        assert await client.request("writeFile", {"path": second, "content": "3"}) is True
    write(project / "real", "somebody's")
    assert await refusal(client, "writeFile", {"path": "link", "content": "4"}) == (-32603, CHANGED)


async def test_writes_sent_at_once_happen_one_after_another(project, client):
    write(project / "a", "0")
    await client.request("readFile", {"path": "a"})
    for number in range(20):
        await client.ask("writeFile", {"path": "a", "content": str(number)})
    answers = [await client.receive() for _ in range(20)]
    assert all(answer.get("result") is True for answer in answers), answers
    assert read(project / "a") == "19"


async def test_a_large_read_that_ends_after_the_clients_own_write_does_not_outdate_it(project):
    opened, written = asyncio.Event(), asyncio.Event()

    class Slow(Workspace):
        async def read_large(self, text):
            opened.set()
            await written.wait()
            return await super().read_large(text)

    context = Context(Slow(project), Editor())
    write(project / "a", "x" * (IN_PLACE_LIMIT + 1))
    reading = asyncio.create_task(files.read_file.call(context, files.ReadFile("a")))
    await opened.wait()
    assert await files.write_file.call(context, files.WriteFile("a", "1"))
    written.set()
    assert len(await reading) == IN_PLACE_LIMIT + 1
    assert await files.write_file.call(context, files.WriteFile("a", "2"))


async def test_only_so_many_files_are_remembered_and_the_newest_are(project):
    context = Context(Workspace(project), Editor())
    context.seen = seen.Seen(limit=2)
    for name in ("a", "b", "c"):
        write(project / name, "1")
        assert files.read_file.call(context, files.ReadFile(name)) == "1"
        write(project / name, "22")
    assert len(context.seen) == 2
    assert await files.write_file.call(context, files.WriteFile("a", "3"))
    assert len(context.seen) == 2
    with pytest.raises(FileProblem, match=CHANGED):
        await files.write_file.call(context, files.WriteFile("c", "3"))


async def test_reading_a_file_again_keeps_it_in_memory(project):
    context = Context(Workspace(project), Editor())
    context.seen = seen.Seen(limit=2)
    for name in ("a", "b", "a", "c"):
        write(project / name, "1")
        files.read_file.call(context, files.ReadFile(name))
    write(project / "a", "22")
    with pytest.raises(FileProblem, match=CHANGED):
        await files.write_file.call(context, files.WriteFile("a", "3"))


async def test_turns_are_forgotten_when_nobody_waits(project):
    memory = seen.Seen()
    place = Workspace(project).locate("a")
    turn = memory.turn(place)
    assert memory.turn(place) is turn
    del turn
    await asyncio.sleep(0)
    assert not memory._turns


async def test_of_clients_that_have_read_the_same_only_one_may_write(project):
    async with Bridge(project) as bridge, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connect_to(bridge)) for _ in range(8)]
        for turn in range(6):
            write(project / "a", f"{turn:06}")
            for client in clients:
                await client.request("readFile", {"path": "a"})
            asked = [
                (client, await client.ask("writeFile", {"path": "a", "content": f"{number:06}"}))
                for number, client in enumerate(clients)
            ]
            answers = await asyncio.gather(
                *(client.answer(number) for client, number in asked), return_exceptions=True
            )
            assert answers.count(True) == 1


async def test_all_clients_take_turns_at_one_file(project):
    write(project / "a", "")
    os.symlink("a", project / "link")
    workspace = Workspace(project)
    one = Context(workspace, Editor())
    other = one.for_another(1).for_another(2)
    turn = one.seen.turn(workspace.locate("a"))
    assert other.seen.turn(workspace.locate("link")) is turn
    assert other.seen is not one.seen


async def test_of_contexts_with_a_hard_linked_file_only_one_may_write(project):
    write(project / "a", "0000")
    os.link(project / "a", project / "b")
    first = Context(Workspace(project), Editor())
    contexts = [first.for_another(number) for number in range(6)]
    for context in contexts:
        assert files.read_file.call(context, files.ReadFile("a")) == "0000"
    writes = [
        files.write_file.call(context, files.WriteFile("a", f"{n:04}")) for n, context in enumerate(contexts)
    ]
    assert (await asyncio.gather(*writes, return_exceptions=True)).count(True) == 1


@pytest.mark.parametrize("times", [1, 3])
async def test_a_write_that_is_cancelled_in_the_middle_is_finished_and_known(project, times):
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Workspace):
        def _write(self, *arguments):
            begun.set()
            assert go_on.wait(10)
            return super()._write(*arguments)

    context = Context(Slow(project), Editor())
    write(project / "a", "0")
    assert files.read_file.call(context, files.ReadFile("a")) == "0"
    writing = asyncio.create_task(files.write_file.call(context, files.WriteFile("a", "1")))
    assert await asyncio.to_thread(begun.wait, 10)
    for _ in range(times):
        writing.cancel()
        await asyncio.sleep(0)
    waiting = asyncio.create_task(files.write_file.call(context, files.WriteFile("a", "never")))
    await asyncio.sleep(0)
    waiting.cancel()
    go_on.set()
    for task in (writing, waiting):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (project / "a").read_text(encoding="utf-8") == "1"
    assert await files.write_file.call(context, files.WriteFile("a", "22"))


async def test_a_cancelled_write_that_fails_is_still_cancelled(project):
    begun, go_on = threading.Event(), threading.Event()

    class Failing(Workspace):
        def _write(self, *_):
            begun.set()
            assert go_on.wait(10)
            raise FileProblem("failed to write file: No")

    context = Context(Failing(project), Editor())
    writing = asyncio.create_task(files.write_file.call(context, files.WriteFile("a", "1")))
    assert await asyncio.to_thread(begun.wait, 10)
    writing.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing


async def test_an_empty_file_is_read(client, project):
    write(project / "a", "")
    assert await client.request("readFile", {"path": "a"}) == ""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="there is no such file system here")
async def test_what_the_system_makes_while_it_is_read_holds_nobody_up():
    context = Context(Workspace("/proc"), Editor())
    reading = files.read_file.call(context, files.ReadFile("self/status"))
    assert (await asyncio.wait_for(reading, 5)).startswith("Name:")


async def test_a_path_that_is_another_at_every_look_is_no_accident(project, monkeypatch):
    """As when a link is put in place of a file between two looks."""

    def moved(path, **_):
        raise OSError(22, "Invalid argument")

    context = Context(Workspace(project), Editor())
    write(project / "a", "0")
    monkeypatch.setattr(os.path, "realpath", moved)
    assert files.read_file.call(context, files.ReadFile("a")) == "0"
    assert await files.write_file.call(context, files.WriteFile("a", "1"))
