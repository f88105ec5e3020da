"""What series and windows a program's aggregates come to."""

from __future__ import annotations

from typing import Any

from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.velocity.plan import Plan, merge_plans, plan
from tollkeeper.grammar.program import (
    Compare,
    Constant,
    DecisionFact,
    Expression,
    Fact,
    History,
    Let,
    LetValue,
    Series,
)
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.types import Boolean, Number, String
from tollkeeper.tests.engine.velocity.worlds import DAY, HOUR, Compiled
from tollkeeper.tests.engine.velocity.worlds import plan as planned

SPAN = Span(0, 0)
IP = Fact(1, SPAN, String(), ("device", "ip_address"))
AMOUNT = Fact(2, SPAN, Number(2), ("amount",))
DENIED = Compare(
    3,
    SPAN,
    Boolean(),
    "==",
    DecisionFact(4, SPAN, String(), "action"),
    Constant(5, SPAN, String(), "deny"),
)
DECLINED = Compare(
    6,
    SPAN,
    Boolean(),
    "==",
    Fact(7, SPAN, String(), ("status",)),
    Constant(8, SPAN, String(), "declined"),
)


def history(
    function: Any,
    over: int | None = HOUR,
    *,
    where: Expression | None = None,
    value: Expression | None = None,
) -> History:
    series = Series("payments", None, (IP,), where, value)
    return History(9, SPAN, Number(0), function, series, (IP,), over)


def compiled(series: Series) -> Compiled:
    return Compiled(lambda *_: None, lambda *_: (series,))


def held(found: Plan) -> list[Any]:
    """The series that each plan compiled."""
    return [each.compiled.values(*[None] * 5)[0] for each in found.series]


def planned_from(*histories: History, lets: tuple[Let, ...] = ()) -> Plan:
    return plan(histories, lets, compiled, Digests(lets).of)


def test_windows_that_differ_only_in_length_or_function_share_one_series() -> None:
    found = planned_from(
        history("sum", HOUR, value=AMOUNT),
        history("max", DAY, value=AMOUNT),
        history("avg", HOUR // 2, value=AMOUNT),
    )
    [series] = found.series
    assert series.over == DAY
    assert [each.series for each in found.windows] == [series.digest] * 3
    assert [each.over for each in found.windows] == [HOUR, DAY, HOUR // 2]
    assert {each.type for each in found.windows} == {AMOUNT.type}


def test_an_age_alone_needs_no_window() -> None:
    [series] = planned_from(history("age", None)).series
    assert (series.over, series.ages) == (None, True)


def test_an_age_and_a_count_share_one_series() -> None:
    [series] = planned_from(history("age", None), history("count", HOUR)).series
    assert (series.over, series.ages) == (HOUR, True)


def test_any_and_all_look_at_the_truth_of_each_where() -> None:
    found = planned_from(history("any", where=DECLINED), history("all", where=DECLINED))
    [series] = found.series
    assert series.missing
    assert series.valued
    [looked_at] = held(found)
    assert (looked_at.where, looked_at.value) == (None, DECLINED)


def test_the_truth_of_a_where_is_no_series_of_values() -> None:
    found = planned_from(history("any", where=DECLINED), history("distinct", value=DECLINED))
    assert [each.missing for each in found.series] == [True, False]


def test_a_decision_is_found_behind_a_let() -> None:
    lets = (Let("denied", SPAN, DENIED), Let("again", SPAN, LetValue(10, SPAN, Boolean(), 0)))
    found = planned_from(
        history("count", where=LetValue(11, SPAN, Boolean(), 1)),
        history("count", where=DECLINED),
        lets=lets,
    )
    assert [each.decided for each in found.series] == [True, False]


def test_plans_of_several_programs_merge_into_one_of_each_series() -> None:
    plans = [planned("payments", HOUR), planned("payments", None, ages=True), planned("cards", DAY)]
    first, second = merge_plans(plans)
    assert (first.digest, first.over, first.ages) == ("payments", HOUR, True)
    assert second == plans[2]
