"""Trees: folders on disk for the tests of listing, what git says of them, and a look at how an index keeps up.

It does not know how an index is told what changed.
"""

import contextlib
import os
import resource
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from ide_bridge.workspace.index import Index


def isolate_git(monkeypatch, home):
    """Gives git a home of its own, so that nobody's settings decide a test."""
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("XDG_CONFIG_HOME", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@localhost")


def git(folder, *arguments):
    """Runs git in a folder and returns what it prints."""
    command = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout


def git_list(folder):
    """Lists what git would, as far as it lies on disk as a file or link and its name is text."""
    output = git(folder, "ls-files", "-co", "--exclude-standard", "-z")
    names = {name for name in output.split(b"\0") if name and _is_there(os.fsencode(folder), name)}
    return sorted(name.decode() for name in names if _is_text(name))


@contextlib.contextmanager
def no_descriptors_left():
    """Lets nobody in this process open anything for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def put(folder, *paths, text=""):
    """Makes files with all folders above them."""
    for path in paths:
        place = os.path.join(folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())


def drop_in(folder, path, text=""):
    """Makes a file elsewhere and moves it into its place, which is one event."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as elsewhere:
        put(elsewhere, "file", text=text)
        os.rename(os.path.join(elsewhere, "file"), os.path.join(folder, path))


def age(folder):
    """Makes everything in a folder look as if nobody had touched it for an hour."""
    then = time.time() - 3600
    for place, _, files in os.walk(folder):
        for path in (place, *(os.path.join(place, file) for file in files)):
            os.utime(path, (then, then), follow_symlinks=False)


def remove(path):
    """Deletes whatever lies there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)


def wait_until(holds, seconds=5.0):
    """Looks again and again until something holds; False when time is up."""
    deadline = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.002)
    return held


def _is_there(folder, name):
    place = folder
    parts = name.split(b"/")
    for part in parts[:-1]:
        place = os.path.join(place, part)
        if os.path.islink(place):
            return False
    place = os.path.join(place, parts[-1])
    return os.path.islink(place) or os.path.isfile(place)


def _is_text(name):
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


class Fresh:
    """A watched index of one root, and every change it told of."""

    def __init__(self, root, watcher):
        self.root = root
        self.index = Index([str(root)], lambda: None, watcher)
        self.index.refresh()
        self.changes = []

    def paths(self):
        if self.index.stirred:
            self.changes += self.index.refresh()
        return self.index.paths

    def during(self, operation):
        """Has the root looked at again and again while something happens to it."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(operation, self.root)
            while not done.done():
                self.paths()
            done.result()

    def becomes(self, *paths):
        assert wait_until(lambda: self.paths() == list(paths)), self.paths()

    def becomes_as_git_says(self):
        wanted = git_list(self.root)
        assert wait_until(lambda: self.paths() == wanted), (self.paths(), wanted)


@contextlib.contextmanager
def watching(root, watcher):
    age(root)
    fresh = Fresh(root, watcher)
    try:
        yield fresh
    finally:
        fresh.index.close()
