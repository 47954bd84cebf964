"""The Messages API on loopback, framed as the real one: how a CLI reaches the scripted model.

``api.script("rename it", Read(file), Edit(file, "a", "b"), "done")`` answers a prompt that contains
*rename it* with these three steps. Every body is kept in ``api.requests``, and ``api.told()`` is their text.

It does not know what to answer (``scripted_model`` does), and checks neither key nor version.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Coroutine
from typing import Self

from aiohttp import web

from tests.fakes.scripted_model import Json, ScriptedModel, Step, events, texts

__all__ = ["MessagesApi"]

LARGEST_BODY = 64 * 1024 * 1024
PATIENCE = 10.0
POLL = 0.05


class MessagesApi:
    """Serves from a thread of its own while its ``with`` block runs."""

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self._model = ScriptedModel()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="messages-api")
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.1)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._await(self._listen())
        return self

    def __exit__(self, *_exception: object) -> None:
        self._await(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def script(self, prompt: str, *steps: Step) -> None:
        """Answers prompts that contain ``prompt`` with the steps, each after the result of the one before."""
        self._model.script(prompt, *steps)

    def told(self) -> str:
        """All the text that the model was sent until now, system prompt and tool results included."""
        parts = [part for body in self.requests for part in (body.get("system"), body["messages"])]
        return "\n".join(texts(parts))

    def wait_until_told(self, text: str, seconds: float = 30) -> None:
        """Returns when the model was sent the text; fails with the end of what it was sent."""
        deadline = time.monotonic() + seconds
        while text not in (told := self.told()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{text!r} not told within {seconds:g} s, but …{told[-2000:]}")
            time.sleep(POLL)

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_post("/v1/messages", self._messages)
        application.router.add_post("/v1/messages/count_tokens", self._count_tokens)
        application.router.add_route("*", "/{anything:.*}", self._anything_else)
        return application

    async def _listen(self) -> None:
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    def _await(self, work: Coroutine[object, object, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body: Json = await request.json()
        self.requests.append(body)
        message = self._model.answer(body)
        return await self._stream(request, message) if body.get("stream") else web.json_response(message)

    async def _stream(self, request: web.Request, message: Json) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Cache-Control": "no-cache"})
        response.content_type, response.charset = "text/event-stream", "utf-8"
        await response.prepare(request)
        for event in events(message):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await response.write_eof()
        return response

    async def _count_tokens(self, _request: web.Request) -> web.Response:
        return web.json_response({"input_tokens": 10})

    async def _anything_else(self, request: web.Request) -> web.Response:
        if request.method in {"GET", "HEAD"}:
            return web.json_response({})
        refusal = {"type": "not_found_error", "message": f"no {request.method} {request.path} here"}
        return web.json_response({"type": "error", "error": refusal}, status=404)
