"""The report of a suggestion: its conditions, what they stop, and what it was learned from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from tollkeeper.engine.offline.backtest.report import Report

SuggestedAction: TypeAlias = Literal["challenge", "deny"]
"""What suggested conditions may do."""


ProvedAnswer: TypeAlias = Literal["proved", "refuted", "not proved"]


class StoppedFigures(Struct, frozen=True):
    """The stopped fraudulent payments, their incidents, and the legitimate payments (`people`) met.

    `recall` is the share of all fraud of the period, `precision` the share of fraud among the
    payments met (None without any), with its 90 % bounds. `adds` counts the fraud that no earlier
    condition stops, `beyond_today` the fraud that was not denied at the time. `money` is the amount
    of the stopped payments in hundredths, by currency.
    """

    stopped: int
    people: int
    incidents: int
    recall: float
    precision: float | None
    precision_low: float
    precision_high: float
    adds: int
    beyond_today: int
    money: Mapping[str, int]


class SuggestedCondition(Struct, frozen=True):
    """`learned` covers the period that the search used, `later` one that neither it nor pruning
    used."""

    name: str
    text: str
    learned: StoppedFigures
    later: StoppedFigures


class ProvedCondition(Struct, frozen=True):
    """`reached` says whether it can decide a payment, `beyond` whether it can decide one to which
    no condition of an active rule gives the same action."""

    name: str
    reached: ProvedAnswer
    beyond: ProvedAnswer


class Suggestion(Struct, frozen=True):
    """`text` is a rule file of the conditions, empty without any; `together` is what all of them
    stop in the judged period, which begins at `judged_since` (µs).

    `proved` has the proofs about each condition, and is empty without the extra `prove`; `backtest`
    is what the rule file would have changed in the judged period, None without conditions. `floor`
    is the worth of a condition found by chance. `dropped` are conditions that stopped nothing in
    the pruning period, or met too many legitimate payments there.
    """

    text: str
    conditions: tuple[SuggestedCondition, ...]
    together: StoppedFigures
    payments: int
    frauds: int
    incidents: int
    floor: float
    dropped: tuple[str, ...]
    set_aside: Mapping[str, int]
    judged_since: int
    proved: tuple[ProvedCondition, ...] = ()
    backtest: Report | None = None
