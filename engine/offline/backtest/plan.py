"""What a replay needs of history, worked out before any of it is read.

Running a plan is left to others: `replay.py` runs it payment by payment, and an engine over columns
could run the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tollkeeper.engine.facts.facts import StoredFacts
from tollkeeper.engine.facts.fields_read import Access, facts_decoder, facts_of_series, facts_read
from tollkeeper.engine.journal.entries import Entry
from tollkeeper.engine.programs.loaded import LoadedRule, LoadedScorecard, Reading
from tollkeeper.engine.velocity.contract import Window
from tollkeeper.engine.velocity.replay_windows import ReplayedSeries
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


CARD_FINGERPRINT = ("card_fingerprint",)


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """`facts` decodes a stored payment; `reading` are the aggregates that the program reads.

    `update` decodes an update as far as `changing` reads it: the facts that an update can change
    and that a series reads, None without any.

    `kept` are the series, those of payments first; `events` are the types whose metrics it reads.

    `late` (µs) is how far behind the latest arrival a payment's time may be, `reach` (µs) how far before its first payment a replay must begin for its windows to be
    exact, None for all that is kept.
    """

    facts: Callable[[Entry], Any]
    reading: Reading
    kept: tuple[ReplayedSeries, ...]
    events: frozenset[str]
    late: int
    reach: int | None
    update: Callable[[Entry], Any]
    changing: Callable[[Any], Sequence[Any]] | None

    @property
    def windows(self) -> tuple[Window, ...]:
        return self.reading.plan.windows

    @property
    def reads_decisions(self) -> bool:
        """Whether history is asked for what was decided."""
        return any(each.plan.decided for each in self.kept)


def plan_rule(loaded: LoadedRule, vocabulary: Vocabulary, late: int) -> ReplayPlan:
    rule = loaded.rule
    # Keys of aggregates are read, whether or not a condition reads the let they stand in.
    roots = [*(each.when for each in rule.conditions), *(let.value for let in rule.lets)]
    return _plan(rule, loaded.reading, facts_read(roots, rule.lets, vocabulary), vocabulary, late)


def plan_scorecard(loaded: LoadedScorecard, vocabulary: Vocabulary, late: int) -> ReplayPlan:
    """A scorecard's plan decodes payments whole, for the rules that are decided again by it."""
    every: frozenset[Access] = frozenset((field,) for field in StoredFacts.__struct_fields__)
    every |= {field.access for field in vocabulary.payment.values()}
    return _plan(loaded.scorecard, loaded.reading, every, vocabulary, late)


def _plan(
    program: p.Rule | p.Scorecard,
    reading: Reading,
    read: frozenset[Access],
    vocabulary: Vocabulary,
    late: int,
) -> ReplayPlan:
    needs = dict(_series_kept(program, reading, vocabulary))
    kept = tuple(sorted(needs, key=lambda each: each.plan.event is not None))
    of_updated = frozenset().union(*(read for each, read in needs.items() if each.updated))
    changing = sorted(filter(_can_change, of_updated))
    longest = max((each.plan.over or 0 for each in kept), default=0)
    return ReplayPlan(
        facts=facts_decoder(read | COUNTED),
        reading=reading,
        kept=kept,
        events=frozenset(each.plan.event for each in kept if each.plan.event is not None),
        late=late,
        reach=None if any(each.plan.ages for each in kept) else longest + late if kept else 0,
        update=facts_decoder(of_updated),
        changing=_getter(changing) if changing else None,
    )


def _series_kept(
    program: p.Rule | p.Scorecard, reading: Reading, vocabulary: Vocabulary
) -> Iterator[tuple[ReplayedSeries, frozenset[Access]]]:
    """The series, each with the facts it reads."""
    digests = [window.series for window in reading.plan.windows]
    for plan in reading.plan.series:
        history = digests.index(plan.digest)
        series = program.histories[history].series
        bare = series.collection == "payments" and series.where is None and series.value is None
        read = facts_of_series(series, program.lets, vocabulary)
        updated = any(map(_can_change, read))
        yield ReplayedSeries(plan, history, bare and not plan.valued, updated), read


def _can_change(access: Access) -> bool:
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
