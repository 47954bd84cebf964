"""One record of a transcript: what the tree wants to know of it, and what is shown of it.

1. The order of the keys is not stable, and any text may mention anything: records are parsed, never matched.
2. Everything with a ``uuid`` is part of the tree, also what is never shown; everything else is bookkeeping.
3. The huge ones (prompts and tools as they went to the API) cost little: the parser steps over members that nobody
   asked for, and makes nothing of them.
4. Texts may hold half a surrogate pair or bytes that are no UTF-8; such a line is mended, not thrown away.

It does not know where records come from, or which of them belong together.
"""

from typing import Any, TypeVar

import msgspec

from ide_bridge.session.control.lenient import mended

__all__ = [
    "Attachment",
    "Head",
    "Record",
    "agent_in",
    "answer_of",
    "read_attachment",
    "read_head",
    "read_object",
    "read_record",
]

T = TypeVar("T")


class Head(msgspec.Struct):
    """What the tree is made of."""

    type: Any = None
    uuid: Any = None
    parentUuid: Any = None  # noqa: N815 - the names are the CLI's
    logicalParentUuid: Any = None  # noqa: N815
    isSidechain: Any = None  # noqa: N815
    isMeta: Any = None  # noqa: N815
    sourceToolAssistantUUID: Any = None  # noqa: N815


class Record(msgspec.Struct):
    """All that is ever shown of a record."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    timestamp: Any = None
    message: Any = None
    content: Any = None
    attachment: msgspec.Raw = msgspec.Raw()
    level: Any = None
    isMeta: Any = None  # noqa: N815
    isCompactSummary: Any = None  # noqa: N815
    isApiErrorMessage: Any = None  # noqa: N815
    isAbortedMidStream: Any = None  # noqa: N815
    compactMetadata: Any = None  # noqa: N815
    toolDenialKind: Any = None  # noqa: N815
    toolUseResult: msgspec.Raw = msgspec.Raw()  # noqa: N815 - often a whole file, of which one id is wanted


class Attachment(msgspec.Struct):
    """What is ever shown of an attachment."""

    type: Any = None
    prompt: Any = None
    source_uuid: Any = None


class _Answer(msgspec.Struct):
    id: Any = None


class _Answered(msgspec.Struct):
    message: _Answer


class _Agent(msgspec.Struct):
    agentId: str  # noqa: N815


_head = msgspec.json.Decoder(Head)
_record = msgspec.json.Decoder(Record)
_attachment = msgspec.json.Decoder(Attachment)
_answered = msgspec.json.Decoder(_Answered)
_agent = msgspec.json.Decoder(_Agent)
_object = msgspec.json.Decoder(dict[str, Any])


def read_head(line: bytes) -> Head | None:
    """What the tree wants to know of a line; None if it is no record."""
    return _read(line, _head)


def read_record(line: bytes) -> Record | None:
    """What is shown of a line; None if it is no record."""
    return _read(line, _record)


def read_object(line: bytes) -> dict[str, Any]:
    """All of a line, or of a small file; empty if it is no object."""
    return _read(line, _object) or {}


def read_attachment(attachment: bytes) -> Attachment | None:
    """What is shown of an attachment."""
    return _read(attachment, _attachment)


def answer_of(line: bytes) -> str | None:
    """The id of the model's answer that a record is a part of."""
    found = _read(line, _answered)
    return found.message.id if found and isinstance(found.message.id, str) else None


def agent_in(result: bytes) -> str | None:
    """The id of the sub-agent whose work this is the result of."""
    found = _read(result, _agent) if result else None
    return found.agentId if found else None


def _read(line: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    try:
        return decoder.decode(line)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError):
        whole = mended(line)
        return _read(whole, decoder) if whole != line else None
    except RecursionError:
        return None
