"""What may be asked of the index, as it is sent to the process that keeps it."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tollkeeper.engine.labels.label import Source, Verdict
from tollkeeper.engine.search.filters import Filter
from tollkeeper.engine.search.find import FoundPage, count, find
from tollkeeper.engine.search.labelled import LabelPage, find_labels
from tollkeeper.engine.search.reading import Index
from tollkeeper.engine.search.related import Related, related


class FindPayments(Struct, frozen=True, tag=True):
    """See `find`."""

    wanted: Filter
    cursor: int | None
    limit: int

    def answer(self, index: Index) -> FoundPage:
        return find(index, self.wanted, self.cursor, self.limit)


class CountPayments(Struct, frozen=True, tag=True):
    """See `count`."""

    wanted: Filter

    def answer(self, index: Index) -> int:
        return count(index, self.wanted)


class FindRelated(Struct, frozen=True, tag=True):
    """See `related`."""

    payment: str
    since: int | None

    def answer(self, index: Index) -> list[Related] | None:
        return related(index, self.payment, self.since)


class FindLabels(Struct, frozen=True, tag=True):
    """See `find_labels`."""

    since: int | None
    source: Source | None
    label: Verdict | None
    cursor: int | None
    limit: int

    def answer(self, index: Index) -> LabelPage:
        return find_labels(index, self.since, self.source, self.label, self.cursor, self.limit)


Question: TypeAlias = FindPayments | CountPayments | FindRelated | FindLabels
