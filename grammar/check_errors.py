"""The messages of the checker's errors, one function each.

Each takes the place and what the author wrote, and returns the diagnostic: a stable code, the
problem in one line, and the fix if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

from tollkeeper.grammar.diagnostics import Diagnostic, Edit, Fix
from tollkeeper.grammar.fixes import inserting, quoted, removing, replacing
from tollkeeper.grammar.functions import Aggregate, Function
from tollkeeper.grammar.syntax import Span
from tollkeeper.grammar.types import Duration, Ip
from tollkeeper.grammar.words import (
    GIVEN_BY_NAME,
    did_you_mean,
    kind_of,
    likely_word,
    listed,
    shorten,
)

_LENGTH_OF_TIME, _ADDRESS = kind_of(Duration()), kind_of(Ip())
_LONGEST_QUOTE = 60
_MOST_LISTED: Final = 12
"""Longer choices are lists of codes, which nobody reads in full."""


_ASK_PRESENCE = "write `… is missing` or `… is present`"
_WHERE = "write `count(transactions where …)`, or `sum(…)`"
_MATCHES = "write `user.email matches /…/`"
_LEFT = "`left(text, n)` is the first n characters; ask of others with `contains` or `matches`"
_FUNCTIONS_MEANT: dict[str, tuple[str | None, str | None]] = {
    **dict.fromkeys(("isnull", "isblank", "isempty", "ismissing", "exists"), (None, _ASK_PRESENCE)),
    **dict.fromkeys(
        ("now", "today", "getdate", "currenttimestamp"),
        (None, "the payment's own time is `timestamp`; a window counts back from it"),
    ),
    **dict.fromkeys(
        ("if", "iif", "iff", "ifelse", "case"), (None, "write a `condition` for each case")
    ),
    **dict.fromkeys(("countif", "countifs", "sumif", "sumifs"), (None, _WHERE)),
    **dict.fromkeys(("mod", "rem"), (None, "write `x / 10 == round(x / 10)`")),
    **dict.fromkeys(
        ("regex", "regexp", "regexmatch", "regexplike", "regexpmatch"), (None, _MATCHES)
    ),
    **dict.fromkeys(("startswith", "beginswith"), (None, 'write `user.email starts with "a"`')),
    "endswith": (None, 'write `user.email ends with "@x.com"`'),
    **dict.fromkeys(("velocity", "frequency"), (None, "write `count(payments by … over …)`")),
    **dict.fromkeys(("substr", "substring", "mid", "slice"), (None, _LEFT)),
    **dict.fromkeys(("total", "sumof"), ("sum", None)),
    **dict.fromkeys(("ifnull", "nvl"), ("coalesce", None)),
    **dict.fromkeys(("len", "size", "strlen", "charlength"), ("length", None)),
    **dict.fromkeys(("lcase", "tolower"), ("lower", None)),
    **dict.fromkeys(("ucase", "toupper"), ("upper", None)),
    **dict.fromkeys(("average", "mean"), ("avg", None)),
    "countdistinct": ("distinct", None),
    "tonumber": ("number", None),
}
"""Functions of other languages, in lower case and without `_`: the function here, or what to write."""
_READ_BY: Final = {
    "hour": "timestamp",
    "weekday": "timestamp",
    "email_domain": "user.email",
    "email_local": "user.email",
}
"""Functions that mostly read one field of a payment."""
_VALUES_MEANT: Final = {
    "amex": "american_express",
    **dict.fromkeys(("mc", "master"), "mastercard"),
    **dict.fromkeys(("refused", "rejected", "denied"), "declined"),
    **dict.fromkeys(("approved", "success", "successful", "paid", "captured"), "succeeded"),
    **dict.fromkeys(("error", "errored"), "failed"),
    **dict.fromkeys(("pending", "started", "created"), "initiated"),
    **dict.fromkeys(("block", "decline", "reject"), "deny"),
    **dict.fromkeys(("approve", "accept"), "allow"),
    **dict.fromkeys(("bot", "chargeback", "fraudulent"), "fraud"),
}
"""Values of other systems in lower case, for those of fields with choices."""
_RECORDS_MEANT: Final = {
    **dict.fromkeys(("charges", "purchases", "orders", "authorizations"), "payments"),
    **dict.fromkeys(("attempts", "tries", "retries"), "transactions"),
}
_COUNTED_MEANT: Final = {
    "card": "method.card.fingerprint",
    "user": "user.id",
    "customer": "user.id",
    "account": "user.id",
    "device": "device.fingerprint.id",
    "email": "user.email",
    "ip": "device.ip_address",
    "bin": "method.card.bin",
    "merchant": "merchant.id",
}
"""What is counted by its different values, in the singular, and the field that has them."""
_LOOKUPS_MEANT: Final = {
    **dict.fromkeys(("ip", "cidr", "address", "range"), "network"),
    **dict.fromkeys(("bin", "start", "begin"), "prefix"),
    **dict.fromkeys(("key", "exact", "id", "string", "text"), "value"),
}
"""What other systems call the ways to look a key up."""
_TYPES_MEANT = {
    **dict.fromkeys(("text", "str", "varchar", "char"), "string"),
    **dict.fromkeys(("int", "integer", "float", "double", "decimal", "money"), "number"),
    "bool": "boolean",
    "enum": 'a choice of texts, as `"a" | "b"`',
    **dict.fromkeys(("date", "datetime", "timestamp", "time"), "instant"),
    **dict.fromkeys(("network", "cidr", "inet", "address"), "ip"),
}


def _error(
    code: str,
    span: Span,
    message: str,
    help: str | None = None,  # noqa: A002 - the field's name
    *fixes: Fix,
) -> Diagnostic:
    return Diagnostic(code, "error", span, message, help, fixes)


def _likely(
    span: Span, word: str, candidates: Iterable[str], written: Callable[[str], str] = str
) -> Iterator[Fix]:
    """The fix that replaces `word` by what was probably meant, as `written` writes it."""
    likely = likely_word(word, candidates)
    if likely is not None:
        yield replacing(span, written(likely))


def _misspelling(
    code: str,
    span: Span,
    message: str,
    name: str,
    known: Iterable[str],
    help_: str | None = None,
    written: Callable[[str], str] = str,
) -> Diagnostic:
    """An error for a name that isn't in `known`, with the likely correction, or else with `help_`."""
    known = list(known)
    found = did_you_mean(name, known) or help_
    return _error(code, span, message, found, *_likely(span, name, known, written))


def _quote(text: str) -> str:
    return f"`{shorten(' '.join(text.split()), _LONGEST_QUOTE)}`"


def _count_of(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


# Names


def unknown_name(
    span: Span,
    path: str,
    word: str,
    kin: Iterable[str],
    elsewhere: Iterable[str],
    asked_so: str | None = None,
    *,
    may_be_metadata: bool = False,
) -> Diagnostic:
    """`asked_so` is how that is asked for which there is no field."""
    kin = list(kin)
    others = list(elsewhere)[:3]
    found = f"did you mean {listed(others)}?" if others else asked_so or did_you_mean(word, kin)
    fixes = [replacing(span, other) for other in others]
    if not others and asked_so is None:
        fixes = list(_likely(span, word, kin))
    if found is None and may_be_metadata and len(word) <= _LONGEST_QUOTE:
        found = f'what else a payment brings is in its metadata: `metadata["{word}"]`'
    return _error("unknown-name", span, f"there is no field {_quote(path)}", found, *fixes)


def another_name(span: Span, path: str, whole: Span, meant: Sequence[str]) -> Diagnostic:
    """`meant` are what takes the place of the `whole` path, the likeliest first."""
    return _error(
        "unknown-name",
        span,
        f"there is no field {_quote(path)}",
        f"did you mean {listed(meant)}?",
        *(replacing(whole, each) for each in meant),
    )


def unquoted_text(span: Span, word: str, choices: Iterable[str]) -> Diagnostic:
    meant = quoted(likely_word(word, choices) or word)
    return _error(
        "unknown-name",
        span,
        f"there is no field {_quote(word)}",
        f"a text stands in quotes: write `{meant}`",
        replacing(span, meant),
    )


def declared_below(span: Span, name: str) -> Diagnostic:
    return _error(
        "unknown-name",
        span,
        f"{_quote(name)} is declared further down",
        "move its `let` up: a `let` uses those above it",
    )


def list_without_sign(span: Span, name: str) -> Diagnostic:
    return _error(
        "unknown-name",
        span,
        f"there is no field {_quote(name)}",
        f"a list is named with its sign: write `@{name}`",
        replacing(span, f"@{name}"),
    )


def without_use(span: Span, name: str, definitions: str) -> Diagnostic:
    return _error(
        "unknown-name",
        span,
        f"there is no field {_quote(name)}",
        f"the definitions `{definitions}` have it: write `use {definitions}` above",
    )


def name_of_definitions(span: Span, name: str) -> Diagnostic:
    """`span` is the name of the definitions, with the dot."""
    return _error(
        "unknown-name",
        span,
        f"what `use {name}` brings is named by itself",
        f"take `{name}.` out",
        removing(span),
    )


def function_alone(span: Span, function: Function) -> Diagnostic:
    read = _READ_BY.get(function.name)
    return _error(
        "unknown-name",
        span,
        f"`{function.name}` is a function",
        f"as in `{function.example}`",
        *([replacing(span, f"{function.name}({read})")] if read else []),
    )


def no_field_of(span: Span, owner: str, word: str) -> Diagnostic:
    return _error("unknown-name", span, f"{_quote(owner)} has no field {_quote(word)}")


def function_as_field(span: Span, owner: str, function: str, whole: Span) -> Diagnostic:
    correction = f"{function}({owner})"
    return _error(
        "unknown-name",
        span,
        f"{_quote(owner)} has no field `{function}`",
        f"write {_quote(correction)}",
        replacing(whole, correction),
    )


def place_in_collection(span: Span, name: str) -> Diagnostic:
    return _error(
        "unknown-name",
        span,
        f"the {name} of a payment have no numbers",
        f"ask of any or all of them, as in `any({name} where …)`",
    )


def no_fields(span: Span) -> Diagnostic:
    return _error("unknown-name", span, "this value has no fields")


MISFITS: Final = frozenset({"wrong-type", "not-a-value", "wrong-arguments"})
"""The errors for which nothing is offered that would bring them."""


def function_meant(name: str, of: str | None) -> str | None:
    """Return the function that is another language's `name`; `of` is its one argument, if that is a
    collection.
    """
    meant, _ = _function_of_habit(name)
    return "count" if meant == "length" and of is not None else meant


def _function_of_habit(name: str) -> tuple[str | None, str | None]:
    return _FUNCTIONS_MEANT.get(name.lower().replace("_", ""), (None, None))


def unknown_function(
    span: Span, name: str, known: Iterable[str], meant: str | None, misfit: Diagnostic | None
) -> Diagnostic:
    """`misfit` is why a call of the function that is `meant` would not do."""
    message = f"there is no function {_quote(name)}"
    if misfit is not None:
        return _error("unknown-function", span, message, f"here {misfit.message}")
    if meant is not None:
        return _error(
            "unknown-function", span, message, f"here it is `{meant}`", replacing(span, meant)
        )
    _, help_ = _function_of_habit(name)
    if help_ is not None:
        return _error("unknown-function", span, message, help_)
    return _misspelling("unknown-function", span, message, name, known)


def unknown_list(
    span: Span, name: str, known: Iterable[str], kind: str, declared_at: int
) -> Diagnostic:
    """`kind` is the type that its entries would have; `declared_at` is where it can be declared."""
    declaration = f"list {name}: {kind}"
    return _undeclared(span, "list", name, known, declaration, declared_at)


def unknown_table(
    span: Span, name: str, known: Iterable[str], declaration: str, declared_at: int
) -> Diagnostic:
    """`declaration` is the one that the use asks for; `declared_at` is where it can stand."""
    return _undeclared(span, "table", name, known, declaration, declared_at)


def _undeclared(
    span: Span, noun: str, name: str, known: Iterable[str], declaration: str, declared_at: int
) -> Diagnostic:
    known = list(known)
    help_, message = f"declare it: {_quote(declaration)}", f"there is no {noun} `@{name}`"
    if likely_word(name, known) is not None or len(name) > _LONGEST_QUOTE:
        return _misspelling("unknown-list", span, message, name, known, help_, "@{}".format)
    place = Span(declared_at, declared_at)
    edits = (Edit(place, f"\n  {declaration}"), Edit(span, f"@{name}"))
    return _error("unknown-list", span, message, help_, Fix(f"write {_quote(declaration)}", edits))


def unknown_column(span: Span, table: str, name: str, known: Iterable[str]) -> Diagnostic:
    return _misspelling(
        "unknown-name", span, f"`@{table}` has no column {_quote(name)}", name, known
    )


def unknown_definitions(
    span: Span, name: str, known: Iterable[str], is_event_type: bool
) -> Diagnostic:
    known = list(known)
    fix = did_you_mean(name, known)
    if is_event_type:
        fix = f"it is an event type: read its metrics as `events.{name}.METRIC[key]`, with no `use`"
    return _error(
        "unknown-definitions",
        span,
        f"there are no definitions {_quote(name)}",
        fix,
        *_likely(span, name, [] if is_event_type else known),
    )


def broken_definitions(span: Span, name: str) -> Diagnostic:
    return _error(
        "unknown-definitions", span, f"the definitions {_quote(name)} have errors of their own"
    )


def unknown_event(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    return _misspelling(
        "unknown-event-type", span, f"there is no event type {_quote(name)}", name, known
    )


def unknown_metric(span: Span, event: str, name: str, known: Iterable[str]) -> Diagnostic:
    return _misspelling(
        "unknown-metric",
        span,
        f"the event type {_quote(event)} has no metric {_quote(name)}",
        name,
        known,
    )


def unknown_condition(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    there = list(known)
    help_ = f"the rule has {listed(there)}" if 0 < len(there) <= _MOST_LISTED else None
    message = f"there is no condition {_quote(name)}"
    return _misspelling("unknown-condition", span, message, name, there, help_)


def unknown_monitor(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    return _misspelling("unknown-monitor", span, f"there is no monitor {_quote(name)}", name, known)


def duplicate(span: Span, name: str) -> Diagnostic:
    return _error("duplicate-name", span, f"{_quote(name)} is declared twice", "rename one")


def duplicate_test(span: Span, title: str) -> Diagnostic:
    return _error("duplicate-name", span, f"two tests are named {_quote(title)}", "rename one")


def repeated_choice(span: Span) -> Diagnostic:
    return _error("duplicate-name", span, "a choice is given twice", "take one out")


def name_of_a_field(span: Span, name: str) -> Diagnostic:
    return _error("name-taken", span, f"{_quote(name)} is a field's name", "choose another name")


def name_of_a_function(span: Span, name: str) -> Diagnostic:
    return _error("name-taken", span, f"{_quote(name)} is a function's name", "choose another name")


# What stands for no value


def not_a_value(span: Span, kind: str) -> Diagnostic:
    return _error(
        "not-a-value",
        span,
        f"this is {kind}, not a value",
        'name one of its entries, as in `metadata["sku"]`, or ask whether it `is missing`',
    )


def group_alone(span: Span, fields: Sequence[str], *, is_key: bool) -> Diagnostic:
    """`fields` are some of the group's, the most telling first, with their whole names; any of them
    does as a key.
    """
    asked = "" if is_key else ", or ask whether it `is missing`"
    return _error(
        "not-a-value",
        span,
        "this is a group of fields, not a value",
        f"name one of its fields, as {listed(fields)}{asked}",
        *(replacing(span, each) for each in fields if is_key),
    )


def uncounted(span: Span, name: str) -> Diagnostic:
    correction = f"count({name})"
    return _error(
        "not-a-value",
        span,
        f"a payment has several {name}",
        f"write `{correction}` for how many",
        replacing(span, correction),
    )


def list_alone(span: Span, name: str) -> Diagnostic:
    return _error("not-a-value", span, f"`@{name}` is not a value", f"write `x in @{name}`")


def list_literal_alone(span: Span) -> Diagnostic:
    return _error(
        "not-a-value",
        span,
        "a list stands only after `in`",
        "write it there, or declare `list NAME: string`, whose entries the account keeps",
    )


def collection_alone(span: Span, name: str) -> Diagnostic:
    return _error(
        "not-a-value",
        span,
        f"{_quote(name)} is read through an aggregate",
        f"as in `count({name} by user.id over 1h)`",
    )


def compared_collection(span: Span, name: str, comparison: str) -> Diagnostic:
    correction = f"any({name} where {comparison})"
    return _error(
        "not-a-value",
        span,
        f"a payment has several {name}",
        f"write `{correction}`",
        replacing(span, correction),
    )


def collection_field(span: Span, path: tuple[str, ...]) -> Diagnostic:
    return _error(
        "not-a-value",
        span,
        f"a payment has several {path[0]}, each with a field {_quote('.'.join(path[1:]))}",
        f"as in `max({'.'.join(path)})` or `any({path[0]} where {path[-1]} …)`",
    )


def table_without_column(span: Span, name: str) -> Diagnostic:
    return _error(
        "not-a-value", span, f"a row of `@{name}` is not a value", f"write `@{name}[key].column`"
    )


# Types


def mismatch(span: Span, sides: tuple[str, str], kinds: tuple[str, str]) -> Diagnostic:
    left, right = sides
    return _error(
        "wrong-type",
        span,
        f"{_quote(left)} is {kinds[0]} and {_quote(right)} is {kinds[1]}",
        "compare values of one kind",
    )


def wrong_literal(
    span: Span, meets: str, wanted: str, given: str, meant: str | None, choices: Sequence[str]
) -> Diagnostic:
    """`meant` is the literal that was probably meant; `choices` are the texts that there are."""
    is_duration = wanted == _LENGTH_OF_TIME and meant is not None
    units = "; the units are `ms`, `s`, `m`, `h` and `d`" if is_duration else ""
    known = f"it is one of {listed(choices)}" if 0 < len(choices) <= _MOST_LISTED else None
    return _error(
        "wrong-type",
        span,
        f"{_quote(meets)} is {wanted}, and this is {given}",
        f"write {_quote(meant)}{units}" if meant else known,
        *([replacing(span, meant)] if meant else []),
    )


def no_order(span: Span, operator: str, kind: str) -> Diagnostic:
    return _error(
        "wrong-type",
        span,
        f"`{operator}` puts numbers and times in order, and this is {kind}",
        "use `==`, `!=` or `in`",
    )


def needs_text(span: Span, operator: str, kind: str) -> Diagnostic:
    is_address = kind == _ADDRESS
    return _error(
        "wrong-type",
        span,
        f"`{operator}` is for text, and this is {kind}",
        'ask for networks, as in `in ["10.0.0.0/8"]`' if is_address else None,
    )


def bad_operands(span: Span, operator: str, left: str, right: str) -> Diagnostic:
    return _error("wrong-type", span, f"`{operator}` can't take {left} and {right}")


def bad_operand(span: Span, kind: str) -> Diagnostic:
    return _error("wrong-type", span, f"`-` is for numbers and lengths of time, and this is {kind}")


def argument_kind(span: Span, function: str, takes: str, given: str) -> Diagnostic:
    return _error("wrong-type", span, f"`{function}` takes {takes}, and this is {given}")


def unlike_arguments(span: Span, function: str, first: str, other: str) -> Diagnostic:
    return _error(
        "wrong-type",
        span,
        f"`{function}` takes values of one kind: the first is {first}, this is {other}",
    )


def alternative_texts(span: Span, correction: str) -> Diagnostic:
    return _error(
        "wrong-type",
        span,
        "`or` and `and` join conditions, and each compares by itself",
        f"write {_quote(correction)}",
        replacing(span, correction),
    )


def not_a_condition(span: Span, kind: str) -> Diagnostic:
    return _error(
        "wrong-type",
        span,
        f"this is {kind}, and true or false is needed",
        "compare it with a value",
    )


def list_holds(span: Span, name: str, wanted: str, given: str) -> Diagnostic:
    return _error(
        "wrong-type", span, f"an entry of `@{name}` is {wanted}, and the value is {given}"
    )


def table_key(span: Span, table: str, wanted: str, given: str) -> Diagnostic:
    return _error("wrong-type", span, f"the key of `@{table}` is {wanted}, and this is {given}")


def metric_key(span: Span, metric: str, wanted: str, given: str) -> Diagnostic:
    return _error("wrong-type", span, f"the key of {_quote(metric)} is {wanted}, this is {given}")


def adds_number(span: Span, kind: str) -> Diagnostic:
    return _error("wrong-type", span, f"`adds` takes a number, and this is {kind}")


def milliseconds(span: Span, meets: str, amount: float) -> Diagnostic:
    return _error(
        "wrong-unit",
        span,
        f"{_quote(meets)} is a number of milliseconds, not a length of time",
        f"write `{amount:g}`",
        replacing(span, f"{amount:g}", safe=True),
    )


def boolean_comparison(span: Span) -> Diagnostic:
    return _error(
        "boolean-comparison",
        span,
        "`==` between conditions is for fields and `true` or `false`",
        "use `and`, `or` and `not`",
    )


def two_metadata(span: Span) -> Diagnostic:
    return _error(
        "open-metadata",
        span,
        "two metadata values can't be compared: nothing says what they are",
        'give one a type: `lower(metadata["a"])` is text, `metadata["a"] + 0` a number',
    )


def metadata_kind(span: Span, wanted: str) -> Diagnostic:
    return _error(
        "open-metadata",
        span,
        f"metadata holds text, numbers, true and false, and {wanted} is needed here",
    )


# Literals


def unknown_value(span: Span, text: str, meets: str, choices: Iterable[str]) -> Diagnostic:
    known = list(choices)
    meant = _VALUES_MEANT.get(text.lower(), text)
    fix = did_you_mean(meant, known)
    if fix is None and len(known) <= _MOST_LISTED:
        fix = f"it is one of {listed(known)}"
    elif fix is None:
        fix = f"it is one of {len(known)} codes, such as {listed(known[:2])}"
    owner = _quote(meets) if meets else "this"
    fixes = _likely(span, meant, known, quoted)
    return _error("unknown-value", span, f"{_quote(text)} is not a value of {owner}", fix, *fixes)


def unknown_label(span: Span, text: str, known: Sequence[str]) -> Diagnostic:
    return _error(
        "unknown-value",
        span,
        f"{_quote(text)} is not a label",
        did_you_mean(text, known) or f"it is one of {listed(known)}",
        *_likely(span, text, known),
    )


def unknown_currency(span: Span, text: str, choices: Sequence[str]) -> Diagnostic:
    return _error(
        "unknown-value",
        span,
        f"{_quote(text)} is not a currency of ISO 4217",
        did_you_mean(text, choices),
        *_likely(span, text, choices, quoted),
    )


def unknown_time_zone(span: Span, text: str) -> Diagnostic:
    return _error(
        "unknown-time-zone",
        span,
        f"there is no time zone {_quote(text)}",
        'the names are those of the IANA database, `"America/Sao_Paulo"`',
    )


def unknown_type(span: Span, name: str | None, known: Iterable[str]) -> Diagnostic:
    given = "a choice" if name is None else _quote(name)
    known = list(known)
    word = (name or "").lower()
    meant = _TYPES_MEANT.get(word) or likely_word(word, known)
    return _error(
        "unknown-type",
        span,
        f"{given} is no type here",
        f"it is {listed(known)}",
        *([replacing(span, meant)] if meant in known else []),
    )


def lookup(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    meant = _LOOKUPS_MEANT.get(name.lower())
    return _error(
        "unknown-type",
        span,
        f"a table can't be looked up by {_quote(name)}",
        f"it is {listed(known)}",
        *([replacing(span, meant)] if meant else []),
    )


def bad_address(span: Span, text: str, is_network: bool) -> Diagnostic:
    if is_network:
        return _error(
            "bad-address",
            span,
            f"{_quote(text)} is a network, and one address is needed",
            f'write `in ["{text}"]`',
        )
    return _error("bad-address", span, f"{_quote(text)} is not an IP address")


def bad_network(span: Span, text: str) -> Diagnostic:
    return _error("bad-address", span, f"{_quote(text)} is not a network")


def host_bits(span: Span, text: str, network: str) -> Diagnostic:
    return _error(
        "host-bits",
        span,
        f"{_quote(text)} has bits set past its prefix",
        f'the network is `"{network}"`',
        replacing(span, f'"{network}"'),
    )


def bad_instant(span: Span, text: str, correction: str | None) -> Diagnostic:
    """`correction` is the beginning of the day that the text is."""
    written = correction or '"2026-03-01T00:00:00Z"'
    return _error(
        "bad-instant",
        span,
        f"{_quote(text)} is not a point in time",
        f"write date, time and offset, `{written}`",
        *([replacing(span, correction)] if correction else []),
    )


def bad_regex(span: Span, problem: str) -> Diagnostic:
    return _error("bad-regex", span, f"the regular expression can't be read: {_quote(problem)}")


def regexes_too_large(span: Span) -> Diagnostic:
    return _error(
        "regexes-too-large",
        span,
        "the regular expressions of this file are too large together",
        "repeat less, as in `{50}`, or fewer characters, as in `\\pL`",
    )


def too_costly(span: Span, noun: str, total: int, own: int, most: int) -> Diagnostic:
    return _error(
        "too-costly",
        span,
        f"one {noun} could keep this file busy for {_milliseconds(total)}, and {_milliseconds(most)} "
        f"are the most: {_milliseconds(own)} of them here",
        "look at a shorter text with `left`, use a simpler pattern, "
        "or ask it of the payment and not of each attempt",
    )


def _milliseconds(nanoseconds: int) -> str:
    return f"{-(-nanoseconds // 100_000) / 10:,.1f} ms"


def out_of_range(
    span: Span, meets: str, value: Decimal, low: Decimal | None, high: Decimal | None
) -> Diagnostic:
    if low is not None and high is not None:
        bounds = f"is from {low:f} to {high:f}"
    else:
        bounds = f"is at least {low:f}" if low is not None else f"is at most {high:f}"
    share = _share(value) if low == 0 and high == 1 else None
    return _error(
        "out-of-range",
        span,
        f"{_quote(meets)} {bounds}",
        f"write `{share}`: it is a part of one, not of a hundred" if share else None,
        *([replacing(span, share)] if share else []),
    )


def _share(hundredths: Decimal) -> str | None:
    """Return a whole number of hundredths as a part of one; None if it can't be one."""
    is_one = 1 < hundredths <= 100 and hundredths == hundredths.to_integral_value()
    return f"{hundredths.scaleb(-2):.2f}" if is_one else None


def number_too_long(span: Span) -> Diagnostic:
    return _error("number-too-long", span, "a number has at most 38 digits")


def too_many_decimals(span: Span) -> Diagnostic:
    return _error(
        "number-too-long",
        span,
        "the product has more than 38 decimals",
        "`round(value, 6)` keeps six of them",
    )


def duration_too_long(span: Span) -> Diagnostic:
    return _error("duration-too-long", span, "this length of time is too long")


# Calls


def argument_count(span: Span, function: Function, given: int) -> Diagnostic:
    shown = ", ".join(
        f"[{each.name}]" if each.optional else f"{each.name}…" if each.repeated else each.name
        for each in function.parameters
    )
    return _error(
        "wrong-arguments",
        span,
        f"`{function.name}` is given {_count_of(given, 'argument')}",
        f"it is `{function.name}({shown})`",
    )


def literal_argument(span: Span, function: str, wanted: str, meant: str | None) -> Diagnostic:
    """`meant` is the literal that was probably meant."""
    return _error(
        "wrong-arguments",
        span,
        f"`{function}` takes {wanted} as written here",
        f"write `{meant}`" if meant else None,
        *([replacing(span, meant)] if meant else []),
    )


def argument_range(span: Span, function: str, most: int) -> Diagnostic:
    return _error("wrong-arguments", span, f"`{function}` takes a whole number from 0 to {most}")


def not_an_aggregate(span: Span, function: str) -> Diagnostic:
    return _error(
        "wrong-arguments",
        span,
        f"`{function}` is a function: `by`, `over`, `where`, `of` and the like belong to aggregates",
    )


def metric_keys(span: Span, metric: str, wanted: int, given: int) -> Diagnostic:
    return _error(
        "wrong-arguments",
        span,
        f"{_quote(metric)} is read with {_count_of(wanted, 'key')}, not {given}",
    )


def one_table_key(span: Span, table: str) -> Diagnostic:
    return _error("wrong-arguments", span, f"`@{table}` is looked up by one key")


def aggregate_argument(span: Span, aggregate: Aggregate, correction: str | None) -> Diagnostic:
    """`correction` is the call with its clauses named."""
    return _error(
        "wrong-arguments",
        span,
        f"`{aggregate.name}` takes one argument",
        f"write {_quote(correction)}" if correction else f"as in `{aggregate.example}`",
        *([replacing(span, correction)] if correction else []),
    )


# Aggregates


def no_collection(
    span: Span, aggregate: Aggregate, found: int, word: str, known: Iterable[str]
) -> Diagnostic:
    """`word` is the argument, if it is one word; `known` are the collections."""
    message = (
        f"`{aggregate.name}` runs over `payments`, `transactions` or `events`"
        if found == 0
        else f"`{aggregate.name}` runs over one collection, and here are {found}"
    )
    example = f"as in `{aggregate.example}`"
    meant = _RECORDS_MEANT.get(word.lower(), word)
    return _misspelling("aggregate-form", span, message, meant, known, example)


def values_meant(word: str) -> str | None:
    """Return the field whose different values `count(cards …)` is meant to count."""
    return _COUNTED_MEANT.get(word.lower().removesuffix("s"))


def different_values(span: Span, word: str, name: Span, field: str) -> Diagnostic:
    """`name` is the place of the aggregate's name, `span` that of the word."""
    edits = (Edit(name, "distinct"), Edit(span, f"payments.{field}"))
    return _error(
        "aggregate-form",
        span,
        f"there are no records of {_quote(word)}: their different values are counted",
        f"write `distinct(payments.{field} by … over …)`",
        Fix(f"write `distinct(payments.{field} …)`", edits),
    )


def any_of_entry(span: Span) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        "`any` asks whether a list in metadata has an element",
        'write `any(metadata["skus"] == "A-1")`, or `"A-1" in metadata["skus"]`',
    )


def wrong_collection(span: Span, collection: str, allowed: Iterable[str]) -> Diagnostic:
    return _error(
        "aggregate-form", span, f"`{collection}` can't be read here, only {listed(allowed)}"
    )


def needs_value(span: Span, aggregate: Aggregate, collection: str) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        f"`{aggregate.name}` needs a field of the {collection}",
        f"as in `{aggregate.example}`",
    )


def takes_records(span: Span, aggregate: Aggregate, collection: str, fix: Fix | None) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        f"`{aggregate.name}` takes whole records",
        f"write `{aggregate.name}({collection} …)`; `distinct` is for different values",
        *([fix] if fix else []),
    )


def keys_with_and(span: Span, keys: Iterable[str]) -> Diagnostic:
    correction = ", ".join(keys)
    return _error(
        "aggregate-form",
        span,
        "keys are separated by commas",
        f"write {_quote(correction)}",
        replacing(span, correction),
    )


def window_with_in(span: Span, length: str) -> Diagnostic:
    """`span` is the `in` and its length."""
    return _error(
        "aggregate-form",
        span,
        "a window's length is said with `over`",
        f"write `over {length}`",
        Fix(f"write `over {length}`", (Edit(span, f" over {length}"),), safe=True),
    )


def key_as_records(span: Span, aggregate: Aggregate, key: str) -> Diagnostic:
    """`key` stands where the records should be named."""
    correction = f"payments by {key}"
    return _error(
        "aggregate-form",
        span,
        f"`{aggregate.name}` runs over `payments`, `transactions` or `events`, grouped by a key",
        f"write {_quote(f'{aggregate.name}({correction} …)')}",
        replacing(span, correction),
    )


def field_of_records(span: Span, aggregate: Aggregate, collection: str, before: int) -> Diagnostic:
    """`before` is where the field's name begins."""
    return _error(
        "aggregate-form",
        span,
        f"`{aggregate.name}` reads a field of records: of `payments`, `transactions` or `events`",
        f"write `{collection}.` in front, as in `{aggregate.example}`",
        inserting(before, f"{collection}."),
    )


def needs_by(span: Span, name: str) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        f"`{name}` over history needs a key",
        "add `by` and what groups the records, `by user.id`",
    )


def needs_over(span: Span, name: str) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        f"`{name}` over history needs a length of time",
        "add `over` and the window's length, `over 24h`",
    )


def takes_no_over(span: Span, name: str) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        f"`{name}` takes no `over`: it looks at all of history",
    )


def earlier_of_the_payment(span: Span, before: int) -> Diagnostic:
    """`before` is the start of the text that the word precedes."""

    return _error(
        "aggregate-form",
        span,
        "`earlier` is for history: an aggregate over the payment's own transactions has no earlier",
        "take it out, or add `by` and `over`",
        removing(Span(span.start, before)),
    )


def earlier_of_a_decided_payment(span: Span) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        "`age`, `interval`, `since`, `first`, `streak` and `earlier` can't be read in the type `payment`",
        "its monitors look at a payment that is counted already; read them in a rule",
    )


def needs_where(span: Span, name: str) -> Diagnostic:
    return _error("aggregate-form", span, f"`{name}` needs a `where` to ask of each record")


def takes_no_half_life(span: Span, name: str) -> Diagnostic:
    message = f"`{name}` weighs every record alike, without a half life"
    return _error(
        "aggregate-form", span, message, "write `decay(count of payments by … half life 1h)`"
    )


def decay_form(span: Span) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        "`decay` weighs a count or a sum of records by a half life",
        "write `decay(count of payments by … half life 1h)` or `decay(sum(amount) of payments by … half"
        " life 1h)`",
    )


def half_life_length(span: Span) -> Diagnostic:
    return _error("window-length", span, "a half life is from 1s to 30d long")


def decays_decimals(span: Span) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        "`decay` sums decimals exactly, and this is a double",
        "round it: `round(…, 6)`",
    )


def streak_of_payments(span: Span, collection: str) -> Diagnostic:
    return _error(
        "aggregate-form",
        span,
        f"`streak` counts payments, not {collection}",
        "write `streak(payments by … where …)`",
    )


def window_length(span: Span, is_zero: bool) -> Diagnostic:
    if is_zero:
        return _error("window-length", span, "a window can't be empty")
    return _error(
        "window-length",
        span,
        "a window is at most 90 days long",
        "write `90d`; `age`, `first` and `since` look at all of history",
        replacing(span, "90d"),
    )


def alert_span(span: Span) -> Diagnostic:
    return _error("window-length", span, "`every` takes a length of time from 1ms to 366d")


def nested_aggregate(span: Span) -> Diagnostic:
    return _error("nested-aggregate", span, "an aggregate can't hold another")


def not_in_history(span: Span, name: str, need: str) -> Diagnostic:
    because = "" if name.startswith("@") or name == "amount_in" else f", because it reads {need}"
    return _error(
        "not-in-history",
        span,
        f"`{name}` can't be used in an aggregate over history{because}",
        "a record of history has its fields, what was decided and, of a payment, its look-ups",
    )


def zone_in_history(span: Span, function: str, end: int) -> Diagnostic:
    """`end` is where the function's only argument ends."""
    return _error(
        "not-in-history",
        span,
        f"`{function}` in an aggregate over history can't use the account's time zone, which changes",
        'name one: `(…, "UTC")`',
        inserting(end, ', "UTC"'),
    )


def score_in_history(span: Span) -> Diagnostic:
    return _error(
        "not-in-history",
        span,
        "`score` can't be used in an aggregate over history",
        "`decision.score` in the `where` is the score that a record was given",
    )


def decision_outside(span: Span) -> Diagnostic:
    return _error(
        "decision-outside-history",
        span,
        "`decision` is known of historical records only",
        "read it in the `where` of an aggregate over `payments` or `transactions`",
    )


def label_outside(span: Span) -> Diagnostic:
    return _error(
        "decision-outside-history",
        span,
        "`label` is known of historical records only",
        "read it in the `where` of an aggregate over `payments` or `transactions`",
    )


# Brackets and lists


def dotted_entry(span: Span, owner: str, key: str) -> Diagnostic:
    is_header = owner.endswith("headers")
    entry = key.replace("_", "-").title() if is_header else key
    written = [f'{owner}["{entry}"]']
    if not is_header and "." in key:
        written.insert(0, owner + "".join(f'["{part}"]' for part in key.split(".")))
    is_safe = not is_header and len(written) == 1
    return _error(
        "entry-form",
        span,
        f"{_quote(owner)} takes brackets",
        f"write `{written[0]}`",
        *(replacing(span, each, safe=is_safe) for each in written),
    )


def entry_name(span: Span, word: str | None) -> Diagnostic:
    """`word` is what stands in the brackets, if it is one word."""
    correction = quoted(word) if word else None
    return _error(
        "entry-form",
        span,
        "the brackets take one name in quotes",
        f"write {_quote(correction)}" if correction else '`metadata["sku"]`',
        *([replacing(span, correction)] if correction else []),
    )


def metadata_depth(span: Span, most: int) -> Diagnostic:
    return _error("entry-form", span, f"metadata is read at most {most} deep")


def no_entries(span: Span) -> Diagnostic:
    return _error(
        "entry-form",
        span,
        "only headers, metadata, metrics and tables take brackets",
        "of a text, `left(text, n)`, `starts with`, `ends with` and `contains` ask of a part",
    )


def metric_form(span: Span) -> Diagnostic:
    return _error(
        "entry-form",
        span,
        "a metric is read with its type, name and keys",
        "`events.TYPE.METRIC[key]`",
    )


def text_in_text(span: Span, correction: str) -> Diagnostic:
    return _error(
        "list-form",
        span,
        "`in` takes a list",
        f"write {_quote(correction)}",
        replacing(span, correction),
    )


def list_in_brackets(span: Span, name: str) -> Diagnostic:
    return _error(
        "list-form",
        span,
        "a list that the account keeps stands without brackets",
        f"write `in @{name}`",
        replacing(span, f"@{name}", safe=True),
    )


def range_as_list(span: Span, correction: str) -> Diagnostic:
    return _error(
        "list-form",
        span,
        "a range is asked by `between`, both ends in",
        f"write {_quote(correction)}",
        replacing(span, correction),
    )


def text_as_list(span: Span, written: str) -> Diagnostic:
    return _error(
        "wrong-type",
        span,
        "a text stands in double quotes",
        f"write {_quote(quoted(written))}",
        replacing(span, quoted(written), safe=True),
    )


def not_a_list(span: Span, written: str) -> Diagnostic:
    bare = written.removeprefix("(").removesuffix(")")
    is_text = bare.startswith('"') and bare.endswith('"')
    return _error(
        "list-form",
        span,
        "`in` takes a list",
        'as in `in ["a", "b"]` or `in @name`',
        *([replacing(span, f"[{bare}]", safe=True)] if is_text else []),
    )


def list_item(span: Span) -> Diagnostic:
    return _error("list-form", span, "a list holds values as written", "compare with `==` and `or`")


def empty_list(span: Span) -> Diagnostic:
    return _error("list-form", span, "nothing is in an empty list")


def list_as_table(span: Span, name: str) -> Diagnostic:
    return _error("list-form", span, f"`@{name}` is a list", f"write `x in @{name}`")


def table_as_list(span: Span, name: str) -> Diagnostic:
    return _error(
        "list-form", span, f"`@{name}` is a table", f"write `@{name}[key].column is present`"
    )


def other_list_type(span: Span, name: str, existing_type: str) -> Diagnostic:
    return _error("list-clash", span, f"the account's `@{name}` is a list of {existing_type}")


def other_columns(span: Span, name: str) -> Diagnostic:
    return _error("list-clash", span, f"the account's `@{name}` is another table")


def is_a_table(span: Span, name: str) -> Diagnostic:
    return _error("list-clash", span, f"the account's `@{name}` is a table")


def is_a_list(span: Span, name: str) -> Diagnostic:
    return _error("list-clash", span, f"the account's `@{name}` is a list")


# Scorecards and event types


def score_of_itself(span: Span) -> Diagnostic:
    return _error(
        "score-of-itself",
        span,
        "there is no score to read where it is made",
        "a scorecard makes the score, and a rule asks of it",
    )


def score_in_let(span: Span, name: str) -> Diagnostic:
    return _error(
        "score-of-itself", span, f"{_quote(name)} reads the score, and there is none here"
    )


def no_baseline(span: Span) -> Diagnostic:
    return _error(
        "baseline", span, "a scorecard needs a `baseline`", "`baseline 0.03` is three in a hundred"
    )


def second_baseline(span: Span) -> Diagnostic:
    return _error("baseline", span, "a scorecard has one `baseline`")


def baseline_range(span: Span, value: Decimal | None) -> Diagnostic:
    share = None if value is None or value == 100 else _share(value)
    return _error(
        "baseline",
        span,
        "a `baseline` is a number between 0 and 1, both left out",
        f"write `{share}`: it is a part of one, not of a hundred" if share else None,
        *([replacing(span, share)] if share else []),
    )


def too_many_curves(span: Span, most: int) -> Diagnostic:
    return _error("curve-form", span, f"a scorecard has at most {most} signals with a curve")


def curve_too_long(span: Span, steps: int, most: int) -> Diagnostic:
    return _error(
        "curve-form",
        span,
        f"a curve has at most {most} steps, and this one has {steps}",
        "join neighbours that add nearly the same",
    )


def curve_value(span: Span, kind: str) -> Diagnostic:
    return _error("wrong-type", span, f"a curve reads a number or a length of time, not {kind}")


def curve_sign(span: Span, sign: str) -> Diagnostic:
    return _error(
        "curve-form",
        span,
        f"a step is written with `<`, not `{sign}`",
        "`< 5: 0.7` adds 0.7 to values below 5 that no step above it took",
    )


def curve_literal(span: Span) -> Diagnostic:
    return _error(
        "curve-form",
        span,
        "a step's bound and what it adds are numbers as written",
        "name what is computed with `let`, and let the curve read that",
    )


def curve_order(span: Span, before: str, after: str) -> Diagnostic:
    return _error(
        "curve-form",
        span,
        f"steps are written from the lowest bound up, and `{after}` isn't above `{before}`",
        "nothing can reach this step",
    )


def curve_direction(span: Span, direction: str, before: str, after: str) -> Diagnostic:
    other = "less" if direction == "rising" else "more"
    return _error(
        "curve-direction",
        span,
        f"the curve is {direction}, and `{after}` adds {other} than `{before}` before it",
        f"change the number, or leave `{direction}` out",
    )


def metric_value(span: Span) -> Diagnostic:
    return _error(
        "metric-value",
        span,
        "a metric is one aggregate over history",
        "name what is computed from it with `let`",
    )


# Tests


def given_target(span: Span, kind: str, fields: Sequence[str], *, is_computed: bool) -> Diagnostic:
    """`fields` are some of the group's fields, the most telling first, if it is one."""
    depth = min((each.count(".") for each in fields), default=0)
    help_ = 'records come from a file: `given payment "p.json"`'
    if is_computed:
        help_ = GIVEN_BY_NAME
    return _error(
        "given-form",
        span,
        f"this is {kind}, and a field, `let`, list or the score is needed",
        f"name one of its fields, as {listed(fields)}" if fields else help_,
        *(replacing(span, each) for each in fields[:1] if each.count(".") == depth),
    )


def file_with_equals(span: Span, kind: str, path: str) -> Diagnostic:
    """`span` is what stands between the word and the path."""
    return _error(
        "given-form",
        span,
        "a file is given without `=`",
        f"write `given {kind} {shorten(path, _LONGEST_QUOTE)}`",
        Fix("take it out", (Edit(span, " "),), safe=True),
    )


def given_literal(span: Span) -> Diagnostic:
    return _error(
        "given-form",
        span,
        "a test gives a value as written",
        'a number, `true`, a text or a time, `"2026-01-01T12:00:00Z"`',
    )


def given_decimals(span: Span, target: str, decimals: int) -> Diagnostic:
    most = f"has at most {decimals} decimals" if decimals else "is a whole number"
    return _error("given-form", span, f"{_quote(target)} {most}")


def given_refused(span: Span, target: str, refusal: str) -> Diagnostic:
    return _error("given-form", span, f"{_quote(target)} never arrives so: {refusal}")


def given_twice(span: Span, target: str) -> Diagnostic:
    return _error("given-form", span, f"{_quote(target)} is given a value twice", "take one out")


def given_list(span: Span, name: str) -> Diagnostic:
    return _error("given-form", span, f"`@{name}` is given a list", f'`@{name} = ["a"]`')


def expects_action(span: Span, kind: str) -> Diagnostic:
    fix = "`expect score >= 0.8`" if kind == "scorecard" else "`expect alert NAME`"
    return _error("expect-form", span, "only a rule gives an action", fix)


def condition_alone(span: Span, name: str, action: str) -> Diagnostic:
    correction = f"{action} by {name}"
    return _error(
        "expect-form",
        span,
        f"{_quote(name)} is a condition, not an action",
        f"write `expect {correction}`",
        replacing(span, correction),
    )


def expects_alert(span: Span, kind: str) -> Diagnostic:
    fix = "`expect deny by NAME`" if kind == "rule" else "`expect score >= 0.8`"
    return _error("expect-form", span, "only an event type raises alerts", fix)


def other_action(span: Span, condition: str, action: str, expected: str) -> Diagnostic:
    return _error(
        "expect-form",
        span,
        f"the condition {_quote(condition)} gives `{action}`, not `{expected}`",
        None,
        replacing(span, action),
    )
