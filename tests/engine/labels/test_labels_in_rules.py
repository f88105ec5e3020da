"""Rules read what became known of payments, from the moment when it was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.explain.explain import explain
from tollkeeper.engine.journal.contract import Overloaded, Unavailable
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.source import Database
from tollkeeper.engine.labels.label import Label
from tollkeeper.engine.labels.set_label import set_label
from tollkeeper.tests.engine.happenings import bare, pay, update
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop
from tollkeeper.tests.postgres import own_database

RULE = """
rule checkout
  condition fraud_before
    when count(payments by method.card.fingerprint over 30d where label == "fraud") > 0 then deny
  condition known
    when first(payments by method.card.fingerprint where label == "legitimate") is missing
    or not first(payments by method.card.fingerprint where label == "legitimate") then allow
  otherwise challenge
"""
CHARGEBACK = """
event chargeback
  field payment_id: string required
  field stage: "chargeback" | "won" required
  label fraud of payment_id when stage == "chargeback"
  label none of payment_id when stage == "won"
"""

COUNTED = """
rule checkout
  let frauds = count(payments by merchant.id over 30d where label == "fraud")
  let both = count(payments by merchant.id over 30d where label == "fraud" and status == "declined")
  condition as_told when frauds == 2 and both == 2 then deny
  condition nothing when frauds == 0 and both == 0 then allow
  otherwise challenge
"""
Tell = Callable[[Shop, str], Awaitable[None]]


@asynccontextmanager
async def a_shop(source: Any, rule: str = RULE) -> AsyncIterator[Shop]:
    async with open_shop(source) as shop:
        if not shop.engine.state.accounts[shop.account].files:
            await shop.publish(CHARGEBACK, "event", "chargeback")
            await shop.publish(rule)
        yield shop


async def decided(shop: Shop, id_: str) -> str | None:
    shop.now += 1
    await pay(shop, id_, bare())
    found = await explain(shop.engine.journal, shop.engine.past_states, shop.account, id_)
    assert found is not None
    assert found.repeated
    return found.decision.action


async def by_label(shop: Shop, payment: str, label: Any, source: Any = "review") -> None:
    shop.now += 1
    await set_label(shop.engine, shop.account, payment, Label(source, label, shop.now, "test"))


async def by_event(shop: Shop, payment: str, stage: str) -> None:
    shop.now += 1
    await shop.happen({"type": "chargeback", "data": {"payment_id": payment, "stage": stage}})


def test_a_label_counts_from_when_it_was_told_until_it_is_taken_back(tmp_path: Path) -> None:
    async def live() -> None:
        async with a_shop(tmp_path) as shop:
            assert await decided(shop, "a") == "challenge"
            await by_label(shop, "a", "fraud")
            assert await decided(shop, "b") == "deny"
            # A weightier source that is sure counts.
            await by_label(shop, "a", "legitimate", "chargeback")
            assert await decided(shop, "c") == "allow"
            await by_label(shop, "a", None, "chargeback")
            assert await decided(shop, "d") == "deny"
            await by_label(shop, "a", None)
            assert await decided(shop, "e") == "challenge"

    asyncio.run(live())


def test_an_event_that_brings_a_label_is_read_at_once(tmp_path: Path) -> None:
    async def live() -> None:
        async with a_shop(tmp_path) as shop:
            assert await decided(shop, "a") == "challenge"
            await by_event(shop, "a", "chargeback")
            assert await decided(shop, "b") == "deny"
            await by_event(shop, "a", "won")
            assert await decided(shop, "c") == "challenge"
            await by_event(shop, "nobody", "chargeback")
            assert await decided(shop, "d") == "challenge"

    asyncio.run(live())


def test_an_update_keeps_the_label_and_a_start_knows_it(tmp_path: Path) -> None:
    async def live() -> None:
        async with a_shop(tmp_path) as shop:
            assert await decided(shop, "a") == "challenge"
            await by_label(shop, "a", "fraud")
            shop.now += 1
            await update(shop, "a", (0, "declined", None))
            assert await decided(shop, "b") == "deny"
        async with open_shop(tmp_path, shop.now) as again:
            assert await decided(again, "c") == "deny"
            await by_label(again, "a", None)
            assert await decided(again, "d") == "challenge"

    asyncio.run(live())


@pytest.mark.parametrize(
    "tell",
    [lambda shop: by_label(shop, "a", "fraud"), lambda shop: by_event(shop, "a", "chargeback")],
    ids=["label", "event"],
)
def test_a_label_that_cannot_be_kept_leaves_nothing(
    tmp_path: Path, tell: Callable[[Shop], Awaitable[None]]
) -> None:
    def refuse(*_: Any) -> Any:
        raise Unavailable("the disk is full")

    async def live() -> None:
        async with a_shop(tmp_path) as shop:
            assert await decided(shop, "a") == "challenge"
            journal: Any = shop.engine.journal
            journal.append = refuse
            with pytest.raises(Unavailable):
                await tell(shop)
            del journal.append
            assert await decided(shop, "b") == "challenge"

    asyncio.run(live())


def test_whatever_happens_to_payments_at_once_windows_count_what_the_journal_holds(
    tmp_path: Path,
) -> None:
    async def live(source: Database) -> None:
        async with a_shop(source, COUNTED) as shop:
            assert [await decided(shop, id_) for id_ in "ab"] == ["allow", "allow"]
            # Every read of the database lets the others go on.
            happened = [
                *(by_event(shop, id_, "chargeback") for id_ in "ab" for _ in range(4)),
                *(update(shop, id_, (0, "declined", None)) for id_ in "ab" for _ in range(2)),
                *(pay(shop, f"p-{number}", bare()) for number in range(8)),
                *(by_label(shop, id_, "fraud") for id_ in "ab"),
            ]
            await asyncio.gather(*happened)
            assert await decided(shop, "c") == "deny"
        async with open_shop(source, shop.now) as again:
            assert await decided(again, "d") == "deny"

    with own_database() as url:
        asyncio.run(live(Database(url, tmp_path)))


def test_a_payment_that_is_updated_before_its_label_has_room_in_the_journal_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def live() -> None:
        async with a_shop(tmp_path, COUNTED) as shop:
            assert [await decided(shop, id_) for id_ in "ab"] == ["allow", "allow"]
            append, refused = shop.engine.journal.append, []

            def append_later(entry: Entry, *given: Any) -> Any:
                if entry.kind == Kind.LABEL and entry.id not in refused:
                    refused.append(entry.id)
                    raise Overloaded("too many entries wait")
                return append(entry, *given)

            monkeypatch.setattr(shop.engine.journal, "append", append_later)
            happened = [
                happens
                for id_ in "ab"
                for happens in (
                    by_event(shop, id_, "chargeback"),
                    update(shop, id_, (0, "declined", None)),
                )
            ]
            await asyncio.gather(*happened)
            assert refused == ["a", "b"]
            assert await decided(shop, "c") == "deny"
        async with open_shop(tmp_path, shop.now) as again:
            assert await decided(again, "d") == "deny"

    asyncio.run(live())
