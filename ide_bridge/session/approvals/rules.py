"""Permission rules in Claude Code's own notation: what one of them allows, and what it denies.

``Tool`` · ``Tool(exactly this)`` · ``Bash(npm run test:*)``, ``Bash(git log *)`` · ``Edit(src/**)``,
``Read(.env*)`` · ``WebFetch(domain:example.com)`` · ``mcp__server``, ``mcp__server__tool``. ``Read`` stands for
everything that reads files, ``Edit`` for everything that writes them.

The two directions are not each other's opposite: a rule allows what it certainly means, and denies what it may
mean. So a pattern allows only plain command lines, and only files inside the folder; for the tools that touch
files, the tool's name alone means the same as ``**``. The shell's name alone means every plain command line.

It does not know whose rules these are, or which of several wins.
"""

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec

from ide_bridge.session.approvals.command_line import commands, is_plain
from ide_bridge.session.approvals.spots import certainly_fits, inside, is_ordinary, may_fit, real_path
from ide_bridge.session.control.questions import CanUseTool
from ide_bridge.settings import RULE

__all__ = ["READERS", "SHELL", "WRITERS", "Rule", "command_of", "parse", "path_of"]

SHELL = "Bash"
READERS = {"Read": "file_path", "NotebookRead": "notebook_path", "LS": "path", "Glob": "path", "Grep": "path"}
WRITERS = {
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
}
_PATHS = READERS | WRITERS
_FAMILIES = {"Read": READERS, "Edit": WRITERS}
_MAIN = {
    "WebFetch": "url",
    "WebSearch": "query",
    "Task": "subagent_type",
    "Agent": "subagent_type",
    "Skill": "skill",
    "SlashCommand": "command",
}
_HARMLESS = frozenset(("command", "description", "timeout", "run_in_background"))
_URL = re.compile(r"https?://[^\s\\\x00-\x1f\x7f@]+", re.IGNORECASE)


class Rule(msgspec.Struct, frozen=True):
    """One rule; `what` is None when the tool is named alone."""

    tool: str
    what: str | None = None

    def __str__(self) -> str:
        return self.tool if self.what is None else f"{self.tool}({self.what})"

    @property
    def is_wild(self) -> bool:
        """Whether more than one command line or file is meant."""
        return self.what is None or "*" in self.what

    def allows(self, question: CanUseTool, folder: str) -> bool:
        """Whether a tool certainly does what this rule means, and nothing else."""
        tool = question.tool_name
        if not self._is_about(tool):
            return False
        if tool in _PATHS:
            path = path_of(question, folder)
            return is_ordinary(path) and certainly_fits(str(path), self.what or "**", folder)
        if tool == SHELL:
            return self._allows_command(question, folder)
        if self.what is None:
            return True
        value = question.input.get(_MAIN.get(tool, ""))
        return isinstance(value, str) and (value == self.what or self._allows_domain(tool, value))

    def denies(self, question: CanUseTool, folder: str) -> bool:
        """Whether a tool may do, among other things, what this rule means."""
        tool = question.tool_name
        if not (self._is_about(tool) or fnmatchcase(tool.casefold(), self.tool.casefold())):
            return False
        if self.what is None:
            return True
        if tool in _PATHS:
            path = path_of(question, folder)
            return isinstance(path, str) and may_fit(path, (self.what,), folder)
        if tool == SHELL:
            return self._denies_command(str(question.input.get("command", "")))
        return any(self._denies_value(value) for value in question.input.values() if isinstance(value, str))

    def _is_about(self, tool: str) -> bool:
        if self.tool == tool or tool in _FAMILIES.get(self.tool, ()):
            return True
        server = self.tool.removesuffix("__*")
        return server.startswith("mcp__") and server.count("__") == 1 and tool.startswith(f"{server}__")

    def _allows_command(self, question: CanUseTool, folder: str) -> bool:
        line = command_of(question)
        if line is None:
            return False
        if not self.is_wild:
            return line == (self.what or "").strip()
        blocked = question.blocked_path
        stays = blocked is None or inside(real_path(blocked), real_path(folder)) is not None
        return stays and is_plain(line) and _fits(self.what or "*", line)

    def _denies_command(self, line: str) -> bool:
        what = " ".join((self.what or "").split()).casefold()
        return any(_fits(what, each.casefold()) for each in (line.strip(), *commands(line)))

    def _allows_domain(self, tool: str, url: str) -> bool:
        kind, _, domain = (self.what or "").partition(":")
        is_web = tool == "WebFetch" and kind == "domain" and _URL.fullmatch(url) is not None
        return is_web and _host(url) == domain.casefold()

    def _denies_value(self, value: str) -> bool:
        what = (self.what or "").casefold()
        kind, _, domain = what.partition(":")
        host = _host(value) if kind == "domain" else ""
        return value.casefold() == what or (host != "" and f".{host}".endswith(f".{domain}"))


@lru_cache(maxsize=4096)
def parse(text: str) -> Rule | None:
    """Read a rule; None if it is none."""
    found = RULE.fullmatch(text.strip())
    return None if found is None else Rule(found["tool"], found["what"])


def path_of(question: CanUseTool, folder: str) -> object:
    """The path a tool is about; those that search mean the whole folder if they name none."""
    given = question.input.get(_PATHS.get(question.tool_name, ""))
    return folder if given is None and question.tool_name in ("LS", "Glob", "Grep") else given


def command_of(question: CanUseTool) -> str | None:
    """The command line to be run; None if more is asked for than to run it, such as leaving the sandbox."""
    line = question.input.get("command")
    extra = any(value for key, value in question.input.items() if key not in _HARMLESS)
    return None if extra or not isinstance(line, str) else line.strip(" \t\n")


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _fits(pattern: str, line: str) -> bool:
    """Whether a line fits a pattern in which ``*`` is any text; ``:*`` and `` *`` at the end begin a new word."""
    ends_word = pattern.endswith((":*", " *"))
    first, *rest = (pattern[:-2] if ends_word else pattern).split("*")
    if not line.startswith(first):
        return False
    at = len(first)
    for piece in rest[:-1]:
        found = line.find(piece, at)
        if found == -1:
            return False
        at = found + len(piece)
    if not ends_word:
        return line[at:].endswith(rest[-1]) if rest else at == len(line)
    return _ends_word(line, rest[-1], at) if rest else line[at : at + 1] in ("", " ", "\t") or not first


def _ends_word(line: str, piece: str, at: int) -> bool:
    """Whether a piece stands somewhere behind a place and ends with a word."""
    found = line.find(piece, at)
    while found != -1:
        if line[found + len(piece) : found + len(piece) + 1] in ("", " ", "\t"):
            return True
        found = line.find(piece, found + 1)
    return False
