"""Say, or take back, what became known of a payment."""

from __future__ import annotations

from collections.abc import Mapping

from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import (
    Label,
    LabelSource,
    Verdict,
    decode_label,
    encode_label,
)
from tollkeeper.engine.registry.errors import NotFound
from tollkeeper.engine.runtime import Engine


async def set_label(engine: Engine, account: int, payment_id: str, label: Label) -> bool:
    """Keep a label; whether it says anything new. Done when it is on disk.

    Raises `NotFound` when no payment has the id, `Unavailable` or `Overloaded` when the label
    can't be kept.
    """
    if not await engine.journal.exists(account, Kind.PAYMENT, payment_id):
        raise NotFound("id", "no payment has this id")
    said = (await labels_of(engine, account, payment_id)).get(label.source)
    if _same(said, label):
        return False
    arrived = engine.clock()
    entry = Entry(
        sequence=await engine.windows.take_sequence(),
        account=account,
        kind=Kind.LABEL,
        id=payment_id,
        arrived=arrived,
        time=arrived,
        body=encode_label(label),
    )
    await engine.journal.append(entry)
    return True


async def labels_of(engine: Engine, account: int, payment_id: str) -> Mapping[LabelSource, Label]:
    """What each source says of a payment now."""
    said: dict[LabelSource, Label] = {}
    for entry in await engine.journal.of_record(account, Kind.LABEL, payment_id):
        label = decode_label(entry.body)
        said.pop(label.source, None)
        if label.label is not None:
            said[label.source] = label
    return said


def verdicts(labels: Mapping[LabelSource, Label]) -> dict[LabelSource, Verdict]:
    """The labels alone."""
    return {source: label.label for source, label in labels.items() if label.label is not None}


def _same(said: Label | None, label: Label) -> bool:
    if said is None:
        return label.label is None
    return (said.label, said.reason) == (label.label, label.reason)
