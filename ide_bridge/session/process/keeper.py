"""The keeper: a small program that runs one CLI, outlives it and the bridge, and leaves nothing running.

It is started as ``python -I -S keeper.py LIFELINE,NEWS,KEPT… PATIENCE,PATIENCE LC_CTYPE COMMAND…``. First come
descriptors: the end of a pipe whose other end only the bridge has, a pipe for news, and others to be held.
The locale is named because Python changes it in the environment when it starts; the CLI gets it as it was.

1. The CLI gets the standard streams as they are, and no other descriptor. The keeper lets go of them.
2. Orphans of the CLI become children of the keeper where the system can do that (Linux), however far they fled.
   Elsewhere what was once seen below the CLI, and its process group, is remembered.
3. When the lifeline ends, because the bridge stopped or was killed, the CLI's input has ended too. It is given the
   first patience to finish, then SIGTERM, then the second patience, then SIGKILL. A signal to the keeper itself
   means the same without the first patience.
4. When the CLI has ended, so has everything it started, after a second at the most.
5. The news are lines: ``started PID``, or ``failed ERRNO``; then ``ended CODE``, before what is left is ended.
6. The keeper ends last, with the CLI's code, and lets go of what it held.

It does not know what the CLI is, and reads nothing of what it says. There is one for every session, so it imports
only what Python has loaded anyway, or nearly so.
"""

import _signal  # what `signal` adds takes longer to import than the rest of the start
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["GRACE_SECONDS", "Process", "below", "kill", "processes", "processes_by_ps", "same"]

# A process as the system lists it: its parent, its group, and when it began, which tells it from a later namesake.
Process = tuple[int, int, str]

GRACE_SECONDS = 1.0
_HOPELESS_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ENDING = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP)
_IGNORED_BY_PYTHON = (_signal.SIGPIPE, _signal.SIGXFSZ)


class Keeper:
    """Watches over one CLI from its start until nothing of it is left."""

    def __init__(self, lifeline: int, news: int, patience: "Sequence[float]") -> None:
        self._lifeline, self._news = lifeline, news
        self._first_patience, self._second_patience = patience
        self._cli, self._code = 0, -1
        self._running, self._childless = True, False
        self._released = self._hurried = False
        self._seen: dict[int, Process] = {}
        self._adopts = _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._alarm, ringing = os.pipe()
        os.set_blocking(ringing, False)
        _signal.set_wakeup_fd(ringing, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        for number in _ENDING:
            _signal.signal(number, self._hurry)
        self._poll = select.poll()
        self._poll.register(self._alarm, select.POLLIN)
        self._poll.register(lifeline, select.POLLIN)

    def run(self, command: "Sequence[str]") -> int:
        """Run the command to its end, and end what it leaves; gives its code, 128 and more for a signal."""
        try:
            self._cli = _start(command)
        except OSError as error:
            self._tell(f"failed {error.errno}")
            return 127
        self._tell(f"started {self._cli}")
        _let_go_of_streams()
        self._wait(None, lambda: self._released or self._hurried)
        self._end_cli()
        self._end_rest()
        return self._code

    def _end_cli(self) -> None:
        self._look_around()
        self._wait(self._first_patience, lambda: self._hurried)
        for number, patience in ((_signal.SIGTERM, self._second_patience), (_signal.SIGKILL, _HOPELESS_SECONDS)):
            if self._running:
                self._look_around()
                kill(self._cli, number)
                self._wait(patience)

    def _end_rest(self) -> None:
        """End what the CLI has left behind: gently, then by force, and again if it multiplies meanwhile."""
        forced = time.monotonic() + GRACE_SECONDS
        told: set[int] = set()
        while (family := self._family()) and (now := time.monotonic()) < forced + _HOPELESS_SECONDS:
            for pid in family:
                if now >= forced or pid not in told:
                    kill(pid, _signal.SIGKILL if now >= forced else _signal.SIGTERM)
            told |= family
            self._doze(_LOOK_SECONDS)

    def _family(self) -> set[int]:
        """Those that the CLI has started, and that still run."""
        if self._adopts and self._childless:
            return set()
        table = processes()
        if self._adopts:
            return below(os.getpid(), table)
        group = {pid for pid, (_, number, _) in table.items() if number == self._cli}
        return below(os.getpid(), table) | group | same(table, self._seen)

    def _look_around(self) -> None:
        """Remember those that will be nobody's children once the CLI is gone."""
        if self._running and not self._adopts:
            table = processes()
            self._seen |= {pid: table[pid] for pid in below(self._cli, table)}

    def _wait(self, seconds: float | None, enough: "Callable[[], bool]" = lambda: False) -> None:
        """Wait until the CLI has ended, the time is up, or it is enough for another reason."""
        deadline = None if seconds is None else time.monotonic() + seconds
        self._reap()
        while self._running and not enough():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            self._doze(left)

    def _doze(self, seconds: float | None) -> None:
        """Sleep until a child ends, a signal comes, the lifeline ends, or the time is up."""
        for descriptor, _ in self._poll.poll(None if seconds is None else int(seconds * 1000) + 1):
            if not os.read(descriptor, 4096) and descriptor == self._lifeline:
                self._released = True
                self._poll.unregister(descriptor)
        self._reap()

    def _reap(self) -> None:
        try:
            while not self._childless:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._cli:
                    self._note_end(os.waitstatus_to_exitcode(status))
        except ChildProcessError:
            self._childless = True

    def _note_end(self, code: int) -> None:
        self._running = False
        self._code = code if code >= 0 else 128 - code
        self._tell(f"ended {self._code}")

    def _hurry(self, *_: object) -> None:
        self._hurried = True

    def _tell(self, news: str) -> None:
        try:
            os.write(self._news, f"{news}\n".encode())
        except OSError:
            self._released = True  # nobody listens: the bridge is gone


def processes() -> dict[int, Process]:
    """Every process that we may see and that has not ended, by its number."""
    if sys.platform != "linux":
        return processes_by_ps()
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY)
            except OSError:
                continue
            try:
                # The program's name comes first, in brackets, and may hold anything.
                fields = os.read(descriptor, 4096).rpartition(b")")[2].split()
                if fields[0] != b"Z":
                    table[int(name)] = (int(fields[1]), int(fields[2]), fields[19].decode())
            except (OSError, IndexError):  # it has just ended
                pass
            finally:
                os.close(descriptor)
    return table


def processes_by_ps() -> dict[int, Process]:
    """The same where there is no ``/proc``."""
    import subprocess  # noqa: PLC0415 - slow to import, and Linux needs none of it

    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat=,lstart="]
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as ps:
            listing = ps.communicate()[0].decode(errors="replace")
    except OSError:
        return {}
    rows = (line.split(None, 4) for line in listing.splitlines())
    return {
        int(pid): (int(parent), int(group), began)
        for pid, parent, group, state, began in rows
        if int(pid) != ps.pid and not state.startswith("Z")
    }


def same(table: "dict[int, Process]", remembered: "dict[int, Process]") -> set[int]:
    """Those of the remembered processes that still run; their parents may have changed."""
    return {pid for pid, process in remembered.items() if pid in table and table[pid][2] == process[2]}


def below(root: int, table: "dict[int, Process]") -> set[int]:
    """The children of a process, and theirs."""
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        fresh = [pid for pid in children.get(waiting.pop(), ()) if pid not in found and pid != root]
        found.update(fresh)
        waiting += fresh
    return found


def kill(pid: int, number: int) -> None:
    """Send a signal to a process that may be gone, or may have become someone else's."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _start(command: "Sequence[str]") -> int:
    """Start the CLI; raises ``OSError`` if it cannot be run."""
    keeper = os.getpid()
    trouble, report = os.pipe()  # closed by the system when the CLI runs
    pid = os.fork()
    if pid == 0:
        try:
            _become(command, keeper)
        except OSError as error:
            os.write(report, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(report)
    number = os.read(trouble, 16)
    os.close(trouble)
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)))
    return pid


def _become(command: "Sequence[str]", keeper: int) -> None:
    os.setpgid(0, 0)
    _prctl(_PR_SET_PDEATHSIG, _signal.SIGTERM)  # should the keeper be killed, too
    if os.getppid() == keeper:
        for number in _IGNORED_BY_PYTHON:
            _signal.signal(number, _signal.SIG_DFL)
        os.execv(command[0], list(command))  # noqa: S606 - the bridge has chosen it


def _let_go_of_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)


def _prctl(option: int, value: int) -> bool:
    """Ask Linux for something that Python has no word for; whether it was granted."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # noqa: PLC0415 - some builds of Python have none
    except ImportError:
        return False
    return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)


def _main(descriptors: str, patience: str, locale: str, *command: str) -> int:
    lifeline, news, *kept = map(int, descriptors.split(","))
    for descriptor in (lifeline, news, *kept):
        os.set_inheritable(descriptor, False)
    os.environ["LC_CTYPE"] = locale
    if not locale:
        del os.environ["LC_CTYPE"]
    return Keeper(lifeline, news, [float(seconds) for seconds in patience.split(",")]).run(command)


if __name__ == "__main__":
    os._exit(_main(*sys.argv[1:]))  # there is nothing to clean up, and time to lose
