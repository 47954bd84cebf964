"""Transcripts: pages from the end, what is added, branches, sub-agents; recorded, invented and broken ones."""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ide_bridge.errors import InvalidParams, SetupProblem
from ide_bridge.session.transcript import Transcript
from ide_bridge.session.transcript.shown import Compacted, Notice, Prompt, Said, Tool, ToolResult
from tests.transcripts import RECORDED, Writer, kinds, texts

RECORDINGS = sorted(RECORDED.rglob("*.jsonl"))


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "session.jsonl")


def transcript_of(writer: Writer) -> Transcript:
    return Transcript(str(writer.path))


def everything(transcript: Transcript, limit: int = 50) -> list:
    page = transcript.page(limit=limit)
    found = list(page.shown)
    while page.before is not None:
        page = transcript.page(page.before, limit)
        found = [*page.shown, *found]
    return found


def recorded(name: str) -> Transcript:
    (path,) = (path for path in RECORDINGS if name in str(path))
    return Transcript(str(path))


# -- pages -----------------------------------------------------------------------------------------------------


def test_a_conversation_is_shown_in_order(writer):
    writer.prompt("do it")
    call = writer.call("ls")
    writer.result("ls", call)
    writer.snapshot()
    writer.said("done")
    page = transcript_of(writer).page()
    assert kinds(page.shown) == ["Prompt", "Tool", "ToolResult", "Said"]
    assert texts(page.shown) == ["do it", "ls", "ls done", "done"]
    assert page.before is None


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_of_any_length_are_the_same_conversation(writer, limit):
    for number in range(20):
        writer.prompt(f"prompt {number}")
        writer.snapshot()
        call = writer.call(f"call {number}")
        writer.result(f"call {number}", call)
        writer.said(f"answer {number}")
    transcript = transcript_of(writer)
    assert everything(transcript, limit) == everything(transcript_of(writer), 1_000)
    assert len(everything(transcript, limit)) == 80


def test_a_page_says_when_nothing_is_before_it_even_if_hidden_records_are(writer):
    writer.snapshot()
    writer.prompt("one")
    writer.said("two")
    assert transcript_of(writer).page(limit=2).before is None


def test_the_parent_chain_runs_through_what_is_not_shown(writer):
    writer.prompt("first")
    for _ in range(40):
        writer.snapshot()
    writer.said("last")
    assert texts(transcript_of(writer).page(limit=2).shown) == ["first", "last"]


def test_a_page_stays_where_it_was_while_records_are_added(writer):
    for number in range(10):
        writer.prompt(f"{number}")
    transcript = transcript_of(writer)
    page = transcript.page(limit=3)
    writer.said("more")
    writer.prompt("and more")
    assert texts(transcript.page(page.before, 3).shown) == ["4", "5", "6"]


def test_a_page_is_found_again_by_one_who_has_read_nothing_yet(writer):
    for number in range(10):
        writer.prompt(f"{number}")
    before = transcript_of(writer).page(limit=3).before
    assert texts(transcript_of(writer).page(before, 3).shown) == ["4", "5", "6"]


@pytest.mark.parametrize(
    "before", ["", "x", "7", "0:nobody", "-1:x", "99999999999999999999999:x", "²:x", "0:", ":"]
)
def test_a_page_that_is_not_there_is_refused(writer, before):
    writer.prompt("one")
    with pytest.raises(InvalidParams, match="newest page"):
        transcript_of(writer).page(before)


def test_a_leaf_that_is_not_there_is_refused(writer):
    writer.prompt("one")
    with pytest.raises(InvalidParams):
        transcript_of(writer).page(leaf="nobody")


# -- calls made in one answer ------------------------------------------------------------------------------------


def parallel(writer: Writer) -> None:
    """As the CLI writes it: the way goes through the second call and its result only."""
    writer.prompt("all three")
    one = writer.call("one", answer="msg_1")
    two = writer.call("two", answer="msg_1")
    three = writer.call("three", answer="msg_1")
    writer.result("one", one)
    writer.result("three", three)
    writer.result("two", two)
    writer.snapshot()
    writer.said("all done")


def test_every_call_of_one_answer_is_shown_with_its_result(writer):
    parallel(writer)
    transcript = transcript_of(writer)
    expected = ["all three", "one", "two", "three", "one done", "three done", "two done", "all done"]
    assert texts(transcript.page().shown) == expected
    assert texts(everything(transcript, 2)) == expected
    assert transcript.branches() == []


def test_a_page_does_not_begin_within_an_answer(writer):
    parallel(writer)
    transcript = transcript_of(writer)
    page = transcript.page(limit=2)
    assert texts(page.shown)[0] == "one"
    assert texts(transcript.page(page.before).shown) == ["all three"]


def test_results_that_come_one_by_one_are_no_new_branch(writer):
    writer.prompt("all three")
    calls = [writer.call(name, answer="msg_1") for name in ("one", "two", "three")]
    transcript = transcript_of(writer)
    transcript.page()
    for name, call in zip(("one", "three", "two"), (calls[0], calls[2], calls[1]), strict=True):
        writer.result(name, call)
        news = transcript.news()
        assert news is not None
        assert not news.branched
    assert texts(transcript.page().shown) == [
        "all three",
        "one",
        "two",
        "three",
        "one done",
        "three done",
        "two done",
    ]


# -- branches ----------------------------------------------------------------------------------------------------


def test_the_newest_leaf_is_the_living_branch_and_the_other_is_listed(writer):
    writer.prompt("root")
    fork = writer.said("fine")
    writer.prompt("one writer asks")
    leaf = writer.said("one answer")
    writer.prompt("another writer asks", parentUuid=fork)
    writer.said("another answer")
    writer.note("last-prompt", leafUuid=leaf)
    transcript = transcript_of(writer)
    assert texts(transcript.page().shown) == ["root", "fine", "another writer asks", "another answer"]
    (branch,) = transcript.branches()
    assert (branch.leaf, branch.fork, branch.title) == (leaf, fork, "one writer asks")
    assert texts(transcript.page(leaf=leaf).shown) == ["root", "fine", "one writer asks", "one answer"]


def test_pages_go_on_along_the_branch_they_began_on(writer):
    writer.prompt("root")
    fork = writer.said("fine")
    for number in range(5):
        writer.prompt(f"old {number}")
    transcript = transcript_of(writer)
    page = transcript.page(limit=2)
    writer.prompt("new", parentUuid=fork)
    assert texts(transcript.page(page.before, 2).shown) == ["old 1", "old 2"]
    assert texts(transcript.page().shown) == ["root", "fine", "new"]


def test_calls_in_one_answer_on_a_dead_branch_are_one_branch(writer):
    root = writer.prompt("root")
    parallel(writer)
    writer.prompt("again", parentUuid=root)
    transcript = transcript_of(writer)
    assert [branch.title for branch in transcript.branches()] == ["all three"]
    assert texts(transcript.page().shown) == ["root", "again"]


def test_what_is_added_elsewhere_in_the_tree_is_news_of_a_branch(writer):
    root = writer.prompt("root")
    writer.said("answer")
    transcript = transcript_of(writer)
    transcript.page()
    writer.prompt("goes on")
    news = transcript.news()
    assert news is not None
    assert not news.branched
    writer.prompt("starts over", parentUuid=root)
    news = transcript.news()
    assert news is not None
    assert news.branched
    assert texts(news.shown) == ["starts over"]


# -- compaction, forks, sub-agents -------------------------------------------------------------------------------


def test_what_was_before_a_compaction_stays_in_reach(writer):
    writer.prompt("long ago")
    writer.compact("it was long")
    writer.prompt("now")
    assert kinds(transcript_of(writer).page().shown) == ["Prompt", "Compacted", "Summary", "Prompt"]
    assert texts(everything(transcript_of(writer), 1)) == ["long ago", "", "it was long", "now"]


def test_a_record_that_a_compaction_kept_and_wrote_again_leads_back_once(writer):
    writer.prompt("long ago")
    kept = writer.said("kept")
    writer.compact("it was long")
    writer.said("kept", uuid=kept)
    writer.prompt("now")
    expected = ["long ago", "kept", "", "it was long", "kept", "now"]
    for limit in (1, 2, 100):
        assert texts(everything(transcript_of(writer), limit)) == expected


def test_a_fork_that_begins_with_the_compaction_ends_there():
    fork = recorded("5a825a3f")
    things = everything(fork, 3)
    assert kinds(things)[:4] == ["Compacted", "Summary", "Said", "Command"]
    assert texts(things)[-2:] == ["hello fork", "hi there"]
    assert fork.branches() == []


def test_a_fork_has_the_same_uuids_in_another_file(writer, tmp_path):
    writer.prompt("one")
    writer.said("two")
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(writer.path.read_bytes())
    other = Writer(copy)
    other.last = writer.last
    other.prompt("only here")
    assert texts(transcript_of(writer).page().shown) == ["one", "two"]
    assert texts(Transcript(str(copy)).page().shown) == ["one", "two", "only here"]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("8e9d5f08-8bc4-4600-9012-e64ac8a8aa17.jsonl", "toolu_000000000000000000000006"),
        ("3a9726fd-02e5-4e33-a2ce-cd70dde0ef69.jsonl", "toolu_64b033f9a7cf490cad309df8"),
    ],
)
def test_a_sub_agent_is_tied_to_its_call_and_has_a_transcript(name, call):
    transcript = recorded(name)
    (agent,) = transcript.agents()
    assert (agent.type, agent.description) == ("general-purpose", "look around")
    (started,) = (thing for thing in everything(transcript) if isinstance(thing, Tool) and thing.agent)
    assert (started.id, started.agent) == (call, agent.id)
    assert kinds(everything(Transcript(agent.path))) == ["Prompt", "Tool", "ToolResult", "Said"]


def test_sub_agents_that_old_clis_put_into_the_file_are_no_part_of_the_conversation(writer):
    main = writer.prompt("main")
    writer.prompt("sub", isSidechain=True, parentUuid=None)
    writer.said("sub answer", isSidechain=True)
    writer.said("main answer", parentUuid=main)
    writer.said("sub goes on", isSidechain=True)
    transcript = transcript_of(writer)
    assert texts(transcript.page().shown) == ["main", "main answer"]
    assert transcript.branches() == []


# -- what is added -----------------------------------------------------------------------------------------------


def test_news_are_what_came_after_the_newest_page(writer):
    writer.prompt("one")
    transcript = transcript_of(writer)
    assert texts(transcript.page().shown) == ["one"]
    assert transcript.news() is None
    writer.said("two")
    writer.snapshot()
    news = transcript.news()
    assert news is not None
    assert texts(news.shown) == ["two"]
    assert transcript.news() is None


def test_a_file_that_is_not_there_yet_is_empty_and_then_news(writer):
    transcript = transcript_of(writer)
    assert transcript.page().shown == ()
    assert transcript.branches() == []
    assert transcript.news() is None
    writer.prompt("one")
    news = transcript.news()
    assert news is not None
    assert texts(news.shown) == ["one"]
    assert not news.anew


def test_half_a_line_is_news_when_it_is_whole(writer):
    writer.prompt("one")
    whole = writer.path.read_bytes()
    writer.path.write_bytes(whole[:-30])
    transcript = transcript_of(writer)
    assert transcript.page().shown == ()
    writer.raw(whole[-30:-10])
    assert transcript.news() is None
    writer.raw(whole[-10:])
    news = transcript.news()
    assert news is not None
    assert texts(news.shown) == ["one"]
    assert not news.anew


def test_a_last_line_without_an_end_is_shown_if_it_is_whole(writer):
    writer.prompt("one")
    writer.path.write_bytes(writer.path.read_bytes().removesuffix(b"\n"))
    transcript = transcript_of(writer)
    assert texts(transcript.page().shown) == ["one"]
    writer.raw(b"\n")
    writer.said("two")
    news = transcript.news()
    assert news is not None
    assert texts(news.shown) == ["two"]
    assert not news.anew


def test_much_news_comes_in_pieces(writer):
    transcript = transcript_of(writer)
    transcript.page()
    for number in range(12):
        writer.prompt(f"{number}", filler="x" * 1_000_000)
    pieces = []
    while (news := transcript.news()) is not None:
        pieces.append(texts(news.shown))
    assert len(pieces) > 1
    assert [text for piece in pieces for text in piece] == [f"{number}" for number in range(12)]


@pytest.mark.parametrize("longer", [False, True])
@pytest.mark.parametrize("renamed", [False, True])
def test_a_file_that_is_another_one_begins_anew(writer, tmp_path, longer, renamed):
    for number in range(20):
        writer.prompt(f"old {number}")
    transcript = transcript_of(writer)
    transcript.page()
    other = Writer(tmp_path / "other.jsonl")
    for number in range(40 if longer else 5):
        other.prompt(f"new {number}")
    if renamed:
        other.path.replace(writer.path)
    else:
        writer.path.write_bytes(other.path.read_bytes())
    news = transcript.news()
    assert news is not None
    assert news.anew
    assert texts(news.shown)[:2] == ["new 0", "new 1"]
    assert texts(transcript.page(limit=2).shown)[-1].startswith("new")
    assert transcript.news() is None


def test_a_file_that_merely_ends_alike_begins_anew(writer, tmp_path):
    other = Writer(tmp_path / "other.jsonl")
    for each, text in ((writer, "old"), (other, "new")):
        each.prompt(text)
        each.said("alike", uuid="u", parentUuid=None)
    transcript = transcript_of(writer)
    transcript.page()
    other.path.replace(writer.path)
    news = transcript.news()
    assert news is not None
    assert news.anew
    assert texts(news.shown) == ["new", "alike"]


def test_half_a_line_is_not_read_again_and_again(writer):
    transcript = transcript_of(writer)
    writer.raw(b'{"filler": "' + b"x" * 50_000_000)
    transcript.page()
    start = time.monotonic()
    for _ in range(200):
        assert transcript.news() is None
    assert time.monotonic() - start < 1
    writer.path.unlink()


def test_the_newest_page_of_a_file_that_is_another_one_is_its_own(writer):
    for number in range(20):
        writer.prompt(f"old {number}")
    transcript = transcript_of(writer)
    before = transcript.page(limit=2).before
    writer.path.unlink()
    writer.last = None
    writer.prompt("new")
    assert texts(transcript.page().shown) == ["new"]
    assert transcript.news() is None
    with pytest.raises(InvalidParams):
        transcript.page(before)


# -- broken files ------------------------------------------------------------------------------------------------


def test_lines_that_are_no_records_are_passed_over(writer):
    writer.prompt("one")
    for line in (
        b"",
        b"no json",
        b"[]",
        b"7",
        b'"text"',
        b"null",
        b"{",
        b'{"uuid": 5, "type": "user"}',
        b"\x00\xff",
    ):
        writer.raw(line + b"\n")
    writer.raw(b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    writer.said("two")
    assert texts(transcript_of(writer).page().shown) == ["one", "two"]


def test_texts_that_are_no_text_are_mended(writer):
    writer.prompt("one")
    first = writer.last
    writer.raw(
        b'{"type":"user","uuid":"u","parentUuid":"%s","message":{"content":"half \\ud83d pair"}}\n'
        % first.encode()
    )
    writer.raw(b'{"type":"user","uuid":"v","parentUuid":"u","message":{"content":"no \xff utf-8"}}\n')
    assert texts(transcript_of(writer).page().shown) == ["one", "half � pair", "no � utf-8"]


def test_a_parent_that_was_lost_leaves_a_gap_and_not_the_end(writer):
    writer.prompt("one")
    writer.prompt("two", parentUuid="lost")
    page = transcript_of(writer).page()
    assert kinds(page.shown) == ["Prompt", "Notice", "Prompt"]
    assert isinstance(page.shown[1], Notice)
    assert "missing" in page.shown[1].text


def test_records_that_are_their_own_ancestors_end(writer):
    writer.prompt("self", uuid="a", parentUuid="a")
    writer.prompt("one", uuid="b", parentUuid="c")
    writer.prompt("two", uuid="c", parentUuid="b")
    transcript = transcript_of(writer)
    for limit in (1, 100):
        assert [text for text in texts(everything(transcript, limit)) if len(text) < 5] == ["self", "one", "two"]
    assert transcript.branches() == []


def test_a_hundred_thousand_records_of_one_name_are_read(writer):
    line = b'{"type":"user","uuid":"a","parentUuid":"a","message":{"content":"x"}}\n'
    writer.raw(line * 100_000)
    assert len(everything(transcript_of(writer), 10_000)) >= 100_000


def test_a_line_of_a_hundred_megabytes_is_no_obstacle(writer):
    writer.prompt("one")
    writer.record("attachment", attachment={"type": "prompt_snapshot", "text": "x" * 100_000_000})
    writer.said("two")
    transcript = transcript_of(writer)
    assert texts(transcript.page().shown) == ["one", "two"]
    writer.path.unlink()


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root reads everything, so root is somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_read_is_refused_in_one_sentence(writer):
    writer.prompt("one")
    transcript = transcript_of(writer)
    transcript.page()
    writer.path.chmod(0)
    with (
        as_somebody_else(),
        pytest.raises(SetupProblem, match=r"Permission denied; .* correct its permissions\.$"),
    ):
        transcript.news()


@pytest.mark.parametrize("made", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_in_one_sentence(tmp_path, made):
    made(tmp_path / "session.jsonl")
    transcript = Transcript(str(tmp_path / "session.jsonl"))
    for ask in (transcript.page, transcript.news, transcript.branches):
        with pytest.raises(SetupProblem) as problem:
            ask()
        assert re.fullmatch(r".* cannot be used: [^.]*; [^.]*\.", str(problem.value))


def test_a_path_that_is_none_is_refused(tmp_path):
    with pytest.raises(SetupProblem):
        Transcript(str(tmp_path / "a\0b.jsonl")).page()


# -- what is asked for in full -----------------------------------------------------------------------------------


def test_what_is_cut_can_be_had_whole(writer):
    call = writer.call("ls")
    uuid = writer.prompt(
        [{"type": "tool_result", "tool_use_id": "ls", "content": "x" * 10_000}], sourceToolAssistantUUID=call
    )
    transcript = transcript_of(writer)
    (_, result) = transcript.page().shown
    assert isinstance(result, ToolResult)
    assert result.cut
    assert len(result.text) == 4_000
    (whole,) = transcript.whole(uuid)
    assert isinstance(whole, ToolResult)
    assert not whole.cut
    assert len(whole.text) == 10_000
    assert transcript.whole("nobody") == ()


# -- recordings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", RECORDINGS, ids=lambda path: f"{path.relative_to(RECORDED).parts[0]}-{path.stem[:8]}"
)
def test_a_recording_is_shown_without_gaps_or_branches(path):
    transcript = Transcript(str(path))
    things = everything(transcript, 5)
    assert things == everything(Transcript(str(path)), 1_000)
    assert transcript.branches() == []
    assert not any(isinstance(thing, Notice) and thing.level == "warning" for thing in things)
    calls = [thing.id for thing in things if isinstance(thing, Tool)]
    results = [thing.id for thing in things if isinstance(thing, ToolResult)]
    assert sorted(calls) == sorted(results)
    assert len(json.dumps(texts(things))) < 20_000


@pytest.mark.parametrize(
    "path", RECORDINGS, ids=lambda path: f"{path.relative_to(RECORDED).parts[0]}-{path.stem[:8]}"
)
def test_every_text_of_the_model_in_a_recording_is_shown_once(path):
    said = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["type"] == "assistant" and record["message"]["model"] != "<synthetic>":
            said += [block["text"] for block in record["message"]["content"] if block["type"] == "text"]
    assert [thing.text for thing in everything(Transcript(str(path))) if isinstance(thing, Said)] == said


def test_the_recorded_compaction_joins_both_halves():
    things = everything(recorded("2.1.326-compact"), 4)
    prompts = [thing.text.splitlines()[0] for thing in things if isinstance(thing, Prompt)]
    assert prompts == ["one", "two", "three after compaction"]
    assert [thing.tokens for thing in things if isinstance(thing, Compacted)] == [110]
    assert kinds(things)[-2:] == ["Command", "Notice"]


@pytest.mark.parametrize("name", ["2.1.326-allow_deny", "2.1.37-allow_deny"])
def test_the_recorded_refusals_are_results_that_failed(name):
    things = everything(recorded(name))
    failed = [thing for thing in things if isinstance(thing, ToolResult) and not thing.ok]
    assert failed[0].text == "the probe says no"
    assert [thing.denied for thing in failed] == [name.startswith("2.1.326")] * 2
    assert kinds(things)[-1] == "Interrupted"


# -- any file ----------------------------------------------------------------------------------------------------

UUIDS = st.sampled_from(["a", "b", "c", "d", None, 5])
RECORDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "attachment", "system", "summary", None])},
    optional={
        "uuid": UUIDS,
        "parentUuid": UUIDS,
        "logicalParentUuid": UUIDS,
        "isSidechain": st.booleans(),
        "isMeta": st.sampled_from([True, False, "yes"]),
        "sourceToolAssistantUUID": UUIDS,
        "subtype": st.sampled_from(["compact_boundary", "x", 5]),
        "content": st.sampled_from(["text", 5, None]),
        "timestamp": st.sampled_from(["2026-11-18T05:07:57.976Z", "never", 5]),
        "attachment": st.sampled_from([{"type": "queued_command", "prompt": "p"}, {"type": []}, 5, "x"]),
        "toolUseResult": st.sampled_from([{"agentId": "x"}, {"agentId": 5}, "Error", []]),
        "message": st.fixed_dictionaries(
            {},
            optional={
                "id": st.sampled_from(["m", "n", 5]),
                "content": st.sampled_from(
                    ["text", "", 5, [], [5], [{"type": "text", "text": "t"}], [{"type": "text"}]]
                )
                | st.lists(
                    st.sampled_from(
                        [
                            {"type": "tool_use"},
                            {"type": "tool_use", "id": 5, "name": [], "input": "x"},
                            {"type": "tool_result", "content": [{"type": "image", "source": 5}]},
                            {"type": "thinking", "thinking": 5},
                            {"type": ["text"]},
                            {},
                        ]
                    )
                ),
            },
        )
        | st.sampled_from([5, "x", []]),
    },
)


@settings(max_examples=300, deadline=None)
@given(
    lines=st.lists(RECORDS.map(lambda record: json.dumps(record).encode()) | st.binary(max_size=8), max_size=12),
    cut=st.integers(0, 400),
)
def test_no_file_is_too_strange_and_no_way_of_reading_tells_otherwise(tmp_path_factory, lines, cut):
    path = tmp_path_factory.mktemp("any") / "session.jsonl"
    data = b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    path.write_bytes(data[:cut])
    grown = Transcript(str(path))
    grown.page()
    path.write_bytes(data)
    grown.news()
    at_once = Transcript(str(path))
    assert everything(grown, 1) == everything(at_once, 1) == everything(Transcript(str(path)), 100)
    assert grown.branches() == at_once.branches()
