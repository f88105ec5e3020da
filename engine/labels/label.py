"""A label as it is stored, and which of a payment's labels counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from tollkeeper.engine.journal.entries import Entry

Verdict: TypeAlias = Literal["fraud", "legitimate", "unsure"]
LabelSource: TypeAlias = Literal[
    "chargeback", "early_warning", "review", "customer", "refund", "import"
]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SOURCES: tuple[LabelSource, ...] = get_args(LabelSource)
"""By weight: the label of the first source that has one other than `unsure` counts."""


class Label(Struct, frozen=True, omit_defaults=True):
    """The body of an entry of kind `LABEL`; its id is the payment's.

    `label` is None when the source withdraws its label. `at` (µs) is when the source came to know,
    `by` the key, command or event that brought the label.
    """

    source: LabelSource
    label: Verdict | None
    at: int
    by: str
    reason: str | None = None


encode_label = msgspec.json.Encoder().encode
decode_label = msgspec.json.Decoder(Label).decode


def labels_in(entries: Iterable[Entry]) -> dict[LabelSource, Label]:
    """Each source's present label, from the entries of a payment's labels, oldest first."""
    labels: dict[LabelSource, Label] = {}
    for entry in entries:
        label = decode_label(entry.body)
        labels.pop(label.source, None)
        if label.label is not None:
            labels[label.source] = label
    return labels


def verdicts(labels: Mapping[LabelSource, Label]) -> dict[LabelSource, Verdict]:
    """The labels alone."""
    return {source: label.label for source, label in labels.items() if label.label is not None}


def verdict_in(entries: Iterable[Entry]) -> Verdict | None:
    """The label that counts, from the entries of a payment's labels, oldest first."""
    return verdict_of(verdicts(labels_in(entries)))


def add_label(by_source: dict[LabelSource, Verdict], label: Label) -> Verdict | None:
    """Put a source's new label into `by_source`; returns the label that counts then."""
    by_source.pop(label.source, None)
    if label.label is not None:
        by_source[label.source] = label.label
    return verdict_of(by_source)


def verdict_of(labels: Mapping[LabelSource, Verdict]) -> Verdict | None:
    """The label that counts: of the weightiest source that is sure, else `unsure`, else none."""
    for source in SOURCES:
        if labels.get(source, "unsure") != "unsure":
            return labels[source]
    return "unsure" if labels else None
