"""Neighbours: whether the program at the other end of a loopback connection belongs to the user who runs us.

Any user of a machine can reach a port on 127.0.0.1, and no header tells who does. On Linux the kernel lists both
ends of every connection with the user each belongs to; elsewhere, and for a user it has no number for, only the
token tells. The token lies in a file that only its user can read.

It does not know what the connection is for.
"""

import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ipaddress import IPv6Address, ip_address

from ide_bridge.errors import SetupProblem
from ide_bridge.home import open_regular, private_folder, unusable

__all__ = ["belongs_to_us", "kept_token", "owner_of_peer"]

Address = tuple[str, int]

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_OVERFLOW = "/proc/sys/kernel/overflowuid"
_ESTABLISHED = "01"
_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[0-9a-f]{64}")


def belongs_to_us(ours: Address, theirs: Address) -> bool:
    """Whether the other end of an established connection is this user's; False when nobody can tell."""
    owner = owner_of_peer(ours, theirs)
    return owner is not None and owner == os.geteuid() and owner != _nobody()


def owner_of_peer(ours: Address, theirs: Address, tables: Iterable[str] = _TABLES) -> int | None:
    """The user of the program at the other end, by the kernel's own list; None when it is not there."""
    if sys.platform != "linux":
        return None
    wanted = (_plain(theirs), _plain(ours))
    owners = {owner for table in tables for ends, owner in _established(table) if ends == wanted}
    return owners.pop() if len(owners) == 1 else None


def kept_token(folder: str) -> tuple[str, str]:
    """The token that is kept in this folder, and its file; made if there is none."""
    path = os.path.join(private_folder(folder), "token")
    try:
        return _stored(path) or _made(path), path
    except OSError as error:
        raise unusable(path, error) from None


def _established(table: str) -> Iterator[tuple[tuple[Address, Address], int]]:
    """Both ends of each connection of a table, as its owner sees them, and the owner's number."""
    try:
        with open(table, encoding="ascii") as file:
            next(file, None)
            for line in file:
                _number, local, remote, state, _queues, _timer, _retries, owner, *_rest = line.split()
                if state == _ESTABLISHED:  # one that is being closed has lost its owner, and shows root instead
                    yield (_address(local), _address(remote)), int(owner)
    except (OSError, ValueError):
        return


def _address(text: str) -> Address:
    """An address as the kernel prints it: each word of four bytes in the order of this machine."""
    host, _, port = text.partition(":")
    words = struct.unpack(f">{len(host) // 8}I", bytes.fromhex(host))
    packed = struct.pack(f"={len(words)}I", *words)
    return _plain((str(ip_address(packed)), int(port, 16)))


def _plain(address: Address) -> Address:
    """An IPv4 address as such, also when it is told in the way of IPv6."""
    host = ip_address(address[0])
    mapped = host.ipv4_mapped if isinstance(host, IPv6Address) else None
    return str(mapped or host), address[1]


def _nobody() -> int:
    """The number that stands for every user the kernel cannot name here, such as those of another container."""
    try:
        with open(_OVERFLOW, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 65534


def _stored(path: str) -> str | None:
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(descriptor, encoding="ascii", errors="replace") as file:
        token = file.read(_TOKEN_BYTES * 2 + 1).strip()
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise SetupProblem(f"Others may read the token in {path}; delete it, and a new one is made.")
    return token if _TOKEN.fullmatch(token) else None


def _made(path: str) -> str:
    """Make a token and put it there whole; of two that start at once, the first one's counts."""
    token = os.urandom(_TOKEN_BYTES).hex()
    aside = f"{path}.{os.getpid()}"
    with open(open_regular(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="ascii") as file:
        file.write(token)
    try:
        os.link(aside, path)
    except FileExistsError:
        if (other := _stored(path)) is not None:
            return other
        os.replace(aside, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(aside)
    return token
