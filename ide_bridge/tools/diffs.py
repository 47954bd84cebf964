"""Diff tools: a client proposes a change, a person decides.

``openDiff`` is answered when it is decided. A closed window is a rejection and is answered as one: the CLI would
take ``TAB_CLOSED`` for consent. The file itself is never written here; the client does that.

Closing waits its turn as opening does, although it has nothing to wait for: what is closed in the same breath
as it is opened must be open by then.

It does not know how a diff is shown.
"""

import logging
import os
from typing import Annotated

import msgspec
from msgspec import Meta

from ide_bridge.tools.registry import Context, Texts, tool
from ide_bridge.wire.dispatch import NoParams

__all__ = ["TOOLS"]

logger = logging.getLogger(__name__)


class OpenDiff(msgspec.Struct):
    """The parameters of ``openDiff``."""

    old_file_path: Annotated[str, Meta(description="The file as it is; it need not exist")]
    new_file_path: Annotated[str, Meta(description="The file the change is for")]
    new_file_contents: Annotated[str, Meta(description="The whole proposed text")]
    tab_name: Annotated[str, Meta(description="The name under which the diff can be closed")]


class CloseTab(msgspec.Struct):
    """The parameters of ``close_tab``."""

    tab_name: str


@tool("openDiff", OpenDiff, says=lambda params: f"proposes a change of {params.new_file_path}")
async def open_diff(context: Context, params: OpenDiff) -> Texts:
    """Show a proposed change of a file and wait until the user keeps it, perhaps changed, or rejects it."""
    path = os.path.join(context.workspace.path, params.new_file_path)
    kept = await context.diffs.open(context.client, path, params.tab_name, params.new_file_contents)
    if kept is None:
        return Texts(["DIFF_REJECTED"])
    context.problems.expect(path)
    try:
        await context.workspace.expect(path, kept, client=context.client_name)
    except Exception:  # the user has decided, and that is told whatever becomes of the journal
        logger.exception("a kept diff is not in the journal")
    return Texts(["FILE_SAVED", kept])


@tool("close_tab", CloseTab, says=lambda params: f"closes {params.tab_name}")
async def close_tab(context: Context, params: CloseTab) -> str:
    """Close a diff by its tab name; one that is closed already is fine."""
    context.diffs.close(context.client, params.tab_name)
    return "TAB_CLOSED"


@tool("closeAllDiffTabs", NoParams, says=lambda _: "closes its diffs")
async def close_all_diff_tabs(context: Context, _: NoParams) -> str:
    """Close every diff this client has opened."""
    return f"CLOSED_{context.diffs.close_all(context.client)}_DIFF_TABS"


TOOLS = (open_diff, close_tab, close_all_diff_tabs)
