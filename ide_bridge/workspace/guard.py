"""The guard: turns what a client calls a path into an open file of the workspace, or refuses.

It does not know what files contain, who asks, or which files the user keeps to himself; for the last it asks
`permit`, and before something is written `permit_writing`, with the place as it was named and again with the place
where its links end.
"""

import errno
import functools
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from ide_bridge.errors import FileProblem, PathRefused
from ide_bridge.workspace import places
from ide_bridge.workspace.beneath import Spot, Walk, Way, best_way, irregular, open_without_links
from ide_bridge.workspace.places import Place, Root

__all__ = ["Guard", "Permit", "Place", "Root", "file_problem"]

Permit = Callable[[Place], None]
"""Raises `NotShared` (or another `BridgeError`) for a place that is not to be touched."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_WORDS = {errno.ENOENT: "File not found", errno.ENXIO: "Not a regular file", errno.EISDIR: "Is a directory"}


class Guard:
    """The folders of a workspace as the only part of the disk there is.

    Nothing is held open between calls: a root is opened anew for each, so one that was deleted and made again
    is simply there again, and `set_folders` cannot pull a descriptor away from a thread that uses it.
    """

    def __init__(
        self,
        folders: Sequence[str],
        *,
        permit: Permit | None = None,
        permit_writing: Permit | None = None,
        way: Way | None = None,
    ) -> None:
        self._permit = permit
        self._permit_writing = permit_writing
        self._given_way = way
        self.set_folders(folders)

    @functools.cached_property
    def _way(self) -> Way:
        return self._given_way or best_way()

    def set_folders(self, folders: Sequence[str]) -> None:
        """Take other folders from now on; places in a folder that left are refused."""
        if not folders:
            raise ValueError("a workspace has at least one folder")
        names = places.root_names([os.path.realpath(folder) for folder in folders])
        self.roots = tuple(map(Root.of, folders, names))

    def locate(self, path: str) -> Place:
        """Apply the rules for paths; raises `PathRefused` without a look at the disk.

        An absolute path that begins with a root lies in that root (of several, the first). Every other path
        means the first root, with or without ``/`` in front. One exception, for paths as `listFiles` prints
        them: if the path has no ``/`` in front, its first part is the name of a further root, and the first
        root has no entry of that name at this moment, it means the further root. So the first root always
        wins, ``/name/file`` always means the first root, and an absolute path is never ambiguous. Only for
        this one question is the disk asked.
        """
        places.check_text(path)
        for root in self.roots:
            if (rest := places.within(path, root)) is not None:
                return Place(root, "/".join(places.split(rest)))
        if places.WINDOWS:
            places.check_windows_start(path)
        parts = places.split(path)
        if len(self.roots) > 1 and parts and path[0] != "/":
            return self._locate_by_name(parts)
        return Place(self.roots[0], "/".join(parts))

    def _locate_by_name(self, parts: list[str]) -> Place:
        first, *others = self.roots
        for root in others:
            if root.name == parts[0] and not os.path.lexists(os.path.join(first.path, root.name)):
                return Place(root, "/".join(parts[1:]))
        return Place(first, "/".join(parts))

    def open(self, place: Place, flags: int, mode: int = 0o666) -> int:
        """Open a regular file and return its descriptor; see `open_file`."""
        return self.open_file(place, flags, mode)[0]

    def open_file(self, place: Place, flags: int, mode: int = 0o666) -> tuple[int, os.stat_result]:
        """Open a regular file of the workspace; return its descriptor and what is known of it.

        The descriptor does not block: there are file systems on which a regular file has no end, and waits.

        Raises:
            PathRefused: a link leads out of the workspace, or something of git's is to be written.
            FileProblem: the file system says no.
        """
        writing = bool(flags & _WRITING)
        try:
            descriptor = self._open(place, flags, mode, self._allow_writing if writing else self._allow)
        except OSError as error:
            raise file_problem("write" if writing else "read", error) from error
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            os.close(descriptor)
            raise file_problem("write" if writing else "read", irregular(info))
        return descriptor, info

    def _open(self, place: Place, flags: int, mode: int, allow: Permit) -> int:
        allow(place)
        if self._way is Way.KERNEL and place.relative:
            descriptor = open_without_links(place.root.path, place.relative, flags, mode)
            if descriptor >= 0:
                return descriptor
        with Walk(self.roots, self._way).to(place, allow) as spot:
            return spot.folder.open(spot.name, flags, mode)

    def enter(self, place: Place) -> AbstractContextManager[Spot]:
        """Hold open the folder a file is to be written in, making it and its parents if need be.

        May raise `OSError` as it comes from the system.
        """
        self._allow_writing(place)
        return Walk(self.roots, self._way).to(place, self._allow_writing, make_parents=True)

    def remove_folders(self, place: Place, count: int) -> None:
        """Remove up to `count` folders above a file, the innermost first, as far as they are empty."""
        Walk(self.roots, self._way).remove_empty(place.root, place.relative.split("/")[:-1], count)

    def check_names(self, place: Place, info: os.stat_result) -> None:
        """Refuse to write a file in place that is one of git's by another name (a hard link).

        Looked at are the repository the file lies in and those of the roots, which takes a moment.
        """
        from ide_bridge.workspace.repository import find  # noqa: PLC0415  few files have several names

        folders = (os.path.dirname(place.path), *(root.path for root in self.roots))
        if any(repository.holds(info) for repository in set(filter(None, map(find, folders)))):
            raise PathRefused("nothing under .git is written, and the file is linked there")

    def exists(self, place: Place) -> bool:
        """Whether a file or folder lies there that can be reached without leaving the workspace."""
        try:
            with Walk(self.roots, self._way).to(place, self._allow_any) as spot:
                return spot.folder.has(spot.name)
        except IsADirectoryError:
            return True
        except (OSError, PathRefused):
            return False

    def _allow_any(self, place: Place) -> None:
        if place.root not in self.roots:
            raise PathRefused("the folder is no longer part of the workspace")

    def _allow(self, place: Place) -> None:
        self._allow_any(place)
        if self._permit is not None:
            self._permit(place)

    def _allow_writing(self, place: Place) -> None:
        if places.inside_git(place.path):
            raise PathRefused("nothing under .git is written")
        if self._permit_writing is not None:
            self._permit_writing(place)
        self._allow(place)


def file_problem(verb: str, error: OSError) -> FileProblem:
    """Say in one sentence, without a path, what the system said."""
    number = error.errno or errno.EIO
    return FileProblem(f"failed to {verb} file: {_WORDS.get(number) or os.strerror(number)}")
