"""What only Neovim offers to those who ask Claude: its own ways to choose, to be told and to be scripted.

What it has in common with Vim is in ``test_vim_sessions.py``.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.claude_cli import Home
from tests.fakes.nvim import VERSIONS, NvimPerson, nvim
from tests.fakes.session_bridge import SESSION, SessionBridge, approval, session_bridge

WINDOW = "bufwinid('ide-bridge://session/0a1b2c3d')"
OTHER_UI = """
vim.g.asked, vim.g.told = {}, {}
vim.ui.input = function(options, done)
  vim.g.asked = vim.list_extend(vim.g.asked, { options.prompt })
  done(table.remove(Answers, 1))
end
vim.notify = function(text, level) vim.g.told = vim.list_extend(vim.g.told, { { text, level } }) end
"""


class Stage(NamedTuple):
    person: NvimPerson
    bridge: SessionBridge


@pytest.fixture(params=VERSIONS)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    with Home() as home:
        async with (
            session_bridge() as bridge,
            nvim(tmp_path, home.environment, bridge.command, version=request.param) as person,
        ):
            yield Stage(person, bridge)


async def test_who_has_other_ways_to_type_and_to_be_told_has_them_here_too(stage: Stage) -> None:
    await stage.person.lua(f"{OTHER_UI} Answers = {{ 'what now?', '2', '' }}")
    await stage.person.keys(":IdeBridgeAsk\r")
    assert await stage.bridge.wait_for("ask") == {"text": "what now?"}
    options = [{"label": "Red", "description": ""}, {"label": "Blue", "description": "cold"}]
    given = {"questions": [{"question": "Which?", "options": options}]}
    stage.bridge.ask_permission(approval("one", "AskUserQuestion", kind="question", title="Well?", input=given))
    await stage.person.until("len(g:told) == 1")
    warning = 3
    assert await stage.person.expr("g:told[0]") == [
        "Claude asks (:IdeBridgeApprove one, :IdeBridgeDeny one): Well?", warning,
    ]  # fmt: skip
    await stage.person.keys(":IdeBridgeApprove\r")
    assert (await stage.bridge.wait_for("decide"))["answers"] == {"Which?": "Blue"}
    assert await stage.person.expr("g:asked") == [
        "Ask Claude: ", "Which?\n1. Red\n2. Blue: cold\nNumber, or your own words: ",
    ]  # fmt: skip


async def test_from_lua(stage: Stage) -> None:
    await stage.person.lua("require('ide_bridge').ask('why?')")
    assert await stage.bridge.wait_for("ask") == {"text": "why?"}
    await stage.person.lua(f"require('ide_bridge').ask({{ text = 'how?', session = '{SESSION}' }})")
    assert await stage.bridge.wait_for("ask", 2) == {"text": "how?", "session": SESSION}
    for name in ("one", "two"):
        stage.bridge.ask_permission(approval(name))
    await stage.person.until("v:lua.require'ide_bridge'.statusline() ==# 'bridge 2 approvals'")
    await stage.person.lua("require('ide_bridge').approve('one', { for_session = true })")
    forever = {"approval": "one", "behavior": "allow", "forSession": True}
    assert await stage.bridge.wait_for("decide") == forever
    await stage.person.until("v:lua.require'ide_bridge'.statusline() ==# 'bridge 1 approval'")
    await stage.person.lua("require('ide_bridge').deny(nil, 'because')")
    denied = {"approval": "two", "behavior": "deny", "reason": "because"}
    assert await stage.bridge.wait_for("decide", 2) == denied


async def test_where_the_window_opens_can_be_said_in_setup(stage: Stage) -> None:
    await stage.person.lua("require('ide_bridge').setup({ session_window = 'topleft 5' })")
    assert "does not know" not in await stage.person.messages()
    await stage.person.keys(":IdeBridgeAsk why?\r")
    await stage.person.until(f"{WINDOW} > 0")
    assert await stage.person.expr(f"[win_id2win({WINDOW}), winheight({WINDOW})]") == [1, 5]
