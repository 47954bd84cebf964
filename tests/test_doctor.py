"""``ide-bridge doctor`` as a user runs it: a real process, real locks, real sockets, real dead pids."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import pytest
from aiohttp import WSMsgType, web

from ide_bridge.cli.doctor import _delete
from ide_bridge.fronts.discovery import read_lock_file

TOKEN = "a-token-that-nobody-may-see"
HEADER = "X-Claude-Code-Ide-Authorization"
ANSWER = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "peer", "version": "1"}}


class House:
    """A user's home with a folder to work in."""

    def __init__(self, root):
        self.home = root / "home"
        self.folder = root / "work"
        self.ide = self.home / ".claude" / "ide"
        self.ide.mkdir(parents=True)
        self.folder.mkdir()
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "PYTHONWARNINGS": "error"}
        self.environment["CLAUDE_CODE_AUTO_CONNECT_IDE"] = "1"

    def lock(self, port, *, place=None, **changes):
        fields = {
            "pid": os.getpid(),
            "workspaceFolders": [str(self.folder)],
            "ideName": "Vim",
            "transport": "ws",
            "authToken": TOKEN,
        }
        path = (place or self.ide) / f"{port}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(fields | changes), encoding="utf-8")
        path.chmod(0o600)
        return path

    async def doctor(self, *arguments, code, **environment):
        """Run it; give what it printed. No token, no traceback, whatever happens."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ide_bridge", "doctor", *map(str, arguments)),
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(20):
            output, errors = await process.communicate()
        assert b"Traceback" not in errors
        assert b"should not" not in errors
        assert TOKEN.encode() not in output + errors
        assert process.returncode == code, output + errors
        return output.decode() or errors.decode()

    async def findings(self, *arguments, code=1, **environment):
        answer = json.loads(await self.doctor("--json", *arguments, code=code, **environment))
        assert set(answer) == {"ok", "findings"}
        assert answer["ok"] is (code == 0)
        for found in answer["findings"]:
            assert set(found) == {"rule", "level", "subject", "text", "fix"}
            assert found["fix"] or found["level"] in {"ok", "note"}
        return {found["rule"]: found for found in answer["findings"]}


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


@pytest.fixture
def dead_pid():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.fixture
def stranger():
    """A living process that is no ancestor of what the test starts."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.communicate()


@pytest.fixture
def closed_port():
    """A port that refuses: bound, so that nobody else gets it, and never listened on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@asynccontextmanager
async def serving(handler):
    application = web.Application()
    application.router.add_get("/", handler)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def peer(*, token=TOKEN, protocols=("mcp",), answer=None, heard=None):
    """A server such as the CLI expects, or nearly so."""

    async def handle(request):
        if request.headers.get(HEADER) != token:
            raise web.HTTPUnauthorized
        line = web.WebSocketResponse(protocols=protocols)
        await line.prepare(request)
        async for message in line:
            if message.type is WSMsgType.TEXT:
                question = json.loads(message.data)
                if heard is not None:
                    heard.append((dict(request.headers), question))
                await line.send_json({"jsonrpc": "2.0", "method": "selection_changed", "params": {}})
                await line.send_json({"jsonrpc": "2.0", "id": question["id"], **(answer or {"result": ANSWER})})
        return line

    return handle


async def test_all_is_well(house):
    heard = []
    async with serving(peer(heard=heard)) as port:
        house.lock(port)
        found = await house.findings(code=0)
    assert {rule: finding["level"] for rule, finding in found.items()} == {"match": "ok", "handshake": "ok"}
    ((headers, question),) = heard
    assert headers["Sec-WebSocket-Protocol"] == "mcp"
    assert headers[HEADER] == TOKEN
    assert "Origin" not in headers
    assert question["method"] == "initialize"
    assert question["params"]["protocolVersion"] == "2025-11-25"


async def test_a_server_without_a_token_gets_no_header(house):
    heard = []
    async with serving(peer(token=None, heard=heard)) as port:
        path = house.lock(port)
        fields = json.loads(path.read_text(encoding="utf-8"))
        del fields["authToken"]
        path.write_text(json.dumps(fields), encoding="utf-8")
        assert "handshake" in await house.findings(code=0)
    assert HEADER not in heard[0][0]


async def test_the_folder_can_be_named_and_is_resolved(house, tmp_path):
    (tmp_path / "link").symlink_to(house.folder)
    async with serving(peer()) as port:
        house.lock(port)
        assert "match" in await house.findings(tmp_path / "link", code=0)
        assert "folder" in await house.findings(house.home)


async def test_no_lock_at_all(house):
    found = await house.findings()
    assert f"ide-bridge serve {house.folder}" in found["no-lock"]["fix"]


async def test_a_refused_token(house):
    async with serving(peer(token="another")) as port:
        house.lock(port)
        found = await house.findings()
    assert found["token"]["level"] == "error"
    assert "handshake" not in found


@pytest.mark.parametrize("token", ["two\r\nlines", "Schlüssel", 7, ["x"]])
async def test_a_token_that_no_header_carries(house, token):
    async with serving(peer()) as port:
        house.lock(port, authToken=token)
        assert (await house.findings())["token"]["level"] == "error"


async def test_a_dead_socket_of_a_living_process(house, closed_port):
    house.lock(closed_port)
    assert (await house.findings())["socket"]["level"] == "error"


async def test_a_server_that_accepts_and_says_nothing(house):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        house.lock(silent.getsockname()[1])
        before = time.monotonic()
        found = await house.findings()
    assert "3 seconds" in found["socket"]["text"]
    assert time.monotonic() - before < 6


async def test_a_server_that_is_no_websocket(house):
    async def page(_request):
        return web.Response(text=TOKEN)

    async with serving(page) as port:
        house.lock(port)
        assert "status 200" in (await house.findings())["socket"]["text"]


async def test_a_redirection_is_not_followed(house):
    visited = []

    async def trap(request):
        visited.append(request.headers.get(HEADER))
        return web.Response()

    async with serving(trap) as elsewhere:

        async def redirect(_request):
            raise web.HTTPTemporaryRedirect(f"http://127.0.0.1:{elsewhere}/")

        async with serving(redirect) as port:
            house.lock(port)
            assert "socket" in await house.findings()
    assert visited == []


async def test_a_missing_subprotocol(house):
    async with serving(peer(protocols=())) as port:
        house.lock(port)
        assert (await house.findings())["subprotocol"]["level"] == "error"


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32603, "message": TOKEN}},
        {"result": {"protocolVersion": "1999-01-01"}},
        {"result": TOKEN},
    ],
)
async def test_a_wrong_answer_to_initialize(house, answer):
    async with serving(peer(answer=answer)) as port:
        house.lock(port)
        assert (await house.findings())["initialize"]["level"] == "error"


async def test_a_server_that_hangs_up(house):
    async def hang_up(request):
        line = web.WebSocketResponse(protocols=("mcp",))
        await line.prepare(request)
        await line.close()
        return line

    async with serving(hang_up) as port:
        house.lock(port)
        assert (await house.findings())["initialize"]["level"] == "error"


async def test_servers_of_other_folders_are_not_talked_to(house):
    heard = []
    async with serving(peer()) as port, serving(peer(heard=heard)) as other:
        house.lock(port)
        house.lock(other, workspaceFolders=[str(house.home)])
        found = await house.findings(code=0)
    assert found["folder"]["level"] == "note"
    assert heard == []


async def test_two_matches(house):
    async with serving(peer()) as port, serving(peer()) as other:
        house.lock(port)
        house.lock(other)
        assert (await house.findings())["several"]["level"] == "error"
        assert "several" not in await house.findings(code=0, CLAUDE_CODE_SSE_PORT=str(other))


async def test_the_other_match_may_be_broken_when_the_port_is_named(house, closed_port):
    async with serving(peer()) as port:
        house.lock(port)
        house.lock(closed_port)
        found = await house.findings(code=0, CLAUDE_CODE_SSE_PORT=str(port))
    assert found["socket"]["level"] == "warning"


async def test_a_missing_transport_is_named_and_not_talked_to(house):
    heard = []
    async with serving(peer(heard=heard)) as port:
        house.lock(port, transport="sse")
        found = await house.findings()
    assert found["transport"]["level"] == "error"
    assert heard == []


async def test_another_editors_terminal(house, stranger):
    async with serving(peer()) as port:
        house.lock(port, pid=stranger.pid)
        found = await house.findings(TERM_PROGRAM="vscode")
        assert f"export CLAUDE_CODE_SSE_PORT={port}" in found["foreign-terminal"]["fix"]
        house.lock(port)  # the test's own process is an ancestor of the doctor
        assert "match" in await house.findings(code=0, TERM_PROGRAM="vscode")


async def test_the_documented_folder_is_not_the_clis(house):
    async with serving(peer()) as port:
        house.lock(port, place=house.home / ".config" / "claude" / "ide")
        assert (await house.findings())["config-folder"]["level"] == "error"


async def test_another_config_folder(house, tmp_path):
    async with serving(peer()) as port:
        house.lock(port)
        found = await house.findings(code=0, CLAUDE_CONFIG_DIR=str(tmp_path / "other"))
        assert found["config-folder"]["level"] == "warning"


async def test_a_bridge_that_was_started_with_another_config_folder(house, tmp_path):
    claim = (
        "from ide_bridge.fronts.claim import Claim; it = Claim(['.']); print(it.lock.path, flush=True); input()"
    )
    bridge = subprocess.Popen(
        [sys.executable, "-c", claim],
        cwd=house.folder,
        env=house.environment | {"CLAUDE_CONFIG_DIR": str(tmp_path / "other")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        path = bridge.stdout.readline().decode().strip()
        found = await house.findings()
    finally:
        bridge.communicate(b"\n")
    assert found["config-folder"]["subject"] == path == str(next((tmp_path / "other" / "ide").glob("*.lock")))


async def test_the_settings_can_tell_the_cli_to_connect(house):
    del house.environment["CLAUDE_CODE_AUTO_CONNECT_IDE"]
    assert "auto-connect" in await house.findings()
    settings = house.home / ".claude.json"
    settings.write_text('{"autoConnectIde": true}', encoding="utf-8")
    assert "auto-connect" not in await house.findings()
    for other in ("[", "[]", '{"autoConnectIde": false}'):
        settings.write_text(other, encoding="utf-8")
        assert "auto-connect" in await house.findings()


async def test_a_proxy_is_named_and_not_used(house):
    async with serving(peer()) as port:
        house.lock(port)
        found = await house.findings(code=0, HTTP_PROXY="http://127.0.0.1:9", ALL_PROXY="http://127.0.0.1:9")
    assert found["proxy"]["level"] == "warning"
    assert "handshake" in found


async def test_dead_locks_stay_until_fix_is_asked_for(house, dead_pid, closed_port):
    path = house.lock(closed_port, pid=dead_pid)
    found = await house.findings()
    assert "--fix" in found["dead-pid"]["fix"]
    assert path.exists()
    found = await house.findings("--fix")
    assert found["dead-pid"] == {
        "rule": "dead-pid",
        "level": "ok",
        "subject": str(path),
        "text": f"Deleted the lock that process {dead_pid} left behind.",
        "fix": "",
    }
    assert not path.exists()


async def test_fix_lets_the_living_match(house, dead_pid, closed_port):
    async with serving(peer()) as port:
        house.lock(port)
        house.lock(closed_port, pid=dead_pid)
        found = await house.findings("--fix", code=0)
    assert found["match"]["subject"] == str(house.ide / f"{port}.lock")


async def test_fix_deletes_a_lock_whose_pid_was_reused(house, stranger, closed_port):
    path = house.lock(closed_port, pid=stranger.pid)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert (await house.findings())["dead-pid"]["level"] == "error"
    await house.findings("--fix")
    assert not path.exists()


def test_fix_spares_a_server_that_came_back_meanwhile(house, dead_pid):
    path = house.lock(4000, pid=dead_pid)
    seen = read_lock_file(str(path))
    house.lock(4000)
    assert "stays" in _delete(seen).text
    assert path.exists()


async def test_fix_leaves_everything_else(house, stranger, dead_pid, closed_port):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        kept = [
            house.lock(closed_port, pid=stranger.pid),
            house.lock(port, pid=stranger.pid, workspaceFolders=["/else/where"]),
            house.lock("name", pid=dead_pid),
            house.lock(1, pid=str(stranger.pid)),
            house.lock(2, pid=None),
            house.lock(3, pid=-1),
        ]
        os.utime(kept[1], (1_000_000_000, 1_000_000_000))
        garbage = house.ide / "4.lock"
        garbage.write_bytes(b"\xff{")
        await house.findings("--fix")
    assert all(path.exists() for path in [*kept, garbage])


async def test_garbage_everywhere(house, dead_pid):
    for port, contents in enumerate([b"", b"\x00" * 99, b"[" * 99_999, b'{"pid": 1e999}'], start=1):
        (house.ide / f"{port}.lock").write_bytes(contents)
    house.lock(7, ideName={"a": 1}, workspaceFolders="text", pid={})
    (house.ide / "8.lock").mkdir()
    found = await house.findings()
    assert found["garbage"]["level"] == "warning"
    assert found["no-lock"]["level"] == "error"


async def test_a_file_in_the_place_of_the_lock_folder(house):
    house.ide.rmdir()
    house.ide.write_text("", encoding="utf-8")
    assert (await house.findings())["permissions"]["level"] == "error"


@pytest.mark.parametrize("folder", ["missing", "file", "x" * 5000])
async def test_a_folder_that_cannot_be_looked_into(house, folder):
    (house.folder / "file").write_text("", encoding="utf-8")
    sentence = await house.doctor(folder, code=1)
    assert sentence.startswith("ide-bridge: Cannot look into ")
    assert sentence.count("\n") == 1


async def test_a_home_that_does_not_exist(house):
    assert "no-lock" in await house.findings(HOME="/does/not/exist")
    assert (await house.doctor(code=1, HOME="relative")).startswith("ide-bridge: You have no home folder")


async def test_human_lines_are_plain_in_a_pipe(house, dead_pid, closed_port):
    house.lock(closed_port, pid=dead_pid)
    lines = (await house.doctor(code=1)).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("error   no-lock: ")
    assert lines[1].startswith("error   dead-pid: ")
    assert lines[1].endswith("Run: ide-bridge doctor --fix")
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
async def test_a_lock_cannot_command_the_terminal(house, encoding):
    async with serving(peer()) as port:
        house.lock(port, ideName="[red]\x1b]0;owned\x07\x9b\udc80ü\n")
        text = await house.doctor(code=0, PYTHONIOENCODING=encoding)
        assert "[red]\\x1b]0;owned\\x07\\x9b\\udc80" in text
        assert len(text.splitlines()) == 2
        assert "handshake" in await house.findings(code=0, PYTHONIOENCODING=encoding)


# -- why no bridge starts ----------------------------------------------------------------------------------


async def test_the_doctor_says_why_no_bridge_starts(house):
    settings = house.home / ".config" / "ide-bridge" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("share = 1", encoding="utf-8")
    house.ide.chmod(0o777)
    found = await house.findings()
    assert found["settings"]["level"] == found["lock-folder"]["level"] == "error"
    assert found["settings"]["text"] == f"{settings} is not understood: share must be one of full, path, off."
    assert found["lock-folder"]["fix"] == f"Run: chmod go-w {house.ide}"


async def test_a_bridge_that_runs_all_the_same_makes_it_a_warning(house):
    settings = house.home / ".config" / "ide-bridge" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("share = 1", encoding="utf-8")
    async with serving(peer()) as port:
        house.lock(port)
        assert (await house.findings(code=0))["settings"]["level"] == "warning"


async def test_a_linter_that_is_not_installed_is_a_warning(house):
    settings = house.home / ".config" / "ide-bridge" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[[linters]]\nglob = "*"\ncommand = ["no-such-linter"]', encoding="utf-8")
    assert (await house.findings())["linter"]["level"] == "warning"
