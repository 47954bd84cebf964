import os

import pytest

from ide_bridge.bridge import Bridge
from ide_bridge.editor.interface import Editor
from ide_bridge.errors import InvalidParams
from ide_bridge.fronts.client import Client, Clients
from ide_bridge.tools.registry import Context
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.claude_client import connect_to, eventually
from tests.fakes.surroundings import at_home


@pytest.fixture
def told():
    return []


@pytest.fixture
def changes():
    return []


@pytest.fixture
def context(tmp_path):
    return Context(Workspace(tmp_path), Editor())


@pytest.fixture
def clients(context, told, changes):
    def changed():
        changes.append(len(clients))

    clients = Clients(context, lambda *what: told.append(what), changed)
    return clients


def introduce(client, name="claude-code", version="1"):
    client.name, client.version, client.pid = name, version, 7


def test_who_comes_and_goes_is_counted_and_told(clients, told, changes):
    first, second = clients.join(), clients.join()
    introduce(first)
    assert (len(clients), first.number == second.number) == (2, False)
    assert clients.described() == [
        {"client": first.number, "name": "claude-code", "version": "1", "pid": 7, "folder": None}
    ]
    for leaving in (first, first, second):
        clients.leave(leaving)
    assert changes == [1, 2, 1, 0]
    assert told == [("claude-code 1", "disconnected"), ("a client", "disconnected")]
    assert clients.described() == []


def test_every_client_has_a_memory_of_its_own(clients, context):
    first, second = clients.join(), clients.join()
    assert first.context.workspace is second.context.workspace is context.workspace
    assert len({id(client.context.seen) for client in (first, second)} | {id(context.seen)}) == 3


def test_a_client_that_is_silent_about_itself_is_still_called_something(context):
    client = Client(1, context, None)
    assert (client.title, client.label) == ("a client", "a client 1")
    client.says("reads a")
    introduce(client, version="")
    assert (client.title, client.label) == ("claude-code", "claude-code 1")


def test_a_client_cannot_fill_the_screen_or_take_anothers_name(clients, told):
    client = clients.join()
    client.introduce("n" * 500, "1", "")
    client.introduce("claude-code", "2", "Claude")
    assert (client.name, client.version, client.context.client_name) == ("n" * 500, "1", "n" * 500)
    client.says("reads " + "x" * 500 + "/end", "refused")
    assert [what for _, what in told] == ["connected", f"reads {'x' * 43}…{'x' * 45}/end – refused"]
    assert all(len(who) <= 40 for who, _ in told)


# -- which of several is meant -----------------------------------------------------------------------------


def ready(clients, folder=None, active=0.0):
    client = clients.join()
    client.ready, client.folder, client.active = True, folder, active
    return client


def test_a_file_is_handed_to_nobody_who_is_not_ready(clients):
    clients.join()
    assert (clients.for_file("/w/a"), clients.ready()) == (None, [])
    client = ready(clients)
    assert (clients.for_file("/w/a"), clients.ready()) == (client, [client])


def test_the_deepest_folder_around_a_file_fits_best_and_activity_decides_between_equals(clients):
    root, work, sub, elsewhere = (ready(clients, folder) for folder in ("/", "/w", "/w/sub", "/x"))
    nowhere, again = ready(clients, None, active=9.0), ready(clients, "/w", active=1.0)
    expected = {"/w/sub/a": sub, "/w/subway": again, "/x/a": elsewhere, "/y": root, "/w": root}
    assert {path: clients.for_file(path) for path in expected} == expected
    work.active = 2.0
    assert clients.for_file("/w/a") is work
    for gone in (root, work, sub, elsewhere, again):
        clients.leave(gone)
    assert clients.for_file("/w/a") is nowhere


def test_the_chosen_one_is_handed_everything_until_it_leaves_or_another_is_chosen(clients):
    fitting, chosen = ready(clients, "/w"), ready(clients, "/x")
    clients.choose(chosen.number)
    assert clients.for_file("/w/a") is chosen
    clients.choose(None)
    assert clients.for_file("/w/a") is fitting
    clients.choose(chosen.number)
    clients.leave(chosen)
    assert clients.for_file("/w/a") is fitting
    with pytest.raises(InvalidParams, match=f"no client {chosen.number}"):
        clients.choose(chosen.number)


def test_what_is_told_to_a_client_that_cannot_be_reached_is_lost_without_a_word(clients):
    clients.join().notify("at_mentioned", {"filePath": "/w/a"})


async def test_several_clients_are_known_by_name_version_pid_and_folder():
    with at_home() as home:
        folder = home.path / "project"
        folder.mkdir()
        async with Bridge(folder) as bridge, connect_to(bridge) as one, connect_to(bridge) as two:
            async with connect_to(bridge) as silent:
                await silent.request("ping")
                await one.introduce("claude-code", pid=os.getpid())
                await two.introduce("other", pid=2**31)
                described = bridge.status()["clients"]
                numbers = [each.pop("client") for each in described]
                assert len(set(numbers)) == 2
                assert described == [
                    {"name": "claude-code", "version": "2.1.326", "pid": os.getpid(), "folder": os.getcwd()},
                    {"name": "other", "version": "2.1.326", "pid": 2**31, "folder": None},
                ]
            await one.socket.close()
            await eventually(lambda: [each["name"] for each in bridge.status()["clients"]] == ["other"])
