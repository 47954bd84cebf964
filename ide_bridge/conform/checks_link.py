"""What is demanded of a plug-in at the other end of a link, and of every editor when it goes.

It does not know any plug-in.
"""

import time

from ide_bridge.conform.person import Cannot
from ide_bridge.conform.record import EVENT_SECONDS
from ide_bridge.conform.subject import Line, Subject
from ide_bridge.conform.verdict import Group, demand
from ide_bridge.errors import MethodNotFound
from ide_bridge.model import DiffDecided

__all__ = ["ENDING", "INTRODUCTION", "MANNERS"]

INTRODUCTION = Group("introduction", link=True)
MANNERS = Group("manners", link=True)
ENDING = Group("ending")

BURST = 200
LARGE = 3 * 1024 * 1024
PROMPT_SECONDS = 1.0
_NO_PARAMS: dict[str, object] = {}


@INTRODUCTION.check()
async def hello(subject: Subject) -> None:
    """The first message is the request hello: the version of the link, a name, features, folders and a pid."""
    wrong = _line(subject).introduction()
    demand(not wrong, f"Expected an introduction as the link has it. {' '.join(wrong)}".removesuffix("."))


@MANNERS.check()
async def unknown_notification(subject: Subject) -> None:
    """A notification that is not known is ignored."""
    _line(subject).notify("somethingNewer", {"of": "a later version"})
    await subject.quiet()


@MANNERS.check()
async def unknown_request(subject: Subject) -> None:
    """A request that is not known is answered with the error -32601."""
    code = await _line(subject).refusal("somethingNewer", {"of": "a later version"})
    came = "a result" if code is None else f"the error {code}"
    demand(code == MethodNotFound.code, f"Expected the error -32601; {came} came")


@MANNERS.check()
async def known_notifications(subject: Subject) -> None:
    """Who is connected, and a message for the user, are taken without ado."""
    line = _line(subject)
    client = {"name": "claude-code", "version": "2.1.326", "pid": 4711}
    line.notify("clientsChanged", {"clients": [client]})
    for level in ("info", "warning", "error"):
        line.notify(
            "message", {"level": level, "text": f"ide-bridge conform tries a message of the level {level}."}
        )
    line.notify("clientsChanged", {"clients": []})
    await subject.quiet()


@MANNERS.check()
async def unusable_request(subject: Subject) -> None:
    """A request whose parameters are missing is answered all the same, and so is the next one."""
    for method in ("openFile", "readBuffer", "saveFile"):
        await _line(subject).refusal(method, _NO_PARAMS)
    await subject.quiet()


@MANNERS.check()
async def prompt(subject: Subject) -> None:
    """Questions are answered at once: the bridge waits one second and no longer."""
    path = subject.file()
    await subject.open_file(path)
    taken = []
    for _ in range(5):
        before = time.monotonic()
        await subject.open_files()
        taken.append(time.monotonic() - before)
    best = min(taken)
    demand(
        best < PROMPT_SECONDS, f"Expected an answer within {PROMPT_SECONDS:g} s; the quickest took {best:.1f} s"
    )


@MANNERS.check()
async def burst(subject: Subject) -> None:
    """Two hundred questions at once are all answered, in their order."""
    kinds = ("openFiles", "currentFile")
    questions = [(kinds[number % len(kinds)], _NO_PARAMS) for number in range(BURST)]
    asked, answered = await _line(subject).burst(questions)
    demand(
        len(answered) == len(asked), f"Expected {len(asked)} answers; {len(answered)} came in {EVENT_SECONDS:g} s"
    )
    demand(answered == asked, "Expected the answers in the order of the questions; they came in another")


@MANNERS.check("diff")
async def large_diff(subject: Subject) -> None:
    """A diff of three megabytes is shown, kept and told as it is, if there is somebody to keep it."""
    contents = "".join(f"{number:07d} 😀 and what else is on a line\n" for number in range(LARGE // 43))
    number = await subject.show(subject.file(), contents)
    try:
        await subject.person.keep(number)
    except Cannot:
        await subject.close_diff(number)
        return
    event = await subject.event(DiffDecided, lambda event: event.diff == number, f"a decision about diff {number}")
    size = len(event.contents or "")
    demand(
        event.contents == contents, f"Expected {len(contents)} characters as proposed; {size} came, not the same"
    )


@ENDING.check()
async def quit_in_the_middle(subject: Subject) -> None:
    """When the user quits in the middle of a diff, the editor goes, and nothing counts as kept."""
    if "diff" in subject.editor.features:
        await subject.show(subject.file(), "proposed\n")
    subject.forget()
    await subject.person.quit()
    await subject.end()
    kept = [event.diff for event in subject.since(DiffDecided) if event.decision == "kept"]
    demand(not kept, f"Expected no diff to be kept by quitting; {kept} was")


def _line(subject: Subject) -> Line:
    if subject.line is None:
        raise Cannot("there is no link to this editor")
    return subject.line
