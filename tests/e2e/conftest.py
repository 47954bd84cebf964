"""The stage of the end-to-end stories: one home, one model, and any number of CLIs and bridges in it.

It does not know the stories. Whatever a fixture here starts, it ends.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.bridge_process import BridgeProcess
from tests.fakes.claude_cli import NEWEST, Home, start_claude
from tests.fakes.messages_api import MessagesApi
from tests.fakes.programs import unavailable
from tests.fakes.terminal import Terminal


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


@pytest.fixture
def project(home: Home) -> Path:
    """An empty folder to work in."""
    folder = home.path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    with MessagesApi() as api:
        yield api


@pytest.fixture
def bridge(home: Home) -> Iterator[Callable[..., BridgeProcess]]:
    """``bridge(folder, *flags)`` serves the folder, and is ready when it returns."""
    with ExitStack() as running:
        yield lambda folder, *flags: running.enter_context(BridgeProcess(folder, home.environment, *flags))


@pytest.fixture
def claude(home: Home, api: MessagesApi, isolation_refused: str | None) -> Iterator[Callable[..., Terminal]]:
    """``claude(folder, *flags, version=…, VARIABLE=…)`` starts the real CLI there, in its own terminal."""
    if isolation_refused is not None:
        unavailable(f"the real CLI runs only where nothing can leave: {isolation_refused}")
    with ExitStack() as running:

        def start(folder: Path, *flags: str, version: str = NEWEST, **variables: str) -> Terminal:
            return running.enter_context(start_claude(home, api.url, folder, *flags, version=version, **variables))

        yield start
