"""The Emacs package as a package: it compiles, it is documented, it can be installed."""

import subprocess
from pathlib import Path

from tests.fakes.emacs import PLUGIN, lisp
from tests.fakes.programs import program, unavailable

LIBRARIES = Path("/usr/share/emacs/site-lisp/elpa")
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


def test_compiles_without_a_warning(tmp_path: Path) -> None:
    strict = "(setq byte-compile-error-on-warn t)"
    elsewhere = f"(setq byte-compile-dest-file-function (lambda (_) {lisp(tmp_path / 'x.elc')}))"
    source = str(PLUGIN / "ide-bridge.el")
    batch(tmp_path, "--eval", strict, "--eval", elsewhere, "-f", "batch-byte-compile", source)


def test_is_documented_as_emacs_wants_it(tmp_path: Path) -> None:
    said = batch(tmp_path, "-l", "checkdoc", "--eval", f"(checkdoc-file {lisp(PLUGIN / 'ide-bridge.el')})")
    assert said == ""


def test_is_ready_for_melpa(tmp_path: Path) -> None:
    if not list(LIBRARIES.glob("package-lint-0*")):
        unavailable("package-lint is not installed; Debian has it as elpa-package-lint")
    said = batch(
        tmp_path,
        "--eval", f"(setq package-directory-list (list {lisp(LIBRARIES)}))",
        "--eval", "(package-initialize)",
        "-l", "package-lint",
        "--eval", f"(find-file {lisp(PLUGIN / 'ide-bridge.el')})",
        "--eval", "(dolist (finding (package-lint-buffer)) (message \"FOUND %s\" finding))",
    )  # fmt: skip
    found = [line for line in said.splitlines() if line.startswith("FOUND")]
    assert [line for line in found if NEEDS_THE_NETWORK not in line] == []


def test_installs_from_its_file_and_is_loaded_only_when_used(tmp_path: Path) -> None:
    said = batch(
        tmp_path,
        "--eval", "(package-initialize)",
        "--eval", f"(package-install-file {lisp(PLUGIN / 'ide-bridge.el')})",
        "--eval", "(message \"LOADED %s\" (featurep 'ide-bridge))",
        "--eval", "(message \"COMMANDS %s\" (mapcar #'commandp '(ide-bridge-mode ide-bridge-start ide-bridge-send"
        " ide-bridge-accept ide-bridge-reject ide-bridge-status ide-bridge-claude ide-bridge-doctor)))",
        "--eval", "(global-set-key (kbd \"C-c i\") 'ide-bridge-command-map)",
        "--eval", "(message \"KEY %s\" (key-binding (kbd \"C-c i s\")))",
    )  # fmt: skip
    assert "LOADED nil" in said
    assert "COMMANDS (t t t t t t t t)" in said
    assert "KEY ide-bridge-send" in said
