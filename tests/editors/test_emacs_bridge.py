"""A real Emacs on a real bridge, with a client that speaks as the CLI does: one story, and what it costs."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from ide_bridge.model import Position
from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_cli import Home
from tests.fakes.claude_client import ClaudeClient, connect, texts
from tests.fakes.emacs import EmacsPerson, emacs

COMMAND = [str(Path(sys.executable).with_name("ide-bridge"))]
NOW = "one\ntwo\nthree\n"


@pytest.fixture
def home() -> Any:
    with Home() as home:
        yield home


async def selected(client: ClaudeClient, text: str) -> None:
    async with asyncio.timeout(10):
        while (await client.notification("selection_changed"))["text"] != text:
            pass


async def open_diff(client: ClaudeClient, path: Path, contents: str) -> int:
    arguments = {
        "old_file_path": str(path),
        "new_file_path": str(path),
        "new_file_contents": contents,
        "tab_name": f"a tab of {path.name}",
    }
    return await client.ask_tool("openDiff", arguments)


async def decide(person: EmacsPerson, keys: str) -> None:
    await person.until("(and ide-bridge--shown (get-buffer-window (ide-bridge--diff-view ide-bridge--shown)))")
    person.keys(keys)


async def test_a_story(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(NOW, encoding="utf-8")
    with BridgeProcess(tmp_path, home.environment) as bridge:
        token = Path(bridge.ready["token_file"]).read_text(encoding="ascii")
        async with connect(bridge.ready["port"], token) as client:
            await client.introduce()
            async with emacs(tmp_path, home.environment, COMMAND) as person:
                await person.until("(ide-bridge--clients (car ide-bridge--links))")
                await person.open(str(path))
                await person.select(Position(0, 1), Position(1, 1))
                await selected(client, "ne\nt")
                await person.mention(1, 2)
                mention = await client.notification("at_mentioned")
                assert (mention["filePath"], mention["lineStart"], mention["lineEnd"]) == (str(path), 1, 2)
                await keep_with_a_change(client, person, path)
                await reject(client, person, path)
                await keep_what_is_large(client, person, tmp_path / "large.txt")
                await person.quit()
            assert len(bridge.clients()) == 1
            async with emacs(tmp_path, home.environment, COMMAND) as person:
                await person.open(str(path))
                await person.select(Position(3, 0), Position(3, 5))
                await selected(client, "three")


async def keep_with_a_change(client: ClaudeClient, person: EmacsPerson, path: Path) -> None:
    asked = await open_diff(client, path, NOW.replace("two", "2"))
    await person.until("ide-bridge--shown")
    await person.command('(pop-to-buffer "story.txt (proposed)") (insert "zero\\n")')
    await decide(person, "\x03\x03")
    kept = texts(await client.answer(asked))
    assert kept == ["FILE_SAVED", "zero\none\n2\nthree\n"]
    path.write_text(kept[1], encoding="utf-8")


async def reject(client: ClaudeClient, person: EmacsPerson, path: Path) -> None:
    asked = await open_diff(client, path, "something else\n")
    await decide(person, "qn")
    assert texts(await client.answer(asked))[0] == "DIFF_REJECTED"


async def keep_what_is_large(client: ClaudeClient, person: EmacsPerson, path: Path) -> None:
    proposed = "".join(f"line {number}: été\n" for number in range(100_000))
    asked = await open_diff(client, path, proposed)
    await decide(person, "\x03\x03")
    assert texts(await client.answer(asked)) == ["FILE_SAVED", proposed]


async def test_status_of_a_real_bridge(home: Home, tmp_path: Path) -> None:
    async with emacs(tmp_path, home.environment, COMMAND) as person:
        await person.until('(equal "full" (ide-bridge--sharing (car ide-bridge--links)))')
        await person.command("(ide-bridge-status)")
        await person.until('(string-search "Sharing: full" (buffer-string))')
        assert "Editors: Emacs" in await person.eval("(buffer-string)")
        await person.command('(ide-bridge-sharing "off")')
        await person.until('(equal "off" (ide-bridge--sharing (car ide-bridge--links)))')
        stop = await asyncio.create_subprocess_exec(*COMMAND, "stop", str(tmp_path), env=home.environment)
        assert await stop.wait() == 0
        await person.until("(not ide-bridge--links)")
        assert f"The bridge of {tmp_path} was stopped" in await person.messages()


async def test_a_selection_is_told_within_ten_milliseconds(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.write_text("    value = compute(value)\n" * 20_000, encoding="utf-8")
    async with emacs(tmp_path, home.environment, COMMAND) as person:
        await person.open(str(path))
        await person.place(15_000, 3)
        took = await person.eval("(/ (car (benchmark-run 50 (forward-char) (ide-bridge--after-command))) 50)")
    assert took < 0.010, f"{took * 1000:.1f} ms"
