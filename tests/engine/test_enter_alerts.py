"""A start enters the alerts that a crash kept out of the outbox, and reads only what can have raised one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tollkeeper.engine.enter_alerts import recover_alerts
from tollkeeper.engine.instants import HOUR
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.monitors import outbox
from tollkeeper.engine.monitors.outbox import Alert
from tollkeeper.tests.engine.happenings import bare, instant, pay
from tollkeeper.tests.engine.offline.backtest.shop import Shop, open_shop

pytestmark = pytest.mark.anyio

SIGN_IN = """event sign_in
  field user_id: string required
  metric signs = count(events by user_id over 1h)
  monitor many when signs >= 1
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def sign_in(shop: Shop, user: str) -> None:
    shop.now += 1
    sent = {"type": "sign_in", "data": {"user_id": user}, "timestamp": instant(shop.now)}
    await shop.happen(sent)


async def alerts(shop: Shop) -> list[Alert]:
    return await shop.engine.outbox.read(
        lambda connection: [*outbox.alerts(connection, shop.account, None, 100)]
    )


async def forget_alerts(shop: Shop) -> None:
    await shop.engine.outbox.write(lambda connection: connection.execute("DELETE FROM alerts"))
    await shop.engine.outbox.write(
        lambda connection: connection.execute("UPDATE noted SET place = 0")
    )


async def records_read(shop: Shop) -> list[int]:
    """The sequence numbers of the records that are read for alerts."""
    journal: Any = shop.engine.journal
    replay, found = journal.replay, []

    def watched(**options: Any) -> Iterator[list[Entry]]:
        for batch in replay(**options):
            found.extend(entry.sequence for entry in batch if entry.kind != Kind.CHANGE)
            yield batch

    journal.replay = watched
    try:
        await recover_alerts(shop.engine)
    finally:
        del journal.replay
    return found


async def test_records_of_before_the_first_event_type_are_not_read_for_alerts(
    tmp_path: Path,
) -> None:
    async with open_shop(tmp_path / "live") as shop:
        for number in range(3):
            shop.now += 1
            await pay(shop, f"p-{number}", bare())
        assert await records_read(shop) == []
        shop.now += HOUR
        await shop.publish(SIGN_IN, "event", "sign_in")
        published = shop.engine.journal.last_sequence()
        for user in ("u", "v"):
            await sign_in(shop, user)
        raised = await alerts(shop)
        assert len(raised) == 2
        await forget_alerts(shop)
        assert await records_read(shop) == [published + 1, published + 2]
        assert await alerts(shop) == raised
