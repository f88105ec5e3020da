"""Search for a payment: the solver proposes, the engine's functions correct it.

If no assignment exists ("unsat"), that is a proof. An assignment counts only if every function that
the solver doesn't know has the value that the engine computes; otherwise that value is added to the
problem, and the search continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple

import z3

from tollkeeper.engine.lists.environment import RATE_SCALE
from tollkeeper.engine.offline.prove.encoder import Encoder, Opaque
from tollkeeper.engine.offline.prove.relations import relate
from tollkeeper.engine.offline.prove.shrink import shrink
from tollkeeper.engine.offline.prove.terms import (
    WITHOUT_VALUE,
    Formula,
    SmtTerm,
    UnsayableError,
    constant_term,
    real,
    text_value,
)
from tollkeeper.engine.offline.prove.witness import (
    ImpossibleError,
    Witness,
    WitnessReader,
    witness_of,
)
from tollkeeper.engine.programs.compile import functions
from tollkeeper.engine.programs.compile.reckoning import carry, lift
from tollkeeper.grammar import types as t

_CORRECTIONS = 60
"""The most corrections before a question counts as not proved."""
_WORK_PER_SECOND = 1_500_000
"""The solver's work is limited by its step count, so that a question has the same answer on every
machine.
"""
_WORK_OF_A_STEP = 300_000
_GIVEN_UP = 20
"""How often the solver may give up while a payment is being shrunk."""
SLACK = 5.0
"""How many times its time limit a question may compute, on a machine with slow steps."""


class NotProvedError(Exception):
    """Neither a proof nor a payment was found; the message says why."""


class NoFormulaError(NotProvedError):
    """A proof has no formula for what is asked, so that more work would not help."""


class FoundWitness(NamedTuple):
    """A payment, and the assignment that it comes from."""

    witness: Witness
    reader: WitnessReader


def find_payment(encoder: Encoder, goal: Formula, seconds: float) -> Witness | None:
    """Return the smallest payment found for which `goal` holds; None if there is none at all.

    Raises `NotProvedError`.
    """
    search = _Search(encoder, seconds)
    hints = list(_hints(encoder))
    first = search.try_to_solve([goal, *hints], search.work) if hints else None
    try:
        if first is None:
            hints = []
            first = search.solve([goal], search.work)
    except NotProvedError:
        made_up = search.try_texts(goal)
        if made_up is None:
            raise
        return made_up.witness
    if first is None:
        return None
    return search.shrink([goal, *hints], first).witness


def find_any(encoder: Encoder, goal: Formula, seconds: float) -> FoundWitness | None:
    """Return any payment for which `goal` holds; None if there is none. Raises `NotProvedError`."""
    search = _Search(encoder, seconds)
    return search.solve([goal], search.work)


class _Search:
    def __init__(self, encoder: Encoder, seconds: float) -> None:
        self._encoder = encoder
        self.work = max(1, int(seconds * _WORK_PER_SECOND))
        self._end = process_time() + seconds * SLACK
        self._solver = z3.Solver()
        self._solver.add(*relate(encoder))
        self._solver.add(*encoder.assumed)
        self._corrected = 0

    def solve(self, goals: Sequence[Formula], work: int) -> FoundWitness | None:
        """Find a payment for which `goals` hold; None if there is none. `work` limits the solver's
        steps per call.
        """
        pins: list[Formula] = []
        while True:
            model = self._find_assignment(goals, pins, work)
            if model is None:
                return None
            reader = WitnessReader(model)
            try:
                corrections = _corrections(self._encoder.opaque, reader)
                if not corrections:
                    return FoundWitness(witness_of(self._encoder, reader), reader)
                pins = [each.point for each in corrections]
                self._solver.add(*(z3.Implies(each.point, each.truth) for each in corrections))
                reason = "the engine's functions never had the values that were looked for"
            except (ImpossibleError, UnsayableError) as error:
                pins, reason = _as_doubles(self._encoder, reader), str(error)
                self._solver.add(_otherwise(self._encoder, model))
            self._corrected += 1
            if self._corrected > _CORRECTIONS:
                raise NotProvedError(reason)

    def _find_assignment(self, goals: Sequence[Formula], pins: Sequence[Formula], work: int) -> Any:
        """Find an assignment, near the point that was just corrected if possible."""
        if pins:
            try:
                model = self._check([*goals, *pins], _WORK_OF_A_STEP)
            except NotProvedError:
                model = None
            if model is not None:
                return model
        return self._check(goals, work)

    def try_to_solve(self, goals: Sequence[Formula], work: int) -> FoundWitness | None:
        """`solve`, but None also if nothing was found."""
        try:
            return self.solve(goals, work)
        except NotProvedError:
            return None

    def try_texts(self, goal: Formula) -> FoundWitness | None:
        """Try a made-up text wherever the solver knows too little about texts.

        With the engine's values for it inserted, little is left to solve.
        """
        formulas = [*relate(self._encoder), *self._encoder.assumed, goal]
        for text in _TEXTS:
            texts, known = _with_text(self._encoder.opaque, text)
            if not texts or process_time() >= self._end:
                return None
            solver = z3.Solver()
            solver.set("rlimit", _WORK_OF_A_STEP)
            solver.add(*(z3.simplify(z3.substitute(each, *texts, *known)) for each in formulas))
            solver.add(*(term == value for term, value in (*texts, *known)))
            if solver.check() == z3.sat:
                reader = WitnessReader(solver.model())
                try:
                    if not _corrections(self._encoder.opaque, reader):
                        return FoundWitness(witness_of(self._encoder, reader), reader)
                except ImpossibleError:
                    continue
        return None

    def _check(self, goals: Sequence[Formula], work: int) -> Any:
        """Return an assignment; None if there is none."""
        if process_time() >= self._end:
            raise NotProvedError("the time is over")
        self._solver.set("rlimit", work)
        answer = self._solver.check(*goals)
        if answer == z3.unsat:
            return None
        if answer == z3.sat:
            return self._solver.model()
        raise NotProvedError(f"the solver gave up: {self._solver.reason_unknown()}")

    def shrink(self, goals: Sequence[Formula], found: FoundWitness) -> FoundWitness:
        """Return the smallest payment found."""
        smallest, given_up = found, 0

        def find(wishes: Sequence[Formula]) -> WitnessReader | None:
            nonlocal smallest, given_up
            if given_up == _GIVEN_UP:
                return None
            try:
                smaller = self.solve([*goals, *wishes], _WORK_OF_A_STEP)
            except NotProvedError:
                given_up += 1
                return None
            smallest = smaller or smallest
            return None if smaller is None else smaller.reader

        shrink(self._encoder, found.reader, find)
        return smallest


class _Correction(NamedTuple):
    """The engine's value of a function for some arguments."""

    point: Formula
    truth: Formula


def _corrections(opaque: Sequence[Opaque], reader: WitnessReader) -> list[_Correction]:
    """Return corrections for the applications whose value differs from the engine's.

    Those with a corrected number as an argument are checked in a later round.
    """
    found: list[_Correction] = []
    for each in opaque:
        if not all(reader.holds(argument.there) for argument in each.arguments):
            continue
        given = [reader.of(argument.value, argument.type) for argument in each.arguments]
        kinds = [argument.type for argument in each.arguments]
        actual = carry(each.compute(*map(lift, given, kinds)), each.type)
        if actual is None:
            truth = z3.Not(each.there)
        else:
            truth = z3.And(each.there, each.value == constant_term(actual, each.type))
        if reader.holds(truth):
            continue
        point = [
            argument.value == constant_term(value, argument.type)
            for value, argument in zip(given, each.arguments, strict=True)
        ]
        found.append(_Correction(z3.And(*point), truth))
        if isinstance(each.type, t.Number):
            break
    return found


def _with_text(
    opaque: Sequence[Opaque], text: str
) -> tuple[list[tuple[Formula, Formula]], list[tuple[Formula, Formula]]]:
    """Return the arguments of text functions, each replaced by `text`, and the functions' values
    for it.
    """
    texts: list[tuple[Formula, Formula]] = []
    known: list[tuple[Formula, Formula]] = []
    for each in opaque:
        if len(each.arguments) != 1 or not isinstance(each.arguments[0].type, t.String):
            continue
        given = z3.simplify(z3.substitute(each.arguments[0].value, *texts, *known))
        if z3.is_const(given) and given.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            sent = f"{text}@b.test" if each.compute in _OF_ADDRESSES else text
            texts.append((given, z3.StringVal(sent)))
            given = texts[-1][1]
        if z3.is_string_value(given):
            value = carry(each.compute(text_value(given)), each.type)
            known.append((each.there, z3.BoolVal(value is not None)))
            if value is not None:
                known.append((each.value, constant_term(value, each.type)))
    return texts, known


def _otherwise(encoder: Encoder, model: Any) -> Formula:
    """A formula that excludes this assignment of the payment and its history, and no other."""
    source = encoder.source
    parts = [each.value for each in (*_plain_terms(encoder), *source.elements.values())]
    parts += [each.there for each in (*_terms(encoder), *source.elements.values())]
    parts += source.entries.values()
    if source.count is not None:
        parts.append(source.count)
    return z3.Or(*(each != model.eval(each, model_completion=True) for each in parts))


def _as_doubles(encoder: Encoder, reader: WitnessReader) -> list[Formula]:
    """Replace each real number that is not a function's value by the nearest double."""
    reals = [
        each.value
        for each in _plain_terms(encoder)
        if isinstance(each.type, t.Number) and each.type.scale is None
    ]
    try:
        return [each == real(reader.nearest_double(each)) for each in reals]
    except ImpossibleError:
        return []


def _plain_terms(encoder: Encoder) -> list[SmtTerm]:
    """Return the terms of the payment and its history, except those that only contain others."""
    return [each for each in _terms(encoder) if not isinstance(each.type, WITHOUT_VALUE)]


def _terms(encoder: Encoder) -> list[SmtTerm]:
    """Return the terms of the payment, but for its transactions, and of its history."""
    source = encoder.source
    terms = [*source.fields.values(), *source.headers.values(), *source.entry_values.values()]
    return [*terms, *(term for _, term, _ in encoder.histories.values())]


def _hints(encoder: Encoder) -> Iterator[Formula]:
    """Where the solver should look first; nothing is concluded if it finds nothing there."""
    yield from encoder.hints
    for each in encoder.opaque:
        if samples := _SAMPLES.get(each.compute):
            yield z3.Or(*(each.arguments[0].value == z3.StringVal(text) for text in samples))
    for _, term, _ in encoder.histories.values():
        if isinstance(term.type, t.Number) and term.type.scale is None:
            # So many parts of so small a number are a double, and so are its small multiples.
            parts = z3.FreshInt()
            yield z3.And(term.value * 64 == z3.ToReal(parts), parts > -_FEW, parts < _FEW)
    for exists, rate in encoder.rates.values():
        yield z3.Implies(exists, rate == 10**RATE_SCALE)


def _texts_of_all_entropies() -> Iterator[str]:
    """Alternating letters and digits, of several lengths, with the first few repeated."""
    signs = "1a2b3c4d5e6f7g8h9i0jklmnopqrstuvwxyz"
    for length in (*range(1, 17), 24, 32):
        for pairs in range(0, length // 2 + 1, 1 + length // 16):
            yield signs[:pairs] + signs[: length - pairs]
    yield from ("a" * 20, "A" * 20, "jane.roe")


_TEXTS = tuple(_texts_of_all_entropies())
_FEW = 2**46
_OF_ADDRESSES = (functions.email_local, functions.email_domain)
_ADDRESSES = ("a@b.test", "q7xk2vz9w4tb@shop.test", "A", "q7xk2vz9w4tbp1mhd8jc5nr3gs6fyl0@b.test")
_SAMPLES: Mapping[Any, tuple[str, ...]] = {
    functions.entropy: ("aaaaaaaa", "jane.roe", "q7xk2vz9w4tb", "q7xk2vz9w4tbp1mhd8jc5nr3gs6fyl0"),
    functions.email_domain: _ADDRESSES,
    functions.email_local: _ADDRESSES,
}
