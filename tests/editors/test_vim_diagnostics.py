"""Diagnostics in a real Vim: from the real ALE, from what other plug-ins keep, and from Vim's own lists."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from ide_bridge.answers import settled
from ide_bridge.conform.subject import Subject, span
from ide_bridge.model import Diagnostic, DiagnosticsChanged
from tests.fakes.programs import unavailable
from tests.fakes.surroundings import at_home
from tests.fakes.vim import VimPerson, linked, vim_string

ALE = Path("/usr/share/vim-ale")
SERVER_RANGE = {"start": {"line": 1, "character": 3}, "end": {"line": 1, "character": 5}}
SERVER_PROBLEM = {"range": SERVER_RANGE, "severity": 2, "message": "odd", "source": "lsp", "code": 7}


class Stage(NamedTuple):
    person: VimPerson
    subject: Subject
    path: str

    async def found(self) -> list[Diagnostic]:
        return list(await settled(self.subject.editor.diagnostics(self.path)))


@asynccontextmanager
async def staged(folder: Path, *before: str) -> AsyncIterator[Stage]:
    with at_home() as home:
        async with linked(folder.resolve(), home.environment, before=before) as (person, subject, _host):
            path = subject.file("code.txt", "one\n😀 wörd next\nthree\n")
            await person.open(path)
            yield Stage(person, subject, path)


def _items(path: str, *items: dict[str, object]) -> str:
    return json.dumps([{"filename": path, **item} for item in items], ensure_ascii=False)


async def test_the_quickfix_list(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        items = _items(
            stage.path,
            {"lnum": 2, "col": 6, "type": "W", "text": "a word", "nr": 12},
            {"lnum": 2, "col": 6, "end_col": 8, "type": "I", "text": "its start"},
            {"lnum": 1, "type": "N", "text": "a line"},
            {"lnum": 3, "col": 2, "end_lnum": 3, "end_col": 4, "text": "untyped"},
            {"lnum": 2, "col": 4, "vcol": 1, "type": "e", "text": "by screen column"},
        )
        await stage.person.ex(f"call setqflist({items})")
        assert [(one.severity, one.message, one.range, one.code) for one in await stage.found()] == [
            ("warning", "a word", span(1, 2, 1, 6), "12"),
            ("info", "its start", span(1, 2, 1, 4), ""),
            ("hint", "a line", span(0, 0, 0, 3), ""),
            ("error", "untyped", span(2, 1, 2, 3), ""),
            ("error", "by screen column", span(1, 2, 1, 6), ""),
        ]


async def test_location_lists_count_and_searches_do_not(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        item = _items(stage.path, {"lnum": 1, "col": 1, "end_col": 4, "type": "E", "text": "wrong"})
        await stage.person.ex(f"call setqflist({item}) | call setloclist(0, {item})")
        assert len(await stage.found()) == 1, "the same in two lists is one problem"
        await stage.person.ex("call setqflist([])")
        assert len(await stage.found()) == 1
        await stage.person.ex("call setloclist(0, []) | vimgrep /three/j %")
        assert await stage.person.expr("len(getqflist())") == 1
        assert await stage.found() == []


async def test_make_reports(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        stage.subject.forget()
        await stage.person.ex(f"let &makeprg = 'echo ' .. shellescape({vim_string(stage.path + ':3:2: bad')})")
        await stage.person.ex("silent make!")
        await stage.subject.event(
            DiagnosticsChanged, lambda event: stage.path in event.paths, "the event that the diagnostics changed"
        )
        assert [one.message for one in await stage.found()] == ["bad"]
        await stage.person.ex("cgetexpr []")
        await stage.subject.event(
            DiagnosticsChanged, lambda event: stage.path in event.paths, "that they are gone"
        )


ALE_SETUP = f"""
set runtimepath^={ALE}
let g:ale_linters = {{'text': ['spotter']}}
let g:linter = {{'name': 'spotter', 'executable': '/bin/echo', 'command': '%e bad word'}}
let g:problem = {{'lnum': 2, 'col': 6, 'end_col': 10, 'type': 'W', 'code': 'X1'}}
let g:linter.callback = {{buffer, lines -> [extend({{'text': lines[0]}}, g:problem)]}}
call ale#linter#Define('text', g:linter)
"""


async def test_the_real_ale(tmp_path: Path) -> None:
    if not ALE.exists():
        unavailable("ALE is not installed (on Debian: apt-get install vim-ale)")
    async with staged(tmp_path, ALE_SETUP) as stage:
        await stage.person.ex("runtime plugin/ale.vim")
        stage.subject.forget()
        await stage.person.ex("setlocal filetype=text")
        await stage.person.ex("ALELint")
        await stage.person.until(f"!ale#engine#IsCheckingBuffer({await stage.person.expr('bufnr()')})")
        await stage.subject.event(
            DiagnosticsChanged, lambda event: stage.path in event.paths, "the event that the diagnostics changed"
        )
        [problem] = await stage.found()
        told = (problem.severity, problem.message, problem.source, problem.code, problem.range)
        assert told == ("warning", "bad word", "spotter", "X1", span(1, 2, 1, 6))
        assert await stage.person.expr("ide_bridge#diagnostics#Sources()") == ["ALE"]


async def _demand_server_problem(stage: Stage, source: str) -> None:
    assert await stage.person.expr("ide_bridge#diagnostics#Sources()") == [source]
    [problem] = await stage.found()
    assert (problem.severity, problem.message, problem.source, problem.code) == ("warning", "odd", "lsp", "7")
    assert problem.range == span(1, 2, 1, 4), "the emoji is two UTF-16 units"


def _plugin(folder: Path, **files: str) -> str:
    """A plug-in with these autoload files, by their names with __ for /; what to do to have them loaded."""
    commands = [f"set runtimepath+={folder / 'plugin'}"]
    for name, text in files.items():
        relative = Path("autoload", name.replace("__", "/") + ".vim")
        file = folder / "plugin" / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        commands.append(f"runtime {relative}")
    return "\n".join(commands)


async def test_what_vim_lsp_keeps(tmp_path: Path) -> None:
    name = "lsp#internal#diagnostics#state#_get_all_diagnostics_grouped_by_uri_and_server"
    uri = f"file://{tmp_path.resolve()}/code.txt"
    answer = json.dumps({uri: {"server": {"params": {"uri": uri, "diagnostics": [SERVER_PROBLEM]}}}})
    plugin = _plugin(
        tmp_path,
        lsp__utils="function! lsp#utils#uri_to_path(uri)\nreturn a:uri[7:]\nendfunction\n",
        lsp__internal__diagnostics__state=f"function! {name}()\nreturn {answer}\nendfunction\n",
    )
    async with staged(tmp_path, plugin) as stage:
        await _demand_server_problem(stage, "vim-lsp")


async def test_what_yegappan_lsp_tells(tmp_path: Path) -> None:
    problems = json.dumps([SERVER_PROBLEM])
    text = f"vim9script\nexport def GetDiagsForBuf(buffer: number): list<dict<any>>\nreturn {problems}\nenddef\n"
    async with staged(tmp_path, _plugin(tmp_path, lsp__diag=text)) as stage:
        await _demand_server_problem(stage, "yegappan/lsp")


async def test_what_coc_tells(tmp_path: Path) -> None:
    item = {
        "file": str(tmp_path.resolve() / "code.txt"), "location": {"range": SERVER_RANGE}, "message": "odd",
        "severity": "Warning", "source": "lsp", "code": 7,
    }  # fmt: skip
    before = [
        "let g:coc_service_initialized = 1",
        f"function! CocAction(name)\nreturn {json.dumps([item])}\nendfunction",
    ]
    async with staged(tmp_path, *before) as stage:
        await _demand_server_problem(stage, "coc.nvim")


async def test_a_plugin_that_fails_hides_nothing(tmp_path: Path) -> None:
    before = ["let g:coc_service_initialized = 1", "let g:ale_buffer_info = {}"]
    async with staged(tmp_path, *before) as stage:
        assert await stage.found() == []
        number = await stage.person.expr("bufnr()")
        info = {"loclist": [{"lnum": 1, "text": "bad", "type": "E"}]}
        await stage.person.ex(f"let g:ale_buffer_info[{number}] = {json.dumps(info)}")
        assert [one.message for one in await stage.found()] == ["bad"]
