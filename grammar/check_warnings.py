"""The messages of the checker's warnings, one function each.

Warnings never stop a file from being published.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tollkeeper.grammar.diagnostics import Diagnostic, Fix
from tollkeeper.grammar.fixes import inserting, quoted, removing, replacing
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.words import listed


def _warning(
    code: str,
    span: Span,
    message: str,
    help: str | None = None,  # noqa: A002 - the field's name
    *fixes: Fix,
) -> Diagnostic:
    return Diagnostic(code, "warning", span, message, help, fixes)


def too_many_warnings(span: Span, most: int) -> Diagnostic:
    return _warning(
        "too-many-warnings",
        span,
        f"only {most} warnings are shown, and there are more",
        "mend those first",
    )


def never_met(span: Span, what: str, name: str) -> Diagnostic:
    return _warning(
        "never-met",
        span,
        f"the {what} `{name}` can't be met: its parts contradict each other",
        "take it out, or loosen one of its parts",
    )


def covered(span: Span, name: str, earlier: Sequence[str]) -> Diagnostic:
    return _warning(
        "covered",
        span,
        f"the condition `{name}` is never reached: {_met_before(earlier)} whenever it would be",
        "move it up, or take it out",
    )


def deny_after_allow(span: Span, name: str, earlier: Sequence[str]) -> Diagnostic:
    return _warning(
        "deny-after-allow",
        span,
        f"the condition `{name}` never denies: {_met_before(earlier)}, and allows",
        "move the `deny` up",
    )


def _met_before(earlier: Sequence[str]) -> str:
    few = 4
    return f"{listed(earlier)} above is met" if len(earlier) <= few else "one above is met"


def always_true(span: Span) -> Diagnostic:
    return _warning(
        "always-true",
        span,
        "this comparison is true of every value",
        "to ask whether a value is there, write `is present`",
    )


def compared_with_itself(span: Span, outcome: bool) -> Diagnostic:
    return _warning(
        "always-true" if outcome else "never-true",
        span,
        "both sides are the same value",
        "in an aggregate over history every name is the record's, `payment.` included; "
        "`earlier` leaves the payment itself out",
    )


def outside_range(span: Span, value: str, low: Decimal, high: Decimal, always: bool) -> Diagnostic:
    return _warning(
        "always-true" if always else "never-true",
        span,
        f"`{value}` is from {low:f} to {high:f}, so this is {'always' if always else 'never'} true",
        "to ask whether a value is there, write `is present`" if always else None,
    )


def too_many_decimals(span: Span, decimals: int, value: str) -> Diagnostic:
    most = f"has at most {decimals} decimals" if decimals else "is a whole number"
    return _warning("never-true", span, f"`{value}` {most}, so this is never true")


def between_downwards(span: Span, correction: str) -> Diagnostic:
    return _warning(
        "never-true",
        span,
        "`between` goes upwards, so this is never true",
        f"write `{correction}`",
        replacing(span, correction),
    )


def never_true(span: Span) -> Diagnostic:
    return _warning("never-true", span, "this comparison is true of no value")


def divided_by_zero(span: Span) -> Diagnostic:
    return _warning("never-true", span, "division by zero is missing, so this is never true")


def unused_let(span: Span, name: str, item: Span) -> Diagnostic:
    return _warning(
        "unused",
        span,
        f"the `let` `{name}` is never used",
        "take it out",
        removing(item, safe=True),
    )


def unused_list(span: Span, name: str, item: Span) -> Diagnostic:
    return _warning("unused", span, f"`@{name}` is never used", "take it out", removing(item))


def unused_definitions(span: Span, name: str, item: Span) -> Diagnostic:
    return _warning(
        "unused",
        span,
        f"nothing of `{name}` is used",
        "take the `use` out",
        removing(item, safe=True),
    )


def no_currency(span: Span) -> Diagnostic:
    return _warning(
        "no-currency",
        span,
        "amounts of every currency are compared with one number here",
        'say which: `currency == "USD" and …`, or `amount_in("USD")`',
    )


def mixed_currencies(span: Span, function: str, last_key: Span) -> Diagnostic:
    return _warning(
        "no-currency",
        span,
        f"`{function}` takes amounts of several currencies together",
        "add `currency` to its `by`, or ask for one in its `where`",
        inserting(last_key.end, ", currency"),
    )


def missing_under_not(span: Span, name: str, written: str) -> Diagnostic:
    """`written` is the whole `not …` as the author wrote it."""
    return _warning(
        "missing-under-not",
        span,
        f"`{name}` can be missing, and then this `not` isn't met either",
        f"say what that means: `({name} is missing or not …)` or `({name} is present and not …)`",
        replacing(span, f"({name} is missing or {written})"),
        replacing(span, f"({name} is present and {written})"),
    )


def negation_of_missing(span: Span, name: str, sign: str, written: str) -> Diagnostic:
    """`written` is the whole comparison as the author wrote it."""
    return _warning(
        "missing-under-not",
        span,
        f"`{name}` can be missing, and then this `{sign}` isn't met either",
        f"say what that means: `({name} is missing or …)` or `({name} is present and …)`",
        replacing(span, f"({name} is missing or {written})"),
        replacing(span, f"({name} is present and {written})", safe=False),
    )


def counts_itself(span: Span, function: str, outcome: bool, *fixes: Fix) -> Diagnostic:
    return _warning(
        "counts-itself",
        span,
        f"`{function}` counts the payment itself, so this is "
        f"{'always true' if outcome else 'never true'}",
        "`earlier` leaves it out",
        *fixes,
    )


def missing_without_key(span: Span, function: str, key: str, first: str) -> Diagnostic:
    return _warning(
        "first-seen",
        span,
        f"`{function}` is missing on the first record, and also when `{key}` is",
        f"for the first alone write `{first}`",
        replacing(span, first),
    )


def young_but_not_first(span: Span, first: str | None, written: str) -> Diagnostic:
    """`first` is the test for a first record; None if the aggregate is a named metric."""
    test = first or "first(…)"
    return _warning(
        "first-seen",
        span,
        "`age` is missing on the first record, so this isn't met then",
        f"if it should be, write `({test} or …)`",
        *([replacing(span, f"({first} or {written})")] if first else []),
    )


def never_sent(span: Span, field: str, refusal: str, *fixes: Fix) -> Diagnostic:
    return _warning("never-sent", span, f"`{field}` never arrives so: {refusal}", None, *fixes)


def never_given(span: Span, function: str, meant: str) -> Diagnostic:
    return _warning(
        "never-sent",
        span,
        f"`{function}` never gives this text",
        f"did you mean `{quoted(meant)}`?",
        replacing(span, quoted(meant)),
    )


def absent(span: Span, missing_path: str, read: str) -> Diagnostic:
    also = "" if missing_path == read else f"`{read}` is too and "
    return _warning(
        "reads-missing",
        span,
        f"`{missing_path}` is missing here, so {also}this is never true",
        "did you mean `is present`, or `or`?",
    )


def no_such_record(span: Span) -> Diagnostic:
    return _warning(
        "empty-where",
        span,
        "no record meets this `where`: its parts contradict each other",
        "loosen one of its parts",
    )


def distinct_of_key(span: Span, value: str) -> Diagnostic:
    return _warning(
        "odd-key",
        span,
        f"the records of one key all have the same `{value}`, so this is never more than 1",
        "count another field, or group by another key",
    )


def weak_key(span: Span) -> Diagnostic:
    return _warning(
        "odd-key",
        span,
        "a fingerprint is BIN and last four: 10,000 for a BIN, so many cards share one in time",
        "add a second key, such as `user.id`, or shorten the window to 7 days",
    )


def own_for_shipped(span: Span, name: str) -> Diagnostic:
    return _warning(
        "own-for-shipped",
        span,
        f"these are your own definitions `{name}`, in the place of those that are shipped",
        "give yours another name to use both",
    )


def needless_earlier(span: Span, function: str, before: int) -> Diagnostic:
    """`before` is the start of the text that the word precedes."""
    return _warning(
        "needless-earlier",
        span,
        f"`{function}` looks at earlier records anyway",
        "take `earlier` out",
        removing(Span(span.start, before), safe=True),
    )


def hidden_character(span: Span, character: str, name: str, escape: str) -> Diagnostic:
    return _warning(
        "odd-characters",
        span,
        f"this text holds a character that isn't seen: U+{ord(character):04X} {name}",
        f"take it out, or write `{escape}` to say that it is meant",
        removing(span),
        replacing(span, escape),
    )


def misleading_comment(span: Span, character: str, name: str) -> Diagnostic:
    return _warning(
        "odd-characters",
        span,
        f"a line with this character can look like another one: U+{ord(character):04X} {name}",
        "take it out",
        removing(span),
    )


def mixed_scripts(span: Span, word: str, scripts: Sequence[str]) -> Diagnostic:
    return _warning(
        "odd-characters",
        span,
        f"`{word}` mixes {' and '.join(scripts)} letters that look alike",
        "write it in one script",
    )
