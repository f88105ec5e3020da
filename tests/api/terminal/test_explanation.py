"""`toll explain` and `toll eval --explain` give the reason first, with the values that made it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from tollkeeper.cli import main
from tollkeeper.tests.engine.offline.backtest.shop import NAME, Shop, open_shop

RULES = Path(__file__).parents[3] / "rules"
CURL = {"User-Agent": "curl/8.5.0", "Accept": "*/*"}


def payment(id_: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "type": "purchase",
        "currency": "BRL",
        "amount": 19.9,
        "method": {"type": "card"},
        "merchant": {"id": "m"},
        "analyze": {"bot_behaviour": True, "rule": {"name": NAME}},
    } | more


def with_card(number: int) -> dict[str, Any]:
    card = {"network": "visa", "presence": "card_not_present"}
    return {"type": "card", "card": card | {"bin": "40000000", "last_four": f"{number:04}"}}


def on_laptop(address: str) -> dict[str, Any]:
    return {"ip_address": address, "fingerprint": {"id": "laptop", "provider": "basic"}}


async def trade(shop: Shop) -> None:
    """Cards tried on one device, a quiet customer, a client with no screen, no analysis."""
    text = (RULES / "web_checkout.rule").read_text().replace("rule web_checkout", f"rule {NAME}")
    await shop.publish(text)
    for number in range(5):
        shop.now += 1_000_000
        sent = payment(f"try-{number}", method=with_card(number), user={"id": "u-1"})
        await shop.create(sent | {"device": on_laptop("198.51.100.7")})
    shop.now += 3_600_000_000
    await shop.create(payment("quiet", amount=480, user={"id": "u-2"}))
    device = {"ip_address": "203.0.113.9", "headers": CURL}
    analyze = {"bot_behaviour": True}
    await shop.create(payment("scripted", device=device, analyze=analyze))
    await shop.create(payment("unasked", analyze={}))
    await shop.publish(
        f"rule {NAME} condition a when device.ip_address is missing then allow otherwise deny"
    )
    await shop.create(payment("closed", device=device))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("shop")

    async def run() -> None:
        async with open_shop(path) as shop:
            await trade(shop)

    asyncio.run(run())
    return path


@pytest.mark.parametrize("id_", ["try-4", "quiet", "scripted", "unasked", "closed"])
def test_an_explanation_begins_with_its_reason(
    folder: Path, id_: str, snapshot: SnapshotAssertion
) -> None:
    done = CliRunner().invoke(main, ["explain", id_, "--account", "shop", "--data", str(folder)])
    assert done.exit_code == 0, done.output
    assert done.stdout == snapshot


RULE = """rule example
  let uses = count(payments by method.card.fingerprint over 1h)
  condition again "Used before" when uses > 1 and amount < 10 then deny
  condition risky when score >= 0.60 then challenge
"""
SCORECARD = "scorecard bot_behaviour baseline 0.1 signal small adds 1.5 when amount < 10"


def test_a_payment_tried_without_a_server_is_explained_alike(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "bot_behaviour.rule").write_text(SCORECARD)
    (tmp_path / "example.rule").write_text(RULE)
    sent = payment("before", timestamp="2026-01-01T11:30:00Z", method=with_card(1))
    (tmp_path / "history.jsonl").write_text(json.dumps({"payment": sent}) + "\n")
    tried = payment("p", timestamp="2026-01-01T12:00:00Z", method=with_card(1))
    history = str(tmp_path / "history.jsonl")
    command = ["eval", str(tmp_path / "example.rule"), "--history", history, "--explain"]
    done = CliRunner().invoke(main, command, input=json.dumps({"payment": tried}))
    assert done.exit_code == 0, done.output
    assert done.stdout == snapshot


SIGN_IN = """event sign_in
  field user_id: string required
  field result: string required
  let failed = result == "failure"
  metric failures = count(events by user_id over 1h where failed)
"""
NAMED_ALIKE = """rule example
  let failed = amount > 10
  condition both when (failed) and events.sign_in.failures[merchant.id] < 9 then deny
"""


def test_the_lets_that_a_condition_reads_in_brackets_are_shown_and_no_event_types_let(
    tmp_path: Path,
) -> None:
    (tmp_path / "sign_in.rule").write_text(SIGN_IN)
    (tmp_path / "example.rule").write_text(NAMED_ALIKE)
    command = ["eval", str(tmp_path / "example.rule"), "--score", "0.5", "--explain"]
    done = CliRunner().invoke(main, command, input=json.dumps({"payment": payment("p")}))
    assert [line.strip() for line in done.stdout.splitlines() if "let " in line] == [
        "let failed is true"
    ]
