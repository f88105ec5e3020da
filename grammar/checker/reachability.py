"""Find conditions that can't be met, or that earlier conditions cover. There are no false alarms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tollkeeper.grammar import check_warnings as say
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.domains import Domain
from tollkeeper.grammar.checker.truth import Cube, Subjects, cubes, size
from tollkeeper.grammar.diagnostics import Diagnostic
from tollkeeper.grammar.syntax import Span

MAX_PIECES = 64
MAX_NAMED = 12
MAX_EFFORT = 200_000
"""The most values and ranges that are examined in a rule; past it, covers are no longer sought."""


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A cube of an earlier condition."""

    cube: Cube
    size: int
    condition: p.Condition


@dataclass(slots=True)
class _CubesAbove:
    """The cubes of earlier conditions, each filed under the subject with the fewest cubes so far.

    `left` is what remains of a subject after the cubes on that subject alone. If nothing remains,
    all later conditions are covered, by `all_of_it`.
    """

    by_subject: dict[int, list[_Earlier]] = field(default_factory=dict)
    left: dict[int, Domain] = field(default_factory=dict)
    all_of_it: list[p.Condition] = field(default_factory=list)
    effort: int = MAX_EFFORT

    def add(self, subjects: Subjects, cube: Cube, condition: p.Condition) -> None:
        if not cube:
            self.all_of_it = self.all_of_it or [condition]
            return
        subject = min(cube, key=lambda each: (len(self.by_subject.get(each, ())), each))
        same = self.by_subject.setdefault(subject, [])
        same.append(_Earlier(cube, size(cube), condition))
        if len(cube) == 1 and not self.all_of_it and self.effort >= 0:
            left = self.left.get(subject, subjects.bases[subject])
            self.effort -= left.size + size(cube)
            left = left.without(cube[subject])
            self.left[subject] = left
            if left.is_empty():
                single_subject = [each for each in same if len(each.cube) == 1]
                used = {each.condition.name: each.condition for each in single_subject}
                whole = {subject: subjects.bases[subject]}
                self.all_of_it = list(_fewest(self, whole, single_subject, used).values())

    def near(self, cube: Cube) -> list[_Earlier]:
        """Return the cubes whose subjects are all in `cube` and that intersect it."""
        found: list[_Earlier] = []
        for subject in cube:
            for each in self.by_subject.get(subject, ()):
                if self.effort < 0:
                    return []
                self.effort -= 1
                if each.cube.keys() <= cube.keys():
                    self.effort -= each.size + sum(cube[shared].size for shared in each.cube)
                    if _touch(cube, each.cube):
                        found.append(each)
        return found


def empty_filters(inner: Iterable[p.Expression], subjects: Subjects) -> Iterator[Diagnostic]:
    """Warn of each `where` that no record can meet, among the parts of an expression."""
    for part in inner:
        where = None
        if isinstance(part, p.History):
            where = part.series.where
        elif isinstance(part, p.Fold):
            where = part.where
        if where is not None and not cubes(subjects, where, True):
            yield say.no_such_record(where.span)


def unreachable(rule: p.Rule, spans: dict[str, Span], subjects: Subjects) -> Iterator[Diagnostic]:
    """Return the warnings of a rule's conditions; `spans` are the places of their names."""
    above = _CubesAbove()
    for condition in rule.conditions:
        mine = cubes(subjects, condition.when, True)
        span = spans[condition.name]
        if not mine:
            yield say.never_met(span, "condition", condition.name)
            continue
        cover = _cover(mine, above)
        if cover:
            yield _covered_warning(span, condition, cover)
        for cube in mine:
            above.add(subjects, cube, condition)


def contradictions(
    program: p.Scorecard | p.EventType, spans: dict[str, Span], subjects: Subjects
) -> Iterator[Diagnostic]:
    """Warn of signals and monitors that can't be met."""
    if isinstance(program, p.Scorecard):
        parts = [("signal", each.name, each.when) for each in program.signals]
    else:
        parts = [("monitor", each.name, each.when) for each in program.monitors]
    for what, name, when in parts:
        if when is not None and not cubes(subjects, when, True):
            yield say.never_met(spans[name], what, name)


def _covered_warning(span: Span, condition: p.Condition, cover: list[p.Condition]) -> Diagnostic:
    names = [each.name for each in cover]
    if condition.action == "deny" and all(each.action == "allow" for each in cover):
        return say.deny_after_allow(span, condition.name, names)
    return say.covered(span, condition.name, names)


def _cover(mine: list[Cube], above: _CubesAbove) -> list[p.Condition]:
    """Return the earlier conditions that together cover all cubes of `mine`; none if they don't."""
    if above.all_of_it:
        return above.all_of_it
    used: dict[str, p.Condition] = {}
    for cube in mine:
        near = above.near(cube)
        single = next((each for each in near if _inside(cube, each.cube)), None)
        if single is not None:
            used[single.condition.name] = single.condition
            continue
        taken = _piecewise_cover(above, cube, near)
        if taken is None:
            return []
        used.update(_fewest(above, cube, near, taken))
    return list(used.values())


def _touch(cube: Cube, other: Cube) -> bool:
    return all(not cube[subject].meet(domain).is_empty() for subject, domain in other.items())


def _inside(cube: Cube, outer: Cube) -> bool:
    return all(cube[subject].without(domain).is_empty() for subject, domain in outer.items())


def _piecewise_cover(
    above: _CubesAbove, cube: Cube, near: list[_Earlier]
) -> dict[str, p.Condition] | None:
    """Return the conditions whose cubes together cover `cube`; None if some of it is left, or if
    too many pieces arise.
    """
    rest = [cube]
    used: dict[str, p.Condition] = {}
    for earlier in near:
        above.effort -= earlier.size * len(rest) + sum(map(size, rest))
        left = [piece for each in rest for piece in _subtract(each, earlier.cube)]
        if len(left) != len(rest) or any(a is not b for a, b in zip(left, rest, strict=True)):
            used[earlier.condition.name] = earlier.condition
        if not left:
            return used
        if len(left) > MAX_PIECES or above.effort < 0:
            return None
        rest = left
    return None


def _fewest(
    above: _CubesAbove, cube: Cube, near: list[_Earlier], used: dict[str, p.Condition]
) -> dict[str, p.Condition]:
    """Remove conditions that the cover doesn't need."""
    for name in list(used) if len(used) <= MAX_NAMED else []:
        others = [each for each in near if each.condition.name in used.keys() - {name}]
        if _piecewise_cover(above, cube, others) is not None:
            del used[name]
    return used


def _subtract(cube: Cube, taken: Cube) -> list[Cube]:
    """Return the pieces of `cube` outside `taken`, whose subjects are all in `cube`."""
    if not _touch(cube, taken):
        return [cube]
    pieces = []
    current = dict(cube)
    for subject, domain in taken.items():
        outside = current[subject].without(domain)
        if not outside.is_empty():
            pieces.append({**current, subject: outside})
        current[subject] = current[subject].meet(domain)
    return pieces
