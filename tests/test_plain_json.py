import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.plain_json import from_json, to_json

# A folder's name need not be UTF-8, and then has halves of surrogate pairs.
texts = st.text(st.characters(codec=None))
values = st.recursive(
    texts | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
)


@given(values)
def test_it_writes_what_the_standard_library_writes(value):
    assert to_json(value) == json.dumps(value)


@pytest.mark.parametrize("value", [1.5, b"x", ["ok", {"a": (1,)}]])
def test_what_does_not_belong_into_a_lock_is_refused(value):
    with pytest.raises(TypeError, match="does not belong"):
        to_json(value)


@given(values, st.sampled_from(["", " ", "\n  "]))
def test_it_reads_what_it_wrote(value, blank):
    assert from_json(blank + to_json(value) + blank) == value


@given(st.text())
def test_what_is_no_json_is_refused_as_the_standard_library_does(text):
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = None
    try:
        found = from_json(text)
    except ValueError:
        found = None
    assert repr(found) == repr(wanted)
