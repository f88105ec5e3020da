"""The examples to learn from: for each labelled payment, what weights multiply and curves read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.lateness import read_lateness
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.backtest import candidate_of
from tollkeeper.engine.offline.backtest.replay import replayed_payments
from tollkeeper.engine.offline.backtest.stored import account_history, account_now
from tollkeeper.engine.offline.fit.labelled import read_labelled
from tollkeeper.engine.offline.fit.replay import score_history
from tollkeeper.engine.offline.fit.weighed import Measures, curve_inputs, measure
from tollkeeper.engine.offline.outcomes import known_outcomes
from tollkeeper.engine.offline.suggest.incidents import incidents, links_of, without_shared
from tollkeeper.engine.programs.loaded import load_scorecard
from tollkeeper.engine.progress import Progress
from tollkeeper.grammar.program import Scorecard

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Examples:
    """A row for each labelled payment, in order of arrival (µs).

    `measures` has a column for each signal, `values` one for each input of a curve, nan where it is
    missing. `campaigns` are numbers: frauds that belong together share one, other payments have one
    each. `set_aside` counts, by reason, payments whose outcome is unknown.
    """

    measures: Floats
    values: Floats
    labels: Floats
    campaigns: NDArray[np.int64]
    set_aside: Mapping[str, int]


def examples_in_file(
    scorecard: Scorecard, history: Path, progress: Progress, environment: Environment
) -> Examples:
    """The examples of a file (`labelled.py`). Raises `StreamError`, `OSError`."""
    vocabulary = full_vocabulary()
    loaded, measured = load_scorecard(scorecard, 0, vocabulary), measure(scorecard, vocabulary)
    lines = read_labelled(_lines(history, progress))
    rows = [
        (scored.facts, measured(scored.facts, scored.values, environment), bool(scored.label))
        for scored in score_history(lines, loaded, environment)
        if scored.label is not None
    ]
    return _examples(scorecard, rows, {})


def examples_of_account(
    source: JournalSource,
    name: str,
    scorecard: Scorecard,
    since: int,
    mature: int,
    progress: Progress,
) -> Examples:
    """The examples of an account's payments that arrived at `since` (µs) or later, by stored labels.

    An unlabelled payment counts as honest once it is `mature` (µs) old, unless it was denied. Raises
    `NotFound`, `JournalError`, `NothingToLearnError`.
    """
    account = account_now(source, name)
    candidate = replace(
        candidate_of(scorecard, account, read_lateness(source)), decide=_decide_nothing
    )
    measured = measure(scorecard, full_vocabulary())
    with account_history(source, account.number, candidate, since) as (history, labels):
        replayed = [
            (each, measured(each.facts, each.values, each.environment))
            for each in replayed_payments(candidate, history, since, progress)
        ]
    known, set_aside = known_outcomes(
        replayed, lambda payment: labels.get(payment.id), (history.ends or 0) - mature
    )
    rows = [(each.payment.facts, each.read, each.fraud) for each in known]
    return _examples(scorecard, rows, set_aside)


def _decide_nothing(*_asked: object) -> Decision:
    """Stands for the candidate's decision, which is not needed: only what its scorecard reads is."""
    return Decision()


def _examples(
    scorecard: Scorecard,
    rows: Sequence[tuple[Any, Measures, bool]],
    set_aside: Mapping[str, int],
) -> Examples:
    fraud = [each for *_, each in rows]
    links = without_shared([links_of(facts) for facts, *_ in rows], fraud)
    labels = np.array(fraud, dtype=float)
    campaigns = np.arange(len(rows)) + len(rows)
    campaigns[labels > 0] = incidents(
        [facts.arrived for facts, _, is_fraud in rows if is_fraud],
        [own for own, is_fraud in zip(links, fraud, strict=True) if is_fraud],
    )
    return Examples(
        _matrix([read.signals for _, read, _ in rows], len(scorecard.signals)),
        _matrix([read.inputs for _, read, _ in rows], len(curve_inputs(scorecard))),
        labels,
        campaigns,
        set_aside,
    )


def _matrix(rows: Sequence[Sequence[float]], columns: int) -> Floats:
    return np.array(rows, dtype=float).reshape(len(rows), columns)


def _lines(history: Path, progress: Progress) -> Iterator[bytes]:
    """The lines of a file; `progress` gets the share that is read, 0 to 1."""
    size = max(1, history.stat().st_size)
    done = 0
    with history.open("rb") as stream:
        for number, line in enumerate(stream):
            yield line
            done += len(line)
            if number % 256 == 0:
                progress(min(0.99, done / size))
    progress(1.0)
