"""What an assistant is given over a folder of rules, by a real client over standard input and output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, open_shop
from tollkeeper.tests.service.forked_toll import forked_toll
from tollkeeper.tests.service.process import PATIENCE_S

if TYPE_CHECKING:
    from mcp import Client

RULE = """rule draft
  condition dear when currency == "EUR" and amount > 100 then deny
  test "dear"
    given currency = "EUR", amount = 200
    expect deny by dear
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "draft.rule").write_text(RULE)
    payments = [
        {"payment": payment(f"p{number}", amount=90 + number * 10) | {"timestamp": at}}
        for number, at in enumerate(
            ["2026-01-01T11:30:00Z", "2026-01-01T11:31:00Z", "2026-01-01T11:32:00Z"]
        )
    ]
    (tmp_path / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in payments))
    return tmp_path


def payment(id_: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "type": "purchase",
        "currency": "EUR",
        "method": {"type": "card"},
        "merchant": {"id": "m"},
    } | more


def serve(folder: Path, script: Callable[[Client], Awaitable[None]], *options: str) -> None:
    # Every process that collects tests would spend half a second on it.
    from mcp import Client, StdioServerParameters

    async def run(toll: str) -> None:
        started = StdioServerParameters(command=toll, args=["mcp", str(folder), *options])
        async with Client(started) as client:
            await script(client)

    with forked_toll() as toll:
        asyncio.run(asyncio.wait_for(run(str(toll)), 3 * PATIENCE_S))


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool answers; its words when it refuses."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        return result.content[0].text
    found = result.structured_content
    return found["result"] if set(found) == {"result"} else found


def test_an_assistant_drafts_checks_tests_and_backtests_a_rule(folder: Path) -> None:
    async def script(client: Client) -> None:
        tools = [each.name for each in (await client.list_tools()).tools]
        assert tools == ["check", "fields", "test", "explain", "backtest"]
        draft = RULE.replace("==", "=", 1)
        (found,) = await call(client, "check", text=draft)
        assert found["code"] == "single-equals"
        assert found["fixes"]
        assert await call(client, "check", text=RULE) == []
        assert await call(client, "check", file="draft.rule") == []
        names = [each["name"] for each in await call(client, "fields", pattern="device.ip*")]
        assert names == ["device.ip_address"]
        run = await call(client, "test", file="draft.rule")
        assert [each["outcome"] for each in run["results"]] == ["passed"]
        report = await call(client, "backtest", file="draft.rule", history="history.jsonl")
        assert report["payments"]["payments"] == 3

    serve(folder, script)


def test_an_assistant_sees_no_file_outside_of_the_folder_and_is_told_what_is_wrong(
    folder: Path,
) -> None:
    inner = folder / "inner"
    inner.mkdir()

    async def script(client: Client) -> None:
        for file in ("../draft.rule", str(folder / "draft.rule"), "--help", "", "a\0", "a" * 5_000):
            assert "no file" in await call(client, "test", file=file)
        assert "null byte" in await call(client, "fields", pattern="a\0")
        assert "too long" in await call(client, "fields", pattern="a" * 200_000)
        assert "either a file or a text" in await call(client, "check")
        deep = "rule a\n  let x = " + "(" * 262_000
        assert await call(client, "check", text=deep)

    serve(inner, script)


def test_an_assistant_reads_why_a_stored_payment_was_denied(folder: Path) -> None:
    data = folder / "data"

    async def trade() -> None:
        async with open_shop(data) as shop:
            await deny_one(shop)

    async def deny_one(shop: Shop) -> None:
        await shop.publish(RULE.replace("rule draft", f"rule {NAME}"))
        analyze = {"bot_behaviour": True, "rule": {"name": NAME}}
        await shop.create(payment("dear-one", amount=200, analyze=analyze))

    asyncio.run(trade())

    async def script(client: Client) -> None:
        said = await call(client, "explain", payment_id="dear-one", account="shop")
        assert "dear" in json.dumps(said)
        assert "no payment" in await call(client, "explain", payment_id="none", account="shop")

    serve(folder, script, "--data", str(data))
