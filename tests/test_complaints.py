"""What does not fit a type, said without the words of those who wrote the type."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from ide_bridge.complaints import in_words


class Part(msgspec.Struct, forbid_unknown_fields=True):
    words: Annotated[tuple[str, ...], Meta(min_length=1)] = ("x",)
    seconds: Annotated[float, Meta(gt=0, le=300)] = 1.0


class Whole(msgspec.Struct, rename="camel"):
    file_path: str
    line: int | None = None
    on: bool = False
    policy: Literal["full", "off"] = "full"
    maybe: Literal["a", "b"] | None = None
    parts: list[Part] = []
    counts: dict[str, int] = {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "it must be an object"),
        ("{}", "filePath is missing"),
        ('{"filePath": 5}', "filePath must be a text"),
        ('{"filePath": null}', "filePath must be a text"),
        ('{"filePath": "", "line": "3"}', "line must be a whole number or null"),
        ('{"filePath": "", "on": 1}', "on must be true or false"),
        ('{"filePath": "", "policy": "some"}', "policy must be one of full, off"),
        ('{"filePath": "", "policy": 1}', "policy must be one of full, off"),
        ('{"filePath": "", "maybe": "c"}', "maybe must be one of a, b"),
        ('{"filePath": "", "parts": 1}', "parts must be a list"),
        ('{"filePath": "", "parts": [{"words": []}]}', "parts[0].words must be a list of length >= 1"),
        ('{"filePath": "", "parts": [{"seconds": 0}]}', "parts[0].seconds must be a number > 0.0"),
        ('{"filePath": "", "parts": [{"seconds": 301}]}', "parts[0].seconds must be a number <= 300.0"),
        ('{"filePath": "", "parts": [{"word": 1}]}', "parts[0].word is unknown"),
        ('{"filePath": "", "counts": {"a": "b"}}', "counts[...] must be a whole number"),
    ],
)
def test_a_complaint_names_the_field_and_what_it_must_be(text, words):
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(text, type=Whole)
    assert in_words(raised.value, Whole) == words


def test_what_was_never_heard_of_is_said_as_it_is():
    for said, words in {"odd `thing`": "odd 'thing'", "odd - at `$.a.b`": "odd in a.b"}.items():
        assert in_words(msgspec.ValidationError(said), Whole) == words
