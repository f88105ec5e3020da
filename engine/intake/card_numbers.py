"""Card numbers in text: found by their scheme's prefix and length and the Luhn check, masked.

docs/api.md, "Validation": 16 digits and more keep the first 8 and the last 4,
shorter ones the first 6 and the last 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from typing import TypeAlias

# First and last prefix of four digits, and the lengths of the numbers that begin so.
_SCHEMES = (
    ("3000", "3059", (14, 16, 19)),  # Diners Club
    ("3095", "3095", (14, 16, 19)),
    ("3400", "3499", (15,)),  # American Express
    ("3528", "3589", (16, 17, 18, 19)),  # JCB
    ("3600", "3699", (14, 16, 19)),  # Diners Club
    ("3700", "3799", (15,)),  # American Express
    ("3800", "3999", (14, 16, 19)),  # Diners Club, Hipercard
    ("4000", "4999", (13, 16, 19)),  # Visa, Elo
    ("5018", "5018", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("5020", "5020", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("5038", "5038", (12, 13, 14, 15, 16, 17, 18, 19)),
    ("5041", "5041", (16,)),  # Elo
    ("5066", "5067", (16,)),
    ("5090", "5099", (16,)),
    ("5100", "5599", (16,)),  # Mastercard
    ("5893", "5893", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("6011", "6011", (16, 17, 18, 19)),  # Discover
    ("6062", "6062", (13, 16, 19)),  # Hipercard
    ("6200", "6299", (16, 17, 18, 19)),  # UnionPay, Discover, Elo
    ("6304", "6304", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("6362", "6363", (16,)),  # Elo
    ("6370", "6370", (16,)),  # Hipercard
    ("6440", "6599", (16, 17, 18, 19)),  # Discover, Elo
    ("6759", "6763", (12, 13, 14, 15, 16, 17, 18, 19)),  # Maestro
    ("8100", "8199", (16, 17, 18, 19)),  # UnionPay
    ("2200", "2204", (16, 17, 18, 19)),  # Mir
    ("2221", "2720", (16,)),  # Mastercard
)
_LENGTHS = {
    f"{prefix:04}": lengths[::-1]
    for first, last, lengths in _SCHEMES
    for prefix in range(int(first), int(last) + 1)
}
_SHORTEST = 12
_LONGEST = 19

_RUN = re.compile(
    rf"[0-9](?:[ \u00a0-]?[0-9]|(?<=[0-9]{{4}})[._/](?=[0-9]{{3}})[0-9]){{{_SHORTEST - 1},}}"
)
_TO_SPACES = str.maketrans("\u00a0._/-", "     ")

_PASSED_OVER = " \u00a0-\\".encode()


def _table(zeros: bytes) -> bytes:
    """Digits to zeros, the separators that stand between groups of four to dots."""
    return bytes(
        ord("0" if byte in zeros else "." if byte in b"._/" else "x") for byte in range(256)
    )


_AS_ZERO = _table(b"0123456789")
# In a body with escapes, the characters of those that may stand for a digit or a separator, too.
_ESCAPED_AS_ZERO = _table(b"0123456789uadefADEF")
_SHORTEST_RUN = b"0" * _SHORTEST
_TWO_GROUPS = b"0000.0000"
_DOUBLED = bytes.maketrans(b"0123456789", bytes([0, 2, 4, 6, 8, 1, 3, 5, 7, 9]))
_PLAIN = bytes.maketrans(b"0123456789", bytes(range(10)))
_STARS = str.maketrans("0123456789", "**********")

# Runs in a body; with more, looking into each would cost what no honest request does.
_MANY_RUNS = 250

Mask: TypeAlias = Callable[[str], str]


def mask_for(body: bytes) -> Mask | None:
    """How the texts in the JSON `body` are masked; None when none can hold a card number.

    In a flood of digits a text with any run long enough to hold one loses all its digits.
    """
    # A single byte is found sooner than two, and most bodies have no escape.
    escaped = b"\\" in body and b"\\u" in body
    shown = body.translate(_ESCAPED_AS_ZERO if escaped else _AS_ZERO, _PASSED_OVER)
    runs = shown.count(_SHORTEST_RUN) + shown.count(_TWO_GROUPS)
    if runs == 0:
        return None
    return mask_card_numbers if runs <= _MANY_RUNS else blot_digits


def mask_card_numbers(text: str) -> str:
    """`text` with every card number in it masked; its cost is linear in its length."""
    return _RUN.sub(_masked_run, text)


def blot_digits(text: str) -> str:
    """`text` without a readable digit when it has a run that is long enough for a card number."""
    return text.translate(_STARS) if has_run(text) else text


def has_run(text: str) -> bool:
    """Whether `text` has a run of digits as long as a card number; quicker than to mask it."""
    shown = text.encode().translate(_AS_ZERO, _PASSED_OVER)
    return _SHORTEST_RUN in shown or _TWO_GROUPS in shown


def mask_number(number: float, mask: Mask = mask_card_numbers) -> float | str:
    """A JSON number as it is, or as masked text when its digits are a card number."""
    if not (10 ** (_SHORTEST - 1) <= number < 10**_LONGEST) or number != int(number):
        return number
    text = str(int(number))
    shown = mask(text)
    return number if shown == text else shown


def _masked_run(match: re.Match[str]) -> str:
    """A run of digits with single separators; a number in it begins and ends at groups."""
    run = match[0]
    groups = run.translate(_TO_SPACES).split(" ")
    digits = "".join(groups)
    if len(groups) == 1 and len(digits) > _LONGEST:
        return run
    starts = [0, *accumulate(map(len, groups))]
    ends = set(starts)
    sums = _luhn_sums(digits.encode())
    shown = list(digits)
    free = 0
    for start in starts:
        if start < free:
            continue
        for length in _LENGTHS.get(digits[start : start + 4], ()):
            end = start + length
            if end in ends and _passes_luhn(sums, start, end):
                kept = start + (8 if length >= 16 else 6)
                shown[kept : end - 4] = "*" * (end - 4 - kept)
                free = end
                break
    if not free:
        return run
    remaining = iter(shown)
    return "".join(next(remaining) if character.isdigit() else character for character in run)


def _luhn_sums(digits: bytes) -> tuple[list[int], list[int]]:
    """Running sums with the digits at odd places doubled, and with those at even places."""
    odd, even = bytearray(digits.translate(_PLAIN)), bytearray(digits.translate(_PLAIN))
    odd[1::2] = digits[1::2].translate(_DOUBLED)
    even[0::2] = digits[0::2].translate(_DOUBLED)
    return [0, *accumulate(odd)], [0, *accumulate(even)]


def _passes_luhn(sums: tuple[list[int], list[int]], start: int, end: int) -> bool:
    """Luhn (ISO/IEC 7812-1): the last digit is plain, every second one before it doubled."""
    running = sums[(end - 1) % 2]
    return (running[end] - running[start]) % 10 == 0
