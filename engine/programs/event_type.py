"""A stored version of an event type, ready to run: its contract, its metrics, its monitors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.programs.compile.counting import Counting
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.keys import compile_keys
from tollkeeper.engine.programs.compile.python import (
    CompiledMonitor,
    compile_labels,
    compile_monitors,
    compile_reads,
)
from tollkeeper.engine.programs.compile.series import compile_series
from tollkeeper.engine.programs.compile.sharing import resolve_let
from tollkeeper.engine.programs.compile.shown import one_line
from tollkeeper.engine.programs.event_contract import Contract, fit_series
from tollkeeper.engine.programs.json_values import JsonValue, json_writer
from tollkeeper.engine.velocity.contract import CompiledSeries, Key, Read, SeriesPlan
from tollkeeper.engine.velocity.plan import Plan, plan
from tollkeeper.grammar import program as p
from tollkeeper.grammar.checker.walk import children
from tollkeeper.grammar.program import Value
from tollkeeper.grammar.types import Type
from tollkeeper.grammar.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class LoadedMetric:
    """`index` is the place of its value among those that the type reads, `to_json` writes one as JSON."""

    name: str
    index: int
    type: Type
    keys: tuple[Type, ...]
    to_json: Callable[[Any], JsonValue]


@dataclass(frozen=True, slots=True)
class LoadedMonitor:
    """`key(p, v)` is None when the monitor has nothing to tell alerts apart by.

    `shows` are the aggregates that its condition reads: the words that an alert has for each, its
    place among the values, its type.
    """

    compiled: CompiledMonitor
    key: Callable[[Any, Any, Environment], tuple[Value | None, ...] | None]
    key_types: tuple[Type, ...]
    shows: tuple[tuple[str, int, Type], ...]

    @property
    def name(self) -> str:
        return self.compiled.monitor.name

    @property
    def title(self) -> str | None:
        return self.compiled.monitor.title

    @property
    def every(self) -> int | None:
        """The cool-down in µs, None for none."""
        return self.compiled.monitor.every


class SaidLabel(NamedTuple):
    """What an event says of the payment with the id `payment`; None takes it back."""

    payment: str
    label: Literal["fraud", "legitimate", "unsure"] | None


@dataclass(frozen=True, slots=True)
class LoadedEventType:
    """`keys(p, v)` gives the group to read in each of the plan's windows."""

    version: int
    program: p.EventType
    contract: Contract
    plan: Plan
    keys: Callable[[Any, Any, Environment], tuple[Key | None, ...]]
    metrics: tuple[LoadedMetric, ...]
    monitors: tuple[LoadedMonitor, ...]
    read_labels: Callable[[Any, Any, Sequence[Value | None], Environment], tuple[Value | None, ...]]

    def said(
        self, facts: Any, data: Any, values: Sequence[Value | None], environment: Environment
    ) -> SaidLabel | None:
        """The label that an event brings: that of the first condition that is met."""
        if not self.program.labels:
            return None
        read = self.read_labels(facts, data, values, environment)
        for each, met, payment in zip(self.program.labels, read[::2], read[1::2], strict=True):
            if met and payment is not None:
                return SaidLabel(str(payment), each.label)
        return None

    @property
    def series(self) -> tuple[SeriesPlan, ...]:
        """The series that it reads."""
        return self.plan.series

    def reads(self, facts: Any, data: Any, environment: Environment) -> tuple[Read, ...]:
        """What an event (or payment) with these facts and data reads; none without windows."""
        windows = self.plan.windows
        if not windows:
            return ()
        return tuple(zip(windows, self.keys(facts, data, environment), strict=True))


def load_event_type(
    program: p.EventType, version: int, text: str, vocabulary: Vocabulary
) -> LoadedEventType:
    """The type of a stored version; `text` is the file it was checked from."""

    digests = Digests(program.lets)

    def compiled(series: p.Series) -> CompiledSeries:
        made = compile_series(series, digests, vocabulary)
        return made if series.event is None else fit_series(made, series, program.lets)

    places = {digests.of(history): index for index, history in enumerate(program.histories)}
    monitors = compile_monitors(program, vocabulary)
    return LoadedEventType(
        version=version,
        program=program,
        contract=Contract.of(program),
        plan=plan(
            program.histories,
            program.lets,
            compiled,
            digests.of,
            partial(Counting, digests=digests, vocabulary=vocabulary),
        ),
        keys=compile_reads(program, vocabulary),
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
            _load_monitor(each, program, text, digests, places, vocabulary) for each in monitors
        ),
        read_labels=compile_labels(program, vocabulary),
    )


def _load_monitor(
    compiled: CompiledMonitor,
    program: p.EventType,
    text: str,
    digests: Digests,
    places: dict[str, int],
    vocabulary: Vocabulary,
) -> LoadedMonitor:
    found = _histories(compiled.monitor.when, program.lets)
    shows = {
        places[digests.of(history)]: (_words(history, let, text), history.type)
        for let, history in found
    }
    by = compiled.monitor.by
    if by:
        return LoadedMonitor(
            compiled, compiled.key, tuple(each.type for each in by), _in_order(shows)
        )
    own = {digests.of(key): key for _, history in found for key in history.keys}
    return LoadedMonitor(
        compiled,
        _parts(tuple(own.values()), digests, vocabulary),
        tuple(key.type for key in own.values()),
        _in_order(shows),
    )


def _in_order(shows: dict[int, tuple[str, Type]]) -> tuple[tuple[str, int, Type], ...]:
    return tuple((words, index, type_) for index, (words, type_) in sorted(shows.items()))


def _parts(
    keys: tuple[p.Expression, ...], digests: Digests, vocabulary: Vocabulary
) -> Callable[[Any, Any, Environment], tuple[Value | None, ...]]:
    """The key of a monitor that names none: the keys of all it reads, a missing one null."""
    read = compile_keys(("p", "v", "e"), [(key,) for key in keys], digests, vocabulary)
    return lambda facts, data, environment: tuple(
        None if part is None else part[0] for part in read(facts, data, environment)
    )


def _histories(when: p.Expression, lets: Sequence[p.Let]) -> list[tuple[p.Let | None, p.History]]:
    """Each aggregate over history that a condition reads, with the let that holds it."""
    return list(_reached_histories([(None, when)], lets))


def _reached_histories(
    waiting: list[tuple[p.Let | None, p.Expression]], lets: Sequence[p.Let]
) -> Iterator[tuple[p.Let | None, p.History]]:
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
    """A metric's or let's name, else what is written in the file."""
    if let is not None and (let.value is history or let.source is not None):
        return let.name
    return one_line(text[history.span.start : history.span.end])
