"""The house as it is built: every module stands alone, starting costs nothing, and every module has a test."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ide_bridge

HOUSE = Path(ide_bridge.__file__).parent
TESTS = Path(__file__).parent
HEAVY = [
    "aiohttp",
    "watchdog",
    "psutil",
    "msgspec",
    "asyncio",
    "jsonrpcserver",
    "pathspec",
    "rich",
    "platformdirs",
]


def dotted(path):
    parts = path.relative_to(HOUSE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {dotted(path): path for path in sorted(HOUSE.rglob("*.py")) if path.name != "__main__.py"}


def python(program):
    """Run a program in a fresh interpreter; gives its output."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        encoding="utf-8",
        cwd=HOUSE.parent,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# Forks of one small interpreter: each module meets a world in which nothing of ours was imported yet.
EACH_ALONE = """
import importlib, os, sys
for name in {names!r}:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            print(name, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def room_of(name):
    return ".".join(name.split(".")[:2]) if name.count(".") > 1 else "ide_bridge"


@pytest.mark.parametrize("room", sorted(set(map(room_of, MODULES))))
def test_every_module_can_be_imported_alone(room):
    failed = python(EACH_ALONE.format(names=[name for name in MODULES if room_of(name) == room]))
    assert failed == []


@pytest.mark.parametrize(
    "program",
    [
        "import ide_bridge",
        "import ide_bridge.cli",
        "import ide_bridge.fronts.claim",
        "from ide_bridge.cli import _parser; _parser(['--help']).format_help()",
        "from ide_bridge.cli import serve, run, status, stop, call",
    ],
)
def test_what_a_command_needs_to_start_loads_nothing_heavy(program):
    loaded = python(f"{program}\nimport sys\nprint(*sys.modules)")
    assert [name for name in HEAVY if name in loaded] == []


def imported_by_tests():
    for file in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_more_than_a_sign(path):
    """Whether a module has code of its own, and not only a docstring and what it passes on."""
    passed_on = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)
    return any(not isinstance(node, passed_on) for node in ast.parse(path.read_text(encoding="utf-8")).body)


def test_every_module_with_code_has_a_test_that_names_it():
    named = set(imported_by_tests())
    files = {path.stem for path in TESTS.rglob("test_*.py")}

    def has_test(name):
        *rooms, module = name.split(".")[1:] or ["bridge"]
        mirrors = {f"test_{module}", f"test_{'_'.join([*rooms, module])}", *(f"test_{room}" for room in rooms)}
        return name in named or not mirrors.isdisjoint(files)

    assert [name for name, path in MODULES.items() if is_more_than_a_sign(path) and not has_test(name)] == []
