"""An account's own scorecard stands in the place of the shipped one, windows and all."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.load import shipped_scorecard
from tollkeeper.tests.api.http.service import NOW, Service, payment

pytestmark = pytest.mark.anyio

OWN = """scorecard bot_behaviour
  baseline 0.02
  let cards = distinct(payments.method.card.fingerprint by user.id over 24h)
  signal cards adds 1.0 when cards > 3
"""
SHIPPED = {plan.digest for plan in shipped_scorecard().reading.plan.series if plan.over}


async def pay(service: Service, id_: str) -> None:
    answer = await service.client.post("/v1/payments", json=payment(id=id_))
    assert answer.status_code == 201, answer.text


async def held(service: Service) -> set[str]:
    return {each.digest for each in (await service.engine.windows.status(1)).series}


async def test_the_shipped_ones_windows_are_held_only_while_it_decides(service: Service) -> None:
    assert await held(service) == SHIPPED
    published = await service.client.post("/v1/scorecards/bot_behaviour/versions", content=OWN)
    assert published.status_code == 201, published.text
    await service.client.put("/v1/scorecards/bot_behaviour/active", json={"version": 1})
    assert len(await held(service)) == 1
    await pay(service, "p-1")
    unpublished = await service.client.delete("/v1/scorecards/bot_behaviour/active")
    assert unpublished.status_code == 200
    assert await held(service) == SHIPPED
    await pay(service, "p-2")
    of_merchant = shipped_scorecard().reading.plan.windows[0]
    assert await service.engine.windows.read(1, NOW, [(of_merchant, ("m-1",))]) == (2,)
