"""An account's history from its journal, with the configuration of each time; readable beside a
running service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TypeAlias

from tollkeeper.engine.journal import list_contents, reads
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Entry, Kind, ListEntry
from tollkeeper.engine.journal.source import JournalSource, connect_for_reading, require_current
from tollkeeper.engine.labels.label import (
    LabelSource,
    Verdict,
    add_label,
    decode_label,
    verdict_of,
)
from tollkeeper.engine.lists.contents import Contents, add_entries, build_contents, remove_values
from tollkeeper.engine.lists.spec import ListSpec, Spec
from tollkeeper.engine.offline.backtest.candidate import Candidate, Situation
from tollkeeper.engine.offline.backtest.replay import HistoryBatches, RecordedHistory
from tollkeeper.engine.registry.accounts import find_account
from tollkeeper.engine.registry.changes import (
    EntriesChanged,
    ListReplaced,
    RecordedChange,
    SettingsChanged,
)
from tollkeeper.engine.registry.environments import account_environment
from tollkeeper.engine.registry.lists import table_spec
from tollkeeper.engine.registry.past_states import (
    configuration_at,
    owners_of,
    recorded_changes,
)
from tollkeeper.engine.registry.state import Account, Configuration, fold_change, fold_changes
from tollkeeper.engine.stored_records import event_reader
from tollkeeper.grammar.program import LabelFact, Rule, Scorecard
from tollkeeper.grammar.walk import parts, roots

OF_PAYMENTS = frozenset({Kind.PAYMENT, Kind.UPDATE})


def account_now(source: JournalSource, name: str) -> Account:
    """The account's present configuration. Raises `NotFound`, JournalError."""
    require_current(source)
    with closing(connect_for_reading(source)) as connection:
        return find_account(configuration_at(connection), name)


EntriesBetween: TypeAlias = Callable[[int, int], Iterable[list[Entry]]]
"""Gives batches of the entries with sequence numbers after the first, up to the second."""


@contextmanager
def account_history(
    source: JournalSource, account: int, candidate: Candidate, since: int
) -> Iterator[tuple[RecordedHistory, Mapping[str, str]]]:
    """What is needed to try a candidate on payments that arrived at `since` (µs) or later: the
    history from what its windows reach back to, and the payments' present labels by id. The history
    can be read while the context lasts. Raises JournalError.
    """
    reach = candidate.plan.reach
    start = None if reach is None else since - reach
    with closing(connect_for_reading(source)) as connection:
        yield (
            stored_history(connection, account, candidate.program, start),
            stored_labels(connection, account),
        )


def stored_history(
    connection: SqlConnection, account: int, program: Rule | Scorecard, start: int | None
) -> RecordedHistory:
    """The account's history with event times from `start` (µs) on, None for all that is kept."""
    start = 0 if start is None else max(0, start)
    begin = reads.sequence_at(connection, start - reads.TIME_TO_ARRIVAL) - 1
    up_to = reads.last_sequence(connection)
    kinds = _kinds(program)

    def between(after: int, last: int) -> Iterator[list[Entry]]:
        return reads.replay_entries(connection, account, start, after, last, kinds)

    return replace(
        configured_history(connection, account, program, (begin, up_to), between),
        total=reads.count_entries(connection, account, start, begin),
        begins=reads.first_arrival(connection, account),
        ends=reads.last_arrival(connection, account),
    )


def configured_history(
    connection: SqlConnection,
    account: int,
    program: Rule | Scorecard,
    sequences: tuple[int, int],
    between: EntriesBetween,
) -> RecordedHistory:
    """The history that `between` gives for `sequences`, with the situations that the journal's
    changes led to.
    """
    begin, up_to = sequences
    every = list(recorded_changes(reads.changes(connection, 0)))
    owners = owners_of(account, every)
    changes = [each for each in every if each.account in owners]
    state = fold_changes(Configuration(), (each for each in changes if each.sequence <= begin))
    later = [each for each in changes if begin < each.sequence <= up_to]
    now = fold_changes(state, later).accounts.get(account)
    specs = _specs(program, now)
    contents = {
        name: build_contents(spec, list_contents.entries_at(connection, account, name, begin))
        for name, spec in specs.items()
    }
    return RecordedHistory(
        _history_from(connection, account, state, contents, later, sequences, between),
        event_reader(now or Account(0, "", 0)),
    )


def stored_labels(connection: SqlConnection, account: int) -> dict[str, Verdict]:
    """The payments' present labels."""
    verdicts: defaultdict[str, dict[LabelSource, Verdict]] = defaultdict(dict)
    for batch in reads.replay_entries(connection, account, 0, 0, None, {Kind.LABEL}):
        for entry in batch:
            add_label(verdicts[entry.id], decode_label(entry.body))
    counting = ((id_, verdict_of(labels)) for id_, labels in verdicts.items())
    return {id_: verdict for id_, verdict in counting if verdict is not None}


def _history_from(
    connection: SqlConnection,
    account: int,
    state: Configuration,
    contents: dict[str, Contents],
    changes: Iterable[RecordedChange],
    sequences: tuple[int, int],
    between: EntriesBetween,
) -> HistoryBatches:
    after, up_to = sequences
    contents_after = _list_changes(connection, account, contents, after)
    situation = _situation(state.accounts.get(account), contents)
    for each in changes:
        state, before = fold_change(state, each), contents
        contents = contents_after(each, before)
        if isinstance(each.change, SettingsChanged) or contents is not before:
            for batch in between(after, each.sequence):
                yield situation, batch
            situation = _situation(state.accounts.get(account), contents)
            after = each.sequence
    for batch in between(after, up_to):
        yield situation, batch


def _kinds(program: Rule | Scorecard) -> Collection[Kind]:
    """The kinds of entries that a replay of the program needs: events only if it reads their
    metrics, labels only if an aggregate reads them."""
    reads_events = any(history.series.event is not None for history in program.histories)
    reads_labels = any(
        isinstance(part, LabelFact) for root, _ in roots(program) for part in parts(root)
    )
    events, labels = (
        {Kind.EVENT} if reads_events else set(),
        {Kind.LABEL} if reads_labels else set(),
    )
    return OF_PAYMENTS | events | labels


def _list_changes(
    connection: SqlConnection, account: int, lists: Iterable[str], after: int
) -> Callable[[RecordedChange, dict[str, Contents]], dict[str, Contents]]:
    """A function that gives the lists' contents after a change: the same object if it changes none."""
    added: defaultdict[tuple[str, int], list[ListEntry]] = defaultdict(list)
    ended: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for name in lists:
        turnover = list_contents.turnover(connection, account, name, after)
        for sequence, entry in turnover.begun:
            added[name, sequence].append(entry)
        for sequence, value in turnover.ended:
            ended[name, sequence].append(value)

    def contents_after(
        recorded: RecordedChange, contents: dict[str, Contents]
    ) -> dict[str, Contents]:
        # A live account's lists are not those of its test account.
        change = recorded.change if recorded.account == account else None
        match change:
            case EntriesChanged(list=name) if name in contents:
                at = (name, recorded.sequence)
                # Renewing an entry removes the former one.
                left = remove_values(contents[name], ended[at])
                return {**contents, name: add_entries(left, added[at])}
            case ListReplaced(list=name) if name in contents:
                entries = list_contents.entries_at(connection, account, name, recorded.sequence)
                return {**contents, name: build_contents(contents[name].spec, entries)}
            case _:
                return contents

    return contents_after


def _specs(program: Rule | Scorecard, account: Account | None) -> dict[str, Spec]:
    """The specs of the lists and tables to follow: the account's, else those that the program
    declares.

    For a scorecard these are all of the account's, as the rules that decide by its scores read
    them.
    """
    declared: dict[str, Spec] = {use.name: ListSpec(use.type) for use in program.lists}
    declared |= {use.name: table_spec(use) for use in program.tables}
    there = {} if account is None else account.lists
    followed = declared if isinstance(program, Rule) else {**declared, **there}
    return {name: there[name].spec if name in there else declared[name] for name in followed}


def _situation(account: Account | None, contents: Mapping[str, Contents]) -> Situation:
    account = account or Account(0, "", 0)
    return Situation(account.settings, account_environment(account, contents))
