"""Which prompts a transcript holds: what the CLI was told before it ended.

A prompt stands there under the uuid that we gave it: as a record of its own, or, if it came in the middle of a
turn, within an attachment. That it was queued does not mean that it was taken up.

It does not know why somebody wants to know.
"""

import os
from collections.abc import Iterable

from ide_bridge.session.transcript.lines import lines_after
from ide_bridge.session.transcript.records import read_object

__all__ = ["prompts_in"]


def prompts_in(path: str, uuids: Iterable[str]) -> set[str]:
    """Those of the uuids whose prompts the CLI has taken up."""
    wanted = {uuid.encode(): uuid for uuid in uuids}
    file = os.open(path, os.O_RDONLY)
    try:
        return {
            uuid
            for line in lines_after(file, 0)
            for spelled, uuid in wanted.items()
            if spelled in line.data and _is_prompt(line.data, uuid)
        }
    finally:
        os.close(file)


def _is_prompt(line: bytes, uuid: str) -> bool:
    record = read_object(line)
    attachment = record.get("attachment")
    if record.get("type") == "user":
        return record.get("uuid") == uuid
    return isinstance(attachment, dict) and attachment.get("source_uuid") == uuid
