"""The plan of a replay: what it needs of history, computed before any of it is read.

`replay.py` runs a plan payment by payment over any history, `engine/offline/columns/` over an
export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from tollkeeper.engine.facts.facts import StoredFacts
from tollkeeper.engine.facts.fields_read import Access, facts_decoder, facts_of_series, facts_read
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.programs.loaded import Reading, reading_of
from tollkeeper.engine.velocity.contract import SeriesPlan
from tollkeeper.grammar import program as p
from tollkeeper.grammar.vocabulary import Vocabulary

COUNTED: frozenset[Access] = frozenset(
    {
        ("payment", "status"),
        ("payment", "currency"),
        ("payment", "merchant", "id"),
        ("payment", "analyze", "bot_behaviour"),
        ("payment", "analyze", "rule", "name"),
        ("amount",),
    }
)
"""What the comparison reads of every payment."""
UPDATABLE: frozenset[str] = frozenset({"status", "method", "transactions"})
"""The fields of a payment that an update can change."""


class _Status(Struct, gc=False):
    status: str


class _StatusUpdate(Struct, gc=False):
    payment: _Status


_decode_updated = msgspec.json.Decoder(_StatusUpdate).decode

CARD_FINGERPRINT = ("card_fingerprint",)


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """`facts` decodes a stored payment; `reading` are the aggregates that the program reads.

    `events` are the types whose metrics it reads. `changing` gives the facts that an update can
    change and a series reads, None if there are none; `update` decodes the parts of an update that
    series read.

    `late` (µs) is how far behind the latest arrival a payment's event time may be. `reach` (µs) is
    how long before its first payment a replay must begin so that its windows are exact, None for
    all kept history.
    """

    facts: Callable[[Entry], Any]
    reading: Reading
    events: frozenset[str]
    late: int
    reach: int | None
    update: Callable[[Entry], Any]
    changing: Callable[[Any], Sequence[Any]] | None
    status: Callable[[Entry], str]
    read: frozenset[Access]

    @property
    def series(self) -> tuple[SeriesPlan, ...]:
        return self.reading.plan.series

    @property
    def reads_labels(self) -> bool:
        """Whether aggregates read labels."""
        return any(each.labelled for each in self.series)

    @property
    def reads_decisions(self) -> bool:
        """Whether aggregates read decisions."""
        return any(each.decided for each in self.series)


def plan_rule(rule: p.Rule, reading: Reading, vocabulary: Vocabulary, late: int) -> ReplayPlan:
    # Keys of aggregates are read whether or not a condition reads the let that contains them.
    roots = [*(each.when for each in rule.conditions), *(let.value for let in rule.lets)]
    read = facts_read(roots, rule.lets, vocabulary) | COUNTED
    return _plan(rule, reading, read, vocabulary, late)


def plan_windows(
    program: p.Rule | p.Scorecard,
    histories: Sequence[p.History],
    vocabulary: Vocabulary,
    late: int,
) -> ReplayPlan:
    """The plan of some of a program's aggregates alone."""
    windows = replace(program, histories=tuple(histories))
    keys = [key for history in histories for key in history.keys]
    read = facts_read(keys, program.lets, vocabulary)
    return _plan(windows, reading_of(windows, vocabulary), read, vocabulary, late)


def plan_scorecard(
    scorecard: p.Scorecard, reading: Reading, vocabulary: Vocabulary, late: int
) -> ReplayPlan:
    """The plan of a scorecard, which decodes whole payments, for the rules that decide again by its
    scores."""
    every: frozenset[Access] = frozenset((field,) for field in StoredFacts.__struct_fields__)
    every |= {field.access for field in vocabulary.payment.values()}
    return _plan(scorecard, reading, every | COUNTED, vocabulary, late)


def _plan(
    program: p.Rule | p.Scorecard,
    reading: Reading,
    read: frozenset[Access],
    vocabulary: Vocabulary,
    late: int,
) -> ReplayPlan:
    series = reading.plan.series
    digests = [window.series for window in reading.plan.windows]
    counted: frozenset[Access] = frozenset().union(
        *(
            facts_of_series(
                program.histories[digests.index(each.digest)].series, program.lets, vocabulary
            )
            for each in series
            if each.event is None
        )
    )
    changing = sorted(filter(can_change, counted))
    longest = max((each.over or 0 for each in series), default=0)
    return ReplayPlan(
        facts=facts_decoder(read),
        reading=reading,
        events=frozenset(each.event for each in series if each.event is not None),
        late=late,
        reach=None if any(each.ages for each in series) else longest + late if series else 0,
        update=facts_decoder(counted),
        changing=_getter(changing) if changing else None,
        status=_status_of,
        read=read | counted,
    )


def _status_of(entry: Entry) -> str:
    return _decode_updated(entry.body).payment.status


def can_change(access: Access) -> bool:
    """Whether an update can change the fact."""
    return access == CARD_FINGERPRINT or (access[0] == "payment" and access[1] in UPDATABLE)


def _getter(accesses: Sequence[Access]) -> Callable[[Any], Sequence[Any]]:
    """A function that gives the values of fields, None where what holds one is missing."""
    if all(len(access) == 1 for access in accesses):
        return attrgetter(*(access[0] for access in accesses))

    def values(facts: Any) -> Sequence[Any]:
        found = []
        for access in accesses:
            value = facts
            for name in access:
                value = None if value is None else getattr(value, name)
            found.append(value)
        return found

    return values
