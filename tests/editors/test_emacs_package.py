"""The Emacs package as a package: it compiles, it is documented, it can be installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fakes.emacs import PLUGIN, lisp
from tests.fakes.programs import program, unavailable

LIBRARIES = Path("/usr/share/emacs/site-lisp/elpa")
FILES = sorted(file.name for file in PLUGIN.glob("*.el"))
COMMANDS = [
    "ide-bridge-mode",
    "ide-bridge-start",
    "ide-bridge-send",
    "ide-bridge-accept",
    "ide-bridge-reject",
    "ide-bridge-status",
    "ide-bridge-claude",
    "ide-bridge-doctor",
    "ide-bridge-ask",
    "ide-bridge-sessions",
    "ide-bridge-interrupt",
    "ide-bridge-stop-session",
    "ide-bridge-approvals",
    "ide-bridge-approve",
    "ide-bridge-approve-for-session",
    "ide-bridge-deny",
]
NEEDS_THE_NETWORK = "This makes the package uninstallable in all released Emacs versions."


def batch(home: Path, *arguments: str) -> str:
    """What a fresh Emacs prints when it runs these; it must end well."""
    done = subprocess.run(
        [program("emacs"), "-Q", "--batch", *arguments],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def copied(folder: Path) -> Path:
    """The package where it may be compiled; nothing may be left in the checkout."""
    return Path(shutil.copytree(PLUGIN, folder / "package"))


def test_each_file_compiles_without_a_warning_and_without_the_others_loaded(tmp_path: Path) -> None:
    package = copied(tmp_path)
    strict = "(setq byte-compile-error-on-warn t)"
    for source in FILES:
        batch(tmp_path, "--eval", strict, "-L", str(package), "-f", "batch-byte-compile", str(package / source))
        (package / source).with_suffix(".elc").unlink()


@pytest.mark.parametrize("file", FILES)
def test_is_documented_as_emacs_wants_it(tmp_path: Path, file: str) -> None:
    said = batch(tmp_path, "-l", "checkdoc", "--eval", f"(checkdoc-file {lisp(PLUGIN / file)})")
    assert said == ""


def test_is_ready_for_melpa(tmp_path: Path) -> None:
    if not list(LIBRARIES.glob("package-lint-0*")):
        unavailable("package-lint is not installed; Debian has it as elpa-package-lint")
    lint = f"""
        (dolist (file {lisp(FILES)})
          (find-file (expand-file-name file {lisp(PLUGIN)}))
          (dolist (finding (package-lint-buffer)) (message "FOUND %s %s" file finding)))"""
    said = batch(
        tmp_path,
        "--eval", f"(setq package-directory-list (list {lisp(LIBRARIES)}))",
        "--eval", "(package-initialize)",
        "-l", "package-lint",
        "--eval", f"(setq package-lint-main-file {lisp(PLUGIN / 'ide-bridge.el')})",
        "--eval", lint,
    )  # fmt: skip
    found = [line for line in said.splitlines() if line.startswith("FOUND")]
    assert [line for line in found if NEEDS_THE_NETWORK not in line] == []


@pytest.mark.parametrize("ending", ["", "/"])
def test_installs_from_its_folder_and_is_loaded_only_when_used(tmp_path: Path, ending: str) -> None:
    install = f"(package-install-file {lisp(str(PLUGIN) + ending)})"
    assert "Warning" not in batch(tmp_path, "--eval", "(package-initialize)", "--eval", install)
    said = batch(
        tmp_path,
        "--eval", "(package-initialize)",
        "--eval", "(message \"LOADED %s\" (featurep 'ide-bridge))",
        "--eval", f"(message \"COMMANDS %s\" (seq-remove #'commandp '({' '.join(COMMANDS)})))",
        "--eval", "(global-set-key (kbd \"C-c i\") 'ide-bridge-command-map)",
        "--eval", "(message \"KEY %s\" (key-binding (kbd \"C-c i s\")))",
        "--eval", "(message \"THEN %s\" (featurep 'ide-bridge))",
    )  # fmt: skip
    assert "LOADED nil" in said
    assert "COMMANDS nil" in said
    assert "KEY ide-bridge-send" in said
    assert "THEN t" in said
    compiled = (tmp_path / ".emacs.d" / "elpa").glob("ide-bridge-*/ide-bridge*.elc")
    assert {file.with_suffix(".el").name for file in compiled} == {*FILES}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_there_without_a_package_manager_too(tmp_path: Path, command: str) -> None:
    seen = f"(progn (autoload-do-load (symbol-function '{command})) (princ (commandp '{command})))"
    assert batch(tmp_path, "-L", str(PLUGIN), "-l", "ide-bridge", "--eval", seen) == "t"


@pytest.mark.parametrize("feature", [Path(file).stem for file in FILES])
def test_each_file_can_be_loaded_first(tmp_path: Path, feature: str) -> None:
    assert batch(tmp_path, "-L", str(PLUGIN), "--eval", f"(princ (require '{feature}))") == feature


def test_what_a_session_needs_is_not_loaded_for_those_who_have_none(tmp_path: Path) -> None:
    lazy = "ide-bridge-terminal ide-bridge-status ide-bridge-diff-view ide-bridge-session ide-bridge-approvals"
    loaded = f"(princ (seq-filter #'featurep '({lazy} ediff diff-mode)))"
    assert batch(tmp_path, "-L", str(PLUGIN), "-l", "ide-bridge", "--eval", loaded) == "nil"


def test_every_file_is_short_enough_to_be_read_at_once() -> None:
    for file in FILES:
        assert len((PLUGIN / file).read_text(encoding="utf-8").splitlines()) <= 500, file
