"""What linters write, as they wrote it, and what is understood of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ide_bridge.editor import lint_output
from ide_bridge.editor.lint_output import parse
from ide_bridge.model import Diagnostic, Position, Range


def told(output):
    """Findings in short: file, start, end, severity, code, message."""
    return [
        (
            found.file,
            (found.range.start.line, found.range.start.column),
            (found.range.end.line, found.range.end.column),
            found.severity,
            found.code,
            found.message,
        )
        for found in parse(output)
    ]


GCC = """\
a.c: In function ‘f’:
a.c:1:35: error: ‘b’ undeclared (first use in this function)
    1 | int f(int a) { int unused; return b; }
      |                                   ^
a.c:1:35: note: each undeclared identifier is reported only once for each function it appears in
a.c:1:20: warning: unused variable ‘unused’ [-Wunused-variable]
    1 | int f(int a) { int unused; return b; }
      |                    ^~~~~~
a.c:7:10: fatal error: nowhere.h: No such file or directory
"""

PYLINT = """\
************* Module a
pkg/a.py:1:0: C0114: Missing module docstring (missing-module-docstring)
pkg/a.py:3:15: E0602: Undefined variable 'undefined' (undefined-variable)
pkg/a.py:1:0: W0611: Unused import os (unused-import)

-----------------------------------
Your code has been rated at 0.00/10
"""

RUFF = """\
pkg/a.py:1:8: F401 [*] `os` imported but unused
pkg/a.py:3:16: F821 Undefined name `undefined`
Found 2 errors.
[*] 1 fixable with `--fix`.
"""

MYPY = """\
pkg/a.py:3: error: Name "undefined" is not defined  [name-defined]
pkg/a.py:6:3:6:4: error: Argument 1 to "f" has incompatible type "str"; expected "int"  [arg-type]
pkg/a.py:7: note: Revealed type is "builtins.int"
Found 2 errors in 1 file (checked 1 source file)
"""

ESLINT = """\
/w/a.js:1:5: 'unused' is assigned a value but never used. [Warning/no-unused-vars]
/w/a.js:2:7: Expected '===' and instead saw '=='. [Error/eqeqeq]

2 problems
"""

LINES = {
    "gcc": (
        GCC,
        [
            ("a.c", (0, 34), (0, 34), "error", "", "‘b’ undeclared (first use in this function)"),
            (
                "a.c",
                (0, 34),
                (0, 34),
                "info",
                "",
                "each undeclared identifier is reported only once for each function it appears in",
            ),
            ("a.c", (0, 19), (0, 19), "warning", "-Wunused-variable", "unused variable ‘unused’"),
            ("a.c", (6, 9), (6, 9), "error", "", "nowhere.h: No such file or directory"),
        ],
    ),
    "pylint": (
        PYLINT,
        [
            ("pkg/a.py", (0, 0), (0, 0), "info", "missing-module-docstring", "Missing module docstring"),
            ("pkg/a.py", (2, 15), (2, 15), "error", "undefined-variable", "Undefined variable 'undefined'"),
            ("pkg/a.py", (0, 0), (0, 0), "warning", "unused-import", "Unused import os"),
        ],
    ),
    "ruff": (
        RUFF,
        [
            ("pkg/a.py", (0, 7), (0, 7), "warning", "F401", "`os` imported but unused"),
            ("pkg/a.py", (2, 15), (2, 15), "warning", "F821", "Undefined name `undefined`"),
        ],
    ),
    "flake8": (
        "./pkg/a.py:2:1: E302 expected 2 blank lines, found 0\n",
        [("./pkg/a.py", (1, 0), (1, 0), "warning", "E302", "expected 2 blank lines, found 0")],
    ),
    "mypy": (
        MYPY,
        [
            ("pkg/a.py", (2, 0), (2, 0), "error", "name-defined", 'Name "undefined" is not defined'),
            (
                "pkg/a.py",
                (5, 2),
                (5, 4),
                "error",
                "arg-type",
                'Argument 1 to "f" has incompatible type "str"; expected "int"',
            ),
            ("pkg/a.py", (6, 0), (6, 0), "info", "", 'Revealed type is "builtins.int"'),
        ],
    ),
    "eslint -f unix": (
        ESLINT,
        [
            (
                "/w/a.js",
                (0, 4),
                (0, 4),
                "warning",
                "no-unused-vars",
                "'unused' is assigned a value but never used.",
            ),
            ("/w/a.js", (1, 6), (1, 6), "error", "eqeqeq", "Expected '===' and instead saw '=='."),
        ],
    ),
    "shellcheck -f gcc": (
        "a.sh:2:6: note: Double quote to prevent globbing and word splitting. [SC2086]\n",
        [("a.sh", (1, 5), (1, 5), "info", "SC2086", "Double quote to prevent globbing and word splitting.")],
    ),
    "golangci-lint": (
        "main.go:5:2: Error return value of `f` is not checked (errcheck)\n\tf()\n\t^\n",
        [("main.go", (4, 1), (4, 1), "warning", "errcheck", "Error return value of `f` is not checked")],
    ),
    "go vet": (
        "./main.go:5:2: undefined: x\n",
        [("./main.go", (4, 1), (4, 1), "error", "", "undefined: x")],
    ),
    "tsc": (
        "src/a.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\n",
        [("src/a.ts", (0, 6), (0, 6), "error", "TS2322", "Type 'string' is not assignable to type 'number'.")],
    ),
    "cargo, short": (
        "src/main.rs:1:5: error[E0425]: cannot find value `x` in this scope\n",
        [("src/main.rs", (0, 4), (0, 4), "error", "E0425", "cannot find value `x` in this scope")],
    ),
    "yamllint -f parsable": (
        'a.yml:1:1: [warning] missing document start "---" (document-start)\n',
        [("a.yml", (0, 0), (0, 0), "warning", "document-start", 'missing document start "---"')],
    ),
    "rubocop, emacs": (
        "a.rb:1:1: C: Style/FrozenStringLiteralComment: Missing comment.\n",
        [("a.rb", (0, 0), (0, 0), "info", "", "Style/FrozenStringLiteralComment: Missing comment.")],
    ),
    "only a line": ("a.txt:7: hello\n", [("a.txt", (6, 0), (6, 0), "error", "", "hello")]),
    "columns from and to": ("a b.txt:1:3-9: x\n", [("a b.txt", (0, 2), (0, 9), "error", "", "x")]),
    "a drive": ("C:\\w\\a.py:1:2: x\r\n", [("C:\\w\\a.py", (0, 1), (0, 1), "error", "", "x")]),
    "a name with brackets": ("a (1).py:3:4: x\n", [("a (1).py", (2, 3), (2, 3), "error", "", "x")]),
    "colours": ("\x1b[1ma.c:1:2:\x1b[0m \x1b[31merror:\x1b[0m x\n", [("a.c", (0, 1), (0, 1), "error", "", "x")]),
    "a number first": ("a.py:3:10 items\n", [("a.py", (2, 0), (2, 0), "error", "", "10 items")]),
    "the place 0": ("a.py:0:0: x\n", [("a.py", (0, 0), (0, 0), "error", "", "x")]),
    "an end before the start": ("a.py:3:9:2:1: x\n", [("a.py", (2, 8), (2, 8), "error", "", "x")]),
}


@pytest.mark.parametrize("tool", LINES)
def test_lines(tool):
    output, expected = LINES[tool]
    assert told(output) == expected


RUFF_JSON = [
    {
        "cell": None,
        "code": "F821",
        "end_location": {"column": 25, "row": 3},
        "filename": "/w/pkg/a.py",
        "fix": None,
        "location": {"column": 16, "row": 3},
        "message": "Undefined name `undefined`",
        "name": "undefined-name",
        "noqa_row": 3,
        "severity": "error",
        "url": "https://docs.astral.sh/ruff/rules/undefined-name",
    }
]
ESLINT_JSON = [
    {
        "filePath": "/w/a.js",
        "messages": [
            {
                "ruleId": "no-unused-vars",
                "severity": 1,
                "message": "'unused' is assigned a value but never used.",
                "line": 1,
                "column": 5,
                "nodeType": "Identifier",
                "endLine": 1,
                "endColumn": 11,
            },
            {"ruleId": None, "fatal": True, "severity": 2, "message": "Parsing error", "line": 3, "column": 2},
            {"fatal": False, "severity": 1, "message": "File ignored because of a matching ignore pattern."},
        ],
        "errorCount": 1,
        "source": "var unused = 1;\n",
    },
    {"filePath": "/w/b.js", "messages": []},
]
PYLINT_MESSAGE = {
    "type": "convention",
    "module": "a",
    "obj": "f",
    "line": 2,
    "column": 4,
    "endLine": 2,
    "endColumn": 9,
    "path": "pkg/a.py",
    "symbol": "missing-function-docstring",
    "message": "Missing function or method docstring",
    "message-id": "C0116",
}
PYLINT_TOLD = (
    "pkg/a.py",
    (1, 4),
    (1, 9),
    "info",
    "missing-function-docstring",
    "Missing function or method docstring",
)
SHELLCHECK_COMMENT = {
    "file": "a.sh",
    "line": 2,
    "endLine": 2,
    "column": 6,
    "endColumn": 8,
    "level": "style",
    "code": 2086,
    "message": "Double quote.",
    "fix": {"replacements": [{"column": 6, "line": 2}]},
}
SHELLCHECK_TOLD = ("a.sh", (1, 5), (1, 7), "hint", "SC2086", "Double quote.")
MYPY_LINE = {
    "file": "pkg/a.py",
    "line": 3,
    "column": 15,
    "end_line": 3,
    "end_column": 24,
    "message": 'Name "undefined" is not defined',
    "hint": None,
    "code": "name-defined",
    "severity": "error",
}
MYPY_TOLD = ("pkg/a.py", (2, 15), (2, 24), "error", "name-defined", 'Name "undefined" is not defined')
PYRIGHT_JSON = {
    "version": "1.1.414",
    "generalDiagnostics": [
        {
            "file": "/w/pkg/a.py",
            "severity": "information",
            "message": '"x" is not assignable\n  "Literal" is not "int"',
            "range": {"start": {"line": 2, "character": 15}, "end": {"line": 2, "character": 24}},
            "rule": "reportArgumentType",
        },
        {"file": "/w/b.py", "severity": "error", "message": "no place"},
    ],
    "summary": {"filesAnalyzed": 1},
}
SARIF = {
    "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
    "version": "2.1.0",
    "runs": [
        {
            "tool": {"driver": {"name": "ruff", "rules": []}},
            "results": [
                {
                    "level": "note",
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "file:///w/pkg/a%20b.py"},
                                "region": {"startLine": 3, "startColumn": 16, "endLine": 3, "endColumn": 25},
                            }
                        }
                    ],
                    "message": {"text": "Undefined name"},
                    "ruleId": "F821",
                },
                {
                    "locations": [{"physicalLocation": {"artifactLocation": {"uri": "c.py"}}}],
                    "message": {"text": "whole file"},
                },
                {
                    "locations": [{"physicalLocation": {"artifactLocation": {"uri": "file:///C:/w/d.py"}}}],
                    "message": {"text": "a drive"},
                },
                {"message": {"text": "nowhere"}},
            ],
        }
    ],
}

DOCUMENTS = {
    "ruff": (RUFF_JSON, [("/w/pkg/a.py", (2, 15), (2, 24), "error", "F821", "Undefined name `undefined`")]),
    "eslint": (
        ESLINT_JSON,
        [
            (
                "/w/a.js",
                (0, 4),
                (0, 10),
                "warning",
                "no-unused-vars",
                "'unused' is assigned a value but never used.",
            ),
            ("/w/a.js", (2, 1), (2, 1), "error", "", "Parsing error"),
        ],
    ),
    "pylint": ([PYLINT_MESSAGE], [PYLINT_TOLD]),
    "pylint, json2": ({"messages": [PYLINT_MESSAGE], "statistics": {"score": 0}}, [PYLINT_TOLD]),
    "shellcheck": ([SHELLCHECK_COMMENT], [SHELLCHECK_TOLD]),
    "shellcheck, json1": ({"comments": [SHELLCHECK_COMMENT]}, [SHELLCHECK_TOLD]),
    "mypy, one line": (MYPY_LINE, [MYPY_TOLD]),
    "pyright": (
        PYRIGHT_JSON,
        [
            (
                "/w/pkg/a.py",
                (2, 15),
                (2, 24),
                "info",
                "reportArgumentType",
                '"x" is not assignable\n  "Literal" is not "int"',
            ),
            ("/w/b.py", (0, 0), (0, 0), "error", "", "no place"),
        ],
    ),
    "SARIF": (
        SARIF,
        [
            ("/w/pkg/a b.py", (2, 15), (2, 24), "info", "F821", "Undefined name"),
            ("c.py", (0, 0), (0, 0), "warning", "", "whole file"),
            ("C:/w/d.py", (0, 0), (0, 0), "warning", "", "a drive"),
        ],
    ),
    "nothing found": ([], []),
    "something else": ({"ok": True}, []),
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("tool", DOCUMENTS)
def test_documents(tool, indent):
    document, expected = DOCUMENTS[tool]
    text = json.dumps(document, indent=None if tool == "mypy, one line" else indent)
    assert told(text) == expected
    assert told(f"A new version is available.\n\n{text}\nDone.\n") == expected


def test_one_object_per_line():
    lines = [json.dumps(MYPY_LINE), json.dumps({**MYPY_LINE, "column": -1, "end_column": None}), "{", "true"]
    assert told("\n".join(lines)) == [MYPY_TOLD, ("pkg/a.py", (2, 0), (2, 0), *MYPY_TOLD[3:])]


def test_problems_that_stand_in_an_array_one_per_line_count_once():
    body = ",\n".join(json.dumps(each) for each in (SHELLCHECK_COMMENT, SHELLCHECK_COMMENT))
    assert told(f"[\n{body}\n]\n") == [SHELLCHECK_TOLD, SHELLCHECK_TOLD]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "All checks passed!\n",
        "Success: no issues found in 1 source file\n",
        "In file included from a.c:1:\n",
        "    1 | a.c:1:2: error: quoted\n",
        'Traceback (most recent call last):\n  File "a.py", line 3\n',
        "a.py:99999999999999: too far\n",
        '[{"filename": "a.py"',
        "[" * 100_000,
        '{"runs": 1}',
    ],
)
def test_what_is_no_problem_is_passed_over(output):
    assert parse(output) == []


def test_messages_are_bounded_and_hold_no_controls():
    document = [{**RUFF_JSON[0], "message": "a\x07\x1b]0;x\x9b" + "é" * 2 * lint_output.MESSAGE_LIMIT}]
    for output in (json.dumps(document), "a.py:1:2: a\x07\x1b]0;x" + "é" * 2 * lint_output.MESSAGE_LIMIT):
        (found,) = parse(output)
        assert found.message.startswith("a]0;xé")
        assert len(found.message) <= lint_output.MESSAGE_LIMIT


def test_no_number_is_too_large_or_too_small():
    far = {**MYPY_LINE, "line": 10**30, "column": 10**30, "end_line": -5, "end_column": -5}
    (found,) = parse(json.dumps(far))
    assert found.range.start == found.range.end == Position(2**31 - 1, 2**31 - 1)


def test_a_finding_becomes_a_diagnostic_once_its_file_is_known():
    (found,) = parse("./a.py:1:2: W1 x")
    where = Range(Position(0, 1), Position(0, 1))
    assert found.diagnostic("/w/a.py", "ruff") == Diagnostic("/w/a.py", where, "warning", "x", "ruff", "W1")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*MYPY_LINE, *PYLINT_MESSAGE, *SHELLCHECK_COMMENT, *RUFF_JSON[0], *SARIF, "messages"]),
            inner,
            max_size=8,
        )
    ),
    max_leaves=20,
)
LINE = st.from_regex(r"[a-z:(\[]{0,3}[:(][0-9]{0,12}[:,-]?[0-9]{0,3}\)?: ?.{0,9}", fullmatch=True)


@given(st.text() | JSON.map(json.dumps) | st.lists(LINE).map("\n".join))
def test_no_output_raises_and_no_position_is_negative(output):
    for found in parse(output):
        assert found.file
        assert found.message
        assert Position(0, 0) <= found.range.start <= found.range.end
        assert found.range.start.column >= 0
        assert found.range.end.column >= 0


@pytest.mark.parametrize(
    "output",
    [
        "a:1:" + " " * 10**6,
        "(1" * 5 * 10**5,
        "a:1: " + " [" * 5 * 10**5,
        "a:1:x" + " " * 10**6 + "[",
        "a:1:2" + "\n" * 10**6,
        "a:1: x [" + "a" * 10**6,
    ],
)
@pytest.mark.timeout(5)
def test_hostile_output_takes_no_time(output):
    assert len(parse(output)) <= 1
