"""``ide-bridge record FILE``: write down what clients and this folder's bridge say to each other.

One JSON object per line: ``t`` in milliseconds, ``dir`` (CONNECT, OPEN, C>S, S>C, CLOSE, LOST), ``conn``, and the
message as ``msg``, or as ``raw`` if it is no JSON. Every line is in the file before the next message is looked at.

It does not know what the messages mean; the bridge has masked the token in them already.
"""

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from ide_bridge.cli.reach import Conversation, here
from ide_bridge.errors import SetupProblem
from ide_bridge.running import find

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ide_bridge.running import Running

__all__ = ["add_arguments", "run"]

_ENDED_BY = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Record(msgspec.Struct):
    dir: str
    count: int = 0


class _Message(msgspec.Struct):
    id: int | None = None
    params: Raw = Raw(b"")


_decode_message = msgspec.json.Decoder(_Message).decode
_decode_record = msgspec.json.Decoder(_Record).decode


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of ``record``."""
    parser.add_argument("file", metavar="FILE", help="a new file, or - for the standard output")


def run(args: "argparse.Namespace") -> int:
    """Record until Ctrl-C, or until the bridge stops."""
    folder = here()
    bridge = find(folder)
    if bridge is None:
        raise SetupProblem(f"No bridge is running for {folder}; start one with: ide-bridge serve")
    with Conversation(bridge) as conversation, _ending_politely(conversation):
        conversation.request("record")
        with _output(args.file) as output:
            written = _Written(args.file, output, bridge)
            stopped = _record(conversation, written)
    written.sum_up(stopped=stopped)
    return 0


class _Written:
    """What is in the file so far, and what a person is told of it."""

    def __init__(self, name: str, output: int, bridge: "Running") -> None:
        self._name = "the standard output" if name == "-" else name
        self._output = output
        self._messages = 0
        self._lost = 0
        self._watched = sys.stderr.isatty() and not os.isatty(output)
        folders = ", ".join(bridge.folders)
        self._tell(f"Recording what clients and the bridge for {folders} say to each other, into {self._name}.\n")
        self._tell("The token is masked; the contents of files are not. Ctrl-C ends it.\n")

    def add(self, line: Raw) -> None:
        """Write one record, whole."""
        record = _decode_record(line)
        self._lost += record.count
        self._messages += record.dir in {"C>S", "S>C"}
        rest = memoryview(bytes(line) + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._output, rest) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SetupProblem(f"{self._name} cannot be written any further: {error.strerror}.") from None

    def count(self) -> None:
        """Show how many there are."""
        self._tell(f"\r{self._counted}")

    def sum_up(self, *, stopped: bool) -> None:
        """Say what there is, and what is missing."""
        why = " The bridge has stopped." if stopped else ""
        self._tell(f"\r{self._counted} in {self._name}.{why}\n")
        if self._lost:
            lost = f"{self._lost} messages came faster than they could be written and are missing"
            print(f"ide-bridge: {lost}; the lines with LOST say where.", file=sys.stderr)

    @property
    def _counted(self) -> str:
        return f"{self._messages} message{'' if self._messages == 1 else 's'}"

    def _tell(self, text: str) -> None:
        if self._watched:
            print(text, end="", file=sys.stderr, flush=True)


def _record(conversation: Conversation, written: _Written) -> bool:
    """Write until the bridge says that this was all, or is gone; whether it is gone."""
    for frames in conversation.messages():
        for message in map(_decode_message, frames):
            if message.id is not None:
                return False
            written.add(message.params)
        written.count()
    return True


@contextmanager
def _ending_politely(conversation: Conversation) -> "Iterator[None]":
    """Let the first signal ask for the rest of the recording, and the second one end us at once."""

    def end(*_signal: object) -> None:
        for number in _ENDED_BY:
            signal.signal(number, signal.SIG_DFL)
        conversation.send("record", {"on": False})

    before = {number: signal.signal(number, end) for number in _ENDED_BY}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _output(name: str) -> "Iterator[int]":
    """A file that only we can read, and that was not there before."""
    if name == "-":
        yield sys.stdout.fileno()
        return
    try:
        output = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise SetupProblem(f"{name} exists already; choose another name or remove it first.") from None
    except OSError as error:
        raise SetupProblem(f"{name} cannot be written: {error.strerror}.") from None
    try:
        yield output
    finally:
        os.close(output)
