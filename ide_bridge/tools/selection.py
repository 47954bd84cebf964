"""Selection tools: what is selected now, and what was selected last.

It does not know how selections are told unasked.
"""

from ide_bridge.answers import settled
from ide_bridge.errors import Unsupported
from ide_bridge.model import Selection
from ide_bridge.tools.registry import Context, tool
from ide_bridge.tools.selections import as_sent
from ide_bridge.wire.dispatch import NoParams

__all__ = ["TOOLS"]

NO_EDITOR = "No active editor found"
NO_SELECTION = "No selection available"


@tool("getCurrentSelection", NoParams, says=lambda _: "asks what is selected")
async def get_current_selection(context: Context, _: NoParams) -> dict[str, object]:
    """Tell what is selected in the active editor."""
    try:
        selection = await settled(context.editor.selection())
    except Unsupported:
        return _failed(NO_EDITOR)
    return _told(context, selection, NO_EDITOR)


@tool("getLatestSelection", NoParams, says=lambda _: "asks what was selected last")
def get_latest_selection(context: Context, _: NoParams) -> dict[str, object]:
    """Tell what was selected last, also when the editor has lost the focus since."""
    return _told(context, context.selections.latest, NO_SELECTION)


TOOLS = (get_current_selection, get_latest_selection)


def _told(context: Context, selection: Selection | None, otherwise: str) -> dict[str, object]:
    shared = selection and context.workspace.sharing.pushed(selection)
    if shared is None:
        return _failed(otherwise)
    lines = shared.range.start.line, shared.range.end.line
    context.share("selection" if shared.text else "path", shared.path, lines)
    return {"success": True, **as_sent(shared)}


def _failed(message: str) -> dict[str, object]:
    return {"success": False, "message": message}
