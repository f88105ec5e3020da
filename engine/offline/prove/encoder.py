"""The state shared by formulas: the payment's variables, assumptions, and functions unknown to the
solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import z3

from tollkeeper.engine.offline.prove.terms import (
    TRUE_TERM,
    Formula,
    SmtTerm,
    all_of,
    real,
    sort_of,
)
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.reckoning import carry
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

if TYPE_CHECKING:
    from tollkeeper.engine.offline.prove.encode import EncodedProgram
    from tollkeeper.engine.offline.prove.payment import PaymentSource

Compute: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Opaque:
    """An application of a function that the solver does not know: `compute` is the engine's own.

    It takes arguments in the interpreter's representation, and gives None for missing.
    """

    there: Formula
    value: Formula
    type: t.Type
    arguments: tuple[SmtTerm, ...]
    compute: Compute


class Encoder:
    """Formulas of one or two programs over one payment.

    `assumed` holds for every payment that the interface accepts, for the fields requested of
    `source`; `opaque` are applications whose values must be checked against the engine's functions.
    `histories` are the aggregates over history by their digests, `lists` and `rows` the look-ups in
    lists and tables: (name, looked-up value, formula of the result).
    """

    def __init__(self, source: PaymentSource) -> None:
        self.source = source
        self.assumed: list[Formula] = []
        self.hints: list[Formula] = []
        self.opaque: list[Opaque] = []
        self.histories: dict[str, tuple[p.History, SmtTerm, EncodedProgram]] = {}
        self.lists: list[tuple[str, SmtTerm, Formula]] = []
        self.rows: list[tuple[p.TableValue, SmtTerm, SmtTerm]] = []
        self.rates: dict[str, tuple[Formula, Formula]] = {}
        self.score: SmtTerm | None = None
        self._applied: dict[str, SmtTerm] = {}
        self._fresh = 0

    def fresh(self, kind: Formula, name: str) -> Formula:
        self._fresh += 1
        return z3.Const(f"{name}!{self._fresh}", kind)

    def assume(self, formula: Formula) -> None:
        self.assumed.append(formula)

    def hint(self, formula: Formula) -> None:
        """Suggest where the solver should look first; no conclusion depends on it."""
        self.hints.append(formula)

    def variable(self, name: str, kind: t.Type) -> SmtTerm:
        """A new variable with only its type's bounds."""
        term = SmtTerm(z3.Bool(f"{name}?"), z3.Const(name, sort_of(kind)), kind)
        self._assume_bounds(term)
        return term

    def asked_score(self, kind: t.Type) -> SmtTerm:
        """The score, which every payment that a rule decides has."""
        if self.score is None:
            self.score = SmtTerm(TRUE_TERM, z3.Int("score"), kind)
            self._assume_bounds(self.score)
        return self.score

    def apply(
        self, name: str, arguments: Sequence[SmtTerm], kind: t.Type, compute: Compute
    ) -> SmtTerm:
        """The function's value, equal for equal arguments; missing when an argument is."""
        sorts = [each.value.sort() for each in arguments]
        values = [each.value for each in arguments]
        key = f"{name}({', '.join(each.sexpr() for each in values)})"
        if key not in self._applied:
            gives = z3.Function(name, *sorts, sort_of(kind))(*values)
            exists = z3.Function(f"{name}?", *sorts, z3.BoolSort())(*values)
            self.opaque.append(Opaque(exists, gives, kind, tuple(arguments), compute))
            self._applied[key] = SmtTerm(exists, gives, kind)
            self._assume_bounds(self._applied[key])
        found = self._applied[key]
        there = [each.there for each in arguments]
        return SmtTerm(all_of([*there, found.there]), found.value, kind)

    def _assume_bounds(self, term: SmtTerm) -> None:
        if bounds := bounds_of(term):
            self.assume(all_of(bounds))


def bounds_of(term: SmtTerm) -> list[Formula]:
    """What holds for every value of the term's type."""
    value = term.value
    match term.type:
        case t.String(choices=tuple(choices)):
            return [value >= 0, value < len(choices)]
        case t.Number(scale=int(), low=low, high=high):
            limit = functions.LIMIT
            least = -limit + 1 if low is None else carry(low, term.type)
            most = limit - 1 if high is None else carry(high, term.type)
            return [value >= least, value <= most]
        case t.Number(low=low, high=high):
            least_ = [] if low is None else [value >= real(float(low))]
            return least_ + ([] if high is None else [value <= real(float(high))])
        case t.Duration():
            return [value >= -functions.DURATION_LIMIT, value <= functions.DURATION_LIMIT]
        case t.Instant():
            return [value >= functions.FIRST_INSTANT, value <= functions.LAST_INSTANT]
        case t.Ip():
            return [value >= 0, value < 2**128]
        case _:
            return []
