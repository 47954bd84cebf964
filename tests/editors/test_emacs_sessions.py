"""Sessions in a real Emacs: questions, what is shown of the answers, approvals, and what may go wrong."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ide_bridge.model import Position
from tests.fakes.claude_cli import Home
from tests.fakes.emacs import EmacsPerson, emacs, lisp
from tests.fakes.emacs_link import LinkEnd, LinkRefused, link_end

ID = "1a2b3c4d-0000-4000-8000-000000000000"
BUFFER = "*ide-bridge session 1a2b3c4d*"
SESSION = {
    "session": ID,
    "title": "a title",
    "state": "idle",
    "changed": time.time(),
    "cost": 0.25,
    "approvals": [],
}
BASH: dict[str, Any] = {
    "id": "abcd",
    "session": ID,
    "requestId": "r1",
    "tool": "Bash",
    "kind": "tool",
    "title": "Bash: mkdir made",
    "input": {"command": "mkdir made", "timeout": 5},
    "suggestions": [],
    "description": "Make a folder",
    "reason": None,
    "blockedPath": None,
    "agent": None,
    "asked": time.time(),
    "until": None,
}
QUESTIONS = [
    {
        "question": "Which colour?",
        "header": "Colour",
        "multiSelect": False,
        "options": [{"label": "red", "description": "like fire"}, {"label": "blue", "description": "like ice"}],
    },
    {
        "question": "Which sizes?",
        "header": "Sizes",
        "multiSelect": True,
        "options": [{"label": "small", "description": ""}, {"label": "large", "description": ""}],
    },
]


class Stage:
    """An Emacs, the bridge's end of its link, and what was asked there."""

    def __init__(self, person: EmacsPerson, link: LinkEnd) -> None:
        self.person, self.link = person, link
        self.asked: dict[str, list[Any]] = {}
        self.number = 0
        self.answers("ask", {"session": ID, "uuid": "u1", "title": "a title"})
        self.answers("sessions", [SESSION])
        self.answers("watchSession", {"session": SESSION, "next": 1})
        for method in ("interrupt", "unwatchSession", "stopSession"):
            self.answers(method, {})
        self.link.answers["decide"] = self.decided

    def answers(self, method: str, answer: Any) -> None:
        """Answer a method, and remember what was asked."""
        self.link.answers[method] = lambda params: (self.asked.setdefault(method, []).append(params), answer)[1]

    def decided(self, params: Any) -> Any:
        self.asked.setdefault("decide", []).append(params)
        outcome = "allowed" if params["behavior"] == "allow" else "denied"
        return {"approval": params["approval"], "outcome": outcome, "by": "Emacs"}

    async def question(self, method: str, count: int = 1) -> Any:
        """What was asked, once it was."""
        deadline = time.monotonic() + 10
        while len(self.asked.get(method, [])) < count:
            assert time.monotonic() < deadline, f"{method} was not asked\n{await self.person.messages()}"
            await asyncio.sleep(0.01)
        return self.asked[method][count - 1]

    def tell(self, kind: str, **event: Any) -> None:
        self.number += 1
        self.link.notify("sessionEvent", session=ID, number=self.number, event={"kind": kind, **event})

    def ask_approval(self, **changed: Any) -> None:
        self.link.notify("approvalAsked", **(BASH | changed))
        self.tell("approval", approval=BASH | changed)

    async def ask(self, question: str = "why?") -> None:
        """Ask, and wait until the session's buffer is there."""
        await self.person.command(f"(ide-bridge-ask {lisp(question)})")
        await self.person.until(f"(get-buffer-window {lisp(BUFFER)})")

    async def seen(self, text: str) -> None:
        await self.person.until(
            f"(with-current-buffer {lisp(BUFFER)} (string-search {lisp(text)} (buffer-string)))"
        )

    async def text(self) -> str:
        shown = await self.person.eval(f"(with-current-buffer {lisp(BUFFER)} (buffer-string))")
        assert isinstance(shown, str)
        return shown

    async def go(self) -> None:
        """Go to the session's window, at its end."""
        await self.person.command(f"(pop-to-buffer {lisp(BUFFER)}) (goto-char (point-max))")

    async def open_approval(self, **changed: Any) -> None:
        """Have an approval, and wait until a person could have seen it."""
        self.ask_approval(**changed)
        known = f"(ide-bridge--approval-with {lisp(changed.get('id', 'abcd'))})"
        await self.person.until(f"(and (featurep 'ide-bridge-approvals) {known})")
        await self.person.until(f"(< ide-bridge--moment (- (float-time) (plist-get {known} :came)))")


@pytest.fixture
def home() -> Any:
    with Home() as home:
        yield home


@pytest.fixture
async def link() -> AsyncIterator[LinkEnd]:
    async with link_end() as link:
        yield link


@pytest.fixture
async def stage(home: Home, link: LinkEnd, tmp_path: Path) -> AsyncIterator[Stage]:
    (tmp_path / "one.py").write_text("first\nséc𝔘nd\nthird\n", encoding="utf-8")
    link.answers["hello"] = {"clients": [], "pid": 4712}
    async with emacs(tmp_path, home.environment, link.command) as person:
        await person.open(str(tmp_path / "one.py"))
        yield Stage(person, link)


# -- asking ---------------------------------------------------------------------------------------------------


async def test_a_region_goes_along_with_a_question_typed_in_the_minibuffer(stage: Stage, tmp_path: Path) -> None:
    await stage.person.select(Position(0, 2), Position(1, 4))
    await stage.person.stage("(call-interactively #'ide-bridge-ask)")
    stage.person.keys("\x03\x1e")
    await stage.person.until("(active-minibuffer-window)")
    stage.person.keys("what is this?\r")
    assert await stage.question("ask") == {
        "text": "what is this?",
        "path": str(tmp_path / "one.py"),
        "start": {"line": 0, "column": 2},
        "end": {"line": 1, "column": 4},
        "selection": "rst\nséc𝔘",
    }
    assert await stage.person.eval("(car ide-bridge--questions)") == "what is this?"


async def test_without_a_region_only_the_question_goes(stage: Stage) -> None:
    await stage.ask("hello")
    assert await stage.question("ask") == {"text": "hello"}


async def test_a_prefix_argument_asks_for_a_new_session(stage: Stage) -> None:
    await stage.ask()
    await stage.go()
    await stage.person.command('(ide-bridge-ask "again" t)')
    assert await stage.question("ask", 2) == {"text": "again", "new": True}


async def test_an_empty_question_is_not_asked(stage: Stage) -> None:
    await stage.person.command('(condition-case no (ide-bridge-ask " ") (user-error (message "%s" (cadr no))))')
    assert "Nothing was asked" in await stage.person.messages()
    assert "ask" not in stage.asked


async def test_what_is_not_attached_yet_is_attached_first(home: Home, link: LinkEnd, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    project = "(setq vc-handled-backends '(Git))"
    async with emacs(tmp_path, home.environment, link.command, project, start=False) as person:
        stage = Stage(person, link)
        await stage.ask("early")
        assert await stage.question("ask") == {"text": "early"}
        assert await person.eval("ide-bridge-mode") is True


async def test_the_answer_appears_beside_the_users_window_and_never_takes_it(stage: Stage, tmp_path: Path) -> None:
    await stage.ask()
    stage.tell("text", text="Because")
    await stage.seen("Because")
    assert await stage.person.eval("(buffer-file-name (window-buffer (selected-window)))") == str(
        tmp_path / "one.py"
    )
    assert (
        await stage.person.eval(f"(with-current-buffer {lisp(BUFFER)} (derived-mode-p 'special-mode))") is not None
    )


async def test_events_may_come_before_the_answer_to_the_question(stage: Stage) -> None:
    def early(_params: Any) -> Any:
        stage.tell("prompt", uuid="u", text="why?", by="Emacs")
        return {"session": ID, "uuid": "u", "title": ""}

    stage.link.answers["ask"] = early
    await stage.ask()
    await stage.seen("❯ why?")


async def test_an_older_bridge_is_told_apart(stage: Stage) -> None:
    stage.link.answers["ask"] = LinkRefused(-32601, "Method not found")
    await stage.person.command('(ide-bridge-ask "why?")')
    await stage.person.until(
        '(string-search "This bridge has no sessions; update ide-bridge." '
        "(with-current-buffer (messages-buffer) (buffer-string)))"
    )
    assert await stage.person.eval("ide-bridge--asking") is None


# -- what is shown ----------------------------------------------------------------------------------------------


async def test_a_turn_reads_like_a_conversation(stage: Stage) -> None:
    await stage.ask()
    stage.tell("prompt", uuid="u", text="why?", by="Vim")
    stage.tell("state", state="working")
    stage.tell("thinking", text="Let me see.")
    stage.tell("text", text="Because **of")
    stage.tell("text", text=" it")
    stage.tell("said", text="Because **of it**, and `x`.")
    stage.tell("tool", id="t1", tool="Bash", title="Bash: ls", input={"command": "ls"})
    stage.tell("tool", id="t2", tool="Read", title="Read: one.py", input={"file_path": "one.py"})
    stage.tell("toolResult", id="t1", ok=True, text="a\nb\nc")
    stage.tell("toolResult", id="t2", ok=False, text="no such file")
    stage.tell("said", text="Done.")
    stage.tell("result", ok=True, text="Done.", cost=0.0123, seconds=4.25, reason="")
    stage.tell("state", state="idle")
    await stage.seen("── done")
    lines = [line for line in (await stage.text()).splitlines() if line]
    assert lines == [
        "❯ (Vim) why?",
        "✻ thought",
        "Let me see.",
        "Because **of it**, and `x`.",
        "✓ Bash: ls",
        "    command: ls",
        "    a",
        "    b",
        "    c",
        "✗ Read: one.py",
        "    file_path: one.py",
        "    no such file",
        "Done.",
        "── done, 4.2 s, $0.0123",
    ]
    face = f'(with-current-buffer {lisp(BUFFER)} (save-excursion (goto-char (point-min)) (search-forward "of it")'
    assert await stage.person.eval(f"{face} (get-text-property (1- (point)) 'face)))") == "bold"


async def test_pieces_stay_together_while_others_speak(stage: Stage) -> None:
    await stage.ask()
    stage.tell("text", text="One ")
    stage.tell("said", text="from the agent", agent="helper")
    stage.tell("tool", id="t1", tool="Bash", title="Bash: ls", input={})
    stage.tell("text", text="and two")
    stage.tell("toolResult", id="t1", ok=True, text="fine")
    stage.tell("said", text="One and two.")
    await stage.seen("One and two.")
    lines = [line for line in (await stage.text()).splitlines() if line]
    assert lines == ["  from the agent", "✓ Bash: ls", "    fine", "One and two."]


async def test_what_is_broken_off_stays_as_it_was_said(stage: Stage) -> None:
    await stage.ask()
    stage.tell("text", text="I was about")
    stage.tell("result", ok=False, text="", cost=None, seconds=1.0, reason="interrupted")
    stage.tell("said", text="Next.")
    await stage.seen("Next.")
    lines = [line for line in (await stage.text()).splitlines() if line]
    assert lines == ["I was about", "── interrupted, 1.0 s", "Next."]


async def test_tab_unfolds_a_result_and_folds_it_again(stage: Stage) -> None:
    await stage.ask()
    stage.tell("tool", id="t1", tool="Bash", title="Bash: ls", input={"command": "ls"})
    stage.tell("toolResult", id="t1", ok=True, text="first\nsecond")
    await stage.seen("second")
    await stage.go()
    await stage.person.command('(goto-char (point-min)) (search-forward "first")')
    hidden = (
        '(save-excursion (goto-char (point-min)) (search-forward "second") (and (invisible-p (1- (point))) t))'
    )
    assert await stage.person.eval(hidden) is True
    stage.person.keys("\t")
    await stage.person.until(f"(not {hidden})")
    stage.person.keys("\t")
    await stage.person.until(hidden)
    assert await stage.person.eval("(buffer-modified-p)") is None


async def test_only_a_window_at_the_end_follows(stage: Stage) -> None:
    await stage.ask()
    stage.tell("said", text="\n".join(f"line {number}" for number in range(100)))
    await stage.seen("line 99")
    at_end = f"(with-current-buffer {lisp(BUFFER)} (= (window-point (get-buffer-window)) (point-max)))"
    assert await stage.person.eval(at_end) is True
    await stage.go()
    await stage.person.command("(goto-char (point-min)) (forward-line 5)")
    here = await stage.person.eval("(point)")
    stage.tell("said", text="more")
    await stage.seen("more")
    assert await stage.person.eval("(point)") == here


async def test_a_thousand_events_a_second_do_not_hold_up_the_user(stage: Stage) -> None:
    await stage.ask()
    slowest = 0.0
    for _tenth in range(20):
        for number in range(100):
            stage.tell("text", text=f"word {number}\n")
        began = time.perf_counter()
        await stage.person.eval("1")
        slowest = max(slowest, time.perf_counter() - began)
        await asyncio.sleep(max(0.0, 0.1 - (time.perf_counter() - began)))
    stage.tell("said", text="the end")
    await stage.seen("the end")
    assert "word" not in await stage.text()
    assert slowest < 0.5, f"{slowest * 1000:.0f} ms"


async def test_a_long_session_is_cut_at_the_top(stage: Stage) -> None:
    await stage.ask()
    for number in range(150):
        stage.tell("said", text=f"block {number}\n" + "x" * 10_000)
    await stage.seen("block 149")
    size, head = await stage.person.eval(
        f"(with-current-buffer {lisp(BUFFER)} (list (buffer-size) (buffer-substring 1 40)))"
    )
    assert size <= 1_000_100
    assert head.startswith("… what came before is left out here\n")
    assert await stage.person.eval(f"(buffer-local-value 'buffer-undo-list (get-buffer {lisp(BUFFER)}))") is True


async def test_the_state_is_in_the_header_line_whatever_the_title_is(stage: Stage) -> None:
    stage.answers("ask", {"session": ID, "uuid": "u", "title": "100%b \u202eevil\nline"})
    await stage.ask()
    header = f"(with-selected-window (get-buffer-window {lisp(BUFFER)}) (format-mode-line header-line-format))"
    stage.tell("state", state="working")
    await stage.person.until(f'(string-search "working…" {header})')
    assert "100%b \\u202eevil line" in await stage.person.eval(header)
    stage.tell("state", state="waiting")
    await stage.person.until(f'(string-search "waiting for you" {header})')
    stage.tell("state", state="idle")
    await stage.person.until(f'(string-search "idle" {header})')


async def test_keys_in_the_buffer_ask_interrupt_list_help_and_bury(stage: Stage) -> None:
    await stage.ask()
    await stage.go()
    stage.person.keys("\r")
    await stage.person.until("(active-minibuffer-window)")
    stage.person.keys("and then?\r")
    assert await stage.question("ask", 2) == {"text": "and then?", "session": ID}
    await stage.go()
    stage.person.keys("\x03\x03")
    assert await stage.question("interrupt") == {"session": ID}
    stage.person.keys("h")
    await stage.person.until('(get-buffer-window "*Help*")')
    await stage.person.command("(delete-other-windows)")
    await stage.go()
    stage.person.keys("g")
    await stage.person.until('(equal "*ide-bridge sessions*" (buffer-name))')
    await stage.go()
    stage.person.keys("q")
    await stage.person.until(f"(not (equal {lisp(BUFFER)} (buffer-name)))")
    assert await stage.person.eval(f"(and (get-buffer {lisp(BUFFER)}) t)") is True


async def test_a_buffer_that_was_killed_is_not_made_again_by_what_comes_after_it(stage: Stage) -> None:
    await stage.ask()
    await stage.go()
    await stage.person.command("(kill-buffer)")
    assert await stage.question("unwatchSession") == {"session": ID}
    stage.tell("text", text="nobody listens")
    stage.link.notify("message", level="info", text="a mark")
    await stage.person.until('(string-search "a mark" (with-current-buffer (messages-buffer) (buffer-string)))')
    assert await stage.person.eval(f"(get-buffer {lisp(BUFFER)})") is None


# -- approvals ----------------------------------------------------------------------------------------------------


async def test_what_is_asked_is_said_and_asks_nothing_of_the_user(stage: Stage) -> None:
    await stage.ask()
    stage.ask_approval()
    await stage.seen("? Bash: mkdir made")
    assert await stage.person.eval("(active-minibuffer-window)") is None
    assert "Claude asks: Bash: mkdir made" in await stage.person.messages()
    assert "1 approval" in await stage.person.eval("(format-mode-line (ide-bridge--lighter))")
    stage.link.notify("approvalClosed", approval="abcd", outcome="allowed", by="Vim", reason="")
    stage.tell("approvalClosed", approval="abcd", outcome="allowed", by="Vim", reason="")
    await stage.seen("    was allowed by Vim")
    assert "Bash: mkdir made was allowed by Vim" in await stage.person.messages()
    assert "approval" not in await stage.person.eval("(format-mode-line (ide-bridge--lighter))")


@pytest.mark.parametrize(("key", "more"), [("a", {}), ("A", {"forSession": True})])
async def test_a_key_in_the_session_allows_what_it_asks(stage: Stage, key: str, more: dict[str, object]) -> None:
    await stage.ask()
    await stage.open_approval()
    await stage.go()
    stage.person.keys(key)
    assert await stage.question("decide") == {"approval": "abcd", "behavior": "allow", **more}
    await stage.person.until("(null ide-bridge--approvals)")
    assert "Allowed: Bash: mkdir made" in await stage.person.messages()


async def test_a_key_denies_with_a_reason(stage: Stage) -> None:
    await stage.ask()
    await stage.open_approval()
    await stage.go()
    stage.person.keys("d")
    await stage.person.until("(active-minibuffer-window)")
    stage.person.keys("not here\r")
    assert await stage.question("decide") == {"approval": "abcd", "behavior": "deny", "reason": "not here"}


async def test_a_key_that_came_too_early_allows_nothing(stage: Stage) -> None:
    await stage.ask()
    await stage.go()
    await stage.person.eval("(progn (require 'ide-bridge-approvals) (setq ide-bridge--moment 30))")
    stage.ask_approval()
    await stage.person.until("ide-bridge--approvals")
    stage.person.keys("a")
    await stage.person.until(
        '(string-search "asked just now" (with-current-buffer (messages-buffer) (buffer-string)))'
    )
    assert "decide" not in stage.asked


async def test_the_input_can_be_changed_before_it_is_allowed(stage: Stage) -> None:
    await stage.ask()
    await stage.open_approval(input={"command": "mkdir é", "flags": [], "deep": {"no": False, "none": None}})
    await stage.go()
    stage.person.keys("e")
    await stage.person.until('(equal "*ide-bridge edit abcd*" (buffer-name))')
    await stage.person.command('(search-forward "mkdir") (replace-match "rmdir")')
    stage.person.keys("\x03\x03")
    changed = {"command": "rmdir é", "flags": [], "deep": {"no": False, "none": None}}
    assert await stage.question("decide") == {"approval": "abcd", "behavior": "allow", "input": changed}


async def test_nothing_in_an_input_hides_what_it_does(stage: Stage) -> None:
    await stage.ask()
    command = "echo \u202esafe\x1b[8m\u200b\n\trm -rf x"
    await stage.open_approval(title=f"Bash: {command}", input={"command": command})
    await stage.seen("echo \\u202esafe\\u001b[8m\\u200b")
    text = await stage.text()
    assert "rm -rf x" in text
    assert not {"\u202e", "\x1b", "\u200b"} & set(text)
    await stage.go()
    stage.person.keys("e")
    await stage.person.until('(equal "*ide-bridge edit abcd*" (buffer-name))')
    assert not {"\u202e", "\x1b", "\u200b"} & set(await stage.person.eval("(buffer-string)"))
    stage.person.keys("\x03\x03")
    assert (await stage.question("decide"))["input"] == {"command": command}


async def test_an_input_that_is_no_json_is_not_sent_and_leaving_keeps_it_open(stage: Stage) -> None:
    await stage.ask()
    await stage.open_approval()
    await stage.go()
    stage.person.keys("e")
    await stage.person.until('(equal "*ide-bridge edit abcd*" (buffer-name))')
    await stage.person.command('(goto-char (point-max)) (insert "{")')
    stage.person.keys("\x03\x03")
    await stage.person.until(
        '(string-search "one JSON object" (with-current-buffer (messages-buffer) (buffer-string)))'
    )
    stage.person.keys("\x03\x0b")
    await stage.person.until('(null (get-buffer "*ide-bridge edit abcd*"))')
    assert "decide" not in stage.asked
    assert await stage.person.eval("(length ide-bridge--approvals)") == 1


async def test_an_input_that_the_bridge_refuses_is_still_there(stage: Stage) -> None:
    await stage.ask()
    await stage.open_approval()
    stage.link.answers["decide"] = LinkRefused(-32602, "What it was changed to is denied by the rule Bash(rm:*).")
    stage.answers("approvals", [BASH])
    await stage.go()
    stage.person.keys("e")
    await stage.person.until('(equal "*ide-bridge edit abcd*" (buffer-name))')
    await stage.person.command('(search-forward "mkdir") (replace-match "rm")')
    stage.person.keys("\x03\x03")
    await stage.question("approvals")
    assert "denied by the rule" in await stage.person.messages()
    await stage.go()
    stage.person.keys("e")
    await stage.person.until(
        '(and (equal "*ide-bridge edit abcd*" (buffer-name)) (string-search "rm made" (buffer-string)))'
    )


async def test_who_was_first_is_said(stage: Stage) -> None:
    await stage.ask()
    await stage.person.eval("(progn (require 'ide-bridge-approvals) (setq ide-bridge--approvals-seconds 60))")
    await stage.open_approval()
    stage.link.answers["decide"] = LinkRefused(-32602, "abcd was already allowed by Vim.")
    stage.answers("approvals", [])
    await stage.go()
    stage.person.keys("a")
    await stage.person.until("(null ide-bridge--approvals)")
    assert "abcd was already allowed by Vim." in await stage.person.messages()


async def test_approve_offers_what_is_open_wherever_the_user_is(stage: Stage) -> None:
    await stage.open_approval()
    await stage.open_approval(id="efgh", title="Bash: rm made", session="ffffffff-0", reason="dangerous")
    await stage.person.stage("(call-interactively #'ide-bridge-approve)")
    stage.person.keys("\x03\x1e")
    await stage.person.until("(active-minibuffer-window)")
    offered = '(completion-metadata "" minibuffer-completion-table nil)'
    annotated = f'(funcall (completion-metadata-get {offered} \'annotation-function) "Bash: rm made  [efgh]")'
    shown = await stage.person.eval(f"(with-selected-window (active-minibuffer-window) {annotated})")
    assert "ffffffff" in shown
    assert "dangerous" in shown
    stage.person.keys("Bash:\x11 rm\t\r")
    assert await stage.question("decide") == {"approval": "efgh", "behavior": "allow"}


async def test_the_list_of_approvals_decides_line_by_line(stage: Stage) -> None:
    await stage.open_approval()
    await stage.open_approval(id="efgh", title="Bash: rm made")
    stage.answers("approvals", [BASH, BASH | {"id": "efgh", "title": "Bash: rm made"}])
    await stage.person.command("(ide-bridge-approvals)")
    await stage.person.command('(goto-char (point-min)) (search-forward "rm made")')
    stage.person.keys("\r")
    await stage.person.until('(equal "*ide-bridge approval efgh*" (buffer-name))')
    assert "command: mkdir made" in await stage.person.eval("(buffer-string)")
    stage.person.keys("q")
    await stage.person.until('(equal "*ide-bridge approvals*" (buffer-name))')
    stage.answers("approvals", [BASH])
    stage.person.keys("a")
    assert (await stage.question("decide"))["approval"] == "efgh"
    await stage.person.until('(not (string-search "rm made" (buffer-string)))')


async def test_a_question_is_answered_in_the_minibuffer(stage: Stage) -> None:
    await stage.ask()
    await stage.open_approval(
        tool="AskUserQuestion", kind="question", title="2 questions", input={"questions": QUESTIONS}
    )
    await stage.seen("Which colour?")
    assert "  - blue  like ice" in await stage.text()
    await stage.go()
    stage.person.keys("a")
    await stage.person.until('(and (active-minibuffer-window) (string-search "colour" (minibuffer-prompt)))')
    stage.person.keys("blue\r")
    await stage.person.until('(and (active-minibuffer-window) (string-search "sizes" (minibuffer-prompt)))')
    stage.person.keys("small;large\r")
    answers = {"Which colour?": "blue", "Which sizes?": ["small", "large"]}
    assert await stage.question("decide") == {"approval": "abcd", "behavior": "allow", "answers": answers}


async def test_a_plan_is_shown_before_it_is_allowed(stage: Stage) -> None:
    await stage.open_approval(
        tool="ExitPlanMode", kind="plan", title="A plan", input={"plan": "# Plan\nfirst, then"}
    )
    await stage.person.stage("(call-interactively #'ide-bridge-approve)")
    stage.person.keys("\x03\x1e")
    await stage.person.until("(active-minibuffer-window)")
    stage.person.keys("\r")
    await stage.person.until('(equal "*ide-bridge approval abcd*" (buffer-name))')
    assert "first, then" in await stage.person.eval("(buffer-string)")
    assert "decide" not in stage.asked
    stage.person.keys("a")
    assert await stage.question("decide") == {"approval": "abcd", "behavior": "allow"}


@pytest.mark.parametrize(
    ("tool", "change"),
    [
        ("Edit", {"old_string": "first", "new_string": "1st"}),
        ("MultiEdit", {"edits": [{"old_string": "first", "new_string": "1st"}]}),
        ("Write", {"content": "1st\nséc𝔘nd\nthird\n"}),
    ],
)
async def test_an_edit_is_shown_as_a_diff(
    stage: Stage, tmp_path: Path, tool: str, change: dict[str, object]
) -> None:
    await stage.ask()
    path = str(tmp_path / "one.py")
    await stage.open_approval(tool=tool, title=f"{tool}: one.py", input={"file_path": path, **change})
    await stage.go()
    stage.person.keys("=")
    await stage.person.until('(equal "*ide-bridge change abcd*" (buffer-name))')
    lines = (await stage.person.eval("(buffer-string)")).splitlines()
    assert lines[0] == f"--- {path}"
    assert [line for line in lines[3:] if line[0] in "+-"] == ["-first", "+1st"]
    assert await stage.person.eval("major-mode") == "diff-mode"
    stage.person.keys("a")
    assert (await stage.question("decide"))["behavior"] == "allow"


async def test_what_is_open_is_known_to_an_emacs_that_comes_later(
    home: Home, link: LinkEnd, tmp_path: Path
) -> None:
    link.answers["status"] = {"sessions": [SESSION | {"approvals": ["abcd"]}]}
    link.answers["approvals"] = [BASH]
    async with emacs(tmp_path, home.environment, link.command) as person:
        await person.until("(= 1 (length ide-bridge--approvals))")
        link.hang_up()
        await person.until("(null ide-bridge--approvals)")


# -- sessions ---------------------------------------------------------------------------------------------------


async def test_the_list_opens_a_session_and_ends_one(stage: Stage) -> None:
    await stage.person.command("(ide-bridge-sessions)")
    await stage.person.until('(string-search "a title" (buffer-string))')
    line = await stage.person.eval("(buffer-string)")
    assert "idle" in line
    assert "$0.2500" in line
    await stage.person.command("(goto-char (point-min))")
    stage.person.keys("\r")
    assert await stage.question("watchSession") == {"session": ID}
    await stage.person.until(f"(equal {lisp(BUFFER)} (buffer-name))")
    stage.tell("said", text="what was said before")
    await stage.seen("what was said before")
    await stage.person.command("(ide-bridge-stop-session)")
    assert await stage.question("stopSession") == {"session": ID}
    await stage.person.command('(switch-to-buffer "*ide-bridge sessions*")')
    stage.person.keys("k")
    assert await stage.question("stopSession", 2) == {"session": ID}


async def test_a_session_is_chosen_to_be_stopped(stage: Stage) -> None:
    await stage.person.command("(ide-bridge-stop-session)")
    await stage.person.until("(active-minibuffer-window)")
    stage.person.keys("1a2b\t\r")
    assert await stage.question("stopSession") == {"session": ID}


async def test_when_the_bridge_is_gone_the_buffer_says_so_and_asks_again(stage: Stage) -> None:
    await stage.ask()
    stage.tell("said", text="before")
    await stage.seen("before")
    stage.link.hang_up()
    await stage.seen("The bridge is gone; RET asks again.")
    await stage.go()
    await stage.person.command('(ide-bridge-ask "once more")')
    assert await stage.question("ask", 2) == {"text": "once more", "session": ID}
    stage.tell("said", text="after")
    await stage.seen("after")


async def test_a_session_that_a_restarted_bridge_has_lost_is_noticed(stage: Stage) -> None:
    await stage.person.eval("(progn (require 'ide-bridge-ask) (setq ide-bridge--silence 0.1))")
    await stage.ask()
    stage.tell("said", text="before")
    stage.tell("state", state="working")
    stage.answers("sessions", [SESSION | {"state": "lost"}])
    await stage.seen("The session is lost")
    assert "before" in await stage.text()
    await stage.go()
    stage.person.keys("\r")
    await stage.person.until("(active-minibuffer-window)")
    stage.person.keys("go on\r")
    assert await stage.question("ask", 2) == {"text": "go on", "session": ID}
    stage.tell("state", state="working")
    stage.tell("said", text="after")
    await stage.seen("after")
    assert "before" in await stage.text()


@pytest.mark.parametrize("where", ["the session", "a file"])
async def test_the_same_bridge_tells_the_story_again_and_it_is_shown_once(stage: Stage, where: str) -> None:
    await stage.ask()
    stage.tell("said", text="told before")
    await stage.seen("told before")
    stage.link.hang_up()
    await stage.seen("The bridge is gone")
    if where == "the session":
        await stage.go()
    else:
        await stage.person.command("(ide-bridge-start default-directory)")

    def again(_params: Any) -> Any:
        stage.tell("said", text="told before")
        return {"session": ID, "uuid": "u2", "title": ""}

    stage.link.answers["ask"] = again
    await stage.person.command('(ide-bridge-ask "once more")')
    await stage.person.until("(seq-every-p #'ide-bridge--ready ide-bridge--links)")
    await stage.person.until("(and ide-bridge--links (null ide-bridge--asking))")
    stage.tell("said", text="and after")
    await stage.seen("and after")
    assert (await stage.text()).count("told before") == 1
    assert "The bridge is gone" not in await stage.text()
