"""Find the labels that payments have now, newest first."""

from __future__ import annotations

from msgspec import Struct

from tollkeeper.engine.labels.label import Label, LabelSource, Verdict, decode_label
from tollkeeper.engine.search.reading import _LAST, AccountIndex


class LabelledPayment(Struct, frozen=True):
    """A label, the id of its payment, and when it arrived (µs)."""

    payment: str
    arrived: int
    label: Label


class LabelPage(Struct, frozen=True):
    """One page; `cursor` continues it, None at the end."""

    labels: list[LabelledPayment]
    cursor: int | None


class FindLabels(Struct, frozen=True, tag=True):
    """A page of labels, newest first: those that arrived at `since` (µs) or later, from this source and
    with this verdict.
    """

    since: int
    source: LabelSource | None
    label: Verdict | None
    cursor: int | None
    limit: int

    def answer(self, index: AccountIndex) -> LabelPage:
        rows = index.connection.execute(
            "SELECT sequence FROM labels INDEXED BY labels_in_order"
            " WHERE account = ? AND sequence >= ? AND sequence < ?"
            " AND coalesce(source = ?, TRUE) AND coalesce(label = ?, TRUE)"
            " ORDER BY sequence DESC LIMIT ?",
            (
                index.account,
                # Not the index's own, which for a whole minute is that of its first payment.
                index.tail.sequence_at(self.since),
                _LAST if self.cursor is None else self.cursor,
                self.source,
                self.label,
                self.limit + 1,
            ),
        )
        sequences = [sequence for (sequence,) in rows]
        found = []
        for sequence in sequences[: self.limit]:
            entry = index.tail.entry(sequence)
            if entry is not None:
                found.append(LabelledPayment(entry.id, entry.arrived, decode_label(entry.body)))
        return LabelPage(found, sequences[self.limit - 1] if len(sequences) > self.limit else None)
