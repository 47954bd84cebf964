"""What Flymake and Flycheck have found in a real Emacs, as the bridge hears it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.claude_cli import Home
from tests.fakes.emacs import EmacsPerson, emacs, lisp
from tests.fakes.emacs_link import LinkEnd, link_end
from tests.fakes.programs import unavailable

LIBRARIES = Path("/usr/share/emacs/site-lisp/elpa")

FLYCHECK = """
(progn
  (setq package-directory-list (list {libraries}))
  (package-initialize)
  (require 'flycheck)
  (flycheck-define-checker person
    "Finds the word wrong."
    :command ("grep" "-bno" "wrong" source)
    :error-patterns ((warning line-start line ":" (one-or-more digit) ":" (message) line-end))
    :modes text-mode)
  (setq flycheck-checkers '(person)))
"""

REPORT = """
(setq-local flymake-diagnostic-functions
  (list (lambda (report &rest _)
          (funcall report
            (list (flymake-make-diagnostic (current-buffer) 4 6 :warning "odd")
                  (flymake-make-diagnostic (current-buffer) 9 11 :note "a note"))))))
"""


@pytest.fixture
def home() -> Any:
    with Home() as home:
        yield home


@pytest.fixture
async def link() -> AsyncIterator[LinkEnd]:
    async with link_end() as link:
        yield link


@pytest.fixture
async def person(home: Home, link: LinkEnd, tmp_path: Path) -> AsyncIterator[EmacsPerson]:
    (tmp_path / "one.txt").write_text("é𝔘 bad\nworse line\n", encoding="utf-8")
    async with emacs(tmp_path, home.environment, link.command) as person:
        yield person


async def test_flymake(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    path = str(tmp_path / "one.txt")
    await person.open(path)
    assert await link.request("diagnostics", path=path) == []
    await person.find(path, 1, "It is *wrong*.")
    assert await link.notification("diagnosticsChanged") == {"paths": [path]}
    (found,) = await link.request("diagnostics", path=path)
    assert (found["path"], found["fresh"]) == (path, True)
    (problem,) = found["diagnostics"]
    assert problem["message"] == "It is *wrong*."
    assert problem["severity"] == "error"
    assert (problem["start"], problem["end"]) == ({"line": 1, "column": 0}, {"line": 1, "column": 2})
    assert await link.request("diagnostics") == [found]


async def test_flymake_severities_and_columns(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    await person.open(str(tmp_path / "one.txt"))
    await person.command(f"(require 'flymake) {REPORT} (flymake-mode 1) (flymake-start)")
    (found,) = await link.request("diagnostics")
    problems = [(problem["severity"], problem["start"], problem["end"]) for problem in found["diagnostics"]]
    assert sorted(problems, reverse=True, key=lambda problem: problem[0]) == [
        ("warning", {"line": 0, "column": 3}, {"line": 0, "column": 5}),
        ("info", {"line": 1, "column": 1}, {"line": 1, "column": 3}),
    ]


async def test_flymake_is_not_fresh_while_somebody_is_asked(
    person: EmacsPerson, link: LinkEnd, tmp_path: Path
) -> None:
    await person.open(str(tmp_path / "one.txt"))
    await person.command("(require 'flymake) (setq-local flymake-diagnostic-functions (list #'ignore))"
                         " (flymake-mode 1) (flymake-start)")  # fmt: skip
    (found,) = await link.request("diagnostics")
    assert (found["diagnostics"], found["fresh"]) == ([], False)


async def test_problems_of_files_that_are_not_open(person: EmacsPerson, link: LinkEnd, tmp_path: Path) -> None:
    path = str(tmp_path / "closed.py")
    await person.command(
        "(require 'flymake) (push (cons "
        f"{lisp(path)} (list (flymake-make-diagnostic {lisp(path)} '(3 . 5) '(3 . 8) :error \"far away\")))"
        " flymake-list-only-diagnostics)"
    )
    (found,) = await link.request("diagnostics", path=path)
    assert found["diagnostics"][0]["start"] == {"line": 2, "column": 4}
    assert found["fresh"] is False
    assert await link.request("diagnostics") == [found]


async def test_flycheck(home: Home, link: LinkEnd, tmp_path: Path) -> None:
    if not list(LIBRARIES.glob("flycheck-*")):
        unavailable("Flycheck is not installed; Debian has it as elpa-flycheck")
    path = tmp_path / "one.txt"
    path.write_text("fine\nwrong here\n", encoding="utf-8")
    async with emacs(
        tmp_path, home.environment, link.command, FLYCHECK.format(libraries=lisp(LIBRARIES))
    ) as person:
        await person.open(str(path))
        await person.command("(flycheck-mode 1) (flycheck-buffer)")
        assert await link.notification("diagnosticsChanged") == {"paths": [str(path)]}
        (found,) = await link.request("diagnostics", path=str(path))
    assert found["fresh"] is True
    (problem,) = found["diagnostics"]
    assert (problem["severity"], problem["message"], problem["source"]) == ("warning", "wrong", "person")
    assert problem["start"] == {"line": 1, "column": 0}
