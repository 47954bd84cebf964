"""Settings: what the user has decided, in ``settings.toml`` of his config folder.

A workspace may hold a file of its own, ``.ide-bridge.toml``; it is somebody else's word, so it can only make
things stricter: share less, deny more, ask more. Commands and permissions are never taken from it.

It does not know what the settings mean to those who obey them.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from ide_bridge.complaints import in_words
from ide_bridge.errors import SetupProblem
from ide_bridge.home import config_folder, open_regular

__all__ = [
    "FILE_NAME",
    "RULE",
    "SECRETS",
    "WORKSPACE_FILE_NAME",
    "ApprovalPolicy",
    "Approvals",
    "FolderApprovals",
    "Linter",
    "LiveSettings",
    "Policy",
    "Settings",
    "load_settings",
    "stricter",
]

logger = logging.getLogger(__name__)

FILE_NAME = "settings.toml"
WORKSPACE_FILE_NAME = ".ide-bridge.toml"
_SIZE_LIMIT = 1024 * 1024
_TRUSTED_SECONDS = 1.0
_VISITED_LIMIT = 100
_LONGEST_WAIT = 7 * 24 * 3600

Policy = Literal["full", "path", "off"]
"""What is pushed unasked: the selected text, only which file it is in, nothing."""

Unasked = Literal["ask", "read-only"]
"""What a session may do without asking, beside what the rules allow: nothing, or what only reads in its folder."""

RULE = re.compile(r"(?P<tool>[A-Za-z_*][^\s(),]*)(?:\((?P<what>.+)\))?", re.DOTALL)
"""Claude Code's notation of a permission rule, ``Tool`` or ``Tool(what)``; none can be taken for an option."""

Rules = Annotated[tuple[str, ...], Meta(max_length=1000)]
"""Every question is held against all of them, so there is an end to their number."""

SECRETS = (
    ".env*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    ".env.example/",
    ".env.sample/",
    ".env.template/",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    "credentials.json",
    "**/.aws/credentials",
    ".ssh/",
    ".gnupg/",
)
"""What is denied though nobody says so: lines of gitignore for the files in which secrets lie."""

S = TypeVar("S", bound=msgspec.Struct)

_STRICTNESS: tuple[Policy, ...] = ("full", "path", "off")


class Linter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command that finds problems in the files a glob means; ``{file}`` in it stands for the file."""

    glob: str
    command: Annotated[tuple[str, ...], Meta(min_length=1)]
    seconds: Annotated[float, Meta(gt=0, le=300)] = 30.0


class ApprovalPolicy(msgspec.Struct, frozen=True):
    """How the questions of a session in one folder are answered without a person."""

    policy: Unasked = "ask"
    seconds: float = 0.0
    """How long a question waits for a person before it is denied; 0: as long as its session."""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    withheld: tuple[str, ...] = SECRETS
    """Lines of gitignore for what may not be touched without asking, unless a rule names the very file."""

    def tightened(self, theirs: "WorkspaceSettings") -> "ApprovalPolicy":
        """Obey a workspace where it asks for less."""
        said = theirs.approvals
        if isinstance(said, str):
            said = WorkspaceApprovals(policy=said)
        asks = said.policy == "ask"
        return msgspec.structs.replace(
            self,
            policy="ask" if asks else self.policy,
            allow=() if asks else self.allow,
            deny=(*self.deny, *said.deny),
            withheld=(*self.withheld, *theirs.deny),
        )


class FolderApprovals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What holds for the sessions in a folder and below it; what it does not say holds as outside."""

    folder: str
    policy: Unasked | None = None
    seconds: Annotated[float, Meta(ge=0, le=_LONGEST_WAIT)] | None = None
    allow: Rules = ()
    deny: Rules = ()

    def __post_init__(self) -> None:
        if not os.path.isabs(os.path.expanduser(self.folder)):
            raise ValueError(f"folder must begin with / or ~, and {self.folder!r} does not")
        _check_rules(self.allow, self.deny)

    @property
    def place(self) -> str:
        """Where the folder really lies."""
        return os.path.realpath(os.path.expanduser(self.folder))


class Approvals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How questions of sessions are answered, and how differently in some folders."""

    policy: Unasked = "ask"
    seconds: Annotated[float, Meta(ge=0, le=_LONGEST_WAIT)] = 0.0
    allow: Rules = ()
    deny: Rules = ()
    workspaces: tuple[FolderApprovals, ...] = ()

    def __post_init__(self) -> None:
        _check_rules(self.allow, self.deny)

    def for_folder(self, folder: str) -> ApprovalPolicy:
        """What holds in a folder: the innermost table that says something wins, and rules add up."""
        real = os.path.realpath(folder)
        around = sorted((table for table in self.workspaces if _lies_in(real, table.place)), key=_depth)
        policy = ApprovalPolicy(self.policy, self.seconds, self.allow, self.deny)
        for table in around:
            policy = msgspec.structs.replace(
                policy,
                policy=policy.policy if table.policy is None else table.policy,
                seconds=policy.seconds if table.seconds is None else table.seconds,
                allow=(*policy.allow, *table.allow),
                deny=(*policy.deny, *table.deny),
            )
        return policy


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every setting, with what holds when nothing is said."""

    share: Policy = "full"
    at_least: Policy = "full"
    """The loosest policy that can be switched to at run time; `share` counts as far as it is stricter."""
    deny: tuple[str, ...] = ()
    hide_ignored: bool = False
    linters: tuple[Linter, ...] = ()
    approvals: Approvals = msgspec.field(default_factory=Approvals)

    def approval_policy(self, folder: str) -> ApprovalPolicy:
        """How the questions of a session in a folder are answered, as far as the user has said so."""
        policy = self.approvals.for_folder(folder)
        return msgspec.structs.replace(policy, withheld=(*policy.withheld, *self.deny))

    def tightened(self, theirs: "WorkspaceSettings") -> "Settings":
        """Obey a workspace where it asks for less."""
        return msgspec.structs.replace(
            self,
            at_least=stricter(self.at_least, theirs.share),
            deny=(*self.deny, *(pattern for pattern in theirs.deny if not pattern.startswith("!"))),
            hide_ignored=self.hide_ignored or theirs.hide_ignored,
        )


class WorkspaceApprovals(msgspec.Struct, frozen=True):
    """What a workspace may say about the questions of sessions in it."""

    policy: Unasked = "read-only"
    deny: Rules = ()

    def __post_init__(self) -> None:
        _check_rules(self.deny)


class WorkspaceSettings(msgspec.Struct, frozen=True):
    """What a workspace may say; the rest of its file is ignored."""

    share: Policy = "full"
    deny: tuple[str, ...] = ()
    hide_ignored: bool = False
    approvals: Unasked | WorkspaceApprovals = "read-only"


def load_settings(folders: Sequence[str] = ()) -> Settings:
    """Read the user's settings, and what the folders of a workspace add to them."""
    return LiveSettings(folders)()


class LiveSettings:
    """The settings as the files have them now: a change is seen within a second, when somebody asks.

    The first reading raises `SetupProblem` for a file that is not understood. Later such a file keeps what it said
    before, and the user is told, once.
    """

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._folders: Callable[[], Sequence[str]] = lambda: folders
        self._users = _File(os.path.join(config_folder(), FILE_NAME), Settings)
        self._theirs = {folder: _File(_in(folder), WorkspaceSettings) for folder in folders}
        self._visited: dict[str, _File[WorkspaceSettings]] = {}
        self._users.read()
        for theirs in self._theirs.values():
            theirs.read()
        self._until = time.monotonic() + _TRUSTED_SECONDS
        self._settings = self._united()

    def follow(self, folders: Callable[[], Sequence[str]]) -> None:
        """Ask from now on which folders the workspace has."""
        self._folders = folders

    def __call__(self) -> Settings:
        """What holds now; the same object for as long as nothing changes."""
        now = time.monotonic()
        if now > self._until:
            self._until = now + _TRUSTED_SECONDS
            self._look()
        return self._settings

    def approval_policy(self, folder: str) -> ApprovalPolicy:
        """How the questions of a session in a folder are answered; it may lie outside of the workspace.

        A file there that is not understood could have asked for anything, so then everything is asked.
        """
        policy = self().approval_policy(folder)
        real = os.path.realpath(folder)
        files = {os.path.realpath(root): theirs for root, theirs in self._theirs.items()} | {
            real: self._visit(real)
        }
        for theirs in (theirs for root, theirs in files.items() if _lies_in(real, root)):
            policy = policy.tightened(theirs.said if theirs.understood else WorkspaceSettings(approvals="ask"))
        return policy

    def _visit(self, folder: str) -> "_File[WorkspaceSettings]":
        if len(self._visited) > _VISITED_LIMIT:
            self._visited.clear()
        theirs = self._visited.setdefault(folder, _File(_in(folder), WorkspaceSettings))
        theirs.look()
        return theirs

    def _look(self) -> None:
        self._theirs = {
            folder: self._theirs.get(folder) or _File(_in(folder), WorkspaceSettings) for folder in self._folders()
        }
        self._users.look()
        for theirs in self._theirs.values():
            theirs.look()
        united = self._united()
        if united != self._settings:
            self._settings = united

    def _united(self) -> Settings:
        settings = self._users.said
        for theirs in self._theirs.values():
            settings = settings.tightened(theirs.said)
        return settings


class _File(Generic[S]):
    """One settings file: what it said when it could last be understood."""

    def __init__(self, path: str, kind: type[S]) -> None:
        self.said: S = kind()
        self.understood = True
        self._path = path
        self._kind = kind
        self._seen: tuple[int, ...] | None = None

    def read(self) -> None:
        """Take what it says; raises `SetupProblem` if that is not understood."""
        self._seen = self._state()
        self.said = _read(self._path, self._kind) or self._kind()
        self.understood = True

    def look(self) -> None:
        """Read it again if it is another by now, and complain once if it is not understood."""
        if self._state() == self._seen:
            return
        try:
            self.read()
        except SetupProblem as problem:
            if self.understood:
                self.understood = False
                logger.warning("%s What it said before still holds.", problem)

    def _state(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)
        except (OSError, ValueError):
            return None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def stricter(one: Policy, other: Policy) -> Policy:
    """The one that lets out less."""
    return max(one, other, key=_STRICTNESS.index)


def _check_rules(*groups: Sequence[str]) -> None:
    for rule in (rule for rules in groups for rule in rules):
        if RULE.fullmatch(rule) is None:
            raise ValueError(f"{rule!r} is no rule; write Tool or Tool(what)")


def _lies_in(path: str, folder: str) -> bool:
    path, folder = os.path.normcase(path), os.path.normcase(folder)
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _depth(table: FolderApprovals) -> int:
    return len(table.place)


def _in(folder: str) -> str:
    return os.path.join(folder, WORKSPACE_FILE_NAME)


def _read(path: str, kind: type[S]) -> S | None:
    try:
        with open(open_regular(path, os.O_RDONLY, follow=True), "rb") as file:
            import tomllib  # noqa: PLC0415 - most users have no such file

            return msgspec.convert(tomllib.loads(file.read(_SIZE_LIMIT).decode()), kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SetupProblem(f"{path} cannot be read: {error.strerror}.") from None
    except msgspec.ValidationError as error:
        raise SetupProblem(f"{path} is not understood: {in_words(error, kind)}.") from None
    except ValueError as error:
        raise SetupProblem(f"{path} is not understood: {error}.") from None
