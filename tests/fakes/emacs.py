"""A person at a real Emacs, in a terminal of its own.

What the person does is a command of Emacs' own loop, begun by a real key, so that everything happens which
happens after a user's command; decisions are the keys that a user presses. What the person sees is asked over
the socket that emacsclient uses.

It does not know the bridge: it starts the plug-in with a command line, whatever that is.
"""

import asyncio
import base64
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import tempfile
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ide_bridge.model import Position
from tests.fakes.programs import program

__all__ = ["PLUGIN", "EmacsPerson", "emacs", "emacs_daemon", "lisp"]

PLUGIN = Path(__file__).parents[2] / "editors" / "emacs"
PATIENCE = 20.0
POLL = 0.01
COLUMNS, LINES = 120, 40
DO = "\x03\x1e"  # C-c C-^, which nobody else binds

SETUP = """
(progn
  (setq create-lockfiles nil make-backup-files nil auto-save-default nil confirm-kill-processes nil
        vc-handled-backends nil inhibit-startup-screen t ring-bell-function #'ignore
        server-name "emacs" server-socket-dir {folder})
  (menu-bar-mode -1)
  (defvar person-task nil)
  (defvar person-done 0)
  (defun person-do ()
    (interactive)
    (let ((task person-task))
      (setq person-task nil)
      (unwind-protect (funcall task) (setq person-done (1+ person-done)))))
  (global-set-key (kbd "C-c C-^") #'person-do)
  (global-set-key (kbd "C-x C-^") #'person-do)
  (define-key minibuffer-local-map (kbd "C-c C-^") #'person-do)
  (with-eval-after-load 'ediff-util
    (add-hook 'ediff-keymap-setup-hook
              (lambda () (define-key ediff-mode-map (kbd "C-c C-^") #'person-do))))
  (require 'json)
  (require 'server)
  (server-start))
"""

FIND = """
(with-current-buffer (find-file-noselect {path})
  (require 'flymake)
  (setq-local flymake-diagnostic-functions
    (list (lambda (report &rest _)
            (save-excursion
              (goto-char (point-min))
              (forward-line {line})
              (funcall report
                (list (flymake-make-diagnostic (current-buffer) (point) (+ 2 (point)) :error {message})))))))
  (flymake-mode 1)
  (flymake-start))
"""

LAYOUT = """
(mapcar (lambda (window)
          (vector (buffer-name (window-buffer window)) (window-edges window) (window-point window)
                (eq window (selected-window))))
        (window-list nil nil (frame-first-window)))
"""


def lisp(value: str | Path | float | Sequence[str] | None) -> str:
    """A value as Emacs reads it."""
    if value is None:
        return "nil"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | Path):
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"(list {' '.join(map(lisp, value))})"


class EmacsPerson:
    """Sits at one Emacs, which runs until ``quit``."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int, socket: Path) -> None:
        self.pid = process.pid
        self.process = process
        self._terminal = terminal
        self.socket = socket

    async def open(self, path: str) -> None:
        # To visit a file anew that changed on disk would be a question of Emacs' own.
        await self.command(
            f"(switch-to-buffer (or (find-buffer-visiting {lisp(path)}) (find-file-noselect {lisp(path)})))"
        )

    async def place(self, line: int, column: int) -> None:
        await self.command(f"(deactivate-mark) {_go(line, column)}")

    async def select(self, start: Position, end: Position) -> None:
        await self.command(f"{_go(start.line, start.column)} (push-mark nil t t) {_go(end.line, end.column)}")

    async def select_lines(self, first: int, last: int) -> None:
        await self.command(f"{_go(first, 0)} (push-mark nil t t) (forward-line {last - first + 1})")

    async def type(self, text: str) -> None:
        await self.command(f"(insert {lisp(text)})")

    async def save(self) -> None:
        await self.command("(save-buffer)")

    async def close(self) -> None:
        await self.command("(set-buffer-modified-p nil) (kill-buffer)")

    async def split(self) -> None:
        await self.command("(split-window-below) (other-window 1)")

    async def tab(self) -> None:
        await self.command("(tab-new)")

    async def scratch(self) -> None:
        await self.command('(switch-to-buffer (generate-new-buffer "nameless"))')

    async def mention(self, first: int | None = None, last: int | None = None) -> None:
        if first is not None and last is not None:
            await self.select_lines(first, last)
        else:
            await self.command("(deactivate-mark)")
        await self.command("(call-interactively #'ide-bridge-send)")

    async def find(self, path: str, line: int, message: str) -> None:
        await self.command(FIND.format(path=lisp(path), line=line, message=lisp(message)))

    async def keep(self, diff: int, contents: str | None = None) -> None:
        await self.look_at(diff)
        await self.command(f"(pop-to-buffer (ide-bridge--proposed {_diff(diff)}))")
        if contents is not None:
            await self.command(f"(erase-buffer) (insert {lisp(contents)})")
        self.keys("\x03\x03")
        await self.until(f"(not {_diff(diff)})")

    async def reject(self, diff: int) -> None:
        await self.look_at(diff)
        await self.command(f"(pop-to-buffer (ide-bridge--diff-view {_diff(diff)}))")
        self.keys("q")
        await self.until("(active-minibuffer-window)")
        self.keys("n")
        await self.until(f"(not {_diff(diff)})")

    async def text(self, path: str) -> str:
        shown = await self.eval(
            f"(with-current-buffer (find-buffer-visiting {lisp(path)}) (ide-bridge--contents (current-buffer)))"
        )
        assert isinstance(shown, str)
        return shown

    async def cursor(self) -> Position:
        line, column = await self.eval("(list (1- (line-number-at-pos)) (- (point) (line-beginning-position)))")
        return Position(line, column)

    async def layout(self) -> object:
        return await self.eval(LAYOUT)

    async def quit(self) -> None:
        await self.stage("(setq kill-emacs-query-functions nil) (kill-emacs)")
        self.keys(DO)
        await asyncio.to_thread(self.process.wait, PATIENCE)

    async def look_at(self, diff: int) -> None:
        """Wait until a diff has come, and bring it to the screen if another one is there."""
        await self.until(_diff(diff))
        await self.until("(seq-some #'ide-bridge--diff-view ide-bridge--diffs)")
        if not await self.eval(f"(and (ide-bridge--diff-view {_diff(diff)}) t)"):
            await self.command(f"(ide-bridge--hide ide-bridge--shown) (ide-bridge--show {_diff(diff)})")
        await self.until(f"(get-buffer-window (ide-bridge--diff-view {_diff(diff)}))")

    async def command(self, forms: str) -> None:
        """Evaluate forms as a command of the user's."""
        done = await self.stage(forms)
        self.keys(DO)
        await self.until(f"(< {done} person-done)")

    async def stage(self, forms: str) -> int:
        """Prepare what the key will do; gives how often it was pressed."""
        done = await self.eval(f"(progn (setq person-task (lambda () {forms})) person-done)")
        assert isinstance(done, int)
        return done

    def keys(self, keys: str) -> None:
        """Press keys, as a terminal sends them."""
        os.write(self._terminal, keys.encode())

    async def cancel(self) -> None:
        """Leave the minibuffer by C-g; one that comes while Emacs answers us would cancel the answer."""
        async with asyncio.timeout(PATIENCE):
            while await self.eval("(if (active-minibuffer-window) t :json-false)"):
                self.keys("\x07")
                await asyncio.sleep(10 * POLL)

    async def until(self, condition: str, seconds: float = PATIENCE) -> None:
        """Wait until a form is true."""
        deadline = asyncio.get_running_loop().time() + seconds
        while not await self.eval(f"(if {condition} t :json-false)"):
            if asyncio.get_running_loop().time() > deadline:
                asked = await self.eval("(and (active-minibuffer-window) (minibuffer-prompt))")
                raise AssertionError(f"never true: {condition}\n{asked or ''}\n{await self.messages()}")
            await asyncio.sleep(POLL)

    async def messages(self) -> str:
        """What Emacs has said so far."""
        said = await self.eval("(with-current-buffer (messages-buffer) (buffer-string))")
        assert isinstance(said, str)
        return said

    async def eval(self, form: str) -> Any:
        """The value of a form, looked at in the buffer that the user looks at."""
        asked = f"(with-current-buffer (window-buffer) (json-encode {form}))"
        printed = await self._ask(f"(base64-encode-string (encode-coding-string {asked} 'utf-8) t)")
        return json.loads(base64.b64decode(printed.strip().strip('"')))

    async def _ask(self, form: str) -> str:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(str(self.socket), limit=1 << 26)
            try:
                writer.write(f"-eval {_quoted(form)} \n".encode())
                reply = (await reader.read(-1)).decode()
            finally:
                writer.close()
        words = dict(line.split(" ", 1) for line in reply.splitlines() if " " in line)
        assert "-error" not in words, f"{_unquoted(words.get('-error', ''))}\nin {form}"
        printed = [line.split(" ", 1)[1] for line in reply.splitlines() if line.startswith("-print")]
        return _unquoted("".join(printed))


@asynccontextmanager
async def emacs(
    folder: Path, environment: Mapping[str, str], command: Sequence[str], *forms: str, start: bool = True
) -> AsyncIterator[EmacsPerson]:
    """An Emacs in a folder, attached by a command; forms are the user's own init file."""
    with tempfile.TemporaryDirectory(prefix="emacs-") as private:
        person = _start(folder, environment, Path(private), forms)
        try:
            await _ready(person)
            await person.command(f"(setq ide-bridge-command {lisp(command)})")
            if start:
                await person.command(f"(ide-bridge-start {lisp(folder)})")
                await person.until("(seq-every-p #'ide-bridge--ready ide-bridge--links)")
            yield person
        finally:
            _end(person)


@asynccontextmanager
async def emacs_daemon(
    folder: Path, environment: Mapping[str, str], command: Sequence[str]
) -> AsyncIterator[EmacsPerson]:
    """An Emacs that is attached and has no frame yet; emacsclient finds it at ``socket``."""
    with tempfile.TemporaryDirectory(prefix="emacs-") as private:
        process = subprocess.Popen(
            [program("emacs"), "--fg-daemon", *_arguments(Path(private), ())],
            cwd=folder, env=dict(environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            person = EmacsPerson(process, -1, Path(private) / "emacs")
            await _ready(person)
            started = f"(setq ide-bridge-command {lisp(command)}) (ide-bridge-start {lisp(folder)})"
            await person.eval(f"(progn {started} t)")
            await person.until("(seq-every-p #'ide-bridge--ready ide-bridge--links)")
            yield person
        finally:
            process.kill()
            process.wait(PATIENCE)


def _arguments(private: Path, forms: Sequence[str]) -> list[str]:
    evaluated = [SETUP.format(folder=lisp(private)), *forms]
    return [
        "-Q",
        "-L",
        str(PLUGIN),
        "-l",
        "ide-bridge",
        *(word for form in evaluated for word in ("--eval", form)),
    ]


def _start(folder: Path, environment: Mapping[str, str], private: Path, forms: Sequence[str]) -> EmacsPerson:
    terminal, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        # Without a terminal that is its own, Emacs would not start.
        [program("setsid"), "--ctty", program("emacs"), "-nw", *_arguments(private, forms)],
        cwd=folder,
        env={**environment, "TERM": "vt220"},
        stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    os.set_blocking(terminal, False)
    asyncio.get_running_loop().add_reader(terminal, _swallow, terminal)
    return EmacsPerson(process, terminal, private / "emacs")


def _swallow(terminal: int) -> None:
    """What Emacs draws must be read, or it waits until somebody does."""
    try:
        os.read(terminal, 1 << 16)
    except BlockingIOError:
        pass
    except OSError:  # Emacs is gone
        asyncio.get_running_loop().remove_reader(terminal)


async def _ready(person: EmacsPerson) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await person.eval("t")
            except (FileNotFoundError, ConnectionError, json.JSONDecodeError):
                assert person.process.poll() is None, "Emacs did not start"
                await asyncio.sleep(POLL)
            else:
                return


def _end(person: EmacsPerson) -> None:
    if person.process.poll() is None:
        person.process.send_signal(signal.SIGKILL)
        person.process.wait(PATIENCE)
    asyncio.get_running_loop().remove_reader(person._terminal)
    os.close(person._terminal)


def _diff(number: int) -> str:
    return f"(seq-find (lambda (diff) (eql {number} (ide-bridge--diff-id diff))) ide-bridge--diffs)"


def _go(line: int, column: int) -> str:
    return f"(goto-char (point-min)) (forward-line {line}) (forward-char {column})"


def _quoted(text: str) -> str:
    quoted = text.replace("&", "&&").replace(" ", "&_").replace("\n", "&n")
    return f"&{quoted}" if quoted.startswith("-") else quoted


def _unquoted(text: str) -> str:
    return text.replace("&_", " ").replace("&n", "\n").replace("&-", "-").replace("&&", "&")
