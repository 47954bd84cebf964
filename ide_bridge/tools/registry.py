"""The registry: every tool by name, with the type of its arguments, its schema and its function side by side.

One declaration gives all three: the arguments are a ``msgspec.Struct``, which is what the function gets, what a
call is checked against, and where ``inputSchema`` comes from. Other packages join through the entry-point group
``ide_bridge.tools``.

It does not know MCP's envelopes or who is connected; that is the fronts' business.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec

from ide_bridge.editor.interface import Editor
from ide_bridge.errors import SetupProblem
from ide_bridge.tools.open_diffs import OpenDiffs
from ide_bridge.tools.problems import Problems
from ide_bridge.tools.seen import Seen
from ide_bridge.tools.selections import Selections
from ide_bridge.workspace.workspace import Workspace

__all__ = ["Context", "Registry", "Texts", "Tool", "tool", "tool_from_function"]

logger = logging.getLogger(__name__)

P = TypeVar("P", bound=msgspec.Struct)
GROUP = "ide_bridge.tools"


class Context:
    """What a tool works on, for one client; all but `client` and `seen` is shared by all."""

    def __init__(self, workspace: Workspace, editor: Editor) -> None:
        self.workspace = workspace
        self.editor = editor
        self.selections = Selections()
        self.problems = Problems(editor)
        self.diffs = OpenDiffs(editor)
        self.client = 0
        self.client_name = ""
        self.seen = Seen()

    def for_another(self, client: int) -> "Context":
        """The same for a client that has seen nothing yet."""
        another = copy(self)
        another.client = client
        another.seen = self.seen.for_another()
        return another

    def share(self, what: str, path: str, lines: tuple[int, int] | None = None) -> None:
        """Note that the client was given something."""
        self.workspace.audit.share(f"{self.client_name or 'a client'} {self.client}", what, path, lines)


class Texts(tuple[str, ...]):
    """The result of a tool that answers with several texts."""

    __slots__ = ()


class Tool(Generic[P]):
    """One thing a client may ask for.

    ``call`` gives its result at once, or an awaitable of it. ``says`` tells a person what is being asked.
    """

    __slots__ = ("call", "decode", "description", "name", "params", "says")

    def __init__(
        self,
        name: str,
        description: str,
        params: type[P],
        call: Callable[[Context, P], object],
        says: Callable[[P], str] | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.params = params
        self.call = call
        self.says = says
        self.decode: Callable[[Any], P] = msgspec.json.Decoder(params).decode

    @property
    def schema(self) -> dict[str, object]:
        """What a client may send, as JSON Schema."""
        return _schema(self.params)


def tool(
    name: str, params: type[P], says: Callable[[P], str] | None = None
) -> Callable[[Callable[[Context, P], object]], Tool[P]]:
    """Declare a tool; the docstring of the function is its description."""

    def declare(call: Callable[[Context, P], object]) -> Tool[P]:
        return Tool(name, inspect.cleandoc(call.__doc__ or name), params, call, says)

    return declare


class Registry(Mapping[str, Tool[Any]]):
    """The tools one bridge offers."""

    def __init__(self, tools: Iterable[Tool[Any]]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.problems: list[str] = []
        self._complete = False

    def __getitem__(self, name: str) -> Tool[Any]:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def load_plugins(self) -> None:
        """Add the tools of other packages, once; one that fails is named, and the rest goes on."""
        if self._complete:
            return
        self._complete = True
        from importlib.metadata import entry_points  # noqa: PLC0415 - reads every package: when nobody waits

        for entry in entry_points(group=GROUP):
            try:
                self._add(tool_from_function(entry.name, entry.load()))
            except Exception as error:  # noqa: BLE001 - somebody else's code
                self.problems.append(f"The tool {entry.name} ({entry.value}) was left out: {error}.")
                logger.warning(self.problems[-1])

    def of_plugin(self, name: str) -> Tool[Any] | None:
        """Find a tool that another package may bring."""
        self.load_plugins()
        return self.get(name)

    def _add(self, added: Tool[Any]) -> None:
        if added.name in self._tools:
            raise SetupProblem("a tool of that name exists already")
        self._tools[added.name] = added


def tool_from_function(name: str, function: object) -> Tool[Any]:
    """Make a tool of a plain function: its typed parameters are the arguments.

    A parameter annotated with `Context` is given the context and is no argument.
    """
    if isinstance(function, Tool):
        return function
    if not callable(function):
        raise SetupProblem("it is neither a function nor a Tool")
    call: Callable[..., object] = function
    hints = get_type_hints(call)
    fields: list[Any] = []
    context_name = None
    for parameter in inspect.signature(call).parameters.values():
        if parameter.name not in hints:
            raise SetupProblem(f"its parameter '{parameter.name}' has no type")
        if hints[parameter.name] is Context:
            context_name = parameter.name
        elif parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hints[parameter.name]))
        else:
            fields.append((parameter.name, hints[parameter.name], parameter.default))
    params = msgspec.defstruct(f"{name}_params", fields, kw_only=True)

    def served(context: Context, given: msgspec.Struct) -> object:
        arguments = msgspec.structs.asdict(given)
        return call(**arguments, **({} if context_name is None else {context_name: context}))

    return Tool(name, inspect.cleandoc(call.__doc__ or name), params, served)


def _schema(params: type[msgspec.Struct]) -> dict[str, object]:
    """The JSON Schema of the arguments, with the one definition it refers to put in its place."""
    (schema,), definitions = msgspec.json.schema_components([params])
    own = definitions.pop(params.__name__, schema)
    schema = {key: value for key, value in own.items() if key not in {"title", "description"}}
    if definitions:
        schema["$defs"] = definitions
    return schema
