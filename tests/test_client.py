import pytest

from ide_bridge.editor.interface import Editor
from ide_bridge.fronts.client import Client, Clients
from ide_bridge.tools.registry import Context
from ide_bridge.workspace.workspace import Workspace


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
    assert clients.described() == [{"name": "claude-code", "version": "1", "pid": 7}]
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
    assert client.title == "a client"
    client.says("reads a")
    introduce(client, version="")
    assert client.title == "claude-code"
