"""One story of a session in terminals, with the real CLI: started, watched, steered, left, met again, stopped."""

import re
from collections.abc import Iterator

import pytest

from tests.fakes.claude_cli import KEY, NEWEST, claude_command
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.scripted_model import Bash
from tests.fakes.session_stage import SessionStage

pytestmark = pytest.mark.real_cli

ENDLESS = "touch begun; while true; do sleep 1; done"


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as api:
        yield api


@pytest.fixture
def stage(api: MessagesApi, isolation_refused: str | None) -> Iterator[SessionStage]:
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    variables = {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": api.url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    }
    with SessionStage(claude_command(NEWEST), **variables) as stage:
        stage.home.trust(stage.project)
        yield stage


def test_a_session_from_its_start_to_its_end(stage: SessionStage, api: MessagesApi) -> None:
    api.script(
        "tidy up",
        ["First a folder.", Bash("mkdir attic")],
        ["Now the old one.", Bash("rm -r precious")],
        "All is **tidy**.",
    )
    api.script("count for ever", Bash(ENDLESS), "never said")
    api.script("how is it going", "Very well.")
    (stage.project / "precious").mkdir()

    first = stage.shell("ide-bridge session start 'tidy up'; echo left with $?; sleep 300")
    first.wait_for("Started a bridge for ")
    first.wait_for(
        re.compile(r"First a folder\.(.|\n)*\? Claude wants to use Bash\n  mkdir attic(.|\n)*\[y\] once")
    )
    first.type("y")
    first.wait_for(re.compile(r"→ allowed(.|\n)*rm -r precious(.|\n)*\[y\] once"))
    assert (stage.project / "attic").is_dir()
    first.type("n")
    first.type("it is dear to me")
    first.send("Enter")
    first.wait_for("→ denied: it is dear to me")
    first.wait_for(re.compile(r"All is tidy\.\n✓ done in .*\nidle"))
    assert (stage.project / "precious").is_dir()
    api.wait_until_told("it is dear to me")

    first.type("count for ever")
    first.send("Enter")
    first.wait_for(re.compile(r"  touch begun(.|\n)*\[y\] once"))
    first.type("y")
    stage.wait_for((stage.project / "begun").exists, bool)
    first.wait_for(re.compile(r"^working \d+ s · Esc interrupts", re.MULTILINE))
    first.send("Escape")
    first.wait_for("■ interrupted")
    first.wait_for(re.compile(r"^idle", re.MULTILINE))
    first.send("C-c")
    screen = first.wait_for("left with 0")
    found = re.search(r"Come back with: (ide-bridge session attach \w+)", screen)
    assert found

    (session,) = stage.json("list")["sessions"]
    assert (session["state"], session["title"]) == ("idle", "tidy up")
    second = stage.shell(f"{found[1]}; echo left with $?; sleep 300")
    second.wait_for(re.compile(r"All is tidy\.(.|\n)*■ interrupted(.|\n)*^idle", re.MULTILINE))
    second.type("how is it going")
    second.send("Enter")
    second.wait_for("Very well.")
    stage.wait_until(session["session"], "idle")
    assert stage.session("stop").startswith("Stopped session ")
    second.wait_for("left with 0")

    shown = stage.session("show")
    assert "› tidy up\n" in shown
    assert "Very well." in shown
    assert stage.session("send", session["session"], "--wait", "how is it going") == "Very well.\n"
