"""Every payment of a history with all that a condition may read, by one replay."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.journal.source import JournalSource
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.backtest.candidate import Candidate, rule_candidate
from tollkeeper.engine.offline.backtest.files import file_history
from tollkeeper.engine.offline.backtest.replay import (
    ReplayedPayment,
    replayed_payments,
)
from tollkeeper.engine.offline.backtest.rows import FORMATS
from tollkeeper.engine.offline.backtest.stored import account_history, account_now
from tollkeeper.engine.offline.outcomes import (
    Labelling,
    Verdicts,
    is_denied,
    known_outcomes,
)
from tollkeeper.engine.offline.suggest.columns import suggestion_columns, table_rule
from tollkeeper.engine.offline.suggest.incidents import links_of, without_shared
from tollkeeper.engine.offline.testing.streams import labels_in_stream
from tollkeeper.engine.programs.compile.python import compile_values
from tollkeeper.engine.programs.loaded import load_rule
from tollkeeper.engine.programs.source import read_file
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.velocity.contract import LATE
from tollkeeper.grammar.checker import KnownNames
from tollkeeper.grammar.program import Rule, Value
from tollkeeper.grammar.types import Boolean, Number, Type
from tollkeeper.grammar.vocabulary import Vocabulary

MOST_PAYMENTS = 200_000
"""Of more payments the newest are learned from, so that the search has a bound of memory."""
_COLUMNS = tuple(column.name for column in suggestion_columns())
_TEXTS = ("the_type", "the_client_kind")
_NUMBERS = tuple(name for name in _COLUMNS if name not in _TEXTS)


@dataclass(frozen=True)
class PaymentTable:
    """Payments in the order of their arrival (µs), a row each.

    `columns` are numbers, truth values as 0 and 1, and texts; missing is nan, or None among texts.
    `fraud` says of each whether it was fraud, `denied` whether it was denied when it came.
    `entities` are what payments may share: device, address, user, e-mail, order, card, and merchant
    with BIN; None where there is none. `set_aside` counts the payments
    whose outcome nobody knows, by why.
    """

    ids: list[str]
    arrived: np.ndarray[Any, np.dtype[np.int64]]
    fraud: np.ndarray[Any, np.dtype[np.bool_]]
    denied: np.ndarray[Any, np.dtype[np.bool_]]
    hundredths: np.ndarray[Any, np.dtype[np.int64]]
    currencies: list[str]
    entities: list[tuple[Any, ...]]
    columns: Mapping[str, np.ndarray[Any, Any]]
    set_aside: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def linking(self) -> list[tuple[Any, ...]]:
        """`entities` without those that many people share: a bank's BIN, a carrier's address."""
        return without_shared(self.entities, self.fraud.tolist())


def labels_known(labels: Verdicts) -> Callable[[Verdicts], Labelling]:
    """Payments by what is known of them; `labels` win over those of the journal."""

    def labelling(stored: Verdicts) -> Labelling:
        known = {**stored, **labels}
        return lambda payment: known.get(payment.id)

    return labelling


def labels_by_score(hundredths: int) -> Callable[[Verdicts], Labelling]:
    """Payments by their score in place of labels: fraud from so many hundredths on; unsure
    without a score."""

    def label(payment: ReplayedPayment) -> str | None:
        if payment.score is None:
            return "unsure"
        return "fraud" if payment.score >= hundredths else "legitimate"

    return lambda _stored: label


def read_account(
    source: JournalSource,
    name: str,
    since: int,
    mature: int,
    late: int,
    labelling: Callable[[Verdicts], Labelling],
    progress: Progress,
) -> PaymentTable:
    """The payments of an account that arrived at `since` (µs) or later; `late` (µs) is how far
    behind the latest arrival the service counts a payment.

    A payment that nobody labelled counts as honest once it is `mature` (µs) old. Raises `NotFound`,
    `JournalError`, `NothingToLearnError`.
    """
    account = account_now(source, name)
    candidate = table_candidate(late)
    with account_history(source, account.number, candidate, since) as (history, labels):
        replayed = replayed_payments(candidate, history, since, progress)
        return table_of(replayed, labelling(labels), (history.ends or 0) - mature, candidate)


def read_files(
    paths: Sequence[Path],
    mature: int,
    labelling: Callable[[Verdicts], Labelling],
    progress: Progress,
    late: int = LATE,
) -> PaymentTable:
    """The payments of files, by the labels that their lines have and as `read_account`.

    Raises `HistoryError`, `NothingToLearnError`.
    """
    candidate = table_candidate(late)
    history = file_history(paths, candidate.program, {})
    label_of = labelling(dict(_labels_in(paths)))
    replayed = replayed_payments(candidate, history, 0, progress)
    return table_of(replayed, label_of, (history.ends or 0) - mature, candidate)


def table_candidate(late: int) -> Candidate:
    """A rule that reads every column, to be tried on history."""
    rule = read_file(table_rule().encode(), KnownNames()).program
    assert isinstance(rule, Rule)
    vocabulary = full_vocabulary()
    loaded = load_rule(rule, 0, vocabulary)
    return rule_candidate(rule, loaded, _every_payment, vocabulary, late)


def column_reader(
    rule: Rule, vocabulary: Vocabulary
) -> Callable[[ReplayedPayment], tuple[Any, ...]]:
    """The values of the columns for a payment, in the order of `suggestion_columns`."""
    lets = {let.name: let for let in rule.lets}
    chosen = [lets[column.name].value for column in suggestion_columns()]
    read = compile_values(chosen, rule.lets, rule.histories, vocabulary)
    types = [each.type for each in chosen]
    environment = Environment()

    def values(payment: ReplayedPayment) -> tuple[Any, ...]:
        found = read(payment.facts, payment.score, payment.values, environment)
        return tuple(map(_plain, found, types))

    return values


def table_of(
    replayed: Iterable[ReplayedPayment], label_of: Labelling, ripe: int, candidate: Candidate
) -> PaymentTable:
    """The table of payments whose outcome is known; `ripe` (µs) as in `known_outcomes`.

    Raises `NothingToLearnError`.
    """
    assert isinstance(candidate.program, Rule)
    values_of = column_reader(candidate.program, full_vocabulary())
    seen = ((_without_facts(each), _row(each.facts, values_of(each))) for each in replayed)
    known, set_aside = known_outcomes(seen, label_of, ripe, MOST_PAYMENTS)
    rows = [each.read for each in known]
    numbers = np.array([row.numbers for row in rows], np.float64).T.copy()
    texts = {
        name: np.array([row.texts[index] for row in rows], object)
        for index, name in enumerate(_TEXTS)
    }
    return PaymentTable(
        ids=[each.payment.id for each in known],
        arrived=np.array([each.payment.arrived for each in known], np.int64),
        fraud=np.array([each.fraud for each in known], np.bool_),
        denied=np.array([is_denied(each.payment) for each in known], np.bool_),
        hundredths=np.array([row.hundredths for row in rows], np.int64),
        currencies=[row.currency for row in rows],
        entities=[row.entities for row in rows],
        columns={**dict(zip(_NUMBERS, numbers, strict=True)), **texts},
        set_aside=set_aside,
    )


class _Row(NamedTuple):
    """What is kept of a payment: `numbers` and `texts` are its columns of each kind."""

    hundredths: int
    currency: str
    entities: tuple[int | None, ...]
    numbers: array[float]
    texts: tuple[str | None, ...]


def _row(facts: Any, values: Sequence[Any]) -> _Row:
    read = dict(zip(_COLUMNS, values, strict=True))
    return _Row(
        hundredths=facts.amount or 0,
        currency=facts.payment.currency,
        # Only whether two are the same is asked of them.
        entities=tuple(None if each is None else hash(each) for each in links_of(facts)),
        numbers=array("d", (nan if read[name] is None else read[name] for name in _NUMBERS)),
        texts=tuple(read[name] for name in _TEXTS),
    )


def _without_facts(payment: ReplayedPayment) -> ReplayedPayment:
    return msgspec.structs.replace(payment, facts=None, values=())


def _every_payment(_facts: Any, _was: Any, _situation: Any) -> bool:
    return True


def _labels_in(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """The labels in lines of JSON, which were read before."""
    for path in paths:
        if path.suffix not in FORMATS:
            yield from labels_in_stream(path).items()


def _plain(value: Value | None, type_: Type) -> Any:
    match type_:
        case Number(scale=scale) if value is not None and scale:
            return float(value) / 10**scale
        case Boolean() | Number():
            return np.nan if value is None else float(value)
        case _:
            return value
