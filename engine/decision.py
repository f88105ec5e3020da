"""What was decided about a payment, with the versions and values that repeat it years later."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.grammar.program import Action as Action
from tollkeeper.grammar.program import Value


class AppliedRule(Struct, frozen=True, gc=False, omit_defaults=True):
    """The rule version that was evaluated; `condition` is the met one's id, None when none was."""

    name: str
    version: int
    condition: str | None = None
    title: str | None = None


class Decision(Struct, frozen=True, gc=False, omit_defaults=True):
    """The outcome of one payment.

    `action` is None where no recommendation was asked for, `score` (hundredths) where nothing was
    analysed. `scorecard` is the version used, 0 the shipped one. `reads` are the aggregates that
    were read: those of the scorecard, then those of the rule, each in its program's order; `lost`
    are the indexes of reads that could not be exact and so were missing. `held_out` says that the
    payment was let pass though it is denied.
    """

    action: Action | None = None
    score: int | None = None
    rule: AppliedRule | None = None
    scorecard: int = 0
    reads: tuple[Value | None, ...] = ()
    lost: tuple[int, ...] = ()
    held_out: bool = False
