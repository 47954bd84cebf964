"""Loopback: what a program we start must know so as to reach this machine directly.

It does not know which program that is.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["past_proxies"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def past_proxies(environment: "Mapping[str, str]") -> dict[str, str]:
    """The environment, with this machine among the hosts that no proxy is asked for."""
    changed = dict(environment)
    for name in ("no_proxy", "NO_PROXY"):
        hosts = [host.strip() for host in environment.get(name, "").split(",") if host.strip()]
        changed[name] = ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])
    return changed
