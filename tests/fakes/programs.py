"""The real programs that tests start: found, or missed loudly.

It does not know how to install one; ``.ci/setup tools`` does.
"""

import os
import shutil
from typing import NoReturn

import pytest

__all__ = ["program", "unavailable"]


def program(name: str) -> str:
    """The path of a program that the calling test cannot do without."""
    found = shutil.which(name)
    if found is None:
        unavailable(f"{name} is not installed; `make test` gets it, or says how")
    return found


def unavailable(reason: str) -> NoReturn:
    """Skips the calling test; in CI, where everything must be there, fails it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
