"""The relay: a plug-in's standard streams on one side, the bridge's private socket on the other.

A plug-in starts it and never sees sockets, ports or tokens. It finds the bridge of a folder, or starts one, and
copies whole messages both ways.

1. What comes from the plug-in goes to the bridge that is there now; while there is none, it waits.
2. The first message, the plug-in's ``hello``, is remembered. When the bridge dies, one is started in its place,
   is told the same ``hello``, and its answer is kept from the plug-in. All that the plug-in notices is that the
   diffs are closed for which nobody waits any more.
3. A bridge that stops on purpose says ``goodbye`` first; that is the end, and a good one.
4. A message is passed on whole or not at all: half of one would be the end of the other side's understanding.
5. When the plug-in's end closes, the relay ends and the bridge stays.

It does not know what the messages mean. It stands alone, because an editor waits for it: two threads, and
nothing that takes time to import.
"""

import _socket  # the rest of `socket` takes as long to import as Python to start
import _thread
import os
import sys
import time

from ide_bridge.errors import SetupProblem
from ide_bridge.plain_json import from_json
from ide_bridge.running import Running, find_or_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["GOODBYE", "Relay", "frames"]

GOODBYE = b'{"jsonrpc":"2.0","method":"goodbye"}'

_DIFFS_CLOSED = (
    '{"jsonrpc":"2.0","method":"message","params":{"level":"warning",'
    '"text":"The bridge had to be restarted, and the diffs that were open are closed; decide in the terminal."}}'
)

_STDIN, _STDOUT = 0, 1
_HEAD = 256
_CHUNK = 256 * 1024
_HEADER_LIMIT = 8 * 1024
_BODY_LIMIT = 512 * 1024 * 1024
_POLL_SECONDS = 0.01
_HOPELESS_DEATHS = 5
_HOPELESS_SECONDS = 30.0


class Relay:
    """One plug-in's way to the bridge of its folders."""

    def __init__(self, folders: "Sequence[str]") -> None:
        self._folders = [os.path.realpath(folder) for folder in folders]
        self._workspace: list[str] = []
        self._hello: bytes | None = None
        self._answered = False
        self._diffs: set[object] = set()
        self._deaths: list[float] = []
        self._line = self._reach()
        self._news = _news_of(self._line)

    def run(self) -> None:
        """Relay until one side has nothing more to say; ends the process."""
        _thread.start_new_thread(self._bring_messages, ())
        for frame in frames(lambda: os.read(_STDIN, _CHUNK)):
            self._deliver(frame)
            self._hello = self._hello or frame
            if b'"diffDecided"' in frame:
                self._diffs.discard(_decided(frame))
        self._end(0)

    def _bring_messages(self) -> None:
        """From the bridge to the plug-in, also from those that come after it."""
        try:
            while True:
                if self._bring_until_gone():
                    self._end(0)
                self._return()
        except SetupProblem as problem:
            self._end(1, str(problem))
        except BaseException as error:  # noqa: BLE001 - a thread that ends silently would leave a relay that is deaf
            self._end(1, f"The relay broke down: {type(error).__name__}: {error}.")

    def _bring_until_gone(self) -> bool:
        """Pass on what one bridge says; whether it has said goodbye in the end."""
        for frame in self._news:
            if frame.endswith(GOODBYE):
                return True
            self._tell(frame)
            self._answered = True
            self._diffs |= _diff_in(frame, b"showDiff")
            self._diffs -= _diff_in(frame, b"closeDiff")
        return False

    def _tell(self, frame: bytes) -> None:
        try:
            _write(_STDOUT, frame)
        except OSError:  # the plug-in does not listen any more
            self._end(0)

    def _deliver(self, frame: bytes) -> None:
        """Give a message to the bridge that is there, or to the one that comes after it."""
        while True:
            line = self._line
            try:
                return line.sendall(frame)
            except OSError:
                while self._line is line:
                    time.sleep(_POLL_SECONDS)

    def _return(self) -> None:
        """Find or start a bridge in place of one that died, and introduce the plug-in to it."""
        now = time.monotonic()
        self._deaths = [death for death in self._deaths if now - death < _HOPELESS_SECONDS] + [now]
        if len(self._deaths) > _HOPELESS_DEATHS:
            raise _hopeless()
        while not self._is_introduced(line := self._reach()):
            line.close()
            if time.monotonic() - now > _HOPELESS_SECONDS:
                raise _hopeless()
            time.sleep(_POLL_SECONDS)
        self._close_diffs()
        self._line = line  # only now, or what waits to be delivered would come before the hello

    def _is_introduced(self, line: _socket.socket) -> bool:
        """Say hello again; False for a bridge that was just dying and could still be reached."""
        self._news, hello = _news_of(line), self._hello
        if hello is None:
            return True
        try:
            line.sendall(hello)
        except OSError:
            return False
        return not self._answered or self._skip_answer(_message(hello).get("id"))

    def _close_diffs(self) -> None:
        """Close what the bridge that died had shown; the answers fit no question of the one that is there now."""
        for number in list(self._diffs):
            self._tell(_framed(f'{{"jsonrpc":"2.0","id":1,"method":"closeDiff","params":{{"diff":{number}}}}}'))
        if self._diffs:
            self._tell(_framed(_DIFFS_CLOSED))
        self._diffs.clear()

    def _skip_answer(self, asked: object) -> bool:
        """Keep the answer to a repeated hello from the plug-in, which has one already; False if none comes."""
        for frame in self._news:
            message = _message(frame)
            if "method" not in message and message.get("id") == asked:
                return True
            self._tell(frame)
        return False

    def _reach(self) -> _socket.socket:
        deadline = time.monotonic() + _HOPELESS_SECONDS
        while True:
            bridge = find_or_start(self._folders[0], self._workspace)
            line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                line.connect(str(bridge["socket"]))
            except OSError as error:  # it is just ending, or just beginning
                line.close()
                if time.monotonic() > deadline:
                    raise _deaf(bridge, error) from None
                time.sleep(_POLL_SECONDS)
                continue
            self._workspace = bridge.claimed
            return line

    def _end(self, code: int, sentence: str = "") -> None:
        """End the process from whichever thread, whatever the other one waits for."""
        if sentence:
            _write(sys.stderr.fileno(), f"ide-bridge: {sentence}\n".encode(errors="replace"))
        os._exit(code)


def frames(read: "Callable[[], bytes]") -> "Iterator[bytes]":
    """Whole messages, each with its header, for as long as there is something to read."""
    buffer = bytearray()
    while data := read():
        buffer += data
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            size = end + 4 + _length(bytes(buffer[: end + 4]))
            if len(buffer) < size:
                break
            yield bytes(buffer[:size])
            del buffer[:size]
        if end < 0 and len(buffer) > _HEADER_LIMIT:
            raise _unreadable()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
            if length <= _BODY_LIMIT:
                return length
    raise _unreadable()


def _news_of(line: _socket.socket) -> "Iterator[bytes]":
    """What the bridge at the other end says, message by message, until it is gone."""
    return frames(lambda: _received(line))


def _received(line: _socket.socket) -> bytes:
    try:
        return line.recv(_CHUNK)
    except OSError:  # killed in the middle of a word
        return b""


def _message(frame: bytes) -> dict[str, object]:
    try:
        message = from_json(frame.partition(b"\r\n\r\n")[2].decode())
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _framed(message: str) -> bytes:
    return f"Content-Length: {len(message)}\r\n\r\n{message}".encode("ascii")


def _diff_in(frame: bytes, method: bytes) -> set[object]:
    """The number of the diff that a bridge's message is about, found without reading what may be megabytes."""
    head = frame[:_HEAD]
    if b'"method":"%b"' % method not in head:
        return set()
    digits = head.partition(b'"diff":')[2]
    end = next((at for at, digit in enumerate(digits) if not 48 <= digit <= 57), len(digits))
    return {int(digits[:end])} if end else set()


def _decided(frame: bytes) -> object:
    """The number of the diff that a plug-in's message decides."""
    params = _message(frame).get("params")
    return params.get("diff") if isinstance(params, dict) else None


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _unreadable() -> SetupProblem:
    return SetupProblem("A message has no usable Content-Length; speak the link protocol, see editors/README.md.")


def _hopeless() -> SetupProblem:
    return SetupProblem("The bridge dies again and again; see why with: ide-bridge serve")


def _deaf(bridge: Running, error: OSError) -> SetupProblem:
    return SetupProblem(f"The bridge with pid {bridge.pid} does not answer: {error.strerror}; end it, try again.")
