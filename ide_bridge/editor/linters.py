"""The user's linters, run in the background: when they run, on what, and what they found.

1. A command with ``{file}`` runs for one file, and only what it says of that file counts. A command without
   runs for a whole root, and what it says replaces all it said of that root before.
2. A change waits until the file has been quiet for a moment; who asks meanwhile has it start at once. A change
   during a run means another run after it. A linter runs once at a time for a file, and few run together.
3. A command gets no shell and no input, and a process group of its own, which is ended as a whole: when its
   time is up, when it says too much, and when the bridge stops.
4. A run that fails says nothing about the files: what was known of them stays. The user is told once.

It does not know what linters write, or who wants to know what they found.
"""

import asyncio
import functools
import logging
import os
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from ide_bridge.answers import Answer
from ide_bridge.editor.lint_output import Finding
from ide_bridge.editor.lint_process import OUTPUT_LIMIT, run_process
from ide_bridge.errors import InvalidParams
from ide_bridge.model import Diagnostic
from ide_bridge.settings import Linter
from ide_bridge.workspace.listing import Change, Listing
from ide_bridge.workspace.patterns import selector
from ide_bridge.workspace.places import root_names

__all__ = ["Linters"]

logger = logging.getLogger(__name__)

QUIET_SECONDS = 0.15
ANSWER_SECONDS = 0.2
TOGETHER = 2
WAITING_LIMIT = 100
"""Of more files that wait the oldest are given up: switching a branch should not keep us busy for hours."""
_FILE = "{file}"

Listed = Callable[[str], bool]


class _Target(NamedTuple):
    """What a linter is run on: a file of a root, or the whole root."""

    linter: Linter
    root: str
    path: str | None


class Linters:
    """Runs linters on what changes, and on what is asked about for the first time.

    ``changed`` is called with the files whose problems may be others now, also when they turn out to be the same:
    who waits for the outcome of a change need not wait any longer.
    """

    def __init__(
        self,
        linters: Sequence[Linter],
        folders: Sequence[str],
        listing: Listing,
        changed: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._linters, self._folders, self._listing, self._changed = linters, folders, listing, changed
        self._turns = asyncio.Semaphore(TOGETHER)
        self._jobs: dict[_Target, _Job] = {}
        self._ran: set[_Target] = set()
        self._found: dict[str, dict[Linter, list[Diagnostic]]] = {}
        self._told: set[tuple[Linter, str]] = set()

    def see(self, change: Change) -> None:
        """Take note of a change."""
        targets = self._targets(change.path)
        if change.kind == "deleted":
            self._forget(change.path)
            targets = [target for target in targets if target.path is None]
        for target in targets:
            self._job(target, change.path).soon()
        if not targets:
            self._changed((change.path,))
        self._give_up_oldest()

    def hurry(self, path: str) -> None:
        """Start at once what waits for a file to be quiet: who wrote it is done."""
        for job in self._jobs_of(self._targets(path)):
            job.hurry()

    def diagnostics(self, path: str | None) -> Answer[Sequence[Diagnostic]]:
        """What was found in one file or in all; what was never looked at, or changed just now, is waited for."""
        targets = self._whole_roots() if path is None else self._targets(path)
        for target in targets:
            if target not in self._ran:
                self._job(target, path).hurry()
        jobs = list(self._jobs.values()) if path is None else self._jobs_of(targets)
        self._give_up_oldest()
        return self._known_after(jobs, path) if jobs else self._known(path)

    async def close(self) -> None:
        """End every run, with all the processes it started."""
        await asyncio.gather(*(job.close() for job in list(self._jobs.values())))

    # -- what is known -------------------------------------------------------------------------------------

    def _known(self, path: str | None) -> Sequence[Diagnostic]:
        files = self._found.values() if path is None else [self._found.get(path, {})]
        found = [each for by_linter in files for diagnostics in by_linter.values() for each in diagnostics]
        return sorted(found, key=lambda each: (each.path, each.range.start))

    async def _known_after(self, jobs: Collection["_Job"], path: str | None) -> Sequence[Diagnostic]:
        for job in jobs:
            job.hurry()
        await asyncio.wait([job.idle for job in jobs], timeout=ANSWER_SECONDS)
        return self._known(path)

    def _replace(self, target: _Target, found: dict[str, list[Diagnostic]]) -> set[str]:
        """Let what a linter found take the place of what it found there before; gives the files concerned."""
        before = [
            path for path in self._found if path == target.path or (not target.path and _in(path, target.root))
        ]
        concerned = {path for path in before if self._found[path].pop(target.linter, None)}
        for path, diagnostics in found.items():
            self._found.setdefault(path, {})[target.linter] = diagnostics
        return concerned.union(found)

    def _forget(self, path: str) -> None:
        """Know nothing of a file any more, and do nothing for it that has not begun."""
        for target in self._targets(path):
            if target.path is not None:
                self._ran.discard(target)
                for job in self._jobs_of([target]):
                    job.give_up()
        if self._found.pop(path, None):
            self._changed((path,))

    # -- what is to be done --------------------------------------------------------------------------------

    def _targets(self, path: str) -> list[_Target]:
        root = max((root for root in self._folders if _in(path, root)), key=len, default=None)
        if root is None:
            return []
        name = _relative(path, root)
        meant = [linter for linter in self._linters if self._means(linter, [name])]
        return [_Target(linter, root, path if _takes_file(linter) else None) for linter in meant]

    def _whole_roots(self) -> list[_Target]:
        whole = [linter for linter in self._linters if not _takes_file(linter)]
        return [_Target(linter, root, None) for linter in whole for root in self._folders]

    def _means(self, linter: Linter, names: Iterable[str]) -> bool:
        try:
            return bool(selector(linter.glob)(names))
        except InvalidParams:
            self._tell(linter, "has a glob that is too long; shorten it.")
            return False

    def _job(self, target: _Target, reason: str | None) -> "_Job":
        job = self._jobs.get(target)
        if job is None:
            run = functools.partial(self._run, target)
            job = self._jobs[target] = _Job(run, self._turns, lambda: self._jobs.pop(target, None))
        if reason is not None:
            job.reasons.add(reason)
        return job

    def _jobs_of(self, targets: Iterable[_Target]) -> list["_Job"]:
        return [self._jobs[target] for target in targets if target in self._jobs]

    def _give_up_oldest(self) -> None:
        waiting = [target.path for target, job in self._jobs.items() if target.path and not job.running]
        for path in waiting[:-WAITING_LIMIT]:
            self._forget(path)

    # -- one run -------------------------------------------------------------------------------------------

    async def _run(self, target: _Target, reasons: set[str]) -> None:
        """Run a linter; `reasons` are the files because of which it runs."""
        concerned: set[str] = set()
        if await self._is_there(target):
            findings = await self._findings(target)
            self._ran.add(target)
            if findings is not None:
                listed = await self._listed(target.root)
                concerned = self._replace(target, _by_file(target, findings, listed))
        self._changed(tuple(sorted(concerned.union(reasons))))

    async def _is_there(self, target: _Target) -> bool:
        """Whether there is something to run on: a listed file, in a whole root one that the linter means."""
        if target.path is not None:
            return (await self._listed(target.root))(target.path)
        prefix = self._prefix(target.root)
        names = [name for name in await self._listing.files() if name.startswith(prefix)]
        return self._means(target.linter, (name.removeprefix(prefix) for name in names))

    async def _listed(self, root: str) -> Listed:
        """What tells whether a file of a root is listed."""
        names, prefix = await self._listing.files(), self._prefix(root)

        def listed(path: str) -> bool:
            name = prefix + _relative(path, root)
            at = bisect_left(names, name)
            return names[at : at + 1] == [name]

        return listed

    def _prefix(self, root: str) -> str:
        """What the names of a root's files begin with in the listing."""
        names = dict(zip(self._folders, root_names(self._folders), strict=True))
        return f"{names[root]}/" if root in self._folders[1:] else ""

    async def _findings(self, target: _Target) -> list[Finding] | None:
        """What a linter says; ``None`` when it fails, which the user is told once."""
        try:
            process = await run_process(_command(target), target.root, target.linter.seconds)
            findings = await asyncio.to_thread(process.findings)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self._tell(target.linter, f"cannot be started ({reason}); install it, or correct its command.")
            return None
        if process.cut:
            self._tell(target.linter, f"said more than {OUTPUT_LIMIT >> 20} MiB and was ended; make it say less.")
        elif process.code is None:
            self._tell(target.linter, f"was ended after {target.linter.seconds:g} s; give it more seconds.")
            return None
        elif process.code and not findings:
            self._tell(target.linter, f"failed with exit code {process.code}", process.complaint())
            return None
        return findings

    def _tell(self, linter: Linter, what: str, complaint: str = "") -> None:
        """Tell the user once what is wrong with a linter."""
        if (linter, what) not in self._told:
            self._told.add((linter, what))
            logger.warning("The linter %s %s%s", _name(linter), what, complaint)


class _Job:
    """Something to run soon, once at a time, and once more if that is wanted during a run."""

    def __init__(
        self, run: Callable[[set[str]], Awaitable[None]], turns: asyncio.Semaphore, done: Callable[[], object]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._run = run
        self._turns = turns
        self._done = done
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self.reasons: set[str] = set()
        self.running = False
        self.idle: asyncio.Future[None] = self._loop.create_future()

    def soon(self) -> None:
        """Run when nothing more has come for a moment."""
        self._stop_timer()
        self._timer = self._loop.call_later(QUIET_SECONDS, self._start)

    def hurry(self) -> None:
        """Run now, unless that is what it does."""
        if self._timer is not None or self._task is None:
            self._start()

    def give_up(self) -> None:
        """Do not run, unless it has begun."""
        self._stop_timer()
        if self._task is None:
            self._finish()
        elif not self.running:
            self._again = False
            self._task.cancel()

    async def close(self) -> None:
        """End it, whatever it does."""
        self._stop_timer()
        self._again = False
        if self._task is None:
            self._finish()
        else:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _start(self) -> None:
        self._stop_timer()
        if self._task is None:
            self._task = self._loop.create_task(self._work())
            self._task.add_done_callback(self._ended)
        else:
            self._again = True

    async def _work(self) -> None:
        async with self._turns:
            self.running, self._again = True, False
            reasons, self.reasons = self.reasons, set()
            await self._run(reasons)

    def _ended(self, _task: asyncio.Task[None]) -> None:
        """Go on after a run; a task that is cancelled before it begins comes here, too."""
        self.running, self._task = False, None
        if self._again:
            self._start()
        elif self._timer is None:
            self._finish()

    def _finish(self) -> None:
        self._done()
        if not self.idle.done():
            self.idle.set_result(None)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _by_file(target: _Target, findings: Iterable[Finding], listed: Listed) -> dict[str, list[Diagnostic]]:
    """Sort findings by the file they mean; what lies elsewhere or is not listed does not count."""
    paths = {finding.file: _meant(target, finding.file) for finding in findings}
    counting = {path for path in paths.values() if path and listed(path)}
    found: dict[str, list[Diagnostic]] = {}
    for finding in findings:
        path = paths[finding.file]
        if path in counting:
            found.setdefault(path, []).append(finding.diagnostic(path, _name(target.linter)))
    return found


def _meant(target: _Target, file: str) -> str:
    """The path that a linter means; none when it is not what the linter was run on."""
    path = os.path.normpath(os.path.join(target.root, file))
    if target.path is None:
        return path if _in(path, target.root) else ""
    return target.path if path in (target.path, os.path.realpath(target.path)) else ""


def _command(target: _Target) -> list[str]:
    return [word.replace(_FILE, target.path or "") for word in target.linter.command]


def _takes_file(linter: Linter) -> bool:
    return any(_FILE in word for word in linter.command)


def _name(linter: Linter) -> str:
    """What a linter is called: its program, or the module that an interpreter runs."""
    program, *words = linter.command
    return words[1] if words[:1] == ["-m"] and len(words) > 1 else PurePath(program).name.removesuffix(".exe")


def _in(path: str, root: str) -> bool:
    return path.startswith(os.path.join(root, ""))


def _relative(path: str, root: str) -> str:
    return path[len(os.path.join(root, "")) :].replace(os.sep, "/")
