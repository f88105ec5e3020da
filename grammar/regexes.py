"""Regular expressions: RE2 syntax and linear time, with a memory bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

MAX_MEMORY = 1 << 20
MAX_SIZE = 250_000
"""The most instructions of all patterns of a file: a few megabytes, and a fraction of a second."""
_SHORT = 256
_RECENT = 64
"""The number of texts of up to `_SHORT` characters whose results a test caches: a payment tests the
same few repeatedly.
"""


class RegexError(ValueError):
    """What is wrong with a pattern, in one line."""


@lru_cache(maxsize=512)
def compile_regex(pattern: str, ignore_case: bool) -> Any:
    """Compile a pattern; `.search(text)` tests it, `.programsize` is its number of instructions.

    Raises RegexError for a pattern that RE2 doesn't accept.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        raise RegexError(_words(problem)) from None
    except UnicodeEncodeError:
        raise RegexError("half of a character outside the basic plane") from None


TEST_OF = "test_of"
"""The attribute of a test that holds its pattern and whether it ignores case."""


def regex_test(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """Return a function that tells whether the pattern occurs in a text. Raises as `compile_regex`."""
    search = compile_regex(pattern, ignore_case).search

    def is_found(text: str) -> bool:
        # As bytes: for text, the library also computes character positions, which takes longer.
        return search(text.encode()) is not None

    recent = lru_cache(maxsize=_RECENT)(is_found)

    def test(text: str) -> bool:
        return recent(text) if len(text) <= _SHORT else is_found(text)

    setattr(test, TEST_OF, (pattern, ignore_case))
    return test


def _words(problem: Exception) -> str:
    message = problem.args[0] if problem.args else ""
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return text or "not a regular expression"
