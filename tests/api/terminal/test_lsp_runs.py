"""What an editor runs and shows of it: tests, coverage, a backtest, the change since the last commit."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient

from tollkeeper.tests.api.terminal.editing import open_text, place, serve, write
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, open_shop
from tollkeeper.tests.service.process import new_key, serving

RULE = f"""rule {NAME}
  let tries = count(payments by user.id over 1h)
  condition many "Too many" when tries > 3 and amount is present then deny
  condition odd when type == "verify" then challenge
  test "many"
    given tries = 4, amount = 1
    expect deny by many
  test "wrong"
    given tries = 4
    expect allow
"""
EVERYWHERE = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))


async def trade(shop: Shop) -> None:
    """Five payments, one of them a verification without an amount."""
    await shop.publish(RULE)
    for number in range(5):
        shop.now += 1_000_000
        amount = {} if number == 4 else {"amount": 10 + number}
        await shop.create(
            {
                "id": f"p{number}",
                "type": "verify" if number == 4 else "purchase",
                "currency": "EUR",
                "method": {"type": "card"},
                "merchant": {"id": "m"},
                "user": {"id": "u-secret"},
                "analyze": {"bot_behaviour": True, "rule": {"name": NAME}},
                **amount,
            }
        )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data")

    async def run() -> None:
        async with open_shop(path) as shop:
            await trade(shop)

    asyncio.run(run())
    return path


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    path = tmp_path / f"{NAME}.rule"
    path.write_text(RULE)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True)
    return path


async def run_lens(client: LanguageClient, lens: lsp.CodeLens) -> str:
    command = lens.command
    assert command is not None
    said: str = await client.workspace_execute_command_async(
        lsp.ExecuteCommandParams(command.command, command.arguments)
    )
    return said


async def hints(client: LanguageClient, which: lsp.TextDocumentIdentifier) -> list[str]:
    found = await client.text_document_inlay_hint_async(lsp.InlayHintParams(which, EVERYWHERE))
    return [str(each.label) for each in found]


async def lenses(client: LanguageClient, path: Path) -> list[lsp.CodeLens]:
    which = lsp.TextDocumentIdentifier(path.as_uri())
    return list(await client.text_document_code_lens_async(lsp.CodeLensParams(which)))


def test_an_author_runs_tests_and_sees_outcome_and_coverage_in_the_text(rule: Path) -> None:
    which = lsp.TextDocumentIdentifier(rule.as_uri())

    async def script(client: LanguageClient) -> None:
        await open_text(client, rule, RULE)
        offered = await lenses(client, rule)
        titles = [each.command.title for each in offered if each.command]
        assert titles == [
            "run the tests",
            "show what they cover",
            "show what changed",
            "run",
            "run",
        ]
        assert await hints(client, which) == [": number from 0"]
        said = await run_lens(client, offered[0])
        assert "2 tests, 1 failed" in said
        shown = await hints(client, which)
        assert " passed" in shown
        assert any(each.startswith(" failed: expected") for each in shown)
        assert any("never met" in each for each in shown)
        assert "1 test, all passed" in await run_lens(client, offered[3])
        assert any(each.startswith(" failed") for each in await hints(client, which))
        assert "never met" in await run_lens(client, offered[1])

    serve(rule.parent, script)


@pytest.mark.parametrize("which", ["run the tests", "run", "show what they cover"])
def test_a_lens_that_the_author_cancels_ends_its_process(which: str, tmp_path: Path) -> None:
    """The history is a pipe to which nothing is written, so that the test waits for ever."""
    path, history = tmp_path / "shop.rule", tmp_path / "history.json"
    os.mkfifo(history)
    given = 'test "waits"\n    given history "history.json"\n    expect default\n'
    path.write_text(f"rule shop\n  condition c when score > 0.5 then deny\n  {given}")

    async def opened() -> int:
        while True:
            with suppress(OSError):  # nobody reads it yet
                return os.open(history, os.O_WRONLY | os.O_NONBLOCK)
            await asyncio.sleep(0.01)

    async def closed(pipe: int) -> None:
        with suppress(BrokenPipeError):
            while True:
                os.write(pipe, b" ")
                await asyncio.sleep(0.01)

    async def script(client: LanguageClient) -> None:
        await open_text(client, path, path.read_text())
        offered = [each.command for each in await lenses(client, path) if each.command]
        command = next(each for each in offered if each.title == which)
        asked = lsp.ExecuteCommandParams(command.command, command.arguments)
        waiting = client.protocol.send_request_async(
            lsp.WORKSPACE_EXECUTE_COMMAND, asked, msg_id="asked"
        )
        running = asyncio.ensure_future(waiting)
        pipe = await opened()
        client.cancel_request(lsp.CancelParams("asked"))
        try:
            await asyncio.wait_for(closed(pipe), 20)
        finally:
            os.close(pipe)
        with pytest.raises(JsonRpcException, match="canceled"):
            await running

    serve(tmp_path, script)


def test_an_author_sees_what_changed_in_meaning_since_the_last_commit(rule: Path) -> None:
    changed = RULE.replace("tries > 3", "tries > 5")

    async def script(client: LanguageClient) -> None:
        await open_text(client, rule, changed)
        said = await run_lens(client, (await lenses(client, rule))[2])
        assert said == "changed condition `many` threshold: 3 → 5"
        await write(client, rule, 2, RULE.replace("  let", "\n  let"))
        said = await run_lens(client, (await lenses(client, rule))[2])
        assert said == "the same as in the last commit"
        new = rule.with_name("new.rule")
        await open_text(client, new, RULE)
        said = await run_lens(client, (await lenses(client, new))[2])
        assert said == "new.rule is not in the last commit"

    serve(rule.parent, script)


def test_an_author_sees_costs_and_the_figures_of_an_account_but_no_text_of_it(
    rule: Path, data: Path
) -> None:
    which = lsp.TextDocumentIdentifier(rule.as_uri())

    async def script(client: LanguageClient) -> None:
        await open_text(client, rule, RULE)

        async def said_of(part: str) -> str:
            found = await client.text_document_hover_async(
                lsp.HoverParams(which, place(RULE, part))
            )
            return str(found.contents.value)

        cost = "Keeps 1d 2h of payments in memory: about 145 bytes a key, 8.5 for each further one."
        assert cost in await said_of("count(")
        assert cost in await said_of("tries > 3")
        of_type = await said_of('type == "verify"')
        assert "In 100% of the newest 5 payments." in of_type
        assert "`purchase` 80%, `verify` 20%" in of_type
        of_amount = await said_of("amount is present")
        assert "In 80% of the newest 5 payments." in of_amount
        assert "Quarters: 10." in of_amount
        assert "u-secret" not in await said_of("user.id")
        offered = [each for each in await lenses(client, rule) if each.command]
        titles = [each.command.title for each in offered if each.command]
        said = await run_lens(client, offered[titles.index("backtest on shop")])
        assert said.startswith("**checkout** over 0 payments")

    serve(rule.parent, script, "--account", "shop", "--data", str(data))


def test_an_author_sees_the_figures_of_a_running_service(
    rule: Path, data: Path, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text(new_key(data, "payments:read") + "\n")
    which = lsp.TextDocumentIdentifier(rule.as_uri())

    async def script(client: LanguageClient) -> None:
        await open_text(client, rule, RULE)
        asked = lsp.HoverParams(which, place(RULE, 'type == "verify"'))
        said = ""
        while "newest" not in said:
            found = await client.text_document_hover_async(asked)
            said = str(found.contents.value)
        assert "In 100% of the newest 5 payments." in said
        assert "`purchase` 80%, `verify` 20%" in said

    with serving(data) as service:
        serve(rule.parent, script, "--url", service.url, "--key-file", str(key))


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://127.0.0.1:1", "key"),
        ("http://127.0.0.1:1", "é"),
        ("no address", "key"),
        ("http://[", "key"),
    ],
)
def test_a_service_that_does_not_answer_is_told_of_once_and_hovering_goes_on(
    url: str, key: str, rule: Path, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(key)
    which = lsp.TextDocumentIdentifier(rule.as_uri())

    async def script(client: LanguageClient) -> None:
        await open_text(client, rule, RULE)
        asked = lsp.HoverParams(which, place(RULE, 'type == "verify"'))
        for _ in range(3):
            found = await client.text_document_hover_async(asked)
            assert found.contents.value
        (said,) = client.messages
        assert said.message.startswith("the account's figures can't be read: ")

    serve(rule.parent, script, "--url", url, "--key-file", str(file))
