"""Makes any editor a first-class IDE for Claude Code and other agent CLIs.

The public names are imported when they are first used, so that importing the package costs nothing.
"""

TYPE_CHECKING = False  # as `typing` has it, whose import takes as long as all else until the lock stands
if TYPE_CHECKING:
    from ide_bridge.bridge import Bridge
    from ide_bridge.editor.interface import Editor
    from ide_bridge.errors import BridgeError
    from ide_bridge.model import Diagnostic, Diff, OpenFile, Position, Range, Selection
    from ide_bridge.tools.registry import Context, Tool
    from ide_bridge.workspace.workspace import Workspace

__all__ = [
    "Bridge",
    "BridgeError",
    "Context",
    "Diagnostic",
    "Diff",
    "Editor",
    "OpenFile",
    "Position",
    "Range",
    "Selection",
    "Tool",
    "Workspace",
]

__version__ = "0.1.0"

_HOMES = {
    "Bridge": "bridge",
    "BridgeError": "errors",
    "Context": "tools.registry",
    "Editor": "editor.interface",
    "Tool": "tools.registry",
    "Workspace": "workspace.workspace",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - part of what importing the package must not cost

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'model')}"), name)
