"""The keeper alone, as a program: what it starts, what it ends, and when."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest

from ide_bridge.session.process import keeper
from tests.fakes.doomed_bridge import is_gone

SOON = 10.0
STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
FAR = "setsid sh -c 'echo $$; exec sleep 600' & wait"


class Kept:
    """A keeper with the pipes that a bridge would have."""

    def __init__(
        self, *command, patience="0.2,0.2", keep=(), environment=None, python=(sys.executable, "-I", "-S")
    ):
        lifeline, self.lifeline = os.pipe()
        self.news, news = os.pipe()
        descriptors = ",".join(map(str, (lifeline, news, *keep)))
        self.process = subprocess.Popen(
            [*python, keeper.__file__, descriptors, patience, "", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline, news, *keep),
            env=environment,
        )
        os.close(lifeline)
        os.close(news)
        self._unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.release()
        self.process.wait(SOON)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        os.close(self.news)

    def release(self):
        """The bridge is gone, and with it the CLI's input."""
        if self.lifeline is not None:
            os.close(self.lifeline)
            self.lifeline = None
        if not self.process.stdin.closed:
            self.process.stdin.close()

    def hear(self):
        """The next of the news, empty when there are no more."""
        while b"\n" not in self._unread and (data := os.read(self.news, 100)):
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def started(self):
        what, pid = self.hear().split()
        assert what == "started"
        return int(pid)

    def line(self):
        return self.process.stdout.readline().decode().strip()


def wait_until(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def sh(script):
    return ("/bin/sh", "-c", script)


def test_the_program_has_its_streams_and_its_code_is_passed_on():
    with Kept(*sh("read line; echo got $line; echo oops >&2; exit 7")) as kept:
        kept.started()
        kept.process.stdin.write(b"this\n")
        kept.process.stdin.flush()
        assert kept.line() == "got this"
        assert kept.process.stderr.readline() == b"oops\n"
        assert kept.hear() == "ended 7"
        assert kept.process.wait(SOON) == 7
        assert kept.hear() == ""


def test_a_death_by_signal_has_the_code_that_a_shell_would_show():
    with Kept("/bin/sleep", "600") as kept:
        os.kill(kept.started(), signal.SIGKILL)
        assert kept.hear() == "ended 137"
        assert kept.process.wait(SOON) == 137


@pytest.mark.parametrize(("command", "error"), [("/no/such/program", "failed 2"), (keeper.__file__, "failed 13")])
def test_what_cannot_be_run_is_told_by_its_error_number(command, error):
    with Kept(command) as kept:
        assert kept.hear() == error
        assert kept.process.wait(SOON) == 127


def test_the_end_of_the_lifeline_lets_the_program_finish():
    with Kept(*sh("cat; exit 5"), patience="10,10") as kept:
        kept.started()
        kept.release()
        assert kept.process.wait(SOON) == 5


def test_a_program_that_does_not_finish_is_told_to():
    with Kept("/bin/sleep", "600") as kept:
        kept.started()
        kept.release()
        assert kept.process.wait(SOON) == 128 + signal.SIGTERM


def test_a_program_that_does_not_obey_is_killed():
    with Kept(*sh(STUBBORN)) as kept:
        pid = kept.started()
        assert kept.line() == "ready"
        kept.release()
        assert kept.process.wait(SOON) == 128 + signal.SIGKILL
        assert is_gone(pid)


def test_the_patience_is_what_was_asked_for():
    with Kept(*sh(STUBBORN), patience="0.3,0.3") as kept:
        kept.started()
        assert kept.line() == "ready"
        begun = time.monotonic()
        kept.release()
        kept.process.wait(SOON)
        assert 0.55 < time.monotonic() - begun < 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_keeper_ends_the_program_without_the_first_patience(number):
    with Kept("/bin/sleep", "600", patience="60,10") as kept:
        pid = kept.started()
        kept.process.send_signal(number)
        assert kept.process.wait(SOON) == 128 + signal.SIGTERM
        assert is_gone(pid)


def test_a_descendant_in_a_session_of_its_own_is_ended_too():
    with Kept(*sh(FAR)) as kept:
        kept.started()
        far = int(kept.line())
        assert not is_gone(far)
        kept.release()
        kept.process.wait(SOON)
        assert is_gone(far)


def test_a_program_that_ends_by_itself_leaves_nothing_and_its_end_is_told_first():
    with Kept(*sh(f"setsid sh -c {quote(STUBBORN)} & read line; exit 3")) as kept:
        kept.started()
        orphan = _child_in_session(kept)
        assert kept.line() == "ready"
        kept.process.stdin.close()
        assert kept.hear() == "ended 3"
        begun = time.monotonic()
        assert not is_gone(orphan)  # it is given a second to obey
        assert kept.process.wait(SOON) == 3
        assert is_gone(orphan)
        assert keeper.GRACE_SECONDS * 0.9 < time.monotonic() - begun < 3


def _child_in_session(kept):
    """The descendant of a keeper that is in a session of its own."""
    found = []

    def look():
        own = os.getsid(kept.process.pid)
        table = keeper.processes()
        found[:] = [pid for pid in keeper.below(kept.process.pid, table) if _session(pid) not in {own, None}]
        return found

    wait_until(look)
    return found[0]


def _session(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def test_orphans_that_end_meanwhile_are_buried():
    with Kept(*sh("for i in 1 2 3 4 5; do (sh -c 'exit 0' &) ; done; read line")) as kept:
        cli = kept.started()
        wait_until(lambda: keeper.below(kept.process.pid, keeper.processes()) == {cli})


def test_the_program_gets_no_descriptor_but_its_streams_and_the_keeper_holds_what_it_was_given(tmp_path):
    held = os.open(tmp_path / "held", os.O_CREAT | os.O_RDWR)
    with Kept(*sh("ls /proc/self/fd | tr '\\n' ' '; echo; read line"), keep=(held,)) as kept:
        kept.started()
        os.close(held)
        # `ls` has one more, for the folder it lists
        assert kept.line().split() == ["0", "1", "2", "3"]
        assert str(tmp_path / "held") in _open_files(kept.process.pid)


def _open_files(pid):
    return {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}


def test_the_keeper_lets_go_of_the_streams():
    with Kept(*sh("exec >&- 2>&-; read line")) as kept:
        kept.started()
        assert kept.process.stdout.read() == b""
        assert kept.process.stderr.read() == b""
        assert kept.process.poll() is None


def ignored_from_outside():
    """What this run was told to ignore, as in the background of a shell; not what Python or the keeper decides."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (ignored,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn"))
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ignored &= ~(1 << (number - 1))
    return ignored


def test_the_environment_and_the_usual_meaning_of_signals_are_passed_on():
    script = "env | sort | grep -v ^PWD= | grep -v ^_= | grep -v ^SHLVL=; grep SigIgn /proc/self/status"
    with Kept(*sh(script), environment={"A": "b", "PATH": os.environ["PATH"]}) as kept:
        kept.started()
        said = kept.process.stdout.read().decode()
        assert said.split() == ["A=b", f"PATH={os.environ['PATH']}", "SigIgn:", f"{ignored_from_outside():016x}"]


def test_a_killed_keeper_takes_the_program_with_it():
    with Kept("/bin/sleep", "600") as kept:
        pid = kept.started()
        kept.process.kill()
        wait_until(lambda: is_gone(pid))


def test_the_keeper_is_quick_and_small():
    begun = time.monotonic()
    with Kept("/bin/sleep", "600") as kept:
        kept.started()
        assert time.monotonic() - begun < 2
        status = Path(f"/proc/{kept.process.pid}/status").read_text(encoding="utf-8")
        (resident,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        assert resident < 30_000


def test_the_keeper_says_nothing_itself():
    with Kept("/bin/true") as kept:
        kept.started()
        kept.process.wait(SOON)
        assert (kept.process.stdout.read(), kept.process.stderr.read()) == (b"", b"")


@pytest.fixture
def elsewhere(tmp_path):
    """How to start a keeper on a system that gives orphans to nobody but the first process."""
    text = Path(keeper.__file__).read_text(encoding="utf-8")
    program = tmp_path / "keeper.py"
    program.write_text(text.replace('sys.platform != "linux"', "True"), encoding="utf-8")
    return (sys.executable, "-I", "-S", "-c", _instead(program))


def test_without_help_from_the_system_what_was_seen_is_ended(elsewhere):
    with Kept(*sh("setsid sh -c 'echo $$; exec sleep 600' & sleep 600"), python=elsewhere) as kept:
        cli, far = kept.started(), int(kept.line())
        kept.release()
        assert kept.process.wait(SOON) == 128 + signal.SIGTERM
        assert is_gone(cli)
        assert is_gone(far)


def test_without_help_from_the_system_what_stayed_in_the_group_is_ended(elsewhere):
    with Kept(*sh("sh -c 'echo $$; exec sleep 600' & read line; exit 3"), python=elsewhere) as kept:
        kept.started()
        near = int(kept.line())
        kept.process.stdin.close()
        assert kept.process.wait(SOON) == 3
        assert is_gone(near)


def _instead(program):
    """A program that runs another one in place of the keeper named by its first argument."""
    return f"import sys, runpy; del sys.argv[1]; runpy.run_path({str(program)!r}, run_name='__main__')"


def test_ps_tells_the_same_as_proc():
    child = subprocess.Popen(["/bin/sleep", "600"])
    try:
        by_ps, by_proc = keeper.processes_by_ps(), keeper.processes()
        assert by_ps[child.pid][:2] == by_proc[child.pid][:2] == (os.getpid(), os.getpgrp())
        assert keeper.processes_by_ps()[child.pid] == by_ps[child.pid]
        assert child.pid in keeper.below(os.getpid(), by_ps)
    finally:
        child.kill()
        child.wait()


def test_below_is_everything_below_and_ends_even_where_the_table_is_a_circle():
    table = {2: (1, 0, ""), 3: (2, 0, ""), 4: (3, 0, ""), 5: (1, 0, ""), 7: (8, 0, ""), 8: (7, 0, "")}
    assert keeper.below(2, table) == {3, 4}
    assert keeper.below(7, table) == {8}
    assert keeper.below(9, table) == set()


def test_a_signal_to_nobody_does_no_harm():
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    keeper.kill(child.pid, signal.SIGTERM)
