"""``ide-bridge session show [SESSION]``: the conversation of a session, from its transcript.

Every session of Claude Code has one, also those that no bridge ever ran; and no bridge need run to read it.

It does not know how a transcript is kept.
"""

import sys
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.text import Text

from ide_bridge.cli.printable import json_text
from ide_bridge.cli.reach import here
from ide_bridge.cli.session.past import origin_of
from ide_bridge.cli.session.render import Story, indented
from ide_bridge.cli.session.screen import rendered
from ide_bridge.errors import SetupProblem
from ide_bridge.session import events
from ide_bridge.session.approvals.titles import title_of
from ide_bridge.session.transcript import Page, Transcript
from ide_bridge.session.transcript import shown as told
from ide_bridge.session.transcript.past import past_sessions
from ide_bridge.session.transcript.places import find_transcript

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rich.console import RenderableType

    from ide_bridge.cli.session.line import AnyEvent

__all__ = ["print_newest", "show"]

_PAGE = 50
_LARGE_PAGE = 1000


def show(args: "argparse.Namespace") -> int:
    """Print the newest page of the conversation, or all of it."""
    path, folder = _transcript(args.session)
    pages = _pages(Transcript(path), everything=args.all)
    if args.json:
        for thing in (thing for page in pages for thing in page.shown):
            print(json_text(msgspec.to_builtins(thing)))
        return 0
    _print(pages, folder, "--all")
    return 0


def print_newest(session: str, folder: str) -> None:
    """Print the newest page of a conversation, if there is one."""
    path = find_transcript(session, folder)
    if path is not None:
        pages = _pages(Transcript(path), everything=False)
        _print(pages, folder, f"ide-bridge session show {session[:8]} --all")


def _print(pages: list[Page], folder: str, more: str) -> None:
    shower = _Shower(folder)
    if pages[0].before is not None:
        shower.print([Text(f"… for what was before: {more}", "dim")])
    for thing in (thing for page in pages for thing in page.shown):
        shower.show(thing)


def _transcript(word: str | None) -> tuple[str, str]:
    """The file, and the folder the session belongs to."""
    if word is None:
        newest = past_sessions(here(), limit=1)
        if not newest:
            raise SetupProblem(
                f"There is no conversation of {here()}; see others with: ide-bridge session list --all"
            )
        return newest[0].path, newest[0].folder
    origin = origin_of(word)
    path = find_transcript(origin.session, origin.folder)
    if path is None:
        raise SetupProblem(f"Session {origin.session[:8]} has no transcript yet; nothing was said in it.")
    return path, origin.folder


def _pages(transcript: Transcript, *, everything: bool) -> list[Page]:
    """The pages to show, the oldest first."""
    pages = [transcript.page(limit=_LARGE_PAGE if everything else _PAGE)]
    while everything and pages[-1].before is not None:
        pages.append(transcript.page(pages[-1].before, _LARGE_PAGE))
    return pages[::-1]


class _Shower:
    """Prints what was said and done in the words in which it was told when it happened."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._console = Console()
        self._is_plain = not sys.stdout.isatty()
        self._story = Story(plain=self._is_plain)

    def show(self, thing: told.Shown) -> None:
        for event in self._events(thing):
            self.print(self._story.tell(event))
        if isinstance(thing, told.Summary):
            self.print(self._story.line(indented(thing.text, "dim", "  │ ")))

    def print(self, what: "list[RenderableType]") -> None:
        if self._is_plain:
            text = "".join(f"{each.plain}\n" for each in what if isinstance(each, Text))
        else:
            text = rendered(self._console, what)
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding), end="")

    def _events(self, thing: told.Shown) -> "Iterator[AnyEvent]":
        match thing:
            case told.Prompt():
                yield events.Prompt(thing.uuid, thing.text)
            case told.Command():
                yield events.Prompt(thing.uuid, f"{thing.name} {thing.arguments}".strip())
            case told.Said():
                yield events.Said(thing.text)
            case told.Thinking():
                yield events.Thinking(thing.text)
            case told.Tool():
                yield events.Tool(
                    thing.id, thing.tool, title_of(thing.tool, thing.input, self._folder), thing.input
                )
            case told.ToolResult():
                yield events.ToolResult(thing.id, thing.ok, thing.text)
            case told.Notice():
                yield events.Notice(thing.level, thing.text)
            case told.Compacted():
                yield events.Notice("info", "The conversation was compacted; the model goes on from a summary.")
            case told.Interrupted():
                yield events.Notice("warning", "Interrupted by the user.")
            case _:
                pass
