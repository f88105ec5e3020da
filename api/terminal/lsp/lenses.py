"""Code lenses and their commands: run tests, backtest, show the change since the last commit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from tollkeeper.api.terminal.folder import where
from tollkeeper.api.terminal.lsp.cancelling import CancellingProtocol
from tollkeeper.api.terminal.lsp.change import NoChangeError, change_since_head, is_in_git
from tollkeeper.api.terminal.lsp.folder import Folder
from tollkeeper.api.terminal.lsp.live import LiveAccount
from tollkeeper.api.terminal.lsp.positions import Places, path_of
from tollkeeper.api.terminal.lsp.runs import LastRun, run_file
from tollkeeper.api.terminal.output import plural
from tollkeeper.api.terminal.rendering import draw_differences
from tollkeeper.api.terminal.subcommand import toll
from tollkeeper.engine.offline.paths import SUFFIX
from tollkeeper.grammar.services.document import Document
from tollkeeper.grammar.services.outline import outline

RUN_TESTS = "toll.runTests"
RUN_TEST = "toll.runTest"
SHOW_COVERAGE = "toll.showCoverage"
BACKTEST = "toll.backtest"
SHOW_CHANGE = "toll.showChange"


def offer_runs(
    server: LanguageServer, folder: Folder, account: LiveAccount | None, runs: dict[Path, LastRun]
) -> None:
    """Register lenses and their commands, which end when the editor cancels them."""
    protocol = server.protocol
    assert isinstance(protocol, CancellingProtocol)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def _lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        uri = params.text_document.uri
        return list(_lenses_of(folder.document(path_of(uri)), uri, account))

    @server.command(RUN_TESTS)
    async def _run_tests(uri: str) -> str:
        return await run_titled(uri, None)

    @server.command(RUN_TEST)
    async def _run_test(uri: str, title: str) -> str:
        return await run_titled(uri, title)

    async def run_titled(uri: str, title: str | None) -> str:
        path = saved(uri)
        with protocol.cancellable():
            run, problem = await run_file(path, title)
        if run is None:
            return show(problem, is_bad=True)
        runs[path] = run if title is None else run.after(runs.get(path))
        _refresh_hints(server)
        failed = [each for each in run.results if each.outcome == "failed"]
        undecided = [each for each in run.results if each.outcome == "skipped"]
        words = [f"{each.title}\n{each.text}" for each in (*failed, *undecided)]
        came_out = f"{len(failed)} failed" if failed else "all passed"
        if undecided:
            came_out = f"{len(failed) or 'none'} failed, {len(undecided)} not proved"
        counted = f"{plural(len(run.results), 'test')}, {came_out}"
        return show("\n\n".join([*words, counted]), is_bad=bool(failed))

    @server.command(SHOW_COVERAGE)
    async def _show_coverage(uri: str) -> str:
        path = saved(uri)
        with protocol.cancellable():
            code, out, err = await toll("test", "--coverage", "--", path.name, folder=path.parent)
        return show(f"{out}\n{err}".strip(), is_bad=code != 0)

    @server.command(BACKTEST)
    async def _backtest(uri: str) -> str:
        path = saved(uri)
        if account is None:
            raise JsonRpcInvalidParams("start `toll lsp` with --account to backtest")
        of = ("--account", account.name, *where(account.data))
        with protocol.cancellable():
            code, out, err = await toll(
                "backtest", "--summary", *of, "--", path.name, folder=path.parent
            )
        return show(out or err, is_bad=code != 0)

    @server.command(SHOW_CHANGE)
    async def _show_change(uri: str) -> str:
        path = path_of(uri)
        texts = folder.shared_texts()
        try:
            found = await asyncio.to_thread(
                change_since_head, path, folder.text(path) or "", folder.known(), texts
            )
        except NoChangeError as error:
            return show(str(error), is_bad=True)
        lines = [line.plain for line in draw_differences(found)]
        return show("\n".join(lines) or "the same as in the last commit", is_bad=False)

    def saved(uri: str) -> Path:
        path = path_of(uri)
        if path.suffix != SUFFIX or not path.is_file():
            raise JsonRpcInvalidParams("save the rule file first")
        return path.resolve()

    def show(text: str, *, is_bad: bool) -> str:
        kind = lsp.MessageType.Error if is_bad else lsp.MessageType.Info
        server.window_show_message(lsp.ShowMessageParams(kind, text))
        return text


def _refresh_hints(server: LanguageServer) -> None:
    """Ask the editor to request its hints again, if it supports that."""
    known = server.client_capabilities.workspace
    if known is not None and known.inlay_hint is not None and known.inlay_hint.refresh_support:
        server.workspace_inlay_hint_refresh(None)


def _lenses_of(document: Document, uri: str, account: LiveAccount | None) -> Iterator[lsp.CodeLens]:
    where = Places.of(document.text)
    top = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    tests = [each for each in outline(document) if each.keyword == "test"]
    file = document.parsed.file
    offered = [("run the tests", RUN_TESTS), ("show what they cover", SHOW_COVERAGE)]
    offered = offered if tests else []
    if account is not None and file is not None and file.kind in ("rule", "scorecard"):
        offered.append((f"backtest on {account.name}", BACKTEST))
    if is_in_git(path_of(uri)):
        offered.append(("show what changed", SHOW_CHANGE))
    for title, name in offered:
        yield lsp.CodeLens(top, lsp.Command(title, name, arguments=[uri]))
    for each in tests:
        command = lsp.Command("run", RUN_TEST, arguments=[uri, each.name])
        yield lsp.CodeLens(where.range(each.name_span), command)
