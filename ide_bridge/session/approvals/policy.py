"""How a question of a session is answered without a person: by the user's rules, by his policy, or not at all.

1. Questions to the user and plans are for people, whatever rules say.
2. A rule that denies beats all that allow.
3. A pattern never allows what is kept back: files in which secrets lie or that a rule keeps from being read, and
   for writing what other programs run or obey (hooks, settings). A rule that names the very file does. Our own
   settings and state are given away by no rule at all.
4. ``read-only`` allows the tools that only read, inside the folder, and nothing that is kept back. A search that
   shows lines of a whole folder would show those of such files as well, so it is asked.
5. All else is asked, unknown tools too.

It does not know who asks, who answers, or where rules come from. It follows links on the disk and reads nothing.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from ide_bridge.home import config_folder, state_folder
from ide_bridge.session.approvals.rules import READERS, SHELL, WRITERS, Rule, command_of, parse, path_of
from ide_bridge.session.approvals.spots import certainly_fits, inside, is_named, is_ordinary, may_fit, real_path
from ide_bridge.session.control.questions import CanUseTool
from ide_bridge.settings import ApprovalPolicy

__all__ = ["PLAN", "QUESTION", "Ruling", "denied_by", "is_for_people", "judge"]

QUESTION = "AskUserQuestion"
PLAN = "ExitPlanMode"

_GUARDED = (
    *(".git", ".gitmodules", ".gitconfig", ".husky/", ".claude/", ".mcp.json", ".ide-bridge.toml"),
    *(
        ".vscode/",
        ".idea/",
        ".devcontainer/",
        ".envrc",
        ".profile",
        ".bash*",
        ".zsh*",
        ".zprofile",
        ".config/fish/",
    ),
)
"""What other programs run or obey when nobody looks."""

_OPTIONS = {
    "Read": frozenset(("file_path", "offset", "limit", "pages")),
    "NotebookRead": frozenset(("notebook_path", "cell_id")),
    "LS": frozenset(("path", "ignore")),
    "Glob": frozenset(("pattern", "path")),
    "Grep": frozenset(
        (
            *("pattern", "path", "glob", "type", "output_mode", "head_limit", "offset", "multiline"),
            *("-A", "-B", "-C", "-n", "-i", "-o", "context"),
        )
    ),
}
_LEAVES = re.compile(r"^[/~\\]|\.\.|[{,][/~\\]|[\x00-\x1f]")
_WORDS = re.compile(r"[\s=,:]+")
_QUOTES = str.maketrans("", "", "'\"\\")
_WORDS_LIMIT = 200
_LINES_LIMIT = 2000


class Ruling(msgspec.Struct, frozen=True):
    """What was decided, and the rule or policy that did it."""

    allows: bool
    by: str


def judge(
    question: CanUseTool, folder: str, policy: ApprovalPolicy, granted: Iterable[Rule] = ()
) -> Ruling | None:
    """Answer a question; None if a person has to. `granted` are rules a person has agreed to for the session."""
    if is_for_people(question):
        return None
    if (denied := denied_by(question, folder, policy)) is not None:
        return Ruling(False, str(denied))
    asked = _Asked(question, folder, policy)
    allowed = next((rule for rule in (*_parsed(policy.allow), *granted) if asked.is_allowed_by(rule)), None)
    if allowed is not None:
        return Ruling(True, str(allowed))
    return Ruling(True, policy.policy) if policy.policy == "read-only" and asked.only_reads() else None


def is_for_people(question: CanUseTool) -> bool:
    """Whether only a person can answer; before 2.1.326 the CLI does not say so itself."""
    return question.requires_user_interaction or question.tool_name in (QUESTION, PLAN)


def denied_by(question: CanUseTool, folder: str, policy: ApprovalPolicy) -> Rule | None:
    """The rule that denies what a tool is to do."""
    return next((rule for rule in _parsed(policy.deny) if rule.denies(question, folder)), None)


class _Asked:
    """One question, in its folder, under a policy."""

    def __init__(self, question: CanUseTool, folder: str, policy: ApprovalPolicy) -> None:
        self._question = question
        self._tool = question.tool_name
        self._folder = folder
        self._unread = tuple(rule.what for rule in _parsed(policy.deny) if rule.tool == "Read" and rule.what)
        self._withheld = policy.withheld

    def is_allowed_by(self, rule: Rule) -> bool:
        if not rule.allows(self._question, self._folder):
            return False
        if self._tool == SHELL:
            return not rule.is_wild or not self._names_what_is_kept_back()
        path = self._path()
        if path is None:
            return True
        if rule.what is not None and is_named(path, rule.what, self._folder):
            return not _is_ours(path)
        shows_no_others = self._shows_no_others(path) or (rule.tool == self._tool and not self._unread)
        return shows_no_others and self._pattern_stays(path) and not self._is_kept_back(path)

    def only_reads(self) -> bool:
        """Whether it is sure that a tool only reads, and only what it may."""
        path = self._path()
        if path is None or self._tool not in READERS or self._question.blocked_path is not None:
            return False
        return (
            _OPTIONS[self._tool].issuperset(self._question.input)
            and certainly_fits(path, "**", self._folder)
            and not self._is_kept_back(path)
            and self._shows_no_others(path)
            and self._pattern_stays(path)
        )

    def _path(self) -> str | None:
        path = path_of(self._question, self._folder)
        return path if isinstance(path, str) and is_ordinary(path) else None

    def _is_kept_back(self, path: str) -> bool:
        lines = (*self._withheld, *self._unread, *(_GUARDED if self._tool in WRITERS else ()))
        if len(lines) > _LINES_LIMIT:  # nobody writes so many by hand; asking them all would hold up everyone
            return True
        return _is_ours(os.path.join(self._folder, path)) or may_fit(path, _usable(lines), self._folder)

    def _shows_no_others(self, path: str) -> bool:
        """Whether a search stays clear of the lines of files it does not name."""
        listing = self._question.input.get("output_mode", "files_with_matches") in ("files_with_matches", "count")
        return self._tool != "Grep" or listing or os.path.isfile(path)

    def _pattern_stays(self, path: str) -> bool:
        """Whether the names that are looked for lie below a folder, and no link leads them elsewhere."""
        pattern = self._question.input.get("pattern", "") if self._tool == "Glob" else ""
        if not isinstance(pattern, str) or _LEAVES.search(pattern) is not None:
            return False
        head = re.split(r"[*?\[{]", pattern, maxsplit=1)[0]
        return inside(real_path(os.path.join(path, head)), real_path(path)) is not None

    def _names_what_is_kept_back(self) -> bool:
        """Whether a word of a command line is the name of something that is kept back."""
        words = _WORDS.split((command_of(self._question) or "").translate(_QUOTES))
        return len(words) > _WORDS_LIMIT or any(self._is_kept_back(word) for word in dict.fromkeys(words) if word)


def _parsed(rules: Sequence[str]) -> Iterator[Rule]:
    return (rule for text in rules if (rule := parse(text)) is not None)


@lru_cache(maxsize=64)
def _usable(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for line in lines if line.strip() and not line.startswith(("!", "#"))))


def _is_ours(path: str) -> bool:
    """Whether something lies among our own settings and tokens, which no rule gives away."""
    ours = (real_path(folder) for folder in (state_folder(), config_folder()))
    real = real_path(path)
    return any(inside(real, folder) is not None for folder in ours)
