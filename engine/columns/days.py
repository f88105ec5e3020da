"""Which parts of days an export has to write: those with new data, and those that were altered.

Payments belong to the day of their arrival, in UTC, and their updates and labels to the same day.
Arrivals grow with sequence numbers, so a day is a span of numbers; it is divided into parts at
multiples of `PART_NUMBERS`. So new data cost one part, however long the day.
"""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from tollkeeper.engine.columns.layout import (
    PART_NUMBERS,
    ExportProgress,
    WrittenPart,
    day_number,
    part_name,
)
from tollkeeper.engine.instants import DAY
from tollkeeper.engine.journal import reads
from tollkeeper.engine.journal.entries import Kind

_NEXT_PAYMENT = (
    "SELECT place, arrived FROM journal INDEXED BY by_account"
    f" WHERE account = ? AND place > ? AND place <= ? AND kind = {Kind.PAYMENT:d}"
    " ORDER BY place LIMIT 1"
)
# Of payments up to a sequence number, the days and parts to which something was added beyond another.
_ADDED_TO = (
    "SELECT payment.arrived / ?, min(payment.place), max(payment.place)"
    " FROM journal AS added INDEXED BY by_account"
    " CROSS JOIN journal AS payment INDEXED BY by_id"
    " ON payment.account = added.account AND payment.id = added.id"
    f" AND payment.kind = {Kind.PAYMENT:d}"
    " WHERE added.account = ? AND added.place > ? AND added.place <= ? AND added.kind = ?"
    " AND payment.place <= ? GROUP BY payment.arrived / ?, payment.place / ?"
)
# A seal tells of the numbers up to its own; the last that counts is the first beyond the part.
_LAST_SEAL = "SELECT min(sequence) FROM seals WHERE sequence >= ?"
_ALTERED = (
    "SELECT coalesce(sum(removed), 0), coalesce(sum(changed), 0) FROM seals"
    " WHERE sequence BETWEEN ? AND ?"
)
# An update is another entry than its payment, and may be of another day.
_AMENDED = (
    "SELECT EXISTS (SELECT 1 FROM amendments AS amended WHERE number > ?1 AND account = ?2"
    " AND (place >= ?3 AND place < ?4 OR EXISTS"
    " (SELECT 1 FROM journal AS payment INDEXED BY by_id WHERE payment.account = ?2"
    f" AND payment.id = amended.id AND payment.kind = {Kind.PAYMENT:d}"
    " AND payment.place >= ?3 AND payment.place < ?4)))"
)


class PaymentPart(NamedTuple):
    """A part of a day, with sequence numbers from `first` to before `beyond`."""

    name: str
    first: int
    beyond: int


def payment_parts(
    connection: sqlite3.Connection, account: int, after: int, up_to: int
) -> Iterator[PaymentPart]:
    """The parts of payments with sequence numbers in (after, up_to], oldest first."""
    while True:
        found = connection.execute(_NEXT_PAYMENT, (account, after, up_to)).fetchone()
        if found is None:
            return
        place, arrived = found
        part = span_of_part(connection, _part_with(connection, place, arrived // DAY), up_to)
        yield part
        after = part.beyond - 1


def _part_with(connection: sqlite3.Connection, place: int, day: int) -> str:
    """The part with a sequence number that arrived on a day: that day's, but where older releases gave
    what had waited over midnight a number of the next day's span."""
    while reads.sequence_at(connection, (day + 1) * DAY) <= place:
        day += 1
    while reads.sequence_at(connection, day * DAY) > place:
        day -= 1
    return part_name(day, place // PART_NUMBERS)


def span_of_part(connection: sqlite3.Connection, name: str, up_to: int) -> PaymentPart:
    """A part by its name, with its span as far as `up_to`."""
    day, number = day_number(name), int(name.partition("/")[2])
    first = reads.sequence_at(connection, day * DAY)
    beyond = reads.sequence_at(connection, (day + 1) * DAY)
    return PaymentPart(
        name, max(first, number * PART_NUMBERS), min(beyond, (number + 1) * PART_NUMBERS, up_to + 1)
    )


def added_to(
    connection: sqlite3.Connection, account: int, kind: Kind, progress: ExportProgress, up_to: int
) -> set[str]:
    """The parts whose exported payments got updates (or labels, by `kind`) after the last export."""
    after = progress.sequence
    if not after:
        return set()
    part = (DAY, PART_NUMBERS)
    rows = connection.execute(
        _ADDED_TO, (DAY, account, after, up_to, kind, after, *part)
    ).fetchall()
    return {_part_with(connection, place, day) for day, *ends in rows for place in ends}


def alterations(connection: sqlite3.Connection, first: int, beyond: int) -> tuple[int, int] | None:
    """A mark of what retention and erasure altered in a span of sequence numbers: it changes with
    each alteration.

    None while part of the span is not sealed. A seal also covers numbers around the span, so that
    now and then a part is written again without need.
    """
    (last,) = connection.execute(_LAST_SEAL, (beyond - 1,)).fetchone()
    if last is None:
        return None
    removed, changed = connection.execute(_ALTERED, (first, last)).fetchone()
    return int(removed), int(changed)


def unaltered(
    connection: sqlite3.Connection, account: int, part: WrittenPart
) -> WrittenPart | None:
    """A written part with its present mark; None when retention or erasure altered it since, or may
    have: for unsealed entries that is known from amendments, which are removed after a day.
    """
    # Read first: what is altered from here on is found by the next export.
    now = replace(
        part,
        altered=alterations(connection, part.first, part.beyond),
        amendment=reads.last_amendment(connection),
    )
    if part.altered is not None:
        return now if now.altered == part.altered else None
    span = (part.amendment, account, part.first, part.beyond)
    (is_amended,) = connection.execute(_AMENDED, span).fetchone()
    return None if is_amended or reads.lacks_amendments(connection, part.amendment) else now
