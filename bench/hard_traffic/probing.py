"""Attackers who see each answer, and change the cheapest thing once they are stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappop, heappush
from itertools import accumulate
from random import Random
from typing import Any

from tollkeeper.api.terminal.traffic.attempts import Attempt, creation, update
from tollkeeper.api.terminal.traffic.stream import TrafficItem
from tollkeeper.api.terminal.traffic.world import Issuer
from tollkeeper.bench.hard_traffic.campaigns import (
    UNHIDDEN,
    Campaign,
    Kit,
    draw_banks,
    draw_gap,
    try_once,
)
from tollkeeper.bench.hard_traffic.scene import HardScene
from tollkeeper.bench.hard_traffic.stream import HardPlan, drawn_scene, hard_traffic

ATTACKERS = 4
"""The number of attackers per seed."""
LADDER: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "an e-mail address each": {"names": "fresh"},
    "an order and a person's amount each": {"orders": True, "values": "like_people"},
    "a browser's name each": {"clothes": "browsers"},
    "a fingerprint each": {"gadgets": "fresh"},
    "a server each": {"place": "hosts"},
    "a household's address each": {"place": "homes"},
    "a payment every 4 minutes": {"pace": "random", "gap": 240.0},
    "a payment every 16 minutes": {"gap": 960.0},
    "three shops": {"shops": 3},
}
"""An attacker's changes, the cheapest first; earlier ones are kept."""
_PLAN = replace(UNHIDDEN, orders=False)


@dataclass
class _Attacker:
    """Moves one rung up after two stopped payments in a row, since one may be chance."""

    chance: Random
    at: HardScene
    rungs: tuple[Campaign, ...]
    kit: Kit
    banks: list[Issuer]
    rung: int = 0
    tried: int = 0
    stopped: int = 0

    def attempt(self, when: float) -> Attempt:
        plan = self.rungs[self.rung]
        kit = replace(self.kit, shops=self.kit.shops[: plan.shops])
        return try_once(self.chance, self.at, plan, kit, self.banks, self.tried, when)

    def learn(self, was_stopped: bool) -> None:
        self.tried += 1
        self.stopped = self.stopped + 1 if was_stopped else 0
        if self.stopped == 2 and self.rung < len(self.rungs) - 1:
            self.rung, self.stopped = self.rung + 1, 0

    def gap(self) -> float:
        return draw_gap(self.chance, self.rungs[self.rung])


def probed_traffic(
    seed: int, start: datetime, plan: HardPlan, was_stopped: Callable[[], bool]
) -> Iterator[TrafficItem]:
    """Yield the hard traffic of a seed, with attackers who learn from answers.

    `was_stopped` is called after each of their payments. The kind of their items is their rung of
    the `LADDER`. A stopped payment has no outcome.
    """
    at = drawn_scene(seed, start)
    # When it is due, a sequence number, the attacker, and the attempt if this is its outcome.
    due: list[tuple[float, int, _Attacker, Attempt | None]] = []
    for number in range(ATTACKERS):
        attacker = _attacker(Random(f"{seed}/probing/{number}"), at)
        heappush(due, (attacker.chance.uniform(0.1, 0.6) * at.span.seconds, number, attacker, None))
    order = ATTACKERS
    for item in hard_traffic(seed, start, plan):
        while due and due[0][0] <= item.at:
            when, _, attacker, answered = heappop(due)
            rung = tuple(LADDER)[attacker.rung]
            if answered is not None:
                body = {"id": answered.id, **update(answered, start)}
                yield TrafficItem(when, {"update": body}, True, rung)
                continue
            attempt = attacker.attempt(when)
            yield TrafficItem(when, {"payment": creation(attempt, start)}, True, rung)
            stopped = was_stopped()
            attacker.learn(stopped)
            if attempt.is_reported and not stopped:
                heappush(due, (attempt.answered, order, attacker, attempt))
            if attacker.tried < _PLAN.attempts:
                heappush(due, (attempt.at + attacker.gap(), order + 1, attacker, None))
            order += 2
        yield item


def _attacker(chance: Random, at: HardScene) -> _Attacker:
    rungs = tuple(
        accumulate(LADDER.values(), lambda plan, changes: replace(plan, **changes), initial=_PLAN)
    )[1:]
    kit = Kit.drawn(chance, at, replace(_PLAN, shops=rungs[-1].shops))
    return _Attacker(chance, at, rungs, kit, draw_banks(chance, at))
