"""All that is demanded of every editor, in the order in which it is checked.

It does not know how a check is run.
"""

from collections.abc import Sequence

from ide_bridge.conform.checks_diagnostics import DIAGNOSTICS, RELOADING
from ide_bridge.conform.checks_diffs import DIFFS
from ide_bridge.conform.checks_files import FILES
from ide_bridge.conform.checks_link import ENDING, INTRODUCTION, MANNERS
from ide_bridge.conform.checks_selection import MENTIONS, SELECTION
from ide_bridge.conform.verdict import Check

__all__ = ["CHECKS"]

_GROUPS = (INTRODUCTION, FILES, SELECTION, MENTIONS, DIAGNOSTICS, RELOADING, DIFFS, MANNERS, ENDING)

CHECKS: Sequence[Check] = tuple(check for group in _GROUPS for check in group.checks)
"""The one that ends the editor is the last."""
