"""What was known of payments at one place of the journal's sequence."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.labels.label import (
    LabelSource,
    Verdict,
    decode_label,
    verdict_of,
    with_label,
)


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """The label that counts of each payment that has one, and what it was at an earlier place of
    those of which something was said since.
    """

    now: dict[str, Verdict] = field(default_factory=dict)
    before: dict[str, Verdict | None] = field(default_factory=dict)


def known_labels(journal: Journal, account: int, up_to: int, since: int = 0) -> KnownLabels:
    """The account's labels at the sequence number `up_to`, and what changed beyond `since`. Blocks
    as `Journal.replay`.
    """
    said: defaultdict[str, dict[LabelSource, Verdict]] = defaultdict(dict)
    found = KnownLabels()
    for batch in journal.replay(account, up_to=up_to, kinds=(Kind.LABEL,)):
        for entry in batch:
            labels = said[entry.id]
            if entry.sequence > since > 0:
                found.before.setdefault(entry.id, verdict_of(labels))
            with_label(labels, decode_label(entry.body))
    for id_, labels in said.items():
        if (verdict := verdict_of(labels)) is not None:
            found.now[id_] = verdict
    return found
