"""A network that ends at this machine: the whole test run lives in a namespace that has only loopback.

It does not know what runs in it. Children inherit the namespace, so nothing a test starts can reach out.
Run as a script it tries the same in a process of its own and exits 0 or says why the kernel refused.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

__all__ = ["enter_loopback_only"]

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1
IFREQ = "16sh22x"


def enter_loopback_only() -> str | None:
    """Moves this process there and returns None, or leaves it where it is and returns the reason."""
    if not sys.platform.startswith("linux"):
        return f"{sys.platform} has no network namespaces"
    # A refusal halfway would leave this process without even loopback, hence the trial in another one.
    trial = subprocess.run([sys.executable, __file__], capture_output=True, encoding="utf-8", timeout=30)
    if trial.returncode != 0:
        return f"the kernel allows no network namespace of our own ({trial.stderr.strip()})"
    _enter()
    return None


def _enter() -> None:
    if os.geteuid() == 0:
        _unshare(CLONE_NEWNET)
    else:
        _unshare_as_user()
    _raise_loopback()


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.unshare comes with Python 3.12
    if libc.unshare(flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")


def _unshare_as_user() -> None:
    uid, gid = os.geteuid(), os.getegid()
    _unshare(CLONE_NEWUSER | CLONE_NEWNET)
    me = Path("/proc/self")
    (me / "setgroups").write_text("deny", encoding="ascii")
    (me / "uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
    (me / "gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack(IFREQ, b"lo", IFF_UP))


if __name__ == "__main__":
    try:
        _enter()
    except OSError as error:
        sys.exit(str(error))
