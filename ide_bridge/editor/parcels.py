"""Parcels: large contents handed to a plug-in, and taken from it, as private files instead of messages.

Some editors need seconds to parse a message of a megabyte; a file of that size they read in no time.

It does not know what a diff is but its number.
"""

import os
import shutil
import tempfile
from contextlib import suppress

from ide_bridge.errors import InvalidParams, Unsupported
from ide_bridge.home import open_regular, private_folder, state_folder

__all__ = ["Parcels"]

WORTH_BYTES = 256 * 1024
_LIMIT = 256 * 1024 * 1024


class Parcels:
    """The files that one plug-in was given and has not done with."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._packed: dict[int, str] = {}

    def worth(self, contents: str) -> bool:
        """Whether a text is large enough to travel as a file."""
        return len(contents) > WORTH_BYTES

    def pack(self, number: int, contents: str) -> str:
        """Put a text into a file that only this user can read; gives its path."""
        try:
            if self._folder is None:
                self._folder = tempfile.mkdtemp(prefix="parcels-", dir=private_folder(state_folder()))
            path = os.path.join(self._folder, str(number))
            with open(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(contents.encode(errors="surrogatepass"))
        except OSError as error:
            raise Unsupported(f"The proposed text cannot be handed to the editor: {error.strerror}.") from None
        self._packed[number] = path
        return path

    def receive(self, path: str) -> str:
        """The text of a file that a plug-in has written, which is removed."""
        try:
            with open(open_regular(path, os.O_RDONLY), "rb") as file:
                if os.fstat(file.fileno()).st_uid != os.getuid():
                    raise InvalidParams(f"{path} belongs to another user.")
                contents = file.read(_LIMIT).decode()
            os.unlink(path)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidParams(f"{path} cannot be read: {error}.") from None
        return contents

    def discard(self, number: int) -> None:
        """Remove the file of a diff that is over."""
        if (path := self._packed.pop(number, None)) is not None:
            with suppress(OSError):
                os.unlink(path)

    def close(self) -> None:
        """Remove them all."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
