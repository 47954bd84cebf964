import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ide_bridge.workspace.dirt import Dirt
from ide_bridge.workspace.index import Index
from ide_bridge.workspace.listing import Listing
from ide_bridge.workspace.watching import InotifyWatcher, ObserverWatcher, open_watcher
from tests.trees import age, git, git_list, isolate_git, put, remove, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    isolate_git(monkeypatch, home)
    return home


@pytest.fixture
def watcher():
    watcher = open_watcher(interval=0.05)
    yield watcher
    watcher.close()


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    put(root, "a", "sub/b")
    git(root, "init", "-q")
    age(root)
    return root


class Heard:
    """What a watcher said of one root, piece by piece."""

    def __init__(self, watcher, root):
        self.dirt = Dirt(lambda: None)
        self.ground = watcher.root(str(root), self.dirt)

    def __call__(self, **wanted):
        """Waits until just that was heard, among what went before."""
        heard = {name: set() for name in ("folders", "replaced", "written")} | {
            "index": False,
            "everything": False,
        }

        def all_of_it():
            suspects = self.dirt.take()
            for name in ("folders", "replaced", "written"):
                heard[name] |= set(getattr(suspects, name))
            heard["index"] |= suspects.index
            heard["everything"] |= suspects.everything
            return all(
                heard[name] >= value if isinstance(value, set) else heard[name] for name, value in wanted.items()
            )

        assert wait_until(all_of_it), heard
        return {name: value for name, value in heard.items() if value}


@pytest.fixture
def heard(watcher, root):
    heard = Heard(watcher, root)
    watches = [heard.ground.add(""), heard.ground.add("sub/")]
    yield heard
    heard.ground.remove(watches)
    heard.ground.close()


# -- inotify -----------------------------------------------------------------------------------------------


def test_linux_is_watched_with_inotify(watcher):
    assert isinstance(watcher, InotifyWatcher)
    assert watcher.notice is None


def test_a_new_file_makes_its_folder_suspect_and_is_written(heard, root):
    put(root, "sub/new")
    assert heard(folders={"sub/"}, written={"sub/new"}) == {"folders": {"sub/"}, "written": {"sub/new"}}


def test_a_file_written_to_leaves_its_folder_as_it_was(heard, root):
    put(root, "sub/b", text="other")
    assert heard(written={"sub/b"}) == {"written": {"sub/b"}}


@pytest.mark.parametrize("name", [".gitignore", ".git"])
def test_a_file_that_rules_makes_its_folder_suspect_when_it_is_written_to(watcher, root, name):
    put(root, f"sub/{name}")
    heard = Heard(watcher, root)
    heard.ground.add("sub/")
    put(root, f"sub/{name}", text="x")
    assert "folders" in heard(folders={"sub/"})
    heard.ground.close()


def test_reading_a_file_or_changing_its_mode_means_nothing(heard, root):
    (root / "sub/b").read_bytes()
    (root / "sub/b").chmod(0o600)
    remove(root / "sub/b")
    assert heard(folders={"sub/"}) == {"folders": {"sub/"}}


def test_folders_are_replaced(heard, root):
    (root / "sub/new").mkdir()
    heard(replaced={"sub/new/"})
    (root / "sub/new").rename(root / "sub/old")
    assert heard(replaced={"sub/new/", "sub/old/"}) == {"replaced": {"sub/new/", "sub/old/"}}
    (root / "sub/old").chmod(0o700)
    heard(replaced={"sub/old/"})


def test_a_watched_folder_that_goes_is_suspect(heard, root):
    remove(root / "sub")
    heard(folders={"sub/"}, replaced={"sub/"})


def test_a_repository_that_comes_or_goes_makes_everything_suspect(heard, root):
    (root / ".git").rename(root.parent / "away")
    heard(everything=True)
    (root.parent / "away").rename(root / ".git")
    heard(everything=True)


def test_after_its_watch_ended_nothing_is_heard_of_a_folder(watcher, root):
    heard = Heard(watcher, root)
    first, second = heard.ground.add(""), heard.ground.add("sub/")
    heard.ground.remove([second])
    put(root, "sub/unheard")
    put(root, "heard")
    assert "sub/" not in heard(folders={""})["folders"]
    heard.ground.remove([first])
    heard.ground.close()


def test_two_watches_of_one_folder_end_one_by_one(watcher, root):
    heard, also = Heard(watcher, root), Heard(watcher, root)
    watch = heard.ground.add("sub/")
    also.ground.add("sub/")
    heard.ground.remove([watch])
    put(root, "sub/new")
    also(folders={"sub/"})
    assert not heard.dirt
    heard.ground.close()
    also.ground.close()


def test_sources_and_index_are_looked_at_until_others_take_their_place(heard, tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    put(place, "rules", "others", "index")
    age(place)
    heard.ground.sources([str(place / "rules")], index=str(place / "index"))
    put(place, "new")
    os.replace(place / "new", place / "index")
    assert heard(index=True) == {"index": True}
    put(place, "rules", text="x")
    heard(everything=True)
    heard.ground.sources([str(place / "others")], index=None)
    put(place, "others", text="x")
    heard(everything=True)


def test_a_path_with_a_name_that_is_no_text_is_watched(watcher, root):
    name = os.fsdecode(b"\xff")
    put(root, f"{name}/x")
    heard = Heard(watcher, root)
    heard.ground.add(f"{name}/")
    put(root, f"{name}/y")
    heard(folders={f"{name}/"})
    heard.ground.close()


def test_closing_ends_every_thread(root):
    before = set(threading.enumerate())
    watcher = open_watcher()
    assert len(set(threading.enumerate()) - before) == 2
    watcher.close()
    assert set(threading.enumerate()) == before


# -- too much ----------------------------------------------------------------------------------------------


def test_when_the_kernel_loses_events_everything_is_read_again(watcher, root):
    index = Index([str(root)], lambda: None, watcher)
    index.refresh()
    dirt = index._roots[0].dirt
    size = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="utf-8"))
    with dirt._lock:  # the thread that reads events waits for this
        put(root, *(f"sub/{number}" for number in range(size // 2 + 500)), *(f"late/{n}/x" for n in range(50)))
    assert wait_until(lambda: dirt._suspects.everything), "nothing was lost"
    wanted = git_list(root)

    def is_right():
        index.refresh()
        return index.paths == wanted

    assert wait_until(is_right)
    put(root, "late/49/after")
    wanted = git_list(root)
    assert wait_until(is_right)
    index.close()


EXHAUSTED = """
import sys
limit, value, root = sys.argv[1:]
with open(f"/proc/sys/user/{limit}", "w", encoding="ascii") as file:
    file.write(value)

from ide_bridge.workspace.index import Index
from ide_bridge.workspace.watching import open_watcher
from tests.trees import age, put, remove, wait_until

age(root)
watcher = open_watcher(interval=0.02)
index = Index([root], lambda: None, watcher)
index.refresh()

def becomes(*paths):
    def is_so():
        if index.stirred:
            index.refresh()
        return index.paths == list(paths)
    assert wait_until(is_so), index.paths

becomes(".gitignore", "a", "d1/x", "d2/x", "d3/x", "d4/x", "d5/x")
age(root)
put(root, *(f"d{number}/y" for number in range(1, 6)))
remove(f"{root}/d4")
becomes(".gitignore", "a", "d1/x", "d1/y", "d2/x", "d2/y", "d3/x", "d3/y", "d5/x", "d5/y")
for number in (1, 2, 3, 5):
    put(root, f"d{number}/.gitignore", text=".*\\n")
becomes(".gitignore", "a", "d1/x", "d1/y", "d2/x", "d2/y", "d3/x", "d3/y", "d5/x", "d5/y")
age(root)
index.refresh()
for number in (1, 2, 3, 5):
    with open(f"{root}/d{number}/.gitignore", "r+b") as file:
        file.write(b".*\\ny\\n")
becomes(".gitignore", "a", "d1/x", "d2/x", "d3/x", "d5/x")
put(root, "d6/d7/z")
becomes(".gitignore", "a", "d1/x", "d2/x", "d3/x", "d5/x", "d6/d7/z")
print(watcher.notice)
index.close()
watcher.close()
"""


def in_user_namespace(*arguments):
    """Runs Python where the limits of inotify may be lowered, for itself alone."""
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-W", "error", *arguments]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", cwd=Path(__file__).parent.parent, timeout=60
    )
    if done.returncode != 0 and "unshare" in done.stderr.partition("\n")[0]:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("limit", "value", "setting"),
    [
        ("max_inotify_watches", "3", "fs.inotify.max_user_watches"),
        ("max_inotify_watches", "0", "fs.inotify.max_user_watches"),
        ("max_inotify_instances", "0", "fs.inotify.max_user_instances"),
    ],
)
def test_what_inotify_has_no_room_for_is_polled_and_the_user_told_how_to_help(tmp_path, limit, value, setting):
    put(tmp_path, ".gitignore", "a", *(f"d{number}/x" for number in range(1, 6)))
    notice = in_user_namespace("-c", EXHAUSTED, limit, value, str(tmp_path))
    assert f"sudo sysctl {setting}=" in notice
    assert "about once a second" in notice


async def test_a_listing_hands_on_what_its_watcher_has_to_say(root):
    listing = Listing([str(root)])
    assert listing.notice is None
    await listing.start()
    assert listing.notice is None
    listing._watcher.notice = "Watching is not what it could be."
    assert listing.notice == "Watching is not what it could be."
    await listing.close()


# -- elsewhere ---------------------------------------------------------------------------------------------


@pytest.fixture
def observed(root):
    """An index kept by the way of watching that other systems get."""
    watcher = ObserverWatcher(interval=0.05)
    index = Index([str(root)], lambda: None, watcher)
    index.refresh()
    yield index
    index.close()
    watcher.close()


# Linux's own Observer, which we use in these tests only, sometimes watches a new folder twice.
@pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")
def test_elsewhere_too_the_list_stays_as_git_has_it(observed, root):
    def is_right():
        if observed.stirred:
            observed.refresh()
        return observed.paths == git_list(root)

    for change in (
        lambda: put(root, "new", "sub/new", "x/y/z"),
        lambda: put(root, ".gitignore", text="*.log\n"),
        lambda: put(root, "a.log", "x/b.log"),
        lambda: put(root, "x/.gitignore", text="!b.log\ny\n"),
        lambda: remove(root / "sub"),
        lambda: (root / "x").rename(root / "w"),
        lambda: (root / "new").rename(root / "w/new"),
        lambda: git(root, "add", "-f", "a.log"),
        lambda: git(root / "w", "init", "-q"),
        lambda: remove(root / ".git") or git(root, "init", "-q"),
    ):
        change()
        assert wait_until(is_right), (observed.paths, git_list(root))


def test_elsewhere_too_changes_are_told(observed, root):
    put(root, "sub/b", text="changed")
    changes = []

    def is_told():
        changes.extend(observed.refresh() if observed.stirred else [])
        return any(change.kind == "changed" for change in changes)

    assert wait_until(is_told)
    assert {change.path for change in changes} == {str(root / "sub/b")}


def test_elsewhere_too_a_root_may_vanish_and_come_back(observed, root):
    def is_there(*paths):
        observed.refresh()
        return observed.paths == list(paths)

    remove(root)
    assert wait_until(is_there)
    put(root, "c/d")
    assert wait_until(lambda: is_there("c/d"))
    put(root, "c/e")
    assert wait_until(lambda: is_there("c/d", "c/e"))


def test_elsewhere_too_closing_ends_every_thread(root):
    before = set(threading.enumerate())
    watcher = ObserverWatcher()
    watcher.root(str(root), Dirt(lambda: None)).add("")
    watcher.close()
    assert set(threading.enumerate()) == before
