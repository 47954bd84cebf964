"""Diffs in a real Emacs: shown, changed, decided with the keys a user presses, and the windows afterwards."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.claude_cli import Home
from tests.fakes.emacs import EmacsPerson, emacs, emacs_daemon, lisp
from tests.fakes.emacs_link import LinkEnd, link_end
from tests.fakes.programs import program
from tests.fakes.terminal import Terminal

NOW = "".join(f"line {number}\n" for number in range(20))
PROPOSED = NOW.replace("line 2\n", "line two\n").replace("line 15\n", "line fifteen\n")

DEAF = """
(progn
  (defvar deaf-longest 0)
  (defvar deaf-last (float-time))
  (run-with-timer 0 0.01 (lambda ()
    (setq deaf-longest (max deaf-longest (- (float-time) deaf-last)) deaf-last (float-time)))))
"""


@pytest.fixture
def home() -> Any:
    with Home() as home:
        yield home


@pytest.fixture
async def link() -> AsyncIterator[LinkEnd]:
    async with link_end() as link:
        yield link


@pytest.fixture
async def person(home: Home, link: LinkEnd, tmp_path: Path) -> AsyncIterator[EmacsPerson]:
    (tmp_path / "one.py").write_text(NOW, encoding="utf-8")
    (tmp_path / "two.py").write_text(NOW, encoding="utf-8")
    async with emacs(tmp_path, home.environment, link.command) as person:
        yield person


async def show(link: LinkEnd, path: Path, contents: str = PROPOSED, diff: int = 1) -> None:
    assert await link.request("showDiff", diff=diff, path=str(path), title="a title", contents=contents) == {}


async def decided(link: LinkEnd) -> tuple[int, str, str | None]:
    told = await link.notification("diffDecided")
    return told["diff"], told["decision"], told.get("contents")


async def test_kept_as_proposed_and_the_windows_are_as_before(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    await person.open(str(tmp_path / "two.py"))
    await person.split()
    await person.open(str(tmp_path / "one.py"))
    await person.place(3, 2)
    before = await person.layout()
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    names = [window[0] for window in await person.layout()]  # type: ignore[attr-defined]
    assert names[:2] == ["one.py (now)", "one.py (proposed)"]
    await person.keep(1)
    assert await decided(link) == (1, "kept", PROPOSED)
    assert await person.layout() == before
    assert (tmp_path / "one.py").read_text(encoding="utf-8") == NOW
    assert await person.eval("(buffer-modified-p)") is None
    assert not [name for name in await person.eval("(mapcar #'buffer-name (buffer-list))") if "(" in name]


async def test_a_hunk_left_out_in_ediff(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    person.keys("n")
    await person.until(
        "(eql 0 (buffer-local-value 'ediff-current-difference (ide-bridge--diff-view (car ide-bridge--diffs))))"
    )
    person.keys("a")
    await person.until('(string-search "line 2\\n" (with-current-buffer "one.py (proposed)" (buffer-string)))')
    person.keys("qy")
    assert await decided(link) == (1, "kept", NOW.replace("line 15\n", "line fifteen\n"))


async def test_quitting_ediff_asks_once_and_may_be_taken_back(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    person.keys("q")
    await person.until("(active-minibuffer-window)")
    await person.cancel()
    assert await person.eval("(length ide-bridge--diffs)") == 1
    person.keys("qn")
    assert await decided(link) == (1, "rejected", None)


async def test_saving_keeps_and_killing_rejects(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    before = await person.layout()
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    await person.command('(pop-to-buffer "one.py (proposed)") (insert "mine\\n")')
    person.keys("\x18\x13")
    assert await decided(link) == (1, "kept", "mine\n" + PROPOSED)
    await show(link, tmp_path / "one.py", diff=2)
    await person.look_at(2)
    await person.command('(kill-buffer "one.py (proposed)")')
    assert await decided(link) == (2, "rejected", None)
    await person.until("(not ide-bridge--diffs)")
    assert await person.layout() == before


async def test_new_file_and_final_line_ends(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await show(link, tmp_path / "sub" / "new.py", "a\nno end")
    await person.keep(1)
    assert await decided(link) == (1, "kept", "a\nno end")
    await show(link, tmp_path / "new.py", "", diff=2)
    await person.keep(2)
    assert await decided(link) == (2, "kept", "")
    assert not (tmp_path / "new.py").exists()


async def test_line_ends_are_kept_and_not_seen(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    (tmp_path / "dos.txt").write_bytes(b"a\r\nb\r\n")
    await show(link, tmp_path / "dos.txt", "a\r\nc\r\n")
    await person.look_at(1)
    assert await person.eval('(with-current-buffer "dos.txt (proposed)" (buffer-string))') == "a\nc\n"
    assert await person.eval('(with-current-buffer "dos.txt (now)" (buffer-string))') == "a\nb\n"
    await person.command('(pop-to-buffer "dos.txt (proposed)") (goto-char (point-max)) (insert "d\\n")')
    person.keys("\x03\x03")
    assert await decided(link) == (1, "kept", "a\r\nc\r\nd\r\n")
    await show(link, tmp_path / "dos.txt", "a\r\nb\n", diff=2)
    await person.keep(2)
    assert await decided(link) == (2, "kept", "a\r\nb\n")


async def test_unsaved_changes_are_shown_and_survive(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    await person.type("unsaved\n")
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    assert (await person.eval('(with-current-buffer "one.py (unsaved)" (buffer-string))')).startswith("unsaved\n")
    assert "You have unsaved changes" in await person.messages()
    await person.keep(1)
    assert await decided(link) == (1, "kept", PROPOSED)
    assert (await person.text(str(tmp_path / "one.py"))).startswith("unsaved\n")


async def test_closed_from_outside_is_silent(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    before = await person.layout()
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    assert await link.request("closeDiff", diff=1) == {}
    assert await link.request("closeDiff", diff=1) == {}
    assert await person.layout() == before
    assert not [message for message in link.heard if message["method"] == "diffDecided"]


async def test_closed_while_the_question_is_open(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    before = await person.layout()
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    person.keys("q")
    await person.until("(active-minibuffer-window)")
    assert await link.request("closeDiff", diff=1) == {}
    person.keys("y")
    await person.until("(not (active-minibuffer-window))")
    await person.until(
        '(string-search "decided elsewhere" (with-current-buffer (messages-buffer) (buffer-string)))'
    )
    await person.until("(= 1 (length (window-list)))")
    assert await person.layout() == before
    assert not [message for message in link.heard if message["method"] == "diffDecided"]


async def test_offered_again_keeps_what_the_user_did(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    await person.command('(pop-to-buffer "one.py (proposed)") (insert "mine\\n")')
    await show(link, tmp_path / "one.py")
    assert await person.eval("(length ide-bridge--diffs)") == 1
    await person.keep(1)
    assert await decided(link) == (1, "kept", "mine\n" + PROPOSED)
    await show(link, tmp_path / "one.py", diff=2)
    await person.look_at(2)
    await show(link, tmp_path / "one.py", "another\n", diff=2)
    await person.keep(2)
    assert await decided(link) == (2, "kept", "another\n")


async def test_several_wait_for_their_turn(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    before = await person.layout()
    for number in (1, 2, 3):
        await show(link, tmp_path / "one.py", f"{number}\n", diff=number)
    await person.keep(2)
    assert await decided(link) == (2, "kept", "2\n")
    await person.reject(1)
    assert await decided(link) == (1, "rejected", None)
    await person.keep(3)
    assert await decided(link) == (3, "kept", "3\n")
    assert await person.layout() == before


async def test_nothing_appears_under_a_typing_hand(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    person.keys("\x1bx")
    await person.until("(active-minibuffer-window)")
    await show(link, tmp_path / "one.py")
    await person.until("ide-bridge--turn")
    assert await person.eval("(ide-bridge--diff-view (car ide-bridge--diffs))") is None
    await person.cancel()
    await person.reject(1)
    assert await decided(link) == (1, "rejected", None)


async def test_windows_the_user_has_arranged_anew_are_left_alone(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    await show(link, tmp_path / "one.py")
    await person.look_at(1)
    await person.command(
        f"(tab-new) (delete-other-windows) (find-file {lisp(tmp_path / 'two.py')}) (split-window-right)"
    )
    arranged = await person.layout()
    await person.command("(ide-bridge-accept)")
    assert await decided(link) == (1, "kept", PROPOSED)
    assert await person.layout() == arranged


async def test_unified_view(home: Home, link: LinkEnd, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(NOW, encoding="utf-8")
    wish = "(setq ide-bridge-diff-view 'unified)"
    async with emacs(tmp_path, home.environment, link.command, wish) as person:
        before = await person.layout()
        await show(link, tmp_path / "one.py")
        await person.look_at(1)
        shown = await person.eval("(buffer-string)")
        assert "-line 2\n+line two\n" in shown
        assert "line 9" not in shown
        person.keys("\x03\x03")
        assert await decided(link) == (1, "kept", PROPOSED)
        assert await person.layout() == before
        await show(link, tmp_path / "one.py", diff=2)
        await person.look_at(2)
        person.keys("e")
        await person.until('(get-buffer-window "one.py (proposed)")')
        await person.keep(2, "edited\n")
        assert await decided(link) == (2, "kept", "edited\n")
        await show(link, tmp_path / "one.py", diff=3)
        await person.look_at(3)
        person.keys("qn")
        assert await decided(link) == (3, "rejected", None)
        await show(link, tmp_path / "one.py", diff=4)
        await person.look_at(4)
        await person.command("(kill-buffer)")
        assert await decided(link) == (4, "rejected", None)
        assert await person.layout() == before


@pytest.mark.parametrize("by_file", [False, True])
async def test_ten_megabytes_do_not_freeze_emacs(
    home: Home, link: LinkEnd, tmp_path: Path, *, by_file: bool
) -> None:
    now = "".join(f"    value = compute(value, {number})  # été\n" for number in range(250_000))
    proposed = now.replace("7)", "seven)")
    (tmp_path / "big.py").write_text(now, encoding="utf-8")
    passed = {"contents": proposed}
    if by_file:
        (tmp_path / "private").write_text(proposed, encoding="utf-8")
        passed = {"contentsFile": str(tmp_path / "private")}
    async with emacs(tmp_path, home.environment, link.command, DEAF) as person:
        await person.command("(setq deaf-longest 0)")
        await link.request("showDiff", diff=1, path=str(tmp_path / "big.py"), title="", **passed)
        await person.look_at(1)
        shown = await person.eval("(buffer-size)")
        deaf = await person.eval("deaf-longest")
        await person.command("(ide-bridge-accept)")
        told = await link.notification("diffDecided")
    if by_file:
        kept = Path(told["contentsFile"])
        assert kept.read_text(encoding="utf-8") == proposed
        assert kept.stat().st_mode & 0o777 == 0o600
        kept.unlink()
    else:
        assert told["contents"] == proposed
    assert 1000 < shown < 600_000
    assert deaf < (0.5 if by_file else 2.0), deaf


async def test_a_daemon_waits_for_a_frame_and_the_first_key_counts(
    home: Home, link: LinkEnd, tmp_path: Path
) -> None:
    path = tmp_path / "one.py"
    path.write_text(NOW, encoding="utf-8")
    async with emacs_daemon(tmp_path, home.environment, link.command) as person:
        await show(link, path)
        await person.until("(and ide-bridge--turn ide-bridge--diffs)")
        assert await person.eval("ide-bridge--shown") is None
        client = [program("emacsclient"), "-t", "-s", str(person.socket), str(path)]
        with Terminal(client, tmp_path, home.environment) as terminal:
            await asyncio.to_thread(terminal.wait_for, "At start of 2 diffs")
            terminal.type("q")
            await asyncio.to_thread(terminal.wait_for, "Keep the change of one.py?")
            terminal.type("y")
            assert await decided(link) == (1, "kept", PROPOSED)
            await asyncio.to_thread(terminal.wait_until_gone, "proposed")
