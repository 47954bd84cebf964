"""What a real Emacs tells the bridge, answers it, and does for its user; diffs and diagnostics have their own."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ide_bridge.model import Position
from tests.fakes.claude_cli import Home
from tests.fakes.emacs import EmacsPerson, emacs, lisp
from tests.fakes.emacs_link import LinkEnd, LinkRefused, link_end


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
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("first\nséc𝔘nd\nthird\n", encoding="utf-8")
    async with emacs(tmp_path, home.environment, link.command) as person:
        yield person


async def test_says_hello(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    assert link.hello["link"] == 1
    assert link.hello["editor"] == "Emacs"
    assert link.hello["pid"] == person.pid
    assert link.hello["folders"] == [str(tmp_path)]


async def test_selection_counts_code_points(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    await person.select(Position(0, 2), Position(1, 4))
    told = await link.notification("selectionChanged", lambda params: params["text"] != "")
    assert told["text"] == "rst\nséc𝔘"
    assert (told["start"], told["end"]) == ({"line": 0, "column": 2}, {"line": 1, "column": 4})
    assert (told["startLineText"], told["endLineText"]) == ("first", "séc𝔘nd")
    answer = await link.request("selection")
    assert answer == told


async def test_narrowing_does_not_move_lines(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    await person.command(
        "(goto-char (point-min)) (forward-line 2) (narrow-to-region (point) (point-max)) (forward-char)"
    )
    told = await link.notification("selectionChanged", lambda params: params["start"]["line"] == 2)
    assert told["start"] == {"line": 2, "column": 1}
    assert (await link.request("openFiles"))[0]["lines"] == 3
    assert (await link.request("readBuffer", path=str(tmp_path / "one.py")))["text"].startswith("first\n")


async def test_other_windows_keep_the_last_selection(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    await person.place(1, 3)
    await link.notification("selectionChanged", lambda params: params["start"] == {"line": 1, "column": 3})
    await person.scratch()
    await person.type("no file")
    assert link.heard == []
    assert (await link.request("currentFile"))["path"] == str(tmp_path / "one.py")
    assert (await link.request("selection"))["start"] == {"line": 1, "column": 3}


async def test_bytes_that_are_no_text_do_not_break_the_link(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    (tmp_path / "raw.txt").write_bytes(b"a\xff\xfeb\n")
    await person.open(str(tmp_path / "raw.txt"))
    await person.command("(setq buffer-read-only nil) (insert (string #xd800 #x3fffff))")
    read = await link.request("readBuffer", path=str(tmp_path / "raw.txt"))
    assert read["text"].startswith("\ufffd\ufffda")
    assert read["dirty"] is True


async def test_life_of_a_file(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    path = str(tmp_path / "one.py")
    await person.open(path)
    assert await link.notification("fileOpened") == {"path": path}
    assert await link.notification("fileFocused") == {"path": path}
    await person.type("x")
    await person.save()
    assert await link.notification("fileSaved") == {"path": path}
    await person.command(f"(write-file {lisp(tmp_path / 'other.py')})")
    assert await link.notification("fileClosed") == {"path": path}
    assert await link.notification("fileOpened") == {"path": str(tmp_path / "other.py")}
    await person.close()
    assert await link.notification("fileClosed") == {"path": str(tmp_path / "other.py")}


async def test_open_files_are_real_files(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    (tmp_path / "link.py").symlink_to(tmp_path / "one.py")
    await person.open(str(tmp_path / "two.py"))
    await person.open(str(tmp_path / "link.py"))
    await person.type("x")
    files = await link.request("openFiles")
    assert [(file["path"], file["active"], file["dirty"]) for file in files] == [
        (str(tmp_path / "one.py"), True, True),
        (str(tmp_path / "two.py"), False, False),
    ]
    assert {file["language"] for file in files} == {"python"}


async def test_opens_without_asking_or_moving_the_user(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    before = await person.layout()
    place = {"line": 1, "column": 4}
    assert await link.request("openFile", path=str(tmp_path / "two.py"), start=place, end=place, focus=False) == {}
    assert await person.layout() == before
    end = {"line": 2, "column": 1}
    await link.request("openFile", path=str(tmp_path / "two.py"), start=place, end=end, focus=True)
    told = await link.notification("selectionChanged", lambda params: params["path"].endswith("two.py"))
    assert (told["text"], told["start"], told["end"]) == ("nd\nt", place, end)
    assert len(await person.layout()) == 1  # type: ignore[arg-type]


async def test_whatever_would_ask_the_user_is_refused(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    await person.open(str(path))
    await person.type("mine")
    path.write_text("theirs\n", encoding="utf-8")
    os.utime(path, (1, 1))
    with pytest.raises(LinkRefused, match="changed on disk"):
        await link.request("saveFile", path=str(path))
    assert path.read_text(encoding="utf-8") == "theirs\n"
    await person.open(str(tmp_path / "two.py"))
    await person.command('(add-hook \'kill-buffer-query-functions (lambda () (yes-or-no-p "Really? ")) nil t)')
    with pytest.raises(LinkRefused, match="ask the user"):
        await link.request("closeFile", path=str(tmp_path / "two.py"))
    with pytest.raises(LinkRefused, match="-32601"):
        await link.request("danceATango")


async def test_saves_and_closes(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    path = str(tmp_path / "one.py")
    assert await link.request("saveFile", path=path) == {"saved": False}
    await person.open(path)
    await person.type("x")
    assert await link.request("closeFile", path=path) == {"closed": False}
    assert await link.request("saveFile", path=path) == {"saved": True}
    assert Path(path).read_text(encoding="utf-8").startswith("xfirst")
    assert await link.request("closeFile", path=path) == {"closed": True}
    assert await link.request("closeFile", path=path) == {"closed": False}
    assert await link.request("readBuffer", path=path) is None


async def test_reload_keeps_point_and_undo(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    await person.open(str(path))
    await person.type("typed ")
    await person.save()
    await person.place(2, 3)
    path.write_text("typed first\nnew\nsécond\nthird\n", encoding="utf-8")
    os.utime(path, (2_000_000_000, 2_000_000_000))
    link.notify("fileChanged", path=str(path))
    await person.until(f"(verify-visited-file-modtime (find-buffer-visiting {lisp(path)}))")
    assert await person.text(str(path)) == "typed first\nnew\nsécond\nthird\n"
    assert await person.cursor() == Position(3, 3)
    await person.command("(undo) (undo-more 1)")
    assert await person.text(str(path)) == "first\nséc𝔘nd\nthird\n"


async def test_unsaved_text_is_never_reloaded(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    await person.open(str(path))
    await person.type("mine ")
    path.write_text("theirs\n", encoding="utf-8")
    os.utime(path, (2_000_000_000, 2_000_000_000))
    for _ in range(2):
        link.notify("fileChanged", path=str(path))
    link.notify("message", level="info", text="that was all")
    await person.until('(string-search "that was all" (with-current-buffer (messages-buffer) (buffer-string)))')
    assert (await person.text(str(path))).startswith("mine first")
    assert (await person.messages()).count("changed on disk under your unsaved changes") == 1


async def test_mentions_lines_files_and_what_dired_has_marked(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    one, two = str(tmp_path / "one.py"), str(tmp_path / "two.py")
    await person.open(one)
    await person.mention()
    assert await link.notification("mentioned") == {"path": one}
    await person.mention(0, 1)
    assert await link.notification("mentioned") == {"path": one, "startLine": 0, "endLine": 1}
    await person.command(f'(dired {lisp(tmp_path)}) (dired-mark-files-regexp "py$") (ide-bridge-send)')
    assert {(await link.notification("mentioned"))["path"] for _ in range(2)} == {one, two}
    await person.scratch()
    await person.command('(condition-case refusal (ide-bridge-send) (user-error (message "%s" (cadr refusal))))')
    assert "This buffer visits no file" in await person.messages()


async def test_remote_files_are_left_out_and_that_is_said(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    remote = '(setq buffer-file-name "/ssh:nowhere:/tmp/x" default-directory "/ssh:nowhere:/tmp/")'
    await person.open(str(tmp_path / "one.py"))
    await link.notification("selectionChanged")
    await person.command(f'(switch-to-buffer (generate-new-buffer "far")) (insert "x") {remote}')
    assert [file["path"] for file in await link.request("openFiles")] == [str(tmp_path / "one.py")]
    for refused in ("(ide-bridge-start default-directory)", "(ide-bridge-send)"):
        await person.command(f'(condition-case refusal {refused} (user-error (message "%s" (cadr refusal))))')
    said = await person.messages()
    assert "Remote folders are left out" in said
    assert "Remote files are left out" in said
    await person.command('(setq default-directory "/") (ide-bridge-status)')
    assert "Left out: 1 remote buffer" in await person.eval("(buffer-string)")
    assert all("nowhere" not in str(message) for message in link.heard)


async def test_mode_line_tells_clients_policy_and_diffs(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    async def lighter(wanted: str) -> None:
        await person.until(
            f'(equal {lisp(wanted)} (mapconcat #\'substring-no-properties (ide-bridge--lighter) ""))'
        )

    await lighter(" Bridge:0")
    link.notify("clientsChanged", clients=[{"name": "claude-code", "version": "2", "pid": 7}])
    await lighter(" Bridge:1")
    link.answers["share"] = "path"
    await person.command('(ide-bridge-sharing "off")')
    await lighter(" Bridge:1(path)")
    assert "the workspace does not allow off" in await person.messages()
    for number in (1, 2):
        await link.request(
            "showDiff", diff=number, path=str(tmp_path / "one.py"), title="", contents=f"{number}\n"
        )
    await lighter(" Bridge:1(path) 2 diffs")
    link.notify("clientsChanged", clients=[])
    await lighter(" Bridge:0(path) 2 diffs")


async def test_status_shows_what_the_bridge_knows(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    client = {"client": 1, "name": "claude-code", "version": "2.1", "pid": 7, "folder": str(tmp_path)}
    link.answers["status"] = {
        "port": 4242, "pid": 99, "clients": [client], "editors": [{"name": "Emacs"}],
        "diffs": [], "sharing": "full",
    }  # fmt: skip
    await person.command("(ide-bridge-status)")
    await person.until('(string-search "Sharing: full" (buffer-string))')
    shown = await person.eval("(buffer-string)")
    assert "(from ide-bridge-command)" in shown
    assert "process 99, port 4242" in shown
    assert "claude-code 2.1 (process 7" in shown


async def test_chooses_who_gets_the_mentions(person: EmacsPerson, link: LinkEnd) -> None:
    client = {"client": 5, "name": "claude-code", "version": "2.1", "pid": 7}
    chosen: list[Any] = []
    link.answers |= {"status": {"clients": [client]}, "choose": chosen.append}
    await person.command("(ide-bridge-choose-client)")
    await person.until("(active-minibuffer-window)")
    person.keys("claude\t\r")
    await person.until("(not (active-minibuffer-window))")
    async with asyncio.timeout(5):
        while not chosen:
            await asyncio.sleep(0.01)
    assert chosen == [{"client": 5}]


async def test_a_stopped_bridge_is_told_and_not_started_again(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    await link.request("showDiff", diff=1, path=str(tmp_path / "one.py"), title="", contents="x\n")
    await person.look_at(1)
    link.hang_up()
    await person.until("(not (or ide-bridge-mode ide-bridge--links ide-bridge--diffs))")
    assert "was stopped" in await person.messages()
    assert len(await person.layout()) == 1  # type: ignore[arg-type]
    left = await person.eval("(mapcar #'buffer-name (buffer-list))")
    assert [name for name in left if "ide-bridge" in name] == []


async def test_a_relay_that_fails_is_quoted(home: Home, link: LinkEnd, tmp_path: Path) -> None:
    environment = home.environment | {"RELAY_SAYS": "The bridge does not start: no room."}
    async with emacs(tmp_path, environment, link.command) as person:
        link.hang_up()
        await person.until("(not ide-bridge--links)")
        assert "ide-bridge: The bridge does not start: no room." in await person.messages()


async def test_a_refused_hello_is_shown_as_it_is(home: Home, link: LinkEnd, tmp_path: Path) -> None:
    link.answers["hello"] = LinkRefused(-32602, "Upgrade the plug-in.")
    async with emacs(tmp_path, home.environment, link.command, start=False) as person:
        await person.command(f"(ide-bridge-start {lisp(tmp_path)})")
        await person.until("(not ide-bridge-mode)")
        assert "ide-bridge: Upgrade the plug-in." in await person.messages()


async def test_stop_and_start_again(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.py"))
    await person.command("(ide-bridge-stop)")
    assert await person.eval("(list ide-bridge-mode ide-bridge--links)") == [None, None]
    link.heard.clear()
    await person.place(1, 1)
    await person.command(f"(ide-bridge-start {lisp(tmp_path)})")
    told = await link.notification("selectionChanged")
    assert told["start"] == {"line": 1, "column": 1}


async def test_every_project_is_attached_on_request_only(home: Home, link: LinkEnd, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "one.py").write_text("x\n", encoding="utf-8")
    wish = "(setq vc-handled-backends '(Git) ide-bridge-auto-start t)"
    async with emacs(tmp_path, home.environment, link.command, wish, start=False) as person:
        await person.open(str(tmp_path / "one.py"))
        assert await person.eval("ide-bridge--links") is None
        await person.command('(switch-to-buffer "*scratch*") (setq default-directory "/") (ide-bridge-mode 1)')
        assert await person.eval("ide-bridge--links") is None
        await person.open(str(tmp_path / "one.py"))
        await person.until("(and ide-bridge--links (ide-bridge--ready (car ide-bridge--links)))")
        assert link.hello["folders"] == [str(tmp_path)]
        await person.command("(ide-bridge-stop)")
        await person.command('(switch-to-buffer "*scratch*")')
        await person.open(str(tmp_path / "one.py"))
        assert await person.eval("ide-bridge--links") is None


async def test_claude_in_a_terminal_is_a_toggle(home: Home, tmp_path: Path) -> None:
    stand_in = tmp_path / "bridge"
    stand_in.write_text(
        '#!/bin/sh\n[ "$1 $2" = "run claude" ] && shift 2 && echo "claude in $PWD: $*" && read line\n',
        encoding="utf-8",
    )
    stand_in.chmod(0o755)
    async with emacs(tmp_path, home.environment, [str(stand_in)], start=False) as person:
        before = await person.layout()
        await person.command('(ide-bridge-claude \'("--resume" "a b"))')
        await person.until('(string-search "--resume a b" (buffer-string))')
        shown = await person.eval("(buffer-string)")
        assert f"claude in {tmp_path}:" in shown.replace("\n", "")
        await person.stage("(ide-bridge-claude)")
        person.keys("\x18\x1e")  # C-x C-^: in a terminal, C-x is what reaches Emacs
        await person.until("(= 1 (length (window-list)))")
        assert await person.layout() == before
        await person.command("(ide-bridge-claude)")
        await person.until('(string-search "--resume a b" (buffer-string))')
        assert len(await person.layout()) == 2  # type: ignore[arg-type]


async def test_doctor_says_what_it_found(home: Home, tmp_path: Path) -> None:
    stand_in = ["sh", "-c", 'echo "the $0 is in"']
    async with emacs(tmp_path, home.environment, stand_in, start=False) as person:
        await person.command("(ide-bridge-doctor)")
        await person.until('(string-search "the doctor is in" (buffer-string))')
        assert "(from ide-bridge-command)" in await person.eval("(buffer-string)")


async def test_without_a_bridge_the_way_to_get_one_is_said(home: Home, link: LinkEnd, tmp_path: Path) -> None:
    nothing = "(setq ide-bridge--file nil)"
    async with emacs(tmp_path, home.environment, link.command, nothing, start=False) as person:
        await person.command("(setq ide-bridge-command nil) (setq exec-path nil)")
        await person.command(
            '(condition-case failure (ide-bridge-start "/") (error (message "%s" (cadr failure))))'
        )
        assert "pipx install ide-bridge" in await person.messages()
