"""What a suggestion says: its conditions, what they stop, and what it was learned from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

SuggestedAction: TypeAlias = Literal["challenge", "deny"]
"""What suggested conditions may do."""


class StoppedFigures(Struct, frozen=True):
    """`stopped` fraudulent payments in so many incidents, and `people`: honest ones.

    `recall` is the share of all fraud of the time, `precision` that of fraud among what is met, with
    its bounds nine times in ten; None where nothing is met. `adds` are those that no condition
    before it stops, `beyond_today` those that were not denied when they came. `money` is that of
    the stopped ones in hundredths, by currency.
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
    """`learned` counts the time that the search saw, `later` time that neither it nor pruning saw."""

    name: str
    text: str
    learned: StoppedFigures
    later: StoppedFigures


class Suggestion(Struct, frozen=True):
    """`text` is a rule file of the conditions, empty without any; `together` is what all stop later.

    `floor` is what a condition is worth by chance; `dropped` are those that found nothing, or too
    many people, in the time between learning and judging.
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
