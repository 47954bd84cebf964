"""Asking Claude from a real Vim and a real Neovim, watching it work, and answering what it wants to be allowed.

Both have the same commands, keys and words; the bridge is scripted.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ide_bridge.model import Position
from tests.fakes.claude_cli import Home
from tests.fakes.nvim import NvimPerson, nvim
from tests.fakes.session_bridge import OTHER, SESSION, SessionBridge, approval, session_bridge
from tests.fakes.vim import VimPerson, vim

Person = VimPerson | NvimPerson
TEXT = "eins\nzwei äöü\ndrei\n"
PAGE = "getbufline('ide-bridge://session/0a1b2c3d', 1, '$')->join(\"\\n\")"
STATE = "getbufvar('ide-bridge://session/0a1b2c3d', 'ide_bridge_state')"
WINDOW = "bufwinid('ide-bridge://session/0a1b2c3d')"


class Kind(NamedTuple):
    start: Callable[..., AbstractAsyncContextManager[Person]]
    status_line: str


VIM = Kind(vim, "ide_bridge#statusline()")
NVIM_LINE = "v:lua.require'ide_bridge'.statusline()"
KINDS = {
    "Vim": VIM,
    "Neovim": Kind(partial(nvim, version="Debian's"), NVIM_LINE),
    "newer Neovim": Kind(partial(nvim, version="newer"), NVIM_LINE),
}


class Stage(NamedTuple):
    person: Person
    bridge: SessionBridge
    folder: Path
    kind: Kind

    async def type(self, keys: str) -> None:
        """Press keys as they are, also what has a meaning in Neovim's notation."""
        await self.person.keys(keys if isinstance(self.person, VimPerson) else keys.replace("<", "<lt>"))

    async def ask(self, question: str = "why?") -> None:
        """Ask something, and have the window."""
        await self.type(f":IdeBridgeAsk {question}\r")
        await self.person.until(f"{WINDOW} > 0")

    async def look(self) -> None:
        """Go to the window of the session."""
        await self.person.ex(f"call win_gotoid({WINDOW})")

    async def page(self) -> str:
        """What stands in the window of the session."""
        shown = await self.person.expr(PAGE)
        assert isinstance(shown, str)
        return shown

    async def shows(self, text: str) -> None:
        """Wait until something stands in the window of the session."""
        await self.person.until(f"stridx({PAGE}, {json.dumps(text, ensure_ascii=False)}) >= 0")

    async def lacks(self, text: str) -> None:
        """Wait until something no longer stands there."""
        await self.person.until(f"stridx({PAGE}, {json.dumps(text, ensure_ascii=False)}) < 0")

    async def says(self, text: str) -> None:
        """Wait until the user was told something."""
        await self.person.until(f"stridx(execute('messages'), {json.dumps(text, ensure_ascii=False)}) >= 0")

    async def asks_permission(self, question: dict[str, Any]) -> None:
        """Have something asked, seen, and old enough to be answered by a key."""
        self.bridge.ask_permission(question)
        await self.shows(f"[{question['id']}]")
        await self.person.ex("sleep 350m")


@pytest.fixture
def started() -> bool:
    return True


@pytest.fixture(params=list(KINDS))
async def stage(request: pytest.FixtureRequest, started: bool, tmp_path: Path) -> AsyncIterator[Stage]:
    kind = KINDS[request.param]
    with Home() as home:
        async with session_bridge() as bridge:
            folder = tmp_path.resolve()
            (folder / "poem.txt").write_text(TEXT, encoding="utf-8")
            async with kind.start(folder, home.environment, bridge.command, start=started) as person:
                yield Stage(person, bridge, folder, kind)


# -- asking -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("started", [True, False])
async def test_a_question_starts_what_it_needs_and_opens_a_window(stage: Stage) -> None:
    await stage.type(":IdeBridgeAsk what is <this>?\r")
    assert await stage.bridge.wait_for("ask") == {"text": "what is <this>?"}
    await stage.person.until(f"{WINDOW} > 0")
    assert await stage.person.expr("bufname()") == "", "the user stays where he is"
    buffer = await stage.person.expr("getbufinfo('ide-bridge://session/0a1b2c3d')[0]")
    assert buffer["listed"] == 0
    options = "[&buftype, &swapfile, &filetype, &modifiable, &undolevels]"
    await stage.look()
    assert await stage.person.expr(options) == ["nofile", 0, "markdown", 0, -1]


async def test_a_question_that_is_not_given_is_asked_for(stage: Stage) -> None:
    await stage.type(":IdeBridgeAsk\rwhat now?\r")
    assert await stage.bridge.wait_for("ask") == {"text": "what now?"}
    await stage.type(":IdeBridgeAsk\r\x1b")
    await stage.type(":IdeBridgeAsk\r  \r")
    assert len(stage.bridge.calls("ask")) == 1


async def test_lines_go_along(stage: Stage) -> None:
    await stage.person.open(str(stage.folder / "poem.txt"))
    await stage.type(":2,3IdeBridgeAsk what?\r")
    assert await stage.bridge.wait_for("ask") == {
        "text": "what?",
        "path": str(stage.folder / "poem.txt"),
        "start": {"line": 1, "column": 0},
        "end": {"line": 2, "column": 4},
        "selection": "zwei äöü\ndrei",
    }


async def test_exactly_what_is_selected_goes_along(stage: Stage) -> None:
    await stage.person.open(str(stage.folder / "poem.txt"))
    await stage.person.select(Position(0, 2), Position(1, 7))
    await stage.type(":IdeBridgeAsk what?\r")
    asked = await stage.bridge.wait_for("ask")
    assert (asked["start"], asked["end"]) == ({"line": 0, "column": 2}, {"line": 1, "column": 7})
    assert asked["selection"] == "ns\nzwei äö"
    assert await stage.person.expr("mode()") == "n"
    await stage.person.ex("xmap gq <Plug>(ide-bridge-ask)")
    await stage.person.keys("gg0l\x16jlgqand this?\r")
    asked = await stage.bridge.wait_for("ask", 2)
    assert (asked["text"], asked["selection"]) == ("and this?", "in\nwe")


@pytest.mark.parametrize("command", ["help", "hide enew"])
async def test_of_what_is_no_file_only_the_question_goes_along(stage: Stage, command: str) -> None:
    await stage.person.ex(command)
    await stage.type(":1IdeBridgeAsk what?\r")
    assert await stage.bridge.wait_for("ask") == {"text": "what?"}


async def test_a_bang_starts_a_new_session(stage: Stage) -> None:
    await stage.type(":IdeBridgeAsk! something else\r")
    asked = await stage.bridge.wait_for("ask")
    assert asked == {"text": "something else", "new": True}
    await stage.person.until("bufwinid('ide-bridge://session/11112222') > 0")


async def test_a_bridge_without_sessions_is_told_as_such(stage: Stage) -> None:
    for method in ("ask", "sessions"):
        del stage.bridge.answers[method]
    await stage.type(":IdeBridgeAsk what?\r")
    await stage.says("This bridge has no sessions; update ide-bridge.")


async def test_what_the_bridge_refuses_is_told_in_its_words(stage: Stage) -> None:
    stage.bridge.refuse("ask", -32603, "There is no claude on your PATH; install it.")
    await stage.type(":IdeBridgeAsk what?\r")
    await stage.says("There is no claude on your PATH; install it.")


# -- the window ---------------------------------------------------------------------------------------------------


async def test_an_answer_as_it_comes(stage: Stage) -> None:
    await stage.ask()
    stage.bridge.happens("state", state="working")
    stage.bridge.happens("prompt", uuid="u", text="why?\nmore", by=stage.bridge.by)
    for piece, so_far in (("Bec", "Bec"), ("ause\nit", "Because\nit"), (" is", "Because\nit is")):
        stage.bridge.happens("text", text=piece)
        await stage.shows(f"  more\n\n{so_far}")
    assert await stage.person.expr(STATE) == "working…"
    stage.bridge.happens("said", text="Because\nit is **so**.")
    stage.bridge.happens("thinking", text="hm\nhm")
    stage.bridge.happens("tool", id="t1", tool="Bash", title="Bash: ls", input={})
    stage.bridge.happens("tool", id="t2", tool="Read", title="Read: poem.txt", input={})
    stage.bridge.happens("toolResult", id="t2", ok=False, text="no such file")
    stage.bridge.happens("toolResult", id="t1", ok=True, text="\n".join("abcdefgh"))
    stage.bridge.happens("prompt", uuid="v", text="and?", by="terminal")
    stage.bridge.happens("result", ok=True, text="", cost=0.0123, seconds=3.21, reason="")
    stage.bridge.happens("result", ok=False, text="", cost=None, seconds=1, reason="interrupted")
    stage.bridge.happens("state", state="idle")
    await stage.person.until(f"{STATE} ==# 'idle'")
    assert (await stage.page()).split("\n") == [
        "❯ why?", "  more", "", "Because", "it is **so**.", "", "✻ hm … 1 more line", "",
        "✓ Bash: ls", *(f"    {letter}" for letter in "abcde"), "    … 3 more lines",
        "✗ Read: poem.txt", "    no such file", "", "❯ (terminal) and?", "",
        "— done: 3.2 s, $0.0123", "", "— not done: interrupted (1.0 s)",
    ]  # fmt: skip


async def test_it_follows_who_reads_the_end_and_leaves_others_alone(stage: Stage) -> None:
    await stage.ask()
    line = f"line('.', {WINDOW})"
    for number in range(100):
        stage.bridge.happens("said", text=f"answer {number}")
    await stage.shows("answer 99")
    await stage.person.until(f"{line} == line('$', {WINDOW}) && line('w$', {WINDOW}) == {line}")
    await stage.look()
    await stage.type("gg")
    stage.bridge.happens("said", text="the last")
    await stage.shows("the last")
    assert await stage.person.expr(line) == 1
    await stage.type("G")
    stage.bridge.happens("text", text="and\nmore\nlines")
    await stage.person.until(f"getline('.') ==# 'lines' && {line} == line('$')")


async def test_thousands_of_events_neither_freeze_it_nor_grow_without_end(stage: Stage) -> None:
    await stage.ask()
    for number in range(6000):
        stage.bridge.happens("text", text=f"word{number} " + ("\n" if number % 3 == 0 else ""))
    for number in range(3000):
        stage.bridge.happens("tool", id=f"t{number}", tool="Bash", title=f"Bash: {number}", input={})
        stage.bridge.happens("toolResult", id=f"t{number}", ok=True, text="fine\nfine")
    stage.bridge.happens("said", text="the end")
    await stage.person.keys("ihallo\x1b")
    assert await stage.person.expr("getline(1)") == "hallo"
    await stage.shows("the end")
    for number in range(1000):
        stage.bridge.happens("said", text=f"line {number}\nand more")
    await stage.shows("line 999\nand more")
    lines = (await stage.page()).split("\n")
    assert len(lines) <= 5000
    said = [line for number in range(1000) for line in ("", f"line {number}", "and more")]
    assert lines[-3002:] == ["", "the end", *said]
    assert lines[-3005:-3002] == ["✓ Bash: 2999", "    fine", "    fine"]
    assert lines[-3008:-3005] == ["✓ Bash: 2998", "    fine", "    fine"]


async def test_a_line_without_end_is_continued(stage: Stage) -> None:
    await stage.ask()
    for _ in range(50):
        stage.bridge.happens("text", text="ä" * 100)
    stage.bridge.happens("result", ok=True, text="", cost=None, seconds=1, reason="")
    await stage.shows("done: 1.0 s")
    answer = (await stage.page()).split("\n")[:-2]
    assert "".join(answer) == "ä" * 5000
    assert max(map(len, answer)) <= 1000


async def test_the_keys_of_the_window(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    for key in ("\r", "i"):
        await stage.type(f"{key}and then?\r")
    assert await stage.bridge.wait_for("ask", 3) == {"text": "and then?", "session": SESSION}
    await stage.person.keys("\x03")
    assert await stage.bridge.wait_for("interrupt") == {"session": SESSION}
    await stage.type("?")
    await stage.person.until("bufname() ==# 'ide-bridge://keys'")
    await stage.type("q")
    await stage.look()
    await stage.type("q")
    assert await stage.person.expr(f"[winnr('$'), {WINDOW}]") == [1, -1]
    stage.bridge.happens("said", text="while nobody looked")
    await stage.ask("again")
    await stage.shows("while nobody looked")
    assert "session" not in (await stage.bridge.wait_for("ask", 4))


@pytest.mark.parametrize("how", ["bdelete!", "bwipeout!"])
async def test_a_window_that_was_thrown_away_comes_back_whole(stage: Stage, how: str) -> None:
    await stage.ask()
    stage.bridge.happens("said", text="said before")
    await stage.shows("said before")
    await stage.person.ex(f"execute '{how}' bufnr('ide-bridge://session/0a1b2c3d')")
    stage.bridge.happens("said", text="said after")
    await stage.ask("again")
    await stage.shows("said before\n\nsaid after")
    await stage.look()
    assert await stage.person.expr("[&buftype, &filetype]") == ["nofile", "markdown"]
    assert await stage.person.expr("maparg('a', 'n') != ''")


async def test_nobody_is_disturbed_while_typing(stage: Stage) -> None:
    await stage.type(":IdeBridgeAsk why?\ri")
    await stage.bridge.wait_for("ask")
    await stage.person.keys("abc")
    assert await stage.person.expr("[mode(), winnr('$'), getline(1)]") == ["i", 1, "abc"]
    await stage.person.keys("\x1b")
    await stage.person.until(f"{WINDOW} > 0")


async def test_where_the_window_opens_is_the_users_choice(stage: Stage) -> None:
    await stage.person.ex("let g:ide_bridge_session_window = 'topleft 7'")
    await stage.ask()
    assert await stage.person.expr(f"[win_id2win({WINDOW}), winheight({WINDOW})]") == [1, 7]


async def test_it_is_no_file_to_anybody(stage: Stage) -> None:
    await stage.person.open(str(stage.folder / "poem.txt"))
    await stage.ask()
    await stage.look()
    await stage.type("Vy")
    told = json.dumps([params for method, params in stage.bridge.asked if method != "ask"])
    assert "session/" not in told


# -- sessions -----------------------------------------------------------------------------------------------------


async def test_sessions_are_listed_and_opened(stage: Stage) -> None:
    stage.bridge.start(OTHER)
    await stage.type(":IdeBridgeSessions\r")
    await stage.person.until("getline(1) =~# '^11112222  idle .* a title$'")
    await stage.type("\r")
    assert (await stage.bridge.wait_for("watchSession"))["session"].startswith("11112222")
    await stage.person.until("bufname() ==# 'ide-bridge://session/11112222'")
    stage.bridge.happens("said", OTHER, text="told before")
    await stage.person.until("getline('$') ==# 'told before'")
    await stage.type(":IdeBridgeStopSession\r")
    assert (await stage.bridge.wait_for("stopSession"))["session"].startswith("11112222")
    await stage.says("session 11112222 is stopped")


async def test_no_sessions(stage: Stage) -> None:
    await stage.type(":IdeBridgeSessions\r")
    await stage.person.until("getline(1) ==# 'There are no sessions; :IdeBridgeAsk starts one.'")
    await stage.type("\rq:IdeBridgeInterrupt\r")
    await stage.says("which session? :IdeBridgeSessions lists them")


async def test_a_session_used_last_is_the_one_interrupted(stage: Stage) -> None:
    await stage.ask()
    await stage.type(":IdeBridgeInterrupt\r")
    assert await stage.bridge.wait_for("interrupt") == {"session": SESSION}
    await stage.type(":IdeBridgeInterrupt 1234\r")
    assert await stage.bridge.wait_for("interrupt", 2) == {"session": "1234"}
    assert await stage.person.expr("getcompletion('IdeBridgeStopSession ', 'cmdline')") == ["0a1b2c3d"]


async def test_a_session_that_went_with_its_bridge_is_lost_and_can_be_resumed(stage: Stage) -> None:
    await stage.ask()
    stage.bridge.happens("state", state="working")
    stage.bridge.happens("said", text="half of it")
    await stage.asks_permission(approval("k3f"))
    stage.bridge.forget()
    await stage.shows("half of it\n\n✗ Bash: mkdir x: withdrawn")
    await stage.shows("! The session is lost: its bridge is gone. <CR> asks again and resumes it.")
    await stage.person.until(f"{STATE} ==# 'lost; <CR> asks again' && {stage.kind.status_line} ==# 'bridge'")
    await stage.look()
    await stage.type("\rgo on\r")
    assert await stage.bridge.wait_for("ask", 2) == {"text": "go on", "session": SESSION}
    stage.bridge.happens("state", state="working")
    stage.bridge.happens("said", text="the other half")
    await stage.shows("resumes it.\n\nthe other half")
    assert "half of it" in await stage.page()
    assert await stage.person.expr(STATE) == "working…"


async def test_a_session_told_again_from_its_beginning_stands_there_once(stage: Stage) -> None:
    await stage.ask()
    stage.bridge.happens("said", text="one")
    stage.bridge.happens("said", text="two")
    await stage.shows("two")
    await stage.type(":IdeBridgeStop\r")
    await stage.person.until(f"{STATE} ==# 'not attached; <CR> asks again'")
    stage.bridge.forget()
    await stage.type(":IdeBridgeAsk and?\r")
    await stage.bridge.wait_for("ask", 2)
    for text in ("one", "two", "three"):
        stage.bridge.happens("said", text=text)
    await stage.shows("three")
    assert await stage.page() == "one\n\ntwo\n\nthree"


# -- approvals ----------------------------------------------------------------------------------------------------


async def test_what_is_asked_is_told_and_shown_and_answered_by_a_key(stage: Stage) -> None:
    await stage.ask()
    given = {"command": "mkdir x\nmkdir y", "timeout": 5}
    await stage.asks_permission(approval("k3f", input=given, suggestions=[{"type": "addRules"}]))
    await stage.says("Claude asks (:IdeBridgeApprove k3f, :IdeBridgeDeny k3f): Bash: mkdir x")
    assert await stage.page() == (
        "? Bash: mkdir x [k3f]\n    command:\n      mkdir x\n      mkdir y\n    timeout: 5\n"
        "  a allow · A allow for the session · d deny · e edit"
    )
    assert await stage.person.expr(stage.kind.status_line) == "bridge 1 approval"
    await stage.look()
    await stage.type("a")
    assert await stage.bridge.wait_for("decide") == {"approval": "k3f", "behavior": "allow"}
    await stage.shows(f"✓ Bash: mkdir x: allowed by {stage.bridge.by}")
    assert await stage.person.expr(stage.kind.status_line) == "bridge"
    assert "a allow" not in await stage.page()


async def test_for_the_session_and_with_a_reason(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    await stage.asks_permission(approval("one"))
    await stage.type("A")
    assert (await stage.bridge.wait_for("decide"))["forSession"] is True
    await stage.asks_permission(approval("two"))
    await stage.type("dnot there\r")
    expected = {"approval": "two", "behavior": "deny", "reason": "not there"}
    assert await stage.bridge.wait_for("decide", 2) == expected
    await stage.shows(f"✗ Bash: mkdir x: denied by {stage.bridge.by} (not there)")
    await stage.asks_permission(approval("three"))
    await stage.person.keys("d\x1b")
    assert len(stage.bridge.calls("decide")) == 2, "who gives up leaves it open"


async def test_commands_answer_too(stage: Stage) -> None:
    for name in ("aa1", "aa2", "aa3", "bb1"):
        stage.bridge.ask_permission(approval(name))
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge 4 approvals'")
    await stage.type(":IdeBridgeApprove\r")
    await stage.says("several things are asked; :IdeBridgeApprovals lists them")
    assert await stage.person.expr("getcompletion('IdeBridgeApprove aa', 'cmdline')") == ["aa1", "aa2", "aa3"]
    await stage.type(":IdeBridgeApprove aa1\r:IdeBridgeApprove! aa2\r:IdeBridgeDeny aa3 too much\r")
    assert await stage.bridge.wait_for("decide", 1) == {"approval": "aa1", "behavior": "allow"}
    forever = {"approval": "aa2", "behavior": "allow", "forSession": True}
    assert await stage.bridge.wait_for("decide", 2) == forever
    denied = {"approval": "aa3", "behavior": "deny", "reason": "too much"}
    assert await stage.bridge.wait_for("decide", 3) == denied
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge 1 approval'")
    await stage.type(":IdeBridgeDeny not this\r")
    denied = {"approval": "bb1", "behavior": "deny", "reason": "not this"}
    assert await stage.bridge.wait_for("decide", 4) == denied
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge'")
    await stage.type(":IdeBridgeApprove\r:IdeBridgeApprove zz\r")
    await stage.says("nothing is asked")
    await stage.says("zz is not open; :IdeBridgeApprovals lists what is")


async def test_the_list_of_what_is_asked(stage: Stage) -> None:
    await stage.type(":IdeBridgeApprovals\r")
    await stage.person.until("getline(1) ==# 'Nothing is asked.'")
    await stage.type("q")
    stage.bridge.ask_permission(approval("one", asked=2.0))
    stage.bridge.ask_permission(approval("two", asked=1.0, title="Bash: rm\x1b[2J"))
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge 2 approvals'")
    await stage.person.ex("sleep 350m")
    await stage.type(":IdeBridgeApprovals\r")
    await stage.person.until("getline(1, '$') ==# ['two  0a1b2c3d  Bash: rm [2J', 'one  0a1b2c3d  Bash: mkdir x']")
    await stage.type("ja")
    assert (await stage.bridge.wait_for("decide"))["approval"] == "one"
    await stage.type("gg\r")
    await stage.person.until("bufname() ==# 'ide-bridge://session/0a1b2c3d'")


async def test_somebody_else_was_first(stage: Stage) -> None:
    await stage.ask()
    await stage.asks_permission(approval("one"))
    stage.bridge.close_question("one", "denied", "terminal", "no")
    await stage.says("denied by terminal (no): Bash: mkdir x")
    await stage.shows("✗ Bash: mkdir x: denied by terminal (no)")
    await stage.asks_permission(approval("two"))
    stage.bridge.refuse("decide", -32602, "It was already allowed by terminal.")
    stage.bridge.open.clear()
    await stage.type(":IdeBridgeApprove two\r")
    await stage.says("It was already allowed by terminal.")
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge'")


async def test_a_key_pressed_for_something_else_allows_nothing(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    await stage.person.ex("sleep 10m")
    stage.bridge.ask_permission(approval("one"))
    await stage.shows("[one]")
    await stage.type("a")
    await stage.says("what is asked has just changed; press it again if you mean this: Bash: mkdir x")
    assert stage.bridge.calls("decide") == []


async def test_of_two_the_one_under_the_cursor_is_meant(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    await stage.asks_permission(approval("one"))
    await stage.asks_permission(approval("two"))
    await stage.type("gga")
    assert (await stage.bridge.wait_for("decide"))["approval"] == "one"
    stage.bridge.happens("said", text="text")
    await stage.shows("text")
    await stage.type("Ga")
    assert (await stage.bridge.wait_for("decide", 2))["approval"] == "two"


async def test_what_was_asked_before_is_known(stage: Stage) -> None:
    await stage.type(":IdeBridgeStop\r")
    assert stage.bridge.calls("approvals") == [], "a bridge without sessions is not asked for them"
    await stage.ask()
    stage.bridge.ask_permission(approval("one"))
    await stage.type(":IdeBridgeStop\r:IdeBridgeStart\r")
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge 1 approval'")


async def test_the_input_can_be_changed(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    await stage.asks_permission(approval("one", input={"command": "mkdir x", "list": [1, {"a": None}], "no": {}}))
    await stage.type("e")
    await stage.person.until("bufname() ==# 'ide-bridge://input/one'")
    assert (await stage.person.expr("getline(1, '$')"))[:2] == ["{", '  "command": "mkdir x",']
    await stage.type(":%s/mkdir x/mkdir y/\r:q\r:q!\r")
    assert stage.bridge.calls("decide") == [], "closing it leaves the question open"
    await stage.look()
    await stage.type("e:%s/mkdir x/mkdir y\r:$delete\r:w\r")
    await stage.says("this is no JSON")
    await stage.type("u:w\r")
    decided = await stage.bridge.wait_for("decide")
    assert (decided["behavior"], decided["input"]["command"]) == ("allow", "mkdir y")
    assert (decided["input"]["list"][0], decided["input"]["no"]) == (1, {})
    await stage.person.until("bufwinid('ide-bridge://input/one') < 0")


async def test_what_is_written_by_an_autocommand_is_not_allowed(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    await stage.asks_permission(approval("one"))
    await stage.person.ex("autocmd InsertLeave * ++nested wall")
    await stage.person.keys("eA \x1b")
    assert await stage.person.expr("[bufname(), getline(1)]") == ["ide-bridge://input/one", "{ "]
    assert stage.bridge.calls("decide") == []
    await stage.type(":w\r")
    await stage.bridge.wait_for("decide")


async def test_an_input_that_is_answered_elsewhere_meanwhile_goes_away(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    await stage.asks_permission(approval("one"))
    await stage.type("e")
    await stage.person.until("bufname() ==# 'ide-bridge://input/one'")
    stage.bridge.close_question("one", "allowed", "terminal")
    await stage.person.until("bufwinid('ide-bridge://input/one') < 0")


async def test_the_change_of_a_file_can_be_looked_at(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    path = str(stage.folder / "poem.txt")
    edit = {"file_path": path, "old_string": "zwei äöü\n", "new_string": "2\\\n"}
    await stage.asks_permission(approval("one", "Edit", input=edit))
    await stage.shows("= show the change")
    await stage.type("=")
    await stage.person.until("tabpagenr('$') == 2")
    shown = "tabpagebuflist()->map({_, buffer -> getbufline(buffer, 1, '$')})"
    assert await stage.person.expr(shown) == [["eins", "zwei äöü", "drei"], ["eins", "2\\", "drei"]]
    assert await stage.person.expr("getwinvar(1, '&diff') && getwinvar(2, '&diff')")
    await stage.type("q")
    assert await stage.person.expr("tabpagenr('$')") == 1
    await stage.type("d\r")
    write = {"file_path": str(stage.folder / "new.txt"), "content": "eins\n"}
    await stage.asks_permission(approval("two", "Write", input=write))
    await stage.type("=")
    await stage.person.until("tabpagenr('$') == 2")
    assert await stage.person.expr(shown) == [[""], ["eins"]]


async def test_a_change_that_does_not_fit_says_so(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    edit = {"file_path": str(stage.folder / "poem.txt"), "old_string": "fünf", "new_string": "5"}
    await stage.asks_permission(approval("one", "Edit", input=edit))
    await stage.type("=")
    await stage.says("what is to be replaced is not in the file")


async def test_questions_are_answered_by_numbers_or_words(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    questions = [
        {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False},
        {"question": "Which ones?", "header": "Ones", "options": options, "multiSelect": True},
        {"question": "What else?", "header": "Else", "options": options, "multiSelect": False},
    ]
    given = {"questions": questions}
    await stage.asks_permission(approval("one", "AskUserQuestion", kind="question", title="Well?", input=given))
    await stage.shows("    Which colour?\n    1. Red: warm\n    2. Blue: cold\n    Which ones?")
    await stage.shows("  a answer · d deny")
    await stage.person.keys("a2\r\x1b")
    assert stage.bridge.calls("decide") == []
    await stage.type("a2\r1, 2\rgreen, 3 of them\r")
    assert await stage.bridge.wait_for("decide") == {
        "approval": "one",
        "behavior": "allow",
        "answers": {"Which colour?": "Blue", "Which ones?": "Red, Blue", "What else?": "green, 3 of them"},
    }
    assert await stage.person.expr("mode()") == "n"


async def test_a_plan_is_read_and_allowed(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    plan = {"plan": "# Plan\n\n1. do it"}
    await stage.asks_permission(approval("one", "ExitPlanMode", kind="plan", title="A plan", input=plan))
    await stage.shows("? A plan [one]\n    # Plan\n\n    1. do it\n  a allow · d deny")
    await stage.type("e")
    await stage.says("this cannot be changed here; a allows or answers it, d denies it")
    await stage.type("a")
    assert await stage.bridge.wait_for("decide") == {"approval": "one", "behavior": "allow"}


async def test_the_users_autocommands_are_told(stage: Stage) -> None:
    await stage.person.ex("let g:told = []")
    for name, what in (("Asked", "id"), ("Closed", "outcome")):
        told = f"call add(g:told, g:ide_bridge_event.{what})"
        await stage.person.ex(f"autocmd User IdeBridgeApproval{name} {told}")
    stage.bridge.ask_permission(approval("one"))
    stage.bridge.close_question("one", "expired", "", "nobody answered")
    await stage.person.until("g:told ==# ['one', 'expired']")


async def test_telling_never_asks_for_enter(stage: Stage) -> None:
    await stage.ask()
    for number in range(20):
        stage.bridge.ask_permission(approval(f"n{number}", title="long\n" * 200))
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge 20 approvals'")
    assert await stage.person.expr("mode()") == "n"


# -- what only Vim cannot do --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["Vim"], indirect=True)
async def test_what_vim_cannot_show_it_does_not_allow(stage: Stage) -> None:
    await stage.ask()
    await stage.look()
    await stage.asks_permission(approval("one", input={"command": "ls\0rm -rf x"}))
    await stage.type("a")
    await stage.says("it has NUL characters, which Vim cannot show: answer it elsewhere, or deny it")
    await stage.type("e")
    await stage.says("this cannot be changed here")
    assert stage.bridge.calls("decide") == []
    await stage.type(":IdeBridgeStop\r:IdeBridgeStart\r")
    await stage.person.until(f"{stage.kind.status_line} ==# 'bridge 1 approval'")
    await stage.type(":IdeBridgeApprove one\r")
    assert stage.bridge.calls("decide") == []
    await stage.type(":IdeBridgeDeny one odd\r")
    assert (await stage.bridge.wait_for("decide"))["behavior"] == "deny"
