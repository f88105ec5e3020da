"""Relations between aggregates over history, and between an aggregate and the payment itself.

The windows guarantee these for every payment; without them the solver could choose a distinct count
above the count. "The key is present, so the count is" isn't one: it fails if a window was dropped
because of the account's cap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

import z3

from tollkeeper.engine.offline.prove.encode import EncodedProgram
from tollkeeper.engine.offline.prove.encoder import Encoder
from tollkeeper.engine.offline.prove.payment import TRANSACTIONS
from tollkeeper.engine.offline.prove.terms import (
    TRUE_TERM,
    Formula,
    SmtTerm,
    UnsayableError,
    all_of,
    at_one_scale,
)
from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t

_COUNTS = ("count", "distinct")
_GROWING = ("count", "distinct", "max")


def relate(encoder: Encoder) -> list[Formula]:
    """Return the relations of all aggregates that have been encoded so far."""
    found: list[Formula] = []
    aggregates = [each for each in encoder.histories.values() if _of_own_keys(*each)]
    for node, term, program in aggregates:
        found += _alone(node, term, program)
    for one, other in permutations(aggregates, 2):
        found += _relate(*one, *other)
    return found


def _of_own_keys(node: p.History, _term: SmtTerm, program: EncodedProgram) -> bool:
    """Whether a metric is read with keys of its own, so that the payment need not be in its group."""
    of = program.digests.of
    return [of(each) for each in node.keys] == [of(each) for each in node.series.by]


def _alone(node: p.History, term: SmtTerm, program: EncodedProgram) -> Iterator[Formula]:
    there, value = term.there, term.value
    if node.function in (*_COUNTS, "age", "interval", "since", "streak"):
        yield z3.Implies(there, value >= 0)
    is_streak = node.function == "streak"
    if node.earlier or (node.over is None and not is_streak) or node.series.collection == "events":
        return
    try:
        own = list(_own_elements(node, program))
    except UnsayableError:
        return
    yield from _with_its_own(node, term, own)


def _with_its_own(
    node: p.History, term: SmtTerm, own: Sequence[tuple[Formula, SmtTerm | None]]
) -> Iterator[Formula]:
    """What the payment's own contribution says of an aggregate that counts it."""
    there, value = term.there, term.value
    match node.function:
        case "count":
            yield z3.Implies(there, value >= z3.Sum([z3.If(each, 1, 0) for each, _ in own]))
        case "distinct":
            for counts, brought in own:
                assert brought is not None
                yield z3.Implies(z3.And(there, counts, brought.there), value >= 1)
        case "min" | "max" as name:
            for counts, brought in own:
                assert brought is not None
                a, b = at_one_scale(term, brought)
                bound = a <= b if name == "min" else a >= b
                yield z3.Implies(z3.And(there, counts, brought.there), bound)
        case "any":
            for counts, _ in own:
                yield z3.Implies(z3.And(there, counts), value)
        case "all" if node.series.collection == "payments":
            [(counts, _)] = own
            yield z3.Implies(z3.And(there, value), counts)
        case "streak":
            [(counts, _)] = own
            # Another payment of the same microsecond may break a streak that this one would extend.
            yield z3.Implies(z3.And(there, value >= 1), counts)
        case "decay" if node.series.value is None:
            counted = z3.Sum([z3.If(each, 1, 0) for each, _ in own])
            yield z3.Implies(there, value >= 10**t.METADATA_SCALE * counted)
        case "sum" | "decay" if _never_negative(node):
            for counts, brought in own:
                assert brought is not None
                a, b = at_one_scale(term, brought)
                yield z3.Implies(there, a >= 0)
                yield z3.Implies(z3.And(there, counts, brought.there), a >= b)
        case _:
            pass


def _own_elements(
    node: p.History, program: EncodedProgram
) -> Iterator[tuple[Formula, SmtTerm | None]]:
    """The payment's own contribution: whether it counts, and its value."""
    series = node.series
    if series.collection == "payments":
        yield _counting_parts(series, program, None)
        return
    count = program.encoder.source.transactions(program.encoder)
    for index in range(TRANSACTIONS):
        counts, value = _counting_parts(series, program, index)
        yield z3.And(count > index, counts), value


def _counting_parts(
    series: p.Series, program: EncodedProgram, element: int | None
) -> tuple[Formula, SmtTerm | None]:
    counts = TRUE_TERM if series.where is None else program.term(series.where, element).is_true
    value = None if series.value is None else program.term(series.value, element)
    return counts, value


def _never_negative(node: p.History) -> bool:
    kind = node.type
    value = None if node.series.value is None else node.series.value.type
    low = value.low if isinstance(value, t.Number) else None
    is_decimal = isinstance(kind, t.Number) and kind.scale is not None
    return is_decimal and low is not None and low >= 0


def _relate(
    node: p.History,
    term: SmtTerm,
    program: EncodedProgram,
    other: p.History,
    other_term: SmtTerm,
    other_program: EncodedProgram,
) -> Iterator[Formula]:
    """The relations that follow for `other` from `node`; called for both directions."""
    one, two = _LookedAt(node, program), _LookedAt(other, other_program)
    if one.group != two.group:
        return
    both = z3.And(term.there, other_term.there)
    if node.earlier != other.earlier:
        if other.earlier and (node.function, node.over) == (other.function, other.over):
            yield from _without_the_payment(one, two, node, term, program, other_term)
        return
    same_records = one.value == two.value and one.where == two.where
    if node.over is not None and other.over is not None and node.over <= other.over:
        wider = one.value == two.value and one.where >= two.where
        counts = node.function == other.function == "count"
        if wider and node.function == other.function and (counts or node.function in _GROWING):
            a, b = at_one_scale(term, other_term)
            yield z3.Implies(both, a <= b)
        if same_records and node.function == other.function == "min":
            a, b = at_one_scale(term, other_term)
            yield z3.Implies(both, a >= b)
        if wider and node.function == other.function == "any":
            yield z3.Implies(z3.And(both, term.value), other_term.value)
        if (
            node.function == "distinct"
            and other.function == "count"
            and two.value is None
            and one.where >= two.where
        ):
            yield z3.Implies(both, term.value <= other_term.value)
    if same_records and node.function in ("interval", "since") and other.function == "age":
        yield all_of(
            [term.there == other_term.there, z3.Implies(both, term.value <= other_term.value)]
        )
    if same_records and (node.function, other.function) == ("first", "age"):
        yield z3.Implies(term.there, term.value == z3.Not(other_term.there))
    if (
        (node.function, other.function) == ("interval", "count")
        and other.over is not None
        and same_records
        and not one.where
        and node.series.collection == "payments"
    ):
        near = z3.And(term.there, term.value < other.over)
        yield z3.Implies(other_term.there, near == (other_term.value >= 2))


def _without_the_payment(
    one: _LookedAt,
    two: _LookedAt,
    node: p.History,
    term: SmtTerm,
    program: EncodedProgram,
    earlier: SmtTerm,
) -> Iterator[Formula]:
    """An aggregate equals its `earlier` variant plus the payment's own contribution."""
    if (one.value, one.where) != (two.value, two.where) or node.series.collection == "events":
        return
    both = z3.And(term.there, earlier.there)
    try:
        own = z3.Sum([z3.If(counts, 1, 0) for counts, _ in _own_elements(node, program)])
    except UnsayableError:
        return
    if node.function == "count":
        yield z3.Implies(both, term.value == earlier.value + own)
    elif node.function == "distinct":
        yield z3.Implies(
            both, z3.And(term.value >= earlier.value, term.value <= earlier.value + own)
        )


class _LookedAt:
    """The records that an aggregate covers, in a form that can be compared: the group, the
    conjuncts of its `where`, and the value.
    """

    def __init__(self, node: p.History, program: EncodedProgram) -> None:
        series, of = node.series, program.digests.of
        self.group = (series.collection, series.event, tuple(of(each) for each in series.by))
        parts = _conjuncts(series.where)
        self.where = frozenset(of(each) for each in parts)
        self.value = None if series.value is None else of(series.value)


def _conjuncts(where: p.Expression | None) -> tuple[p.Expression, ...]:
    if where is None:
        return ()
    return where.operands if isinstance(where, p.And) else (where,)
