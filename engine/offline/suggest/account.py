"""A suggestion for an account, as a job: what it needs of an optional part is imported there."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.engine.intake.violations import Violation
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.offline.suggest.report import SuggestedAction, Suggestion
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.errors import Invalid

_REPLAYING = 0.8
"""The share of the time that the replay takes."""


class SuggestionWish(Struct, frozen=True):
    """Times in µs: what arrived at `since` or later, and how old a payment without a label must be
    to count as honest, and how late one may be (`windows.late`). `by_score` (hundredths) takes the score for the label; see `SearchAims` for
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
    """Raises `NotFound`, `JournalError`, and `Invalid` for a history that nothing is learned from."""
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
        raise Invalid([Violation("labels", "missing", str(error))]) from None
    without = wish.without | (frozenset() if wish.by_score is None else {"score"})
    aims = SearchAims(
        wish.conditions, precision=wish.precision, people=wish.people, without=without
    )
    return suggest(
        table,
        aims,
        wish.name,
        wish.action,
        lambda share: progress(_REPLAYING + (1 - _REPLAYING) * share),
    )
