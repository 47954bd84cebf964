"""Complaints: what does not fit a type, in words for people who never saw the type.

``msgspec`` says "Expected `str`, got `int` - at `$.path`"; here that becomes "path must be a text".

It does not know what is checked, or who reads the words.
"""

import re
from typing import Literal, get_args, get_origin

import msgspec

__all__ = ["in_words"]

_PARTS = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]*)`(?:, got `[^`]*`|(?P<limit> .*))", re.DOTALL)
_FIELD = re.compile(r"Object (?P<fault>missing required|contains unknown) field `(?P<name>.*)`", re.DOTALL)
_KINDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}


def in_words(error: msgspec.ValidationError, kind: type[msgspec.Struct]) -> str:
    """Say what is wrong with something that was to become a `kind`, without a full stop."""
    parts = _PARTS.fullmatch(str(error))
    what, where = (parts["what"], parts["where"] or "") if parts else (str(error), "")
    if field := _FIELD.fullmatch(what):
        named = f"{where}.{field['name']}" if where else field["name"]
        return f"{named} is {'missing' if field['fault'].startswith('missing') else 'unknown'}"
    if choices := _choices(kind, where):
        return f"{where} must be one of {', '.join(choices)}"
    if expected := _EXPECTED.fullmatch(what):
        kinds = (_KINDS.get(name, name) for name in expected["types"].split(" | "))
        return f"{where or 'it'} must be {' or '.join(kinds)}{expected['limit'] or ''}"
    plain = what.replace("`", "'")
    return f"{plain} in {where}" if where else plain


def _choices(kind: type[msgspec.Struct], name: str) -> list[str]:
    """The words one of which a field must be; nothing if there are no such words."""
    field = next((field for field in msgspec.structs.fields(kind) if field.encode_name == name), None)
    types = () if field is None else (field.type, *get_args(field.type))
    words = next((get_args(each) for each in types if get_origin(each) is Literal), ())
    return [str(word) for word in words]
