"""A label as it is kept, and which of a payment's labels counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

Verdict: TypeAlias = Literal["fraud", "legitimate", "unsure"]
LabelSource: TypeAlias = Literal[
    "chargeback", "early_warning", "review", "customer", "refund", "import"
]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SOURCES: tuple[LabelSource, ...] = get_args(LabelSource)
"""The weightiest first: of several sources that are sure, the first one's word counts."""


class Label(Struct, frozen=True, omit_defaults=True):
    """The body of an entry of kind `LABEL`; its id is the payment's.

    `label` is None when the source takes back what it said. `at` (µs) is when the source came to
    know, `by` the key or command that told it, or the event.
    """

    source: LabelSource
    label: Verdict | None
    at: int
    by: str
    reason: str | None = None


encode_label = msgspec.json.Encoder().encode
decode_label = msgspec.json.Decoder(Label).decode


def verdict_of(labels: Mapping[LabelSource, Verdict]) -> Verdict | None:
    """The label that counts: of the weightiest source that is sure, else `unsure`, else none."""
    for source in SOURCES:
        if labels.get(source, "unsure") != "unsure":
            return labels[source]
    return "unsure" if labels else None
