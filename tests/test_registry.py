from typing import Annotated

import msgspec
import pytest

from ide_bridge.editor.interface import Editor
from ide_bridge.errors import SetupProblem
from ide_bridge.tools.files import TOOLS
from ide_bridge.tools.registry import Context, Registry, Tool, tool, tool_from_function
from ide_bridge.workspace.workspace import Workspace


class Params(msgspec.Struct):
    """What the test tool takes."""

    count: Annotated[int, msgspec.Meta(ge=0, description="How many")]
    word: str = "x"


@tool("repeat", Params, says=lambda params: f"repeats {params.word}")
def repeat(_context, params):
    """Repeat a word.

    As often as asked.
    """
    return params.word * params.count


@pytest.fixture
def context(tmp_path):
    return Context(Workspace(tmp_path), Editor())


def served(made, context, arguments):
    return made.call(context, made.decode(arguments))


def test_one_declaration_gives_type_check_and_schema(context):
    assert (repeat.name, repeat.description) == ("repeat", "Repeat a word.\n\nAs often as asked.")
    assert repeat.schema == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "minimum": 0, "description": "How many"},
            "word": {"type": "string", "default": "x"},
        },
        "required": ["count"],
    }
    assert repeat.says(Params(1, "y")) == "repeats y"
    assert served(repeat, context, b'{"count":3}') == "xxx"
    with pytest.raises(msgspec.ValidationError):
        repeat.decode(b'{"count":-1}')


def test_the_registry_keeps_the_order_of_declaration():
    registry = Registry([*TOOLS, repeat])
    assert list(registry)[-1] == "repeat"
    assert len(registry) == len(TOOLS) + 1
    assert registry["repeat"] is repeat
    assert "nothing" not in registry
    assert registry.problems == []


def test_a_plain_function_becomes_a_tool(context):
    def shout(word: str, *, times: int = 2, where: Context) -> str:
        """Say it loudly."""
        return word.upper() * times + where.workspace.name

    made = tool_from_function("shout", shout)
    assert (made.name, made.description, made.says) == ("shout", "Say it loudly.", None)
    assert made.schema["properties"] == {"word": {"type": "string"}, "times": {"type": "integer", "default": 2}}
    assert made.schema["required"] == ["word"]
    assert served(made, context, b'{"word":"a"}') == "AA" + context.workspace.name


def test_nested_types_bring_their_definitions(context):
    def count(items: list[Params]) -> int:
        return len(items)

    made = tool_from_function("count", count)
    assert made.schema["properties"]["items"]["items"] == {"$ref": "#/$defs/Params"}
    assert set(made.schema["$defs"]) == {"Params"}
    assert made.description == "count"
    assert served(made, context, b'{"items":[{"count":1}]}') == 1


def test_a_tool_is_taken_as_it_is():
    assert tool_from_function("any", repeat) is repeat


@pytest.mark.parametrize(("made", "why"), [(lambda x: x, "'x' has no type"), (1, "neither"), ("name", "neither")])
def test_what_is_no_tool_is_told(made, why):
    with pytest.raises(SetupProblem, match=why):
        tool_from_function("odd", made)


def test_what_another_client_saw_is_not_passed_on(context):
    other = context.for_another(7)
    assert (other.workspace, other.editor, other.client) == (context.workspace, context.editor, 7)
    assert other.diffs is context.diffs
    assert other.seen is not context.seen


def test_the_names_of_our_own_tools_are_taken():
    assert isinstance(Registry(TOOLS)["readFile"], Tool)
    with pytest.raises(SetupProblem, match="exists already"):
        Registry(TOOLS)._add(tool_from_function("readFile", lambda: None))
