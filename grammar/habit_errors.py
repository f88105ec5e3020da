"""The messages for habits from other languages, one function each.

Their codes are those of the syntax errors that they are in this language.
"""

from __future__ import annotations

from decimal import Decimal

from tollkeeper.grammar.diagnostics import Diagnostic, Edit, Fix
from tollkeeper.grammar.fixes import replacing
from tollkeeper.grammar.syntax import Span

_LONGEST_QUOTE = 40


def _error(code: str, span: Span, message: str, help_: str, *fixes: Fix) -> Diagnostic:
    return Diagnostic(code, "error", span, message, help_, fixes)


def foreign_comment(span: Span, *, is_alone: bool) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        "a comment begins with `#`",
        "write `#`; to divide, one `/` is enough",
        replacing(span, "#", safe=is_alone),
    )


def foreign_contains(span: Span, found: str) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        f"there is no `{found}` in this language",
        "here it is `contains`",
        replacing(span, "contains", safe=True),
    )


def foreign_like(span: Span, pattern: str) -> Diagnostic:
    inner = pattern.strip("%")
    plain = not set(inner) & {"%", "_"} and inner
    correction = {
        (False, True): f'starts with "{inner}"',
        (True, False): f'ends with "{inner}"',
        (True, True): f'contains "{inner}"',
        (False, False): f'== "{inner}"',
    }[pattern.startswith("%"), pattern.endswith("%")]
    return _error(
        "foreign-word",
        span,
        "there is no `like` in this language",
        f"write `{correction}`" if plain else "write `matches /…/`, as in `matches /^x.*y$/`",
        *([replacing(span, correction)] if plain else []),
    )


def quoted_action(span: Span, action: str) -> Diagnostic:
    return _error(
        "unknown-action",
        span,
        "an action stands without quotes",
        f"write `{action}`",
        replacing(span, action, safe=True),
    )


def decimal_comma(span: Span, found: str) -> Diagnostic:
    correction = found.replace(",", ".")
    return _error(
        "bad-number",
        span,
        "decimals have a point, and thousands no mark at all",
        f"write `{correction}` or `{found.replace(',', '')}`",
        replacing(span, correction),
        replacing(span, found.replace(",", "")),
    )


def percentage(span: Span, number: str) -> Diagnostic:
    correction = f"{Decimal(number).scaleb(-2).normalize():f}"
    return _error(
        "unknown-operator",
        span,
        "there are no percentages",
        f"write `{correction}`",
        replacing(span, correction),
    )


def amount_with_currency(span: Span, currency: str, end: int) -> Diagnostic:
    """`end` is where the number ends."""
    return _error(
        "missing-operator",
        span,
        "an amount is a number, its currency a field of its own",
        f'write `… and currency == "{currency}"`, or `amount_in("{currency}")`',
        Fix(
            f'ask for `currency == "{currency}"`',
            (Edit(Span(end, span.end), f' and currency == "{currency}"'),),
        ),
    )


def foreign_unit(span: Span, found: str, correction: str) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        f"`{found}` isn't a length of time here",
        f"write `{correction}`; the units are `ms`, `s`, `m`, `h` and `d`",
        replacing(span, correction, safe=True),
    )


def round_list(span: Span, inside: str) -> Diagnostic:
    return _error(
        "list-form",
        span,
        "a list stands in square brackets",
        f"write `[{inside if len(inside) <= _LONGEST_QUOTE else '…'}]`",
        replacing(span, f"[{inside}]", safe=True),
    )


def given_again(span: Span, correction: str) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "a file and values are given apart",
        "write `given` again" if correction else "take the comma out",
        Fix("give them apart", (Edit(span, correction),), safe=True),
    )


def missing_header(span: Span, item: str, holder: str) -> Diagnostic:
    return _error(
        "missing-declaration",
        span,
        f"a file with a `{item}` begins with `{holder}` and a name",
        f"put `{holder} NAME` above it",
        Fix(f"put `{holder}` above it", (Edit(Span(0, 0), f"{holder} my_{holder}\n"),)),
    )
