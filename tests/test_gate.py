import pytest
from aiohttp import web

from ide_bridge.fronts.gate import HEADER_TOKEN, check_token, host_gate, refuse_origin
from tests.fakes.claude_client import TOKEN_HEADER, knock

TOKEN = "0123456789abcdef" * 4


@pytest.fixture
def entered():
    """The requests that came past the gate."""
    return []


@pytest.fixture
async def port(entered, unused_tcp_port):
    async def behind(request):
        refuse_origin(request)
        check_token(request, "Authorization", f"Bearer {TOKEN}")
        entered.append(request.path)
        return web.Response(text="in")

    application = web.Application(middlewares=[host_gate(unused_tcp_port)])
    application.router.add_get("/mcp", behind)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    yield unused_tcp_port
    await runner.cleanup()


def head(port, *headers, host="127.0.0.1:{port}"):
    return ["GET /mcp HTTP/1.1", f"Host: {host.format(port=port)}", *headers]


def test_the_header_is_the_one_the_cli_sends():
    assert HEADER_TOKEN == TOKEN_HEADER


async def test_who_has_the_token_and_no_origin_and_means_us_comes_in(port, entered):
    answer = await knock(port, head(port, f"Authorization: Bearer {TOKEN}"))
    assert (answer.status, answer.body, entered) == (200, "in", ["/mcp"])


@pytest.mark.parametrize(
    ("headers", "host", "status"),
    [
        ([], "127.0.0.1:{port}", 401),
        ([f"Authorization: Bearer {TOKEN[:-1]}"], "127.0.0.1:{port}", 401),
        ([f"Authorization: {TOKEN}"], "127.0.0.1:{port}", 401),
        ([f"Authorization: Bearer {TOKEN}"] * 2, "127.0.0.1:{port}", 401),
        (["Authorization: Bearer \xff\xfe"], "127.0.0.1:{port}", 401),
        ([f"Authorization: Bearer {TOKEN}", "Origin: http://127.0.0.1"], "127.0.0.1:{port}", 403),
        ([f"Authorization: Bearer {TOKEN}"], "rebound.example:{port}", 421),
        ([f"Authorization: Bearer {TOKEN}"], "127.0.0.1", 421),
    ],
)
async def test_everyone_else_stays_outside(port, entered, headers, host, status):
    answer = await knock(port, head(port, *headers, host=host))
    assert (answer.status, entered) == (status, [])
    assert TOKEN not in answer.head + answer.body


async def test_a_path_that_is_not_there_is_not_told_to_strangers_either(port):
    stranger = head(port, host="rebound.example:{port}")
    stranger[0] = "GET /nothing HTTP/1.1"
    assert (await knock(port, stranger)).status == 421
