"""The messages of syntax errors, one function each.

Each takes the place and what the author wrote, and returns the diagnostic: a stable code, the
problem in one line, and the fix if there is one.
"""

from __future__ import annotations

from difflib import get_close_matches
from unicodedata import combining, normalize
from unicodedata import name as character_name

from tollkeeper.grammar.diagnostics import Diagnostic, Fix
from tollkeeper.grammar.fixes import inserting, removing, replacing
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.words import action_meant, shorten

_NEEDS_NAME = {
    "rule": "a rule",
    "scorecard": "a scorecard",
    "event": "an event type",
    "definitions": "a `definitions` file",
    "list": "a list",
    "table": "a table",
    "let": "a `let`",
    "condition": "a condition",
    "must": "a `must`",
    "signal": "a signal",
    "field": "a field",
    "metric": "a metric",
    "monitor": "a monitor",
    "label": "a `label`",
}
_LONGEST_QUOTE = 40


def _error(
    code: str,
    span: Span,
    message: str,
    help: str | None = None,  # noqa: A002 - the field's name
    *fixes: Fix,
) -> Diagnostic:
    return Diagnostic(code, "error", span, message, help, fixes)


def _quote(text: str) -> str:
    return f"`{shorten(text, _LONGEST_QUOTE)}`"


# Files


def file_too_large(most: int) -> Diagnostic:
    return _error(
        "file-too-large",
        Span(0, 0),
        f"a file holds at most {most // 1024} KiB",
        "split it, or keep the values in a list",
    )


def not_utf8(span: Span, byte: int) -> Diagnostic:
    return _error(
        "not-utf8", span, f"the byte 0x{byte:02x} isn't UTF-8 text", "save the file as UTF-8"
    )


def control_character(span: Span, character: str) -> Diagnostic:
    return _error(
        "control-character",
        span,
        f"the control character U+{ord(character[0]):04X} can't stand in a file",
        "take it out",
    )


def nested_too_deep(span: Span, most: int) -> Diagnostic:
    return _error(
        "nested-too-deep",
        span,
        f"this is nested more than {most} deep",
        "name its parts with `let`",
    )


def too_many_conditions(span: Span, most: int) -> Diagnostic:
    return _error(
        "too-many-conditions",
        span,
        f"a rule holds at most {most} conditions",
        "keep the values that differ in a list or a table",
    )


def too_many_lets(span: Span, most: int) -> Diagnostic:
    return _error("too-many-lets", span, f"a file holds at most {most} `let`s")


def too_many_items(span: Span, noun: str, most: int) -> Diagnostic:
    return _error(
        "too-many-items",
        span,
        f"a file holds at most {most} {noun}",
        "keep what differs in a value only in a list or a table, or split the file",
    )


def name_too_long(span: Span, most: int) -> Diagnostic:
    return _error("name-too-long", span, f"a name has at most {most} characters", "shorten it")


def too_many_errors(span: Span, most: int) -> Diagnostic:
    return _error(
        "too-many-errors", span, f"the reading stops here, after {most} errors", "mend those first"
    )


# Declarations and items


def missing_declaration(span: Span, found: str) -> Diagnostic:
    matches = get_close_matches(found, ["rule", "scorecard", "event", "definitions"], 1)
    return _error(
        "missing-declaration",
        span,
        "a file begins with `rule`, `scorecard`, `event` or `definitions` and a name",
        f"did you mean `{matches[0]}`?" if matches else "for example `rule checkout`",
        *(replacing(span, word) for word in matches),
    )


def second_declaration(span: Span, kind: str) -> Diagnostic:
    return _error(
        "second-declaration",
        span,
        "a file declares one thing",
        f"give the second `{kind}` a file of its own",
    )


def misplaced_item(span: Span, item: str, kind: str, holders: list[str]) -> Diagnostic:
    places = " or ".join(f"`{holder}`" for holder in holders)
    return _error(
        "misplaced-item",
        span,
        f"a `{item}` can't stand in a `{kind}`",
        f"it belongs in a file that begins with {places}",
    )


def after_otherwise(span: Span, item: str) -> Diagnostic:
    return _error(
        "after-otherwise",
        span,
        f"`otherwise` closes the rule, so no `{item}` can follow it",
        "put it above `otherwise`; only tests come after",
    )


def unknown_item(span: Span, found: str, items: list[str]) -> Diagnostic:
    matches = get_close_matches(found, items, 1)
    listed = ", ".join(f"`{item}`" for item in items)
    return _error(
        "unknown-item",
        span,
        f"{_quote(found)} begins nothing that this file can hold",
        f"did you mean `{matches[0]}`?" if matches else f"what can follow here: {listed}",
        *(replacing(span, word) for word in matches),
    )


def missing_name(span: Span, keyword: str) -> Diagnostic:
    owner = _NEEDS_NAME.get(keyword, f"`{keyword}`")
    return _error(
        "missing-name",
        span,
        f"{owner} needs a name",
        "a name is made of letters a to z, digits and `_`",
    )


def missing_type(span: Span, keyword: str) -> Diagnostic:
    owner = "a column" if keyword == "table" else _NEEDS_NAME.get(keyword, f"`{keyword}`")
    return _error(
        "missing-type", span, f"{owner} needs a colon and a type", "for example `: string`"
    )


def missing_when(span: Span, keyword: str) -> Diagnostic:
    return _error(
        "missing-when",
        span,
        f"{_NEEDS_NAME.get(keyword, keyword)} needs `when` and what has to be true",
        "for example `when amount > 100`",
    )


def missing_then(span: Span) -> Diagnostic:
    return _error(
        "missing-then",
        span,
        "a condition needs `then allow`, `then challenge` or `then deny`",
    )


def unknown_action(span: Span, found: str, actions: list[str]) -> Diagnostic:
    listed = ", ".join(f"`{action}`" for action in actions[:-1]) + f" or `{actions[-1]}`"
    meant = action_meant(found)
    matches = [meant] if meant else get_close_matches(found.lower(), actions, 1)
    return _error(
        "unknown-action",
        span,
        f"the action is {listed}" if not found else f"{_quote(found)} isn't {listed}",
        f"did you mean `{matches[0]}`?" if matches else "write one of these words, alone",
        *(replacing(span, word) for word in matches),
    )


def missing_adds(span: Span) -> Diagnostic:
    return _error(
        "missing-adds",
        span,
        "a signal needs `adds` and how much, or `curves` and its steps",
        "for example `adds 1.5`",
    )


def missing_else(span: Span) -> Diagnostic:
    return _error(
        "missing-else",
        span,
        "a curve needs its steps in braces, the last one `else`",
        "for example `{ < 2: 0, < 5: 0.7, else 1.8 }`",
    )


def missing_expect(span: Span) -> Diagnostic:
    return _error(
        "missing-expect",
        span,
        "a test needs `expect` and what should come out",
        "for example `expect deny by card_testing`",
    )


def missing_alert(span: Span) -> Diagnostic:
    return _error(
        "missing-alert",
        span,
        "`expect no` goes with `alert`",
        "write `expect no alert`",
        inserting(span.start, " alert ", safe=True),
    )


def missing_given(span: Span) -> Diagnostic:
    return _error(
        "missing-given",
        span,
        "`given` needs a name and its value, or a file",
        'for example `given amount = 5.00` or `given history "history.json"`',
    )


def missing_text(span: Span, keyword: str) -> Diagnostic:
    owner, example = {
        "test": ("a test", '`test "a small payment is allowed"`'),
        "|": ("`|`", '`"success" | "failure"`'),
    }.get(keyword, ("`given`", f'`given {keyword} "file.json"`'))
    return _error(
        "missing-text", span, f"{owner} needs a text in double quotes", f"for example {example}"
    )


def unknown_given_file(span: Span, found: str) -> Diagnostic:
    return _error(
        "unknown-given-file",
        span,
        f"a test is given a `payment`, a `history` or an `event` from a file, not {_quote(found)}",
        f"to set a field write `given {found} = …`",
    )


# Expressions


def missing_value(span: Span, after: str) -> Diagnostic:
    return _error("missing-value", span, f"a value is missing after {_quote(after)}")


def missing_operator(span: Span, found: str) -> Diagnostic:
    return _error(
        "missing-operator",
        span,
        f"an operator is missing before {_quote(found)}",
        "join conditions with `and` or `or`, compare values with `==`",
    )


def missing_equals(span: Span, keyword: str) -> Diagnostic:
    owner = _NEEDS_NAME.get(keyword, f"`{keyword}`")
    return _error("missing-equals", span, f"{owner} needs `=` and a value")


def missing_member(span: Span) -> Diagnostic:
    return _error("missing-member", span, "a name is missing after the dot")


def missing_pattern(span: Span) -> Diagnostic:
    return _error(
        "missing-pattern",
        span,
        "`matches` needs a pattern between slashes",
        "for example `matches /^4[0-9]{7}/`",
    )


def misplaced_pattern(span: Span) -> Diagnostic:
    return _error("misplaced-pattern", span, "a pattern between slashes can only follow `matches`")


def missing_duration(span: Span, after: str) -> Diagnostic:
    return _error(
        "missing-duration",
        span,
        f"`{after}` needs a length of time",
        "for example `500ms`, `5s`, `10m`, `24h` or `7d`",
    )


def missing_state(span: Span, found: str) -> Diagnostic:
    meant = "write `is present`" if found == "not" else "two values are compared with `==`"
    return _error("missing-state", span, "`is` goes with `missing` or `present`", meant)


def missing_with(span: Span, after: str) -> Diagnostic:
    return _error(
        "missing-with",
        span,
        f"`{after}` goes with `with`",
        f"write `{after} with`",
        inserting(span.start, " with ", safe=True),
    )


def missing_in(span: Span) -> Diagnostic:
    return _error(
        "missing-in",
        span,
        "`not` after a value goes with `in`",
        "write `not in`, or put `not` in front of the whole comparison",
    )


def missing_and(span: Span) -> Diagnostic:
    return _error(
        "missing-and", span, "`between` needs `and` and a second end", "write `between 1 and 5`"
    )


def chained_comparison(span: Span, found: str) -> Diagnostic:
    return _error(
        "chained-comparison",
        span,
        f"a comparison can't go on with {_quote(found)}",
        "write two comparisons joined by `and`, or use `between`",
    )


def single_equals(span: Span) -> Diagnostic:
    return _error(
        "single-equals",
        span,
        "`=` names a thing, it doesn't compare",
        "write `==` to compare",
        replacing(span, "==", safe=True),
    )


def double_equals(span: Span, keyword: str) -> Diagnostic:
    return _error(
        "double-equals",
        span,
        f"`==` compares, but `{keyword}` gives a value",
        "write `=` here",
        replacing(span, "=", safe=True),
    )


def unknown_operator(
    span: Span, found: str, correction: str | None, written: str | None, *, is_same: bool
) -> Diagnostic:
    """`written` is `instead` with the spaces that it needs."""
    return _error(
        "unknown-operator",
        span,
        f"there is no operator {_quote(found)}",
        f"write `{correction}`" if correction else None,
        *([replacing(span, written, safe=is_same)] if written else []),
    )


def computed_item(span: Span, found: str) -> Diagnostic:
    return _error(
        "computed-item",
        span,
        f"a list holds values as written, so `{found}` can't stand in it",
        "compare with `==` and `or`",
    )


def unclosed_bracket(span: Span, bracket: str, end: int) -> Diagnostic:
    """`end` is the end of what was read in the bracket."""
    closing = {"(": ")", "[": "]", "{": "}"}[bracket]
    return _error(
        "unclosed-bracket",
        span,
        f"`{bracket}` isn't closed",
        f"add `{closing}`",
        inserting(end, closing),
    )


def unopened_bracket(span: Span, bracket: str) -> Diagnostic:
    return _error(
        "unopened-bracket", span, f"`{bracket}` closes nothing", "take it out", removing(span)
    )


def clause_order(span: Span, found: str) -> Diagnostic:
    return _error(
        "clause-order",
        span,
        f"`{found}` comes too late here, or a second time",
        "the order is `by`, `over`, `where`",
    )


# Words and characters


def keyword_case(span: Span, found: str) -> Diagnostic:
    return _error(
        "keyword-case",
        span,
        f"{_quote(found)} is written in lower case",
        f"write `{found.lower()}`",
        replacing(span, found.lower(), safe=True),
    )


def reserved_word(span: Span, found: str) -> Diagnostic:
    return _error(
        "reserved-word",
        span,
        f"`{found}` is a word of the language, so it can't be a name",
        f"choose another name, such as `{found}_`",
        replacing(span, f"{found}_"),
    )


def foreign_word(span: Span, found: str, correction: str) -> Diagnostic:
    return _error("foreign-word", span, f"there is no `{found}` in this language", correction)


def wrong_quotes(span: Span, found: str, inside: str | None) -> Diagnostic:
    """`inside` is the text between the quotes, None if they aren't closed."""
    plain = inside is not None and not set(inside) & {'"', "\\"}
    return _error(
        "wrong-quotes",
        span,
        f"text stands between double quotes, not {_quote(found) if found != '`' else 'backticks'}",
        'write `"…"`',
        *([replacing(span, f'"{inside}"', safe=True)] if plain else []),
    )


def unclosed_text(span: Span) -> Diagnostic:
    return _error(
        "unclosed-text",
        span,
        "this text isn't closed on its line",
        'add `"`; a line break within a text is written `\\n`',
        inserting(span.end, '"'),
    )


def bad_escape(span: Span, found: str) -> Diagnostic:
    return _error(
        "bad-escape",
        span,
        f"{_quote(found)} stands for nothing in a text",
        'there are `\\"`, `\\\\`, `\\n`, `\\t` and `\\u{…}`; a backslash itself is written `\\\\`',
    )


def bad_number(span: Span, found: str, correction: str | None) -> Diagnostic:
    return _error(
        "bad-number",
        span,
        f"{_quote(found)} isn't a number or a length of time",
        f"write `{correction}`" if correction else "for example `1000`, `0.5` or `24h`",
        *([replacing(span, correction)] if correction else []),
    )


def duration_too_long(span: Span) -> Diagnostic:
    return _error("duration-too-long", span, "this length of time has too many digits")


def bad_name(span: Span, found: str) -> Diagnostic:
    odd = next((each for each in found if each.isalpha() and not each.isascii()), None)
    correction = _plain(found).replace("-", "_")
    is_name = correction.isascii() and correction.isidentifier()
    return _error(
        "bad-name",
        span,
        f"{_quote(found)} can't be a name"
        + (f": `{odd}` is {character_name(odd, 'unnamed').lower()}" if odd else ""),
        "a name is made of letters a to z, digits and `_`, and doesn't begin with a digit",
        *([replacing(span, correction)] if is_name else []),
    )


def _plain(text: str) -> str:
    """The text with wide characters narrow, and letters without their accents."""
    return "".join(each for each in normalize("NFKD", text) if not combining(each))


def odd_character(span: Span, found: str) -> Diagnostic:
    words = character_name(found, "a character without a name").lower()
    shown = _quote(found) if found.isprintable() and not found.isspace() else words
    plain = _plain(found)
    if not found.isspace() and plain.isascii() and plain.isprintable():
        return _error(
            "odd-character",
            span,
            f"{shown} (U+{ord(found):04X}) is another character than `{plain}`",
            f"write `{plain}`",
            replacing(span, plain),
        )
    return _error(
        "odd-character",
        span,
        f"{shown} (U+{ord(found):04X}) can only stand in a text or a comment",
        "take it out",
        replacing(span, " ", safe=True) if found.isspace() else removing(span),
    )


def unexpected(span: Span, found: str, words: list[str]) -> Diagnostic:
    matches = get_close_matches(found, words, 1)
    return _error(
        "unexpected",
        span,
        f"{_quote(found)} can't stand here" if found else "the file ends too early",
        f"did you mean `{matches[0]}`?" if matches else None,
        *(replacing(span, word) for word in matches),
    )
