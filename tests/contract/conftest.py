"""One editor after another is held to the contract; ``--editors=memory,folder`` for those that take no time."""

import pytest
import pytest_asyncio

from tests.contract.stages import EDITORS, stage_for
from tests.fakes.surroundings import at_home


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "stage" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--editors", "") or ",".join(EDITORS)
        metafunc.parametrize("stage", chosen.split(","), indirect=True, scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(request, tmp_path_factory):
    """One editor for all checks; they are given another when it has gone."""
    with at_home() as home:
        root = tmp_path_factory.mktemp(request.param)
        stage = stage_for(request.param, root, home.environment)
        yield stage
        await stage.close()
