"""The baseline: the least an aiohttp server can be, a WebSocket that says back what it hears.

It does not know the bridge. Its one argument, as a script, is the file in which it leaves its port.
"""

import asyncio
import os
import sys

from aiohttp import web

MESSAGE_LIMIT = 64 * 1024 * 1024


async def echo(request: web.Request) -> web.StreamResponse:
    """Say back every text of one connection."""
    socket = web.WebSocketResponse(compress=False, max_msg_size=MESSAGE_LIMIT)
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data)
    return socket


async def serve(port_file: str) -> None:
    """Serve until a signal ends the process."""
    application = web.Application()
    application.router.add_get("/", echo)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    with open(port_file + ".new", "w", encoding="ascii") as file:
        file.write(str(runner.addresses[0][1]))
    os.rename(port_file + ".new", port_file)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
