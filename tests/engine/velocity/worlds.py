"""A small world to test windows in: plain payments, series over them, and a naive recount."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.velocity.contract import (
    HOUR,
    Record,
    SeriesPlan,
    State,
    Window,
)
from tollkeeper.engine.velocity.series import FASTEST, PLAIN
from tollkeeper.grammar.types import Boolean, Duration, Number, String, Type

MEMORIES = {"python": PLAIN} | ({} if FASTEST is PLAIN else {"compiled": FASTEST})
"""Where elements may be held, as far as it could be built here."""
MINUTE = HOUR // 60
DAY = 24 * HOUR
START = 1_750_000_000_000_000


class Paid(NamedTuple):
    """A payment's facts; `attempts` are the durations of its transactions, None when not sent."""

    ip: str | None = None
    card: str | None = None
    amount: int | None = None
    ratio: float | None = None
    status: str | None = None
    attempts: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Compiled:
    key: Callable[..., tuple[Any, ...] | None]
    values: Callable[..., Sequence[Any]]


def keyed(*names: str) -> Callable[..., tuple[Any, ...] | None]:
    def key(p: Any, *_more: Any) -> tuple[Any, ...] | None:
        parts = tuple(getattr(p, name) for name in names)
        return None if None in parts else parts

    return key


def denied(p: Any, d: Decision | None, *_more: Any) -> Sequence[Any]:
    return (True,) if d is not None and d.action == "deny" else ()


def declined(p: Any, *_more: Any) -> Sequence[Any]:
    return (None if p.status is None else p.status == "declined",)


@dataclass(frozen=True)
class Kind:
    """A series of this world: its key, its elements and what may be read of it."""

    key: Callable[..., tuple[Any, ...] | None]
    values: Callable[..., Sequence[Any]]
    functions: tuple[str, ...]
    type: Type | None = None
    event: str | None = None
    decided: bool = False
    missing: bool = False
    by: str = "ip"


AGES = ("age", "interval", "since", "first")
"""The functions that look at all of history."""
KINDS = {
    "payments": Kind(keyed("ip"), lambda p, *_: (True,), ("count", *AGES)),
    "declines": Kind(
        keyed("ip"),
        lambda p, *_: (True,) * (p.status == "declined"),
        ("count", *AGES),
    ),
    "cards": Kind(keyed("ip"), lambda p, *_: (p.card,), ("distinct", "count"), String()),
    "amounts": Kind(
        keyed("ip", "card"),
        lambda p, *_: (p.amount,),
        ("sum", "avg", "min", "max"),
        Number(2),
        by="ip, card",
    ),
    "ratios": Kind(
        keyed("ip"), lambda p, *_: (p.ratio,), ("sum", "avg", "min", "distinct"), Number(None)
    ),
    "spent": Kind(keyed("ip"), lambda p, *_: (p.amount,), ("sum", "max"), Duration()),
    "truths": Kind(keyed("ip"), declined, ("any", "all"), Boolean(), missing=True),
    "denied": Kind(keyed("ip"), denied, ("count",), decided=True),
    "attempts": Kind(
        keyed("ip"), lambda p, *_: p.attempts, ("count", "sum", "distinct"), Number(0)
    ),
    "signins": Kind(
        lambda p, d, v, *_: (v["user"],),
        lambda p, *_: (True,),
        ("count", "age", "first"),
        event="signin",
        by="user",
    ),
}


def plan(name: str, over: int | None = DAY, *, ages: bool = False) -> SeriesPlan:
    kind = KINDS[name]
    return SeriesPlan(
        digest=name,
        event=kind.event,
        by=kind.by,
        over=over,
        ages=ages,
        decided=kind.decided,
        valued=kind.type is not None,
        missing=kind.missing,
        compiled=Compiled(kind.key, kind.values),
        distinct=(HOUR,) if "distinct" in kind.functions else (),
    )


def window(name: str, function: str, over: int | None = None, *, earlier: bool = False) -> Window:
    return Window(name, function, over, KINDS[name].type, earlier)


def payment(time: int, facts: Paid, *, account: int = 1, arrived: int | None = None) -> Record:
    return Record(account, "p", time, time if arrived is None else arrived, State(payment=facts))


@dataclass
class Recount:
    """Everything that ever happened to one account, read by looking at all of it."""

    records: dict[int, tuple[Record, State, int]] = field(default_factory=dict)

    def observe(self, sequence: int, record: Record, of: int | None = None) -> None:
        """`of` is the place of the record's creation when this is an update."""
        created = sequence if of is None else of
        self.records[created] = (record, record.state, created)

    def settle(self, sequence: int, state: State) -> None:
        record, _, created = self.records[sequence]
        self.records[sequence] = (record, state, created)

    def elements(
        self, name: str, key: tuple[Any, ...], *, before: int | None = None
    ) -> Iterable[Any]:
        kind = KINDS[name]
        for sequence, (record, state, _) in self.records.items():
            if record.event != kind.event or (before is not None and sequence >= before):
                continue
            given = (state.payment, state.decision, state.data, state.environment, state.label)
            if kind.key(*given) == key:
                values = kind.values(*given)
                yield from (
                    (record.time, value) for value in values if kind.missing or value is not None
                )

    def read(
        self, window: Window, key: tuple[Any, ...] | None, at: int, *, before: int | None = None
    ) -> Any:
        """`before` is the reading record's place, which `AGES` and earlier windows leave out."""
        if key is None:
            return None
        if window.over is None:
            times = [t for t, _ in self.elements(window.series, key, before=before) if t <= at]
            if window.function == "first":
                return not times
            if not times:
                return None
            return at - (min(times) if window.function == "age" else max(times))
        values = [
            value
            for time, value in self.elements(
                window.series, key, before=before if window.earlier else None
            )
            if at - window.over < time <= at
        ]
        return recounted(window.function, window.type, values)


def recounted(function: str, type_: Type | None, values: list[Any]) -> Any:
    total = sum(map(Fraction, values), Fraction()) if function in ("sum", "avg") else Fraction()
    double = isinstance(type_, Number) and type_.scale is None
    match function:
        case "count":
            return len(values)
        case "distinct":
            return len(set(values))
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)
        case "any":
            return True if True in values else (None if None in values else False)
        case "all":
            return False if False in values else (None if None in values else True)
        case "sum" if double:
            return rounded(total)
        case "sum":
            limit = 10**18 + 1 if isinstance(type_, Duration) else 10**38
            return None if abs(total) >= limit else int(total)
        case "avg" if not values:
            return None
        case "avg" if double:
            exact = rounded(total)
            return None if exact is None else exact / len(values)
        case "avg":
            return float(total / (len(values) * 10**type_.scale))
    raise AssertionError(function)


def rounded(total: Fraction) -> float | None:
    try:
        return float(total)
    except OverflowError:
        return None


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


async def filled(
    windows: Any, account: int, plans: Sequence[SeriesPlan], records: Iterable[Record] = ()
) -> None:
    """Adds the plans and fills them from these records."""
    fill = await windows.add(account, plans)
    await windows.fill(fill, records)
    while not await windows.seal(fill):
        pass
