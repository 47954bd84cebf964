"""``ide-bridge conform -- COMMAND…``: whether a program that speaks the link does all that an editor must.

One line per check as it goes, in words; then the sum. It is for people who write adapters.

It does not know what is demanded, nor how it is checked.
"""

import os
import shutil
import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ide_bridge.cli.printable import json_text, printable
from ide_bridge.errors import SetupProblem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ide_bridge.conform.person import Person
    from ide_bridge.conform.stages import EditorStage, ProgramStage
    from ide_bridge.conform.verdict import Outcome

__all__ = ["add_arguments", "run"]

_LOG_LINES = 20


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``conform``."""
    parser.usage = "ide-bridge conform [--editor] [--by-hand] [--json] [--only WORD] -- COMMAND …"
    parser.add_argument(
        "--editor",
        action="store_true",
        help="COMMAND is an editor, whose plug-in starts `ide-bridge attach` itself",
    )
    parser.add_argument(
        "--by-hand", action="store_true", help="ask you to do in the editor what it does not do itself"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--only", metavar="WORD", default="", help="only the checks with this word in their name")
    parser.add_argument("program", nargs="+", metavar="COMMAND", help="what to start, and its arguments")


def run(args: "argparse.Namespace") -> int:
    """Examine the program; 0 when nothing is wrong with it."""
    import asyncio
    import tempfile
    from pathlib import Path

    if args.by_hand and not sys.stdin.isatty():
        raise SetupProblem("--by-hand asks you on the terminal, and there is none; run it in a terminal.")
    with (
        tempfile.TemporaryDirectory(prefix="ide-bridge-conform-") as folder,
        _apart(Path(folder), apart=args.editor),
    ):
        root = Path(folder, "workspace")
        root.mkdir()
        return asyncio.run(_examine(args, root))


async def _examine(args: "argparse.Namespace", root: "Path") -> int:
    from ide_bridge.conform.checks import CHECKS
    from ide_bridge.conform.examine import examine
    from ide_bridge.conform.verdict import Nonconforming

    checks = [check for check in CHECKS if args.only in check.name]
    if not checks:
        raise SetupProblem(f"There is no check with {args.only} in its name.")
    stage = _stage(args, root)
    outcomes: list[Outcome] = []
    try:
        async for outcome in examine(stage, checks):
            outcomes.append(outcome)
            if not args.json:
                print(_line(outcome), flush=True)
    except Nonconforming as wrong:  # it did not even introduce itself
        _show_log(stage)
        raise SetupProblem(str(wrong)) from None
    finally:
        await stage.close()
    print(json_text(_summary(outcomes, stage.name)) if args.json else _sum(outcomes))
    if not _count(outcomes)["wrong"]:
        return 0
    _show_log(stage)
    return 1


def _stage(args: "argparse.Namespace", root: "Path") -> "ProgramStage | EditorStage":
    from ide_bridge.conform.people import Hand, Nobody
    from ide_bridge.conform.stages import EditorStage, ProgramStage

    person: Person = Hand(input) if args.by_hand else Nobody()
    command = _as_seen_from_here(args.program)
    if args.editor:
        return EditorStage(command, root, os.environ, person)
    return ProgramStage(command, root, person)


def _as_seen_from_here(command: "Sequence[str]") -> list[str]:
    """The command as it means the same elsewhere: files of this folder by their full names."""
    program = shutil.which(command[0])
    if program is None:
        raise SetupProblem(f"There is no program called {command[0]}; give its path, or put it on your PATH.")
    return [
        os.path.abspath(program),
        *(os.path.abspath(each) if os.path.exists(each) else each for each in command[1:]),
    ]


@contextmanager
def _apart(folder: "Path", *, apart: bool) -> "Iterator[None]":
    """Keep what an attached editor needs of us out of the user's own folders: no CLI of his shall find it."""
    before = dict(os.environ)
    if apart:
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        os.environ["CLAUDE_CONFIG_DIR"] = str(folder / "claude")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _line(outcome: "Outcome") -> str:
    said = f"{outcome.verdict}: {outcome.why}" if outcome.why else outcome.verdict
    line = printable(f"{outcome.check.name:<45} {said}")
    return f"{line}\n    {outcome.check.sentence}" if outcome.verdict == "wrong" else line


def _sum(outcomes: "Sequence[Outcome]") -> str:
    count = _count(outcomes)
    return f"{count['ok']} ok, {count['wrong']} wrong, {count['not checked']} not checked."


def _count(outcomes: "Sequence[Outcome]") -> "Counter[str]":
    return Counter(outcome.verdict for outcome in outcomes)


def _summary(outcomes: "Sequence[Outcome]", editor: str) -> dict[str, object]:
    count = _count(outcomes)
    checks = [
        {
            "name": outcome.check.name,
            "demand": outcome.check.sentence,
            "verdict": outcome.verdict,
            "why": outcome.why,
            "seconds": outcome.seconds,
        }
        for outcome in outcomes
    ]
    sums = {"ok": count["ok"], "wrong": count["wrong"], "notChecked": count["not checked"]}
    return {"editor": editor, "conforms": not count["wrong"], **sums, "checks": checks}


def _show_log(stage: "ProgramStage | EditorStage") -> None:
    """What the program has said itself, on stderr or on its screen."""
    lines = [line for line in stage.log.decode(errors="replace").splitlines() if line.strip()][-_LOG_LINES:]
    if lines:
        print("The program said:", file=sys.stderr)
        for line in lines:
            print(f"  {printable(line)}", file=sys.stderr)
