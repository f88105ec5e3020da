"""The numbers by which a snapshot names an account's texts: given in C, or, where it can't be built,
in Python.
"""

from __future__ import annotations

from array import array
from typing import Any

NO_PART = -1
"""Instead of a part: the values themselves."""

try:
    from tollkeeper.engine.velocity._texts import number_texts as number_texts
    from tollkeeper.engine.velocity._texts import texts_of as texts_of
except ImportError:  # where C can't be built

    def number_texts(
        numbers: dict[str, int], added: list[str], values: list[Any], part: int, /
    ) -> bytes | None:
        """The numbers of the values, or of one part of each, as packed 32-bit integers; None unless all
        are texts. A text without a number gets the next one, and is appended to `added`.
        """
        texts = values if part == NO_PART else [value[part] for value in values]
        if {*map(type, texts)} - {str}:
            return None
        for text in texts:
            if text not in numbers:
                numbers[text] = len(numbers)
                added.append(text)
        return array("I", map(numbers.__getitem__, texts)).tobytes()

    def texts_of(packed: bytes, texts: list[str], /) -> list[str]:
        """The texts of numbers that `number_texts` packed. Raises IndexError for one without a text."""
        return list(map(texts.__getitem__, array("I", packed)))
