"""The index of a transcript's file: as much of its tree as was asked for, read backwards, and what was added.

A file that is suddenly another one (shrunken, replaced, written over) is noticed when it is opened; then all that
was known of it is forgotten.

It does not know what is shown of a record.
"""

import contextlib
import errno
import os
from collections.abc import Iterator

from ide_bridge.home import open_regular, unusable
from ide_bridge.session.transcript.lines import Line, lines_after, lines_before, read_at
from ide_bridge.session.transcript.records import answer_of, read_head
from ide_bridge.session.transcript.tree import Kind, Tree, node_of

__all__ = ["Index"]

_FIRST_STEP = 256 * 1024
_LONGEST_STEP = 8 * 1024 * 1024
_MARK = 64
_BLOCK = 1024 * 1024
_BINARY = getattr(os, "O_BINARY", 0)
_NONE = -1


class Index:
    """Everything here but `opened` wants the file to be open. In the file of a session the records of sub-agents,
    which old CLIs put there too, are no part of the tree; in that of a sub-agent (`side`) all are."""

    def __init__(self, path: str, *, side: bool) -> None:
        self.path = path
        self.anew = False
        """Whether the file is another one than when it was opened before; whoever cares sets it back."""
        self._side = side
        self._file = _NONE
        self._size = 0
        self._identity: tuple[int, int] | None = None
        self._forget()

    def _forget(self) -> None:
        self.tree = Tree()
        self._begin = 0  # of what was read
        self._end: int | None = None  # where the next line begins
        self._mark = b""  # what stands before that
        self._half = 0  # how far there was no more than half a line
        self._step = _FIRST_STEP

    # -- the file -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Open the file; one that is not there yet is empty."""
        self._file = self._open()
        try:
            found = os.fstat(self._file) if self._file != _NONE else None
            self._look(found.st_size if found else 0, (found.st_dev, found.st_ino) if found else None)
            yield
        except OSError as error:
            raise unusable(self.path, error) from None
        finally:
            if self._file != _NONE:
                os.close(self._file)
            self._file = _NONE

    def _open(self) -> int:
        try:
            return open_regular(self.path, os.O_RDONLY | _BINARY, follow=True)
        except FileNotFoundError:
            return _NONE
        except (OSError, ValueError) as error:
            reason = error if isinstance(error, OSError) else OSError(errno.EINVAL, "it is no path")
            raise unusable(self.path, reason) from None

    def _look(self, size: int, identity: tuple[int, int] | None) -> None:
        known = self._end or 0
        same = identity == self._identity and size >= known
        if known and not (same and read_at(self._file, known - len(self._mark), len(self._mark)) == self._mark):
            self._forget()
            self.anew = True
        self._size, self._identity = size, identity

    def line(self, number: int) -> bytes:
        """A record as it stands in the file."""
        node = self.tree[number]
        return read_at(self._file, node.place, node.size)

    # -- reading ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Know the end of the file, unless something of it is known already."""
        if self._end is None:
            self._end = self._begin = self._size
            self._remember()
            self.back_up()

    def catch_up(self) -> None:
        """Know all that is new; the first time, only the end of the file."""
        if self._end is None:
            self.begin()
        else:
            self.read_on()

    def read_on(self, limit: int | None = None) -> list[int]:
        """Take in whole lines that were added, until they are more than so many bytes; gives their records."""
        start = self._end = self._end or 0
        added: list[int] = []
        if not self._has_news(start):
            return added
        for line in lines_after(self._file, start):
            self._end = line.after
            if (number := self._append(line)) is not None:
                added.append(number)
            if limit is not None and line.after - start > limit:
                break
        else:
            self._half = self._size
        self._remember()
        return added

    def back_up(self) -> bool:
        """Take in some more of what stands before; False if there is nothing."""
        goal = self._begin - self._step
        if self._begin <= 0:
            return False
        for line in lines_before(self._file, self._begin, block=self._step):
            if not self._prepend(line):
                self._end = line.place  # it is still being written
                self._remember()
            self._begin = line.place
            if line.place <= goal:
                break
        else:
            self._begin = 0
        self._step = min(2 * self._step, _LONGEST_STEP)
        return True

    def _append(self, line: Line) -> int | None:
        head = read_head(line.data) if line.data else None
        node = node_of(head, line.place, len(line.data)) if head and self._belongs(head.isSidechain) else None
        return None if node is None else self.tree.append(node)

    def _prepend(self, line: Line) -> bool:
        """Take in a line; False if it is only half of one. One that merely lacks its end is whole to a parser."""
        head = read_head(line.data)
        node = node_of(head, line.place, len(line.data)) if head and self._belongs(head.isSidechain) else None
        if node is not None:
            self.tree.prepend(node)
        return line.whole or head is not None

    def _belongs(self, is_sidechain: object) -> bool:
        return self._side or is_sidechain is not True

    def _has_news(self, start: int) -> bool:
        """Whether there is the end of a line in what was not looked at before: half a line may be long."""
        at = max(start, self._half)
        while at < self._size:
            data = read_at(self._file, at, _BLOCK)
            if not data or b"\n" in data:
                return bool(data)
            at += len(data)
        self._half = self._size
        return False

    def _remember(self) -> None:
        end = self._end or 0
        self._mark = read_at(self._file, max(0, end - _MARK), min(end, _MARK)) if end else b""

    # -- the tree -----------------------------------------------------------------------------------------------

    def parent(self, number: int) -> int | None:
        """The record before this one on its way, or, where that was lost, the one before it in the file."""
        uuid = self.tree[number].parent
        if uuid is None:
            return None
        while (found := self.tree.find(uuid, before=number)) is None and self.back_up():
            pass
        if found is not None:
            return found
        return number - 1 if number > self.tree.first else None

    def is_gap(self, number: int, parent: int) -> bool:
        """Whether something is missing between a record and what was found to be before it."""
        return self.tree[parent].uuid != self.tree[number].parent

    def same_answer(self, one: int, other: int) -> bool:
        """Whether two records are parts of one answer of the model."""
        if self.tree[one].kind != Kind.ANSWER or self.tree[other].kind != Kind.ANSWER:
            return False
        answer = answer_of(self.line(one))
        return answer is not None and answer == answer_of(self.line(other))

    def find(self, uuid: str) -> int | None:
        """The last record with this uuid."""
        while (found := self.tree.find(uuid)) is None and self.back_up():
            pass
        return found

    def at(self, place: int) -> int | None:
        """The record that begins at this place."""
        while self._begin > place and self.back_up():
            pass
        return self.tree.at(place)
