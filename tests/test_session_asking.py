"""Answering an approval with keys, and who was first."""

import json

import pytest

from ide_bridge.cli.session.asking import Asking, Decided, EditNeeded, More, Waits
from ide_bridge.cli.session.keys import Key
from ide_bridge.cli.session.waiting import Waiting
from ide_bridge.session.approvals import Approval
from ide_bridge.session.events import ApprovalClosed

CHOICES = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}]
ONE = {"question": "Which colour?", "header": "Colour", "options": CHOICES, "multiSelect": False}
SEVERAL = {"question": "Which ones?", "header": "", "options": CHOICES, "multiSelect": True}


def approval(given=None, tool="Bash", kind="tool", name="abcd", **more):
    given = {"command": "mkdir x"} if given is None else given
    known = {
        "suggestions": (),
        "description": None,
        "reason": None,
        "blocked_path": None,
        "agent": None,
        "session": "s",
        "request_id": "r",
        "title": f"{tool}: …",
        "asked": 0.0,
        "until": None,
    }
    return Approval(id=name, tool=tool, kind=kind, input=given, **{**known, **more})


def press(asking, *keys):
    """What the last of some keys brings about; a longer one is a name."""
    step = None
    for key in keys:
        step = asking.press(Key(key) if len(key) > 1 else Key(key, key))
    return step


def answer(given, *keys):
    step = press(Asking(given), *keys)
    assert isinstance(step, Decided)
    assert step.params.pop("approval") == "abcd"
    return step.params


def shown(asking):
    return "\n".join(text.plain for text in asking.shown())


def test_one_key_says_what_can_be_said_with_one():
    assert answer(approval(), "y") == {"behavior": "allow"}
    assert answer(approval(), "Y") == {"behavior": "allow"}
    assert answer(approval(), "s") == {"behavior": "allow", "forSession": True}
    assert press(Asking(approval()), "w") == Waits()
    for key in ("x", "enter", "1", "o", "up"):
        assert press(Asking(approval()), key) is None


def test_what_is_pasted_answers_nothing():
    assert Asking(approval()).press(Key("pasted", "y")) is None


def test_no_takes_a_reason_or_none():
    assert answer(approval(), "n", *"too risky", "enter") == {"behavior": "deny", "reason": "too risky"}
    assert answer(approval(), "n", "enter") == {"behavior": "deny"}
    assert answer(approval(), "n", *"y", "escape", "y") == {"behavior": "allow"}


def test_a_command_is_edited_on_the_line():
    assert answer(approval(), "e", *"yz", "enter") == {"behavior": "allow", "input": {"command": "mkdir xyz"}}
    assert answer(approval(), "e", "enter") == {"behavior": "allow"}
    assert press(Asking(approval()), "e", "erase-left", "enter") is None
    asking = Asking(approval())
    press(asking, "e")
    assert (asking.label, asking.typed.text) == ("Run instead: ", "mkdir x")


def test_another_input_is_edited_as_json_and_only_sent_when_it_is_another_object():
    given = {"file_path": "a", "content": "é\n"}
    asking = Asking(approval(given, "Write"))
    step = press(asking, "e")
    assert isinstance(step, EditNeeded)
    assert json.loads(step.text) == given
    assert "é" in step.text
    assert "as it was" in asking.edited(step.text)
    assert "no JSON" in asking.edited("{")
    assert press(asking, "e") == EditNeeded("{")
    assert "object" in asking.edited("[]")
    changed = asking.edited('{"file_path": "b", "content": ""}')
    assert changed.params["input"] == {"file_path": "b", "content": ""}


def test_the_keys_are_named_and_what_the_session_would_allow():
    rules = ({"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "mkdir:*"}, {"no": "rule"}]},)
    assert Asking(approval(suggestions=rules)).hint().plain == (
        "[y] once  [s] for this session (Bash(mkdir:*))  [n] no, with a reason  [e] edit the input  [w] wait  "
    )
    assert "[s] for this session  " in Asking(approval()).hint().plain
    mode = ({"type": "setMode", "mode": "acceptEdits"},)
    assert "(acceptEdits mode)" in Asking(approval(suggestions=mode)).hint().plain
    asking = Asking(approval())
    press(asking, "n")
    assert asking.hint().plain == "Enter sends it · Esc goes back"


def test_a_question_is_answered_with_a_number_or_in_own_words():
    asked = approval({"questions": [ONE]}, "AskUserQuestion", "question")
    assert answer(asked, "2") == {"behavior": "allow", "answers": {"Which colour?": "Blue"}}
    assert answer(asked, "o", *"Green", "enter") == {"behavior": "allow", "answers": {"Which colour?": "Green"}}
    assert answer(asked, "n", "enter") == {"behavior": "deny"}
    assert press(Asking(asked), "w") == Waits()
    for key in ("3", "0", "y", "enter", "s"):
        assert press(Asking(asked), key) is None
    assert shown(Asking(asked)).splitlines() == [
        "? Claude has a question",
        "  Which colour?",
        "  1. Red  warm",
        "  2. Blue",
    ]


def test_several_questions_follow_each_other_and_several_answers_are_joined():
    asked = approval({"questions": [SEVERAL, ONE, ONE]}, "AskUserQuestion", "question")
    asking = Asking(asked)
    assert press(asking, "enter") is None
    assert [text.plain for text in press(asking, "2").shown] == ["  chosen: 2"]
    press(asking, "1")
    assert isinstance(press(asking, "enter"), More)
    assert isinstance(press(asking, "1"), More)
    step = press(asking, "2")
    assert step.params["answers"] == {"Which ones?": "Red, Blue", "Which colour?": "Blue"}
    again = Asking(asked)
    press(again, "1", "1")
    assert press(again, "enter") is None


def test_a_question_of_another_shape_is_asked_like_a_tool():
    asking = Asking(approval({"questions": "what?"}, "AskUserQuestion", "question"))
    assert "what?" in shown(asking)
    assert isinstance(press(asking, "y"), Decided)


def test_a_plan_is_agreed_to_or_not():
    asked = approval({"plan": "# Plan\n1. think"}, "ExitPlanMode", "plan")
    assert "  1. think" in shown(Asking(asked))
    assert answer(asked, "y") == {"behavior": "allow"}
    assert press(Asking(asked), "s") is None
    assert press(Asking(asked), "e") is None
    assert Asking(asked).hint().plain == "[y] yes  [n] no, with a reason  [w] wait  "


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"command": "a\nb", "description": "says what"}, ["  a", "  b"]),
        ({"command": "a", "timeout": 5}, ["  a", '    "timeout": 5']),
        ({"file_path": "/x", "content": "new\nfile\n"}, ["  /x", "  +new", "  +file"]),
        (
            {"file_path": "/x", "old_string": "old\nsame", "new_string": "new\nsame"},
            ["  -old", "  +new", "   same"],
        ),
        ({"file_path": "/x", "old_string": 1}, ["  /x", '    "old_string": 1']),
        ({"pattern": "\x1b[31m"}, ['    "pattern": "\\u001b[31m"']),
        ({"command": "\x1b]0;x\x07"}, ["  \\x1b]0;x\\x07"]),
    ],
)
def test_everything_that_will_be_done_is_shown(given, wanted):
    lines = shown(Asking(approval(given))).splitlines()
    assert [line for line in wanted if line not in lines] == []


def test_what_is_too_long_says_how_much_is_missing():
    text = shown(Asking(approval({"command": "\n".join(map(str, range(100)))})))
    assert text.endswith("  59\n  … 40 more lines, which [e] shows")
    text = shown(Asking(approval({"file_path": "x", "content": "a\n" * 100})))
    assert text.endswith("  … 40 more lines, which [e] shows")


def test_the_circumstances_are_told():
    asked = approval(description="Makes it", reason="a rule", blocked_path="/etc", agent="a1")
    assert shown(Asking(asked)).splitlines() == [
        "? A sub-agent wants to use Bash",
        "  mkdir x",
        "  Makes it",
        "  It is asked because: a rule",
        "  It concerns /etc",
    ]


# --- who was first -----------------------------------------------------------------------------------------


def closed(name="abcd", outcome="allowed", by="Vim", reason=""):
    return ApprovalClosed(name, outcome, by, reason)


def test_the_oldest_is_asked_first_and_what_is_put_aside_is_not_asked_again():
    waiting = Waiting()
    for name in ("one", "two"):
        waiting.add(approval(name=name))
    assert waiting.next.approval.id == "one"
    waiting.focus = waiting.next
    assert waiting.next is None
    waiting.put_aside()
    assert waiting.next.approval.id == "two"
    waiting.focus = waiting.next
    waiting.put_aside()
    assert (waiting.next, len(waiting)) == (None, 2)
    assert waiting.take_up().approval.id == "one"


@pytest.mark.parametrize("event_first", [True, False])
def test_our_own_answer_is_told_without_a_name(event_first):
    waiting = Waiting()
    waiting.add(approval())
    waiting.focus = waiting.next
    waiting.sent("abcd")
    assert (waiting.focus, waiting.next) == (None, None)
    if event_first:
        assert waiting.closed(closed(by="terminal")) is None
        told = waiting.replied("abcd", None)
    else:
        assert waiting.replied("abcd", None) is None
        told = waiting.closed(closed(by="terminal"))
    assert told.plain == "  → allowed"
    assert len(waiting) == 0


def test_an_answer_from_elsewhere_is_told_with_its_name_also_when_ours_came_second():
    waiting = Waiting()
    waiting.add(approval())
    waiting.focus = waiting.next
    assert waiting.closed(closed()).plain == "  → answered by Vim: allowed"
    assert waiting.focus is None
    waiting.add(approval())
    waiting.sent("abcd")
    assert waiting.closed(closed(outcome="denied", reason="no")) is None
    assert waiting.replied("abcd", "It was already denied by Vim.").plain == "  → answered by Vim: denied: no"


def test_a_refused_answer_leaves_the_question_open():
    waiting = Waiting()
    waiting.add(approval())
    waiting.sent("abcd")
    assert waiting.replied("abcd", "This does not fit.") == "This does not fit."
    assert waiting.next.approval.id == "abcd"


def test_what_is_withdrawn_or_expires_is_told_and_what_was_never_open_is_not():
    waiting = Waiting()
    waiting.add(approval())
    assert waiting.closed(closed(outcome="withdrawn", by="the CLI")).plain == "  → no longer asked"
    waiting.add(approval())
    assert "nobody answered" in waiting.closed(closed(outcome="expired", by="")).plain
    assert waiting.closed(closed("unknown")) is None
