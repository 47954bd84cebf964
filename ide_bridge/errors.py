"""The one tree of errors: what can go wrong, in words a user can act on.

::

    BridgeError                 -32603  anything below; its text may be shown to anyone
    ├── ParseError              -32700  not JSON
    ├── InvalidRequest          -32600  JSON, but not JSON-RPC 2.0
    ├── MethodNotFound          -32601
    ├── InvalidParams           -32602  the caller must ask differently
    │   └── PathRefused         -32602  the path leaves the workspace or is no ordinary path
    ├── FileProblem             -32603  the workspace allows it, the file system does not
    ├── NotShared               -32603  the user keeps this file to himself
    ├── Unsupported             -32603  the editor cannot do this
    ├── RemoteError           its own   the other end answered with an error
    ├── Disconnected            -32603  the other end is gone
    └── SetupProblem            -32603  the bridge cannot start or be reached as asked

It does not know who shows the text, or how it travels.
"""

__all__ = [
    "BridgeError",
    "Disconnected",
    "FileProblem",
    "InvalidParams",
    "InvalidRequest",
    "MethodNotFound",
    "NotShared",
    "ParseError",
    "PathRefused",
    "RemoteError",
    "SetupProblem",
    "Unsupported",
]


class BridgeError(Exception):
    """Root of the tree; ``str(error)`` is one sentence that leaks nothing."""

    code: int = -32603


class ParseError(BridgeError):
    """The bytes are not JSON."""

    code = -32700


class InvalidRequest(BridgeError):
    """The JSON is not a JSON-RPC 2.0 message."""

    code = -32600


class MethodNotFound(BridgeError):
    """Nobody here answers to that name."""

    code = -32601


class InvalidParams(BridgeError):
    """The parameters do not fit the method."""

    code = -32602


class PathRefused(InvalidParams):
    """The path may not be touched, whatever lies there."""


class FileProblem(BridgeError):
    """A permitted path that the file system could not serve."""


class NotShared(BridgeError):
    """A file inside the workspace that is kept from clients."""


class Unsupported(BridgeError):
    """The editor does not offer this."""


class RemoteError(BridgeError):
    """An error the other end sent as the answer to our request."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.remote_code = code


class Disconnected(BridgeError):
    """The other end went away before it answered."""


class SetupProblem(BridgeError):
    """The surroundings do not allow what was asked; the text says what to change."""
