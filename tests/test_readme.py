"""README.md and PROTOCOL.md, held to what the program does.

Every Python example is run, the tour is typed into a terminal and its screen compared, and the tables are
compared with the code. Ports, pids, times and the home folder differ from run to run; nothing else may.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from ide_bridge.cli import COMMANDS
from ide_bridge.fronts import claude
from ide_bridge.fronts.mcp import DIRECT, PROTOCOL_VERSIONS, mcp_methods
from ide_bridge.fronts.sessions import Sessions
from ide_bridge.settings import SECRETS, Settings
from ide_bridge.tools import diagnostics, diffs, documents, selection
from ide_bridge.tools.files import TOOLS
from ide_bridge.tools.registry import Registry
from ide_bridge.wire import connection, framing, peer
from ide_bridge.workspace import beneath, files, places
from tests.fakes.pty_process import Pty

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROTOCOL = (ROOT / "PROTOCOL.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
PATIENCE = 30.0
MIB = 1024 * 1024
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# --- reading the documents ---------------------------------------------------------------------------------


def section(text, title):
    """What stands under a heading, with its smaller headings."""
    start = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert start, f"there is no heading {title!r}"
    prose = FENCED.sub(lambda fenced: " " * len(fenced[0]), text)
    end = re.compile(rf"^#{{1,{len(start[1])}}} ", re.MULTILINE).search(prose, start.end())
    return text[start.end() : end.start() if end else None]


def blocks(text):
    """The fenced blocks of a text: their kinds and contents."""
    return FENCED.findall(text)


def block(text, kind):
    return [found for named, found in blocks(text) if named == kind]


def first_cells(text):
    """The first cell of every table row, without heads and rules."""
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    return [row for row in rows if row.startswith("`")]


# --- running what they say ---------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path):
    """An empty home with a short path, which the program takes for a new user's."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def environment(home, tmp_path):
    return {
        "HOME": str(home),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path / "packages"), os.environ.get("PYTHONPATH")])),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
    }


@pytest.fixture
def package(tmp_path):
    """The package of the examples, with the entry points of the README, as if it were installed."""
    site = tmp_path / "packages"
    information = site / "my_package-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: my-package\nVersion: 1\n", encoding="utf-8"
    )
    extending = section(README, "Extend it from another package")
    points = [tomllib.loads(found)["project"]["entry-points"] for found in block(extending, "toml")]
    lines = [
        line
        for groups in points
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
    ]
    (information / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    for code in block(README, "python"):
        if named := re.match(r"# (my_package/\w+\.py)\n", code):
            path = site / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(code, encoding="utf-8")
    return site


def shown(command, folder, environment):
    terminal = Pty(["bash", "-c", command], folder, environment)
    try:
        return terminal.read_to_end()
    finally:
        terminal.close()


def ask(call, folder, environment):
    return json.loads(shown(f"ide-bridge call {call}", folder, environment))


def typed(console):
    """The commands of a console block, each with what the block says that it prints."""
    steps = []
    for line in console.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        else:
            steps[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in steps]


def alike(screen, home="/home/you"):
    """A screen without what differs from run to run; columns of a table may be wider."""
    screen = re.sub(r"\x1b\[[\d;]*m", "", screen).replace(str(home), "/home/you")
    screen = re.sub(r"\d\d:\d\d:\d\d", "TIME", screen)
    screen = re.sub(r"(?<=port )\d+|(?<=pid )\d+|(?<=/notes)  +\d+  +\d+", "N", screen)
    return [re.sub(r" {2,}", "  ", line).rstrip() for line in screen.splitlines()]


TOUR = section(README, "Five minutes with a plain folder")


def test_the_tour_looks_as_the_readme_says(home, environment):
    start, rest = block(TOUR, "console")
    (story,) = block(TOUR, "text")
    (prepare, nothing), (serve, greeting) = typed(start)
    assert alike(shown(prepare, home, environment)) == alike(nothing)
    first_terminal = Pty(shlex.split(serve), home / "notes", environment)
    try:
        first_terminal.read_until("Ctrl-C stops.\n")
        assert alike(first_terminal.screen, home) == alike(greeting)
        for command, expected in typed(rest):
            assert alike(shown(command, home / "notes", environment), home) == alike(expected), command
        assert alike(first_terminal.read_to_end(), home)[3:] == alike(story)
        assert first_terminal.process.returncode == 0
    finally:
        first_terminal.close()


def runnable():
    """The examples that are programs, each with the output that the README shows after it."""
    found = blocks(README)
    return [
        (code, output)
        for (kind, code), (after, output) in pairwise(found)
        if kind == "python" and after == "text" and not code.startswith("# my_package/")
    ]


def test_there_are_examples_to_run():
    assert [("asyncio" in code, "with Bridge" in code) for code, _ in runnable()] == [(True, True), (False, True)]


@pytest.mark.parametrize(("code", "output"), runnable(), ids=["asyncio", "thread"])
def test_a_python_example_prints_what_the_readme_says(code, output, package, environment, home):
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", code],
        cwd=home,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert (done.stdout, done.stderr, done.returncode) == (output, "", 0)
    assert list((home / ".claude" / "ide").iterdir()) == []


def test_the_adapter_and_the_tool_of_another_package_join(package, environment, home):
    (home / "todo.txt").write_text("milk and bread", encoding="utf-8")
    (home / "draft.txt").write_text("saved", encoding="utf-8")
    extending = section(README, "Extend it from another package")
    (flag,) = re.findall(r"`ide-bridge serve (--editor \w+)`", extending)
    (call,) = block(extending, "sh")
    first_terminal = Pty(["ide-bridge", "serve", *flag.split()], home, environment)
    try:
        first_terminal.read_until("Ctrl-C stops.\n")
        assert "as “My Editor”" in first_terminal.screen
        assert ask("getOpenFiles", home, environment) == ["draft.txt"]
        assert json.loads(shown(call, home, environment)) == {"content": [{"type": "text", "text": "3"}]}
        (tool,) = [tool for tool in ask("tools/list", home, environment)["tools"] if tool["name"] == "wordCount"]
        assert tool["description"] == "Count the words of a file of the workspace."
        assert tool["inputSchema"]["required"] == ["path"]
    finally:
        first_terminal.close()


def test_what_the_readme_says_of_unsaved_text_is_so(package, environment, home):
    """Clients read it, and may not overwrite it."""
    (home / "draft.txt").write_text("saved", encoding="utf-8")
    first_terminal = Pty(["ide-bridge", "serve", "--editor", "mine"], home, environment)
    try:
        first_terminal.read_until("Ctrl-C stops.\n")
        assert ask("""readFile '{"path": "draft.txt"}'""", home, environment) == "not saved yet"
        refusal = shown("""ide-bridge call writeFile '{"path": "draft.txt", "content": ""}'""", home, environment)
        assert "unsaved changes" in refusal
        assert (home / "draft.txt").read_text(encoding="utf-8") == "saved"
    finally:
        first_terminal.close()


# --- tables ------------------------------------------------------------------------------------------------


def test_every_make_target_of_the_readme_exists():
    commands = [line for text in block(README, "sh") for line in text.splitlines() if line.startswith("make ")]
    assert len(commands) >= 2
    for command in [*commands, *re.findall(r"`(make \w+)`", README)]:
        done = subprocess.run(["bash", "-c", f"{command.split('#')[0]} -n"], cwd=ROOT, capture_output=True)
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"


def test_the_table_of_commands_is_complete():
    described = first_cells(section(README, "Commands"))
    assert tuple(row.strip("`").split()[1] for row in described) == tuple(COMMANDS)


@pytest.mark.parametrize("row", re.findall(r"^\| `ide-bridge \w+.*$", section(README, "Commands"), re.MULTILINE))
def test_every_option_in_the_table_of_commands_exists(row):
    name = row.split()[2].rstrip("`")
    usage = subprocess.run([BIN / "ide-bridge", name, "--help"], capture_output=True, encoding="utf-8")
    assert usage.returncode == 0, usage.stderr
    assert set(re.findall(r"--\w+", row)) | {"--help"} == set(re.findall(r"--\w+", usage.stdout))


@pytest.mark.parametrize("row", re.findall(r"^\| `session \w+.*$", section(README, "Sessions"), re.MULTILINE))
def test_every_option_in_the_table_of_session_commands_exists(row):
    for name in re.findall(r"`session (\w+)", row):
        usage = subprocess.run(
            [BIN / "ide-bridge", "session", name, "--help"], capture_output=True, encoding="utf-8"
        )
        assert usage.returncode == 0, usage.stderr
        assert set(re.findall(r"--\w+", row)) <= set(re.findall(r"--\w+", usage.stdout)), name


def test_the_table_of_session_commands_is_complete():
    rows = re.findall(r"^\| `session \w+.*$", section(README, "Sessions"), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`session (\w+)", row)]
    usage = subprocess.run([BIN / "ide-bridge", "session", "--help"], capture_output=True, encoding="utf-8").stdout
    assert named == re.findall(r"^    (\w+)", usage, re.MULTILINE)


def test_the_doctor_has_the_findings_of_the_readme(home, environment):
    troubles = section(README, "When Claude does not connect")
    rules = [row.strip("`") for row in first_cells(troubles)]
    source = "".join(
        (ROOT / "ide_bridge" / path).read_text(encoding="utf-8")
        for path in ("fronts/discovery.py", "cli/doctor.py", "cli/obstacles.py")
    )
    assert [rule for rule in rules if f'"{rule}"' not in source] == []
    ((command, expected),) = typed(block(troubles, "console")[0])
    folder = home / "notes"
    folder.mkdir()
    assert alike(shown(command, folder, environment), home) == alike(expected)


def test_the_settings_of_the_readme_are_what_holds_without_any():
    (shown,) = block(section(README, "Settings"), "toml")
    settings = msgspec.convert(tomllib.loads(shown), Settings)
    assert msgspec.structs.replace(settings, deny=(), linters=()) == Settings()
    assert {field.encode_name for field in msgspec.structs.fields(Settings)} == set(tomllib.loads(shown))


def test_undo_says_what_the_readme_says_when_there_is_nothing(home, environment):
    ((command, expected),) = typed(block(section(README, "Take it back"), "console")[0])
    folder = home / "notes"
    folder.mkdir()
    assert alike(shown(command, folder, environment), home) == alike(expected)


def test_the_protocol_names_every_editor_tool():
    named = [row.strip("`") for row in first_cells(section(PROTOCOL, "Editor tools"))]
    families = (documents.TOOLS, selection.TOOLS, diagnostics.TOOLS, diffs.TOOLS)
    assert sorted(named) == sorted(tool.name for tools in families for tool in tools)


def test_the_protocol_names_every_method():
    direct, mcp = (
        [row.strip("`") for row in first_cells(section(PROTOCOL, title))]
        for title in ("Workspace methods", "MCP methods")
    )
    assert tuple(direct) == DIRECT
    assert {*direct, *mcp} == set(mcp_methods(Registry(TOOLS), lambda _client: None))


def test_the_protocol_names_every_method_of_sessions():
    named = {name for row in first_cells(section(PROTOCOL, "Sessions")) for name in re.findall(r"`(\w+)`", row)}
    assert set(Sessions(None, None, None, None).methods()) <= named


def test_the_protocol_names_every_version():
    (line,) = re.findall(r"^Versions: (.*?)\. ", PROTOCOL, re.MULTILINE)
    assert tuple(re.findall(r"`([\d-]+)`", line)) == PROTOCOL_VERSIONS


def test_the_protocol_names_everything_that_is_not_shared():
    listed = block(section(PROTOCOL, "What is shared"), "text")[0].replace(",", " ")
    exceptions = re.findall(r"\.env\.\w+", listed)
    patterns = re.sub(r"\(.*?\)", "", listed).split()
    named = [*patterns, *(f"!{name}" for name in exceptions), *(f"{name}/" for name in exceptions)]
    assert sorted(named) == sorted(SECRETS)


def test_the_protocol_names_the_limits():
    rows = re.findall(r"^\| ([^|]+) \| ([\d, MiBbytes]+) \|", section(PROTOCOL, "Limits"), re.MULTILINE)
    limits = {what: [int(number) for number in re.findall(r"\d+", amount)] for what, amount in rows}
    assert limits == {
        "clients": [claude.CLIENT_LIMIT],
        "one message": [framing.MESSAGE_LIMIT // MIB],
        "open requests of one client": [connection.IN_FLIGHT_LIMIT],
        "elements of a batch": [peer._BATCH_LIMIT],
        "waiting notifications to one client": [connection.OUTBOX_LIMIT],
        "`readFile`, `writeFile`": [files.READ_LIMIT // MIB, files.WRITE_LIMIT // MIB],
        "a path, one name in it": [places.PATH_LIMIT, places.NAME_LIMIT],
        "links followed in one path": [beneath.LINK_LIMIT],
    }
