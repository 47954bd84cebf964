"""What must not leave: every way to name a secret, every front door to it, and a workspace that wants to loosen.

Each rule is tried on a real bridge over a real socket, or on a real workspace on a real disk.
"""

import json
import os

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.errors import NotShared
from ide_bridge.model import Position, Range, Selection
from ide_bridge.settings import load_settings
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.claude_client import Refused, connect_to
from tests.fakes.surroundings import at_home

SECRET = "the-secret-words"
SECRETS = [".env", ".ENV", "sub/.env.local", "server.pem", ".ssh/config", "plan/launch.md", "Plan/Launch.md"]


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def folder(home):
    folder = home.path / "work"
    folder.mkdir()
    for name in SECRETS:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(SECRET, encoding="utf-8")
    rules = {"permissions": {"deny": ["Read(./plan/**)"]}}
    (home.config / "settings.json").write_text(json.dumps(rules), encoding="utf-8")
    return folder


def spellings(folder, name):
    """A secret by its own name, by links to it and to its folder, and by links that chain."""
    number = len(os.listdir(folder))
    for link, target in {
        f"link-{number}": name,
        f"absolute-{number}": str(folder / name),
        f"chain-{number}": f"link-{number}",
        f"folder-{number}": str((folder / name).parent),
    }.items():
        (folder / link).symlink_to(target)
    base = os.path.basename(name)
    return [
        name,
        f"/{name}",
        f"./{name}",
        str(folder / name),
        f"link-{number}",
        f"absolute-{number}",
        f"chain-{number}",
        f"folder-{number}/{base}",
    ]


@pytest.mark.parametrize("name", SECRETS)
async def test_no_spelling_of_a_secret_is_read_or_written_by_a_client(folder, name):
    async with Bridge(folder) as bridge, connect_to(bridge) as client:
        for path in spellings(folder, name):
            for method, params in (("readFile", {"path": path}), ("writeFile", {"path": path, "content": "x"})):
                with pytest.raises(Refused, match=r"^not shared: matches ") as refused:
                    await client.request(method, params)
                assert refused.value.code == -32603
    assert (folder / name).read_text(encoding="utf-8") == SECRET


@pytest.mark.parametrize("name", SECRETS)
def test_no_spelling_of_a_secret_is_pushed(folder, name):
    workspace = Workspace(folder)
    somewhere = Range(Position(0, 0), Position(0, 5))
    for path in spellings(folder, name):
        written = str(folder / path.lstrip("/")) if not path.startswith(str(folder)) else path
        assert workspace.sharing.pushed(Selection(written, SECRET, somewhere)) is None, path
        assert not workspace.sharing.shows(written), path


def test_a_workspace_cannot_loosen_anything(folder, home):
    (home.path / ".config" / "ide-bridge").mkdir(parents=True)
    mine = home.path / ".config" / "ide-bridge" / "settings.toml"
    mine.write_text('share = "path"\ndeny = ["*.mine"]\nhide_ignored = true\n', encoding="utf-8")
    theirs = 'share = "full"\ndeny = ["!.env", "!*.mine", "!*", "\\\\!x"]\nhide_ignored = false\n'
    (folder / ".ide-bridge.toml").write_text(theirs, encoding="utf-8")
    (folder / ".claude").mkdir()
    for name in ("settings.json", "settings.local.json"):
        rules = {"permissions": {"deny": ["Read(!plan/launch.md)", "Read(!**)"], "allow": ["Read(**)", "Read"]}}
        (folder / ".claude" / name).write_text(json.dumps(rules), encoding="utf-8")
    workspace = Workspace(folder, settings=load_settings((str(folder),)))
    assert workspace.sharing.policy == "path"
    for name in (".env", "a.mine", "plan/launch.md"):
        with pytest.raises(NotShared):
            workspace.sharing.permit(workspace.locate(name))


def test_a_workspace_can_tighten_everything(folder):
    (folder / ".ide-bridge.toml").write_text('share = "off"\ndeny = ["*.md"]\n', encoding="utf-8")
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text('{"permissions": {"deny": ["Read(*.c)"]}}', encoding="utf-8")
    settings = load_settings((str(folder),))
    workspace = Workspace(folder, settings=settings)
    for name in ("a.md", "a.c"):
        with pytest.raises(NotShared):
            workspace.sharing.permit(workspace.locate(name))
    workspace.sharing.policy = "full"
    assert workspace.sharing.policy == "off"
    assert not workspace.sharing.shows(str(folder / "a.py"))


def test_the_log_of_shares_never_holds_contents(folder, home):
    workspace = Workspace(folder)
    shared = workspace.sharing.pushed(
        Selection(str(folder / "a.py"), SECRET, Range(Position(0, 0), Position(2, 0)))
    )
    workspace.audit.share("claude-code 1\nforged\tline", "selection", shared.path, (0, 2))
    workspace.audit.close()
    [log] = home.path.rglob("audit.log")
    assert SECRET not in log.read_text(encoding="utf-8")
    assert len(log.read_text(encoding="utf-8").splitlines()) == 1
