"""All actors of a seed as one stream in time order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from random import Random

from tollkeeper.api.terminal.traffic.attempts import Attempt, TrafficSpan, creation, update
from tollkeeper.api.terminal.traffic.stream import TrafficItem
from tollkeeper.bench.hard_traffic.campaigns import CAMPAIGNS
from tollkeeper.bench.hard_traffic.crowd import CROWD
from tollkeeper.bench.hard_traffic.scene import HardScene, scene

Acts = Mapping[str, Callable[[Random, HardScene], list[Attempt]]]


@dataclass(frozen=True, slots=True)
class HardPlan:
    """The number of payments, and the families and kinds of people.

    The share of bots is drawn between `least` and `most`, low and high equally often on a
    logarithmic scale. Another `week` has the same shops and rates, with all actors drawn again.
    """

    families: tuple[str, ...]
    kinds: tuple[str, ...]
    payments: int = 12_000
    least: float = 0.001
    most: float = 0.3
    week: int = 0


EVERYDAY = ("single", "on_carrier", "in_app", "household", "regular")
"""The kinds that make up most of every shop's traffic."""
FIRST_HALF = HardPlan(
    families=(
        "library_lists",
        "driven_browser",
        "guessed_numbers",
        "rotating_lists",
        "patient_list",
        "accounts_by_the_dozen",
        "timed_replay",
        "behind_a_carrier",
    ),
    kinds=(*EVERYDAY, "lunch", "sale", "subscription", "counter", "corporate_buyer", "mistyper"),
)
SECOND_HALF = HardPlan(
    families=(
        "verifications",
        "bare_interface",
        "borrowed_headers",
        "spread_numbers",
        "warm_accounts",
        "one_order",
        "climber",
        "shared_cards",
    ),
    kinds=(
        *EVERYDAY,
        "private_browser",
        "assisted_sale",
        "new_orders",
        "verifier",
        "partner_server",
        "reseller",
        "abroad",
        "campus",
        "odd_name",
    ),
)


def hard_traffic(seed: int, start: datetime, plan: HardPlan) -> Iterator[TrafficItem]:
    """Yield the traffic of a seed from `start`, which has an offset; a seed always gives the same
    stream.
    """
    chance, drawn = _scene_of(seed, start)
    share = plan.least * (plan.most / plan.least) ** chance.random()
    bots = round(share * plan.payments)
    everyday = [each for each in plan.kinds if each in EVERYDAY]
    others = [each for each in plan.kinds if each not in EVERYDAY]
    crowded = chance.uniform(0.15, 0.4)
    people = plan.payments - bots
    of = f"{seed}/{plan.week}" if plan.week else f"{seed}"
    made = [
        *_draw_attempts(f"{of}/bots", drawn, CAMPAIGNS, plan.families, bots),
        *_draw_attempts(f"{of}/others", drawn, CROWD, others, round(crowded * people)),
        *_draw_attempts(f"{of}/everyday", drawn, CROWD, everyday, round((1 - crowded) * people)),
    ]
    happened = [(each.at, 0, each, kind) for each, kind in made]
    happened += [(each.answered, 1, each, kind) for each, kind in made if each.is_reported]
    happened.sort(key=itemgetter(0))
    for at, step, attempt, kind in happened:
        body = {"payment": creation(attempt, start)}
        if step == 1:
            body = {"update": {"id": attempt.id, **update(attempt, start)}}
        yield TrafficItem(at, body, kind in CAMPAIGNS, kind)


def drawn_scene(seed: int, start: datetime) -> HardScene:
    """Return the shops, issuers and networks of a seed."""
    return _scene_of(seed, start)[1]


def _scene_of(seed: int, start: datetime) -> tuple[Random, HardScene]:
    """Return the scene, and the random generator for the rest of the seed."""
    chance = Random(f"{seed}/scene")
    return chance, scene(chance, TrafficSpan(start, chance.choice((24, 48, 48, 96, 168))))


def _draw_attempts(
    seed: str, at: HardScene, acts: Acts, names: tuple[str, ...] | list[str], count: int
) -> list[tuple[Attempt, str]]:
    """Return about `count` attempts of actors of these names, all within the span.

    Each kind's share is drawn again: some seeds have many of one kind.
    """
    chance = Random(seed)
    shares = [chance.lognormvariate(0, 0.7) for _ in names]
    found: list[tuple[Attempt, str]] = []
    for name, share in zip(names, shares, strict=True):
        wanted, several = round(count * share / sum(shares)), list[Attempt]()
        number = 0
        while len(several) < wanted:
            acted = acts[name](Random(f"{seed}/{name}/{number}"), at)
            several += [each for each in acted if each.answered < at.span.seconds]
            number += 1
            if number > 20 * wanted + 20:
                break
        several.sort(key=lambda each: each.at)
        found += [(each, name) for each in several]
    return found
