"""The ground every test stands on: a network that ends at this machine, and the stage for real programs.

It does not know any test. Where the kernel allows no namespace, tests of real CLIs say so; the others run.
"""

import pytest

from tests.fakes.network import enter_loopback_only

ISOLATION_REFUSED = pytest.StashKey[str | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Lets a run choose the editors that are held to the contract."""
    parser.addoption("--editors", default="", help="hold only these to the contract, such as memory,vim")


def pytest_configure(config: pytest.Config) -> None:
    """Moves the whole run, before anything else is started, to where nothing can leave."""
    config.stash[ISOLATION_REFUSED] = enter_loopback_only()


@pytest.fixture(scope="session")
def isolation_refused(pytestconfig: pytest.Config) -> str | None:
    """Why this run is not cut off from the network; None when it is."""
    return pytestconfig.stash[ISOLATION_REFUSED]
