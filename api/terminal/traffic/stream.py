"""All actors' attempts as one stream in time order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from random import Random
from typing import Any, NamedTuple

from tollkeeper.api.terminal.traffic.attempts import (
    Attempt,
    TrafficSpan,
    creation,
    moment,
    update,
)
from tollkeeper.api.terminal.traffic.bots import FAMILIES
from tollkeeper.api.terminal.traffic.people import KINDS


class TrafficItem(NamedTuple):
    """Something that happens `at` seconds from the start.

    `body` is `{"payment": {…}}` as for `POST /payments`, or `{"update": {…}}` as for `PATCH
    /payments/{id}`, with the payment's `id`. `bot` is the payment's label, `kind` the attack family
    or the kind of legitimate traffic.
    """

    at: float
    body: dict[str, Any]
    bot: bool
    kind: str


@dataclass(frozen=True, slots=True)
class TrafficPlan:
    """How many actors of each kind take part, over how many hours."""

    hours: float = 24
    people: Mapping[str, int] = field(
        default_factory=lambda: {
            "single": 3500,
            "family": 350,
            "office": 30,
            "carrier": 2500,
            "app": 1800,
            "flash_sale": 2,
            "renewal": 3,
            "traveller": 150,
            "retrier": 150,
            "shared_computer": 25,
        }
    )
    bots: Mapping[str, int] = field(
        default_factory=lambda: {
            "naive_script": 3,
            "headless_browser": 4,
            "copied_headers": 4,
            "bin_enumeration": 2,
            "rotating": 3,
            "slow_and_low": 5,
            "account_farm": 3,
            "regular_replay": 4,
        }
    )

    def scaled(self, factor: float) -> TrafficPlan:
        """Return the plan with `factor` times the actors, at least one of each kind."""
        return replace(
            self, people=_scale_counts(self.people, factor), bots=_scale_counts(self.bots, factor)
        )


ONE_DAY = TrafficPlan()


def label_items(items: Iterable[TrafficItem], start: datetime) -> Iterator[dict[str, Any]]:
    """Yield the items as lines of a labelled history, as `toll fit` reads them."""
    for item in items:
        label = {"label": int(item.bot)} if "payment" in item.body else {}
        yield {**item.body, **label, "at": moment(start, item.at)}


def traffic(seed: int, start: datetime, plan: TrafficPlan = ONE_DAY) -> Iterator[TrafficItem]:
    """Yield the traffic of `plan` from `start`, which has an offset; a seed always gives the same
    stream.

    Nothing lies beyond the plan's hours.
    """
    span = TrafficSpan(start, plan.hours)
    made = [
        (attempt, bot, kind)
        for actors, acts, bot in ((plan.people, KINDS, False), (plan.bots, FAMILIES, True))
        for kind, count in actors.items()
        for attempt in _attempts(seed, kind, count, acts[kind], span)
        if attempt.answered < span.seconds
    ]
    happened = [(each[0].at, 0, *each) for each in made]
    happened += [(each[0].answered, 1, *each) for each in made]
    happened.sort(key=itemgetter(0))
    for at, step, attempt, bot, kind in happened:
        if step == 0:
            yield TrafficItem(at, {"payment": creation(attempt, start)}, bot, kind)
        else:
            body = {"id": attempt.id, **update(attempt, start)}
            yield TrafficItem(at, {"update": body}, bot, kind)


def _attempts(
    seed: int,
    kind: str,
    count: int,
    act: Callable[[Random, TrafficSpan], list[Attempt]],
    span: TrafficSpan,
) -> Iterator[Attempt]:
    """Yield each actor's attempts. Each has its own random generator, so that more actors of one
    kind change no others.
    """
    for number in range(count):
        yield from act(Random(f"{seed}/{kind}/{number}"), span)


def _scale_counts(actors: Mapping[str, int], factor: float) -> Mapping[str, int]:
    return {kind: max(1, round(count * factor)) for kind, count in actors.items()}
