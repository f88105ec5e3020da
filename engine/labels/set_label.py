"""Set or withdraw a payment's label; windows that read labels count it at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.keep import Pending, keep
from tollkeeper.engine.labels.label import (
    Label,
    LabelSource,
    add_label,
    encode_label,
    labels_in,
    verdicts,
)
from tollkeeper.engine.labels.payment_state import payment_state
from tollkeeper.engine.registry.errors import Invalid, NotFound
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Record, State

MAX_LABELS = 100
"""The most changes of a payment's labels: setting or reading a label reads all of them."""


class PaymentToLabel(NamedTuple):
    """A stored payment as it is now, and all changes of its labels, oldest first."""

    created: Entry
    state: State
    changes: Sequence[Entry]


async def set_label(engine: Engine, account: int, payment_id: str, label: Label) -> bool:
    """Set a label; returns, once it is on disk, whether it changed anything.

    Raises `NotFound` when no payment has the id, `Invalid` when its labels changed `MAX_LABELS`
    times, `Unavailable` or `Overloaded` when the label can't be kept.
    """
    async with engine.locks.of("payment", account, payment_id):
        payment = await read_to_label(engine, account, payment_id)
        if payment is None:
            raise NotFound("id", "no payment has this id")
        pending = await count_label(engine, payment, label, engine.clock())
        if pending is None:
            return False
        await keep(engine, pending)
    return True


async def read_to_label(engine: Engine, account: int, payment_id: str) -> PaymentToLabel | None:
    """The payment whose label is to be counted, None when no payment has the id.

    Hold the payment's lock until the label is kept: the windows would uncount an update in between by
    the state before it.
    """
    stored = await engine.journal.first_and_last(account, payment_id)
    if stored is None:
        return None
    changes = await engine.journal.of_record(account, Kind.LABEL, payment_id)
    return PaymentToLabel(stored[0], await payment_state(engine, *stored), changes)


async def count_label(
    engine: Engine, payment: PaymentToLabel, label: Label, arrived: int
) -> Pending | None:
    """Count a payment with a new label, which is still to be kept; None if its source gave it the same
    label already. `arrived` in µs.

    Never suspends. Raises `Invalid` when the payment's labels changed `MAX_LABELS` times.
    """
    created, before, changes = payment
    account, id_ = created.account, created.id
    labels = labels_in(changes)
    if _same(labels.get(label.source), label):
        return None
    if len(changes) >= MAX_LABELS:
        message = f"a payment's labels change at most {MAX_LABELS} times"
        raise Invalid.at("label", "too_long", message)
    arrived = engine.arrivals.put_in_order(arrived)
    after = replace(before, label=add_label(verdicts(labels), label))
    observed = await engine.windows.observe(
        Record(account, id_, created.time, arrived, after, before), ()
    )
    entry = Entry(
        sequence=observed.sequence,
        account=account,
        kind=Kind.LABEL,
        id=id_,
        arrived=arrived,
        time=arrived,
        body=encode_label(label),
    )
    return Pending(observed, entry)


async def labels_of(engine: Engine, account: int, payment_id: str) -> Mapping[LabelSource, Label]:
    """Each source's present label of a payment."""
    return labels_in(await engine.journal.of_record(account, Kind.LABEL, payment_id))


def _same(present: Label | None, label: Label) -> bool:
    if present is None:
        return label.label is None
    return (present.label, present.reason) == (label.label, label.reason)
