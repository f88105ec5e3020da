"""Set or withdraw a payment's label; windows that read labels count it at once."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.keep import Pending
from tollkeeper.engine.labels.label import (
    Label,
    LabelSource,
    add_label,
    encode_label,
    labels_in,
    verdicts,
)
from tollkeeper.engine.labels.payment_state import payment_state
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.runtime import Engine
from tollkeeper.engine.velocity.contract import Record


async def set_label(engine: Engine, account: int, payment_id: str, label: Label) -> bool:
    """Set a label; returns, once it is on disk, whether it changed anything.

    Raises `NotFound` when no payment has the id, `Unavailable` or `Overloaded` when the label
    can't be kept.
    """
    async with engine.locks.of("payment", account, payment_id):
        known = await engine.journal.first_and_last(account, payment_id)
        if known is None:
            raise NotFound("id", "no payment has this id")
        said = (await labels_of(engine, account, payment_id)).get(label.source)
        if _same(said, label):
            return False
        pending = await count_label(engine, *known, label, engine.clock())
        kept = None
        try:
            kept = engine.journal.append(pending.entry)
            await kept
        finally:
            # Also in a request that was cancelled: it is woken only once its entry is kept or lost.
            if kept is None or kept.exception() is not None:
                await engine.windows.withdraw(pending.observed)
    return True


async def count_label(
    engine: Engine, created: Entry, latest: Entry, label: Label, arrived: int
) -> Pending:
    """Count a payment with a new label, which is still to be kept; `arrived` in µs.

    `latest` is the payment's last update, `created` when it has none.
    """
    account, id_ = created.account, created.id
    said = verdicts(await labels_of(engine, account, id_))
    before = await payment_state(engine, created, latest)
    after = replace(before, label=add_label(said, label))
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


def _same(said: Label | None, label: Label) -> bool:
    if said is None:
        return label.label is None
    return (said.label, said.reason) == (label.label, label.reason)
