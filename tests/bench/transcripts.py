"""Transcripts as large as they get: T1 first page, T2 what is added, T3 many records, T4 past sessions.

The files are made in the proportions in which the CLI writes them: of twenty bytes one is for the eye, most of
the rest are the prompts and tools as they went to the API. It does not know how the bridge reads them.
"""

import asyncio
import gc
import os
import time
import tracemalloc
import uuid
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from statistics import median, quantiles

import msgspec

from ide_bridge.session.transcript import Transcript
from ide_bridge.session.transcript.past import past_sessions
from ide_bridge.session.transcript.places import slug
from ide_bridge.session.transcript.watch import Watcher, follow
from tests.bench.measuring import seconds
from tests.bench.stage import PATIENCE, Stage
from tests.bench.table import Figure

__all__ = ["added", "first_page", "many_records", "past"]

LARGE = 200_000_000
RECORDS = 100_000
SESSIONS = 1_000
ROUNDS = 9
ADDED = 60
PAGE = 50
TEXT = 'You are a tool that answers "questions" about code — in\nwhole sentences. '

Json = dict[str, object]


async def first_page(stage: Stage) -> list[Figure]:
    """T1: the newest page of a transcript of 200 MB, and the way back to its beginning."""
    path = _write(stage.folder / "large.jsonl", LARGE, vendor=58_000)
    taken = [_timed(lambda: Transcript(str(path)).page(limit=PAGE)) for _ in range(ROUNDS)]
    whole = _timed(lambda: _all_pages(Transcript(str(path))))
    size = path.stat().st_size
    path.unlink()
    return [
        Figure("T1", "first page of 200 MB, slowest", max(taken) * 1e3, 300, f"{size / 1e6:.0f} MB", unit=" ms"),
        Figure("T1", "all its pages, one after the other", whole, 5, unit=" s"),
    ]


async def added(stage: Stage) -> list[Figure]:
    """T2: from the write of a record until it was given to one who follows."""
    path = _write(stage.folder / "followed.jsonl", 1_000_000, vendor=58_000)
    transcript, watcher = Transcript(str(path)), Watcher()
    transcript.page()
    taken = []
    try:
        async with aclosing(follow(transcript, watcher)) as news, asyncio.timeout(PATIENCE):
            for number in range(ADDED):
                waiting = asyncio.ensure_future(anext(news))
                await asyncio.sleep(0.01)
                start = time.perf_counter()
                _append(path, _user(str(uuid.uuid4()), None, f"prompt {number}"))
                await waiting
                taken.append(time.perf_counter() - start)
    finally:
        watcher.close()
    late = quantiles(taken, n=20)[-1]
    return [
        Figure("T2", "record written until seen, p95", late * 1e3, 20, f"p50 {seconds(median(taken))}", unit=" ms")
    ]


async def many_records(stage: Stage) -> list[Figure]:
    """T3: a conversation of 100,000 records."""
    path = _write(stage.folder / "many.jsonl", RECORDS * 900, vendor=500)
    gc.collect()
    tracemalloc.start()
    transcript = Transcript(str(path))
    transcript.branches()
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    page = median(_timed(transcript.page) for _ in range(ROUNDS))
    whole = _timed(lambda: Transcript(str(path)).branches())
    with path.open("rb") as file:
        count = sum(b'"uuid"' in line for line in file)
    path.unlink()
    return [
        Figure("T3", f"{count:,} records: a page, all known", page * 1e3, 50, unit=" ms"),
        Figure("T3", "the branches of all of them", whole, 2, unit=" s"),
        Figure("T3", "memory for all of them", memory / 1e6, 64, unit=" MB"),
    ]


async def past(stage: Stage) -> list[Figure]:
    """T4: the sessions of a folder that has a thousand."""
    project = stage.folder / "project"
    project.mkdir()
    config = stage.folder / "claude"
    folder = config / "projects" / slug(str(project))
    folder.mkdir(parents=True)
    for _ in range(SESSIONS):
        _write(folder / f"{uuid.uuid4()}.jsonl", 150_000, vendor=58_000, cwd=str(project))
    before = os.environ.get("CLAUDE_CONFIG_DIR")
    os.environ["CLAUDE_CONFIG_DIR"] = str(config)
    try:
        every = median(_timed(lambda: past_sessions(str(project), limit=SESSIONS)) for _ in range(ROUNDS))
        newest = median(_timed(lambda: past_sessions(str(project))) for _ in range(ROUNDS))
    finally:
        del os.environ["CLAUDE_CONFIG_DIR"]
        os.environ.update({} if before is None else {"CLAUDE_CONFIG_DIR": before})
    return [
        Figure("T4", "1,000 past sessions", every * 1e3, 500, unit=" ms"),
        Figure("T4", "the newest 50 of them", newest * 1e3, 100, unit=" ms"),
    ]


def _timed(work: object) -> float:
    assert callable(work)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _all_pages(transcript: Transcript) -> None:
    page = transcript.page(limit=PAGE)
    while page.before is not None:
        page = transcript.page(page.before, limit=PAGE)


def _write(path: Path, size: int, *, vendor: int, cwd: str = "/workspace") -> Path:
    with path.open("wb") as file:
        parent: str | None = None
        while file.tell() < size:
            for record in _turn(parent, vendor):
                file.write(msgspec.json.encode({**record, "cwd": cwd, "sessionId": path.stem}) + b"\n")
                parent = str(record["uuid"]) if "uuid" in record else parent
    return path


def _append(path: Path, record: Json) -> None:
    with path.open("ab") as file:
        file.write(msgspec.json.encode(record) + b"\n")


def _turn(parent: str | None, vendor: int) -> Iterator[Json]:
    """A prompt, a call, its result, an answer, and what the CLI notes in between."""
    prompt, listing, call, result, snapshot, answer = (str(uuid.uuid4()) for _ in range(6))
    yield {"type": "queue-operation", "operation": "dequeue"}
    yield _user(prompt, parent, "What does it say?")
    yield _attachment(listing, prompt, {"type": "skill_listing", "content": TEXT * (vendor // 800)})
    yield {"type": "api-request", "params": {"betas": ["one", "two"], "text": TEXT * 10}}
    yield _assistant(
        call, listing, {"type": "tool_use", "id": f"toolu_{call}", "name": "Bash", "input": {"command": "ls"}}
    )
    block = {"type": "tool_result", "tool_use_id": f"toolu_{call}", "content": "a.txt\n" * 60}
    yield _user(result, call, [block]) | {
        "sourceToolAssistantUUID": call,
        "toolUseResult": {"stdout": "a.txt\n" * 60},
    }
    tools = [{"name": f"tool{n}", "description": TEXT * (vendor // 3_000)} for n in range(20)]
    system = [TEXT * (vendor // 150)]
    yield _attachment(snapshot, result, {"type": "prompt_snapshot", "systemPrompt": system, "tools": tools})
    yield _assistant(answer, snapshot, {"type": "text", "text": TEXT * 5})
    yield {"type": "last-prompt", "lastPrompt": "What does it say?", "leafUuid": answer}


def _user(name: str, parent: str | None, content: object) -> Json:
    return _record("user", name, parent) | {"message": {"role": "user", "content": content}}


def _assistant(name: str, parent: str, block: Json) -> Json:
    message = {"id": f"msg_{name}", "role": "assistant", "content": [block], "usage": {"output_tokens": 10}}
    return _record("assistant", name, parent) | {"message": message}


def _attachment(name: str, parent: str, attachment: Json) -> Json:
    return {"parentUuid": parent, "attachment": attachment} | _record("attachment", name, parent)


def _record(kind: str, name: str, parent: str | None) -> Json:
    when = "2026-11-18T05:07:57.976Z"
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "type": kind,
        "uuid": name,
        "timestamp": when,
        "version": "2.1.326",
    }
