"""Regular expressions: RE2 syntax and its linear time, with a bound on memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

MAX_MEMORY = 1 << 20
MAX_SIZE = 250_000
"""The instructions of all the patterns of a file: a few megabytes, and a fraction of a second."""
_SHORT = 256
_RECENT = 64
"""How many texts of up to `_SHORT` characters a test remembers: a payment asks the same several
times."""


class RegexError(ValueError):
    """What is wrong with a pattern, in one line."""


@lru_cache(maxsize=512)
def compile_regex(pattern: str, ignore_case: bool) -> Any:
    """The compiled pattern; `.search(text)` is its test, `.programsize` its instructions.

    Raises RegexError for a pattern that RE2 doesn't take.
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
"""The attribute of a test that has what it was made of."""


def regex_test(pattern: str, ignore_case: bool) -> Callable[[str], bool]:
    """Whether the pattern is found in a text. Raises as `compile_regex`."""
    search = compile_regex(pattern, ignore_case).search

    def is_found(text: str) -> bool:
        # In bytes, as the library works out the places of a text's characters for what it finds.
        return search(text.encode()) is not None

    recent = lru_cache(maxsize=_RECENT)(is_found)

    def test(text: str) -> bool:
        return recent(text) if len(text) <= _SHORT else is_found(text)

    setattr(test, TEST_OF, (pattern, ignore_case))
    return test


def _words(problem: Exception) -> str:
    said = problem.args[0] if problem.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return text or "not a regular expression"
