"""What is proved of a rule once it is saved, and forgotten at the next edit."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types as lsp
from pytest_lsp import LanguageClient

from tollkeeper.tests.api.terminal.editing import open_text, serve, write

RULE = """rule shop
  condition by_few
    when count(payments by user.id over 10m) > count(payments by user.id over 1h)
    then deny

  condition small
    when amount < 5.00 and currency == "EUR"
    then deny

  must "small amounts pass"
    when amount < 5.00 and currency == "EUR"
    never deny
"""


def test_an_author_is_told_on_saving_what_no_payment_can_meet_and_what_breaks_a_promise(
    tmp_path: Path,
) -> None:
    shop = tmp_path / "shop.rule"
    shop.write_text(RULE)

    async def script(client: LanguageClient) -> None:
        assert not await open_text(client, shop, RULE)
        which = lsp.TextDocumentIdentifier(shop.as_uri())
        client.text_document_did_save(lsp.DidSaveTextDocumentParams(which))
        await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        found = client.diagnostics[shop.as_uri()]
        assert [(each.code, each.range.start.line) for each in found] == [
            ("never-met", 1),
            ("broken-must", 9),
        ]
        assert "expect deny by small" in found[1].message
        assert not await write(client, shop, 2, RULE + "\n")

    serve(tmp_path, script)
