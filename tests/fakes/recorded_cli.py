"""A CLI that speaks as the recorded ones do, without a model: a real process, quick to start, that can misbehave.

``COMMAND`` starts it. It answers ``--version``, honours ``--session-id``, ``--resume``, ``--fork-session``,
``--resume-session-at``, ``--model`` and ``--permission-mode``. Below ``CLAUDE_CONFIG_DIR``, if that is set, it
writes its transcript, where and as the real one does. A prompt may hold commands, each on a line of its own:

====================  =============================================================================================
``@text WORDS``       say this; without any ``@text`` or ``@events``: ``fake answer: `` and the rest of the prompt
``@think WORDS``      think this
``@events N [RATE]``  say ``w0 w1 …`` in N pieces, RATE per second (default: as fast as it is read)
``@huge BYTES``       say a text of that size, in one line and no pieces
``@tool NAME JSON``   use a tool, asking first; what comes out is ``ran NAME`` and the input it was allowed with
``@run NAME JSON``    use a tool without asking
``@request JSON``     send any control request, and say what was answered
``@say LINE``         write this line as it is, be it nonsense
``@wait SECONDS``     do nothing; an interrupt ends it
``@stall SECONDS``    do nothing and read nothing; only a signal ends it
``@stderr WORDS``     complain
``@flood BYTES``      complain that much
``@crash CODE``       end at once, in the middle of the turn; a negative code is a signal
``@child``            start a process in a session of its own that holds all streams and stays; says ``child PID``
``@stubborn-child``   the same, and it ignores SIGTERM
``@fail``             end the turn as after an error of the API
``@later WORDS``      after this turn begin one by itself, as after a sub-agent in the background
``@ignore-end``       do not end when the input ends
``@ignore-term``      do not end on SIGTERM
``@silent``           answer no control request from now on
====================  =============================================================================================

In the environment ``RECORDED_CLI`` may hold commands for the start, separated by ``;``: ``@ignore-…``, ``@wait``,
``@stall``, ``@stderr``, ``@flood``, ``@crash``, ``@say``, ``@silent``; and ``RECORDED_CLI_VERSION`` its version.

It does not know the bridge, and imports nothing but what starts in no time.
"""

import json
import os
import select
import sys
import time

__all__ = ["COMMAND", "VERSION"]

COMMAND = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
VERSION = "2.1.326"
MODES = ("acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan")
MODEL = "claude-opus-5-5"
INTERRUPTED = "[Request interrupted by user]"
REJECTED = "The user doesn't want to proceed with this tool use."
SAYING = ("@text", "@events", "@huge")
TERM, IGNORED = 15, 1


class Interrupted(Exception):
    """The controller wants no more of this turn."""


def new_uuid():
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() * 1000) % 1000:03}Z"


def complain(words):
    os.write(2, words.encode() + b"\n")


def end(code):
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def slug(folder):
    """The name of a project's folder of transcripts."""
    units = os.path.realpath(folder).encode("utf-16-le")
    text = [int.from_bytes(units[at : at + 2], "little") for at in range(0, len(units), 2)]
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in text)
    if len(name) <= 200:
        return name
    number = 0
    for unit in text:
        number = (number * 31 + unit) & 0xFFFFFFFF
    number, digits = abs(number - (1 << 32) if number >> 31 else number), ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:200]}-{digits or '0'}"


class Options:
    """The flags it was started with; those it does not act on are accepted."""

    def __init__(self, words):
        self.given = {}
        words = list(words)
        while words:
            name, joined, value = words.pop(0).partition("=")
            valued = name in ("--session-id", "--resume", "--resume-session-at", "--model", "--permission-mode")
            if valued and not joined:
                value = words.pop(0)
            self.given[name] = value

    def __getitem__(self, name):
        return self.given.get(name)


class Transcript:
    """The session's file, as far as there is a place for it."""

    def __init__(self, options):
        self.session = options["--session-id"] or options["--resume"] or new_uuid()
        self.leaf, self.known, self.path = None, set(), None
        if config := os.environ.get("CLAUDE_CONFIG_DIR"):
            self.folder = os.path.join(config, "projects", slug(os.getcwd()))
            self.path = os.path.join(self.folder, f"{self.session}.jsonl")
            self._take_up(options)

    def _take_up(self, options):
        resumed = options["--resume"]
        is_new = resumed is None or options["--fork-session"] is not None
        if is_new and os.path.exists(self.path):
            complain(f"Error: Session ID {self.session} is already in use.")
            end(1)
        if resumed is not None:
            origin = os.path.join(self.folder, f"{resumed}.jsonl")
            if not os.path.exists(origin):
                complain(f"No conversation found with session ID: {resumed}")
                end(1)
            self._read(origin, options["--resume-session-at"])

    def _read(self, origin, until):
        with open(origin, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        for record in records:
            if "uuid" in record and not (until and self.leaf == until):
                self.known.add(record["uuid"])
                self.leaf = record["uuid"]
        if origin != self.path:
            self.write(*({**record, "sessionId": self.session} for record in records))

    def write(self, *records):
        if self.path is None or not records:
            return
        os.makedirs(self.folder, mode=0o755, exist_ok=True)
        text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, text.encode())
        os.close(file)

    def note(self, kind, uuid, message, **more):
        """A record of the conversation, below the one before."""
        shared = {"parentUuid": self.leaf, "isSidechain": False, "type": kind, "message": message, "uuid": uuid}
        place = {"timestamp": now(), "cwd": os.getcwd(), "sessionId": self.session, "version": version()}
        self.write(shared | place | {"userType": "external", "entrypoint": "sdk-cli", "gitBranch": ""} | more)
        self.known.add(uuid)
        self.leaf = uuid

    def book(self, kind, **fields):
        self.write({"type": kind, **fields, "sessionId": self.session})


def version():
    return os.environ.get("RECORDED_CLI_VERSION", VERSION)


class RecordedCli:
    """One process: what it reads, what it says, and the turn it is in."""

    def __init__(self, options):
        self.transcript = Transcript(options)
        self.session = self.transcript.session
        self.model = options["--model"] or MODEL
        self.mode = options["--permission-mode"] or "default"
        self.replays = options["--replay-user-messages"] is not None
        self.partial = options["--include-partial-messages"] is not None
        self.asks = options["--permission-prompt-tool"] is not None
        self.states = bool(os.environ.get("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"))
        self.unread = bytearray()
        self.queue, self.answers, self.asked = [], {}, {}
        self.ended = self.interrupted = self.busy = self.initialized = self.silent = self.deaf = False
        self.stubborn = self.failing = False
        self.later, self.rules, self.denials = [], [], []
        self.turns, self.said, self.prompt = 0, "", ""

    # -- the streams ------------------------------------------------------------------------------------------

    def tell(self, message):
        self.write(json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode())

    def write(self, line):
        view = memoryview(line + b"\n")
        try:
            while view and not self.deaf:
                view = view[os.write(1, view) :]
        except OSError:
            self.deaf = True

    def system(self, subtype, **fields):
        self.tell({"type": "system", "subtype": subtype, **fields, "uuid": new_uuid(), "session_id": self.session})

    def state(self, state):
        if self.states:
            self.system("session_state_changed", state=state)

    def listen(self, seconds):
        """Read what is there, waiting for it so long."""
        if self.ended:
            if seconds:
                time.sleep(seconds)
        elif select.select([0], [], [], seconds)[0]:
            data = os.read(0, 65536)
            self.ended = not data
            self.unread += data
            if b"\n" in data:
                *lines, self.unread = self.unread.split(b"\n")
                for line in lines:
                    self.heed(line)

    def heed(self, line):
        if not line.strip():
            return
        try:
            message = json.loads(line)
            kind = message["type"]
        except (ValueError, KeyError, TypeError):
            complain("Error parsing streaming input line")
            end(1)
        if kind == "control_request":
            self.answer(message["request_id"], message["request"])
        elif kind == "control_response":
            self.answers[message["response"]["request_id"]] = message["response"]
        elif kind == "user":
            self.receive(message)

    def receive(self, message):
        if message.get("message", {}).get("role") != "user":
            complain("Error: Expected message role 'user'")
            end(1)
        uuid = message.setdefault("uuid", new_uuid())
        if uuid in self.transcript.known:
            self.replay(message)
        else:
            self.transcript.known.add(uuid)
            self.queue.append(message)
            self.transcript.book("queue-operation", operation="enqueue", timestamp=now(), content=text_of(message))

    def replay(self, message):
        if self.replays:
            echo = {"type": "user", "message": message["message"], "session_id": self.session}
            self.tell(echo | {"parent_tool_use_id": None, "uuid": message["uuid"], "isReplay": True})

    # -- control ----------------------------------------------------------------------------------------------

    def answer(self, request_id, request):
        if self.silent:
            return
        subtype = request.get("subtype")
        error, response, more = None, None, {}
        if subtype == "initialize":
            error, response, more = self.initialize()
        elif subtype == "interrupt":
            self.interrupt()
            response = {"still_queued": [message["uuid"] for message in self.queue]}
        elif subtype == "set_permission_mode":
            error, response, more = self.set_mode(request.get("mode"))
        elif subtype == "set_model":
            self.model = request.get("model") or MODEL
            response = {"model": self.model}
        elif subtype == "mcp_status":
            response = {"mcpServers": []}
        elif subtype not in ("set_max_thinking_tokens", "rename_session"):
            error = f"Unsupported control request subtype: {subtype}"
        kind = {"subtype": "success"} if error is None else {"subtype": "error", "error": error}
        body = kind | {"request_id": request_id} | more
        if error is None and response is not None:
            body["response"] = response
        self.tell({"type": "control_response", "response": body})

    def initialize(self):
        waiting = [
            {"type": "control_request", "request_id": key, "request": request}
            for key, request in self.asked.items()
        ]
        pending = {"pending_permission_requests": waiting, "pending_user_dialog_requests": []}
        again, self.initialized = self.initialized, True
        if again and tuple(map(int, version().split("."))) <= (2, 1, 120):
            return "Already initialized", None, pending
        commands = [{"name": "compact", "description": "shorten", "argumentHint": ""}]
        return None, {"commands": commands, "agents": [], "output_style": "default", "models": []}, pending

    def set_mode(self, mode):
        if mode == "bypassPermissions":
            return "Cannot set permission mode to bypassPermissions", None, {"error_code": "bypass_not_launched"}
        if mode not in MODES:
            return (
                f"Cannot set permission mode: must be one of {', '.join(MODES)}",
                None,
                {"error_code": "invalid_mode"},
            )
        self.mode = mode
        self.system("status", status=None, permissionMode=mode)
        return None, {"mode": mode}, {}

    def interrupt(self):
        self.interrupted = self.busy
        for request_id in list(self.asked):
            del self.asked[request_id]
            self.tell({"type": "control_cancel_request", "request_id": request_id})

    def ask(self, request):
        """Ask the controller; gives its answer, None when there is nobody any more."""
        request_id = new_uuid()
        self.asked[request_id] = request
        self.state("requires_action")
        self.tell({"type": "control_request", "request_id": request_id, "request": request})
        while request_id not in self.answers:
            if self.ended:
                return None
            self.listen(None)
            self.check()
        del self.asked[request_id]
        self.state("running")
        return self.answers.pop(request_id)

    # -- a turn -----------------------------------------------------------------------------------------------

    def run(self):
        self.obey([word.strip() for word in os.environ.get("RECORDED_CLI", "").split(";")])
        while self.queue or self.later or not self.ended:
            if self.queue:
                self.turn(self.queue.pop(0))
            elif self.later:
                self.turn_by_itself(self.later.pop(0))
            else:
                self.listen(None)
        if self.unread:
            self.heed(self.unread)
        while self.stubborn:
            time.sleep(3600)
        self.transcript.book("last-prompt", lastPrompt=self.prompt, leafUuid=self.transcript.leaf)

    def turn(self, message):
        self.state("running")
        self.lifecycle(message, "queued", "started")
        self.begin()
        self.take_up(message)
        self.perform(self.commands(message))
        self.lifecycle(message, "completed")
        self.state("idle")

    def turn_by_itself(self, words):
        self.state("running")
        self.begin()
        self.perform([f"@text {words}"])
        self.state("idle")

    def begin(self):
        self.busy, self.began, self.said, self.failing, self.denials = True, time.monotonic(), "", False, []
        tools = ["Task", "AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "Read", "Write"]
        fields = {"cwd": os.getcwd(), "tools": tools, "mcp_servers": [], "model": self.model, "slash_commands": []}
        about = {"permissionMode": self.mode, "apiKeySource": "none", "claude_code_version": version()}
        self.system("init", **fields, **about, output_style="default", agents=[], skills=[], plugins=[])
        self.system("status", status="requesting")

    def take_up(self, message):
        self.prompt = text_of(message)
        self.replay(message)
        self.transcript.book("queue-operation", operation="dequeue", timestamp=now())
        self.transcript.note("user", message["uuid"], message["message"], permissionMode=self.mode)

    def lifecycle(self, message, *states):
        for state in states:
            fields = {"command_uuid": message["uuid"], "state": state, "uuid": new_uuid()}
            self.tell({"type": "command_lifecycle", **fields, "session_id": self.session})

    def commands(self, message):
        lines = text_of(message).split("\n")
        commands = [line for line in lines if line.startswith("@")]
        if not any(line.split()[0] in SAYING for line in commands):
            commands.append("@text fake answer: " + " ".join(line for line in lines if not line.startswith("@")))
        return commands

    def perform(self, commands):
        reason = "completed"
        try:
            self.obey(commands)
        except Interrupted:
            reason = "aborted_streaming"
            self.user([{"type": "text", "text": INTERRUPTED}])
        self.interrupted = self.busy = False
        self.finish("api_error" if self.failing else reason)

    def obey(self, commands):
        waiting = list(commands)
        while waiting:
            command, _, rest = waiting.pop(0).partition(" ")
            if command:
                getattr(self, "do_" + command[1:].replace("-", "_"))(rest)
            if command == "@tool":  # where a real one looks for what was said meanwhile
                while self.queue:
                    message = self.queue.pop(0)
                    self.take_up(message)
                    waiting += self.commands(message)
            self.listen(0)
            self.check()

    def check(self):
        if self.interrupted:
            raise Interrupted

    def finish(self, reason):
        self.turns += 1
        failed = reason != "completed"
        subtype = "error_during_execution" if reason.startswith("aborted") else "success"
        took = int((time.monotonic() - self.began) * 1000)
        usage = {"input_tokens": 100, "output_tokens": 10}
        result = {"duration_api_ms": took, "stop_reason": "end_turn", "session_id": self.session, "usage": usage}
        result |= {"total_cost_usd": 0.001 * self.turns, "modelUsage": {}, "permission_denials": self.denials}
        result |= {"terminal_reason": reason, "is_error": failed, "num_turns": 1, "subtype": subtype}
        if subtype == "success":
            result["result"] = "API Error: 529 Overloaded" if failed else self.said
        self.tell(result | {"type": "result", "duration_ms": took, "uuid": new_uuid()})

    # -- what is said -----------------------------------------------------------------------------------------

    def event(self, event):
        if self.partial:
            self.tell(self.tied({"type": "stream_event", "event": event}))

    def tied(self, message):
        return message | {"session_id": self.session, "parent_tool_use_id": None, "uuid": new_uuid()}

    def block(self, block, pieces=(), pause=0.0):
        """One message of the model with one block, in pieces; an interrupt leaves out the rest."""
        message = {
            "id": f"msg_{os.urandom(12).hex()}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
        }
        self.event({"type": "message_start", "message": message | {"content": [], "stop_reason": None}})
        empty = block | {key: "" for key in ("text", "thinking") if key in block}
        self.event({"type": "content_block_start", "index": 0, "content_block": empty})
        given, began = [], time.monotonic()
        try:
            for number, piece in enumerate(pieces):
                self.listen(max(0.0, began + number * pause - time.monotonic()))
                self.check()
                self.event({"type": "content_block_delta", "index": 0, "delta": piece})
                given.append(piece)
        finally:
            if "text" in block and len(given) < len(pieces):
                block = block | {"text": "".join(piece["text"] for piece in given)}
            self.say_whole(message, block)

    def say_whole(self, message, block):
        whole = message | {
            "content": [block],
            "stop_reason": None,
            "usage": {"input_tokens": 100, "output_tokens": 1},
        }
        line = self.tied({"type": "assistant", "message": whole})
        self.tell(line | {"timestamp": now()})
        self.transcript.note("assistant", line["uuid"], whole)
        self.said = block.get("text", self.said)
        self.event({"type": "content_block_stop", "index": 0})
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        self.event({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 10}})
        self.event({"type": "message_stop"})

    def user(self, content, **more):
        line = self.tied({"type": "user", "message": {"role": "user", "content": content}})
        self.tell(line | {"timestamp": now()} | more)
        self.transcript.note("user", line["uuid"], line["message"])

    def use(self, name, given, decide):
        tool_use = f"toolu_{os.urandom(12).hex()}"
        whole = json.dumps(given)
        self.block(
            {"type": "tool_use", "id": tool_use, "name": name, "input": given},
            [{"type": "input_json_delta", "partial_json": whole}],
        )
        result = {"tool_use_id": tool_use, "type": "tool_result", "is_error": True}
        try:
            reason, changed, stop = decide(name, given, tool_use)
        except Interrupted:
            self.user([result | {"content": REJECTED}])
            raise
        if reason is None:
            result |= {"content": f"ran {name} {json.dumps(changed)}", "is_error": False}
        else:
            result |= {"content": reason}
            self.denials.append({"tool_name": name, "tool_use_id": tool_use, "tool_input": given})
        self.user([result], tool_use_result=result["content"])
        if stop:
            raise Interrupted

    def decide(self, name, given, tool_use):
        """Why not (None: it may), with what input, and whether the turn ends here."""
        if self.mode == "bypassPermissions" or self.is_allowed(name, given):
            return None, given, False
        if self.mode == "dontAsk" or not self.asks:
            self.system("permission_denied", tool_name=name, tool_use_id=tool_use, message="not allowed")
            return "not allowed", given, False
        rule = {"toolName": name, "ruleContent": given.get("command", "")}
        request = {"subtype": "can_use_tool", "tool_name": name, "display_name": name, "input": given}
        request |= {"tool_use_id": tool_use, "description": given.get("description", given.get("command", name))}
        suggestion = {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"}
        request["permission_suggestions"] = [suggestion]
        if name in ("AskUserQuestion", "ExitPlanMode"):
            request["requires_user_interaction"] = True
        return self.verdict(self.ask(request), given)

    def verdict(self, answer, given):
        decision = (answer or {}).get("response") or {}
        if decision.get("behavior") == "allow":
            for update in decision.get("updatedPermissions", []):
                self.rules += update.get("rules", []) if update.get("behavior") == "allow" else []
            return None, decision.get("updatedInput") or given, False
        return decision.get("message") or "Invalid permission response", given, bool(decision.get("interrupt"))

    def is_allowed(self, name, given):
        for rule in self.rules:
            content, command = rule.get("ruleContent") or "", given.get("command", "")
            fits = command.startswith(content[:-2]) if content.endswith(":*") else content in ("", command)
            if rule.get("toolName") == name and fits:
                return True
        return False

    # -- the commands -----------------------------------------------------------------------------------------

    def do_text(self, words):
        pieces = [word + " " for word in words.split(" ")]
        pieces[-1] = pieces[-1][:-1]
        self.block({"type": "text", "text": words}, [{"type": "text_delta", "text": piece} for piece in pieces])

    def do_think(self, words):
        self.block(
            {"type": "thinking", "thinking": words, "signature": ""},
            [{"type": "thinking_delta", "thinking": words}],
        )

    def do_events(self, rest):
        count, _, rate = rest.partition(" ")
        pieces = [f"w{number} " for number in range(int(count))]
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        self.block({"type": "text", "text": "".join(pieces)}, deltas, 1 / float(rate) if rate else 0.0)

    def do_huge(self, size):
        self.block({"type": "text", "text": "x" * int(size)})

    def do_tool(self, rest):
        name, _, given = rest.partition(" ")
        self.use(name, json.loads(given or "{}"), self.decide)

    def do_run(self, rest):
        name, _, given = rest.partition(" ")
        self.use(name, json.loads(given or "{}"), lambda _name, given, _id: (None, given, False))

    def do_request(self, request):
        self.do_text(json.dumps(self.ask(json.loads(request))))

    def do_say(self, line):
        self.write(line.encode())

    def do_wait(self, seconds):
        until = time.monotonic() + float(seconds)
        while (left := until - time.monotonic()) > 0:
            self.listen(left)
            self.check()

    def do_stall(self, seconds):
        time.sleep(float(seconds))

    def do_stderr(self, words):
        complain(words)

    def do_flood(self, size):
        for _ in range(int(size) // 1000):
            complain("x" * 999)

    def do_crash(self, code):
        end(int(code or 1))

    def do_child(self, _rest, *, stubborn=False):
        ready, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork():  # nobody's child, in nobody's group
                os._exit(0)
            if stubborn:
                self.do_ignore_term("")
            os.close(ready)
            os.write(writing, str(os.getpid()).encode())
            os.close(writing)
            time.sleep(3600)
            os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        pid = int(os.read(ready, 100))
        os.close(ready)
        self.do_text(f"child {pid}")

    def do_stubborn_child(self, rest):
        self.do_child(rest, stubborn=True)

    def do_fail(self, _rest):
        self.failing = True

    def do_later(self, words):
        self.later.append(words)

    def do_ignore_end(self, _rest):
        self.stubborn = True

    def do_ignore_term(self, _rest):
        import _signal

        _signal.signal(TERM, IGNORED)

    def do_silent(self, _rest):
        self.silent = True


def text_of(message):
    content = message["message"].get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if isinstance(block, dict))


def main():
    options = Options(sys.argv[1:])
    if options["--version"] is not None:
        os.write(1, f"{version()} (Claude Code)\n".encode())
        return
    if options["--sdk-url"] is not None:
        complain("--sdk-url rejected: this one speaks over pipes only")
        end(1)
    RecordedCli(options).run()


if __name__ == "__main__":
    main()
