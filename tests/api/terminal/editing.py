"""An editor's side of scripted sessions with the language server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from tollkeeper.tests.service.forked_toll import forked_toll
from tollkeeper.tests.service.process import PATIENCE_S


def serve(
    folder: Path,
    script: Callable[[LanguageClient], Awaitable[None]],
    *options: str,
    editor: str = "neovim",
) -> None:
    """Runs a script against a server that has the folder open."""

    async def run(toll: str) -> None:
        client = make_test_lsp_client()
        await client.start_io(toll, "lsp", *options)
        root = lsp.WorkspaceFolder(folder.as_uri(), folder.name)
        await client.initialize_session(
            lsp.InitializeParams(client_capabilities(editor), workspace_folders=[root])
        )
        await script(client)
        await client.shutdown_session()
        await client.stop()

    with forked_toll() as toll:
        asyncio.run(asyncio.wait_for(run(str(toll)), 3 * PATIENCE_S))


async def open_text(client: LanguageClient, path: Path, text: str) -> list[lsp.Diagnostic]:
    """Opens a text; gives what the server finds in it."""
    item = lsp.TextDocumentItem(path.as_uri(), "toll", 1, text)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return list(client.diagnostics[path.as_uri()])


async def write(
    client: LanguageClient, path: Path, version: int, text: str
) -> list[lsp.Diagnostic]:
    change(client, path, version, text)
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return list(client.diagnostics[path.as_uri()])


def change(client: LanguageClient, path: Path, version: int, text: str) -> None:
    which = lsp.VersionedTextDocumentIdentifier(version, path.as_uri())
    whole = [lsp.TextDocumentContentChangeWholeDocument(text)]
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(which, whole))


def place(text: str, part: str) -> lsp.Position:
    """Where the part begins, in UTF-16 units."""
    before = text[: text.index(part)]
    line = before.rpartition("\n")[2]
    return lsp.Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)
