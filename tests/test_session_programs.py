"""The CLI as a program: found or missed in one sentence, and started with flags that cannot be misread."""

import asyncio
import os
import uuid
from pathlib import Path

import psutil
import pytest

from ide_bridge.errors import InvalidParams, SetupProblem
from ide_bridge.session.process import programs
from ide_bridge.session.process.kept import Command, Kept
from ide_bridge.session.process.programs import Cli, Launch, arguments, find_cli, session_environment
from tests.fakes.doomed_bridge import is_gone
from tests.fakes.recorded_cli import COMMAND

SOON = 20.0
SESSION, OTHER, MESSAGE = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


# -- finding it -----------------------------------------------------------------------------------------------


def program(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def says(words: str) -> str:
    return f"#!/bin/sh\necho '{words}'\n"


async def test_claude_is_found_on_the_path_that_is_given_then_where_it_is_usually_installed(tmp_path):
    places = [tmp_path / "bin/claude", tmp_path / ".claude/local/claude", tmp_path / ".local/bin/claude"]
    environment = {"PATH": f"relative:{tmp_path}/bin", "HOME": str(tmp_path)}
    for number, place in enumerate(places):
        program(place, says(f"2.1.{number} (Claude Code)"))
    for number, place in enumerate(places):
        cli = await find_cli(environment=environment)
        assert cli == Cli((str(place),), (2, 1, number))
        assert cli.text == f"2.1.{number}"
        place.unlink()
    with pytest.raises(SetupProblem, match="no claude on your PATH; install it first"):
        await find_cli(environment=environment)


async def test_a_path_that_depends_on_the_current_folder_is_not_searched(tmp_path, monkeypatch):
    program(tmp_path / "claude", says("2.1.326 (Claude Code)"))
    monkeypatch.chdir(tmp_path)
    for path in (".", "", "::", "./"):
        with pytest.raises(SetupProblem, match="not found"):
            await find_cli(environment={"PATH": path, "HOME": str(tmp_path / "home")})
    with pytest.raises(SetupProblem, match="by its whole path"):
        await find_cli(["./claude"])


async def test_without_an_environment_ours_is_meant(tmp_path, monkeypatch):
    claude = program(tmp_path / "claude", says("2.1.300 (Claude Code)"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await find_cli() == Cli((claude,), (2, 1, 300))


async def test_a_command_may_have_words_of_its_own():
    assert await find_cli(COMMAND) == Cli(tuple(COMMAND), (2, 1, 326))


async def test_the_version_is_asked_for_once_until_the_program_changes(tmp_path):
    count = tmp_path / "count"
    script = f"#!/bin/sh\necho x >> '{count}'\necho '2.1.%d (Claude Code)'\n"
    claude = program(tmp_path / "claude", script % 1)
    for _ in range(3):
        assert (await find_cli([claude])).text == "2.1.1"
    assert count.read_text(encoding="utf-8") == "x\n"
    program(tmp_path / "claude", script % 22)
    os.utime(claude, (1, 1))
    assert (await find_cli([claude])).text == "2.1.22"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            says("Hello, I am no CLI"),
            "--version says no version but: Hello, I am no CLI; name the Claude Code to run.",
        ),
        ("#!/bin/sh\necho broken >&2\nexit 3\n", "--version says no version but: broken; name"),
        (
            "#!/bin/sh\necho '2.1.1 (Claude Code)'\nexit 3\n",
            "--version says no version but: 2.1.1 (Claude Code); name",
        ),
        ("#!/bin/sh\n", "--version says no version but: nothing; name"),
        ("#!/bin/sh\nyes\n", "--version says no version but: y; name"),
        (says("1.0.35 (Claude Code)"), "Claude Code 1.0.35 is too old to be run as a session; update it."),
        (says("\x1b[31m\x07x"), "no version but: [31mx; name"),
        ("no program", "claude cannot be run: Exec format error; install it anew, or name another."),
        ("#!/no/such/interpreter\n", "claude cannot be run: No such file or directory; install it anew"),
    ],
)
async def test_what_is_no_claude_is_told_in_one_sentence(tmp_path, script, sentence):
    claude = program(tmp_path / "claude", script)
    with pytest.raises(SetupProblem) as caught:
        await asyncio.wait_for(find_cli([claude]), SOON)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_program_that_hangs_is_told_in_one_sentence_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "_VERSION_SECONDS", 0.3)
    claude = program(tmp_path / "claude", f"#!/bin/sh\necho $$ > '{tmp_path}/pid'\nsleep 600\n")
    with pytest.raises(SetupProblem, match=r"--version gives no answer; run it by hand to see why\.$"):
        await find_cli([claude])
    assert is_gone(int((tmp_path / "pid").read_text(encoding="utf-8")))
    assert psutil.Process().children() == []


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (str, r"^There is no .*/claude; name the Claude Code to run\.$"),
        (Path.mkdir, r"claude is no program; name the Claude Code to run\.$"),
        (Path.touch, r"claude is no program; name the Claude Code to run\.$"),
    ],
)
async def test_a_command_that_is_no_program_is_told_in_one_sentence(tmp_path, make, sentence):
    make(tmp_path / "claude")
    with pytest.raises(SetupProblem, match=sentence):
        await find_cli([str(tmp_path / "claude")])


@pytest.mark.parametrize("name", ["no-such-program", ""])
async def test_a_name_that_is_not_on_the_path_is_told_in_one_sentence(name):
    with pytest.raises(SetupProblem, match=rf"^There is no program called {name} on your PATH; name the Claude"):
        await find_cli([name])


# -- its flags ------------------------------------------------------------------------------------------------

ALWAYS = [
    *(
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
    ),
    *("--permission-prompt-tool=stdio", "--replay-user-messages"),
]
NEWEST = (2, 1, 326)


@pytest.mark.parametrize(
    ("launch", "flags"),
    [
        (Launch(SESSION, "/"), ["--permission-mode=default", f"--session-id={SESSION}"]),
        (Launch(SESSION, "/", resume=SESSION), ["--permission-mode=default", f"--resume={SESSION}"]),
        (
            Launch(SESSION, "/", resume=OTHER, fork=True, mode="plan"),
            ["--permission-mode=plan", f"--resume={OTHER}", "--fork-session", f"--session-id={SESSION}"],
        ),
        (
            Launch(SESSION, "/", resume=SESSION, at=MESSAGE),
            ["--permission-mode=default", f"--resume={SESSION}", f"--resume-session-at={MESSAGE}"],
        ),
        (
            Launch(SESSION, "/", model="-x --y", arguments=("--add-dir", "/a b", "--effort=low")),
            [
                *("--permission-mode=default", f"--session-id={SESSION}", "--model=-x --y"),
                *("--add-dir", "/a b", "--effort=low"),
            ],
        ),
    ],
)
def test_the_flags_of_a_session(launch, flags):
    assert arguments(launch, NEWEST) == ALWAYS + flags


@pytest.mark.parametrize(
    ("launch", "sentence"),
    [
        (Launch("--dangerously-skip-permissions", "/"), "is no session or message id"),
        (Launch("not a uuid", "/"), "is no session or message id"),
        (Launch(f"{{{SESSION}}}", "/"), "is no session or message id"),
        (Launch(SESSION.replace("-", ""), "/"), "is no session or message id"),
        (Launch(SESSION, "/", resume="x", fork=True), "x is no session or message id"),
        (Launch(SESSION, "/", resume=SESSION, at="last\none"), "last is no session or message id"),
        (Launch(SESSION, "/", resume=OTHER), "goes on under its own id; fork it"),
        (Launch(SESSION, "/", fork=True), "Name the session to fork"),
        (Launch(SESSION, "/", at=MESSAGE), "Name the session to fork"),
        (Launch(SESSION, "/", mode="plan --x"), "plan --x is no permission mode"),
        (Launch(SESSION, "/", mode=""), None),
        (Launch(SESSION, "/", model=""), "An empty name is no model"),
        (Launch(SESSION, "/", model="a\nb"), "a is no model"),
        *(
            (
                Launch(SESSION, "/", arguments=("--add-dir", "x", flag)),
                "is decided by the session itself; leave it out",
            )
            for flag in ["--session-id", f"--resume={OTHER}", "-r", "-c", "-p", "-rc", "--sdk-url=ws://x", "--bg"]
        ),
    ],
)
def test_a_value_never_becomes_a_flag_and_ours_are_not_said_twice(launch, sentence):
    if sentence is None:
        assert "--permission-mode=default" in arguments(launch, NEWEST)
        return
    with pytest.raises(InvalidParams) as caught:
        arguments(launch, NEWEST)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("version", [(2, 1, 37), (2, 1, 120)])
def test_an_older_cli_can_be_told_where_to_call(version):
    url = "ws://127.0.0.1:1/sdk/x"
    assert f"--sdk-url={url}" in arguments(Launch(SESSION, "/"), version, url)


@pytest.mark.parametrize("version", [(2, 1, 121), (2, 1, 326), (2, 2, 0), (3, 0, 0)])
def test_a_newer_cli_is_not_even_started_with_a_place_to_call(version):
    text = ".".join(map(str, version))
    with pytest.raises(SetupProblem, match=rf"^Claude Code {text} accepts --sdk-url only .* over pipes\.$"):
        arguments(Launch(SESSION, "/"), version, "ws://127.0.0.1:1/")


# -- its environment ------------------------------------------------------------------------------------------


async def test_the_session_sees_the_environment_it_was_given_and_nothing_of_another_session(tmp_path):
    given = {
        "A": "b",
        "CLAUDE_CONFIG_DIR": "/config",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "no_proxy": "example.org, localhost",
    }
    foreign = [
        *("CLAUDECODE", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ACCESS_TOKEN"),
        *("CLAUDE_CODE_REMOTE", "CLAUDE_CODE_REMOTE_SESSION_ID", "CLAUDE_BG_BACKEND", "CLAUDE_AGENT_SDK_VERSION"),
        *("CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", "ENABLE_IDE_INTEGRATION", "TERM_PROGRAM", "CURSOR_TRACE_ID"),
    ]
    environment = session_environment(given | dict.fromkeys(foreign, "x"))
    process = await Kept.run(Command(["/usr/bin/env", "-0"], str(tmp_path), environment))
    said = b"".join([data async for data in process])
    seen = dict(entry.split("=", 1) for entry in said.decode().split("\0") if entry)
    await process.end()
    assert seen == given | {
        "no_proxy": "example.org,localhost,127.0.0.1,::1",
        "NO_PROXY": "127.0.0.1,localhost,::1",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
    }
