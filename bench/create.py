"""Decide and store a payment as the API does."""

from __future__ import annotations

from tollkeeper.engine.decide import decide_payment
from tollkeeper.engine.intake.payment import Payment
from tollkeeper.engine.keep import keep
from tollkeeper.engine.programs.active import ActivePrograms
from tollkeeper.engine.runtime import Engine


async def create(engine: Engine, active: ActivePrograms, payment: Payment, arrived: int) -> None:
    decided = await decide_payment(engine, active.account.number, payment, arrived)
    await keep(engine, decided.pending)
