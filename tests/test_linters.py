"""Linters that run: real commands in real folders, with a real listing that tells what changes."""

import asyncio
import logging
import os
import sys
import sysconfig
import time
from inspect import isawaitable
from pathlib import Path

import pytest

from ide_bridge.editor import linters as room
from ide_bridge.editor.lint_process import run_process
from ide_bridge.editor.linters import Linters
from ide_bridge.model import Position
from ide_bridge.settings import Linter
from ide_bridge.workspace.listing import Change, Listing

PATIENCE = 10
TOOLS = Path(sysconfig.get_path("scripts"))

# Finds every line with "bad" in it, notes when it starts and ends, and takes as long as it is told.
SCRIPT = """\
import os, sys, time
log, pause, *files = sys.argv[1:]
def note(what):
    with open(log, "a", encoding="utf-8") as file:
        file.write(what + "\\n")
note("start " + " ".join(files))
time.sleep(float(pause))
for file in files or sorted(os.listdir(".")):
    with open(file, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            if "bad" in line:
                print(f"{file}:{number}:{line.index('bad') + 1}: warning: {line.strip()} [B1]")
note("end " + " ".join(files))
"""


class Stage:
    """A folder, its listing, and linters over it."""

    def __init__(self, folder, *more):
        self.folder = folder
        self.log = folder.parent / "runs"
        self.script = folder.parent / "lint.py"
        self.script.write_text(SCRIPT, encoding="utf-8")
        self.folders = [str(folder), *map(str, more)]
        self.listing = Listing(self.folders)
        self.events = []
        self.linters = None

    def use(self, *linters):
        self.linters = Linters(linters, self.folders, self.listing, self.events.append)
        return self.linters

    def linter(self, *words, pause=0.0, glob="*.txt", seconds=30.0):
        return Linter(glob, (sys.executable, str(self.script), str(self.log), str(pause), *words), seconds)

    def write(self, name, text, *, kind="changed"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.linters.see(Change(str(path), kind))
        return str(path)

    def delete(self, name):
        (self.folder / name).unlink()
        self.linters.see(Change(str(self.folder / name), "deleted"))

    async def ask(self, path=None):
        answer = self.linters.diagnostics(path)
        return await answer if isawaitable(answer) else answer

    async def messages(self, path=None):
        return [found.message for found in await self.ask(path)]

    def runs(self, what="start"):
        if not self.log.exists():
            return []
        return [line for line in self.log.read_text(encoding="utf-8").splitlines() if line.startswith(what)]

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)

    async def idle(self):
        await self.until(lambda: not self.linters._jobs)


@pytest.fixture
async def stage(tmp_path):
    (tmp_path / "project").mkdir()
    stage = Stage(tmp_path / "project")
    yield stage
    if stage.linters is not None:
        await stage.linters.close()
    await stage.listing.close()


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.WARNING, room.__name__)
    return lambda: [record.getMessage() for record in caplog.records]


async def test_a_changed_file_is_linted_in_the_background(stage):
    stage.use(stage.linter("{file}"))
    path = stage.write("a.txt", "good\nso bad\n")
    assert stage.runs() == []
    await stage.until(lambda: stage.events)
    assert stage.events == [(path,)]
    (found,) = await stage.ask(path)
    assert (found.path, found.severity, found.message, found.code) == (path, "warning", "so bad", "B1")
    assert found.range.start == Position(1, 3)
    assert found.source == Path(sys.executable).name
    assert await stage.ask() == [found]
    assert stage.runs() == [f"start {path}"]


async def test_what_is_found_replaces_what_was_found_before(stage):
    stage.use(stage.linter("{file}"))
    path = stage.write("a.txt", "bad 1\nbad 2\n")
    other = stage.write("b.txt", "bad 3\n")
    await stage.idle()
    stage.write("a.txt", "bad 4\n")
    await stage.idle()
    assert await stage.messages(path) == ["bad 4"]
    stage.write("a.txt", "good\n")
    await stage.idle()
    assert await stage.messages(path) == []
    assert await stage.messages() == await stage.messages(other) == ["bad 3"]
    assert stage.events[-1] == (path,)


async def test_two_linters_of_a_file_keep_to_themselves(stage):
    stage.use(stage.linter("{file}"), stage.linter("{file}", pause=0.01, glob="/a.*"))
    path = stage.write("a.txt", "bad\n")
    await stage.idle()
    assert await stage.messages(path) == ["bad", "bad"]
    assert await stage.messages() == ["bad", "bad"]


async def test_changes_in_a_row_are_one_run_after_the_last(stage, monkeypatch):
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.4)
    stage.use(stage.linter("{file}"))
    for number in range(8):
        path = stage.write("a.txt", f"bad {number}\n")
        await asyncio.sleep(0.1)
    assert stage.runs() == []
    await stage.idle()
    assert stage.runs() == [f"start {path}"]
    assert await stage.messages(path) == ["bad 7"]


async def test_a_change_during_a_run_means_another_run_and_never_two_at_once(stage):
    stage.use(stage.linter("{file}", pause=0.4))
    path = stage.write("a.txt", "bad 1\n")
    await stage.until(stage.runs)
    stage.write("a.txt", "bad 2\n")
    stage.write("a.txt", "bad 3\n")
    await stage.idle()
    assert await stage.messages(path) == ["bad 3"]
    assert stage.log.read_text(encoding="utf-8").splitlines() == [f"start {path}", f"end {path}"] * 2


async def test_only_two_run_together(stage):
    stage.use(stage.linter("{file}", pause=0.15))
    for number in range(5):
        stage.write(f"{number}.txt", "bad\n")
    running = 0
    await stage.idle()
    for line in stage.log.read_text(encoding="utf-8").splitlines():
        running += 1 if line.startswith("start") else -1
        assert running <= 2
    assert len(await stage.ask()) == 5


async def test_the_first_question_about_a_file_has_it_linted_and_waits_for_that(stage):
    stage.use(Linter("*.py", (str(TOOLS / "ruff"), "check", "--isolated", "--output-format", "json", "{file}")))
    (stage.folder / "a.py").write_text("import os\n", encoding="utf-8")
    path = str(stage.folder / "a.py")
    await stage.ask(path)
    await stage.idle()
    (found,) = await stage.ask(path)
    assert (found.source, found.code, found.severity) == ("ruff", "F401", "error")
    assert not isawaitable(stage.linters.diagnostics(path))


async def test_a_question_waits_only_so_long_and_the_answer_comes_as_an_event(stage):
    stage.use(stage.linter("{file}", pause=0.6))
    (stage.folder / "a.txt").write_text("bad\n", encoding="utf-8")
    path = str(stage.folder / "a.txt")
    began = time.monotonic()
    assert await stage.ask(path) == []
    assert 0.15 < time.monotonic() - began < 0.5
    assert await stage.ask(path) == []
    await stage.until(lambda: stage.events)
    assert stage.events == [(path,)]
    assert await stage.messages(path) == ["bad"]
    assert len(stage.runs()) == 1


async def test_who_asks_or_has_written_need_not_wait_for_quiet(stage, monkeypatch):
    monkeypatch.setattr(room, "QUIET_SECONDS", 60)
    monkeypatch.setattr(room, "ANSWER_SECONDS", 60)
    stage.use(stage.linter("{file}"))
    path = stage.write("a.txt", "bad 1\n")
    async with asyncio.timeout(PATIENCE):
        assert await stage.messages(path) == ["bad 1"]
    stage.write("a.txt", "bad 2\n")
    async with asyncio.timeout(PATIENCE):
        assert await stage.messages() == ["bad 2"]
    stage.write("a.txt", "bad 3\n")
    stage.linters.hurry(path)
    await stage.idle()
    assert await stage.messages(path) == ["bad 3"]
    stage.linters.hurry(path)
    assert len(stage.runs()) == 3


async def test_a_command_without_a_file_covers_the_whole_root(stage):
    stage.use(stage.linter())
    (stage.folder / "b.txt").write_text("bad b\n", encoding="utf-8")
    path = stage.write("a.txt", "bad a\n")
    await stage.idle()
    assert await stage.messages() == ["bad a", "bad b"]
    assert stage.events == [(path, str(stage.folder / "b.txt"))]
    stage.write("a.txt", "good\n")
    (stage.folder / "b.txt").write_text("bad c\n", encoding="utf-8")
    await stage.idle()
    assert await stage.messages() == ["bad c"]
    assert stage.runs() == ["start ", "start "]


async def test_a_whole_root_is_linted_when_all_is_asked_for_but_not_one_without_such_files(stage, monkeypatch):
    monkeypatch.setattr(room, "ANSWER_SECONDS", 60)
    stage.use(stage.linter())
    assert await stage.ask() == []
    assert stage.runs() == []
    (stage.folder / "a.txt").write_text("bad\n", encoding="utf-8")
    assert await stage.messages() == ["bad"]
    assert await stage.messages() == ["bad"]
    assert stage.runs() == ["start "]


async def test_a_linter_runs_in_the_root_the_file_lies_in_and_may_name_files_in_any_way(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "a.txt").write_text("", encoding="utf-8")
    stage = Stage(first, second)
    program = "import os; print('a.txt:1: x'); print('./a.txt:2: x'); print(os.path.abspath('a.txt') + ':3: x')"
    elsewhere = "; print('../first/a.txt:4: x'); print('/etc/passwd:5: x'); print('b.txt:6: x')"
    stage.use(Linter("*.txt", (sys.executable, "-c", program + elsewhere)))
    try:
        stage.linters.see(Change(str(second / "a.txt"), "changed"))
        await stage.idle()
        found = [(each.path, each.range.start.line) for each in stage.linters._known(None)]
        assert found == [(str(second / "a.txt"), line) for line in range(3)]
    finally:
        await stage.linters.close()
        await stage.listing.close()


async def test_only_what_is_listed_counts(stage):
    (stage.folder / ".gitignore").write_text("hidden.txt\n", encoding="utf-8")
    (stage.folder / "hidden.txt").write_text("bad\n", encoding="utf-8")
    (stage.folder / "seen.txt").write_text("bad\n", encoding="utf-8")
    stage.use(stage.linter("{file}"), stage.linter())
    for name in ("hidden.txt", "seen.txt", "missing.txt", "../outside.txt"):
        await stage.ask(os.path.normpath(stage.folder / name))
    await stage.idle()
    assert {found.path for found in await stage.ask()} == {str(stage.folder / "seen.txt")}
    assert stage.runs("start /") == [f"start {stage.folder / 'seen.txt'}"]


async def test_a_run_for_one_file_says_nothing_of_others(stage):
    program = "import sys; print(sys.argv[1] + ':1: mine'); print('other.txt:1: not mine')"
    stage.use(Linter("*.txt", (sys.executable, "-c", program, "{file}")))
    (stage.folder / "other.txt").write_text("", encoding="utf-8")
    stage.write("a.txt", "")
    await stage.idle()
    assert await stage.messages() == ["mine"]


async def test_a_file_that_is_a_link_may_be_named_by_where_it_leads(stage):
    program = "import os, sys; print(os.path.realpath(sys.argv[1]) + ':1: x')"
    stage.use(Linter("*.txt", (sys.executable, "-c", program, "{file}")))
    (stage.folder / "real").write_text("", encoding="utf-8")
    (stage.folder / "link.txt").symlink_to("real")
    stage.linters.see(Change(str(stage.folder / "link.txt"), "created"))
    await stage.idle()
    assert [found.path for found in await stage.ask()] == [str(stage.folder / "link.txt")]


async def test_a_deleted_file_loses_its_problems_also_when_it_goes_during_a_run(stage):
    stage.use(stage.linter("{file}", pause=0.2))
    path = stage.write("a.txt", "bad\n")
    await stage.idle()
    stage.delete("a.txt")
    assert stage.events[-1] == (path,)
    assert await stage.ask() == []
    assert await stage.ask(path) == []
    stage.write("b.txt", "bad\n")
    await stage.until(lambda: len(stage.runs()) == 2)
    stage.delete("b.txt")
    await stage.idle()
    assert await stage.ask() == []
    path = stage.write("a.txt", "bad again\n", kind="created")
    await stage.idle()
    assert await stage.messages(path) == ["bad again"]


async def test_a_file_that_no_linter_means_is_told_at_once(stage):
    stage.use(stage.linter("{file}"))
    path = stage.write("a.md", "bad\n")
    assert stage.events == [(path,)]
    assert stage.linters.diagnostics(path) == []
    assert stage.linters.diagnostics("/elsewhere/a.txt") == []
    assert stage.runs() == []


async def test_of_too_many_files_the_oldest_are_given_up(stage, monkeypatch):
    monkeypatch.setattr(room, "WAITING_LIMIT", 3)
    stage.use(stage.linter("{file}", pause=0.1))
    path = stage.write("0.txt", "bad\n")
    await stage.idle()
    for number in range(9):
        stage.write(f"{number}.txt", "bad\n")
        if number == 4:
            await stage.until(lambda: len(stage.runs()) == 3)  # two have begun, and one waits for its turn
    await stage.idle()
    names = sorted(os.path.basename(found.path) for found in await stage.ask())
    assert names[-3:] == ["6.txt", "7.txt", "8.txt"]
    assert len(names) <= 5
    assert (path,) in stage.events[1:]
    await stage.ask(path)
    await stage.idle()
    assert await stage.messages(path) == ["bad"]


async def test_a_missing_command_is_told_once(stage, told):
    stage.use(Linter("*.txt", ("no-such-linter", "{file}")))
    for number in range(3):
        path = stage.write("a.txt", str(number))
        await stage.idle()
    (sentence,) = told()
    assert sentence.startswith(
        "The linter no-such-linter cannot be started (No such file or directory); install it"
    )
    assert stage.events == [(path,)] * 3
    assert await stage.ask(path) == []


async def test_a_command_that_fails_is_told_once_for_each_way_and_what_was_known_stays(stage, told):
    program = "import sys; exec(open(sys.argv[1], encoding='utf-8').read())"
    stage.use(Linter("*.txt", (sys.executable, "-c", program, "{file}")))
    path = stage.write("a.txt", "print('a.txt:1: x')")
    await stage.idle()
    for code in (3, 3, 4, 3):
        stage.write("a.txt", f"print('\\n\\x07no such option', file=sys.stderr); sys.exit({code})")
        await stage.idle()
        assert await stage.messages(path) == ["x"]
    name = Path(sys.executable).name
    assert told() == [
        f"The linter {name} failed with exit code 3 and said: ?no such option",
        f"The linter {name} failed with exit code 4 and said: ?no such option",
    ]
    stage.write("a.txt", "print('a.txt:1: y'); sys.exit(1)")
    await stage.idle()
    assert await stage.messages(path) == ["y"]
    assert len(told()) == 2


@pytest.mark.parametrize(
    ("linter", "sentence"),
    [
        (Linter("*.txt", ("false",)), "The linter false failed with exit code 1 and said nothing."),
        (
            Linter("*.txt", ("a\0b",)),
            "The linter a\0b cannot be started (embedded null byte); install it, or correct its command.",
        ),
        (Linter("x" * 2000, ("true",)), "The linter true has a glob that is too long; shorten it."),
        (Linter("*.txt", ("/etc/passwd",)), "The linter passwd cannot be started (Permission denied); "),
    ],
)
async def test_whatever_is_wrong_is_one_sentence(stage, told, linter, sentence):
    stage.use(linter)
    stage.write("a.txt", "")
    await stage.idle()
    assert len(told()) == 1
    assert told()[0].startswith(sentence)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


# Starts a child that would outlive it, and waits.
FAMILY = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with open(sys.argv[1] + ".new", "w", encoding="utf-8") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
print("a.txt:1: x", flush=True)
time.sleep(60)
"""


async def pids_of(stage, told_in):
    await stage.until(told_in.exists)
    return [int(pid) for pid in told_in.read_text(encoding="utf-8").split()]


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(stage, told, tmp_path):
    stage.use(Linter("*.txt", (sys.executable, "-c", FAMILY, str(tmp_path / "pids"), "{file}"), 1.0))
    path = stage.write("a.txt", "")
    pids = await pids_of(stage, tmp_path / "pids")
    assert all(map(is_running, pids))
    await stage.idle()
    await stage.until(lambda: not any(map(is_running, pids)))
    assert told() == [f"The linter {Path(sys.executable).name} was ended after 1 s; give it more seconds."]
    assert await stage.ask(path) == []
    assert stage.events == [(path,)]


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
async def test_closing_ends_what_runs_and_what_waits(stage, told, tmp_path):
    stage.use(Linter("*.txt", (sys.executable, "-c", FAMILY, str(tmp_path / "pids"), "{file}")))
    stage.write("a.txt", "")
    pids = await pids_of(stage, tmp_path / "pids")
    stage.write("b.txt", "")
    asking = asyncio.create_task(stage.ask())
    await asyncio.sleep(0)
    await stage.linters.close()
    await stage.until(lambda: not any(map(is_running, pids)))
    assert await asking == []
    assert not stage.linters._jobs
    assert told() == []


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
async def test_a_run_that_is_given_up_while_it_starts_leaves_nothing_behind(stage, told, tmp_path):
    command = [sys.executable, "-c", FAMILY, str(tmp_path / "pids")]
    run = asyncio.create_task(run_process(command, str(tmp_path), 60))
    for _ in range(3):
        await asyncio.sleep(0)
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "pids").exists() and time.monotonic() < deadline:
        time.sleep(0.01)  # the loop stands still, so that it does not learn that the process has started
    pids = await pids_of(stage, tmp_path / "pids")
    run.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(run, return_exceptions=True)
    assert run.cancelled()
    await stage.until(lambda: not any(map(is_running, pids)))
    assert told() == []


async def test_what_is_given_up_before_it_begins_is_done_and_can_begin_again(stage):
    stage.use(stage.linter("{file}"))
    path = stage.write("a.txt", "bad\n")
    stage.linters.hurry(path)
    stage.delete("a.txt")
    await stage.idle()
    assert stage.runs() == []
    stage.write("a.txt", "bad\n")
    stage.linters.hurry(path)
    stage.delete("a.txt")
    stage.write("a.txt", "bad again\n", kind="created")
    stage.linters.hurry(path)
    await stage.idle()
    assert await stage.messages(path) == ["bad again"]


async def test_what_flees_from_its_group_does_not_hold_us_up(stage, told):
    program = "import subprocess; subprocess.Popen(['sleep', '3'], start_new_session=True); print('a.txt:1: x')"
    stage.use(Linter("*.txt", (sys.executable, "-c", program), 0.5))
    stage.write("a.txt", "")
    began = time.monotonic()
    await stage.idle()
    assert time.monotonic() - began < 2.5
    assert len(told()) == 1


async def test_a_command_that_says_too_much_is_ended_and_what_it_said_first_counts(stage, told):
    program = "while True: print('a.txt:1: ' + 'x' * 1000)"
    stage.use(Linter("*.txt", (sys.executable, "-c", program)))
    path = stage.write("a.txt", "")
    await stage.idle()
    found = await stage.ask(path)
    assert 1000 < len(found) < 1100
    assert told() == [
        f"The linter {Path(sys.executable).name} said more than 1 MiB and was ended; make it say less."
    ]


async def test_a_command_has_no_input_no_shell_and_our_surroundings(stage, monkeypatch):
    monkeypatch.setenv("LINT_TEST", "ours")
    program = (
        "import os, sys; print(f'{sys.argv[1]}:1: {sys.stdin.read()!r} {sys.argv[2]} {os.environ[\"LINT_TEST\"]}')"
    )
    stage.use(Linter("*.txt", (sys.executable, "-c", program, "{file}", "$HOME;*{file}")))
    path = stage.write("-a $(b).txt", "")
    await stage.idle()
    assert await stage.messages(path) == [f"'' $HOME;*{path} ours"]


async def test_what_compilers_say_on_the_second_stream_counts(stage):
    program = "import sys; print('a.txt:1:2: error: x', file=sys.stderr); sys.exit(1)"
    stage.use(Linter("*.txt", (sys.executable, "-c", program)))
    path = stage.write("a.txt", "")
    await stage.idle()
    assert await stage.messages(path) == ["x"]


async def test_mypy_as_a_module(stage):
    command = (sys.executable, "-m", "mypy", "-O", "json", "--cache-dir", os.devnull, "{file}")
    stage.use(Linter("*.py", command))
    path = stage.write("a.py", "x: int = 'é'\n")
    await stage.idle()
    (found,) = await stage.ask(path)
    assert (found.source, found.code, found.severity) == ("mypy", "assignment", "error")
    assert found.range.start == Position(0, 9)


async def test_a_real_change_of_a_watched_folder_reaches_the_linters(stage):
    stage.use(stage.linter("{file}"))
    stage.listing.subscribe(stage.linters.see)
    await stage.listing.start()
    (stage.folder / "a.txt").write_text("bad\n", encoding="utf-8")
    await stage.until(lambda: stage.linters._known(None))
    (stage.folder / "a.txt").unlink()
    await stage.until(lambda: not stage.linters._known(None))
