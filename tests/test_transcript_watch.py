"""Following transcripts: what is written is seen at once, wherever it appears, and everything ends."""

import asyncio
import shutil
import threading
from contextlib import aclosing
from pathlib import Path

import pytest

from ide_bridge.session.transcript import News, Transcript
from ide_bridge.session.transcript.watch import Watcher, follow
from tests.transcripts import Writer, texts

PATIENCE = 10.0


@pytest.fixture
async def watcher():
    made = Watcher()
    yield made
    made.close()
    assert not [thread for thread in threading.enumerate() if "inotify" in thread.name.lower()]


class Follower:
    """Collects what is told of one transcript."""

    def __init__(self, path: Path, watcher: Watcher) -> None:
        self.transcript = Transcript(str(path))
        self.told: list[News] = []
        self._heard = asyncio.Event()
        self.task = asyncio.create_task(self._follow(watcher))

    async def _follow(self, watcher: Watcher) -> None:
        async with aclosing(follow(self.transcript, watcher)) as news:
            async for each in news:
                self.told.append(each)
                self._heard.set()

    @property
    def texts(self) -> list[str]:
        return [text for news in self.told for text in texts(news.shown)]

    async def hears(self, *expected: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.texts[-len(expected) :] != list(expected):
                self._heard.clear()
                await self._heard.wait()


async def settled() -> None:
    """Lets tasks that were just made come to where they wait."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_is_appended_is_told(tmp_path, watcher):
    writer = Writer(tmp_path / "a.jsonl")
    writer.prompt("before")
    follower = Follower(writer.path, watcher)
    await follower.hears("before")
    for number in range(5):
        writer.prompt(f"{number}")
        await follower.hears(f"{number}")
    assert follower.texts == ["before", "0", "1", "2", "3", "4"]
    follower.task.cancel()


async def test_one_who_has_a_page_is_told_of_what_comes_after_it(tmp_path, watcher):
    writer = Writer(tmp_path / "a.jsonl")
    writer.prompt("on the page")
    transcript = Transcript(str(writer.path))
    transcript.page()
    writer.said("in between")
    async with aclosing(follow(transcript, watcher)) as news, asyncio.timeout(PATIENCE):
        assert texts((await anext(news)).shown) == ["in between"]
        writer.said("after")
        assert texts((await anext(news)).shown) == ["after"]


async def test_a_file_is_followed_before_it_or_its_folders_are_there(tmp_path, watcher):
    writer = Writer(tmp_path / "projects" / "slug" / "a.jsonl")
    other = Writer(tmp_path / "projects" / "other" / "b.jsonl")
    follower, second = Follower(writer.path, watcher), Follower(other.path, watcher)
    await settled()
    writer.path.parent.mkdir(parents=True)
    writer.prompt("first")
    await follower.hears("first")
    other.path.parent.mkdir()
    other.prompt("other")
    await second.hears("other")
    writer.prompt("second")
    await follower.hears("second")
    for each in (follower, second):
        each.task.cancel()


async def test_many_are_followed_each_by_itself(tmp_path, watcher):
    writers = [Writer(tmp_path / f"{number % 3}" / f"{number}.jsonl") for number in range(30)]
    for writer in writers:
        writer.path.parent.mkdir(exist_ok=True)
    followers = [Follower(writer.path, watcher) for writer in writers]
    await settled()
    for number, writer in enumerate(writers):
        writer.prompt(f"only {number}")
    for number, follower in enumerate(followers):
        await follower.hears(f"only {number}")
        assert follower.texts == [f"only {number}"]
        follower.task.cancel()


async def test_two_may_follow_one_file_and_one_may_leave(tmp_path, watcher):
    writer = Writer(tmp_path / "a.jsonl")
    one, two = Follower(writer.path, watcher), Follower(writer.path, watcher)
    await settled()
    writer.prompt("both")
    await one.hears("both")
    await two.hears("both")
    one.task.cancel()
    await asyncio.wait([one.task], timeout=PATIENCE)
    writer.prompt("only two")
    await two.hears("only two")
    assert one.texts == ["both"]
    two.task.cancel()


async def test_a_folder_that_vanishes_and_comes_back_is_followed_on(tmp_path, watcher):
    writer = Writer(tmp_path / "projects" / "slug" / "a.jsonl")
    writer.path.parent.mkdir(parents=True)
    writer.prompt("old")
    follower = Follower(writer.path, watcher)
    await follower.hears("old")
    for gone in (writer.path.parent, writer.path.parent.parent):
        shutil.rmtree(gone)
        writer.path.parent.mkdir(parents=True)
        writer.prompt(f"new after {gone.name}")
        await follower.hears(f"new after {gone.name}")
        writer.prompt("and on")
        await follower.hears("and on")
    assert any(news.anew for news in follower.told)
    follower.task.cancel()


async def test_a_file_that_is_replaced_begins_anew(tmp_path, watcher):
    writer, other = Writer(tmp_path / "a.jsonl"), Writer(tmp_path / "b.jsonl")
    writer.prompt("old")
    follower = Follower(writer.path, watcher)
    await follower.hears("old")
    other.prompt("new")
    other.path.replace(writer.path)
    await follower.hears("new")
    assert follower.told[-1].anew
    follower.task.cancel()


async def test_a_link_to_the_folder_is_followed(tmp_path, watcher):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    follower = Follower(tmp_path / "link" / "a.jsonl", watcher)
    await settled()
    writer = Writer(tmp_path / "real" / "a.jsonl")
    writer.prompt("one")
    await follower.hears("one")
    follower.task.cancel()


async def test_where_the_system_refuses_to_watch_the_file_is_looked_at(tmp_path, watcher, monkeypatch, caplog):
    from watchdog.observers.api import BaseObserver

    def refuse(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(BaseObserver, "schedule", refuse)
    monkeypatch.setattr("ide_bridge.session.transcript.watch._LOOK_SECONDS", 0.02)
    writer = Writer(tmp_path / "a.jsonl")
    follower = Follower(writer.path, watcher)
    await settled()
    writer.prompt("seen all the same")
    await follower.hears("seen all the same")
    assert "looked at every second" in caplog.text
    follower.task.cancel()


async def test_closing_ends_those_who_follow(tmp_path):
    watcher = Watcher()
    followers = [Follower(tmp_path / "there.jsonl", watcher), Follower(tmp_path / "x" / "not.jsonl", watcher)]
    await settled()
    watcher.close()
    done, waiting = await asyncio.wait([follower.task for follower in followers], timeout=PATIENCE)
    assert not waiting
    assert all(task.exception() is None for task in done)
    watcher.close()


async def test_when_nobody_follows_nothing_is_watched(tmp_path, watcher):
    writer = Writer(tmp_path / "a.jsonl")
    follower = Follower(writer.path, watcher)
    writer.prompt("one")
    await follower.hears("one")
    follower.task.cancel()
    await asyncio.wait([follower.task], timeout=PATIENCE)
    assert watcher._folders == {}
    assert watcher._places == {}
