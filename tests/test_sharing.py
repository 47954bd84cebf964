"""What is shared: the deny list as the guard's permit, the policy for what is pushed, and switching it."""

import os
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.errors import NotShared
from ide_bridge.model import Position, Range, Selection
from ide_bridge.settings import SECRETS, Settings
from ide_bridge.workspace.places import Place, Root
from ide_bridge.workspace.sharing import Sharing
from ide_bridge.workspace.workspace import Workspace
from tests.fakes.surroundings import at_home

POLICIES = ("full", "path", "off")
SOMEWHERE = Range(Position(1, 2), Position(3, 4))


@pytest.fixture
def home():
    with at_home() as home:
        yield home


@pytest.fixture
def folder(home):
    folder = home.path / "work"
    folder.mkdir()
    return folder


def sharing_in(folder, **said):
    roots = (Root.of(str(folder), folder.name),)
    return sharing_under(roots=lambda: roots, **said)


def sharing_under(*, roots=tuple, ignored=None, **said):
    settings = Settings(**said)
    return Sharing(settings=lambda: settings, roots=roots, ignored=ignored)


@pytest.fixture
def watchful(monkeypatch):
    """Settings are looked at whenever somebody asks, and not once a second."""
    monkeypatch.setattr("ide_bridge.settings._TRUSTED_SECONDS", -1.0)


def selected(path, text="secret words"):
    return Selection(str(path), text, SOMEWHERE)


def refusal(sharing, relative):
    try:
        sharing.permit(Place(Root("/w", "w", ("/w",)), relative))
    except NotShared as error:
        return str(error)
    return None


# -- what may be touched -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (".env", ".env*"),
        ("a/.ENV.local", ".env*"),
        (".envrc", ".env*"),
        (".env/inside", ".env*"),
        ("tls/server.PEM", "*.pem"),
        ("id_RSA", "id_rsa"),
        (".aws/credentials", "**/.aws/credentials"),
        ("sub/.aws/credentials", "**/.aws/credentials"),
        ("d/.env.sample/prod.env", ".env.sample/"),
        ("home/.ssh/config", ".ssh/"),
        ("own.secret", "*.Secret"),
    ],
)
def test_a_refusal_names_the_pattern(path, pattern):
    assert refusal(Sharing(["*.Secret"]), path) == f"not shared: matches {pattern}"


@pytest.mark.parametrize("path", ["", "a.py", ".env.example", "a/.env.Sample", "environment", "id_rsa.pub", "key"])
def test_all_else_may_be_touched(path):
    assert refusal(Sharing(), path) is None


def test_the_user_may_let_out_what_is_built_in():
    assert refusal(Sharing(["!.npmrc"]), ".npmrc") is None


def test_the_rules_of_claude_are_asked_too():
    sharing = Sharing(rules=lambda place: "Read(x)" if place.relative == "x" else None)
    assert refusal(sharing, "x") == "not shared: matches Read(x)"
    assert refusal(sharing, "y") is None


def test_ignored_files_are_hidden_if_so_configured():
    asked = {"ignored": lambda place: place.relative == "x"}
    assert refusal(sharing_under(hide_ignored=True, **asked), "x") == "not shared: matches .gitignore"
    assert refusal(sharing_under(hide_ignored=False, **asked), "x") is None


def test_a_workspace_obeys_settings_and_claude(home, folder):
    (home.config / "settings.json").write_text('{"permissions": {"deny": ["Read(plan.md)"]}}', encoding="utf-8")
    (folder / ".gitignore").write_text("*.log\n", encoding="utf-8")
    workspace = Workspace(folder, settings=Settings("path", deny=("*.tmp",), hide_ignored=True), denied=["*.bak"])
    for name, pattern in {
        "plan.md": "Read(plan.md)",
        "a.tmp": "*.tmp",
        "a.bak": "*.bak",
        "a.log": ".gitignore",
        ".env": ".env*",
    }.items():
        (folder / name).write_text("words", encoding="utf-8")
        with pytest.raises(NotShared, match=f"^not shared: matches {re.escape(pattern)}$"):
            workspace.open_text(workspace.locate(name))
        assert not workspace.sharing.permits(str(folder / name))
    assert workspace.sharing.policy == "path"


# -- what is pushed ----------------------------------------------------------------------------------------


def test_the_policy_says_how_much_is_pushed(folder):
    sharing = sharing_in(folder)
    selection = selected(folder / "a.py")
    assert sharing.pushed(selection) == selection
    sharing.policy = "path"
    assert sharing.pushed(selection) == selected(folder / "a.py", "")
    assert sharing.shows(selection.path)
    sharing.policy = "off"
    assert sharing.pushed(selection) is None
    assert not sharing.shows(selection.path)
    assert sharing.permits(selection.path)
    sharing.policy = "full"
    assert sharing.pushed(selection) == selection


@pytest.mark.parametrize(
    "path", ["", "untitled:1", "a.py", "*scratch*", "term://x", "/", "\0", "/a\0b", "/\ud800"]
)
def test_what_is_no_file_of_the_workspace_is_not_pushed(folder, path):
    sharing = sharing_in(folder)
    assert sharing.pushed(selected(path)) is None
    assert not sharing.shows(path)


@pytest.mark.parametrize("policy", ["full", "path"])
def test_what_lies_outside_or_is_denied_is_not_pushed(folder, policy):
    sharing = sharing_in(folder, share=policy)
    beside = folder.parent / f"{folder.name}-beside" / "a.py"
    upwards = f"{folder}/../a.py"
    for path in (folder.parent / "a.py", beside, upwards, folder, folder / ".env", folder / ".ssh" / "x"):
        assert sharing.pushed(selected(path)) is None


def test_a_file_that_is_not_written_yet_is_pushed(folder):
    assert sharing_in(folder).pushed(selected(folder / "new" / "a.py"))


def test_a_link_passes_by_its_name_and_by_where_it_leads(folder):
    (folder / "plain.txt").touch()
    (folder / ".env").touch()
    (folder.parent / "outside.txt").touch()
    for name, target in {
        "good": "plain.txt",
        "to-secret": ".env",
        "key.pem": "plain.txt",
        "leaves": "../outside.txt",
        "loop": "loop",
    }.items():
        (folder / name).symlink_to(target)
    sharing = sharing_in(folder)
    shown = [name for name in sorted(os.listdir(folder)) if sharing.shows(str(folder / name))]
    assert shown == ["good", "loop", "plain.txt"]


def test_a_way_in_through_a_link_from_outside_leads_to_the_same_rules(folder):
    way = folder.parent / "way"
    way.symlink_to(folder)
    sharing = sharing_in(folder)
    assert sharing.shows(str(way / "a.py"))
    assert not sharing.shows(str(way / ".env"))


@pytest.mark.parametrize("name", [".//.env", "a/../.env", ".env/", "./.ssh/./x"])
def test_roundabout_paths_gain_nothing(folder, name):
    assert not sharing_in(folder).shows(f"{folder}/{name}")


def test_the_folders_of_the_moment_count(folder):
    second = folder.parent / "second"
    second.mkdir()
    workspace = Workspace(folder)
    assert not workspace.sharing.shows(str(second / "a.py"))
    workspace.guard.set_folders([str(folder), str(second)])
    assert workspace.sharing.shows(str(second / "a.py"))
    assert not workspace.sharing.shows(str(second / ".env"))


# -- switching ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_least", POLICIES)
@pytest.mark.parametrize("wanted", POLICIES)
def test_the_policy_is_never_looser_than_the_workspace_demands(at_least, wanted):
    strictest = max(wanted, at_least, key=POLICIES.index)
    assert sharing_under(share=wanted, at_least=at_least).policy == strictest
    sharing = sharing_under(at_least=at_least)
    sharing.policy = wanted
    assert sharing.policy == strictest


def test_there_is_no_other_policy():
    with pytest.raises(ValueError, match="not in"):
        Sharing().policy = "everything"


# -- settings that change ----------------------------------------------------------------------------------


class Said:
    """Settings that a test changes."""

    def __init__(self, **said):
        self.settings = Settings(**said)

    def __call__(self):
        return self.settings


def test_patterns_that_are_added_or_taken_away_count_at_once():
    said = Said(deny=("a",))
    sharing = Sharing(["always"], settings=said, ignored=lambda place: place.relative == "i")
    assert [refusal(sharing, name) is None for name in "abi"] == [False, True, True]
    said.settings = Settings(deny=("b",), hide_ignored=True)
    assert [refusal(sharing, name) is None for name in "abi"] == [True, False, False]
    assert refusal(sharing, "always") == "not shared: matches always"
    assert refusal(sharing, ".env") == "not shared: matches .env*"


def test_the_newest_word_of_the_user_is_the_policy():
    said = Said(share="full")
    sharing = Sharing(settings=said)
    sharing.policy = "path"
    said.settings = Settings(share="full", deny=("x",))
    assert sharing.policy == "path", "another setting changed"
    said.settings = Settings(share="off")
    assert sharing.policy == "off"
    sharing.policy = "full"
    assert sharing.policy == "full"


def test_a_workspace_that_is_strict_for_a_while_leaves_the_users_choice_as_it_was():
    said = Said()
    sharing = Sharing(settings=said)
    sharing.policy = "path"
    said.settings = Settings(at_least="off")
    assert sharing.policy == "off"
    said.settings = Settings()
    assert sharing.policy == "path"


def test_a_change_is_told_once_whoever_saw_it_first():
    said = Said()
    sharing = Sharing(settings=said)
    assert not sharing.refresh()
    said.settings = Settings(deny=("x",))
    assert refusal(sharing, "x")
    assert [sharing.refresh(), sharing.refresh()] == [True, False]
    said.settings = Settings(share="off")
    assert [sharing.refresh(), sharing.refresh()] == [True, False]


def test_a_workspace_of_the_user_follows_his_settings_and_those_of_its_folders(home, folder, caplog, watchful):
    path = folder / "a.tmp"
    path.write_text("words", encoding="utf-8")
    workspace = Workspace.of_user(folder)
    users = home.path / ".config" / "ide-bridge" / "settings.toml"
    users.parent.mkdir(parents=True)
    assert workspace.sharing.permits(str(path))
    for file in (folder / ".ide-bridge.toml", users):
        file.write_text('deny = ["*.tmp"]', encoding="utf-8")
        with pytest.raises(NotShared, match=r"^not shared: matches \*\.tmp$"):
            workspace.open_text(workspace.locate("a.tmp"))
        file.write_text("deny = [", encoding="utf-8")
        assert not workspace.sharing.permits(str(path))
        assert f"{file} is not understood" in caplog.text
        file.unlink()
        assert workspace.files.read(workspace.locate("a.tmp")) == "words"


def test_folders_that_join_bring_their_rules_and_take_them_along(home, folder, watchful):
    second = folder.parent / "second"
    second.mkdir()
    (second / ".ide-bridge.toml").write_text('share = "off"', encoding="utf-8")
    workspace = Workspace.of_user(folder)
    assert workspace.sharing.policy == "full"
    workspace.guard.set_folders([str(folder), str(second)])
    assert workspace.sharing.policy == "off"
    workspace.guard.set_folders([str(folder)])
    assert workspace.sharing.policy == "full"


@pytest.mark.parametrize("name", [".ide-bridge.toml", ".IDE-Bridge.toml", "link"])
def test_no_client_writes_the_file_that_says_what_is_shared(folder, name):
    (folder / ".ide-bridge.toml").write_text('deny = ["a"]', encoding="utf-8")
    (folder / "link").symlink_to(".ide-bridge.toml")
    workspace = Workspace(folder)
    with pytest.raises(NotShared, match=r"^not written: \.ide-bridge\.toml says what clients may touch$"):
        workspace.files.write(workspace.locate(name), "")
    assert workspace.files.read(workspace.locate(".ide-bridge.toml")) == 'deny = ["a"]'
    workspace.files.write(workspace.locate("sub/.ide-bridge.toml"), "")


# -- properties --------------------------------------------------------------------------------------------

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
SECRET_NAMES = st.sampled_from([".env", ".env.local", "a.pem", "b.key", "id_rsa", ".netrc", "credentials.json"])


@given(st.lists(NAMES, max_size=3), SECRET_NAMES, st.randoms(use_true_random=False))
def test_a_secret_is_kept_back_at_any_depth_in_any_case(above, secret, dice):
    spelled = "".join(dice.choice((str.upper, str.lower))(letter) for letter in secret)
    assert refusal(Sharing(), "/".join([*above, spelled])) is not None


@given(st.lists(NAMES, min_size=1, max_size=4), st.lists(st.sampled_from(["*.py", "a", "b/", "/c", "**/d/*"])))
def test_more_patterns_never_share_more(parts, patterns):
    path = "/".join(parts)
    if refusal(Sharing(), path):
        assert refusal(Sharing(patterns), path)


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_both_forms_of_unicode_are_one_name(parts):
    path = "/".join(parts)
    composed, taken_apart = (unicodedata.normalize(form, path) for form in ("NFC", "NFD"))
    sharing = Sharing([composed.split("/")[-1]])
    assert (refusal(sharing, composed) is None) == (refusal(sharing, taken_apart) is None)


def test_the_built_in_list_has_no_line_twice():
    assert len(set(SECRETS)) == len(SECRETS)
