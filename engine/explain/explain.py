"""Explain a stored decision, from the versions and values that it recorded.

The account's lists, rates and time zone are those as of the payment's sequence number, so that the
explanation stays the same whatever is changed later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tollkeeper.engine.decision import AppliedRule, Decision
from tollkeeper.engine.explain.evidence import (
    AggregateRead,
    aggregate_reads,
    list_records,
    list_without_records,
)
from tollkeeper.engine.facts.facts import Facts
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.labels.label import verdict_in
from tollkeeper.engine.programs.active import SCORECARD_NAME
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.explain import (
    ExplainedHistory,
    Inputs,
    RuleExplanation,
    ScorecardExplanation,
    Sources,
    explain_rule,
    explain_scorecard,
)
from tollkeeper.engine.programs.load import (
    shipped_program,
    shipped_scorecard,
    shipped_text,
)
from tollkeeper.engine.programs.loaded import Reading, reading_of
from tollkeeper.engine.registry.changes import ProgramKind, Thresholds
from tollkeeper.engine.registry.environments import PastEnvironments
from tollkeeper.engine.registry.past_states import PastStates
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account, Version
from tollkeeper.engine.registry.trials import Decider
from tollkeeper.engine.stored_records import StoredRecords, state_of
from tollkeeper.engine.velocity.contract import Record
from tollkeeper.engine.velocity.plan import Plan
from tollkeeper.grammar.program import Rule, Scorecard, Value

LOOKED_THROUGH = 2_000
"""The most journal entries that are read to list what was counted."""

NOTHING_READ: tuple[Reading, list[AggregateRead]] = (
    Reading(Plan((), ()), lambda _facts, _environment: ()),
    [],
)

# So many are kept: none holds anything of a person.
_PROGRAMS = 16


class Past(NamedTuple):
    """A decision to explain, with the account's state as of then and the environments up to then."""

    journal: Journal
    account: Account
    created: Entry
    facts: Facts
    decision: Decision
    environments: PastEnvironments

    def label_of(self, payment_id: str) -> str | None:
        """The label of another payment when the decision was made."""
        account, up_to = self.created.account, self.created.sequence
        return verdict_in(self.journal.record_entries(account, Kind.LABEL, payment_id, up_to))


class StoredProgram(NamedTuple):
    """A stored version's program, with what is computed from it once."""

    program: Rule | Scorecard
    reading: Reading
    digests: Digests


class Explanation(Struct, frozen=True):
    """`arrived` in µs. `scorecard` and `rule` are None where the payment had none.

    `repeated` says whether evaluating again gave the same decision: it does, unless the person's
    data were erased.
    """

    payment: str
    arrived: int
    decision: Decision
    thresholds: Thresholds
    scorecard: ScorecardExplanation | None
    rule: RuleExplanation | None
    repeated: bool


async def explain(
    journal: Journal, past_states: PastStates, account: int, payment_id: str
) -> Explanation | None:
    """The explanation of a payment's decision; None without such a payment."""
    past = await past_of(journal, past_states, account, payment_id)
    return None if past is None else await asyncio.to_thread(_explain, past)


async def past_of(
    journal: Journal, past_states: PastStates, account: int, payment_id: str
) -> Past | None:
    """The payment's decision; None without a payment of this id."""
    states = await journal.states(account, payment_id)
    if not states:
        return None
    created = states[0]
    if created.sequence > journal.last_sequence():
        # The changes before the payment may not be on disk yet either.
        await journal.flush()
    pages = [
        await journal.latest(each, Kind.CHANGE, cursor=created.sequence, limit=1)
        for each in await asyncio.to_thread(past_states.owners, account)
    ]
    last = max(page.entries[0].sequence for page in pages)
    return await asyncio.to_thread(_past, journal, past_states, created, last)


def _past(journal: Journal, past_states: PastStates, created: Entry, last_change: int) -> Past:
    state, number = state_of(created, created), created.account
    then = past_states.at(number, last_change).accounts[number]
    environments = PastEnvironments(journal, past_states, then)
    return Past(journal, then, created, state.payment, state.decision or Decision(), environments)


def history_reads(past: Past, of: Decider) -> tuple[Reading, list[AggregateRead]]:
    """The aggregates that the rule or the scorecard read for the decision; none without one."""
    decision, facts = past.decision, past.facts
    if decision.score is None:
        return NOTHING_READ
    if of == "scorecard":
        program, _, known = _scorecard(past.account, decision.scorecard)
        values: Sequence[Value | None] = decision.reads[: len(program.histories)]
    elif decision.rule is None:
        return NOTHING_READ
    else:
        rule, _, known = _rule(past.account, decision.rule)
        values = _values(rule, decision.reads)
    reading = known.reading
    keys = reading.keys(facts, past.environments.at(past.created.sequence))
    return reading, aggregate_reads(reading.plan, keys, values, facts.timestamp, past.created.id)


def _explain(past: Past) -> Explanation:
    then, created, facts, decision = past.account, past.created, past.facts, past.decision
    scorecard = rule = None
    if decision.score is not None:
        program, sources, known = _scorecard(then, decision.scorecard)
        split = len(program.histories)
        environment = past.environments.at(created.sequence)
        if split <= len(decision.reads):
            first = decision.reads[:split]
            inputs = Inputs(facts, first, environment, digests=known.digests)
            scorecard = explain_scorecard(program, sources, inputs, full_vocabulary())
            list_counted = _with_records(past, "scorecard", scorecard.histories, 0)
            scorecard = replace(scorecard, histories=list_counted)
        if decision.rule is not None:
            checked, texts, known = _rule(then, decision.rule)
            theirs = _values(checked, decision.reads)
            inputs = Inputs(facts, theirs, environment, decision.score, known.digests)
            rule = explain_rule(checked, texts, inputs, full_vocabulary())
            position = len(decision.reads) - len(theirs)
            list_counted = _with_records(past, "rule", rule.histories, position)
            rule = replace(rule, histories=list_counted)
    return Explanation(
        payment=created.id,
        arrived=created.arrived,
        decision=decision,
        thresholds=then.settings.thresholds,
        scorecard=scorecard,
        rule=rule,
        repeated=_is_repeated(decision, scorecard, rule),
    )


def _with_records(
    past: Past, of: Decider, histories: Sequence[ExplainedHistory], position: int
) -> tuple[ExplainedHistory, ...]:
    """The aggregates with the records they counted; their values begin at index `position` of the
    reads."""
    if not histories:
        return ()
    reading, reads = history_reads(past, of)
    stored = StoredRecords(past.account, reading.plan.series, past.environments.at, past.label_of)
    within = _Window(past, stored, [read.window.over for read in reads])
    found = []
    for index, (history, read) in enumerate(zip(histories, reads, strict=True)):
        if position + index in past.decision.lost:
            list_counted = replace(history, note="it could not be exact when it was read")
        else:
            list_counted = list_without_records(history, read) or within.list_counted(history, read)
        found.append(list_counted)
    return tuple(found)


class _Window:
    """The records in the windows that a payment read, each as of then."""

    def __init__(self, past: Past, stored: StoredRecords, overs: Iterable[int | None]) -> None:
        self._past = past
        self._stored = stored
        self._reach = 0
        self._records: list[Record] = []
        for over in sorted({over for over in overs if over is not None}, reverse=True):
            records = self._records_between(past.facts.timestamp - over + 1, past.facts.timestamp)
            if records is not None:
                self._reach, self._records = over, records
                break

    def list_counted(self, history: ExplainedHistory, read: AggregateRead) -> ExplainedHistory:
        over = read.window.over
        if over is None:
            records = self._first(read)
        else:
            records = self._records if over <= self._reach else None
        if records is None:
            note = f"more than {LOOKED_THROUGH:,} entries to look through"
            return replace(history, note=note)
        return list_records(history, read, records)

    def _first(self, read: AggregateRead) -> list[Record] | None:
        """The records at the time from which an age is counted."""
        if read.value is None:
            return []
        time = read.at - int(read.value)
        return self._records_between(time, time)

    def _records_between(self, begin: int, end: int) -> list[Record] | None:
        created = self._past.created
        entries = self._past.journal.entries_between(
            created.account, (begin, end), up_to=created.sequence, most=LOOKED_THROUGH
        )
        if entries is None:
            return None
        undecided = [
            entry._replace(outcome=None) if entry.sequence == created.sequence else entry
            for entry in entries
        ]
        return [self._stored.record(each) for each in undecided if each.kind in self._stored.kinds]


def _scorecard(account: Account, number: int) -> tuple[Scorecard, Sources, StoredProgram]:
    if number == 0 and account.shipped is None:
        return shipped_program(), {None: shipped_text()}, _shipped()
    version = (
        account.shipped
        if number == 0
        else _stored_version(account, "scorecard", SCORECARD_NAME, number)
    )
    assert version is not None
    known = _decode_known(version.program)
    assert isinstance(known.program, Scorecard)
    return known.program, _sources(version), known


def _rule(account: Account, applied: AppliedRule) -> tuple[Rule, Sources, StoredProgram]:
    version = _stored_version(account, "rule", applied.name, applied.version)
    known = _decode_known(version.program)
    assert isinstance(known.program, Rule)
    return known.program, _sources(version), known


@cache
def _shipped() -> StoredProgram:
    shipped = shipped_program()
    return StoredProgram(shipped, shipped_scorecard().reading, Digests(shipped.lets))


@lru_cache(_PROGRAMS)
def _decode_known(encoded: bytes) -> StoredProgram:
    program = decode_program(encoded)
    assert isinstance(program, Rule | Scorecard)
    digests = Digests(program.lets)
    return StoredProgram(program, reading_of(program, full_vocabulary(), digests), digests)


def _stored_version(account: Account, kind: ProgramKind, name: str, number: int) -> Version:
    return account.files[kind, name].versions[number - 1]


def _sources(version: Version) -> Sources:
    sources: dict[str | None, str] = {None: version.text}
    return sources | dict(version.uses.items())


def _values(rule: Rule, reads: Sequence[Value | None]) -> Sequence[Value | None]:
    """The rule's own values are the last ones."""
    return reads[len(reads) - len(rule.histories) :]


def _is_repeated(
    decision: Decision, scorecard: ScorecardExplanation | None, rule: RuleExplanation | None
) -> bool:
    if decision.score is None:
        return True
    if scorecard is None or scorecard.score != decision.score:
        return False
    return decision.rule is None or (rule is not None and rule.met == decision.rule.condition)
