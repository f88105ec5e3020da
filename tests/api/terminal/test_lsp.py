"""The language server over standard input and output, driven by a real client."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient

from tollkeeper.tests.api.terminal.editing import change, open_text, place, serve, write
from tollkeeper.tests.service.forked_toll import forked_toll

RULE = """rule shop
  use cards
  let large = currency == "USD" and amount > 100
  condition big "Too 😀 much" when large and busy then deny
  test "it"
    given large = true, busy = true
    expect deny by big
"""
CARDS = "definitions cards\n  let busy = count(payments by user.id over 1h) > 5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cards.rule").write_text(CARDS)
    (tmp_path / "shop.rule").write_text(RULE)
    return tmp_path


def test_an_author_reads_a_rule(folder: Path) -> None:
    shop = folder / "shop.rule"
    which = lsp.TextDocumentIdentifier(shop.as_uri())

    async def script(client: LanguageClient) -> None:
        assert not await open_text(client, shop, RULE)
        at = place(RULE, "busy then")
        found = await client.text_document_definition_async(lsp.DefinitionParams(which, at))
        assert [each.uri for each in found] == [(folder / "cards.rule").as_uri()]
        told = await client.text_document_hover_async(lsp.HoverParams(which, place(RULE, "amount")))
        assert "Amount with at most two decimals." in told.contents.value
        uses = await client.text_document_references_async(
            lsp.ReferenceParams(lsp.ReferenceContext(include_declaration=True), which, at)
        )
        assert len(uses) == 3
        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(which))
        assert [each.name for each in symbols] == ["cards", "large", "big", "it"]
        elsewhere = await client.workspace_symbol_async(lsp.WorkspaceSymbolParams("bus"))
        assert [each.name for each in elsewhere] == ["busy"]
        folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(which))
        assert [(each.start_line, each.end_line) for each in folds] == [(4, 6)]
        colours = await client.text_document_semantic_tokens_full_async(
            lsp.SemanticTokensParams(which)
        )
        assert list(colours.data[:5]) == [0, 0, 4, 0, 0]
        end = lsp.Position(99, 0)
        hints = await client.text_document_inlay_hint_async(
            lsp.InlayHintParams(which, lsp.Range(lsp.Position(0, 0), end))
        )
        assert [each.label for each in hints] == [": boolean"]

    serve(folder, script)


def test_an_author_writes_a_rule(folder: Path) -> None:
    shop = folder / "shop.rule"
    which = lsp.TextDocumentIdentifier(shop.as_uri())
    everywhere = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))

    async def script(client: LanguageClient) -> None:
        await open_text(client, shop, RULE)
        renamed = await client.text_document_rename_async(
            lsp.RenameParams(which, place(RULE, "busy then"), "hurried")
        )
        assert sorted(map(len, renamed.changes.values())) == [1, 2]
        emoji_line = renamed.changes[shop.as_uri()][0].range
        assert emoji_line.start == place(RULE, "busy then")
        with pytest.raises(JsonRpcException, match="is a word of the language"):
            await client.text_document_rename_async(
                lsp.RenameParams(which, place(RULE, "busy then"), "when")
            )
        with pytest.raises(JsonRpcException, match="`payments` is a field's name"):
            await client.text_document_rename_async(
                lsp.RenameParams(which, place(RULE, "busy then"), "payments")
            )
        half = 'rule shop\n  condition big when method.card.network == "'
        await write(client, shop, 2, half)
        offered = await client.text_document_completion_async(
            lsp.CompletionParams(which, place(half + "~", "~"))
        )
        assert "visa" in [each.label for each in offered]
        call = "rule shop\n  let x = ip_network(device.ip_address, "
        await write(client, shop, 3, call)
        help_ = await client.text_document_signature_help_async(
            lsp.SignatureHelpParams(which, place(call + "~", "~"))
        )
        assert help_.active_parameter == 1
        wrong = "rule shop\n  condition big when amount = 3 then deny\n"
        found = await write(client, shop, 4, wrong)
        assert [each.code for each in found] == ["single-equals"]
        actions = await client.text_document_code_action_async(
            lsp.CodeActionParams(which, everywhere, lsp.CodeActionContext(found))
        )
        assert {each.kind for each in actions} == {"quickfix", "source.fixAll"}
        assert "amount == 3" in actions[-1].edit.changes[shop.as_uri()][0].new_text
        by_itself = lsp.CodeActionTriggerKind.Automatic
        for only, kinds in (
            (None, {"quickfix"}),
            (["source.fixAll"], {"quickfix", "source.fixAll"}),
        ):
            context = lsp.CodeActionContext(found, only, by_itself)
            actions = await client.text_document_code_action_async(
                lsp.CodeActionParams(which, everywhere, context)
            )
            assert {each.kind for each in actions} == kinds
        loose = "rule shop\n condition big when amount==3 then deny"
        await write(client, shop, 5, loose)
        options = lsp.FormattingOptions(2, insert_spaces=True)
        laid_out = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(which, options)
        )
        assert "\n    when amount == 3\n    then deny\n" in laid_out[0].new_text
        begun = "rule shop\n  condition big\n    when amount == 3\n"
        await write(client, shop, 6, begun)
        indent = await client.text_document_on_type_formatting_async(
            lsp.DocumentOnTypeFormattingParams(which, lsp.Position(3, 0), "\n", options)
        )
        assert [each.new_text for each in indent] == ["    "]
        unsaved, text = "untitled:Untitled-1", "rule new\n  let big = score > 0.5\n"
        item = lsp.TextDocumentItem(unsaved, "toll", 1, text)
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        renamed = await client.text_document_rename_async(
            lsp.RenameParams(lsp.TextDocumentIdentifier(unsaved), place(text, "big"), "large")
        )
        assert list(renamed.changes) == [unsaved]

    serve(folder, script)


def test_a_change_of_definitions_is_told_in_the_files_that_use_them(folder: Path) -> None:
    shop, cards = folder / "shop.rule", folder / "cards.rule"

    async def script(client: LanguageClient) -> None:
        assert not await open_text(client, shop, RULE)
        await open_text(client, cards, CARDS)
        change(client, cards, 2, CARDS.replace("busy", "hurried"))
        while not client.diagnostics[shop.as_uri()]:
            await asyncio.sleep(0.01)
        assert "unknown-name" in [each.code for each in client.diagnostics[shop.as_uri()]]

    serve(folder, script)


def test_a_folder_that_the_editor_adds_later_is_read_until_it_is_removed(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    added = tmp_path_factory.mktemp("added")
    broken = added / "broken.rule"
    broken.write_text("rule broken\n  condition c when hurried then deny\n")
    change_of = lsp.WorkspaceFolder(added.as_uri(), added.name)

    async def told(client: LanguageClient, wanted: list[str | int | None]) -> None:
        while [each.code for each in client.diagnostics.get(broken.as_uri(), ())] != wanted:
            await asyncio.sleep(0.01)

    async def script(client: LanguageClient) -> None:
        for event, wanted in (
            (lsp.WorkspaceFoldersChangeEvent([change_of], []), ["unknown-name"]),
            (lsp.WorkspaceFoldersChangeEvent([], [change_of]), []),
        ):
            params = lsp.DidChangeWorkspaceFoldersParams(event)
            client.workspace_did_change_workspace_folders(params)
            await told(client, wanted)

    serve(folder, script)


def test_files_that_are_not_open_are_checked_as_well(folder: Path) -> None:
    shop, cards, shut = folder / "shop.rule", folder / "cards.rule", folder / "shut.rule"
    shut.write_text("rule shut\n  use cards\n  condition c when hurried then deny\n")

    async def told(client: LanguageClient, wanted: list[str | int | None]) -> None:
        while [each.code for each in client.diagnostics.get(shut.as_uri(), ())] != wanted:
            await asyncio.sleep(0.01)

    async def script(client: LanguageClient) -> None:
        await told(client, ["unknown-name"])
        await open_text(client, cards, CARDS)
        change(client, cards, 2, CARDS.replace("busy", "hurried"))
        await told(client, [])
        shut.unlink()
        await open_text(client, shop, RULE)
        await told(client, [])

    serve(folder, script)


def test_an_editor_that_can_watch_files_tells_of_what_others_write(folder: Path) -> None:
    shut = folder / "shut.rule"

    async def script(client: LanguageClient) -> None:
        asked: asyncio.Future[lsp.RegistrationParams] = asyncio.Future()

        @client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
        def _register(params: lsp.RegistrationParams) -> None:
            asked.set_result(params)

        (registration,) = (await asked).registrations
        assert registration.method == lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
        (watcher,) = registration.register_options["watchers"]
        assert watcher["globPattern"] == "**/*.rule"
        shut.write_text("rule shut\n  condition c when hurried then deny\n")
        event = lsp.FileEvent(shut.as_uri(), lsp.FileChangeType.Created)
        client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))
        while [each.code for each in client.diagnostics.get(shut.as_uri(), ())] != ["unknown-name"]:
            await asyncio.sleep(0.01)

    serve(folder, script, editor="emacs")


def test_what_ships_can_be_used_and_is_shown_but_not_renamed(folder: Path) -> None:
    shop = folder / "shop.rule"
    text = "rule shop\n  use velocity\n  condition c when payments_1h_per_card > 3 then deny\n"
    which = lsp.TextDocumentIdentifier(shop.as_uri())

    async def script(client: LanguageClient) -> None:
        assert not await open_text(client, shop, text)
        at = place(text, "payments_1h_per_card")
        found = await client.text_document_definition_async(lsp.DefinitionParams(which, at))
        assert [each.uri.rpartition("/")[2] for each in found] == ["velocity.rule"]
        with pytest.raises(JsonRpcException, match="comes with the service"):
            await client.text_document_rename_async(lsp.RenameParams(which, at, "cards_lately"))

    serve(folder, script)


def test_hostile_texts_leave_the_server_at_work(folder: Path) -> None:
    shop = folder / "shop.rule"
    which = lsp.TextDocumentIdentifier(shop.as_uri())

    async def script(client: LanguageClient) -> None:
        found = await open_text(client, shop, "rule a\n  let x = " + "(" * 262_000)
        assert found
        found = await write(client, shop, 2, "x" * 300_000)
        assert [each.code for each in found] == ["file-too-large"]
        emoji = 'rule a "😀'
        await write(client, shop, 3, emoji)
        middle = lsp.Position(0, emoji.index("😀") + 1)
        await client.text_document_hover_async(lsp.HoverParams(which, middle))
        await client.text_document_completion_async(lsp.CompletionParams(which, middle))
        far = lsp.Position(2**31 - 1, 2**31 - 1)
        await client.text_document_completion_async(lsp.CompletionParams(which, far))
        torn = [lsp.TextDocumentContentChangePartial(lsp.Range(middle, middle), "x")]
        which_one = lsp.VersionedTextDocumentIdentifier(4, shop.as_uri())
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(which_one, torn))
        await write(client, shop, 5, 'rule a "\ud83d"')
        for version in range(6, 1006):
            change(client, shop, version, RULE[: version % len(RULE)])
        while client.diagnostics[shop.as_uri()]:
            await write(client, shop, 1006, RULE)

    serve(folder, script)


def test_the_server_ends_in_order_with_its_editor(folder: Path) -> None:
    said = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    bodies = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in said]
    messages = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(each), each) for each in bodies)
    with forked_toll() as toll:
        ran = subprocess.run([toll, "lsp"], input=messages, capture_output=True, cwd=folder)
    assert (ran.returncode, ran.stderr) == (0, b"")
