"""``ide-bridge call``: which calls start a bridge, who is told, and what counts as a failure."""

import json
import os
import subprocess

import pytest

from ide_bridge.cli.call import STEERING
from ide_bridge.fronts.mcp import METHODS
from tests.fakes.bridge_process import PROGRAM, BridgeProcess
from tests.fakes.claude_cli import Home


@pytest.fixture
def home():
    with Home() as home:
        yield home
        subprocess.run([*PROGRAM, "stop", "--all"], env=home.environment, capture_output=True, timeout=30)


@pytest.fixture
def project(home):
    folder = home.path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def served(home, project):
    with BridgeProcess(project, home.environment) as served:
        yield served


@pytest.fixture
def call(home, project):
    def run(*arguments, **options):
        given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.run(
            [*PROGRAM, "call", *arguments],
            cwd=project,
            env=home.environment,
            encoding="utf-8",
            timeout=30,
            **given,
        )

    return run


# -- starting one ------------------------------------------------------------------------------------------


def test_a_bridge_that_is_started_is_told_of_on_a_terminal(call, project):
    master, slave = os.openpty()
    try:
        assert call("listFiles", stderr=slave).stdout == "[]\n"
        told = os.read(master, 4096).decode().replace("\r\n", "\n")
        assert told == f"Started a bridge for {project}; it ends 300 s after its last use.\n"
        assert call("listFiles", stderr=slave).stdout == "[]\n"
        os.set_blocking(master, False)
        with pytest.raises(BlockingIOError):
            os.read(master, 1)
    finally:
        os.close(master)
        os.close(slave)


def test_elsewhere_nothing_is_said_of_it(call):
    assert call("listFiles").stderr == ""


def test_a_method_nobody_knows_starts_nothing(call, home):
    done = call("lsitFiles")
    sentence = "ide-bridge: There is no method called lsitFiles; PROTOCOL.md lists them all.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    assert home.locks() == []


@pytest.mark.parametrize("method", STEERING)
def test_what_steers_a_bridge_starts_none(call, home, project, method):
    done = call(method)
    sentence = f"ide-bridge: No bridge is running for {project}; start one with: ide-bridge serve\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)
    assert home.locks() == []


def test_a_bridge_answers_to_every_name_that_call_knows(call, served):
    names = [name for name in (*METHODS, *STEERING) if name != "stop"]
    unknown = [name for name in names if "no method" in call(name).stderr]
    assert unknown == []


# -- how it ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "argument JSON: this is not JSON: "),
        ("", "argument JSON: this is not JSON: "),
        ("3", "argument JSON: parameters are an object or a list, such as {} or []"),
        ('"a"', "argument JSON: parameters are an object or a list, such as {} or []"),
        ("null", "argument JSON: parameters are an object or a list, such as {} or []"),
        ("[" * 100_000, "argument JSON: this is nested too deeply; send something flatter"),
    ],
)
def test_parameters_that_are_none_are_wrong_usage(call, home, text, complaint):
    done = call("listFiles", text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: ide-bridge call [-h] METHOD [JSON]\n")
    assert f"ide-bridge call: error: {complaint}" in done.stderr
    assert home.locks() == []


def test_a_list_of_parameters_is_as_good_as_an_object(call, project, served):
    (project / "a").write_text("x", encoding="utf-8")
    assert call("readFile", '["a"]').stdout == call("readFile", '{"path": "a"}').stdout == '"x"\n'


def test_a_tool_that_failed_is_printed_and_is_a_failure(call, served):
    done = call("tools/call", '{"name": "readFile", "arguments": {"path": ".env"}}')
    assert done.returncode == 1
    assert json.loads(done.stdout)["isError"] is True
    assert call("tools/call", '{"name": "listFiles"}').returncode == 0
