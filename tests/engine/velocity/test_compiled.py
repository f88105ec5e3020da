"""Windows over series as the compiler makes them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec import Struct

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.programs.compile.counting import Counting
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.series import compile_series
from tollkeeper.engine.velocity.contract import Record, State
from tollkeeper.engine.velocity.plan import plan
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.program import (
    Compare,
    Constant,
    DecisionFact,
    ElementFact,
    Fact,
    History,
    Series,
)
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.types import Boolean, Collection, Number, String, Type
from tollkeeper.grammar.vocabulary import Field, Vocabulary
from tollkeeper.tests.engine.velocity.worlds import HOUR, START, filled

pytestmark = pytest.mark.anyio

SPAN = Span(0, 0)


class Attempt(Struct):
    duration: int | None = None


class Order(Struct):
    id: str | None = None


class Paid(Struct):
    order: Order | None = None
    status: str | None = None
    transactions: tuple[Attempt, ...] = ()


def field(name: str, type_: Type, access: str) -> Field:
    return Field(tuple(name.split(".")), type_, "", tuple(access.split(".")))


VOCABULARY = Vocabulary(
    payment={
        "order.id": field("order.id", String(), "order.id"),
        "status": field("status", String(), "status"),
        "transactions": field("transactions", Collection(), "transactions"),
    },
    transaction={"duration": field("duration", Number(0), "duration")},
    decision={"action": field("action", String(), "action")},
)
ORDER = Fact(1, SPAN, String(), ("order", "id"))
DECLINED = Compare(
    2,
    SPAN,
    Boolean(),
    "==",
    Fact(3, SPAN, String(), ("status",)),
    Constant(4, SPAN, String(), "declined"),
)
DENIED = Compare(
    5,
    SPAN,
    Boolean(),
    "==",
    DecisionFact(6, SPAN, String(), "action"),
    Constant(7, SPAN, String(), "deny"),
)
DURATION = ElementFact(8, SPAN, Number(0), ("duration",))


def history(function: Any, collection: Any, *, where: Any = None, value: Any = None) -> History:
    series = Series(collection, None, (ORDER,), where, value)
    over = None if function == "age" else HOUR
    return History(9, SPAN, Number(0), function, series, (ORDER,), over)


@pytest.mark.parametrize("together", [False, True])
async def test_windows_count_what_compiled_series_bring(windows: Windows, together: bool) -> None:
    histories = [
        history("count", "payments"),
        history("age", "payments", where=DECLINED),
        history("any", "payments", where=DECLINED),
        history("count", "payments", where=DENIED),
        history("count", "transactions"),
        history("sum", "transactions", value=DURATION),
    ]
    digests = Digests(())
    compiled = partial(compile_series, digests=digests, vocabulary=VOCABULARY)
    counting = partial(Counting, digests=digests, vocabulary=VOCABULARY) if together else None
    found = plan(histories, (), compiled, digests.of, counting)
    await filled(windows, 1, found.series)
    reads = [(each, ("o",)) for each in found.windows]

    async def arrive(status: str | None, *durations: int | None) -> tuple[Any, ...]:
        attempts = tuple(Attempt(duration) for duration in durations)
        state = State(payment=Paid(Order("o"), status, attempts))
        observation = await windows.observe(Record(1, "p", START, START, state), reads)
        await windows.settle(observation, Decision(action="deny"))
        return observation.values

    assert await arrive("initiated") == (1, None, False, 0, 0, 0)
    assert await arrive(None, 5, None) == (2, None, None, 1, 2, 5)
    assert await arrive("declined", 7) == (3, None, True, 2, 3, 12)
    assert await arrive("declined") == (4, 0, True, 3, 3, 12)
