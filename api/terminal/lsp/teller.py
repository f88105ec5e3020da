"""Publishes diagnostics of the folder's files once the author pauses."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from tollkeeper.api.terminal.lsp.folder import Folder
from tollkeeper.api.terminal.lsp.positions import Places, path_of, uri_of
from tollkeeper.api.terminal.lsp.proving import prove_saved
from tollkeeper.grammar.diagnostics import Diagnostic

QUIET_S = 0.03
"""How long the author must pause before files are checked."""


class Teller:
    """Remembers what was published for each file, to publish only changes."""

    def __init__(self, server: LanguageServer, folder: Folder) -> None:
        self._server = server
        self._folder = folder
        self._uris: dict[Path, str] = {}
        self._told: dict[Path, tuple[tuple[Diagnostic, ...], int | None]] = {}
        self._closed_told = 0
        self._edits = 0
        self._proved: dict[Path, tuple[Diagnostic, ...]] = {}
        self._proving: asyncio.Task[None] | None = None

    async def take(self, uri: str) -> None:
        """Take a text from the editor."""
        path = path_of(uri)
        if self._proving is not None:
            self._proving.cancel()
        self._proved.clear()  # the edit may be in definitions that other files use
        self._uris[path] = uri
        self._folder.write(path, self._server.workspace.get_text_document(uri).source)
        await self.tell()

    def prove(self, uri: str) -> None:
        """Also prove a saved file and publish the findings, unless it is edited first."""
        path = path_of(uri)
        if self._proving is not None:
            self._proving.cancel()
        self._proving = asyncio.create_task(self._prove(path))

    async def _prove(self, path: Path) -> None:
        self._proved[path] = await prove_saved(path, self._folder.document(path))
        self._tell_of(path)

    async def tell(self) -> None:
        """Check each file and publish the findings, open files first, until the next edit."""
        folder = self._folder
        self._edits += 1
        mine = self._edits
        await asyncio.sleep(QUIET_S)
        for path in list(folder.open):
            if mine != self._edits:
                return
            self._tell_of(path)
            await asyncio.sleep(0)
        revision = folder.closed_revision
        closed = {*folder.paths(), *self._told} - folder.open.keys()
        for path in closed if revision != self._closed_told else ():
            if mine != self._edits:
                return
            self._tell_of(path)
            await asyncio.sleep(0)
        self._closed_told = revision

    def _tell_of(self, path: Path) -> None:
        uri = self._uris.get(path, uri_of(path))
        shown = self._server.workspace.text_documents.get(uri)
        document = self._folder.document(path)
        diagnostics = document.diagnostics if self._folder.text(path) is not None else ()
        diagnostics = (*diagnostics, *self._proved.get(path, ()))
        found = (diagnostics, None if shown is None else shown.version)
        if self._told.get(path, ((), None)) == found:
            return
        self._told[path] = found
        where = Places.of(document.text)
        listed = [shown_diagnostic(where, each) for each in diagnostics]
        self._server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, listed, found[1])
        )


def shown_diagnostic(where: Places, found: Diagnostic) -> lsp.Diagnostic:
    is_error = found.severity == "error"
    return lsp.Diagnostic(
        range=where.range(found.span),
        message=found.message if found.help is None else f"{found.message}\n{found.help}",
        severity=lsp.DiagnosticSeverity.Error if is_error else lsp.DiagnosticSeverity.Warning,
        code=found.code,
        source="toll",
        tags=[lsp.DiagnosticTag.Unnecessary] if found.code == "unused" else None,
    )
