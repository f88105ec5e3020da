"""A suggestion for an account, as a job, which alone imports the packages of the extra `fit`."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.offline.suggest.report import SuggestedAction, Suggestion
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.errors import Invalid

_REPLAYING, _SEARCHING = 0.7, 0.15
"""The shares of the time that the replay takes, and the search."""


class SuggestionWish(Struct, frozen=True):
    """What to learn from; times in µs. Payments that arrived at `since` or later count; one without
    a label counts as legitimate when it is older than `mature`; `late` is `windows.late`. With
    `by_score` (hundredths), payments of that score and above count as fraud. See `SearchAims` for
    the others.
    """

    since: int
    mature: int
    late: int
    name: str
    action: SuggestedAction
    conditions: int
    precision: float
    people: float
    without: frozenset[str]
    by_score: int | None


def suggest_for_account(
    progress: Progress, source: JournalSource, account: str, wish: SuggestionWish
) -> Suggestion:
    """Raises `NotFound`, `JournalError`, and `Invalid` for a history that nothing can be learned
    from."""
    from tollkeeper.engine.offline.outcomes import NothingToLearnError
    from tollkeeper.engine.offline.suggest.search import SearchAims
    from tollkeeper.engine.offline.suggest.suggest import suggest
    from tollkeeper.engine.offline.suggest.table import (
        labels_by_score,
        labels_known,
        read_account,
    )

    labelling = labels_known({}) if wish.by_score is None else labels_by_score(wish.by_score)
    try:
        table = read_account(
            source,
            account,
            wish.since,
            wish.mature,
            wish.late,
            labelling,
            lambda share: progress(_REPLAYING * share),
        )
    except NothingToLearnError as error:
        raise Invalid.at("labels", "missing", str(error)) from None
    without = wish.without | (frozenset() if wish.by_score is None else {"score"})
    aims = SearchAims(
        wish.conditions, precision=wish.precision, people=wish.people, without=without
    )
    found = suggest(
        table,
        aims,
        wish.name,
        wish.action,
        lambda share: progress(_REPLAYING + _SEARCHING * share),
    )
    return examine_for_account(found, source, account, wish.late, int(table.arrived[-1]) + 1)


def examine_for_account(
    found: Suggestion, source: JournalSource, account: str, late: int, until: int
) -> Suggestion:
    """Examine a suggestion beside the account's active rules, over its payments up to `until` (µs).

    Raises `NotFound`, `JournalError`."""
    from tollkeeper.engine.offline.backtest.backtest import backtest_account
    from tollkeeper.engine.offline.backtest.stored import account_now
    from tollkeeper.engine.offline.suggest.examine import active_rules, examine

    return examine(
        found,
        active_rules(account_now(source, account)),
        lambda rule, since: backtest_account(
            source, account, rule, (since, until), {}, lambda _: None, late
        ),
    )
