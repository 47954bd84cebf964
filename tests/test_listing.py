import asyncio
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from ide_bridge.errors import Disconnected, FileProblem, InvalidParams
from ide_bridge.workspace import listing as module
from ide_bridge.workspace.listing import Change, Listing
from tests.trees import age, drop_in, git, git_list, isolate_git, no_descriptors_left, put, remove


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    isolate_git(monkeypatch, home)
    return home


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "-q")
    put(root, ".gitignore", text="*.log\n")
    put(root, "a.py", "src/b.py", "src/c.txt", "src/d.log")
    return root


@pytest.fixture
async def listing(root):
    age(root)
    listing = Listing([str(root)])
    await listing.start()
    yield listing
    await listing.close()


async def until(holds, seconds=5.0):
    """Looks again and again until something holds."""
    async with asyncio.timeout(seconds):
        while not await holds():
            await asyncio.sleep(0.002)


async def becomes(listing, *paths):
    async def has_become():
        return await listing.files() == list(paths)

    try:
        await until(has_become)
    except TimeoutError:
        pytest.fail(f"still {await listing.files()}")


def bridge_threads():
    return {thread.name for thread in threading.enumerate() if thread is not threading.main_thread()}


class Stalls:
    """Measures for how long at most the event loop did nothing else."""

    async def __aenter__(self):
        self.longest = 0.0
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        self._task.cancel()

    async def _tick(self):
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.monotonic() - before)
            before = time.monotonic()


# -- asking ------------------------------------------------------------------------------------------------


async def test_before_it_is_started_every_question_reads_the_disk(root):
    listing = Listing([str(root)])
    assert await listing.files() == [".gitignore", "a.py", "src/b.py", "src/c.txt"]
    put(root, "new.py")
    assert await listing.files("*.py") == ["a.py", "new.py", "src/b.py"]
    assert json.loads(await listing.encoded("src/")) == ["src/b.py", "src/c.txt"]
    remove(root / "src")
    assert json.loads(await listing.encoded("src/")) == []
    assert await listing.count() == 3
    await listing.close()


async def test_after_it_is_started_changes_are_soon_known(root, listing):
    assert await listing.files() == git_list(root)
    put(root, "new.py", "new.log")
    await becomes(listing, ".gitignore", "a.py", "new.py", "src/b.py", "src/c.txt")
    remove(root / "src")
    await becomes(listing, ".gitignore", "a.py", "new.py")
    put(root, ".gitignore", text="*.py\n")
    await becomes(listing, ".gitignore", "new.log")
    git(root, "add", "-f", "a.py")
    await becomes(listing, ".gitignore", "a.py", "new.log")


async def test_an_answer_is_at_hand_until_something_stirs(root, listing):
    await until(lambda: at_hand(listing))
    assert listing.encoded_at_hand("*.py") is None
    first = await listing.encoded("*.py")
    assert listing.encoded_at_hand("*.py") is first
    assert await listing.encoded("*.py") is first
    assert listing.count_at_hand() == await listing.count() == 4
    put(root, "z.py")

    async def is_new():
        return await listing.encoded("*.py") != first

    await until(is_new)
    assert json.loads(await listing.encoded("*.py")) == ["a.py", "src/b.py", "z.py"]


async def at_hand(listing):
    return listing.count_at_hand() is not None


async def test_what_is_remembered_is_bounded_by_number_and_size(root, listing, monkeypatch):
    await until(lambda: at_hand(listing))
    monkeypatch.setattr(module, "_CACHE_ENTRIES", 3)
    for number in range(5):
        await listing.encoded(f"*{number}.py")
    assert [listing.encoded_at_hand(f"*{number}.py") for number in range(5)] == [None, None, b"[]", b"[]", b"[]"]
    monkeypatch.setattr(module, "_CACHE_BYTES", 10)
    everything = await listing.encoded("*")
    assert listing.encoded_at_hand("*") is everything
    assert listing.encoded_at_hand("*4.py") is None


async def test_a_pattern_that_cannot_be_is_refused_at_once(listing):
    for ask in (listing.files, listing.encoded):
        with pytest.raises(InvalidParams):
            await ask("a" * 2000)


async def test_many_who_ask_the_same_at_once_all_get_it(root):
    listing = Listing([str(root)])
    answers = await asyncio.gather(*(listing.encoded("*.py") for _ in range(50)))
    assert set(answers) == {b'["a.py","src/b.py"]'}
    await listing.close()


async def test_one_who_gives_up_does_not_take_the_answer_from_the_others(root):
    listing = Listing([str(root)])
    with listing._turn:  # both threads wait for this, so that the next questions are not begun
        busy = [asyncio.create_task(listing.encoded(pattern)) for pattern in ("1", "2")]
        first, second = (asyncio.create_task(listing.encoded("*.py")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
    assert await second == b'["a.py","src/b.py"]'
    assert await asyncio.gather(*busy) == [b"[]", b"[]"]
    await listing.close()


async def test_what_was_just_written_is_in_the_next_answer(root, listing):
    for number in range(20):
        path = f"deep{number}/er/new{number}.py"
        put(root, path)
        listing.suspect(str(root / path))
        assert path in await listing.files()
        assert path in json.loads(await listing.encoded("*.py"))


# -- being told --------------------------------------------------------------------------------------------


async def test_subscribers_are_told_in_order_until_they_leave(root, listing):
    seen, also = [], []
    leave = listing.subscribe(seen.append)
    listing.subscribe(also.append)
    drop_in(root, "hidden.log")
    drop_in(root, "first.py")
    await until(lambda: told(seen, 1))
    put(root, "a.py", text="changed")
    await until(lambda: told(seen, 2))
    remove(root / "src/b.py")
    await until(lambda: told(seen, 3))
    wanted = [("first.py", "created"), ("a.py", "changed"), ("src/b.py", "deleted")]
    assert seen == also == [Change(str(root / path), kind) for path, kind in wanted]
    leave()
    drop_in(root, "last.py")
    await until(lambda: told(also, 4))
    assert len(seen) == 3


async def told(seen, count):
    return len(seen) >= count


async def test_subscribers_are_told_on_the_event_loop(root, listing):
    threads = []
    listing.subscribe(lambda _: threads.append(threading.current_thread()))
    put(root, "new.py")
    await until(lambda: told(threads, 1))
    assert set(threads) == {threading.main_thread()}


async def test_files_changed_between_making_and_starting_are_told_too(root):
    age(root)
    listing = Listing([str(root)])
    seen = []
    listing.subscribe(seen.append)
    made = time.time()
    await until(lambda: passed(made, root / "x.log"))
    put(root, "meanwhile.py")
    await listing.start()
    await until(lambda: told(seen, 1))
    await listing.close()
    assert seen == [Change(str(root / "meanwhile.py"), "changed")]


async def passed(moment, path):
    """Says whether files made now are newer than a moment: their clock lags a little."""
    path.write_bytes(b"")
    return path.stat().st_mtime > moment


async def test_of_many_changes_some_are_told_at_a_time(root, listing):
    seen, steps = [], []
    listing.subscribe(seen.append)
    put(root.parent / "outside", *map(str, range(2000)))
    (root.parent / "outside").rename(root / "inside")
    async with asyncio.timeout(10):
        while len(seen) < 2000:
            before = len(seen)
            await asyncio.sleep(0)
            steps.append(len(seen) - before)
    assert max(steps) == module._TOLD_AT_ONCE


@pytest.mark.parametrize(("count", "at_once"), [(20_000, False), (5_000, True)])
async def test_a_burst_of_files_is_listed_and_told_without_stalling_the_loop(root, listing, count, at_once):
    seen = set()
    listing.subscribe(lambda change: seen.add(change.path))
    wanted = [f"{number % 100}/{number}.py" for number in range(count)]
    async with Stalls() as stalls:
        await asyncio.to_thread(put, root.parent / "outside" if at_once else root / "burst", *wanted)
        if at_once:
            (root.parent / "outside").rename(root / "burst")
        made = time.monotonic()
        await until(lambda: told(seen, count), seconds=20)
        took = time.monotonic() - made
    print(f"told after {took:.2f} s, longest stall {stalls.longest * 1000:.0f} ms")
    assert seen == {str(root / "burst" / path) for path in wanted}
    assert await listing.files() == await asyncio.to_thread(git_list, root)
    assert took < 3
    # 15 ms where there is a processor to spare; a machine that is busy otherwise stalls anything.
    assert stalls.longest < 0.5


# -- folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("started", [False, True])
async def test_folders_join_and_leave(tmp_path, root, started):
    put(tmp_path, "other/x.py", "apart/root/y.py")
    listing = Listing([str(root)])
    if started:
        await listing.start()
    await listing.set_folders([str(root), str(tmp_path / "other"), str(tmp_path / "apart/root")])
    assert await listing.files("*.py") == ["a.py", "other/x.py", "root-2/y.py", "src/b.py"]
    await listing.set_folders([str(tmp_path / "other")])
    assert await listing.files() == ["x.py"]
    put(tmp_path, "other/z.py")
    await becomes(listing, "x.py", "z.py")
    await listing.close()


async def test_of_two_changes_of_folders_the_last_one_stays(tmp_path):
    put(tmp_path, *(f"large/{number}/file" for number in range(2000)), "small/x")
    listing = Listing([str(tmp_path)])
    folders = [[str(tmp_path / "large")], [str(tmp_path / "small")]]
    await asyncio.gather(listing.start(), *(listing.set_folders(folder) for folder in folders))
    assert await listing.files() == ["x"]
    assert len([name for name in bridge_threads() if "poller" in name]) == 1
    await listing.close()


async def test_who_asks_while_folders_change_gets_one_or_the_other(tmp_path):
    put(tmp_path, *(f"one/{number}/file" for number in range(300)), "two/x")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    listing = Listing([one])
    for folder in (two, one) * 10:
        asked = asyncio.create_task(listing.count())
        await asyncio.sleep(0.001)
        await listing.set_folders([folder])
        assert await asked in (300, 1)
    await listing.close()


async def test_a_file_in_a_folder_that_left_is_not_told_of(tmp_path, root, listing):
    put(tmp_path, "other/x.py")
    await listing.set_folders([str(tmp_path / "other")])
    seen = []
    listing.subscribe(seen.append)
    drop_in(root, "unseen.py")
    drop_in(tmp_path / "other", "seen.py")
    await until(lambda: told(seen, 1))
    assert seen == [Change(str(tmp_path / "other/seen.py"), "created")]


# -- ending ------------------------------------------------------------------------------------------------


async def test_nothing_is_left_after_closing(root):
    threads, descriptors = bridge_threads(), len(os.listdir("/proc/self/fd"))
    listing = Listing([str(root)])
    await listing.start()
    await listing.files()
    assert len(bridge_threads()) > len(threads)
    await listing.close()
    left = {name for name in bridge_threads() - threads if not name.startswith("asyncio")}
    assert left == set()
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("started", [False, True])
async def test_closing_in_the_middle_of_a_reading_gives_it_up(tmp_path, started):
    put(tmp_path, *(f"{number % 50}/{number}/file" for number in range(3000)))
    listing = Listing([str(tmp_path)])
    reading = asyncio.create_task(listing.start() if started else listing.count())

    async def is_under_way():
        return listing._reading or listing._future_index is not None

    await until(is_under_way)
    began = time.monotonic()
    await listing.close()
    assert time.monotonic() - began < 0.5
    if started:
        await reading
    else:
        with pytest.raises(Disconnected, match="closed"):
            await reading
    assert len(listing._index.paths) < 3000


@pytest.mark.parametrize("started", [False, True])
async def test_who_asks_after_the_end_is_told_so(root, started):
    listing = Listing([str(root)])
    if started:
        await listing.start()
    await listing.close()
    for asked in (listing.files(), listing.encoded("*.py"), listing.count(), listing.prepare()):
        with pytest.raises(Disconnected, match="closed"):
            await asked


@pytest.mark.parametrize("started", [False, True])
async def test_out_of_descriptors_it_says_so_and_recovers(tmp_path, started):
    put(tmp_path, "a", "b/c")
    listing = Listing([str(tmp_path)])
    if started:
        await listing.start()
        put(tmp_path, "b/d")
    with no_descriptors_left():
        listing.suspect(str(tmp_path / "b/d"))
        with pytest.raises(FileProblem, match=r"^failed to list files: Too many open files$"):
            await listing.encoded()
        with pytest.raises(FileProblem, match="Too many open files"):
            await listing.count()
    assert await listing.files() == (["a", "b/c", "b/d"] if started else ["a", "b/c"])
    await listing.close()


async def test_started_out_of_descriptors_it_reads_all_later(tmp_path):
    put(tmp_path, "a", "b/c")
    listing = Listing([str(tmp_path)])
    with no_descriptors_left():
        await listing.start()
    assert await listing.files() == ["a", "b/c"]
    await listing.close()


def test_nothing_that_reads_folders_is_loaded_before_it_is_needed():
    program = (
        "import sys, ide_bridge.workspace.listing as l; l.Listing(['/']);"
        "print([name for name in ('index', 'tree', 'watching', 'repository', 'ignore')"
        " if f'ide_bridge.workspace.{name}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


async def test_one_that_was_never_used_closes(root):
    await Listing([str(root)]).close()


async def test_making_one_reads_nothing_and_starts_no_thread(tmp_path):
    before = bridge_threads()
    listing = Listing([str(tmp_path / "absent")])
    assert bridge_threads() == before
    assert listing.notice is None
    assert await listing.files() == []
    await listing.close()
