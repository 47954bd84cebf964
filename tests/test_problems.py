import asyncio
import time

import pytest

from ide_bridge.editor.interface import Editor
from ide_bridge.errors import Disconnected
from ide_bridge.model import Diagnostic, DiagnosticsChanged
from ide_bridge.tools import problems as module
from ide_bridge.tools.problems import EXPECTED_LIMIT, Known, Problems
from tests.fakes.claude_client import eventually
from tests.fakes.memory_editor import MemoryEditor, span


def problem(path="/w/a", message="wrong"):
    return Diagnostic(path, span(0, 0, 0, 1), "error", message)


class Checker(MemoryEditor):
    """An editor whose checks take as long as the test says."""

    def __init__(self):
        super().__init__()
        self.asked = 0
        self.go = asyncio.Event()
        self.go.set()

    async def diagnostics(self, path):
        self.asked += 1
        await self.go.wait()
        return await super().diagnostics(path)


@pytest.fixture
async def editor():
    return Checker()


@pytest.fixture
async def problems(editor):
    problems = Problems(editor)
    yield problems
    await problems.close()


async def timed(awaitable):
    started = time.monotonic()
    return await awaitable, time.monotonic() - started


def check(editor, problems, path, *found):
    """The editor has checked a file and says so, as the push passes it on."""
    editor.found[path] = list(found)
    problems.changed(DiagnosticsChanged((path,)).paths)


async def test_what_the_editor_says_is_fresh(problems, editor):
    assert await problems.of(None) == Known([], fresh=True)
    editor.found = {"/w/a": [problem()], "/w/b": [problem("/w/b")]}
    assert await problems.of("/w/a") == Known([problem()], fresh=True)
    assert await problems.of(None) == Known([problem(), problem("/w/b")], fresh=True)


async def test_who_has_no_diagnostics_is_not_asked():
    assert await Problems(Editor()).of(None) == Known((), fresh=True)


async def test_a_slow_editor_is_answered_for_with_what_is_known(problems, editor):
    editor.found = {"/w/a": [problem()], "/w/b": [problem("/w/b")]}
    await problems.of(None)
    editor.go.clear()
    for path, expected in [("/w/a", [problem()]), ("/w/c", []), (None, [problem(), problem("/w/b")])]:
        known, took = await timed(problems.of(path))
        assert (list(known.diagnostics), known.fresh) == (expected, False)
        assert took < 0.3
    editor.found = {"/w/a": [problem(message="new")]}
    editor.go.set()
    assert await problems.of("/w/a") == Known([problem(message="new")], fresh=True)


async def test_what_comes_late_is_known_the_next_time(problems, editor):
    editor.go.clear()
    editor.found = {"/w/a": [problem()]}
    assert await problems.of("/w/a") == Known((), fresh=False)
    editor.go.set()
    await eventually(lambda: not problems._asking)
    editor.go.clear()
    assert await problems.of("/w/a") == Known([problem()], fresh=False)


async def test_a_slow_editor_is_asked_once_at_a_time(problems, editor):
    editor.go.clear()
    await asyncio.gather(*(problems.of("/w/a") for _ in range(5)))
    await problems.of("/w/a")
    assert editor.asked == 1


async def test_who_never_answers_is_asked_again_some_time(problems, editor, monkeypatch):
    monkeypatch.setattr(module, "ASK_SECONDS", 0.3)
    editor.go.clear()
    await problems.of("/w/a")
    await eventually(lambda: not problems._asking)
    editor.go.set()
    assert (await problems.of("/w/a")).fresh is True
    assert editor.asked == 2


async def test_an_answer_for_one_file_does_not_touch_the_others(problems, editor):
    editor.found = {"/w/a": [problem()], "/w/b": [problem("/w/b")]}
    await problems.of(None)
    editor.found["/w/a"] = []
    await problems.of("/w/a")
    editor.go.clear()
    assert list((await problems.of(None)).diagnostics) == [problem("/w/b")]


async def test_an_editor_that_tells_more_than_asked_is_not_remembered_twice():
    class Chatty(MemoryEditor):
        async def diagnostics(self, _):
            if self.closed:
                raise Disconnected("gone")
            return [problem(), problem("/w/b")]

    editor = Chatty()
    problems = Problems(editor)
    for _ in range(3):
        await problems.of("/w/a")
    await editor.close()
    assert await problems.of(None) == Known([problem(), problem("/w/b")], fresh=False)


@pytest.mark.parametrize("waits", [True, False])
async def test_an_editor_that_fails_is_answered_for(caplog, waits):
    class Failing(MemoryEditor):
        def diagnostics(self, path):
            if waits:
                return self._fail()
            raise RuntimeError(path)

        async def _fail(self):
            await asyncio.sleep(0)
            raise Disconnected("gone")

    problems = Problems(Failing())
    assert await problems.of("/w/a") == Known((), fresh=False)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# -- after a write -----------------------------------------------------------------------------------------


async def test_a_write_is_told_to_the_editor_and_its_next_word_awaited(problems, editor):
    problems.written("/w/a")
    asking = asyncio.create_task(timed(problems.of(None)))
    await eventually(lambda: editor.reloaded == ["/w/a"])
    await asyncio.sleep(0.2)
    assert (editor.asked, asking.done()) == (0, False)
    check(editor, problems, "/w/a", problem())
    known, took = await asking
    assert known == Known([problem()], fresh=True)
    assert 0.25 < took < 0.6


async def test_checks_in_several_steps_are_awaited_to_the_last(problems, editor):
    problems.written("/w/a")
    asking = asyncio.create_task(problems.of(None))
    for number in range(4):
        await asyncio.sleep(0.06)
        check(editor, problems, "/w/a", problem(message=str(number)))
    assert await asking == Known([problem(message="3")], fresh=True)


async def test_an_editor_that_never_stops_checking_is_cut_off(problems, editor):
    problems.written("/w/a")

    async def chatter():
        while True:
            check(editor, problems, "/w/a", problem())
            await asyncio.sleep(0.02)

    chattering = asyncio.create_task(chatter())
    known, took = await timed(problems.of(None))
    chattering.cancel()
    assert known == Known([problem()], fresh=False)
    assert took < 1.8


async def test_an_editor_that_says_nothing_is_not_waited_for_long(problems):
    problems.written("/w/a")
    known, took = await timed(problems.of(None))
    assert (known, took < 1.1) == (Known([], fresh=False), True)
    assert (await timed(problems.of(None)))[1] < 0.1


async def test_what_was_said_before_the_write_does_not_count(problems, editor):
    problems.expect("/w/a")
    check(editor, problems, "/w/a", problem())
    problems.noticed("/w/a")
    asking = asyncio.create_task(problems.of(None))
    await asyncio.sleep(0.25)
    assert not asking.done()
    check(editor, problems, "/w/a")
    assert await asking == Known([], fresh=True)


async def test_a_write_that_was_expected_and_does_not_come_is_forgotten(problems, editor):
    problems.expect("/w/a")
    known, took = await timed(problems.of(None))
    assert (known.fresh, took < 0.4) == (True, True)
    problems.noticed("/w/a")
    assert (await timed(problems.of(None)))[1] < 0.1
    assert editor.reloaded == []


async def test_a_change_that_nobody_expected_is_the_users_own(problems, editor):
    problems.noticed("/w/a")
    problems.changed(["/w/a"])
    assert (await timed(problems.of(None)))[1] < 0.1
    assert editor.reloaded == []


async def test_asking_about_one_file_does_not_wait_for_writes(problems):
    problems.written("/w/a")
    assert (await timed(problems.of("/w/a")))[1] < 0.1


async def test_many_writes_take_no_longer_than_one(problems, editor):
    for number in range(50):
        problems.written(f"/w/{number}")
    known, took = await timed(problems.of(None))
    assert (known.fresh, took < 1.8) == (False, True)
    assert len(editor.reloaded) == 50


async def test_of_too_many_expected_writes_the_newest_are_remembered(problems, editor):
    for number in range(EXPECTED_LIMIT + 5):
        problems.expect(f"/w/{number}")
    problems.noticed("/w/0")
    problems.noticed(f"/w/{EXPECTED_LIMIT + 4}")
    await eventually(lambda: editor.reloaded)
    assert editor.reloaded == [f"/w/{EXPECTED_LIMIT + 4}"]


async def test_an_editor_that_cannot_be_told_is_no_ones_trouble(caplog):
    class Gone(MemoryEditor):
        def file_changed(self, path):
            raise Disconnected(path)

    problems = Problems(Gone())
    problems.written("/w/a")
    await eventually(lambda: not problems._telling)
    await problems.close()
    assert caplog.records == []


async def test_closing_leaves_no_question_open(editor):
    problems = Problems(editor)
    editor.go.clear()
    await problems.of("/w/a")
    problems.written("/w/b")
    await problems.close()
    assert not problems._asking
    assert not problems._telling
