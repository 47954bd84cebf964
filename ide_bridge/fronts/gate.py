"""The gate before every route: whose machine, whose page, whose token.

A page in a browser can reach any port of this machine. It cannot set our header, it cannot hide its Origin, and
with a rebound name it cannot send our Host: each of the three is checked, so that no single mistake opens the
door. PROTOCOL.md, "Threat model", says against whom.

It does not know what lies behind the routes.
"""

import hmac

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

__all__ = ["check_bearer", "check_token", "host_gate", "refuse_origin"]

HEADER_TOKEN = "X-Claude-Code-Ide-Authorization"  # noqa: S105 - the name of a header


def host_gate(port: int) -> Middleware:
    """Refuse requests that were not sent to this machine under one of its own names."""
    ours = {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")}

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        named = [host.lower() for host in request.headers.getall("Host", [])]
        if named not in [[host] for host in ours] or request.rel_url.absolute:
            raise web.HTTPMisdirectedRequest(text="This is not a public server.\n")
        return await handler(request)

    return check


def refuse_origin(request: web.Request) -> None:
    """Refuse browsers: no agent CLI sends an Origin."""
    if "Origin" in request.headers:
        raise web.HTTPForbidden(text="Web pages may not connect.\n")


def check_token(request: web.Request, header: str, token: str) -> None:
    """Demand the token, once, compared in constant time."""
    given = request.headers.getall(header, [])
    # aiohttp hands over bytes that are no UTF-8 as surrogates; they are given back as the bytes they were.
    if len(given) != 1 or not hmac.compare_digest(given[0].encode(errors="surrogateescape"), token.encode()):
        raise web.HTTPUnauthorized(text="The token in the lock file is needed.\n")


def check_bearer(request: web.Request, token: str) -> None:
    """Demand the token of a CLI that we have started ourselves, and no browser."""
    refuse_origin(request)
    check_token(request, "Authorization", f"Bearer {token}")
