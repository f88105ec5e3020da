"""What became of each payment, in one byte beside its sequence number: its action, status and label.

A set of payments says for many at once who has a value; a payment's byte says of it alone all that
is counted, so that few payments of many blocks are tallied without the sets of those blocks.
"""

from __future__ import annotations

from collections import Counter
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
"""What a tally counts of payments, and the values that it may have."""

OUTCOMES = tuple((facet, name) for facet, names in OUTCOME_VALUES for name in names)
"""Each of these values with its facet."""

PIECE_SHIFT = 10
PIECE = 1 << PIECE_SHIFT
"""The bytes of so many sequence numbers are stored as one: a change rewrites no more."""

OutcomeCounts: TypeAlias = list[int]
"""How many payments there are, then how many of them each of `OUTCOMES`."""

OutcomeDigits: TypeAlias = Mapping[tuple[int, int], int]
"""By a term's value, the bits that it sets in the byte of a payment; no two of a facet are set."""


def _fields() -> Iterator[tuple[Facet, int, tuple[str, ...]]]:
    """By facet, the lowest bit of its number within the byte, and the names that are numbered from
    1."""
    shift = 0
    for facet, names in OUTCOME_VALUES:
        yield facet, shift, names
        shift += len(names).bit_length()
    assert shift <= 8, "what becomes of a payment has no place in a byte"


_FIELDS = tuple(_fields())


def outcome_digits(hashes: Hashes, account: int) -> OutcomeDigits:
    """Those of an account's values."""
    return {
        (facet, hashes.value(account, facet, name)): number << shift
        for facet, shift, names in _FIELDS
        for number, name in enumerate(names, start=1)
    }


def outcome_names(byte: int) -> Iterator[tuple[Facet, str]]:
    """What a payment's byte says; nothing of what no byte says."""
    for facet, shift, names in _FIELDS:
        number = byte >> shift & (1 << len(names).bit_length()) - 1
        if 0 < number <= len(names):
            yield facet, names[number - 1]


POSITIONS = tuple(
    tuple(OUTCOMES.index(named) + 1 for named in outcome_names(byte)) for byte in range(256)
)
"""By a payment's byte, the places among `OUTCOMES`, counted from 1, of what it says."""


def count_outcomes(outcomes: bytes | bytearray) -> OutcomeCounts:
    """Counts payments by their bytes."""
    counts = [len(outcomes)] + [0] * len(OUTCOMES)
    for byte, times in Counter(outcomes).items():
        for position in POSITIONS[byte]:
            counts[position] += times
    return counts


def place_in_piece(sequence: int) -> int:
    """Where a payment's byte stands in its piece."""
    return sequence & PIECE - 1
