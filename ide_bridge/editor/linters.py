"""The user's linters, run in the background: when they run, on what, and what they found.

1. A command with ``{file}`` runs for one file, and only what it says of that file counts. A command without
   runs for a whole root, and what it says replaces all it said of that root before.
2. A change waits until the file has been quiet for a moment; who asks meanwhile has it start at once. A change
   during a run means another run after it. Each linter runs once at a time for a file, and few run together.
3. A command gets no shell and no input, and a process group of its own, which is ended as a whole: when its
   time is up, when it says too much, and when the bridge stops.
4. A run that fails says nothing about the files: what was known of them stays. The user is told once.

It does not know what linters write, or who wants to know what they found.
"""

import asyncio
import contextlib
import logging
import os
import signal
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from ide_bridge.answers import Answer
from ide_bridge.editor.lint_output import Finding, parse
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
"""Of more files that wait, the oldest are given up; a branch that is switched should not keep us busy for hours."""
OUTPUT_LIMIT = 1024 * 1024
_FILE = "{file}"
_END_SECONDS = 2.0


class _Target(NamedTuple):
    """What a linter is run on: a file of a root, or the whole root."""

    linter: Linter
    root: str
    path: str | None


class Linters:
    """Runs linters on what changes, and on what is asked about for the first time."""

    def __init__(
        self,
        linters: Sequence[Linter],
        folders: Sequence[str],
        listing: Listing,
        changed: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._linters = linters
        self._folders = folders
        self._listing = listing
        self._changed = changed
        self._jobs: dict[_Target, _Job] = {}
        self._ran: set[_Target] = set()
        self._found: dict[str, dict[Linter, list[Diagnostic]]] = {}
        self._told: dict[Linter, str] = {}
        self._turns = asyncio.Semaphore(TOGETHER)
        self._closed = False

    def see(self, change: Change) -> None:
        """Take note of a change; a file that no linter means has nothing to wait for, and that is told at once."""
        targets = list(self._targets(change.path))
        if change.kind == "deleted":
            self._forget(change.path)
            targets = [target for target in targets if target.path is None]
        for target in targets:
            self._job(target, change.path).soon()
        if not targets:
            self._changed((change.path,))
        self._give_up_oldest()

    def hurry(self, path: str) -> None:
        """Start at once what waits for a file to be quiet: its writer is done with it."""
        for target in self._targets(path):
            if target in self._jobs:
                self._jobs[target].now()

    def diagnostics(self, path: str | None) -> Answer[Sequence[Diagnostic]]:
        """What was found in one file or in all; what is under way, or was never looked at, is waited for a little."""
        targets = self._whole_roots() if path is None else self._targets(path)
        for target in targets:
            if target not in self._ran:
                self._job(target, path).now()
        jobs = self._jobs.values() if path is None else [self._jobs[each] for each in targets if each in self._jobs]
        return self._after(list(jobs), path) if jobs else self._known(path)

    async def close(self) -> None:
        """End every run, with all the processes it started."""
        self._closed = True
        jobs = list(self._jobs.values())
        self._jobs.clear()
        await asyncio.gather(*(job.close() for job in jobs))

    # -- what is known -------------------------------------------------------------------------------------

    def _known(self, path: str | None) -> Sequence[Diagnostic]:
        paths = self._found if path is None else (path,)
        found = [each for name in paths for every in self._found.get(name, {}).values() for each in every]
        return sorted(found, key=lambda each: (each.path, each.range.start))

    async def _after(self, jobs: Iterable["_Job"], path: str | None) -> Sequence[Diagnostic]:
        for job in jobs:
            job.now()
        await asyncio.wait([job.idle for job in jobs], timeout=ANSWER_SECONDS)
        return self._known(path)

    def _replace(self, target: _Target, found: dict[str, list[Diagnostic]]) -> set[str]:
        """Let what a linter found take the place of what it found there before; gives the files concerned."""
        inside = os.path.join(target.root, "")
        covered = [target.path] if target.path else [path for path in self._found if path.startswith(inside)]
        concerned = {path for path in covered if self._found.get(path, {}).pop(target.linter, None)}
        for path, diagnostics in found.items():
            self._found.setdefault(path, {})[target.linter] = diagnostics
        for path in [path for path in covered if not self._found.get(path, True)]:
            del self._found[path]
        return concerned.union(found)

    def _forget(self, path: str) -> None:
        """Know nothing of a file any more, and let go of what is being done for it."""
        for target in [target for target in (*self._jobs, *self._ran) if target.path == path]:
            self._ran.discard(target)
            if (job := self._jobs.pop(target, None)) is not None:
                job.cancel()
        if self._found.pop(path, None):
            self._changed((path,))

    # -- what is to be done --------------------------------------------------------------------------------

    def _root_of(self, path: str) -> str | None:
        """The innermost root a file lies in."""
        around = (root for root in self._folders if path.startswith(os.path.join(root, "")))
        return max(around, key=len, default=None)

    def _targets(self, path: str) -> list[_Target]:
        root = self._root_of(path)
        if root is None:
            return []
        relative = os.path.relpath(path, root).replace(os.sep, "/")
        meant = [linter for linter in self._linters if selector(linter.glob)((relative,))]
        return [_Target(linter, root, path if _takes_file(linter) else None) for linter in meant]

    def _whole_roots(self) -> list[_Target]:
        whole = [linter for linter in self._linters if not _takes_file(linter)]
        return [_Target(linter, root, None) for linter in whole for root in self._folders]

    def _job(self, target: _Target, reason: str | None) -> "_Job":
        job = self._jobs.get(target)
        if job is None:
            job = self._jobs[target] = _Job(lambda reasons: self._run(target, reasons))
            job.idle.add_done_callback(lambda _: self._done(target, job))
        if reason is not None:
            job.reasons.add(reason)
        return job

    def _done(self, target: _Target, job: "_Job") -> None:
        if self._jobs.get(target) is job:
            del self._jobs[target]

    def _give_up_oldest(self) -> None:
        waiting = [target.path for target, job in self._jobs.items() if not job.running and target.path]
        for path in waiting[:-WAITING_LIMIT]:
            self._forget(path)

    # -- one run -------------------------------------------------------------------------------------------

    async def _run(self, target: _Target, reasons: set[str]) -> None:
        """Run a linter on its target; `reasons` are the files whose change made it run."""
        async with self._turns:
            files = await self._files(target)
            findings = await self._findings(target) if files else None
        if self._closed:
            return
        self._ran.add(target)
        concerned: set[str] = set()
        if findings is not None:
            found = _by_file(target, findings, await self._files(target))
            concerned = self._replace(target, found)
        if concerned or reasons:
            self._changed(tuple(sorted(concerned.union(reasons))))

    async def _files(self, target: _Target) -> "_Files":
        """The listed files that the target covers."""
        names = root_names(self._folders)
        prefix = dict(zip(self._folders[1:], (f"{name}/" for name in names[1:]), strict=True)).get(target.root, "")
        return _Files(target, prefix, await self._listing.files())

    async def _findings(self, target: _Target) -> list[Finding] | None:
        """What a linter says; ``None`` when it fails."""
        linter, name = target.linter, _name(target.linter)
        try:
            said = await _say(_command(target), target.root, linter.seconds)
        except OSError as error:
            self._tell(linter, f"cannot be started ({error.strerror}); install it, or correct its command.")
            return None
        if said.late:
            self._tell(linter, f"took more than {linter.seconds:g} s and was ended; give it more seconds.")
            return None
        findings = await asyncio.to_thread(said.findings)
        if said.cut:
            self._tell(linter, f"says more than {OUTPUT_LIMIT >> 20} MiB and was ended; make it say less.")
        elif said.code and not findings:
            self._tell(linter, f"failed with exit code {said.code}", said.complaint())
            return None
        logger.debug("%s found %d problems", name, len(findings))
        return findings

    def _tell(self, linter: Linter, what: str, complaint: str = "") -> None:
        """Tell the user what is wrong with a linter, unless it is what was told last."""
        if self._told.get(linter) != what:
            self._told[linter] = what
            logger.warning("The linter %s %s%s", _name(linter), what, complaint)
