"""The inbox of permission questions: who may answer, how, and who is told."""

import asyncio
import gc
import os
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from ide_bridge.errors import InvalidParams
from ide_bridge.session.approvals import Allowed, Answer, Approval, Closed, Denied, Inbox
from ide_bridge.session.approvals.permissions import for_session
from ide_bridge.session.approvals.replies import asked_in
from ide_bridge.session.approvals.settled import Settled
from ide_bridge.session.approvals.titles import title_of
from ide_bridge.session.control.questions import CanUseTool
from ide_bridge.settings import ApprovalPolicy

FOLDER = "/work/project"
ALLOW, DENY = Answer("allow"), Answer("deny")
FOR_SESSION = Answer("allow", for_session=True)
QUESTIONS = {
    "questions": [
        {
            "question": "Which one?",
            "header": "One",
            "options": [{"label": "A"}, {"label": "B"}],
            "multiSelect": False,
        },
        {
            "question": "Which ones?",
            "header": "Many",
            "options": [{"label": "X"}, {"label": "Y"}],
            "multiSelect": True,
        },
    ]
}


class Desk:
    """An inbox, what its listener was told, and the verdicts that went back, by request."""

    def __init__(self, **policy):
        self.policy = ApprovalPolicy(**policy)
        self.inbox = Inbox(lambda _folder: self.policy)
        self.news = []
        self.verdicts = []
        self.inbox.subscribe(self.news.append)

    def ask(self, tool="Bash", request="r1", session="s1", folder=FOLDER, suggestions=(), **given):
        given = given or {"command": "mkdir x"}
        question = CanUseTool(
            tool_name=tool, input=given, tool_use_id="t", permission_suggestions=tuple(suggestions)
        )
        return self.inbox.ask(session, folder, request, question, self.verdicts.append)

    @property
    def verdict(self):
        (verdict,) = self.verdicts
        return verdict

    @property
    def outcomes(self):
        return [news.outcome for news in self.news if isinstance(news, Closed)]


@pytest.fixture
def desk():
    return Desk()


# -- a question and its answer -----------------------------------------------------------------------------


def test_a_question_waits_until_somebody_answers(desk):
    approval = desk.ask(command="mkdir x", description="make it")
    assert desk.verdicts == []
    assert desk.inbox.open() == [approval]
    assert (approval.session, approval.request_id, approval.tool, approval.kind) == ("s1", "r1", "Bash", "tool")
    assert approval.title == "Bash: mkdir x"
    assert approval.until is None
    closed = desk.inbox.decide(approval.id, ALLOW, "Vim")
    assert desk.verdict == Allowed({"command": "mkdir x", "description": "make it"})
    assert (closed.approval, closed.outcome, closed.by) == (approval, "allowed", "Vim")
    assert desk.inbox.open() == []
    assert desk.news == [approval, closed]


def test_an_approval_travels_with_the_names_of_the_wire(desk):
    names = msgspec.to_builtins(desk.ask())
    assert {"id", "requestId", "blockedPath", "title", "suggestions", "asked", "until", "agent"} <= set(names)


def test_a_denial_gives_its_reason_to_the_model(desk):
    closed = desk.inbox.decide(desk.ask().id, Answer("deny", reason=" use make ", interrupt=True), "Vim")
    assert desk.verdict == Denied("use make", interrupt=True)
    assert closed.reason == "use make"


@pytest.mark.parametrize(
    ("tool", "words"),
    [("Bash", "does not allow"), ("ExitPlanMode", "keep planning"), ("AskUserQuestion", "answer")],
)
def test_a_denial_without_a_reason_says_something_sensible(desk, tool, words):
    desk.inbox.decide(desk.ask(tool).id, Answer("deny", reason="  "), "Vim")
    assert words in desk.verdict.message


def test_the_first_answer_wins_and_the_next_is_told_who_was_first(desk):
    approval = desk.ask()
    desk.inbox.decide(approval.id, DENY, "Vim")
    with pytest.raises(InvalidParams, match=rf"^{approval.id} was already denied by Vim 0 s ago\.$"):
        desk.inbox.decide(approval.id, ALLOW, "a browser")
    assert desk.outcomes == ["denied"]
    assert isinstance(desk.verdict, Denied)


def test_an_id_can_be_typed_carelessly(desk):
    desk.inbox.decide(f" {desk.ask().id.upper()} ", ALLOW, "Vim")
    assert desk.outcomes == ["allowed"]


def test_an_unknown_id_is_answered_with_those_that_are_open(desk):
    with pytest.raises(InvalidParams, match="There is no approval zzzz: nothing waits"):
        desk.inbox.decide("zzzz", ALLOW, "Vim")
    ids = [desk.ask(request=f"r{number}").id for number in range(12)]
    with pytest.raises(
        InvalidParams, match=rf"^There is no approval iiii; open are {', '.join(ids[:10])} and 2 more\.$"
    ):
        desk.inbox.decide("iiii", ALLOW, "Vim")


def test_ids_are_short_and_no_two_alike(desk):
    ids = {desk.ask(request=f"r{number}").id for number in range(900)}
    assert len(ids) == 900
    assert all(
        len(each) == 4 and not set(each) & set("ilo01") and each.isalpha() and each.islower() for each in ids
    )


# -- changed inputs ----------------------------------------------------------------------------------------


def test_an_input_can_be_changed(desk):
    desk.inbox.decide(desk.ask().id, Answer("allow", input={"command": "mkdir y"}), "Vim")
    assert desk.verdict == Allowed({"command": "mkdir y"})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer("allow", input=["mkdir"]), "input must be an object"),
        (Answer("allow", input={}), "input is empty"),
        (Answer("allow", input={"command": "y"}, for_session=True), "once, not for the whole session"),
        (Answer("allow", answers={"Which?": "A"}), "Bash asks nothing"),
        (Answer("allow", input={"command": "ls; rm y"}), r"denied by the rule Bash\(rm:\*\)"),
    ],
)
def test_an_answer_that_does_not_fit_leaves_the_question_open(answer, words):
    desk = Desk(deny=("Bash(rm:*)",))
    approval = desk.ask()
    with pytest.raises(InvalidParams, match=words):
        desk.inbox.decide(approval.id, answer, "Vim")
    assert desk.inbox.open() == [approval]
    assert desk.verdicts == []
    desk.inbox.decide(approval.id, ALLOW, "Vim")


# -- questions and plans -----------------------------------------------------------------------------------


def test_answers_go_back_by_the_text_of_their_question(desk):
    approval = desk.ask("AskUserQuestion", **QUESTIONS)
    assert approval.kind == "question"
    assert approval.title == "Question: Which one? (and 1 more)"
    answers = {"Which one?": "own words", "Which ones?": ["X", "Y"]}
    desk.inbox.decide(approval.id, Answer("allow", answers=answers), "Vim")
    assert desk.verdict == Allowed(QUESTIONS | {"answers": {"Which one?": "own words", "Which ones?": "X, Y"}})


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (None, 'Say the answers, .*: "Which one\\?", "Which ones\\?"'),
        (["A"], "Say the answers"),
        ({"Which?": "A"}, '^"Which\\?" was not asked; the questions are: "Which one\\?", "Which ones\\?"\\.$'),
        ({"Which one?": "A"}, '"Which ones\\?" is not answered yet'),
        ({"Which one?": ["A", "B"], "Which ones?": "X"}, 'answer to "Which one\\?" must be one text'),
        ({"Which one?": [], "Which ones?": "X"}, "must be one text"),
        ({"Which one?": " ", "Which ones?": "X"}, "none may be empty"),
        ({"Which one?": 1, "Which ones?": "X"}, "must be one text"),
        ({"Which one?": "A", "Which ones?": ["X", 1]}, "a text or a list of texts"),
    ],
)
def test_answers_that_do_not_fit_are_explained(desk, answers, words):
    approval = desk.ask("AskUserQuestion", **QUESTIONS)
    with pytest.raises(InvalidParams, match=words):
        desk.inbox.decide(approval.id, Answer("allow", answers=answers), "Vim")
    assert desk.inbox.open() == [approval]


def test_of_several_choices_none_may_be_taken(desk):
    answers = {"Which one?": ["A"], "Which ones?": []}
    desk.inbox.decide(desk.ask("AskUserQuestion", **QUESTIONS).id, Answer("allow", answers=answers), "Vim")
    assert desk.verdict.input["answers"] == {"Which one?": "A", "Which ones?": "none of them"}


def test_answers_may_come_within_a_changed_input(desk):
    given = QUESTIONS | {"answers": {"Which one?": "A", "Which ones?": "X"}}
    desk.inbox.decide(desk.ask("AskUserQuestion", **QUESTIONS).id, Answer("allow", input=given), "Vim")
    assert desk.verdict == Allowed(given)


def test_a_question_of_another_shape_can_still_be_answered(desk):
    assert asked_in({"questions": [1, {"question": 2}, {}]}) == {}
    desk.inbox.decide(desk.ask("AskUserQuestion", questions="?").id, ALLOW, "Vim")
    assert desk.verdict == Allowed({"questions": "?"})


def test_a_plan_is_agreed_to_or_sent_back(desk):
    approval = desk.ask("ExitPlanMode", plan="\n# The plan\n1. do it")
    assert (approval.kind, approval.title) == ("plan", "Plan: The plan")
    desk.inbox.decide(approval.id, ALLOW, "Vim")
    again = desk.ask("ExitPlanMode", request="r2", plan="")
    desk.inbox.decide(again.id, Answer("deny", reason="tests first"), "Vim")
    assert desk.verdicts == [Allowed({"plan": "\n# The plan\n1. do it"}), Denied("tests first")]


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
def test_no_policy_and_no_grant_answers_for_a_person(tool):
    desk = Desk(policy="read-only", allow=(tool,), deny=(tool, "*"))
    rule = {"type": "addRules", "rules": [{"toolName": tool}], "behavior": "allow", "destination": "session"}
    given = {"plan": "x"} if tool == "ExitPlanMode" else {"questions": []}
    desk.inbox.decide(desk.ask(tool, suggestions=[rule], **given).id, FOR_SESSION, "Vim")
    assert desk.ask(tool, request="r2", **given) is not None


def test_a_tool_that_needs_a_person_is_asked_every_time(desk):
    question = CanUseTool(tool_name="Confirm", input={"text": "sure?"}, requires_user_interaction=True)
    asked = desk.inbox.ask("s1", FOLDER, "r1", question, desk.verdicts.append)
    desk.inbox.decide(asked.id, FOR_SESSION, "Vim")
    assert desk.inbox.ask("s1", FOLDER, "r2", question, desk.verdicts.append) is not None


# -- policies ----------------------------------------------------------------------------------------------


def test_what_a_policy_decides_disturbs_nobody():
    desk = Desk(allow=("Bash(git status)",), deny=("Bash(rm:*)",))
    assert desk.ask(command="git status") is None
    assert desk.ask(command="rm x", request="r2") is None
    assert desk.verdicts == [Allowed({"command": "git status"}), Denied("Denied by the rule Bash(rm:*).")]
    assert desk.news == []


def test_the_policy_is_that_of_the_folder_and_of_the_moment(tmp_path):
    policies = {"a": ApprovalPolicy(), "b": ApprovalPolicy(allow=("Bash",))}
    inbox = Inbox(policies.__getitem__)
    question = CanUseTool(tool_name="Bash", input={"command": "ls"})
    assert inbox.ask("s", "a", "1", question, print) is not None
    told = []
    assert inbox.ask("s", "b", "2", question, told.append) is None
    policies["b"] = ApprovalPolicy()
    assert inbox.ask("s", "b", "3", question, told.append) is not None
    assert told == [Allowed({"command": "ls"})]


# -- for the session ---------------------------------------------------------------------------------------

SUGGESTED = [
    {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "mkdir x *"}],
        "behavior": "allow",
        "destination": "localSettings",
    },
    {"type": "addDirectories", "directories": ["/work/project"], "destination": "session"},
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
]


def suggested_to(tool, suggestions):
    return for_session(CanUseTool(tool_name=tool, input={}, permission_suggestions=tuple(suggestions)))


def test_allow_for_the_session_is_sent_and_remembered(desk):
    approval = desk.ask(command="mkdir x", suggestions=SUGGESTED)
    for_this_session = [each | {"destination": "session"} for each in SUGGESTED[:2]]
    assert list(approval.suggestions) == for_this_session
    desk.inbox.decide(approval.id, FOR_SESSION, "Vim")
    assert desk.verdict == Allowed({"command": "mkdir x"}, for_this_session)
    assert desk.ask(command="mkdir x y", request="r2") is None
    assert desk.ask(command="mkdir x; ls", request="r3") is not None
    assert desk.ask(command="mkdir x y", request="r4", session="s2") is not None


def test_allowed_once_means_once(desk):
    desk.inbox.decide(desk.ask(suggestions=SUGGESTED).id, ALLOW, "Vim")
    assert desk.verdict.permissions is None
    assert desk.ask(request="r2") is not None


def test_without_a_suggestion_the_very_same_is_not_asked_again(desk, tmp_path):
    folder = str(tmp_path)
    path = f"{folder}/a"
    for number, (tool, given, like, unlike) in enumerate(
        [
            ("Bash", {"command": "x; y", "description": "1"}, {"command": "x; y"}, {"command": "x; z"}),
            ("Bash", {"command": "x"}, {"command": "x"}, {"command": "x", "dangerouslyDisableSandbox": True}),
            ("Write", {"file_path": path, "content": "1"}, {"file_path": path}, {"file_path": f"{path}b"}),
            ("Odd", {"a": 1, "b": [2]}, {"b": [2], "a": 1}, {"a": 1, "b": [3]}),
        ]
    ):
        session = f"s{number}"
        desk.inbox.decide(desk.ask(tool, session=session, folder=folder, **given).id, FOR_SESSION, "Vim")
        assert desk.ask(tool, request="r2", session=session, folder=folder, **like) is None
        assert desk.ask(tool, request="r3", session=session, folder=folder, **unlike) is not None


def test_the_same_file_is_another_once_a_link_stands_in_its_place(desk, tmp_path):
    given = {"file_path": f"{tmp_path}/a", "content": "x"}
    desk.inbox.decide(desk.ask("Write", folder=str(tmp_path), **given).id, FOR_SESSION, "Vim")
    os.symlink("/etc/passwd", tmp_path / "a")
    assert desk.ask("Write", request="r2", folder=str(tmp_path), **given) is not None


def test_a_rule_that_denies_beats_what_was_allowed_for_the_session(desk):
    desk.inbox.decide(desk.ask(suggestions=SUGGESTED).id, FOR_SESSION, "Vim")
    desk.policy = ApprovalPolicy(deny=("Bash(mkdir:*)",))
    assert desk.ask(request="r2") is None
    assert isinstance(desk.verdicts[-1], Denied)


def test_what_was_allowed_for_a_session_ends_with_it(desk):
    desk.inbox.decide(desk.ask(suggestions=SUGGESTED).id, FOR_SESSION, "Vim")
    desk.inbox.leave("s1")
    assert desk.ask(request="r2") is not None


@pytest.mark.parametrize("destination", ["userSettings", "projectSettings", "localSettings", "cliArg", None, 7])
def test_no_suggestion_reaches_a_file_of_the_user(destination):
    kept = suggested_to("Write", [each | {"destination": destination} for each in SUGGESTED])
    assert [each["destination"] for each in kept] == ["session"] * 3


@pytest.mark.parametrize(
    "suggestion",
    [
        {"type": "setMode", "mode": "bypassPermissions"},
        {"type": "setMode", "mode": "auto"},
        {"type": "setMode", "mode": ["default"]},
        {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow"},
        {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": ":*"}], "behavior": "allow"},
        {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": " * "}], "behavior": "allow"},
        {"type": "addRules", "rules": [{"toolName": "Write"}], "behavior": "allow"},
        {"type": "addRules", "rules": [{"toolName": "Read", "ruleContent": "//**"}], "behavior": "allow"},
        {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "ls"}], "behavior": "deny"},
        {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": 5}, 5, {}], "behavior": "allow"},
        {"type": "addRules", "rules": "Bash", "behavior": "allow"},
        {"type": "removeRules", "rules": [{"toolName": "Bash", "ruleContent": "rm:*"}], "behavior": "deny"},
        {"type": "addDirectories", "directories": ["/", "relative", 5]},
        {"type": "addDirectories", "directories": [str(Path("~").expanduser()), str(Path("~/..").expanduser())]},
        {"type": "new"},
        {},
    ],
)
def test_suggestions_that_open_too_much_or_are_not_understood_are_left_out(suggestion):
    assert suggested_to("Write", [suggestion | {"destination": "session"}]) == ()


def test_only_a_tool_that_writes_files_may_have_all_edits_accepted():
    (mode,) = suggested_to("Write", SUGGESTED[2:])
    assert mode == {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
    assert suggested_to("Bash", SUGGESTED[2:]) == ()


# -- ends without an answer --------------------------------------------------------------------------------


async def test_a_question_is_denied_when_its_time_is_over():
    desk = Desk(seconds=0.02)
    approval = desk.ask()
    assert approval.until == pytest.approx(approval.asked + 0.02)
    async with asyncio.timeout(5):
        while not desk.verdicts:
            await asyncio.sleep(0.005)
    assert desk.verdict == Denied("Nobody answered within 0.02 s, so this is denied; go on without it.")
    assert desk.outcomes == ["expired"]
    with pytest.raises(InvalidParams, match=rf"^{approval.id} was denied, as nobody answered, 0 s ago\.$"):
        desk.inbox.decide(approval.id, ALLOW, "Vim")


async def test_an_answer_in_time_ends_the_waiting(caplog):
    desk = Desk(seconds=0.02)
    desk.inbox.decide(desk.ask().id, ALLOW, "Vim")
    await asyncio.sleep(0.05)
    assert desk.outcomes == ["allowed"]
    assert len(desk.verdicts) == 1
    assert caplog.records == []


async def test_a_session_that_cannot_be_told_of_the_end_does_no_harm(caplog):
    desk = Desk(seconds=0.01)

    def tell(_verdict):
        raise RuntimeError

    desk.inbox.ask("s1", FOLDER, "r1", CanUseTool(tool_name="Bash", input={}), tell)
    async with asyncio.timeout(5):
        while not desk.outcomes:
            await asyncio.sleep(0.005)
    assert "Failed to tell a session" in caplog.text


def test_the_cli_can_take_a_question_back(desk):
    approval = desk.ask()
    desk.inbox.withdraw("s2", "r1")
    desk.inbox.withdraw("s1", "r2")
    assert desk.inbox.open() == [approval]
    desk.inbox.withdraw("s1", "r1")
    assert (desk.outcomes, desk.verdicts) == (["withdrawn"], [])
    with pytest.raises(InvalidParams, match=rf"^{approval.id} was withdrawn by the CLI 0 s ago\.$"):
        desk.inbox.decide(approval.id, ALLOW, "Vim")


def test_the_questions_of_a_session_go_with_it(desk):
    desk.ask(), desk.ask(request="r2")
    other = desk.ask(session="s2")
    desk.inbox.leave("s1")
    assert desk.inbox.open() == [other]
    assert (desk.outcomes, desk.verdicts) == (["withdrawn", "withdrawn"], [])


async def test_when_the_bridge_stops_nothing_is_allowed_any_more():
    desk = Desk(seconds=0.01, allow=("Bash",))
    desk.ask("Write")
    desk.inbox.close()
    desk.inbox.close()
    assert (desk.outcomes, desk.inbox.open(), desk.verdicts) == (["withdrawn"], [], [])
    assert desk.ask(request="r2") is None
    assert isinstance(desk.verdict, Denied)


# -- the CLI asks again ------------------------------------------------------------------------------------


def test_the_same_question_again_is_one_question(desk):
    first, second = desk.ask(), desk.ask()
    assert first is second
    assert desk.news == [first]


def test_an_answer_that_was_lost_on_the_way_is_given_again(desk):
    desk.inbox.decide(desk.ask(suggestions=SUGGESTED).id, FOR_SESSION, "Vim")
    assert desk.ask(suggestions=SUGGESTED) is None
    desk.inbox.decide(desk.ask(request="r2", command="ls").id, Answer("deny", reason="no"), "Vim")
    assert desk.ask(request="r2", command="ls") is None
    desk.inbox.decide(desk.ask(request="r3", command="a").id, Answer("allow", input={"command": "b"}), "Vim")
    assert desk.ask(request="r3", command="a") is None
    assert desk.verdicts[0::2] == desk.verdicts[1::2]


def test_what_was_withdrawn_may_be_asked_again(desk):
    first = desk.ask()
    desk.inbox.withdraw("s1", "r1")
    assert desk.ask().id != first.id


def test_another_question_by_the_same_name_is_another_question(desk):
    desk.ask(command="ls")
    second = desk.ask(command="rm x")
    assert second.title == "Bash: rm x"
    assert desk.inbox.open() == [second]
    assert desk.outcomes == ["withdrawn"]
    desk.inbox.decide(second.id, ALLOW, "Vim")
    assert desk.ask(command="rm y") is not None


def test_a_huge_change_is_not_kept(desk):
    huge = Answer("allow", input={"command": "x" * 100_000})
    desk.inbox.decide(desk.ask().id, huge, "Vim")
    assert desk.ask() is not None


# -- who is told -------------------------------------------------------------------------------------------


def test_a_listener_that_fails_does_not_harm_the_others(desk, caplog):
    def fails(_news):
        raise RuntimeError("boom")

    later = []
    desk.inbox.subscribe(fails)
    desk.inbox.subscribe(later.append)
    desk.inbox.decide(desk.ask().id, ALLOW, "Vim")
    assert later == desk.news
    assert len(later) == 2
    assert "Failed to tell a listener" in caplog.text


def test_who_has_unsubscribed_is_told_nothing_more(desk):
    news = []
    unsubscribe = desk.inbox.subscribe(news.append)
    unsubscribe()
    unsubscribe()
    desk.ask()
    assert news == []
    assert len(desk.news) == 1


def test_a_listener_that_answers_at_once_keeps_the_order_for_all(desk):
    def eager(news):
        if isinstance(news, Approval):
            desk.inbox.decide(news.id, ALLOW, "a robot")

    inbox, later = desk.inbox, []
    inbox.subscribe(eager)
    inbox.subscribe(later.append)
    desk.ask()
    assert [type(news) for news in later] == [Approval, Closed]
    assert desk.news == later


def test_a_session_that_cannot_be_told_is_reported_to_whoever_answered(desk):
    def tell(_verdict):
        raise InvalidParams("gone")

    approval = desk.inbox.ask("s1", FOLDER, "r1", CanUseTool(tool_name="Bash", input={}), tell)
    with pytest.raises(InvalidParams, match="gone"):
        desk.inbox.decide(approval.id, ALLOW, "Vim")
    assert desk.outcomes == ["allowed"]
    assert desk.inbox.open() == []


# -- titles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "given", "title"),
    [
        ("Bash", {"command": "mkdir x"}, "Bash: mkdir x"),
        ("Bash", {"command": "a\nb\tc"}, "Bash: a⏎ b c"),
        ("Bash", {"command": "a\x1b[2Jb\r\x9b\u202ec\u200bd"}, "Bash: a\\x1b[2Jb\\x0d\\x9b\\u202ec\\u200bd"),
        ("Bash", {}, "Bash: {}"),
        ("Edit", {"file_path": f"{FOLDER}/src/a.py"}, "Edit: src/a.py"),
        ("Write", {"file_path": "/etc/passwd"}, "Write: /etc/passwd"),
        ("NotebookEdit", {"notebook_path": f"{FOLDER}/a.ipynb"}, "NotebookEdit: a.ipynb"),
        ("Grep", {"pattern": "x+", "path": f"{FOLDER}/src"}, "Grep: x+ in src"),
        ("Glob", {"pattern": "*.py"}, "Glob: *.py"),
        ("WebFetch", {"url": "https://example.com/a", "prompt": "x"}, "WebFetch: https://example.com/a"),
        ("Task", {"description": "look", "prompt": "x"}, "Task: look"),
        ("mcp__mini__shout", {"text": "loud é"}, 'shout (mini): {"text": "loud é"}'),
        ("mcp__odd", {}, "mcp__odd: {}"),
        ("Odd\x1b", {"a": 1}, 'Odd\\x1b: {"a": 1}'),
        ("AskUserQuestion", {"questions": [{"question": "Why?"}]}, "Question: Why?"),
        ("AskUserQuestion", {"questions": "?"}, 'Question: {"questions": "?"}'),
        ("ExitPlanMode", {}, "Plan: a plan without words"),
    ],
)
def test_a_title_is_one_harmless_line(tool, given, title):
    assert title_of(tool, given, FOLDER) == title


def test_a_long_title_shows_both_ends_and_how_much_is_missing():
    title = title_of("Bash", {"command": "echo ok" + " " * 5000 + "; rm -rf x"}, FOLDER)
    assert title.startswith("Bash: echo ok")
    assert title.endswith("; rm -rf x")
    assert "…(4817 more)…" in title
    assert len(title) < 250


# -- memory --------------------------------------------------------------------------------------------------


def test_questions_leave_nothing_behind_however_many_there_were():
    inbox = Inbox(lambda _folder: ApprovalPolicy())

    def live(first, count):
        for number in range(first, first + count):
            question = CanUseTool(tool_name="Bash", input={"command": f"{number} " + "x" * 500})
            approval = inbox.ask("s", FOLDER, f"r{number}", question, lambda _verdict: None)
            inbox.decide(approval.id, FOR_SESSION if number % 2 else DENY, "Vim")

    live(0, 1000)
    gc.collect()
    tracemalloc.start()
    try:
        live(1000, 600)
        before = tracemalloc.get_traced_memory()[0]
        live(1600, 600)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


def test_large_inputs_are_let_go_with_their_question():
    inbox = Inbox(lambda _folder: ApprovalPolicy())
    tracemalloc.start()
    try:
        for number in range(100):
            question = CanUseTool(tool_name="Write", input={"file_path": "/a", "content": f"{number}" * 50_000})
            inbox.decide(inbox.ask("s", FOLDER, f"r{number}", question, lambda _verdict: None).id, ALLOW, "Vim")
        del question
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()


def test_too_many_open_questions_are_denied(desk):
    for number in range(1000):
        desk.ask(request=f"r{number}")
    assert desk.ask(request="one more") is None
    assert "wait for an answer already" in desk.verdict.message


def test_the_past_is_told_in_rough_times():
    now = 0.0
    settled = Settled(lambda: now)
    settled.add("abcd", "sign", "denied by Vim", Denied("no"), is_changed=False)
    for now, words in [(3.2, "3 s"), (59, "59 s"), (150, "2 min"), (7300, "2 h")]:  # noqa: B007 - the clock reads it
        assert settled.told("abcd") == f"denied by Vim {words} ago"
    for number in range(500):
        settled.add(f"id{number}", f"sign{number}", "", None, is_changed=False)
    assert "abcd" not in settled
    assert len(settled) == 500
