"""Run the tests of an event type: an event after its history, and the alerts that it raises.

The event takes the live steps: windows count it, and the compiled monitors are evaluated, with
their states after the history. The interpreter evaluates them as well, and the two may not differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tollkeeper.engine.events.accept import Arrival
from tollkeeper.engine.facts.vocabulary import full_vocabulary
from tollkeeper.engine.instants import to_microseconds
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.monitors.states import MonitorStates, transitions_at
from tollkeeper.engine.offline.replay import (
    TEST_ACCOUNT,
    Happening,
    Occurrence,
    empty_windows,
    finish,
    replay_live,
)
from tollkeeper.engine.offline.testing.environments import given_environment
from tollkeeper.engine.offline.testing.files import RuleFile
from tollkeeper.engine.offline.testing.given import given_facts, given_lets, read_carried
from tollkeeper.engine.offline.testing.history import count_as_decided, event_record, happenings
from tollkeeper.engine.offline.testing.outcomes import (
    Failure,
    GivenFiles,
    RanEvent,
    UnmetExpectation,
    agree,
    expected_histories,
    given_files,
)
from tollkeeper.engine.offline.testing.streams import START
from tollkeeper.engine.programs.compile.digest import Digests
from tollkeeper.engine.programs.compile.interpreter import EvaluationScope, evaluate, with_lets
from tollkeeper.engine.programs.compile.shown import written_value
from tollkeeper.engine.programs.event_contract import own_data
from tollkeeper.engine.programs.event_type import LoadedEventType, LoadedMonitor, load_event_type
from tollkeeper.engine.velocity.contract import Observation, Record, State
from tollkeeper.grammar import program as p
from tollkeeper.grammar.program import BUILT_IN_EVENT


@dataclass(frozen=True, slots=True)
class _MonitorRun:
    """The values that the monitors read at the test's event, and which of them raised an alert."""

    loaded: LoadedEventType
    record: Record
    values: Sequence[p.Value | None]
    alerts: tuple[str, ...]


def run_event_test(file: RuleFile, written: p.EventType, test: p.Test) -> UnmetExpectation:
    """Raises `StreamError`, `EntryError`."""
    environment = given_environment(written, test.given)
    extra = tuple(expected_histories(test))
    written = replace(written, histories=(*written.histories, *extra))
    past = loaded = load_event_type(written, 0, file.text, full_vocabulary())
    if (program := given_lets(written, test.given)).lets != written.lets:
        # History is grouped by the lets' own values; only the event uses the given ones.
        tried = load_event_type(program, 0, file.text, full_vocabulary())
        loaded = replace(tried, reading=replace(tried.reading, plan=past.reading.plan))
    watched = _run_monitors(file, past, loaded, test, environment)
    scope = _scope(watched, environment)
    for monitor in loaded.monitors:
        met = _is_met(watched, monitor.program.name, environment)
        agree(evaluate(monitor.program.when, scope), met)
    failures = (_check(file, watched, scope, each) for each in test.expected)
    found = tuple(each for each in failures if each is not None)
    return UnmetExpectation(found, RanEvent(file, loaded.program, scope))


def _run_monitors(
    file: RuleFile,
    past: LoadedEventType,
    loaded: LoadedEventType,
    test: p.Test,
    environment: Environment,
) -> _MonitorRun:
    windows = empty_windows(past.reading.plan.series)
    states, files = MonitorStates(), given_files(file, test)

    def look(of: LoadedEventType, observed: Observation) -> _MonitorRun:
        record, sequence = observed.record, observed.sequence
        facts, data = _facts(record), record.state.data
        values: Sequence[p.Value | None] = observed.values
        if of.program.name == BUILT_IN_EVENT:
            # Monitors of payments are evaluated after the decision, those of events at the arrival.
            values = finish(
                windows.read(TEST_ACCOUNT, record.time, of.reading.reads(facts, data, environment))
            )
        transitions = transitions_at(
            states, TEST_ACCOUNT, of, record.time, facts, data, values, environment
        )
        states.replay(TEST_ACCOUNT, sequence, transitions)
        return _MonitorRun(
            of,
            record,
            values,
            tuple(transition.monitor for transition in transitions if transition.met),
        )

    happened = happenings(files.history, file.events, environment=environment)
    history = (_reading(past, each, environment) for each in happened)
    for step in replay_live(history, windows, count_as_decided):
        if _is_of(past, step.observed.record):
            look(past, step.observed)
    record = _given_record(file, loaded, test, files, environment)
    read = record.event is not None
    reads = loaded.reading.reads(_facts(record), record.state.data, environment) if read else ()
    return look(loaded, finish(windows.observe(record, reads)))


def _reading(loaded: LoadedEventType, happening: Happening, environment: Environment) -> Happening:
    """The happening, with the reads of the type's metrics and monitors if it is an event of the
    type."""
    if not isinstance(happening, Occurrence) or not _is_of(loaded, happening.record):
        return happening
    record = happening.record
    return replace(
        happening, reads=loaded.reading.reads(_facts(record), record.state.data, environment)
    )


def _is_of(loaded: LoadedEventType, record: Record) -> bool:
    """Whether the type's monitors are evaluated at the record: an event of it, or a new payment."""
    if loaded.program.name == BUILT_IN_EVENT:
        return record.event is None and record.before is None
    return record.event == loaded.program.name


def _given_record(
    file: RuleFile,
    loaded: LoadedEventType,
    test: p.Test,
    files: GivenFiles,
    environment: Environment,
) -> Record:
    last = files.history[-1].arrived if files.history else START
    if loaded.program.name == BUILT_IN_EVENT:
        arrived = (
            last if files.payment is None else max(last, to_microseconds(files.payment.timestamp))
        )
        facts = given_facts(test.given, files.payment, arrived)
        state = State(facts, environment=environment)
        return Record(TEST_ACCOUNT, "given", facts.timestamp, facts.arrived, state)
    values: dict[str, p.Value] = {"id": "given", "timestamp": START}
    if files.event is not None:
        values |= event_record(files.event, file.events).state.data
    for each in test.given:
        if isinstance(each, p.GivenValue) and isinstance(each.target, p.EventFact):
            values[each.target.name] = read_carried(each.value, each.target.type)
    id_, time = str(values["id"]), int(values["timestamp"])
    data = own_data(loaded.contract, values, id_, time)
    name = loaded.program.name
    return Record(TEST_ACCOUNT, id_, time, max(last, time), State(data=data), event=name)


def _facts(record: Record) -> object:
    """The facts that the compiled monitors read beside an event's data."""
    return record.state.payment or Arrival(record.arrived)


def _scope(watched: _MonitorRun, environment: Environment) -> EvaluationScope:
    program = watched.loaded.program
    digests = Digests(program.lets)
    histories = {
        digests.of(history): value
        for history, value in zip(program.histories, watched.values, strict=True)
    }
    scope = EvaluationScope(
        vocabulary=full_vocabulary(),
        digests=digests,
        facts=_facts(watched.record),
        histories=histories,
        environment=environment,
        event=watched.record.state.data,
    )
    return with_lets(scope, program.lets)


def _is_met(watched: _MonitorRun, name: str, environment: Environment) -> bool | None:
    monitor = next(each for each in watched.loaded.monitors if each.program.name == name)
    state = watched.record.state
    return monitor.when(_facts(watched.record), state.data, watched.values, environment)


def _check(
    file: RuleFile, watched: _MonitorRun, scope: EvaluationScope, expected: p.Expected
) -> Failure | None:
    match expected:
        case p.ExpectAlert(monitor=monitor):
            raised = bool(watched.alerts) if monitor is None else monitor in watched.alerts
            as_expected = raised is not expected.negated
        case p.ExpectValue(value=value):
            as_expected = evaluate(value, scope) is True
        case p.ExpectAction():
            raise AssertionError(expected)
    if as_expected:
        return None
    alerts = ", ".join(f"alert {name}" for name in watched.alerts)
    return Failure(
        file.line(expected.span),
        file.written(expected.span).removeprefix("expect "),
        alerts or "no alert",
        tuple(_reasons(watched, scope)),
    )


def _explain_monitor(watched: _MonitorRun, monitor: LoadedMonitor, scope: EvaluationScope) -> str:
    if evaluate(monitor.program.when, scope) is not True:
        return "is not met"
    if monitor.program.name in watched.alerts:
        return "is met"
    keyless = (
        monitor.key(_facts(watched.record), watched.record.state.data, scope.environment) is None
    )
    return "is met, but its key is missing" if keyless else "was met already"


def _reasons(watched: _MonitorRun, scope: EvaluationScope) -> Iterator[str]:
    for monitor in watched.loaded.monitors:
        yield f"monitor {monitor.program.name} {_explain_monitor(watched, monitor, scope)}"
        for words, index, type_ in monitor.shows:
            yield f"  {words} is {written_value(watched.values[index], type_)}"
