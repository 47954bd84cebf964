"""Words given on the command line: a prompt, or JSON, also from the standard input.

It does not know what they are for.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from ide_bridge.errors import SetupProblem

__all__ = ["json_object", "prompt_of", "standard_input"]


def prompt_of(words: Sequence[str]) -> str:
    """The words as one text; a single dash stands for all that comes on the standard input."""
    return standard_input() if list(words) == ["-"] else " ".join(words)


def json_object(text: str) -> dict[str, Any]:
    """An object in JSON; a dash stands for the standard input."""
    try:
        value = json.loads(standard_input() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise SetupProblem(f"The input is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise SetupProblem('The input of a tool is an object in JSON, such as {"command": "ls"}.')
    return value


def standard_input() -> str:
    """Everything that comes."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise SetupProblem("What comes on the standard input is not UTF-8.") from None
