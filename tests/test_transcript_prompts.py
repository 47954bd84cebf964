"""Which prompts a transcript holds: those that were taken up, and not those that only waited."""

import json

from ide_bridge.session.transcript.prompts import prompts_in

ONE, TWO, THREE, FOUR = (f"{number}1111111-1111-4111-8111-111111111111" for number in range(1, 5))


def test_prompts_stand_alone_or_within_an_attachment(tmp_path):
    records = [
        {"type": "user", "uuid": ONE, "message": {"content": "one"}},
        {"type": "attachment", "uuid": "x", "attachment": {"type": "queued_command", "source_uuid": TWO}},
        {"type": "queue-operation", "operation": "enqueue", "uuid": THREE},
        {"type": "user", "uuid": "y", "message": {"content": f"what is {FOUR}?"}},
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\nno JSON " + FOUR + "\n", encoding="utf-8")
    assert prompts_in(str(path), [ONE, TWO, THREE, FOUR]) == {ONE, TWO}
    assert prompts_in(str(path), []) == set()
