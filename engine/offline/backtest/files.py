"""History from files: JSON Lines, CSV and Parquet in the shape of the interface.

A line of JSON is one of

    {"payment": {…}}                       the body of `POST /payments`
    {"update": {"id": "p-1", …}}           the body of `PATCH /payments/{id}`, and the id
    {"event": {"type": "…", …}}            the body of `POST /events`
    {"label": {"payment": "p-1", …}}       one of the body of `POST /labels`
    {"list": "trusted", "entries": […]}    the body of `PUT /lists/{name}/entries`, and the name

as in the histories of tests (`testing/streams.py`), with `"at"` for when it arrived and
`"decision"` for what was decided. A row of CSV or Parquet is a payment. Its columns are the paths
of the interface (`method.card.bin`), and `at`, `decision.action`, `decision.rule`,
`decision.condition`, `decision.score` beside them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from tollkeeper.engine.facts.clients import read_client
from tollkeeper.engine.facts.facts import Facts, derive, record
from tollkeeper.engine.intake.violations import describe_violations
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import encode_label
from tollkeeper.engine.lists.contents import Contents
from tollkeeper.engine.offline.backtest.backtest import (
    candidate_notes,
    candidate_of,
    compare_history,
    shortfalls,
)
from tollkeeper.engine.offline.backtest.candidate import Situation
from tollkeeper.engine.offline.backtest.compare import Labels
from tollkeeper.engine.offline.backtest.replay import HistoryBatches, RecordedHistory
from tollkeeper.engine.offline.backtest.report import FILES, Report, report_of
from tollkeeper.engine.offline.backtest.rows import FORMATS, json_lines
from tollkeeper.engine.offline.testing.environments import (
    EntryError,
    empty_contents,
    environment_of,
    with_entries,
)
from tollkeeper.engine.offline.testing.history import with_recommendation
from tollkeeper.engine.offline.testing.streams import (
    CreationLine,
    EventLine,
    LabelLine,
    ListLine,
    StreamError,
    StreamLine,
    UpdateLine,
    read_stream,
)
from tollkeeper.engine.programs.event_contract import Contract, read_data
from tollkeeper.engine.progress import Progress
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.engine.registry.state import Account
from tollkeeper.engine.stored_records import StoredEvent, encode_stored, event_reader_by
from tollkeeper.engine.update import apply_update
from tollkeeper.engine.velocity.contract import LATE, State
from tollkeeper.grammar.program import EventType, Rule, Scorecard


class HistoryError(Exception):
    """A file that can't be read, or a line that contradicts those before it."""


def backtest_files(
    paths: Iterable[Path],
    program: Rule | Scorecard,
    events: Mapping[str, EventType | None],
    since: int,
    labels: Labels,
    progress: Progress,
    late: int = LATE,
) -> Report:
    """Backtest the program on the payments in files; it decides all of them.

    `events` are the event types near the program, `since` (µs) is of arrivals. Raises
    `HistoryError`.
    """
    candidate = candidate_of(program, Account(0, FILES, 0), late)
    history = file_history(paths, program, events)
    found = compare_history(candidate, history, (since, sys.maxsize), labels, progress)
    plan = candidate.plan
    notes = [*candidate_notes(program, plan, found), *shortfalls(plan, history.begins, since)]
    period = (found.first or since, found.last or since)
    return report_of(program, FILES, period, found, notes)


def file_history(
    paths: Iterable[Path], program: Rule | Scorecard, events: Mapping[str, EventType | None]
) -> RecordedHistory:
    """The history in files, which are read in the order of their first arrivals.

    Payments without `analyze` ask for a recommendation. Settings are the defaults, and the
    program's lists are empty until a line fills them. Only events of types whose metrics the
    program reads count. Raises `HistoryError`.
    """
    read = {history.series.event for history in program.histories}
    contracts = {
        name: Contract.of(type_) for name, type_ in events.items() if type_ and name in read
    }
    streams = sorted(((path, _items(path)) for path in paths), key=lambda each: each[1][0].arrived)
    items = [(path, item) for path, each in streams for item in each]
    created = [item.arrived for _, item in items if isinstance(item, CreationLine)]
    contents = empty_contents([program])
    return RecordedHistory(
        happened=_entries_of(items, contents, contracts),
        read_event=event_reader_by(lambda type_, _version: contracts[type_]),
        total=len(items),
        begins=created[0] if created else None,
        ends=max(created, default=None),
    )


def _items(path: Path) -> list[StreamLine]:
    try:
        items = _rows(path) if path.suffix in FORMATS else read_stream(path)
    except StreamError as error:
        raise HistoryError(str(error)) from None
    if not items:
        raise HistoryError(f"{path} holds no payments")
    return items


def _rows(path: Path) -> list[StreamLine]:
    with json_lines(path) as lines:
        try:
            return read_stream(lines)
        except StreamError as error:
            raise StreamError(str(error).replace(f"{lines}:", f"{path}, row ")) from None


def _entries_of(
    items: Iterable[tuple[Path, StreamLine]],
    contents: dict[str, Contents],
    contracts: Mapping[str, Contract],
) -> HistoryBatches:
    known: dict[str, State] = {}
    situation = Situation(AccountSettings(), environment_of(contents))
    for sequence, (path, item) in enumerate(items, start=1):
        match item:
            case CreationLine(payment=payment):
                if payment.id in known:
                    raise _history_error(path, item, f"there is a payment `{payment.id}` already")
                known[payment.id] = State(
                    derive(with_recommendation(payment), item.arrived, read_client)
                )
                outcome = None if item.decision is None else encode_stored(item.decision)
                yield situation, [_entry(sequence, item, Kind.PAYMENT, known[payment.id], outcome)]
            case UpdateLine(id=id_):
                if id_ not in known:
                    raise _history_error(path, item, f"there is no payment `{id_}` before this")
                after = apply_update(known[id_], item.update, item.arrived)
                if not isinstance(after, State):
                    raise _history_error(path, item, describe_violations(after))
                known[id_] = after
                yield situation, [_entry(sequence, item, Kind.UPDATE, after, None)]
            case LabelLine(id=id_, label=label):
                if id_ not in known:
                    raise _history_error(path, item, f"there is no payment `{id_}` before this")
                at = item.arrived
                entry = Entry(sequence, 0, Kind.LABEL, id_, at, at, encode_label(label))
                yield situation, [entry]
            case EventLine(type=type_) if type_ in contracts:
                yield situation, [_event(sequence, path, item, contracts[type_])]
            case ListLine(list=name):
                if name in contents:
                    try:
                        entered = with_entries(name, contents[name], item.entries)
                    except EntryError as error:
                        raise _history_error(path, item, str(error)) from None
                    contents = {**contents, name: entered}
                    situation = Situation(AccountSettings(), environment_of(contents))


def _entry(
    sequence: int, item: CreationLine | UpdateLine, kind: Kind, state: State, outcome: bytes | None
) -> Entry:
    facts: Facts = state.payment
    return Entry(
        sequence=sequence,
        account=0,
        kind=kind,
        id=facts.payment.id,
        arrived=item.arrived,
        time=facts.timestamp,
        body=encode_stored(record(facts)),
        outcome=outcome,
    )


def _event(sequence: int, path: Path, item: EventLine, contract: Contract) -> Entry:
    reading = read_data(contract, item.data, "event.data")
    if reading.violations:
        raise _history_error(path, item, describe_violations(reading.violations))
    return Entry(
        sequence=sequence,
        account=0,
        kind=Kind.EVENT,
        id=item.id,
        arrived=item.arrived,
        time=item.timestamp,
        body=encode_stored(StoredEvent(item.type, 0, reading.kept)),
    )


def _history_error(path: Path, item: StreamLine, message: str) -> HistoryError:
    place = f"{path}, row {item.line}" if path.suffix in FORMATS else f"{path}:{item.line}"
    return HistoryError(f"{place}: {message}")
