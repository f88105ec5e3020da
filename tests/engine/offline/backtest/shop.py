"""A shop that is live on a real journal: its clock follows the traffic that is sent to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tollkeeper.api.terminal.traffic import ONE_DAY, TrafficItem, traffic
from tollkeeper.engine.decide import decide_payment
from tollkeeper.engine.events.accept import counted_event
from tollkeeper.engine.events.submission import Event, read_event
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.intake.payment import Payment, Update
from tollkeeper.engine.intake.read import read_creation, read_update
from tollkeeper.engine.keep import keep
from tollkeeper.engine.open import open_engine, rebuild
from tollkeeper.engine.programs.event_versions import EventVersionPlan
from tollkeeper.engine.publish.accounts import CreateAccount
from tollkeeper.engine.publish.activate import Store
from tollkeeper.engine.publish.verbs import Effect, Verb
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.shadows.evaluate import queue_shadows
from tollkeeper.engine.update import UpdatedPayment, merge_update

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
EVENING = replace(ONE_DAY.scaled(0.01), hours=4, bots={"bin_enumeration": 1, "naive_script": 1})
NAME = "checkout"


@dataclass
class Shop:
    engine: Engine
    now: int = to_microseconds(START)

    @property
    def account(self) -> int:
        return self.engine.state.numbers["shop"]

    async def publish(self, text: str, kind: Any = "rule", name: str = NAME) -> None:
        done = await self.do(Store("shop", kind, name, text, activate=True))
        assert done.version is not None

    async def publish_later(self, text: str, kind: Any, name: str) -> None:
        """A breaking version, in force a moment from now."""
        planned = EventVersionPlan(breaking=True, applies_from=self.now + 1)
        await self.do(Store("shop", kind, name, text, True, None, planned))

    async def do(self, verb: Verb) -> Effect:
        return await verb.perform(self.engine, "test", lambda _share: None)

    async def receive(self, item: TrafficItem, rule: str | None = NAME) -> None:
        """One request, as HTTP would bring it."""
        self.now = max(self.now + 1, to_microseconds(START) + round(item.at * 1_000_000))
        if "payment" in item.body:
            analyze: dict[str, Any] = {"bot_behaviour": True}
            if rule is not None:
                analyze["rule"] = {"name": rule}
            await self.create({**item.body["payment"], "analyze": analyze})
        else:
            sent = dict(item.body["update"])
            await self.update(sent.pop("id"), sent)

    async def create(self, sent: dict[str, Any]) -> None:
        payment = read_creation(json.dumps({"payment": sent}).encode(), self.now)
        assert isinstance(payment, Payment), payment
        decided = await decide_payment(self.engine, self.account, payment, self.now)
        await keep(self.engine, decided.pending)
        queue_shadows(self.engine, decided)

    async def update(self, id_: str, sent: dict[str, Any]) -> None:
        change = read_update(json.dumps({"payment": sent}).encode(), self.now)
        assert isinstance(change, Update), change
        async with self.engine.locks.of("payment", self.account, id_):
            updated = await merge_update(self.engine, self.account, id_, change, self.now)
            assert isinstance(updated, UpdatedPayment), updated
            await keep(self.engine, updated.pending)

    async def happen(self, sent: dict[str, Any]) -> None:
        """An event, the body of `POST /events`."""
        active = self.engine.active[self.account]
        event = read_event(json.dumps({"event": sent}).encode(), self.now, active)
        assert isinstance(event, Event), event
        async with counted_event(self.engine, active, event, self.now) as (pending, _):
            await keep(self.engine, pending)


@asynccontextmanager
async def open_shop(folder: Path, moment: int = to_microseconds(START)) -> AsyncIterator[Shop]:
    clock: list[Shop] = []
    async with open_engine(
        folder, "test", clock=lambda: clock[0].now if clock else moment
    ) as engine:
        shop = Shop(engine, moment)
        clock.append(shop)
        if "shop" not in engine.state.numbers:
            await shop.do(CreateAccount("shop"))
        await rebuild(engine, lambda _share: None)
        yield shop


def evening(seed: int) -> Iterable[TrafficItem]:
    return traffic(seed, START, EVENING)
