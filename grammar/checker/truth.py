"""When a condition is definitely true, as a union of cubes, each a set of values per subject.

A subject is a value that a condition compares with constants, or a whole test that isn't analysed,
with the outcomes true, false and missing. The union is exact if subjects are independent; so a
property of the union holds for every payment.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TypeAlias

from tollkeeper.grammar import program as p
from tollkeeper.grammar import types as t
from tollkeeper.grammar.checker.domains import (
    ALL_INTEGERS,
    Domain,
    Intervals,
    Members,
    comparing,
    meeting,
    place_of,
    union,
)
from tollkeeper.grammar.checker.literals import decimal
from tollkeeper.grammar.checker.numbering import Numbers
from tollkeeper.grammar.vocabulary import Vocabulary, is_always_there

Cube: TypeAlias = dict[int, Domain]

MAX_CUBES = 32
MAX_EFFORT = 200_000
"""The most values and ranges that are examined in a file; past it, tests are not analysed."""
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT = Context(prec=200)
_BOOLEANS: frozenset[object] = frozenset((True, False))


@dataclass(slots=True)
class Subjects:
    """The numbered subjects of one program's conditions; lets are replaced by their values."""

    lets: Sequence[p.Let]
    numbers: Numbers
    vocabulary: Vocabulary
    bases: dict[int, Domain] = field(default_factory=dict)
    let_cubes: dict[tuple[int, bool], list[Cube]] = field(default_factory=dict)
    effort: int = MAX_EFFORT

    def __post_init__(self) -> None:
        # In order: a let uses only those above it, so this doesn't recurse deeply.
        for index, let in enumerate(self.lets):
            if isinstance(let.value.type, t.Boolean):
                for wanted in (True, False):
                    self.let_cubes[index, wanted] = cubes(self, let.value, wanted)

    def value(self, part: p.Expression) -> tuple[int, Domain]:
        """Return the subject of a value, and all values that it may have."""
        number = self.numbers.named(("value", self.numbers.of(part)))
        if number not in self.bases:
            self.bases[number] = Domain(_values_of(part.type), not self._is_there(part))
        return number, self.bases[number]

    def _is_there(self, part: p.Expression) -> bool:
        """Whether a value is a field that every payment has."""
        return isinstance(part, p.Fact) and is_always_there(self.vocabulary.payment, part.path)

    def test(self, key: Hashable) -> int:
        """Return the subject of a test that isn't analysed."""
        number = self.numbers.named(("test", key))
        self.bases[number] = Domain(Members(_BOOLEANS), True)
        return number


def cubes(subjects: Subjects, node: p.Expression, wanted: bool) -> list[Cube]:
    """Return when `node` is definitely `wanted`; no cubes if it never is."""
    match node:
        case p.Constant():
            return [{}] if node.value is wanted else []
        case p.Not():
            return cubes(subjects, node.operand, not wanted)
        case p.And() | p.Or():
            found = [cubes(subjects, operand, wanted) for operand in node.operands]
            joined = _all(subjects, found) if isinstance(node, p.And) is wanted else _any(found)
            return _opaque(subjects, node, wanted) if joined is None else joined
        case p.LetValue() if isinstance(node.type, t.Boolean):
            return subjects.let_cubes[node.index, wanted]
        case _ if subjects.effort < 0:
            return _opaque(subjects, node, wanted)
        case p.Presence():
            return _presence(subjects, node, wanted)
        case p.Compare():
            return _compare(subjects, node, wanted)
        case p.Between(low=p.Constant(), high=p.Constant()):
            return _between_cubes(subjects, node, wanted)
        case p.OneOf():
            return _one_of(subjects, node, wanted)
        case p.InNetworks():
            return _in_networks(subjects, node, wanted)
        case _:
            return _opaque(subjects, node, wanted)


def size(cube: Cube) -> int:
    """Return the number of values and ranges, as a measure of the work."""
    return 1 + sum(domain.size for domain in cube.values())


def _all(subjects: Subjects, found: list[list[Cube]]) -> list[Cube] | None:
    """Return the intersections of one cube of each; None if there are too many."""
    if not all(found):
        return []
    result = _intersect(subjects, [each[0] for each in found if len(each) == 1])
    for several in found:
        if len(several) > 1:
            result = [
                cube for a in result for b in several for cube in _intersect(subjects, [a, b])
            ]
            if len(result) > MAX_CUBES:
                return None
    return result if subjects.effort >= 0 else None


def _intersect(subjects: Subjects, found: list[Cube]) -> list[Cube]:
    """Return the intersection of all cubes; no cube if it is empty."""
    domains: dict[int, list[Domain]] = {}
    for cube in found:
        for subject, domain in cube.items():
            domains.setdefault(subject, []).append(domain)
    result: Cube = {}
    for subject, several in domains.items():
        subjects.effort -= sum(domain.size for domain in several)
        if subjects.effort < 0:
            return []
        result[subject] = meeting(several)
        if result[subject].is_empty():
            return []
    return [result]


def _any(found: list[list[Cube]]) -> list[Cube] | None:
    result = [cube for each in found for cube in each]
    return result if len(result) <= MAX_CUBES else None


def _opaque(subjects: Subjects, node: p.Expression, wanted: bool) -> list[Cube]:
    match node:
        case p.InList(negated=True):
            wanted = not wanted
            key: Hashable = ("in", subjects.numbers.of(node.value), node.list)
        case p.InList():
            key = ("in", subjects.numbers.of(node.value), node.list)
        case _ if isinstance(node.type, t.Boolean) and not isinstance(node, _TESTS):
            subject, _ = subjects.value(node)
            return _domain_cubes(subjects, subject, Members(frozenset((wanted,))), True)
        case _:
            key = subjects.numbers.of(node)
    return [{subjects.test(key): Domain(Members(frozenset((wanted,))), False)}]


_TESTS = (p.And, p.Or, p.Compare, p.Between, p.TextTest, p.Matches, p.Fold, p.History)


def _domain_cubes(
    subjects: Subjects, subject: int, allowed: Intervals | Members, wanted: bool
) -> list[Cube]:
    """Return the cube where the subject is present and, as `wanted`, in `allowed` or not."""
    base = subjects.bases[subject]
    subjects.effort -= base.values.size + allowed.size
    inside = Domain(allowed, False)
    domain = base.meet(inside) if wanted else Domain(base.without(inside).values, False)
    return [] if domain.is_empty() else [{subject: domain}]


def _presence(subjects: Subjects, node: p.Presence, wanted: bool) -> list[Cube]:
    subject, base = subjects.value(node.operand)
    is_there = (node.state == "present") is wanted
    if is_there:
        return [{subject: Domain(base.values, False)}]
    return [{subject: Domain(base.values.without(base.values), True)}]  # type: ignore[arg-type]


def _compare(subjects: Subjects, node: p.Compare, wanted: bool) -> list[Cube]:
    operator, left, right = node.operator, node.left, node.right
    if isinstance(left, p.Constant):
        operator, left, right = _FLIPPED[operator], right, left  # type: ignore[assignment]
    if isinstance(left, p.Constant) or not isinstance(right, p.Constant):
        return _unlike(subjects, operator, left, right, wanted)
    subject, base = subjects.value(left)
    if isinstance(base.values, Members):
        allowed: Intervals | Members = Members(frozenset((right.value,)), operator == "!=")
    else:
        allowed = comparing(operator, *_bounds(left.type, right))
    return _domain_cubes(subjects, subject, allowed, wanted)


def _unlike(
    subjects: Subjects, operator: str, left: p.Expression, right: p.Expression, wanted: bool
) -> list[Cube]:
    """A test of two variable values: `a < b`, `b > a` and `not a >= b` are the same test."""
    if operator in (">", ">="):
        operator, left, right = _FLIPPED[operator], right, left
    if operator == "!=":
        operator, wanted = "==", not wanted
    elif operator == "<=":
        operator, left, right, wanted = "<", right, left, not wanted
    sides = [subjects.numbers.of(left), subjects.numbers.of(right)]
    if operator == "==":
        sides.sort()
    key = (operator, *sides)
    return [{subjects.test(key): Domain(Members(frozenset((wanted,))), False)}]


def _between_cubes(subjects: Subjects, node: p.Between, wanted: bool) -> list[Cube]:
    if isinstance(node.value, p.Constant):
        return _opaque(subjects, node, wanted)
    assert isinstance(node.low, p.Constant)
    assert isinstance(node.high, p.Constant)
    subject, _ = subjects.value(node.value)
    kind = node.value.type
    above = comparing(">=", *_bounds(kind, node.low))
    below = comparing("<=", *_bounds(kind, node.high))
    return _domain_cubes(subjects, subject, above.meet(below), wanted)


def _one_of(subjects: Subjects, node: p.OneOf, wanted: bool) -> list[Cube]:
    if isinstance(node.value, p.Constant):
        return _opaque(subjects, node, wanted)
    wanted = wanted is not node.negated
    subject, base = subjects.value(node.value)
    if isinstance(base.values, Members):
        options: frozenset[object] = frozenset(option.value for option in node.options)
        return _domain_cubes(subjects, subject, Members(options), wanted)
    kind = node.value.type
    points = union(
        span for option in node.options for span in comparing("==", *_bounds(kind, option)).spans
    )
    return _domain_cubes(subjects, subject, points, wanted)


def _in_networks(subjects: Subjects, node: p.InNetworks, wanted: bool) -> list[Cube]:
    subject, _ = subjects.value(node.value)
    inside = union((first, first + (1 << (128 - bits)) - 1) for first, bits in node.networks)
    return _domain_cubes(subjects, subject, inside, wanted is not node.negated)


def _bounds(kind: t.Type, constant: p.Constant) -> tuple[int, int]:
    """Return the integers next to a constant among the values of `kind`; equal if it is one of
    them.
    """
    if not isinstance(kind, t.Number):
        return int(constant.value), int(constant.value)
    exact = decimal(constant)
    if kind.scale is None:
        place = place_of(float(exact))
        return place, place
    return _scale_decimal(exact, kind.scale, ROUND_FLOOR), _scale_decimal(
        exact, kind.scale, ROUND_CEILING
    )


def _scale_decimal(value: Decimal, scale: int, rounding: str) -> int:
    return int(value.scaleb(scale, _EXACT).to_integral_value(rounding, _EXACT))


def _values_of(kind: t.Type) -> Intervals | Members:
    match kind:
        case t.Number(scale=None) | t.Instant() | t.Duration() | t.Ip():
            return ALL_INTEGERS
        case t.Number(scale=int(scale), low=low, high=high):
            values = ALL_INTEGERS
            if low is not None:
                values = values.meet(
                    comparing(">=", *[_scale_decimal(low, scale, ROUND_CEILING)] * 2)
                )
            if high is not None:
                values = values.meet(
                    comparing("<=", *[_scale_decimal(high, scale, ROUND_FLOOR)] * 2)
                )
            return values
        case t.String(choices=tuple(choices)):
            return Members(frozenset(choices))
        case t.String():
            return Members(frozenset(), complement=True)
        case t.Boolean():
            return Members(_BOOLEANS)
        case _:
            return Members(frozenset((True,)))
