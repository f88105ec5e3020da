"""A payment's outcome in one byte: its action, status and label.

To count few payments of many blocks, their bytes are read, not the sets of all those blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, get_args

from tollkeeper.engine.decision import Action
from tollkeeper.engine.intake.payment import PaymentStatus
from tollkeeper.engine.labels.label import VERDICTS
from tollkeeper.engine.search.terms import Facet, Hashes

OUTCOME_VALUES: tuple[tuple[Facet, tuple[str, ...]], ...] = (
    (Facet.ACTION, get_args(Action)),
    (Facet.STATUS, get_args(PaymentStatus)),
    (Facet.LABEL, VERDICTS),
)
"""The facets that a tally counts, with their values."""

OUTCOMES = tuple((facet, name) for facet, names in OUTCOME_VALUES for name in names)
"""Each of these values with its facet."""

PIECE_SHIFT = 10
PIECE = 1 << PIECE_SHIFT
"""Outcome bytes are stored in pieces of this many, so that a change rewrites one piece."""

OutcomeCounts: TypeAlias = list[int]
"""The number of payments, then the number with each of `OUTCOMES`."""

OutcomeDigits: TypeAlias = Mapping[tuple[int, int], int]
"""For each term, the bits that it sets in a payment's byte."""


def _fields() -> Iterator[tuple[Facet, int, tuple[str, ...]]]:
    """For each facet, the lowest bit of its field in the byte, and its values, which are numbered
    from 1.
    """
    shift = 0
    for facet, names in OUTCOME_VALUES:
        yield facet, shift, names
        shift += len(names).bit_length()
    assert shift <= 8, "what becomes of a payment has no place in a byte"


_FIELDS = tuple(_fields())


def outcome_digits(hashes: Hashes, account: int) -> OutcomeDigits:
    """Return the digits for an account's terms."""
    return {
        (facet, hashes.value(account, facet, name)): number << shift
        for facet, shift, names in _FIELDS
        for number, name in enumerate(names, start=1)
    }


def outcome_names(byte: int) -> Iterator[tuple[Facet, str]]:
    """The terms that a payment's byte stands for; fields without a value are left out."""
    for facet, shift, names in _FIELDS:
        number = byte >> shift & (1 << len(names).bit_length()) - 1
        if 0 < number <= len(names):
            yield facet, names[number - 1]


POSITIONS = tuple(
    tuple(OUTCOMES.index(named) + 1 for named in outcome_names(byte)) for byte in range(256)
)
"""For each byte, the positions in `OutcomeCounts` of the terms that it stands for."""


def count_outcomes(outcomes: bytes | bytearray) -> OutcomeCounts:
    """Count payments by their bytes."""
    counts = [len(outcomes)] + [0] * len(OUTCOMES)
    left = bytes(outcomes)
    while left:
        # Few bytes differ, so to take them out one by one is faster than to look at each.
        others = left.translate(None, left[:1])
        for position in POSITIONS[left[0]]:
            counts[position] += len(left) - len(others)
        left = others
    return counts


def place_in_piece(sequence: int) -> int:
    """Return the index of a payment's byte in its piece."""
    return sequence & PIECE - 1
