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
from tollkeeper.engine.lists.environment import Environment
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

_NOTHING_READ: tuple[Reading, list[AggregateRead]] = (
    Reading(Plan((), ()), lambda _facts, _environment: ()),
    [],
)

_MOST_DECODED = 16
"""How many decoded programs are kept; none holds anything of a person."""


class Past(NamedTuple):
    """A decision to explain, with the account's state at that time and the environments up to it."""

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


def history_reads(past: Past, kind: Decider) -> tuple[Reading, list[AggregateRead]]:
    """The aggregates that the rule or the scorecard read for the decision; none without one."""
    decision, facts = past.decision, past.facts
    if decision.score is None:
        return _NOTHING_READ
    if kind == "scorecard":
        program, _, stored = _scorecard(past.account, decision.scorecard)
        values: Sequence[Value | None] = decision.reads[: len(program.histories)]
    elif decision.rule is None:
        return _NOTHING_READ
    else:
        rule, _, stored = _rule(past.account, decision.rule)
        values = _values(rule, decision.reads)
    reading = stored.reading
    keys = reading.keys(facts, past.environments.at(past.created.sequence))
    return reading, aggregate_reads(reading.plan, keys, values, facts.timestamp, past.created.id)


def _explain(past: Past) -> Explanation:
    decision = past.decision
    scorecard = rule = None
    if decision.score is not None:
        environment = past.environments.at(past.created.sequence)
        scorecard = _explain_scorecard(past, decision.scorecard, environment)
        if decision.rule is not None:
            rule = _explain_rule(past, decision.rule, environment)
    return Explanation(
        payment=past.created.id,
        arrived=past.created.arrived,
        decision=decision,
        thresholds=past.account.settings.thresholds,
        scorecard=scorecard,
        rule=rule,
        repeated=_is_repeated(decision, scorecard, rule),
    )


def _explain_scorecard(
    past: Past, number: int, environment: Environment
) -> ScorecardExplanation | None:
    """None for a stored decision that has fewer values than the scorecard reads."""
    program, sources, stored = _scorecard(past.account, number)
    reads = past.decision.reads
    if len(program.histories) > len(reads):
        return None
    values = reads[: len(program.histories)]
    inputs = Inputs(past.facts, values, environment, digests=stored.digests)
    explained = explain_scorecard(program, sources, inputs, full_vocabulary())
    return replace(explained, histories=_with_records(past, "scorecard", explained.histories, 0))


def _explain_rule(past: Past, applied: AppliedRule, environment: Environment) -> RuleExplanation:
    program, sources, stored = _rule(past.account, applied)
    decision = past.decision
    values = _values(program, decision.reads)
    inputs = Inputs(past.facts, values, environment, decision.score, stored.digests)
    explained = explain_rule(program, sources, inputs, full_vocabulary())
    first = len(decision.reads) - len(values)
    return replace(explained, histories=_with_records(past, "rule", explained.histories, first))


def _with_records(
    past: Past, kind: Decider, histories: Sequence[ExplainedHistory], first: int
) -> tuple[ExplainedHistory, ...]:
    """The aggregates with the records they counted; the value of the first one is the decision's read
    of index `first`."""
    if not histories:
        return ()
    reading, reads = history_reads(past, kind)
    stored = StoredRecords(past.account, reading.plan.series, past.environments.at, past.label_of)
    window = _Window(past, stored, [read.window.over for read in reads])
    listed = []
    for index, (history, read) in enumerate(zip(histories, reads, strict=True)):
        if first + index in past.decision.lost:
            listed.append(replace(history, note="it could not be exact when it was read"))
        else:
            listed.append(list_without_records(history, read) or window.list_counted(history, read))
    return tuple(listed)


class _Window:
    """The records in the longest window that a payment read and that few enough entries fill, each as
    of the payment's decision."""

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
    stored = _decode(version.program)
    assert isinstance(stored.program, Scorecard)
    return stored.program, _sources(version), stored


def _rule(account: Account, applied: AppliedRule) -> tuple[Rule, Sources, StoredProgram]:
    version = _stored_version(account, "rule", applied.name, applied.version)
    stored = _decode(version.program)
    assert isinstance(stored.program, Rule)
    return stored.program, _sources(version), stored


@cache
def _shipped() -> StoredProgram:
    shipped = shipped_program()
    return StoredProgram(shipped, shipped_scorecard().reading, Digests(shipped.lets))


@lru_cache(_MOST_DECODED)
def _decode(encoded: bytes) -> StoredProgram:
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
    """The values that the rule read: the last of the decision's reads."""
    return reads[len(reads) - len(rule.histories) :]


def _is_repeated(
    decision: Decision, scorecard: ScorecardExplanation | None, rule: RuleExplanation | None
) -> bool:
    if decision.score is None:
        return True
    if scorecard is None or scorecard.score != decision.score:
        return False
    return decision.rule is None or (rule is not None and rule.met == decision.rule.condition)
