"""A stored version of an event type, ready to run: its contract, its metrics, its monitors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.keys import compile_keys
from tollkeeper.engine.programs.compile.python import (
    compile_labels,
    compile_monitor,
)
from tollkeeper.engine.programs.compile.shown import one_line
from tollkeeper.engine.programs.event_contract import Contract
from tollkeeper.engine.programs.json_values import JsonValue, json_writer
from tollkeeper.engine.programs.loaded import Reading, counting_cost, reading_of
from tollkeeper.engine.velocity.contract import SeriesPlan
from tollkeeper.grammar import program as p
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import Type
from tollkeeper.grammar.vocabulary import Vocabulary
from tollkeeper.grammar.walk import children, resolve_let

_MERCHANT = ("merchant", "id")


@dataclass(frozen=True, slots=True)
class LoadedMetric:
    """`index` is the index of its value among the type's reads; `to_json` converts the value to
    JSON."""

    name: str
    index: int
    type: Type
    keys: tuple[Type, ...]
    to_json: Callable[[Any], JsonValue]


@dataclass(frozen=True, slots=True)
class LoadedMonitor:
    """`when(p, v, h, e)` is true, false or missing. `key(p, v, e)` gives the values that tell this
    monitor's alerts apart, None without any.

    `shows` are the aggregates that its condition reads: the name shown in an alert, the index among
    the values, the type. `merchant_part` is the index in the key of the merchant, where the
    condition reads that merchant's records alone; else None.
    """

    program: p.Monitor
    when: Callable[[Any, Any, Sequence[Value | None], Environment], bool | None]
    key: Callable[[Any, Any, Environment], tuple[Value | None, ...] | None]
    key_types: tuple[Type, ...]
    shows: tuple[tuple[str, int, Type], ...]
    merchant_part: int | None


class GivenLabel(NamedTuple):
    """The label that an event gives to the payment with the id `payment`; None removes it."""

    payment: str
    label: Literal["fraud", "legitimate", "unsure"] | None


@dataclass(frozen=True, slots=True)
class LoadedEventType:
    """A version of an event type, ready to run.

    `reading.reads` takes the facts, the data (None for a payment) and the environment. `cost` is as
    `counting_cost` gives it.
    """

    version: int
    program: p.EventType
    contract: Contract
    reading: Reading
    cost: int
    metrics: tuple[LoadedMetric, ...]
    monitors: tuple[LoadedMonitor, ...]
    read_labels: Callable[[Any, Any, Sequence[Value | None], Environment], tuple[Value | None, ...]]

    def label_given(
        self, facts: Any, data: Any, values: Sequence[Value | None], environment: Environment
    ) -> GivenLabel | None:
        """The label that an event gives to a payment: that of the first condition that is met."""
        if not self.program.labels:
            return None
        read = self.read_labels(facts, data, values, environment)
        for each, met, payment in zip(self.program.labels, read[::2], read[1::2], strict=True):
            if met and payment is not None:
                return GivenLabel(str(payment), each.label)
        return None

    def payments_named(self, facts: Any, data: Any, environment: Environment) -> frozenset[str]:
        """The payments that an event may label, as far as its fields tell without its metrics."""
        if not self.program.labels:
            return frozenset()
        unknown = (None,) * len(self.reading.plan.windows)
        named = self.read_labels(facts, data, unknown, environment)[1::2]
        return frozenset(str(payment) for payment in named if payment is not None)

    @property
    def series(self) -> tuple[SeriesPlan, ...]:
        """The series that it reads."""
        return self.reading.plan.series


def load_event_type(
    program: p.EventType, version: int, text: str, vocabulary: Vocabulary
) -> LoadedEventType:
    """Compile a stored version; `text` is its source."""
    digests = Digests(program.lets)
    places = {digests.of(history): index for index, history in enumerate(program.histories)}
    return LoadedEventType(
        version=version,
        program=program,
        contract=Contract.of(program),
        reading=reading_of(program, vocabulary, digests),
        cost=counting_cost(program, vocabulary),
        metrics=tuple(
            LoadedMetric(
                each.name,
                places[digests.of(each.history)],
                each.history.type,
                tuple(key.type for key in each.history.keys),
                json_writer(each.history.type),
            )
            for each in program.metrics
        ),
        monitors=tuple(
            _load_monitor(each, program, text, digests, places, vocabulary)
            for each in program.monitors
        ),
        read_labels=compile_labels(program, vocabulary),
    )


def _load_monitor(
    monitor: p.Monitor,
    program: p.EventType,
    text: str,
    digests: Digests,
    places: dict[str, int],
    vocabulary: Vocabulary,
) -> LoadedMonitor:
    found = list(_histories(monitor.when, program.lets))
    shows = {
        places[digests.of(history)]: (_words(history, let, text), history.type)
        for let, history in found
    }
    own = {digests.of(key): key for _, history in found for key in history.keys}
    by = monitor.by or tuple(own.values())
    return LoadedMonitor(
        monitor,
        compile_monitor(monitor, program, digests, vocabulary),
        _key(monitor, by, digests, vocabulary),
        tuple(each.type for each in by),
        tuple((words, index, type_) for index, (words, type_) in sorted(shows.items())),
        _merchant_part(by, [history for _, history in found], program.lets),
    )


def _merchant_part(
    by: Sequence[p.Expression], histories: Sequence[p.History], lets: Sequence[p.Let]
) -> int | None:
    """The index of the merchant in a monitor's key, if every aggregate reads that merchant alone."""

    def is_merchant(key: p.Expression) -> bool:
        named = resolve_let(key, lets)
        return isinstance(named, p.Fact) and named.path == _MERCHANT

    def is_confined(history: p.History) -> bool:
        pairs = zip(history.keys, history.series.by, strict=True)
        return any(is_merchant(key) and is_merchant(own) for key, own in pairs)

    if not all(map(is_confined, histories)):
        return None
    return next((place for place, key in enumerate(by) if is_merchant(key)), None)


def _key(
    monitor: p.Monitor, by: tuple[p.Expression, ...], digests: Digests, vocabulary: Vocabulary
) -> Callable[[Any, Any, Environment], tuple[Value | None, ...] | None]:
    """The key of a monitor, None when a part of it is missing. A monitor that declares none has the
    keys of all its reads, null for a missing one."""
    keys = [by] if monitor.by else [(part,) for part in by]
    read = compile_keys(("p", "v", "e"), keys, digests, vocabulary)
    if monitor.by:
        return lambda facts, data, environment: read(facts, data, environment)[0]
    return lambda facts, data, environment: tuple(
        None if part is None else part[0] for part in read(facts, data, environment)
    )


def _histories(
    when: p.Expression, lets: Sequence[p.Let]
) -> Iterator[tuple[p.Let | None, p.History]]:
    """Each aggregate over history that a condition reads, with the let that names it."""
    waiting: list[tuple[p.Let | None, p.Expression]] = [(None, when)]
    seen: set[int] = set()
    while waiting:
        let, node = waiting.pop()
        if isinstance(node, p.History):
            yield let, node
        elif isinstance(node, p.LetValue):
            if node.index not in seen:
                seen.add(node.index)
                waiting.append((lets[node.index], resolve_let(node, lets)))
        else:
            waiting.extend((let, part) for part in reversed(list(children(node))))


def _words(history: p.History, let: p.Let | None, text: str) -> str:
    """How an alert names the aggregate: by its metric or let, else by its source text."""
    if let is not None and (let.value is history or let.source is not None):
        return let.name
    return one_line(text[history.span.start : history.span.end])
