"""JSON between programs that do not quite agree: read as far as it makes sense, written so that all can read it.

A newer CLI may give a member another type, and any CLI may cut a text in the middle of a character. Neither may
cost more than that member or that character: a turn whose end was not understood would never end.

It does not know what is read or written.
"""

import json
from typing import Any, Generic, TypeVar

import msgspec

__all__ = ["Shape", "is_whole", "mended", "written"]

T = TypeVar("T", bound=msgspec.Struct)
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_LINE_ENDS = {b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}


class Shape(Generic[T]):
    """Reads objects into one type. What it raises is a ``ValueError``, or a ``RecursionError``."""

    __slots__ = ("_decode", "_kind")

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def from_line(self, line: bytes) -> T:
        """Read one JSON object."""
        try:
            return self._decode(line)
        except msgspec.ValidationError:
            return self.from_fields(_decode_any(line))

    def from_fields(self, fields: dict[str, Any]) -> T:
        """Read an object that is decoded already; optional members that do not fit are as if they were missing."""
        try:
            return msgspec.convert(fields, self._kind)
        except msgspec.ValidationError:
            return msgspec.convert(self._fitting(fields), self._kind)

    def _fitting(self, fields: dict[str, Any]) -> dict[str, Any]:
        types = {field.encode_name: field.type for field in msgspec.structs.fields(self._kind)}
        return {name: value for name, value in fields.items() if _fits(value, types.get(name, Any))}


def _fits(value: object, kind: object) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def is_whole(line: bytes) -> bool:
    """Whether every character in a line of JSON is a whole one, as far as can be seen at a glance.

    JavaScript writes characters as they are, and escapes only the halves of those it has cut in two.
    """
    if b"\\ud" in line or b"\\uD" in line:
        return False
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def mended(line: bytes) -> bytes:
    """Write JSON once more with a replacement for every half character; what is no JSON stays as it is.

    The CLI cuts long texts by UTF-16 units, and so leaves half of an emoji behind. Our parser, and those of most
    editors, would refuse the whole line.
    """
    try:
        value = json.loads(line.decode(errors="replace"))
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return line
    return _whole(text).encode()


def written(value: object) -> bytes:
    """Write JSON in which every character is whole, and which no program takes for more than one line."""
    try:
        line = _encode(value)
    except UnicodeEncodeError:
        line = _encode(_whole_within(msgspec.to_builtins(value)))
    for plain, escaped in _LINE_ENDS.items():
        line = line.replace(plain, escaped)
    return line


def _whole_within(value: object) -> object:
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, dict):
        return {_whole_within(name): _whole_within(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_within(held) for held in value]
    return value


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
