"""Whoever steers the model writes the questions: no line, path or text may be allowed for what it is not.

The shell and the file system themselves are asked what was really meant.
"""

import os
import string
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ide_bridge.errors import InvalidParams
from ide_bridge.session.approvals import Allowed, Answer, Approval, Inbox
from ide_bridge.session.approvals.command_line import commands
from ide_bridge.session.approvals.permissions import for_session, rules_in
from ide_bridge.session.approvals.policy import judge
from ide_bridge.session.control.questions import CanUseTool
from ide_bridge.settings import ApprovalPolicy, LiveSettings
from tests.fakes.programs import program

QUICK = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
PIECES = [
    *";&|`()<>'\"\\{}#!$*=~\t\n\r ",
    "$(",
    "${x:-",
    "$((",
    "<(",
    "&&",
    "pwn",
    "pwn x",
    "a",
    "-e",
    "\x0b",
    "\u2028",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "command",
        "file_path",
        "path",
        "notebook_path",
        "pattern",
        "output_mode",
        "url",
        "questions",
        "plan",
        "query",
    ]
)
TOOLS = st.sampled_from(
    [
        *("Bash", "Read", "Grep", "Glob", "LS", "Edit", "Write", "NotebookEdit", "WebFetch", "Task", "mcp__a__b"),
        *("AskUserQuestion", "ExitPlanMode", "", "mcp__", "\x1b"),
    ]
)
EVERYTHING = ApprovalPolicy(
    "read-only",
    allow=("Bash(echo:*)", "Read", "Edit(**)", "WebFetch(domain:a.b)", "mcp__a", "Grep", "Glob"),
    deny=("Bash(rm:*)", "Read(.env*)", "WebFetch(domain:c.d)", "*(x)"),
)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def shell(tmp_path):
    """Runs a line where the program ``pwn`` leaves a mark; tells whether it did, or a file was written."""
    programs, here = tmp_path / "programs", tmp_path / "here"
    programs.mkdir()
    here.mkdir()
    mark = tmp_path / "mark"
    bash = program("bash")
    (programs / "pwn").write_text(f"#!/bin/sh\n: > '{mark}'\n", encoding="utf-8")
    (programs / "pwn").chmod(0o755)

    def does_more(line):
        subprocess.run(
            [bash, "-c", line],
            cwd=here,
            env={"PATH": str(programs), "HOME": str(here)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
        )
        return mark.exists() or any(here.iterdir())

    return does_more


def test_the_shell_fixture_notices_what_it_must(shell, tmp_path):
    assert not shell("echo pwn")
    assert shell("echo; pwn")


@QUICK
@given(tail=st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_a_line_that_a_pattern_allows_runs_nothing_but_what_the_pattern_names(shell, tail):
    question = CanUseTool(tool_name="Bash", input={"command": f"echo {tail}"})
    ruling = judge(question, "/work", ApprovalPolicy(allow=("Bash(echo:*)", "Bash(echo *)")))
    assert ruling is None or not shell(f"echo {tail}")


@QUICK
@given(line=st.lists(st.sampled_from([p for p in PIECES if p not in ("pwn", "pwn x")]), max_size=5).map("".join))
def test_a_command_behind_anything_that_is_no_quote_or_comment_is_found(line):
    if not set("'\"\\#<>").intersection(line):
        assert any(each == "pwn x" for each in commands(f"{line}; pwn x"))


@QUICK
@given(
    tool=TOOLS, given=st.dictionaries(KEYS | st.text(max_size=5), JSON, max_size=4), blocked=st.none() | st.text()
)
def test_whatever_is_asked_is_answered_or_shown_in_one_harmless_line(tmp_path, tool, given, blocked):
    verdicts = []
    question = CanUseTool(tool_name=tool, input=given, blocked_path=blocked)
    approval = Inbox(lambda _folder: EVERYTHING).ask("s", str(tmp_path), "r", question, verdicts.append)
    assert (approval is None) == (len(verdicts) == 1)
    if approval is not None:
        assert approval.title.isprintable()
        assert len(approval.title) < 400


@QUICK
@given(suggestions=st.lists(st.dictionaries(st.sampled_from(["type", "rules", "mode", "directories"]), JSON)))
def test_whatever_is_suggested_stays_within_the_session(suggestions):
    kept = for_session(CanUseTool(tool_name="Write", input={}, permission_suggestions=tuple(suggestions)))
    assert all(each["destination"] == "session" for each in kept)
    assert list(rules_in(kept)) == []


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A folder with secrets in it, and links that lead in, out and round."""
    top = tmp_path_factory.mktemp("tree")
    folder = top / "project"
    for path in ("project/src/a", "project/.env", "project/src/.ssh/id_rsa", "outside/a", "outside/src/a"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(path, encoding="utf-8")
    links = {"out": "../outside", "up": "..", "round": "round", "plain": "src/a", "hidden": ".env", "here": "."}
    for name, target in links.items():
        os.symlink(target, folder / name)
    os.symlink("../../outside/a", folder / "src" / "b")
    return folder


NAMES = [
    "src",
    "a",
    "b",
    ".env",
    "out",
    "up",
    "round",
    "plain",
    "hidden",
    "here",
    "..",
    ".",
    "",
    ".ssh",
    "id_rsa",
    "~",
]


@QUICK
@given(names=st.lists(st.sampled_from(NAMES), max_size=6), start=st.sampled_from(["", "/", "~", "FOLDER"]))
def test_a_path_that_is_allowed_leads_to_a_file_inside_that_is_no_secret(tree, names, start):
    folder = str(tree)
    path = "/".join([folder if start == "FOLDER" else start, *names])
    for tool in ("Read", "Write"):
        question = CanUseTool(tool_name=tool, input={"file_path": path})
        ruling = judge(question, folder, ApprovalPolicy("read-only", allow=("Edit(**)", "Read")))
        if ruling is not None and os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                assert file.read() == "project/src/a"


@pytest.mark.parametrize("size", [10_000, 300_000])
@pytest.mark.parametrize(
    "piece", ['"\\"', "sudo ", "bash -c '", "$(", "'", "\\", "a;", "a*", "{", "ssh x ", "\t", "<", "`"]
)
def test_a_long_line_is_judged_quickly(piece, size):
    question = CanUseTool(tool_name="Bash", input={"command": (piece * size)[:size]})
    policy = ApprovalPolicy(allow=("Bash(a*a*a*a*b)", "Bash"), deny=("Bash(rm:*)", "Bash(*a*a*a*a*b *)"))
    before = os.times()
    judge(question, "/work", policy)
    after = os.times()
    assert after.user - before.user < 3.0


@pytest.mark.parametrize("glob", ["a*" * 30 + "b", "**/" * 30 + "b", "*/" * 30 + "b", "[" * 500, "?" * 500])
def test_a_glob_cannot_run_away(glob):
    path = "/work/" + "/".join(["a" * 100] * 30)
    before = os.times()
    judge(
        CanUseTool(tool_name="Read", input={"file_path": path}),
        "/work",
        ApprovalPolicy(deny=(f"Read({glob})",), allow=(f"Read({glob})",)),
    )
    assert os.times().user - before.user < 1.0


def test_a_hostile_workspace_can_only_make_things_stricter(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "ide-bridge").mkdir(parents=True)
    users = tmp_path / "config" / "ide-bridge" / "settings.toml"
    users.write_text('[approvals]\nallow = ["Bash(ls)"]\ndeny = ["Bash(rm:*)"]\n', encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    theirs = project / ".ide-bridge.toml"
    for text in (
        'allow = ["Bash"]\n[approvals]\npolicy = "read-only"\nallow = ["Bash"]\nseconds = 0\n',
        '[approvals]\nallow = ["Bash"]\n[[approvals.workspaces]]\nfolder = "/"\nallow = ["Bash"]\n',
        'approvals = "read-only"\ndeny = ["!.env"]\n',
        'approvals = "allow"',
        "approvals = [",
        f"[approvals]\ndeny = {['Bash(x)'] * 5000}",
    ):
        theirs.write_text(text, encoding="utf-8")
        policy = LiveSettings().approval_policy(str(project))
        assert policy.policy == "ask"
        assert policy.allow in (("Bash(ls)",), ())
        assert "Bash(rm:*)" in policy.deny
        assert ".env*" in policy.withheld


def test_no_answer_gets_round_the_first_one(tmp_path):
    verdicts = []
    inbox = Inbox(lambda _folder: ApprovalPolicy())
    asked = inbox.ask(
        "s", str(tmp_path), "r", CanUseTool(tool_name="Bash", input={"command": "x"}), verdicts.append
    )
    assert isinstance(asked, Approval)

    def race(_news):
        with pytest.raises(InvalidParams):
            inbox.decide(asked.id, Answer("allow"), "a listener")

    inbox.subscribe(race)
    inbox.decide(asked.id, Answer("deny"), "Vim")
    assert not any(isinstance(verdict, Allowed) for verdict in verdicts)
    assert len(verdicts) == 1


@pytest.mark.parametrize("by", ["Vim\x1b[2J", "x" * 10_000, "\u202eeditor", ""])
def test_the_name_of_who_answered_is_harmless(tmp_path, by):
    inbox = Inbox(lambda _folder: ApprovalPolicy())
    asked = inbox.ask("s", str(tmp_path), "r", CanUseTool(tool_name="Bash", input={}), print)
    inbox.decide(asked.id, Answer("deny"), by)
    with pytest.raises(InvalidParams) as raised:
        inbox.decide(asked.id, Answer("allow"), "Vim")
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 200
    with pytest.raises(InvalidParams) as raised:
        inbox.decide(by + string.whitespace, Answer("allow"), "Vim")
    assert str(raised.value).isprintable()
