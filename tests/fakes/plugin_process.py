"""A plug-in without an editor: a program that speaks the link on its standard streams, in plain Python.

It is what the least of adapters needs: buffers, a cursor, windows as a list, diffs as a dictionary. Its user acts
through the requests ``conform/…``. Given a word on its command line it does one thing wrong, of those in `WRONG`.

It does not know the bridge: nothing of ours is imported.
"""

import json
import os
import subprocess
import sys

__all__ = ["WRONG", "Buffers", "main"]

FEATURES = ["selection", "diagnostics", "diff", "focus", "dirty"]
WRONG = (
    "bytes-columns",
    "utf16-columns",
    "string-ids",
    "keeps-on-quit",
    "tells-closed-diffs",
    "overwrites-dirty",
    "closes-dirty",
    "writes-kept-file",
    "adds-line-end",
    "loses-crlf",
    "lists-unnamed",
    "steals-focus",
    "ignores-unknown-requests",
    "answers-unknown-requests",
    "misspells-event",
    "misses-a-field",
    "relative-paths",
    "lines-from-one",
    "decides-twice",
    "mixes-up-diffs",
    "prints",
    "crashes-on-diff",
    "waits-for-the-user",
    "wrong-version",
    "no-hello",
    "out-of-order",
)


class Refusal(Exception):
    """What is answered as an error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Buffers:
    """What an editor is made of, and what its user may do; whatever happens is handed to `tell`."""

    def __init__(self, tell, wrong=""):
        self.tell = tell
        self.wrong = wrong
        self.texts = {}
        self.clean = {}
        self.windows = [None]  # what is in each; None is a buffer without a name
        self.cursors = {}
        self.selected = None
        self.anchor = None
        self.problems = {}
        self.diffs = {}

    # -- what the bridge asks ------------------------------------------------------------------------------

    def open_files(self):
        unnamed = [{"path": "", **self._about("")}] if self.wrong == "lists-unnamed" and not self.current else []
        return [{"path": self._path(path), **self._about(path)} for path in self.texts] + unnamed

    def current_file(self):
        return {"path": self.current, **self._about(self.current)} if self.current else None

    def selection(self):
        return self.selected

    def diagnostics(self, path=None):
        found = {file: problems for file, problems in self.problems.items() if path in (None, file)}
        return [{"path": file, "diagnostics": problems, "fresh": True} for file, problems in found.items()]

    def open_file(self, path, focus, start=None, end=None):
        known = path in self.texts
        self._load(path)
        if focus or self.wrong == "steals-focus":
            self._look_at(path)
            if start is not None:
                self._select(start, end or start)
        if not known:
            self.tell("fileOpened", {"path": path})
        return {}

    def save_file(self, path):
        if path not in self.texts:
            return {"saved": False}
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(self.texts[path])
        self.clean[path] = self.texts[path]
        self.tell("fileSaved", {"path": path})
        return {"saved": True}

    def close_file(self, path):
        if path not in self.texts or (self._is_dirty(path) and self.wrong != "closes-dirty"):
            return {"closed": False}
        self._forget(path)
        return {"closed": True}

    def read_buffer(self, path):
        return {"text": self.texts[path], "dirty": self._is_dirty(path)} if path in self.texts else None

    def show_diff(self, diff, path, contents, **_title):
        if self.wrong == "crashes-on-diff":
            os._exit(3)
        if self.wrong == "loses-crlf":
            contents = contents.replace("\r\n", "\n")
        self.diffs[diff] = [path, contents]
        return {}

    def close_diff(self, diff):
        if self.diffs.pop(diff, None) is not None and self.wrong == "tells-closed-diffs":
            self.tell("diffDecided", {"diff": diff, "decision": "rejected"})
        return {}

    def file_changed(self, path):
        untouched = path in self.texts and (not self._is_dirty(path) or self.wrong == "overwrites-dirty")
        if untouched and os.path.exists(path):
            del self.texts[path]
            self._load(path)

    # -- what its user does --------------------------------------------------------------------------------

    def open(self, path):
        self.open_file(path, focus=True)

    def place(self, line, column):
        self._select({"line": line, "column": column}, {"line": line, "column": column})

    def select(self, start, end):
        self._select(start, end)

    def select_lines(self, first, last):
        self._select({"line": first, "column": 0}, {"line": last, "column": len(self._lines()[last])})

    def type(self, text):
        offset = self._offset(self.cursors[self.current])
        before = self.texts[self.current]
        self.texts[self.current] = before[:offset] + text + before[offset:]

    def save(self):
        self.save_file(self.current)

    def close(self):
        self._forget(self.current)

    def split(self):
        self.windows.insert(0, self.windows[0])

    def tab(self):
        self.split()

    def scratch(self):
        self.windows[0] = None

    def mention(self, first=None, last=None):
        shift = 1 if self.wrong == "lines-from-one" else 0
        lines = {} if first is None else {"startLine": first + shift, "endLine": last + shift}
        self.tell("mentioned", {"path": self.current, **lines})

    def find(self, path, line, message):
        text = self.texts[path].splitlines()[line][:2]
        problem = {
            "start": {"line": line, "column": 0},
            "end": {"line": line, "column": self._column(text, len(text))},
            "severity": "error",
            "message": message,
        }
        self.problems.setdefault(path, []).append(problem)
        self.tell("diagnosticsChanged", {"paths": [path]})

    def keep(self, diff, contents=None):
        path, proposed = self.diffs.pop(diff)
        if self.wrong == "mixes-up-diffs" and self.diffs:
            proposed = next(iter(self.diffs.values()))[1]
        contents = proposed if contents is None else contents
        if self.wrong == "adds-line-end" and not contents.endswith("\n"):
            contents += "\n"
        if self.wrong == "writes-kept-file":
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(contents)
        for _ in range(2 if self.wrong == "decides-twice" else 1):
            self.tell("diffDecided", {"diff": diff, "decision": "kept", "contents": contents})

    def reject(self, diff):
        del self.diffs[diff]
        self.tell("diffDecided", {"diff": diff, "decision": "rejected"})

    def text(self, path):
        return self.texts[path]

    def cursor(self):
        return self.cursors[self.current]

    def layout(self):
        return list(self.windows)

    def quit(self):
        if self.wrong == "keeps-on-quit":
            for diff, (_path, contents) in self.diffs.items():
                self.tell("diffDecided", {"diff": diff, "decision": "kept", "contents": contents})

    # -- inside --------------------------------------------------------------------------------------------

    @property
    def current(self):
        return self.windows[0]

    def _about(self, path):
        lines = self.texts.get(path, "").splitlines()
        about = {
            "active": path == self.current,
            "dirty": self._is_dirty(path),
            "language": "",
            "lines": len(lines),
        }
        if self.wrong == "misses-a-field":
            del about["dirty"]
        return about

    def _is_dirty(self, path):
        return self.texts.get(path) != self.clean.get(path)

    def _path(self, path):
        return os.path.basename(path) if self.wrong == "relative-paths" else path

    def _load(self, path):
        if path not in self.texts:
            with open(path, encoding="utf-8", newline="") as file:
                self.texts[path] = self.clean[path] = file.read()
            self.cursors.setdefault(path, {"line": 0, "column": 0})

    def _look_at(self, path):
        self.windows[0] = path
        event = "filefocused" if self.wrong == "misspells-event" else "fileFocused"
        self.tell(event, {"path": path})
        self.place(**self.cursors[path])

    def _forget(self, path):
        self.windows = [window for window in self.windows if window != path] or [None]
        for kept in (self.texts, self.clean, self.cursors, self.problems):
            kept.pop(path, None)
        self.tell("fileClosed", {"path": path})

    def _lines(self):
        return self.texts[self.current].split("\n")

    def _offset(self, at):
        lines = self._lines()
        line = min(at["line"], len(lines) - 1)
        return sum(len(line) + 1 for line in lines[:line]) + min(at["column"], len(lines[line]))

    def _at(self, offset):
        before = self.texts[self.current][:offset]
        line = before.rpartition("\n")[2]
        return {"line": before.count("\n"), "column": len(line)}

    def _select(self, start, end):
        first, last = self._offset(start), self._offset(end)
        start, end = self._at(first), self._at(last)
        self.cursors[self.current] = start
        lines = [self._lines()[at["line"]] for at in (start, end)]
        self.selected = {
            "path": self.current,
            "text": self.texts[self.current][first:last],
            "start": {"line": start["line"], "column": self._column(lines[0], start["column"])},
            "end": {"line": end["line"], "column": self._column(lines[1], end["column"])},
            "startLineText": lines[0],
            "endLineText": lines[1],
        }
        self.tell("selectionChanged", self.selected)

    def _column(self, line, column):
        """Code points, as they are counted here; unless something is wrong."""
        if self.wrong == "bytes-columns":
            return len(line[:column].encode())
        if self.wrong == "utf16-columns":
            return len(line[:column].encode("utf-16-le")) // 2
        return column


VERBS = {
    "openFiles": "open_files",
    "currentFile": "current_file",
    "selection": "selection",
    "diagnostics": "diagnostics",
    "openFile": "open_file",
    "showDiff": "show_diff",
    "closeDiff": "close_diff",
    "saveFile": "save_file",
    "closeFile": "close_file",
    "readBuffer": "read_buffer",
}
DEEDS = (
    *("open", "place", "select", "select_lines", "type", "save", "close", "split", "tab", "scratch", "mention"),
    *("find", "keep", "reject", "text", "cursor", "layout", "quit"),
)


class Plugin:
    """The link: messages in, messages out."""

    def __init__(self, wrong, acts):
        self.wrong = wrong
        self.acts = acts
        self.buffers = Buffers(self.tell, wrong)

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, message):
        body = json.dumps(message).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        sys.stdout.buffer.flush()

    def say_hello(self):
        hello = {
            "link": 2 if self.wrong == "wrong-version" else 1,
            "editor": "Example",
            "version": "1.0",
            "features": FEATURES,
            "folders": [os.getcwd()],
            "pid": os.getpid(),
        }
        number = "one" if self.wrong == "string-ids" else 1
        self.send({"jsonrpc": "2.0", "id": number, "method": "hello", "params": hello})

    def run(self):
        if self.wrong == "prints":
            print("Example 1.0 is ready.", flush=True)
        if self.wrong != "no-hello":
            self.say_hello()
        for messages in received():
            for message in reversed(messages) if self.wrong == "out-of-order" else messages:
                self.take(message)
        return 0

    def take(self, message):
        if "method" in message and "id" in message:
            self.answer(message)
        elif message.get("method") == "fileChanged":
            self.buffers.file_changed(**message["params"])
        elif "error" in message:
            print(message["error"]["message"], file=sys.stderr)
            sys.exit(1)

    def answer(self, message):
        method, params = message["method"], message.get("params", {})
        if self.wrong == "waits-for-the-user" and method == "showDiff":
            return
        try:
            reply = {"result": self.serve(method, params)}
        except Refusal as refusal:
            if self.wrong == "ignores-unknown-requests":
                return
            reply = {"error": {"code": refusal.code, "message": str(refusal)}}
            if self.wrong == "answers-unknown-requests":
                reply = {"result": None}
        except (OSError, KeyError, TypeError) as error:
            reply = {"error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}}
        self.send({"jsonrpc": "2.0", "id": message["id"], **reply})
        if method == "conform/quit":
            sys.exit(0)

    def serve(self, method, params):
        name = VERBS.get(method)
        if name is None and self.acts and method.startswith("conform/") and method[8:] in DEEDS:
            name = method[8:]
        if name is None:
            raise Refusal(-32601, f"There is no {method}.")
        return getattr(self.buffers, name)(**params)


def received():
    """What has come since the last look, until nothing will come any more."""
    buffer = b""
    while data := os.read(sys.stdin.fileno(), 1 << 20):
        buffer += data
        messages = []
        while (end := buffer.find(b"\r\n\r\n")) >= 0:
            size = end + 4 + int(buffer[:end].partition(b":")[2])
            if len(buffer) < size:
                break
            messages.append(json.loads(buffer[end + 4 : size]))
            buffer = buffer[size:]
        yield messages


def attach(program):
    """Speak to a bridge instead of to whoever has started us, as the plug-in of an editor does."""
    relay = subprocess.Popen([program, "attach", os.getcwd()], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    os.dup2(relay.stdout.fileno(), sys.stdin.fileno())
    os.dup2(relay.stdin.fileno(), sys.stdout.fileno())
    relay.stdout.close()
    relay.stdin.close()


def main(words):
    """Speak the link; `alone`: without acting for a user; `attach PROGRAM`: to a bridge; `WRONG`."""
    if "attach" in words:
        attach(words[words.index("attach") + 1])
    wrong = next((word for word in words if word in WRONG), "")
    return Plugin(wrong, acts="alone" not in words).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
