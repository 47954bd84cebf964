"""Text for a terminal: names and contents come from anyone, and must not command it.

It does not know what is printed.
"""

import sys

__all__ = ["json_text", "printable"]

_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_VISIBLE |= {code: f"\\u{code:04x}" for code in _DIRECTIONS}


def printable(text: str) -> str:
    """The text in one line, with what could command a terminal, turn it round or stop its encoder made visible."""
    encoding = _encoding()
    return text.translate(_VISIBLE).encode(encoding, "backslashreplace").decode(encoding)


def json_text(value: object) -> str:
    """The value as JSON: readable where it can be shown as it is, else in plain ASCII, which means the same."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(_encoding())
    except UnicodeEncodeError:
        return json.dumps(value)
    return text if text.isprintable() else json.dumps(value)


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"
