"""Convert the history of a test or case for the replay, checking each line against earlier ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import structs

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.facts.clients import read_client
from tollkeeper.engine.facts.facts import Facts, ReadClient, derive
from tollkeeper.engine.intake.payment import Analyze, Payment
from tollkeeper.engine.intake.violations import describe_violations
from tollkeeper.engine.labels.label import LabelSource, Verdict, add_label
from tollkeeper.engine.lists.environment import Environment
from tollkeeper.engine.offline.replay import (
    TEST_ACCOUNT,
    Happening,
    Occurrence,
    ReplayedCreation,
    ReplayedUpdate,
    empty_windows,
    finish,
    replay_live,
)
from tollkeeper.engine.offline.testing.streams import (
    CreationLine,
    EventLine,
    LabelLine,
    ListLine,
    StreamError,
    StreamLine,
    UpdateLine,
)
from tollkeeper.engine.programs.event_contract import Contract, own_data, read_data
from tollkeeper.engine.update import apply_update
from tollkeeper.engine.velocity.contract import Observation, Read, Record, State
from tollkeeper.engine.velocity.plan import Plan
from tollkeeper.engine.velocity.windows import Windows
from tollkeeper.grammar.program import EventType, Value

NOTHING_CONFIGURED = Environment()
Events = Mapping[str, EventType | None]
"""The event types of which a stream may have events; None for one with errors."""


def read_history(
    plan: Plan,
    history: Sequence[StreamLine],
    events: Events,
    facts: Facts,
    reads: Sequence[Read],
    environment: Environment,
) -> tuple[Value | None, ...]:
    """The aggregates that the payment of `facts` reads after the history, in one environment.

    Raises `StreamError` for an inconsistent history.
    """
    windows = empty_windows(plan.series)
    happened = happenings(history, events, environment=environment)
    for _ in replay_live(happened, windows, count_as_decided):
        pass
    state = State(facts, environment=environment)
    record = Record(TEST_ACCOUNT, "given", facts.timestamp, facts.arrived, state)
    return finish(windows.observe(record, reads)).values


async def count_as_decided(
    windows: Windows, creation: ReplayedCreation
) -> tuple[Observation, None]:
    """The judge of a test's history: a payment gets the decision in its line."""
    observed = await windows.observe(creation.record, ())
    return await windows.settle(observed, creation.origin.decision or Decision()), None


def happenings(
    items: Iterable[StreamLine],
    events: Events,
    read_client: ReadClient = read_client,
    environment: Environment = NOTHING_CONFIGURED,
) -> Iterator[Happening]:
    """Convert the lines of a stream, except list entries. Raises `StreamError`."""
    ids: set[str] = set()
    verdicts: defaultdict[str, dict[LabelSource, Verdict]] = defaultdict(dict)
    for item in items:
        match item:
            case CreationLine():
                yield creation(item, ids, read_client, environment)
            case UpdateLine():
                yield ReplayedUpdate(item.id, item.arrived, partial(_amend, item), item)
            case LabelLine():
                tell = partial(_tell, item, verdicts[item.id])
                yield ReplayedUpdate(item.id, item.arrived, tell, item)
            case EventLine():
                yield Occurrence(event_record(item, events), item)
            case ListLine():
                raise StreamError(f"line {item.line}: a test gives its lists itself")


def creation(
    item: CreationLine,
    ids: set[str],
    read_client: ReadClient = read_client,
    environment: Environment = NOTHING_CONFIGURED,
) -> ReplayedCreation:
    """A new payment; adds its id to `ids`. Raises `StreamError` if it is there already."""
    id_ = item.payment.id
    if id_ in ids:
        raise StreamError(f"line {item.line}: there is a payment `{id_}` already")
    ids.add(id_)
    facts = derive(item.payment, item.arrived, read_client)
    state = State(facts, environment=environment)
    return ReplayedCreation(Record(TEST_ACCOUNT, id_, facts.timestamp, item.arrived, state), item)


def _amend(item: UpdateLine, before: State | None) -> State:
    if before is None:
        raise StreamError(f"line {item.line}: there is no payment `{item.id}` before this")
    after = apply_update(before, item.update, item.arrived)
    if not isinstance(after, State):
        raise StreamError(f"line {item.line}: {describe_violations(after)}")
    return after


def _tell(item: LabelLine, verdicts: dict[LabelSource, Verdict], before: State | None) -> State:
    if before is None:
        raise StreamError(f"line {item.line}: there is no payment `{item.id}` before this")
    return structs.replace(before, label=add_label(verdicts, item.label))


def event_record(item: EventLine, events: Events) -> Record:
    """An event, its data read by its type's fields. Raises `StreamError`."""
    type_ = events.get(item.type)
    if type_ is None:
        raise StreamError(f"line {item.line}: there is no event type `{item.type}`")
    contract = Contract.of(type_)
    reading = read_data(contract, item.data, "event.data")
    if reading.violations:
        raise StreamError(f"line {item.line}: {describe_violations(reading.violations)}")
    data = own_data(contract, reading.values, item.id, item.timestamp)
    return Record(
        TEST_ACCOUNT, item.id, item.timestamp, item.arrived, State(data=data), event=item.type
    )


def with_recommendation(payment: Payment) -> Payment:
    """The payment, asking for a recommendation if it has no `analyze`."""
    if payment.analyze is not None:
        return payment
    return structs.replace(payment, analyze=Analyze(bot_behaviour=True))
