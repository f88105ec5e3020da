"""The labels of payments as of one sequence number."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.journal import Journal
from tollkeeper.engine.labels.label import (
    LabelSource,
    Verdict,
    add_label,
    decode_label,
    verdict_of,
)


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """`now` are the payments' labels as of a sequence number. `before` are the labels as of an
    earlier number, of those payments that got labels in between.
    """

    now: dict[str, Verdict] = field(default_factory=dict)
    before: dict[str, Verdict | None] = field(default_factory=dict)


def known_labels(journal: Journal, account: int, up_to: int, since: int = 0) -> KnownLabels:
    """The account's labels as of `up_to`, and of the payments labelled after `since`, those as of
    `since`.

    Blocks as `Journal.replay`.
    """
    verdicts: defaultdict[str, dict[LabelSource, Verdict]] = defaultdict(dict)
    found = KnownLabels()
    for batch in journal.replay(account, up_to=up_to, kinds=(Kind.LABEL,)):
        for entry in batch:
            labels = verdicts[entry.id]
            if entry.sequence > since > 0:
                found.before.setdefault(entry.id, verdict_of(labels))
            add_label(labels, decode_label(entry.body))
    for id_, labels in verdicts.items():
        if (verdict := verdict_of(labels)) is not None:
            found.now[id_] = verdict
    return found
