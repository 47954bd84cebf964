"""Plain JSON: what our own small files hold, written and read without the `json` package.

Importing that takes most of the time in which a relay should be up, and a seventh of the time in which the lock
should stand; only its C part is needed here. A test holds the two equal.

It does not know what the files are for.
"""

from _json import encode_basestring_ascii as quoted
from _json import make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["from_json", "to_json"]


class _Rules:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner asks for one


_scan: "Callable[[str, int], tuple[object, int]]" = make_scanner(_Rules)  # type: ignore[arg-type]


def from_json(text: str) -> object:
    """Read what `to_json` wrote, or `json.dumps`; raises ``ValueError`` for anything else."""
    try:
        value, end = _scan(text, len(text) - len(text.lstrip()))
    except StopIteration:
        raise ValueError("this is not JSON") from None
    if text[end:].strip():
        raise ValueError("there is more than one value")
    return value


def to_json(value: object) -> str:
    """Write text, whole numbers, truth values, lists and objects as `json.dumps` does."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(to_json, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{quoted(key)}: {to_json(item)}' for key, item in value.items())}}}"
    raise TypeError(f"{type(value).__name__} does not belong into a lock file")
