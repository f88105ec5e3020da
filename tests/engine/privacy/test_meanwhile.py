"""What arrives while a person is erased, or old payments are purged, is counted as after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.privacy import erasure
from tollkeeper.engine.privacy.retention import purge_account
from tollkeeper.engine.publish.set_settings import ChangeSettings
from tollkeeper.tests.engine.happenings import DAY, bare, label, pay, update
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop
from tollkeeper.tests.engine.test_open import held, killed

pytestmark = pytest.mark.anyio

RULE = """
rule checkout
  condition every_aggregate
    when count(payments by merchant.id over 3d) > 99
      or count(payments by merchant.id over 3d where status == "declined") > 99
      or sum(payments.amount by merchant.id over 3d where label == "fraud") > 99
      or count(payments by method.card.fingerprint over 3d) > 99
      or age(payments by merchant.id where status == "declined") > 99d
    then deny
"""
PAYMENTS = 12


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Meanwhile:
    """Each time that an operation has waited for the journal `every` times, something else begins, and
    gets as far as it can; not for ever, so that the operation ends."""

    def __init__(self, shop: Shop, begin: Callable[[int], Awaitable[None]], every: int) -> None:
        self._every = every
        self._run = shop.engine.journal.run
        self._begin = begin
        self._waits = 0
        self._begun: list[asyncio.Task[Any]] = []
        self._operation: asyncio.Task[Any] | None = None
        journal: Any = shop.engine.journal
        journal.run = self._interrupted

    async def _interrupted(self, work: Any) -> Any:
        if asyncio.current_task() is self._operation:
            self._waits += 1
        if self._waits == self._every and len(self._begun) < 2 * PAYMENTS:
            self._waits = 0
            begun = asyncio.ensure_future(self._begin(len(self._begun)))
            self._begun.append(begun)
            # Longer than any takes that need not wait for the operation.
            await asyncio.wait([begun], timeout=0.05)
        return await self._run(work)

    async def during(self, operation: Awaitable[Any]) -> int:
        """Do the operation; returns how much happened meanwhile."""
        self._operation = asyncio.ensure_future(operation)
        await self._operation
        await asyncio.gather(*self._begun)
        return len(self._begun)


async def as_after_a_restart(shop: Shop, folder: Path) -> None:
    live = await held(shop)
    async with open_shop(killed(folder / "live", folder / "killed"), shop.now) as again:
        assert await held(again) == live


async def happen(shop: Shop, what: str, number: int) -> None:
    id_ = f"p-{number % PAYMENTS}"
    match what:
        case "update":
            await update(shop, id_, (0, "declined", "2222"))
        case "label":
            await label(shop, id_, "review", "fraud")
        case "payment":
            await pay(shop, f"new-{number}", bare())
            await update(shop, f"new-{number - 3}", (0, "declined", "2222"))


@pytest.mark.parametrize(("what", "every"), [("update", 3), ("label", 3), ("payment", 1)])
async def test_what_happens_during_an_erasure_is_counted_once(
    tmp_path: Path, what: str, every: int
) -> None:
    async with open_shop(tmp_path / "live") as shop:
        await shop.publish(RULE)
        for number in range(PAYMENTS):
            await pay(shop, f"p-{number}", bare())
        meanwhile = Meanwhile(shop, lambda number: happen(shop, what, number), every)
        erasing = erasure.erase_user(shop.engine, shop.account, "test", "u")
        assert await meanwhile.during(erasing)
        await as_after_a_restart(shop, tmp_path)


@pytest.mark.parametrize("what", ["update", "label"])
async def test_what_happens_to_payments_that_are_purged_goes_with_them(
    tmp_path: Path, what: str
) -> None:
    async with open_shop(tmp_path / "live") as shop:
        await shop.do(ChangeSettings("shop", {"retention_days": 2}))
        await shop.publish(RULE)
        for number in range(PAYMENTS):
            await pay(shop, f"p-{number}", bare())
        shop.now += 2 * DAY + 1
        await pay(shop, "new", bare())
        meanwhile = Meanwhile(shop, lambda number: happen(shop, what, number), 1)
        purging = purge_account(shop.engine, shop.account)
        assert await meanwhile.during(purging)
        await as_after_a_restart(shop, tmp_path)
