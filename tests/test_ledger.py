"""The ledger of prompts: none lost, none run twice."""

import pytest

from ide_bridge.errors import Unsupported
from ide_bridge.session.ledger import WAITING_LIMIT, Ledger
from ide_bridge.session.records import Record, Unconfirmed

ONE, TWO = "one", "two"


@pytest.fixture
def record():
    return Record("s", "/f", 0.0, 0.0)


@pytest.fixture
def ledger(record):
    return Ledger(record)


def sent(ledger):
    return [prompt.uuid for prompt in ledger.to_send()]


def test_a_prompt_is_open_until_its_turn_has_ended(ledger, record):
    ledger.add("do it", ONE)
    assert (sent(ledger), ledger.is_clear) == ([ONE], False)
    ledger.heard(ONE)
    assert (ledger.open, sent(ledger), ledger.is_clear, record.begun) == ([ONE], [], True, True)
    ledger.done()
    assert (ledger.open, record.prompts) == ([], 1)


def test_the_same_uuid_is_taken_once_also_when_it_is_done(ledger):
    assert ledger.add("do it", ONE) == Unconfirmed(ONE, "do it")
    assert ledger.add("do it", ONE) is None
    ledger.heard(ONE)
    ledger.done()
    assert ledger.add("do it", ONE) is None


def test_without_a_uuid_every_prompt_is_another(ledger):
    assert ledger.add("do it", None).uuid != ledger.add("do it", None).uuid


def test_what_an_ended_cli_heard_and_did_not_finish_is_sent_to_the_next_one(ledger):
    ledger.add("do it", ONE)
    ledger.to_send()
    ledger.heard(ONE)
    ledger.begin()
    assert sent(ledger) == [ONE]


def test_what_is_in_the_transcript_is_not(ledger):
    ledger.add("do it", ONE)
    ledger.add("and this", TWO)
    ledger.cross_out({ONE})
    ledger.begin()
    assert sent(ledger) == [TWO]


def test_a_turn_ends_only_what_was_heard(ledger):
    ledger.add("do it", ONE)
    ledger.add("and this", TWO)
    ledger.to_send()
    ledger.heard(ONE)
    ledger.done()
    assert ledger.open == [TWO]
    ledger.done()
    assert ledger.open == [TWO]


def test_a_slash_command_that_nobody_echoes_is_done_with_the_next_turn(ledger):
    ledger.add("/cost", ONE)
    ledger.done()
    assert ledger.open == [ONE], "it was not sent yet"
    ledger.to_send()
    ledger.done()
    assert ledger.open == []


def test_a_slash_command_waits_while_another_prompt_is_done(ledger):
    ledger.add("do it", ONE)
    ledger.to_send()
    ledger.heard(ONE)
    ledger.add("/cost", TWO)
    ledger.to_send()
    ledger.done()
    assert ledger.open == [TWO]
    ledger.done()
    assert ledger.open == []


def test_prompts_that_nobody_comes_to_are_not_taken_without_end(ledger):
    for _ in range(WAITING_LIMIT):
        ledger.add("more", None)
    with pytest.raises(Unsupported, match="waiting"):
        ledger.add("more", None)


def test_an_echo_of_the_clis_own_is_none_of_ours(ledger):
    ledger.add("/cost", ONE)
    ledger.to_send()
    assert not ledger.heard("of its own")
    ledger.done()
    assert ledger.open == []
