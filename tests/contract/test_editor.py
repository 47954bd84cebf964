"""Every editor does what is demanded of every editor, as far as it has what that needs."""

import pytest

from ide_bridge.conform.checks import CHECKS
from ide_bridge.conform.examine import run_check

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
async def test_contract(stage, check):
    outcome = await run_check(await stage.subject(), check)
    if outcome.verdict == "not checked":
        pytest.skip(outcome.why)
    assert outcome.verdict == "ok", f"{check.sentence}\n{outcome.why}"
