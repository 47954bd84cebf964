"""The CLI's rules, one by one: which lock is taken, and what is said of the others."""

import json
import os
import stat
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ide_bridge.fronts.discovery import (
    FoundLock,
    Here,
    diagnose,
    distinct,
    matching,
    read_lock_file,
    read_locks,
    scanned_folders,
    shell_word,
    taken,
)

HOME = os.path.join(os.sep, "nowhere", "home")
FOLDER = os.path.join(os.sep, "nowhere", "work")
IDE = os.path.join(HOME, ".claude", "ide")


def a_lock(port=4000, *folders, place=IDE, **changes):
    fields = {"pid": 77, "name": "Vim", "transport": "ws", "modified": 1.0, "exposed": False, "alive": True}
    path = os.path.join(place, f"{port}.lock")
    return FoundLock(path=path, port=port, folders=folders or (FOLDER,), **fields | changes)


def here(*, folder=FOLDER, ancestors=(), auto_connect=True, **environment):
    return Here(folder, HOME, environment, frozenset(ancestors), auto_connect)


def said(locks, where):
    return {(finding.rule, finding.level) for finding in diagnose(locks, where)}


def finding(rule, locks, where):
    return next(found for found in diagnose(locks, where) if found.rule == rule)


def test_a_good_lock_is_taken_and_nothing_else_is_said():
    assert said([a_lock()], here()) == {("match", "ok")}


@pytest.mark.parametrize(
    ("served", "matches"),
    [
        (FOLDER, True),
        (FOLDER + os.sep, True),
        (os.path.join(FOLDER, "sub", ".."), True),
        (os.path.dirname(FOLDER), True),
        (os.sep, True),
        (FOLDER[:-1], False),
        (FOLDER + "s", False),
        (os.path.join(FOLDER, "below"), False),
    ],
)
def test_folders_match_by_whole_components(served, matches):
    assert bool(matching([a_lock(4000, served)], here())) is matches


def test_a_lock_of_another_folder_says_where_it_serves():
    found = finding("folder", [a_lock(4000, "/else/where")], here())
    assert found.level == "error"
    assert "/else/where" in found.text
    assert f"ide-bridge serve {FOLDER}" in found.fix


def test_a_folder_below_is_offered_in_the_menu_only():
    below = os.path.join(FOLDER, "below")
    found = finding("folder", [a_lock(4000, below)], here())
    assert "/ide" in found.text
    assert below in found.fix


def test_locks_of_other_folders_are_only_noted_when_one_matches():
    assert ("folder", "note") in said([a_lock(), a_lock(4001, "/else/where")], here())


def test_a_link_in_the_lock_matches_nothing(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    where = here(folder=os.path.realpath(real))
    assert said([a_lock(4000, str(tmp_path / "link"))], where) == {("symlink", "error")}


def test_another_unicode_form_matches_with_a_warning():
    composed = os.path.join(os.sep, "nowhere", "café")
    locks = [a_lock(4000, unicodedata.normalize("NFD", composed))]
    assert said(locks, here(folder=composed)) == {("match", "ok"), ("unicode", "warning")}


def test_of_two_matches_none_is_taken():
    locks = [a_lock(4000), a_lock(4001)]
    assert taken(matching(locks, here()), here()) is None
    found = finding("several", locks, here())
    assert found.level == "error"
    assert "CLAUDE_CODE_SSE_PORT=4000" in found.fix


def test_the_named_port_decides_between_two():
    locks = [a_lock(4000), a_lock(4001)]
    assert taken(matching(locks, here()), here(CLAUDE_CODE_SSE_PORT="4001")) == locks[1]
    assert said(locks, here(CLAUDE_CODE_SSE_PORT="4001")) == {("match", "ok")}


def test_the_named_port_matches_whatever_its_folder_and_terminal():
    where = here(CLAUDE_CODE_SSE_PORT="4000", TERM_PROGRAM="vscode")
    assert said([a_lock(4000, "/else/where")], where) == {("match", "ok")}


def test_a_named_port_with_two_locks_is_not_taken():
    where = here(CLAUDE_CONFIG_DIR="/other", CLAUDE_CODE_SSE_PORT="4000")
    locks = [a_lock(4000), a_lock(4000, place="/other/ide")]
    assert taken(matching(locks, where), where) is None
    assert locks[1].path in finding("several", locks, where).fix


def test_a_named_port_that_nobody_has():
    assert said([], here(CLAUDE_CODE_SSE_PORT="4009")) == {("no-lock", "error"), ("sse-port", "error")}
    assert said([a_lock()], here(CLAUDE_CODE_SSE_PORT="4009")) == {("match", "ok"), ("sse-port", "warning")}


@pytest.mark.parametrize(
    "setting",
    [{"TERM_PROGRAM": "vscode"}, {"FORCE_CODE_TERMINAL": "0"}, {"TERMINAL_EMULATOR": "JetBrains-JediTerm"}],
)
def test_in_another_editors_terminal_only_ancestors_match(setting):
    found = finding("foreign-terminal", [a_lock()], here(**setting))
    assert found.level == "error"
    assert "CLAUDE_CODE_SSE_PORT=4000" in found.fix
    assert said([a_lock()], here(ancestors=[77], **setting)) == {("match", "ok")}


def test_the_check_of_folders_can_be_switched_off():
    where = here(CLAUDE_CODE_IDE_SKIP_VALID_CHECK="1")
    assert said([a_lock(4000, "/else/where")], where) == {("match", "ok")}


def test_a_lock_of_a_dead_process():
    dead = a_lock(alive=False)
    assert dead.stale
    assert said([dead], here()) == {("no-lock", "error"), ("dead-pid", "error")}
    assert "--fix" in finding("dead-pid", [dead], here()).fix


def test_a_dead_process_whose_port_answers_is_told_apart():
    assert "port 4000 answers" in finding("dead-pid", [a_lock(alive=False, listening=True)], here()).text


def test_dead_locks_that_matter_to_nobody_are_a_warning():
    assert said([a_lock(), a_lock(4001, alive=False)], here()) == {("match", "ok"), ("dead-pid", "warning")}


def test_a_reused_pid_is_stale_only_while_the_port_is_dead():
    assert a_lock(reused=True).stale
    assert not a_lock(reused=True, listening=True).stale
    assert ("dead-pid", "error") in said([a_lock(reused=True)], here())


def test_a_reused_pid_elsewhere_is_no_server():
    assert ("no-lock", "error") in said([a_lock(4000, "/else/where", reused=True)], here())


@pytest.mark.parametrize("pid", [None, "77", 77.0, True, 0, -1, [77]])
def test_what_is_no_process_number_is_never_stale(pid):
    assert not a_lock(pid=pid, alive=False).stale


def test_without_a_pid_the_port_decides():
    assert said([a_lock(pid=None, alive=False, listening=True)], here()) == {("match", "ok")}
    assert said([a_lock(pid=None, alive=False)], here()) == {("no-lock", "error"), ("garbage", "warning")}


def test_a_missing_transport():
    assert said([a_lock(transport=None)], here()) == {("match", "ok"), ("transport", "error")}


def test_a_token_that_others_can_read():
    found = finding("permissions", [a_lock(exposed=True)], here())
    assert (found.level, found.fix) == ("warning", f"Run: chmod 600 {os.path.join(IDE, '4000.lock')}")


def test_a_lock_where_the_cli_does_not_look():
    locks = [a_lock(place=os.path.join(HOME, ".config", "claude", "ide"))]
    assert said(locks, here()) == {("no-lock", "error"), ("config-folder", "error")}


def test_a_second_copy_where_the_cli_does_not_look_is_nobodys_business():
    copy = a_lock(place=os.path.join(HOME, ".config", "claude", "ide"))
    assert said([a_lock(), copy], here()) == {("match", "ok")}
    assert said([a_lock(), copy], here(TERM_PROGRAM="vscode")) == {("foreign-terminal", "error")}


def test_older_clis_look_in_the_chosen_folder_only():
    where = here(CLAUDE_CONFIG_DIR="/other")
    assert said([a_lock()], where) == {("match", "ok"), ("config-folder", "warning")}
    assert said([a_lock(place="/other/ide")], where) == {("match", "ok")}


def test_scanned_folders_are_named_once(tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".claude")
    usual = str(tmp_path / ".claude" / "ide")
    assert scanned_folders(Here(FOLDER, str(tmp_path), {})) == [usual]
    assert scanned_folders(Here(FOLDER, str(tmp_path), {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")})) == [
        usual
    ]
    linked = scanned_folders(Here(FOLDER, str(tmp_path), {"CLAUDE_CONFIG_DIR": str(tmp_path / "link")}))
    assert linked == [str(tmp_path / "link" / "ide")]
    relative = scanned_folders(Here(FOLDER, str(tmp_path), {"CLAUDE_CONFIG_DIR": "settings"}))
    assert relative == [os.path.join(FOLDER, "settings", "ide"), usual]


def test_distinct_keeps_the_first_name():
    assert distinct(["/a/b", "/a/c/../b", "/a/b/", "/a/c"]) == ["/a/b", "/a/c"]


def test_what_the_environment_forbids():
    assert ("skip-auto-connect", "error") in said([a_lock()], here(CLAUDE_CODE_AUTO_CONNECT_IDE="0"))
    assert ("host-override", "warning") in said([a_lock()], here(CLAUDE_CODE_IDE_HOST_OVERRIDE="10.0.0.1"))


def test_nothing_tells_the_cli_to_connect():
    assert said([a_lock()], here(auto_connect=False)) == {("match", "ok"), ("auto-connect", "note")}
    asked = here(auto_connect=False, CLAUDE_CODE_AUTO_CONNECT_IDE="1")
    assert said([a_lock()], asked) == {("match", "ok")}


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_that_does_not_spare_this_machine(name):
    found = finding("proxy", [a_lock()], here(**{name: "http://proxy:3128"}))
    assert (found.level, found.subject) == ("warning", name)
    for exempt in ("*", "localhost,127.0.0.1", "a, 127.0.0.1"):
        assert said([a_lock()], here(**{name: "http://proxy:3128"}, NO_PROXY=exempt)) == {("match", "ok")}


def test_the_command_against_the_proxy_keeps_what_was_exempt():
    where = here(HTTP_PROXY="http://proxy:3128", no_proxy="intra.net")
    command = finding("proxy", [], where).fix.removeprefix("Run: ")
    shell = ["sh", "-c", f'{command}; printf %s "$no_proxy"']
    answer = subprocess.run(shell, env={"no_proxy": "intra.net"}, capture_output=True, text=True, encoding="utf-8")
    assert answer.stdout == "127.0.0.1,localhost,intra.net"


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\x00\xff",
        b"[]",
        b"null",
        b'{"pid": ',
        b"[" * 100_000,
        b"9" * 10_000,
        b'{"workspaceFolders": {"a": 1}}',
    ],
)
def test_garbage_is_read_as_a_lock_without_fields(tmp_path, contents):
    (tmp_path / "4000.lock").write_bytes(contents)
    (lock,) = read_locks(str(tmp_path))
    assert (lock.port, lock.pid, lock.folders, lock.alive, lock.stale) == (4000, None, (), False, False)


def test_a_lock_is_read_without_its_token(tmp_path):
    path = tmp_path / "4000.lock"
    fields = {"pid": os.getpid(), "workspaceFolders": ["/a", 7, ""], "ideName": "Vim", "transport": "ws"}
    path.write_text(json.dumps(fields | {"authToken": "secret-word"}), encoding="utf-8")
    path.chmod(0o640)
    lock = read_lock_file(str(path))
    assert (lock.pid, lock.folders, lock.name, lock.transport) == (os.getpid(), ("/a",), "Vim", "ws")
    assert lock.alive
    assert lock.exposed
    assert "secret-word" not in repr(lock)
    path.chmod(0o600)
    assert not read_lock_file(str(path)).exposed


def test_the_pid_of_a_finished_process_is_dead(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (tmp_path / "4000.lock").write_text(json.dumps({"pid": child.pid}), encoding="utf-8")
    assert read_locks(str(tmp_path))[0].stale


@pytest.mark.parametrize("name", ["x.lock", "0.lock", "65536.lock", "-1.lock", "٤٠٠٠.lock", "4000 .lock", ".lock"])
def test_a_name_that_is_no_port(tmp_path, name):
    (tmp_path / name).write_text("{}", encoding="utf-8")
    (lock,) = read_locks(str(tmp_path))
    assert lock.port is None
    assert not replace(lock, pid=77, alive=False).stale
    assert ("lock-name", "warning") in said([lock], here())


def test_locks_come_newest_first_and_other_files_not_at_all(tmp_path):
    for age, name in enumerate(["2.lock", "3.lock", "1.lock", "4.lock.tmp"]):
        (tmp_path / name).write_text("{}", encoding="utf-8")
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert [lock.port for lock in read_locks(str(tmp_path))] == [2, 3, 1]


def test_a_missing_folder_has_no_locks_and_a_file_is_an_error(tmp_path):
    assert read_locks(str(tmp_path / "missing")) == []
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(NotADirectoryError):
        read_locks(str(tmp_path / "file"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_under_a_locks_name_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "4000.lock")
    (tmp_path / "4001.lock").symlink_to(tmp_path / "gone")
    (lock,) = read_locks(str(tmp_path))
    assert stat.S_ISFIFO(os.stat(lock.path).st_mode)
    assert lock.pid is None


LOCKS = st.builds(
    lambda port, folder, place, changes: a_lock(port, folder, place=place, **changes),
    st.integers(4000, 4002),
    st.sampled_from([FOLDER, "/else/where", os.path.join(FOLDER, "below"), os.sep]),
    st.sampled_from([IDE, "/other/ide", "/third/ide"]),
    st.fixed_dictionaries(
        {
            "pid": st.sampled_from([77, 78, None, "77", 0]),
            "alive": st.booleans(),
            "reused": st.booleans(),
            "listening": st.booleans(),
            "transport": st.sampled_from(["ws", None]),
        }
    ),
)
PLACES = st.builds(
    lambda environment, ancestors: here(ancestors=ancestors, **environment),
    st.fixed_dictionaries(
        {},
        optional={
            "CLAUDE_CONFIG_DIR": st.just("/other"),
            "CLAUDE_CODE_SSE_PORT": st.sampled_from(["4000", "4009", "x"]),
            "TERM_PROGRAM": st.sampled_from(["vscode", "tmux"]),
            "HTTP_PROXY": st.just("http://proxy:3128"),
        },
    ),
    st.sets(st.sampled_from([77, 78])),
)


@given(st.lists(LOCKS, max_size=4, unique_by=lambda lock: lock.path), PLACES)
def test_either_a_lock_is_taken_or_an_error_says_why_not(locks, where):
    findings = diagnose(locks, where)
    errors = [found for found in findings if found.level == "error"]
    chosen = taken(matching(locks, where), where)
    assert [found.subject for found in findings if found.rule == "match"] == ([chosen.path] if chosen else [])
    assert chosen or errors
    assert all(found.fix for found in findings if found.level in {"warning", "error"})


@pytest.mark.parametrize(
    "name", ["plain", "a b", "it's", "a\nb", "\x1b[1m'\\", "\udce9 caf", "\u202e", "é\t0a", "$HOME", ""]
)
def test_a_name_can_be_pasted_into_a_shell(name):
    word = shell_word(name)
    assert word.isprintable()
    said = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True).stdout
    assert os.fsdecode(said) == name


def test_what_is_no_name_at_all_is_still_a_word():
    assert shell_word("\ud800") == r"$'\x3f'"
