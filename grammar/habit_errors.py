"""The messages for habits from other languages, one function each.

Their codes are those of the syntax errors that they are in this language.
"""

from __future__ import annotations

from decimal import Decimal

from tollkeeper.grammar.diagnostics import Diagnostic, Edit, Fix
from tollkeeper.grammar.fixes import inserting, removing, replacing
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.words import GIVEN_BY_NAME, shorten

_LONGEST_QUOTE = 40
_NAME_FORM = "a name is made of letters a to z, digits and `_`"


def _error(code: str, span: Span, message: str, help_: str, *fixes: Fix) -> Diagnostic:
    return Diagnostic(code, "error", span, message, help_, fixes)


def _cut(text: str) -> str:
    return shorten(text, _LONGEST_QUOTE)


# Expressions


def foreign_comment(span: Span, correction: str | None, *, is_alone: bool) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        "a comment begins with `#`, and ends with its line",
        "write `#`; to divide, one `/` is enough",
        *([replacing(span, correction, safe=is_alone)] if correction else []),
    )


def colons(span: Span, name: str, *, is_metadata: bool) -> Diagnostic:
    correction = f'metadata["{name}"]' if is_metadata else name
    return _error(
        "foreign-word",
        span,
        "a field's name stands without colons",
        f"write `{_cut(correction)}`",
        replacing(span, correction),
    )


def operator_as_call(span: Span, operator: str, between: str, correction: str | None) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        f"`{operator}` stands between {between}, and takes none in brackets",
        f"write `{_cut(correction)}`" if correction else f"write `a {operator} b`",
        *([replacing(span, correction)] if correction else []),
    )


def method(span: Span, name: str, correction: str | None) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        f"a value has no method `{_cut(name)}`",
        f"write `{_cut(correction)}`"
        if correction
        else "write a function of it, as in `lower(user.email)`",
        *([replacing(span, correction)] if correction else []),
    )


def negated_operator(span: Span, correction: str) -> Diagnostic:
    return _error(
        "missing-in",
        span,
        "`not` after a value goes with `in`",
        f"write `{correction}`",
        replacing(span, correction, safe=True),
    )


def negated_comparison(
    span: Span, before: int, needless: Span, operator: str, correction: str
) -> Diagnostic:
    """`before` is where the comparison begins; `correction` comes in the place of `needless`."""
    edits = (Edit(Span(before, before), "not "), Edit(needless, correction))
    return _error(
        "missing-in",
        span,
        "`not` after a value goes with `in`",
        f"put `not` in front of the whole comparison, as in `not … {operator} …`",
        Fix("put `not` in front", edits, safe=True),
    )


def state(span: Span, correction: str, *, is_foreign: bool) -> Diagnostic:
    return _error(
        "foreign-word" if is_foreign else "missing-state",
        span,
        "a value `is missing` or `is present`",
        f"write `{correction}`",
        replacing(span, correction, safe=True),
    )


def given_missing(span: Span, found: str) -> Diagnostic:
    return _error(
        "missing-value",
        span,
        f"`{found}` is no value that can be given",
        "leave it out: only what is given is present",
    )


def needless_is(span: Span, operator: str) -> Diagnostic:
    return _error(
        "missing-state",
        span,
        f"`{operator}` compares by itself",
        "take `is` out",
        removing(span, safe=True),
    )


def foreign_phrase(span: Span, operator: str, code: str = "unknown-operator") -> Diagnostic:
    return _error(
        code,
        span,
        "a comparison is written with its sign",
        f"write `{operator}`",
        replacing(span, operator),
    )


def foreign_operator(span: Span, found: str, operator: str) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        f"there is no `{found}` in this language",
        f"here it is `{operator}`",
        replacing(span, operator, safe=True),
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


def if_for_when(span: Span) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        "there is no `if` in this language",
        "here it is `when`",
        replacing(span, "when", safe=True),
    )


def range_without_and(span: Span, found: str) -> Diagnostic:
    return _error(
        "missing-and",
        span,
        f"the ends of `between` are joined by `and`, not `{found}`",
        "write `between 1 and 5`; both ends are in",
        replacing(span, "and" if found[0].isalpha() or found[0] == "&" else " and "),
    )


def range_in_brackets(span: Span, correction: str) -> Diagnostic:
    return _error(
        "missing-and",
        span,
        "the ends of `between` are joined by `and`, without brackets",
        f"write `{_cut(correction)}`",
        replacing(span, correction, safe=True),
    )


def other_brackets(span: Span, inside: str) -> Diagnostic:
    return _error(
        "list-form",
        span,
        "a list stands in square brackets",
        f"write `[{inside if len(inside) <= _LONGEST_QUOTE else '…'}]`",
        replacing(span, f"[{inside}]", safe=True),
    )


def semicolon_in_brackets(span: Span) -> Diagnostic:
    return _error(
        "unknown-operator",
        span,
        "what stands in brackets is separated by commas",
        "write `,`",
        replacing(span, ",", safe=True),
    )


def missing_comma(span: Span, end: int) -> Diagnostic:
    """`end` is where the entry before it ends."""
    return _error(
        "list-form",
        span,
        "a list's values are separated by commas",
        "put a comma before it",
        inserting(end, ",", safe=True),
    )


def trailing_comma(span: Span) -> Diagnostic:
    return _error(
        "missing-value",
        span,
        "a value is missing after the last comma",
        "take the comma out",
        removing(span, safe=True),
    )


def pattern_in_quotes(span: Span, correction: str) -> Diagnostic:
    return _error(
        "missing-pattern",
        span,
        "`matches` needs a pattern between slashes, without quotes",
        f"write `{_cut(correction)}`",
        replacing(span, correction),
    )


def slash_in_pattern(span: Span) -> Diagnostic:
    return _error(
        "misplaced-pattern",
        span,
        "the pattern ends at the slash before this one",
        r"a slash within a pattern is written `\/`",
    )


def flag_of_pattern(span: Span, found: str) -> Diagnostic:
    return _error(
        "misplaced-pattern",
        span,
        f"a pattern takes no flag `{_cut(found)}`",
        "`/…/i` ignores case, and there is no other flag",
        removing(span),
    )


def count_of_all(span: Span) -> Diagnostic:
    return _error(
        "missing-value",
        span,
        "an aggregate names the records that it reads",
        "write `payments`, `transactions` or `events`",
        replacing(span, "payments"),
    )


def count_of_distinct(span: Span) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        "different values are counted by `distinct`",
        "write `distinct(payments.user.id by … over …)`",
        replacing(span, "distinct("),
    )


# Numbers


def decimal_comma(span: Span, found: str) -> Diagnostic:
    written = [found.replace(",", ".")]
    if not found.startswith("0"):
        written.append(found.replace(",", ""))
    return _error(
        "bad-number",
        span,
        "decimals have a point, and thousands no mark at all",
        f"write {' or '.join(f'`{each}`' for each in written)}",
        *(replacing(span, each) for each in written),
    )


def grouped_number(span: Span, correction: str) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        "decimals have a point, and thousands no mark at all",
        f"write `{_cut(correction)}`",
        replacing(span, correction),
    )


def short_number(span: Span, found: str, correction: str) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        f"`{_cut(found)}` isn't a number here",
        f"write `{_cut(correction)}`",
        replacing(span, correction),
    )


def plus_sign(span: Span) -> Diagnostic:
    return _error(
        "missing-value",
        span,
        "a number has no plus sign in front",
        "take it out",
        removing(span, safe=True),
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


def amount_with_currency(span: Span, currency: str, place: Span) -> Diagnostic:
    """`span` is what the fix replaces, `place` the currency."""
    return _error(
        "missing-operator",
        place,
        "an amount is a number, its currency a field of its own",
        f'write `… and currency == "{currency}"`, or `amount_in("{currency}")`',
        Fix(f'ask for `currency == "{currency}"`', (Edit(span, f' and currency == "{currency}"'),)),
    )


def amount_with_symbol(span: Span, number: str, currency: str, *, is_given: bool) -> Diagnostic:
    """`is_given` says that the amount is given to a test."""
    correction = f'{number} and currency == "{currency}"'
    other = f', or `amount_in("{currency}")`'
    if is_given:
        correction, other = f'{number}, currency = "{currency}"', ""
    return _error(
        "odd-character",
        span,
        "an amount is a number, its currency a field of its own",
        f"write `{_cut(correction)}`{other}",
        replacing(span, correction),
    )


def foreign_unit(span: Span, found: str, correction: str) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        f"`{found}` isn't a length of time here",
        f"write `{correction}`; the units are `ms`, `s`, `m`, `h` and `d`",
        replacing(span, correction, safe=True),
    )


def varying_unit(span: Span, found: str, correction: str) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        f"`{found}` isn't a length of time here: not all are equally long",
        f"write it in days, as in `{correction}`",
        replacing(span, correction),
    )


def too_long_window(span: Span, found: str, most: int) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        f"`{found}` isn't a length of time here, and a window is at most {most} days long",
        f"write `{most}d`; `age`, `first` and `since` look at all of history",
        replacing(span, f"{most}d"),
    )


def quoted_length(span: Span, length: str) -> Diagnostic:
    return _error(
        "missing-duration",
        span,
        "a length of time stands without quotes",
        f"write `{length}`",
        replacing(span, length, safe=True),
    )


# Items


def quoted_name(span: Span, name: str | None, title: str | None) -> Diagnostic:
    """`title` is the text as it stands, where a title can follow the name."""
    correction = name if title is None or name is None else f"{name} {title}"
    return _error(
        "missing-name",
        span,
        "a name stands without quotes" if title is None else "a name comes before the title",
        f"write `{_cut(correction)}`" if correction else _NAME_FORM,
        *([replacing(span, correction)] if correction else []),
    )


def name_of_words(span: Span, correction: str) -> Diagnostic:
    return _error(
        "bad-name",
        span,
        "a name is one word",
        f"write `{_cut(correction)}`; a title in quotes may follow it",
        replacing(span, correction),
    )


def colon_for_equals(span: Span) -> Diagnostic:
    return _error(
        "missing-equals",
        span,
        "a value is given with `=`, not with a colon",
        "write `=`",
        Fix("write `=`", (Edit(span, " ="),), safe=True),
    )


def word_for_equals(span: Span) -> Diagnostic:
    return _error(
        "missing-equals",
        span,
        "a value is given with `=`",
        "write `=`",
        replacing(span, "=", safe=True),
    )


def missing_sign_equals(span: Span) -> Diagnostic:
    return _error(
        "missing-equals",
        span,
        "a value is given with `=`",
        "put `=` before it",
        inserting(span.start, "= "),
    )


def colon_for_when(span: Span, *, is_followed: bool) -> Diagnostic:
    return _error(
        "missing-when",
        span,
        "a name is followed by `when`, without a colon",
        "take it out" if is_followed else "write `when`",
        removing(span, safe=True) if is_followed else replacing(span, " when"),
    )


def equals_for_colon(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "a step has a colon before what it adds",
        "write `:`",
        replacing(span, ":", safe=True),
    )


def needless_mark(span: Span, found: str, after: str) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        f"`{after}` is followed by no `{found}`",
        "take it out",
        removing(span, safe=True),
    )


def list_with_entries(span: Span, name: str) -> Diagnostic:
    return _error(
        "missing-type",
        span,
        "a list has a type here, and its entries are kept by the account",
        f'write `list {_cut(name)}: string`, or compare with `in ["a", "b"]`',
    )


def type_without_colon(span: Span, end: int) -> Diagnostic:
    """`end` is where the name before it ends."""
    return _error(
        "missing-type",
        span,
        "a colon stands before a type",
        "put `:` before it",
        inserting(end, ":", safe=True),
    )


def signal_in_words(span: Span) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        "there is no `if` in this language",
        "write `signal NAME adds … when …`, one for each case",
    )


def plus_for_adds(span: Span) -> Diagnostic:
    return _error(
        "missing-adds",
        span,
        "a signal says `adds` before how much",
        "write `adds`",
        replacing(span, "adds ", safe=True),
    )


def given_call(span: Span) -> Diagnostic:
    return _error(
        "missing-equals",
        span,
        "a test gives fields, `let`s, lists and the score, and computes nothing",
        GIVEN_BY_NAME,
    )


def file_without_quotes(span: Span, written: str) -> Diagnostic:
    return _error(
        "missing-text",
        span,
        "a file's name stands in double quotes",
        f'write `"{_cut(written)}"`',
        replacing(span, f'"{written}"', safe=True),
    )


def choices_in_brackets(span: Span, correction: str) -> Diagnostic:
    return _error(
        "unknown-type",
        span,
        "choices are separated by `|`, without brackets",
        f"write `{_cut(correction)}`",
        replacing(span, correction, safe=True),
    )


def wish_of_field(span: Span, *, touches: bool, is_required: bool) -> Diagnostic:
    required = f"{' ' * touches}required"
    fix = replacing(span, required) if is_required else removing(span)
    return _error(
        "unexpected",
        span,
        "a field may be left out unless it is `required`",
        "write `required`" if is_required else "take it out",
        fix,
    )


def item_without_word(span: Span, item: str) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        f"this begins with `{item}`",
        f"put `{item}` before it",
        inserting(span.start, f"{item} "),
    )


def action_of_signal(span: Span) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        "a signal has no action: it adds to the score, of which a rule asks",
        "take it out; in a rule write `condition NAME when score >= 0.8 then deny`",
    )


def amount_taken_off(span: Span, number: str) -> Diagnostic:
    return _error(
        "missing-adds",
        span,
        "a signal `adds`, also what is below zero",
        f"write `adds -{_cut(number)}`",
        replacing(span, "adds -"),
    )


def needless_unit(span: Span, end: int) -> Diagnostic:
    """`end` is where the number before it ends."""
    return _error(
        "missing-operator",
        span,
        "an amount that is added has no unit",
        "take it out",
        removing(Span(end, span.end), safe=True),
    )


def foreign_clause(span: Span, found: str, clause: str) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        f"there is no `{' '.join(found.split())}` in this language",
        f"here it is `{clause}`",
        replacing(span, clause),
    )


def needless_words(span: Span) -> Diagnostic:
    return _error(
        "missing-duration",
        span,
        "`over` is followed by a length of time alone",
        "take these words out",
        removing(span, safe=True),
    )


def bound_without_sign(span: Span, found: str) -> Diagnostic:
    return _error(
        "missing-else",
        span,
        "a step begins with `<` and its bound",
        f"write `< {_cut(found)}: …`, or `else` for the last",
        inserting(span.start, "< "),
    )


def amount_without_adds(span: Span) -> Diagnostic:
    return _error(
        "missing-adds",
        span,
        "a signal says `adds` before how much",
        "add `adds`",
        inserting(span.start, "adds ", safe=True),
    )


def when_before_adds(span: Span) -> Diagnostic:
    return _error(
        "missing-adds",
        span,
        "a signal says first how much it `adds`, then `when`",
        "for example `adds 1.5 when user.id is missing`",
    )


def required_first(span: Span) -> Diagnostic:
    return _error(
        "missing-type",
        span,
        "`required` comes after the type",
        "for example `: string required`",
    )


def needless_end(span: Span) -> Diagnostic:
    return _error(
        "unknown-operator",
        span,
        "nothing is ended by a semicolon",
        "take it out; conditions are joined with `and` or `or`",
        removing(span),
    )


def needless_brace(span: Span, found: str) -> Diagnostic:
    return _error(
        "unknown-operator",
        span,
        f"`{found}` can't stand here: only a curve's steps are in braces",
        "take it out; an item ends where the next one begins",
        removing(span),
    )


def comma_in_field(span: Span, *, is_choice: bool) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "choices are separated by `|`" if is_choice else "nothing separates a type and `required`",
        "write `|`" if is_choice else "take the comma out",
        replacing(span, " |", safe=True) if is_choice else removing(span, safe=True),
    )


def or_in_field(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "choices are separated by `|`",
        "write `|`",
        replacing(span, "|", safe=True),
    )


def given_again(span: Span, correction: str) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "a file and values are given apart",
        "write `given` again" if correction else "take the comma out",
        Fix("give them apart", (Edit(span, correction),), safe=True),
    )


def word_of_test(span: Span, found: str, correction: str) -> Diagnostic:
    return _error(
        f"missing-{correction}",
        span,
        f"a test says `{correction}`, not `{found}`",
        f"write `{correction}`",
        replacing(span, correction, safe=True),
    )


def given_without_word(start: int) -> Diagnostic:
    return _error(
        "missing-given",
        Span(start, start),
        "a test says `given` before what it gives",
        "write `given`",
        inserting(start, "given ", safe=True),
    )


def word_for_by(span: Span, found: str) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        f"a test says `by` and the condition's name, not `{found}`",
        "write `by`",
        replacing(span, "by", safe=True),
    )


def title_without_quotes(span: Span, word: str) -> Diagnostic:
    return _error(
        "missing-text",
        span,
        "a test's title stands in double quotes",
        f'write `"{_cut(word)}"`',
        replacing(span, f'"{word}"', safe=True),
    )


def given_with_and(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "given values are separated by commas",
        "write `,`",
        replacing(span, ", "),
    )


def given_without_comma(span: Span, end: int) -> Diagnostic:
    """`end` is where the value before it ends."""
    return _error(
        "unexpected",
        span,
        "given values are separated by commas",
        "put a comma before it",
        inserting(end, ","),
    )


def foreign_item(span: Span, found: str, item: str) -> Diagnostic:
    return _error(
        "foreign-word",
        span,
        f"there is no `{found}` in this language",
        f"here it is `{item}`",
        replacing(span, item),
    )


def nameless_condition(span: Span) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        "`when` belongs to a condition, which has a name",
        "write `condition NAME when … then …`",
        inserting(span.start, "condition my_condition "),
    )


def action_of_monitor(span: Span) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        "a monitor has no action: it raises an alert whenever its condition becomes true",
        "take it out",
    )


def by_before_every(span: Span) -> Diagnostic:
    return _error(
        "clause-order",
        span,
        "`by` comes too late here, or a second time",
        "the order is `by`, `every`",
    )


def actions_with_or(span: Span) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        "actions are separated by commas",
        "write `,`",
        replacing(span, ",", safe=True),
    )


def one_use_each(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "each `use` names one file",
        "write `use` again",
        replacing(span, "\n  use"),
    )


def ending_of_file(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "`use` names the definitions, not the file",
        "take the ending out",
        removing(span, safe=True),
    )


def missing_header(span: Span, item: str, holder: str) -> Diagnostic:
    return _error(
        "missing-declaration",
        span,
        f"a file with a `{item}` begins with `{holder}` and a name",
        f"put `{holder} NAME` above it",
        Fix(f"put `{holder}` above it", (Edit(Span(0, 0), f"{holder} my_{holder}\n"),)),
    )


# Aggregates


def earlier_records(span: Span, found: str) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        f"there is no `{_cut(found)}` in this language",
        "here it is `earlier`, which leaves out the payment itself",
        replacing(span, "earlier"),
    )


def described_records(span: Span, word: str, records: str) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        f"`{_cut(word)}` can't stand beside `{records}`: which of them count is said by `where`",
        f'for example `{records} by user.id over 1h where status == "declined"`',
    )


def records_of_status(span: Span, needless: Span, end: int, status: str) -> Diagnostic:
    """`end` is where the aggregate's bracket closes."""
    asked = f'where status == "{status}"'
    edits = (Edit(needless, ""), Edit(Span(end, end), f" {asked}"))
    return _error(
        "missing-operator",
        span,
        "which records count is said by `where`, after the keys and the length of time",
        f"write `{asked}` at the end",
        Fix(f"write `{asked}`", edits),
    )


def clauses_apart(span: Span, whole: Span, found: str, clause: str) -> Diagnostic:
    """`whole` is the mark with the blanks around it."""
    return _error(
        "missing-value",
        span,
        f"nothing stands before `{clause}` but a blank",
        f"take `{found}` out",
        Fix("take it out", (Edit(whole, " "),), safe=True),
    )


def words_for_over(span: Span) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        "a window's length is said with `over`",
        "write `over` in place of these words",
        Fix("write `over`", (Edit(span, "over "),)),
    )


def asked_without_where(span: Span, *, replaced: bool, touches: bool) -> Diagnostic:
    where = f"{' ' * touches}where"
    fix = replacing(span, where) if replaced else inserting(span.start, "where ")
    return _error(
        "unexpected",
        span,
        "what is asked of each record follows `where`",
        "write `where`" if replaced else "put `where` before it",
        fix,
    )


def clauses_in_order(span: Span, inside: Span, correction: str) -> Diagnostic:
    return _error(
        "clause-order",
        span,
        "the order is `by`, `over`, `where`",
        f"write `{_cut(correction)}`",
        Fix("put them in order", (Edit(inside, correction),), safe=True),
    )


def clauses_outside(span: Span, bracket: Span, end: int | None) -> Diagnostic:
    """`bracket` is the one that closes too early, `end` the end of the clauses, if that is known."""
    edits = () if end is None else (Edit(bracket, ""), Edit(Span(end, end), ")"))
    return _error(
        "unexpected",
        span,
        "`by`, `over` and `where` stand within the brackets",
        "as in `count(payments by user.id over 1h)`",
        *([Fix("put them within the brackets", edits)] if edits else []),
    )


def spoken_count(span: Span, whole: Span | None, correction: str) -> Diagnostic:
    """`whole` is what the correction takes the place of, if the parts of a count were found."""
    return _error(
        "missing-operator",
        span,
        "records are counted by a call, its parts in brackets",
        f"write `{correction or 'count(payments by user.id over 1h)'}`",
        *([replacing(whole, correction)] if whole else []),
    )


def unbracketed_call(span: Span, correction: str) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        "what a function is given stands in brackets",
        f"write `{_cut(correction)}`",
        replacing(span, correction),
    )


# Rules


def text_after_action(
    span: Span, whole: Span, text: str, title: int | None, *, is_condition: bool
) -> Diagnostic:
    """`whole` is the text with the blanks before it, `title` where it can stand as the title."""
    edits: tuple[Edit, ...] = (Edit(whole, ""),)
    if title is not None:
        edits = (Edit(Span(title, title), f" {text}"), *edits)
    return _error(
        "unexpected",
        span,
        "an action ends its item; a condition's text is its title, after its name"
        if is_condition
        else "an action ends its item, without a text",
        f"write `condition NAME {_cut(text)} when …`" if is_condition else "take it out",
        Fix("make it the title" if title is not None else "take it out", edits, safe=True),
    )


def words_after_action(span: Span, whole: Span, *, is_condition: bool) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        "an action ends its item, and nothing follows it on the line",
        'take it out; a reason is the title: `condition NAME "…" when …`'
        if is_condition
        else "take it out",
        removing(whole),
    )


def else_after_action(span: Span, whole: Span, action: str | None) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        "there is no `else`: the next condition is tried, and `otherwise` closes the rule",
        f"write `otherwise {action or 'allow'}` at the end of the rule",
        *([Fix("close the rule", (Edit(whole, f"\n  otherwise {action}"),))] if action else []),
    )


def second_action(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "a condition has one action",
        "take the other out, or give it a condition of its own",
        removing(span),
    )


def condition_after_action(span: Span) -> Diagnostic:
    return _error(
        "unknown-item",
        span,
        "what has to be true stands before the action, once",
        "write `when … and … then deny`",
    )


def needless_stop(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "nothing is ended by a full stop",
        "take it out",
        removing(span, safe=True),
    )


def promise_in_order(span: Span, whole: Span, correction: str) -> Diagnostic:
    return _error(
        "missing-when",
        span,
        "a `must` says first `when`, then what is `never` or `always` decided",
        f"write `{_cut(correction)}`",
        Fix("put it in order", (Edit(whole, correction),)),
    )


def promise_with_then(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "a `must` has no `then`: it says what a payment is `never` or `always` given",
        "write `always`, as in `must when … always allow`",
        replacing(span, "always"),
    )


def promise_in_words(span: Span, correction: str) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "a `must` says what a payment is `never` or `always` given",
        f"write `{correction}`",
        replacing(span, correction),
    )


def line_as_condition(span: Span, whole: Span, correction: str) -> Diagnostic:
    """`correction` takes the place of `whole`, as a condition."""
    return _error(
        "unknown-item",
        span,
        "what a rule decides is a condition, which has a name",
        f"write `{shorten(correction, 2 * _LONGEST_QUOTE)}`",
        Fix("make it a condition", (Edit(whole, correction),)),
    )


def condition_without_name(span: Span, name: str) -> Diagnostic:
    return _error(
        "missing-name",
        span,
        "a condition needs a name, which an answer shows",
        f"write `condition {_cut(name)} when …`",
        inserting(span.start, f"{name} "),
    )


def second_when(span: Span) -> Diagnostic:
    return _error(
        "missing-then",
        span,
        "a condition has one `when`, whose parts are joined by `and` or `or`",
        "write `and`",
        replacing(span, "and"),
    )


def missing_word_when(span: Span) -> Diagnostic:
    return _error(
        "missing-when",
        span,
        "what has to be true follows `when`",
        "put `when` before it",
        inserting(span.start, "when "),
    )


def missing_word_then(span: Span, whole: Span, correction: str) -> Diagnostic:
    return _error(
        "missing-then",
        span,
        "the action follows `then`",
        f"write `{correction.strip()}`",
        replacing(whole, correction),
    )


def words_around_action(span: Span, action: str) -> Diagnostic:
    return _error(
        "unknown-action",
        span,
        "an action is one word",
        f"write `{action}`",
        replacing(span, action),
    )


# Words of plain English, and shapes of other languages, in expressions


def needless_word(span: Span, found: str) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        f"there is no `{_cut(found)}` in this language",
        "take it out",
        removing(span),
    )


def word_for_and(span: Span, found: str, correction: str) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        f"there is no `{_cut(found)}` in this language",
        f"here it is `{correction}`",
        replacing(span, correction),
    )


def mark_for_and(span: Span, mark: str, word: str, correction: str) -> Diagnostic:
    """`word` joins what the mark separates."""
    return _error(
        "unexpected",
        span,
        f"conditions are joined by `and` or `or`, not by `{mark}`",
        f"write `{word}`",
        replacing(span, correction),
    )


def said_twice(span: Span, word: str) -> Diagnostic:
    return _error(
        "missing-value", span, f"`{word}` is said twice", "take one out", removing(span, safe=True)
    )


def alert_as_action(span: Span) -> Diagnostic:
    return _error(
        "unknown-action",
        span,
        "a condition raises no alert: its action is `allow`, `challenge` or `deny`",
        "alerts are raised by the monitors of an event type, such as `payment`",
    )


def alert_without_name(span: Span) -> Diagnostic:
    return _error(
        "missing-name",
        span,
        "`expect alert` needs a monitor's name",
        "write `expect alert NAME`; `expect no alert` goes without",
    )


def label_of_what(span: Span) -> Diagnostic:
    return _error(
        "unexpected",
        span,
        "a `label` says `of` which payment, by the field with its id",
        "write `label fraud of payment_id when …`",
    )


def expects_not(span: Span) -> Diagnostic:
    return _error(
        "missing-value",
        span,
        "a test says what comes out, not what doesn't",
        "write `expect allow`, `expect default` or what else it is",
    )


def subject_again(span: Span, subject: str | None) -> Diagnostic:
    return _error(
        "missing-value",
        span,
        "each comparison names what it compares",
        f"write `{_cut(subject)}` again" if subject else "write it again",
        *([inserting(span.start, f"{subject} ")] if subject else []),
    )


def comparison_goes_on(span: Span, found: str, middle: str) -> Diagnostic:
    return _error(
        "chained-comparison",
        span,
        f"a comparison can't go on with `{_cut(found)}`",
        f"write `and {_cut(middle)} {_cut(found)} …`",
        inserting(span.start, f"and {middle} "),
    )


def address_without_quotes(span: Span, written: str) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        "a text stands in double quotes",
        f'write `"{_cut(written)}"`',
        replacing(span, f'"{written}"', safe=True),
    )


def time_of_day(span: Span) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        "there is no time of day, only its hour",
        "write `hour(timestamp) between 1 and 5`",
    )


def foreign_range(span: Span, correction: str) -> Diagnostic:
    return _error(
        "list-form",
        span,
        "a range is asked by `between`, both ends in",
        f"write `{_cut(correction)}`",
        replacing(span, correction),
    )


def range_with_dash(span: Span, low: str, high: str) -> Diagnostic:
    correction = f"{low} and {high}"
    return _error(
        "missing-and",
        span,
        "the ends of `between` are joined by `and`",
        f"write `{_cut(correction)}`",
        replacing(span, correction),
    )


def list_in_words(span: Span, name: str) -> Diagnostic:
    return _error(
        "missing-value",
        span,
        "a list is named with its sign",
        f"write `@{_cut(name)}`",
        replacing(span, f"@{name}"),
    )


def is_a_name(span: Span, word: str) -> Diagnostic:
    return _error(
        "missing-state",
        span,
        "two values are compared with `==`",
        f"write `== {_cut(word)}`, a text in quotes",
        replacing(span, "=="),
    )


def is_new(span: Span) -> Diagnostic:
    return _error(
        "missing-state",
        span,
        "`is` goes with `missing` or `present`",
        "`first(payments by user.id)` is true of a user's first payment",
    )


def no_such_operator(span: Span, found: str, instead: str) -> Diagnostic:
    return _error("unknown-operator", span, f"there is no operator `{_cut(found)}`", instead)


def not_a_rule_file(span: Span) -> Diagnostic:
    return _error(
        "missing-declaration",
        span,
        "a file begins with `rule`, `scorecard`, `event` or `definitions` and a name",
        "write it in this language: `rule NAME`, then conditions",
    )


def entry_with_arrow(span: Span, key: str) -> Diagnostic:
    return _error(
        "unknown-operator",
        span,
        "an entry stands in brackets",
        f'write `["{key}"]`',
        replacing(span, f'["{key}"]', safe=True),
    )
