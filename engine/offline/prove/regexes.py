"""Translate regular expressions from RE2's syntax to the solver's, as far as it can express them.

Python's parser parses a pattern, after a check that it only uses syntax with the same meaning in
both; anything else (`\\b`, `\\p{…}`, inner anchors or flags) has no formula.
"""

from __future__ import annotations

import re
from functools import cache
from re import _constants as codes
from re import _parser as parser
from typing import Any

import z3

from tollkeeper.engine.offline.prove.terms import (
    LAST_CODE_POINT,
    Formula,
    UnsayableError,
    text_formula,
)

_REPEATS = 1_000
_FOLDED = {"k": "\u212a", "s": "\u017f"}
"""Non-ASCII letters that RE2 treats as an ASCII one when it ignores case."""
_DIGITS = (("0", "9"),)
_WORD = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SPACE = (("\t", "\n"), ("\f", "\r"), (" ", " "))
_CATEGORIES = {
    codes.CATEGORY_DIGIT: (_DIGITS, False),
    codes.CATEGORY_NOT_DIGIT: (_DIGITS, True),
    codes.CATEGORY_WORD: (_WORD, False),
    codes.CATEGORY_NOT_WORD: (_WORD, True),
    codes.CATEGORY_SPACE: (_SPACE, False),
    codes.CATEGORY_NOT_SPACE: (_SPACE, True),
}
# Syntax that Python reads differently from RE2, or that only RE2 has.
_OTHER_MEANING = re.compile(r"\\[pPQEzCAZbB]|\(\?[^:]|\[\[:|\[\^?\]|\\x\{|[*+?}]\+|\{,")


@cache
def found_in(pattern: str, ignore_case: bool) -> Formula:
    """The texts that contain a match of the pattern. Raises `UnsayableError`."""
    flags, pattern = _leading_flags(pattern)
    if _OTHER_MEANING.search(pattern):
        raise UnsayableError(f"the expression /{pattern}/")
    try:
        parsed = list(parser.parse(pattern))
    except (re.error, RecursionError, OverflowError):
        raise UnsayableError(f"the expression /{pattern}/") from None
    return _search_pattern(parsed, ignore_case or "i" in flags, "s" in flags)


def _leading_flags(pattern: str) -> tuple[str, str]:
    found = re.match(r"\(\?([is]+)\)", pattern)
    return (found[1], pattern[found.end() :]) if found else ("", pattern)


def _search_pattern(parsed: list[Any], ignore_case: bool, dot_all: bool) -> Formula:
    """In alternatives of the whole pattern, each alternative has its own anchors."""
    if len(parsed) == 1 and parsed[0][0] is codes.BRANCH:
        options = [_search_pattern(list(each), ignore_case, dot_all) for each in parsed[0][1][1]]
        return _union(options)
    start = bool(parsed) and parsed[0] == (codes.AT, codes.AT_BEGINNING)
    end = bool(parsed) and parsed[-1] == (codes.AT, codes.AT_END)
    inner = parsed[1 if start else 0 : len(parsed) - 1 if end else len(parsed)]
    middle = _sequence(inner, ignore_case, dot_all)
    anything = z3.Full(z3.ReSort(z3.StringSort()))
    parts = [*([] if start else [anything]), middle, *([] if end else [anything])]
    return z3.Concat(*parts) if len(parts) > 1 else middle


def _sequence(parsed: Any, ignore_case: bool, dot_all: bool) -> Formula:
    parts = [_one(code, given, ignore_case, dot_all) for code, given in parsed]
    if not parts:
        return z3.Re(z3.StringVal(""))
    return z3.Concat(*parts) if len(parts) > 1 else parts[0]


def _one(code: Any, given: Any, ignore_case: bool, dot_all: bool) -> Formula:
    if code is codes.LITERAL:
        return _union([_range(low, high) for low, high in _cases(chr(given), ignore_case)])
    if code is codes.NOT_LITERAL:
        return _but([_range(low, high) for low, high in _cases(chr(given), ignore_case)])
    if code is codes.ANY:
        return _any() if dot_all else _but([_range("\n", "\n")])
    if code is codes.IN:
        return _set(given, ignore_case)
    if code is codes.BRANCH:
        return _union([_sequence(each, ignore_case, dot_all) for each in given[1]])
    if code is codes.SUBPATTERN:
        _, on, off, inner = given
        if on or off:
            raise UnsayableError("flags inside an expression")
        return _sequence(inner, ignore_case, dot_all)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        return _repeat(*given, ignore_case=ignore_case, dot_all=dot_all)
    raise UnsayableError("a part of an expression")


def _repeat(low: Any, high: Any, inner: Any, *, ignore_case: bool, dot_all: bool) -> Formula:
    once = _sequence(inner, ignore_case, dot_all)
    if high is codes.MAXREPEAT:
        if low == 0:
            return z3.Star(once)
        return z3.Plus(once) if low == 1 else z3.Concat(z3.Loop(once, low, low), z3.Star(once))
    if high > _REPEATS:
        raise UnsayableError("a repetition of more than a thousand times")
    return z3.Option(once) if (low, high) == (0, 1) else z3.Loop(once, low, high)


def _set(given: Any, ignore_case: bool) -> Formula:
    negated = bool(given) and given[0][0] is codes.NEGATE
    ranges: list[Formula] = []
    for code, item in given[1:] if negated else given:
        if code is codes.LITERAL:
            ranges += [_range(low, high) for low, high in _cases(chr(item), ignore_case)]
        elif code is codes.RANGE:
            ranges += _range_of_cases(chr(item[0]), chr(item[1]), ignore_case)
        elif code is codes.CATEGORY:
            if ignore_case and item in (codes.CATEGORY_WORD, codes.CATEGORY_NOT_WORD):
                raise UnsayableError("word characters without regard to case")
            spans, other = _CATEGORIES[item]
            inside = [_range(low, high) for low, high in spans]
            ranges.append(_but(inside) if other else _union(inside))
        else:
            raise UnsayableError("a part of a character class")
    return _but(ranges) if negated else _union(ranges)


def _range_of_cases(low: str, high: str, ignore_case: bool) -> list[Formula]:
    if not ignore_case:
        return [_range(low, high)]
    if ord(high) > 0x7F:
        raise UnsayableError("letters beyond ASCII without regard to case")
    every = {each for code in range(ord(low), ord(high) + 1) for each in _cases(chr(code), True)}
    return [_range(first, last) for first, last in sorted(every)]


def _cases(char: str, ignore_case: bool) -> list[tuple[str, str]]:
    if not ignore_case or (char.isascii() and not char.isalpha()):
        return [(char, char)]
    if not char.isascii():
        raise UnsayableError("letters beyond ASCII without regard to case")
    every = [char.lower(), char.upper(), *_FOLDED.get(char.lower(), "")]
    return [(each, each) for each in every]


def _range(low: str, high: str) -> Formula:
    return z3.Range(text_formula(low), text_formula(high))


def _any() -> Formula:
    return z3.Range(text_formula("\0"), text_formula(chr(LAST_CODE_POINT)))


def _but(ranges: list[Formula]) -> Formula:
    return z3.Intersect(_any(), z3.Complement(_union(ranges)))


def _union(options: list[Formula]) -> Formula:
    return z3.Union(*options) if len(options) > 1 else options[0]
