"""Run a backtest: a candidate over a history, to see what would change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.lateness import read_lateness
from tollkeeper.engine.offline.backtest.candidate import (
    Candidate,
    Concerns,
    concerns_named,
    every_recommendation,
    rule_candidate,
    scorecard_candidate,
)
from tollkeeper.engine.offline.backtest.compare import (
    ComparedPayment,
    Comparison,
    Labels,
    OutcomePair,
    ShowFirst,
    compare_outcomes,
    unshown,
)
from tollkeeper.engine.offline.backtest.plan import ReplayPlan
from tollkeeper.engine.offline.backtest.replay import (
    HistoryBatches,
    RecordedHistory,
    StatusUpdate,
    try_candidate,
    without_cycles,
)
from tollkeeper.engine.offline.backtest.report import (
    Report,
    count_payments,
    first_change,
    report_of,
)
from tollkeeper.engine.offline.backtest.stored import account_history, account_now
from tollkeeper.engine.programs.compile.shown import shown_duration, written_value
from tollkeeper.engine.programs.loaded import load_rule, load_scorecard
from tollkeeper.engine.progress import JobProgress, Progress
from tollkeeper.engine.registry.lists import make_declared_lists
from tollkeeper.engine.registry.programs import decode_program
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar.program import Rule, Score, Scorecard
from tollkeeper.grammar.types import Instant
from tollkeeper.grammar.walk import parts

FIRST_CHANGES = 20
"""For this many kinds of changes, a job shows the first payment before it ends."""


def backtest_account(
    source: JournalSource,
    account_name: str,
    program: Rule | Scorecard,
    period: tuple[int, int],
    labels: Labels,
    progress: Progress,
    late: int | None = None,
    show_first: ShowFirst = unshown,
) -> Report:
    """What the program would change of an account's decisions on payments that arrived in `period`
    (µs).

    `late` (µs) is how far behind the latest arrival the service still counts a payment, None for
    the folder's value. `show_first` is called with the first payment of each change when it is
    decided. `labels` take precedence over those stored in the account.

    Raises `NotFound` for the account, `Invalid` for a list that it has with another type,
    JournalError.
    """
    account = account_now(source, account_name)
    make_declared_lists(account, program.lists, program.tables)
    lateness = read_lateness(source) if late is None else late
    candidate = candidate_of(program, account, lateness)
    since, _ = period
    with account_history(source, account.number, candidate, since) as (history, known):
        labels = {**known, **labels}
        found = compare_history(candidate, history, period, labels, progress, show_first)
    notes = [
        *candidate_notes(program, candidate.plan, found),
        *shortfalls(candidate.plan, history.begins, since),
        *account_notes(account, program),
    ]
    return report_of(program, account_name, period, found, notes)


def backtest_program(
    progress: JobProgress,
    source: JournalSource,
    account_name: str,
    program: bytes,
    period: tuple[int, int],
) -> Report:
    """The same of an encoded program, as a job that shows the first payment of each of
    `FIRST_CHANGES` changes. Raises as `backtest_account`."""
    decoded = decode_program(program)
    assert isinstance(decoded, Rule | Scorecard)
    places = count(1)

    def show_first(change: OutcomePair, payment: ComparedPayment) -> None:
        if next(places) <= FIRST_CHANGES:
            progress.show(first_change(change, payment))

    return backtest_account(
        source, account_name, decoded, period, {}, progress, show_first=show_first
    )


def candidate_of(program: Rule | Scorecard, account: Account, late: int = LATE) -> Candidate:
    """The candidate for trying the program on the account."""
    vocabulary = full_vocabulary()
    if isinstance(program, Rule):
        concerns: Concerns = (
            concerns_named(program.name)
            if was_published(account, program)
            else every_recommendation
        )
        loaded = load_rule(program, 0, vocabulary)
        return rule_candidate(program, loaded, concerns, vocabulary, late)
    versions = {
        (version.name, version.number): version
        for (kind, _), lineage in account.files.items()
        if kind == "rule"
        for version in lineage.versions
    }
    scorecard = load_scorecard(program, 0, vocabulary)
    return scorecard_candidate(program, scorecard, versions, vocabulary, late)


def account_notes(account: Account, program: Rule | Scorecard) -> Iterator[str]:
    """Notes for the report about the candidate and the account."""
    if not was_published(account, program):
        yield (
            f"no rule `{program.name}` was ever published: it was tried on every payment that"
            " asked for a recommendation"
        )


def was_published(account: Account, program: Rule | Scorecard) -> bool:
    """Whether payments could ever have got a rule of this name."""
    if isinstance(program, Scorecard):
        return True
    lineage = account.files.get(("rule", program.name))
    return lineage is not None and lineage.active is not None


def compare_history(
    candidate: Candidate,
    history: RecordedHistory,
    period: tuple[int, int],
    labels: Labels,
    progress: Progress,
    show_first: ShowFirst = unshown,
) -> Comparison:
    """Compare the decisions on a history's payments that arrived from the first moment of `period`
    (µs) up to the second, under the statuses that they had in the end."""
    since, until = period
    watched = replace(history, happened=_with_progress(history.happened, history.total, progress))
    replayed = (
        each
        for each in try_candidate(candidate, watched, since)
        if isinstance(each, StatusUpdate) or each.arrived <= until
    )
    with without_cycles():
        found = compare_outcomes(replayed, labels, show_first)
    progress(1.0)
    return found


def _with_progress(happened: HistoryBatches, total: int, progress: Progress) -> HistoryBatches:
    done = 0
    for situation, batch in happened:
        yield situation, batch
        done += len(batch)
        progress(min(0.99, done / max(1, total)))


def candidate_notes(
    program: Rule | Scorecard, plan: ReplayPlan, found: Comparison
) -> Iterator[str]:
    """Notes for the report about limits of the figures; `plan` is of all the program's aggregates."""
    if not found.cells:
        yield f"no payment of this time would have got `{program.name}`"
    if plan.reads_decisions:
        yield (
            f"`{program.name}` reads `decision`: history holds what was decided then,"
            " not what it would have decided itself"
        )
    if found.lost:
        yield f"live, a window was missing for {count_payments(found.lost)}"
    unrecorded = sum(tally.payments for cell, tally in found.cells.items() if cell.was is None)
    if unrecorded and any(cell.was is not None for cell in found.cells):
        yield f"no decision is recorded of {count_payments(unrecorded)}: what they would get is told apart"
    if found.scoreless and _reads_score(program):
        yield f"no score is recorded of {count_payments(found.scoreless)}: `score` was missing there"


def _reads_score(program: Rule | Scorecard) -> bool:
    if isinstance(program, Scorecard):
        return False
    roots = [each.when for each in program.conditions] + [each.value for each in program.lets]
    return any(isinstance(part, Score) for root in roots for part in parts(root))


def shortfalls(plan: ReplayPlan, begins: int | None, since: int) -> Iterator[str]:
    """Notes about windows that reach back before history `begins` (µs)."""
    reach = plan.reach
    if not plan.series or begins is None or (reach is not None and begins <= since - reach):
        return
    begun = written_value(begins, Instant())
    if reach is None:
        yield f"history begins at {begun}: `age`, `interval` and `since` know nothing before"
    else:
        longest = max(window.over or 0 for window in plan.reading.plan.windows)
        yield (
            f"history begins at {begun}: windows of {shown_duration(longest)} are whole for"
            f" payments from {written_value(begins + reach, Instant())} on, as some may come a day late"
        )
