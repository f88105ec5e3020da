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
"""How often a payment's labels may change: whoever sets or reads one reads all that was said before."""


class PaymentToLabel(NamedTuple):
    """A stored payment as it is now, and all that was said about it, oldest first."""

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
    """The payment to count a label of, None when no payment has the id.

    Hold the payment's lock until the label is kept: whatever changes the payment in between would
    be taken out of the windows as it was before.
    """
    known = await engine.journal.first_and_last(account, payment_id)
    if known is None:
        return None
    changes = await engine.journal.of_record(account, Kind.LABEL, payment_id)
    return PaymentToLabel(known[0], await payment_state(engine, *known), changes)


async def count_label(
    engine: Engine, payment: PaymentToLabel, label: Label, arrived: int
) -> Pending | None:
    """Count a payment with a new label, which is still to be kept; None where its source says the
    same already. `arrived` in µs.

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


def _same(known: Label | None, label: Label) -> bool:
    if known is None:
        return label.label is None
    return (known.label, known.reason) == (label.label, label.reason)
