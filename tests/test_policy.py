"""What is answered without a person: rules in Claude Code's notation, the read-only policy, what is kept back."""

import os

import pytest

from ide_bridge.session.approvals.command_line import commands, is_plain
from ide_bridge.session.approvals.policy import judge
from ide_bridge.session.approvals.rules import Rule, parse
from ide_bridge.session.approvals.spots import inside, shown
from ide_bridge.session.control.questions import CanUseTool
from ide_bridge.settings import ApprovalPolicy


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / "home").mkdir()
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    return str(project)


def tool(name, blocked=None, **given):
    return CanUseTool(tool_name=name, input=given, blocked_path=blocked)


def bash(command, **more):
    return tool("Bash", command=command, **more)


def allowed(question, folder, *rules, deny=(), policy="ask", granted=()):
    """Whether a question is allowed without a person; None if one is asked."""
    ruling = judge(question, folder, ApprovalPolicy(policy, 0.0, rules, tuple(deny)), granted)
    return None if ruling is None else ruling.allows


# -- command lines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "command", "answer"),
    [
        ("Bash(git status)", "git status", True),
        ("Bash(git status)", "  git status\n", True),
        ("Bash(git status)", "git status -s", None),
        ("Bash(git status)", "git  status", None),
        ("Bash(npm run test:*)", "npm run test", True),
        ("Bash(npm run test:*)", "npm run test -- --watch", True),
        ("Bash(npm run test:*)", "npm run tests", None),
        ("Bash(npm run test:*)", "npm run test:unit", None),
        ("Bash(npm run test:*)", "xnpm run test", None),
        ("Bash(npm run test:*)", "NPM run test", None),
        ("Bash(npm run test:*)", "A=1 npm run test", None),
        ("Bash(mkdir aa *)", "mkdir aa", True),
        ("Bash(mkdir aa *)", "mkdir aa bb", True),
        ("Bash(mkdir aa *)", "mkdir aab", None),
        ("Bash(git * main)", "git push main", True),
        ("Bash(git * main)", "git push main2", None),
        ("Bash(git * main *)", "git push main --force", True),
        ("Bash(git * main *)", "git push mainly", None),
        ("Bash(git*)", "gitk", True),
        ("Bash(a*b*c)", "a c b", None),
        ("Bash(a*b*c)", "a b c", True),
        ("Bash", "anything at all", True),
        ("Bash(*)", "anything at all", True),
        ("Bash(:*)", "anything at all", True),
        ("Bash(a; b)", "a; b", True),
        ("bash(git status)", "git status", None),
        ("Git(status)", "git status", None),
    ],
)
def test_a_shell_rule_allows_what_it_certainly_means(folder, rule, command, answer):
    assert allowed(bash(command), folder, rule) is answer


@pytest.mark.parametrize(
    "tail",
    [
        "$x",
        "${x@P}",
        "; x",
        "&& x",
        "| x",
        "|| x",
        "& x",
        "`x`",
        "$(x)",
        "> x",
        "< x",
        ">> x",
        "\nx",
        "\rx",
        "<(x)",
        ">(x)",
        "&",
    ],
)
@pytest.mark.parametrize("rule", ["Bash(git log:*)", "Bash(git log *)", "Bash(git*)", "Bash", "Bash(*)"])
def test_no_pattern_allows_a_line_that_is_more_than_one_plain_command(folder, rule, tail):
    assert allowed(bash(f"git log {tail}"), folder, rule) is None
    assert allowed(bash(f"git log '{tail}'"), folder, rule) is None


def test_a_command_that_leaves_the_sandbox_is_asked(folder):
    assert allowed(bash("ls", dangerouslyDisableSandbox=True), folder, "Bash(ls)", "Bash") is None
    assert allowed(bash("ls", description="d", timeout=5, run_in_background=True), folder, "Bash(ls)") is True
    assert allowed(tool("Bash", command=["ls"]), folder, "Bash") is None
    assert allowed(tool("Bash"), folder, "Bash") is None


def test_a_pattern_does_not_allow_what_the_cli_says_lies_outside(folder):
    outside = tool("Bash", blocked="/etc/passwd", command="cat /etc/passwd")
    assert allowed(outside, folder, "Bash(cat:*)") is None
    assert allowed(outside, folder, "Bash(cat /etc/passwd)") is True
    within = tool("Bash", blocked=f"{folder}/x", command="touch x")
    assert allowed(within, folder, "Bash(touch:*)") is True


@pytest.mark.parametrize("word", [".env", "./.env", "a/.ENV.local", "--file=.env", "'.e'nv", "x.pem", "private/x"])
def test_a_pattern_does_not_allow_a_command_that_names_a_secret(folder, word):
    assert allowed(bash(f"cat {word}"), folder, "Bash(cat:*)", deny=["Read(private/**)"]) is None
    assert allowed(bash(f"cat {word}"), folder, f"Bash(cat {word})", deny=["Read(private/**)"]) is True
    assert allowed(bash("cat notes"), folder, "Bash(cat:*)", deny=["Read(private/**)"]) is True


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm",
        "ls; rm x",
        "ls && rm x",
        "ls | rm x",
        "ls & rm x",
        "ls\nrm x",
        "(rm x)",
        "{ rm x; }",
        "echo `rm x`",
        "echo $(rm x)",
        'echo "$(rm x)"',
        'echo "`rm x`"',
        "cat <(rm x)",
        "A=1 B=2 rm x",
        "sudo -u me rm x",
        "env A=1 rm x",
        "xargs -n 1 rm",
        "find . -exec rm {} \\;",
        "/bin/rm x",
        "sudo /bin/rm x",
        "\\rm x",
        "'rm' x",
        'r"m" x',
        "$'rm' x",
        "RM x",
        "if true; then rm x; fi",
        "! rm x",
        "bash -c 'ls; rm x'",
        'sh -c "rm x"',
        "eval rm x",
        ">out rm x",
        "2>/dev/null rm x",
        "2>&1 rm x",
        "ls &>out; rm x",
        "bash -c \"bash -c 'rm x'\"",
    ],
)
def test_a_rule_that_denies_is_looked_for_in_every_part_of_a_line(folder, command):
    assert allowed(bash(command), folder, "Bash", f"Bash({command})", deny=["Bash(rm:*)"]) is False


@pytest.mark.parametrize(
    "command", ["rmdir x", "echo 'a; rm x'", "ls # rm x", "git rm x", "echo rm > rm", 'echo "a\\"; rm x"']
)
def test_a_rule_that_denies_leaves_alone_what_it_does_not_mean(folder, command):
    assert allowed(bash(command), folder, deny=["Bash(rm:*)"]) is None


def test_an_exact_rule_denies_exactly(folder):
    assert allowed(bash("git push"), folder, deny=["Bash(git  push)"]) is False
    assert allowed(bash("ls; git push"), folder, deny=["Bash(git push)"]) is False
    assert allowed(bash("git push origin"), folder, deny=["Bash(git push)"]) is None
    assert allowed(bash("ls"), folder, "Bash(ls)", deny=["Bash"]) is False


def test_a_line_that_never_ends_is_still_read():
    assert list(commands('echo "x')) == ["echo x"]
    assert list(commands("echo 'x")) == ["echo x"]
    assert list(commands("echo x\\")) == ["echo x"]
    assert list(commands("")) == []
    assert list(commands(";;; # x")) == []
    assert is_plain("")
    assert not is_plain("a\0b")


# -- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "path", "answer"),
    [
        ("Edit(src/**)", "src/a.py", True),
        ("Edit(src/**)", "src/b/c/a.py", True),
        ("Edit(src)", "src/a.py", True),
        ("Edit(/src/**)", "src/a.py", True),
        ("Edit(./src/**)", "src/a.py", True),
        ("Edit(src/**)", "lib/src/a.py", None),
        ("Edit(src/**)", "srcs/a.py", None),
        ("Edit(src/**)", "Src/a.py", None),
        ("Edit(*.py)", "src/b/a.py", True),
        ("Edit(*.py)", "a.pyc", None),
        ("Edit(src/*.py)", "src/b/a.py", None),
        ("Edit(src/**/a.py)", "src/a.py", True),
        ("Edit(src/**/a.py)", "src/b/c/a.py", True),
        ("Edit(src/?.py)", "src/a.py", True),
        ("Edit(src/[^b].py)", "src/b.py", None),
        ("Edit(**)", "x/y", True),
        ("Edit", "x/y", True),
        ("Read", "x/y", None),
    ],
)
def test_globs_are_those_of_gitignore(folder, rule, path, answer):
    for name in ("Edit", "Write", "MultiEdit"):
        assert allowed(tool(name, file_path=f"{folder}/{path}"), folder, rule) is answer
    assert allowed(tool("NotebookEdit", notebook_path=f"{folder}/{path}"), folder, rule) is answer


def test_a_rule_for_one_tool_that_writes_is_for_that_one_only(folder):
    assert allowed(tool("Write", file_path=f"{folder}/a"), folder, "Write(a)") is True
    assert allowed(tool("Edit", file_path=f"{folder}/a"), folder, "Write(a)") is None


def test_only_a_rule_that_says_so_allows_what_lies_outside(folder, tmp_path):
    home = tmp_path / "home"
    question = tool("Edit", file_path=str(home / "notes" / "a"))
    assert allowed(question, folder, "Edit", "Edit(**)", "Edit(*)", "Edit(a)") is None
    assert allowed(question, folder, "Edit(~/notes/**)") is True
    assert allowed(question, folder, f"Edit(/{home}/notes/**)") is True
    assert allowed(tool("Read", file_path=str(home / ".ssh" / "id_rsa")), folder, "Read(~/**)") is None


def test_a_rule_that_denies_beats_all_that_allow(folder):
    question = tool("Edit", file_path=f"{folder}/src/a")
    assert allowed(question, folder, "Edit", "Edit(src/a)", deny=["Edit(src/a)"]) is False
    assert allowed(question, folder, "Edit", granted=[Rule("Edit")], deny=["Edit"]) is False
    assert allowed(question, folder, policy="read-only", deny=["Read(src/**)"]) is None
    reads = tool("Read", file_path=f"{folder}/src/a")
    assert allowed(reads, folder, "Read", policy="read-only", deny=["Read(src/**)"]) is False


@pytest.mark.parametrize("name", ["Read", "Grep", "Glob", "LS"])
def test_reading_rules_hold_for_everything_that_reads(folder, name):
    given = {"file_path" if name == "Read" else "path": f"{folder}/.env.local"}
    assert allowed(tool(name, **given), folder, name, policy="read-only", deny=["Read(.env*)"]) is False


def test_a_rule_to_edit_does_not_reach_what_must_not_be_read(folder):
    question = tool("Edit", file_path=f"{folder}/private/a")
    assert allowed(question, folder, "Edit(**)", deny=["Read(private/**)"]) is None


GUARDED = [
    *(".git/hooks/pre-commit", ".git/config", "sub/.git/config", ".claude/settings.json", ".mcp.json"),
    *(".ide-bridge.toml", ".vscode/tasks.json", ".envrc", ".bashrc", ".GIT/config", ".husky/pre-push"),
]


@pytest.mark.parametrize("path", GUARDED)
def test_no_pattern_lets_write_what_others_will_run(folder, path):
    question = tool("Write", file_path=f"{folder}/{path}")
    assert allowed(question, folder, "Write", "Edit(**)", "Edit(.*)", "Edit(.git/**)") is None
    assert allowed(question, folder, f"Write(/{path})") is True


SECRET = [".env", ".env.local", "a/.env", ".ENV", "k.pem", "id_rsa", ".ssh/config", "a/.aws/credentials", ".npmrc"]


@pytest.mark.parametrize("path", SECRET)
@pytest.mark.parametrize("name", ["Read", "Write"])
def test_no_pattern_reaches_a_secret_unless_it_is_named(folder, path, name):
    question = tool(name, file_path=f"{folder}/{path}")
    assert allowed(question, folder, "Read", "Read(**)", "Write", "Edit(.*)", policy="read-only") is None
    assert allowed(question, folder, f"{name}(/{path})", policy="read-only") is True


def test_a_rule_means_the_same_wherever_the_bridge_itself_runs(tmp_path, monkeypatch):
    state = tmp_path / "state" / "ide-bridge"
    state.mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(state)  # as a bridge in the background does
    project = tmp_path / "project"
    project.mkdir()
    question = tool("Bash", command="npm run test unit")
    assert allowed(question, str(project), "Bash(npm run test:*)") is True
    question = tool("Bash", command="cat ../state/ide-bridge/token")
    assert allowed(question, str(project), "Bash(cat:*)") is None


def test_our_own_settings_and_tokens_are_given_away_by_no_rule(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for path in ("state/ide-bridge/token", "config/ide-bridge/settings.toml"):
        question = tool("Read", file_path=str(tmp_path / path))
        assert allowed(question, str(tmp_path), "Read", f"Read(/{path})", policy="read-only") is None


# -- read-only ---------------------------------------------------------------------------------------------


def test_read_only_allows_what_only_reads_in_the_folder(folder):
    questions = [
        tool("Read", file_path=f"{folder}/src/a", limit=5, offset=1),
        tool("NotebookRead", notebook_path=f"{folder}/a.ipynb"),
        tool("LS", path=folder),
        tool("Glob", pattern="**/*.py"),
        tool("Glob", pattern="src/{a,b}.py", path=folder),
        tool("Grep", pattern="x"),
        tool("Grep", pattern="../x", path=f"{folder}/src", output_mode="count"),
    ]
    assert {allowed(question, folder, policy="read-only") for question in questions} == {True}
    assert {allowed(question, folder) for question in questions} == {None}


def test_read_only_shows_lines_of_one_named_file_but_not_of_a_whole_folder(folder):
    with open(f"{folder}/src/a", "w", encoding="utf-8"):
        pass
    lines = {"pattern": "x", "output_mode": "content"}
    assert allowed(tool("Grep", path=f"{folder}/src/a", **lines), folder, policy="read-only") is True
    assert allowed(tool("Grep", path=f"{folder}/src", **lines), folder, policy="read-only") is None
    assert allowed(tool("Grep", **lines), folder, "Read(**)", policy="read-only") is None
    assert allowed(tool("Grep", **lines), folder, "Grep") is True
    assert allowed(tool("Grep", **lines), folder, "Grep", deny=["Read(private/**)"]) is None


@pytest.mark.parametrize("name", ["Bash", "Edit", "Write", "WebFetch", "WebSearch", "Task", "mcp__x__read", "New"])
def test_read_only_allows_nothing_else(folder, name):
    question = tool(name, command="ls", file_path=f"{folder}/a", path=folder)
    assert allowed(question, folder, policy="read-only") is None


@pytest.mark.parametrize(
    "given",
    [
        {"file_path": "a"},
        {"file_path": "~/a"},
        {"file_path": "/etc/passwd"},
        {"file_path": "{folder}/../home/a"},
        {"file_path": "{folder}/src/../a"},
        {"file_path": "{folder}x/a"},
        {"file_path": "{folder}/a\0"},
        {"file_path": "{folder}/a\n"},
        {"file_path": ""},
        {"file_path": None},
        {"file_path": ["{folder}/a"]},
        {"file_path": "{folder}/a", "follow": "/etc/passwd"},
        {},
    ],
)
def test_read_only_takes_no_path_that_could_mean_another_place(folder, given):
    given = {key: each.format(folder=folder) if isinstance(each, str) else each for key, each in given.items()}
    assert allowed(tool("Read", **given), folder, "Read", "Read(**)", policy="read-only") is (
        True if "follow" in given else None
    )
    assert allowed(tool("Read", **given), folder, policy="read-only") is None


@pytest.mark.parametrize(
    "pattern",
    ["/etc/*", "~/*", "../*", "src/../../*", "{/etc,a}/*", "{a,~}/*", "{a,..}/*", "\\\\x\\*", 5, "away/**"],
)
def test_read_only_looks_for_no_names_elsewhere(folder, pattern):
    os.symlink("/etc", f"{folder}/away")
    assert allowed(tool("Glob", pattern=pattern), folder, "Glob", "Read", policy="read-only") is None


def test_what_the_cli_itself_blocks_is_asked(folder):
    question = tool("Read", blocked=f"{folder}/a", file_path=f"{folder}/a")
    assert allowed(question, folder, policy="read-only") is None


# -- links -------------------------------------------------------------------------------------------------


def test_a_link_that_leaves_the_folder_is_not_followed(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", f"{folder}/src/out")
    os.symlink("/etc/passwd", f"{folder}/src/notes")
    os.symlink("/nowhere/at/all", f"{folder}/src/dangling")
    for path in ("src/out/a", "src/notes", "src/dangling"):
        for name in ("Read", "Write"):
            question = tool(name, file_path=f"{folder}/{path}")
            assert allowed(question, folder, "Edit(src/**)", "Read(src/**)", "Write", policy="read-only") is None


def test_a_link_inside_counts_as_what_it_leads_to(folder):
    for name in (".env", "plain"):
        with open(f"{folder}/{name}", "w", encoding="utf-8"):
            pass
    os.symlink(".env", f"{folder}/innocent")
    os.symlink("../plain", f"{folder}/src/link")
    assert allowed(tool("Read", file_path=f"{folder}/innocent"), folder, "Read", policy="read-only") is None
    assert allowed(tool("Read", file_path=f"{folder}/innocent"), folder, deny=["Read(.env*)"]) is False
    assert allowed(tool("Read", file_path=f"{folder}/src/link"), folder, policy="read-only") is True
    assert allowed(tool("Write", file_path=f"{folder}/src/link"), folder, "Edit(src/**)") is None


def test_a_file_must_fit_as_it_is_written_too(folder):
    os.symlink("src", f"{folder}/other")
    assert allowed(tool("Write", file_path=f"{folder}/other/a"), folder, "Edit(src/**)") is None
    assert allowed(tool("Write", file_path=f"{folder}/other/a"), folder, "Edit(**)") is True


def test_a_link_to_a_secret_elsewhere_is_denied_by_its_name(folder, tmp_path):
    (tmp_path / ".env").touch()
    os.symlink(tmp_path / ".env", f"{folder}/innocent")
    assert allowed(tool("Read", file_path=f"{folder}/innocent"), folder, deny=["Read(.env*)"]) is False


def test_a_folder_may_be_reached_through_a_link(folder, tmp_path):
    os.symlink(folder, tmp_path / "link")
    link = str(tmp_path / "link")
    for given in (f"{folder}/src/a", f"{link}/src/a"):
        assert allowed(tool("Edit", file_path=given), link, "Edit(src/**)") is True
        assert allowed(tool("Read", file_path=given), link, policy="read-only") is True


def test_names_that_look_the_same_are_denied_alike(folder):
    composed, apart = "caf\u00e9", "cafe\u0301"
    for name in (apart, composed, composed.upper(), "ca\u200bf\u00e9"):
        assert allowed(tool("Read", file_path=f"{folder}/{name}"), folder, deny=[f"Read({composed})"]) is False
    assert allowed(tool("Read", file_path=f"{folder}/.e\u200bnv"), folder, policy="read-only") is None


# -- other tools -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "name", "answer"),
    [
        ("mcp__files__read", "mcp__files__read", True),
        ("mcp__files", "mcp__files__read", True),
        ("mcp__files__*", "mcp__files__read", True),
        ("mcp__files", "mcp__files2__read", None),
        ("mcp__files__read", "mcp__files__read__all", None),
        ("mcp__files__re*", "mcp__files__read", None),
        ("mcp", "mcp__files__read", None),
        ("*", "mcp__files__read", None),
        ("mcp__*", "mcp__files__read", None),
    ],
)
def test_tools_of_servers_are_allowed_by_server_or_by_name(folder, rule, name, answer):
    assert allowed(tool(name, text="x"), folder, rule) is answer


@pytest.mark.parametrize("rule", ["mcp__files", "mcp__*", "*", "MCP__files__READ", "mcp__files__read(loud)"])
def test_tools_are_denied_by_patterns_too(folder, rule):
    assert allowed(tool("mcp__files__read", text="loud"), folder, "mcp__files", deny=[rule]) is False


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        ("https://example.com/a?b", True),
        ("http://EXAMPLE.com", True),
        ("https://example.com.:443/", True),
        ("https://sub.example.com/", None),
        ("https://example.com.evil.org/", None),
        ("https://example.com@evil.org/", None),
        ("https://evil.org/example.com", None),
        ("https://evil.org\\@example.com/", None),
        ("https://exa\nmple.com/", None),
        ("ftp://example.com/", None),
        ("https://[::1", None),
        ("example.com", None),
    ],
)
def test_a_domain_is_the_whole_host(folder, url, answer):
    assert allowed(tool("WebFetch", url=url), folder, "WebFetch(domain:Example.com)") is answer


def test_a_domain_is_denied_with_all_below_it(folder):
    for url in ("https://example.com/", "https://a.b.example.com/x", "https://user@EXAMPLE.com/"):
        assert (
            allowed(tool("WebFetch", url=url), folder, "WebFetch", deny=["WebFetch(domain:example.com)"]) is False
        )
    assert (
        allowed(tool("WebFetch", url="https://anexample.com"), folder, deny=["WebFetch(domain:example.com)"])
        is None
    )


def test_other_tools_are_allowed_exactly(folder):
    assert allowed(tool("WebSearch", query="cats"), folder, "WebSearch(cats)") is True
    assert allowed(tool("WebSearch", query="dogs"), folder, "WebSearch(cats)") is None
    assert allowed(tool("Task", subagent_type="reviewer", prompt="x"), folder, "Task(reviewer)") is True
    assert allowed(tool("Unknown", text="x"), folder, "Unknown(x)") is None
    assert allowed(tool("Unknown", text="x"), folder, deny=["Unknown(x)"]) is False
    assert allowed(tool("Unknown", text="x"), folder, "Unknown") is True


@pytest.mark.parametrize("name", ["AskUserQuestion", "ExitPlanMode"])
def test_questions_to_people_are_answered_by_people(folder, name):
    assert allowed(tool(name), folder, name, deny=[name, "*"]) is None
    newer = CanUseTool(tool_name="Confirm", input={}, requires_user_interaction=True)
    assert allowed(newer, folder, "Confirm", deny=["Confirm"]) is None


def test_unknown_tools_are_asked(folder):
    assert allowed(tool("Teleport", where="home"), folder, "Bash", "Read", "Edit", policy="read-only") is None


# -- the small parts ---------------------------------------------------------------------------------------


def test_a_rule_is_read_and_written_alike():
    for text in ("Bash", "Bash(a (b) c)", "mcp__a__b", "Edit(src/**)"):
        assert str(parse(text)) == text
    assert [parse(text) for text in ("", "Bash(", "Bash()", "Bash)x", "a b", "(x)")] == [None] * 6


def test_a_path_is_shown_short_inside_and_whole_outside(folder):
    os.symlink("/etc/passwd", f"{folder}/notes")
    assert shown(f"{folder}/src/a", folder) == "src/a"
    assert shown(folder, folder) == "."
    assert shown("src/a", folder) == "src/a"
    assert shown("/etc/passwd", folder) == "/etc/passwd"
    assert shown(f"{folder}/notes", folder) == "notes → /etc/passwd"
    assert inside("/a/b", "/") == "a/b"
