"""Positions: the only place that converts columns.

Inside the house a column counts code points. Clients count UTF-16 units, some editors count bytes of UTF-8.
A column beyond the end of its line means the end; one inside a pair or a sequence means its beginning.

It does not know files or editors: whoever converts has the line at hand.
"""

__all__ = ["from_bytes", "from_utf16", "to_bytes", "to_utf16"]


def to_utf16(line: str, column: int) -> int:
    """Count the UTF-16 units before a column of code points."""
    before = line[: max(column, 0)]
    return len(before) if before.isascii() else len(before.encode("utf-16-le", "surrogatepass")) // 2


def from_utf16(line: str, units: int) -> int:
    """Count the code points before a column of UTF-16 units."""
    if line.isascii():
        return min(max(units, 0), len(line))
    before = line.encode("utf-16-le", "surrogatepass")[: max(units, 0) * 2]
    return len(before.decode("utf-16-le", "ignore"))


def to_bytes(line: str, column: int) -> int:
    """Count the bytes of UTF-8 before a column of code points."""
    return len(line[: max(column, 0)].encode("utf-8", "surrogatepass"))


def from_bytes(line: str, size: int) -> int:
    """Count the code points before a column of bytes of UTF-8."""
    before = line.encode("utf-8", "surrogatepass")[: max(size, 0)]
    return len(before.decode("utf-8", "ignore"))
