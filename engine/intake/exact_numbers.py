"""Read numbers from their text, where the nearest double would not be exact enough."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from tollkeeper.grammar.types import METADATA_LIMIT, METADATA_SCALE

# A double tells any two numbers of at most 15 digits apart; with a point that is 16 characters.
_ALWAYS_EXACT = 16
# Up to here a double is wrong by far less than the last place; only close to the middle between
# two numbers of 6 places can that lead to the other one.
_FINE = 10**6
_CLOSE = 0.01
_LAST_PLACE = Decimal(1).scaleb(-METADATA_SCALE)


def has_two_decimals(written: str) -> bool:
    """Whether a JSON number has at most two decimals, zeros at its end set aside."""
    mantissa, _, exponent = written.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole.lstrip("-") + fraction
    significant = digits.rstrip("0")
    if not significant:
        return True
    # A number with a longer exponent is out of any range, or written to hide from it.
    if len(exponent) > _ALWAYS_EXACT:
        return False
    return len(fraction) - int(exponent or 0) - (len(digits) - len(significant)) <= 2


def double_of(written: str) -> float:
    """The double of a JSON number with a point or an exponent.

    Rounded to the 6 places that rules read, it is the number that was written, wherever some
    double is. Raises `ValueError` when no double is as large.
    """
    nearest = float(written)
    if nearest in (float("inf"), float("-inf")):
        raise ValueError("no double is as large")
    if len(written) <= _ALWAYS_EXACT or not 0 < abs(nearest) <= METADATA_LIMIT:
        return nearest
    if abs(nearest) < _FINE and abs(nearest * 10**METADATA_SCALE % 1 - 0.5) > _CLOSE:
        return nearest
    exact = _round_written(written)
    return nearest if _round_written(repr(nearest)) == exact else float(exact)


def _round_written(written: str) -> Decimal:
    return Decimal(written).quantize(_LAST_PLACE, ROUND_HALF_UP)
