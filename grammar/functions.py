"""The functions and aggregates of the language, as data.

The checker, completion and the reference read these tables. `takes` and `gives` name the kinds of
arguments and result in the author's terms; the checker maps these names to types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FunctionKind: TypeAlias = Literal[
    "text",
    "number",
    "ip address",
    "instant",
    "number or duration",
    "number, instant or duration",
    "scalar",
    "currency code",
    "time zone name",
    "decimals",
    "number of characters",
    "ipv4 prefix length",
    "ipv6 prefix length",
]
ResultType: TypeAlias = Literal[
    "text",
    "number",
    "whole number",
    "streak",
    "duration",
    "boolean",
    "weekday name",
    "hour of the day",
    "number of six decimals",
    "amount",
    "same as the argument",
    "number of that many decimals",
    "widest of the arguments",
]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; a repeated one is last and takes one or more arguments."""

    name: str
    takes: FunctionKind
    optional: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    parameters: tuple[Parameter, ...]
    gives: ResultType
    doc: str
    example: str


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate. `value` is what it reads from each record, None if it reads whole records.

    `over` lists what it can cover: the current payment's transactions, a window of history, or all
    stored history.
    """

    name: str
    value: FunctionKind | None
    gives: ResultType
    over: tuple[Literal["payment", "window", "history"], ...]
    doc: str
    example: str


_TEXT = Parameter("text", "text")

FUNCTIONS = {
    function.name: function
    for function in (
        Function(
            "abs",
            (Parameter("value", "number or duration"),),
            "same as the argument",
            "The value without its sign.",
            "abs(amount - 100.00) < 0.05",
        ),
        Function(
            "amount_in",
            (Parameter("currency", "currency code"),),
            "amount",
            "The payment's amount in another currency, by the account's rates, exactly; "
            "missing without an amount or a rate.",
            'amount_in("USD") > 500',
        ),
        Function(
            "coalesce",
            (Parameter("values", "scalar", repeated=True),),
            "widest of the arguments",
            "The first of the values that is there.",
            'coalesce(method.card.network, "none")',
        ),
        Function(
            "email_domain",
            (_TEXT,),
            "text",
            "What stands after the last `@`, in lower case; the whole text when it has no `@`.",
            'email_domain(user.email) == "example.com"',
        ),
        Function(
            "email_local",
            (_TEXT,),
            "text",
            "What stands before the last `@`; missing when there is none.",
            "length(email_local(user.email)) > 20",
        ),
        Function(
            "entropy",
            (_TEXT,),
            "number",
            "Shannon entropy in bits per character: high for random text, 0 for empty text.",
            "entropy(email_local(user.email)) > 3.5",
        ),
        Function(
            "hour",
            (Parameter("at", "instant"), Parameter("time_zone", "time zone name", optional=True)),
            "hour of the day",
            "The hour, 0 to 23, in the time zone; without one, in the account's.",
            'hour(timestamp, "America/Sao_Paulo") between 1 and 5',
        ),
        Function(
            "ip_network",
            (
                Parameter("ip", "ip address"),
                Parameter("bits", "ipv4 prefix length"),
                Parameter("bits6", "ipv6 prefix length", optional=True),
            ),
            "text",
            "The network that holds the address, as text, for keys: `bits` for IPv4, `bits6` "
            "(64 when left out) for IPv6.",
            "count(payments by ip_network(device.ip_address, 24) over 1h) > 50",
        ),
        Function(
            "left",
            (_TEXT, Parameter("characters", "number of characters")),
            "text",
            "The first so many characters, 0 to 1000; the whole text when it has fewer.",
            "count(payments by left(method.card.bin, 6) over 10m) > 30",
        ),
        Function(
            "length",
            (_TEXT,),
            "whole number",
            "The number of characters.",
            "length(user.id) < 4",
        ),
        Function(
            "lower",
            (_TEXT,),
            "text",
            "The text in lower case, character by character.",
            'lower(user.email) ends with ".test"',
        ),
        Function(
            "max",
            (
                Parameter("first", "number, instant or duration"),
                Parameter("others", "number, instant or duration", repeated=True),
            ),
            "widest of the arguments",
            "The largest of the values; missing when one of them is.",
            "max(score, 0.5) > 0.7",
        ),
        Function(
            "min",
            (
                Parameter("first", "number, instant or duration"),
                Parameter("others", "number, instant or duration", repeated=True),
            ),
            "widest of the arguments",
            "The smallest of the values; missing when one of them is.",
            "min(amount, 100) == 100",
        ),
        Function(
            "number",
            (_TEXT,),
            "number of six decimals",
            "The number that the text says, rounded to six decimals; missing when it says none.",
            "number(user.id) > 1000",
        ),
        Function(
            "round",
            (Parameter("value", "number"), Parameter("decimals", "decimals", optional=True)),
            "number of that many decimals",
            "The number rounded half away from zero, to whole numbers or to 0 to 12 decimals.",
            "round(amount) == amount",
        ),
        Function(
            "upper",
            (_TEXT,),
            "text",
            "The text in upper case, character by character.",
            'upper(order.id) starts with "TEST"',
        ),
        Function(
            "weekday",
            (Parameter("at", "instant"), Parameter("time_zone", "time zone name", optional=True)),
            "weekday name",
            'The day, "monday" to "sunday", in the time zone; without one, in the account\'s.',
            'weekday(timestamp) in ["saturday", "sunday"]',
        ),
    )
}

COLLECTIONS = ("payments", "transactions", "events")

AGGREGATES = {
    aggregate.name: aggregate
    for aggregate in (
        Aggregate(
            "age",
            None,
            "duration",
            ("history",),
            "The time since the first record of the key; missing on the first.",
            "age(payments by device.fingerprint.id) < 10m",
        ),
        Aggregate(
            "all",
            None,
            "boolean",
            ("payment", "window"),
            "Whether every record meets the `where`; true when there are none.",
            'all(transactions where status == "declined")',
        ),
        Aggregate(
            "any",
            None,
            "boolean",
            ("payment", "window"),
            "Whether some record meets the `where`; false when there are none.",
            'any(transactions where connector.response_code == "51")',
        ),
        Aggregate(
            "avg",
            "number",
            "number",
            ("payment", "window"),
            "The mean of the values; missing when there are none.",
            "avg(payments.amount by user.id, currency over 30d) > 100",
        ),
        Aggregate(
            "count",
            None,
            "whole number",
            ("payment", "window"),
            "The number of records.",
            "count(payments by device.ip_address over 10m) > 20",
        ),
        Aggregate(
            "decay",
            "number",
            "number of six decimals",
            ("history",),
            "The number of records, or the total of their values, each weighing half as much for every "
            "half life that it is old; 0 when there are none.",
            "decay(count of payments by device.ip_address half life 1h) > 20",
        ),
        Aggregate(
            "distinct",
            "scalar",
            "whole number",
            ("payment", "window"),
            "The number of different values.",
            "distinct(payments.user.id by device.fingerprint.id over 24h) > 3",
        ),
        Aggregate(
            "first",
            None,
            "boolean",
            ("history",),
            "Whether no earlier record has the key; missing when a part of the key is.",
            "first(payments by user.id, method.card.fingerprint)",
        ),
        Aggregate(
            "interval",
            None,
            "duration",
            ("history",),
            "The time since the previous record of the key; missing on the first.",
            "interval(payments by user.id) < 2s",
        ),
        Aggregate(
            "max",
            "number, instant or duration",
            "same as the argument",
            ("payment", "window"),
            "The largest value; missing when there are none.",
            "max(payments.amount by user.id, currency over 30d) > 500",
        ),
        Aggregate(
            "min",
            "number, instant or duration",
            "same as the argument",
            ("payment", "window"),
            "The smallest value; missing when there are none.",
            "min(transactions.duration) < 50",
        ),
        Aggregate(
            "since",
            None,
            "duration",
            ("history",),
            "The time since the last earlier record of the key that meets the `where`; missing when "
            "there is none.",
            'since(payments by user.id where status == "declined") < 5m',
        ),
        Aggregate(
            "streak",
            None,
            "streak",
            ("history",),
            "How many payments of the key, counted back in order of arrival from the current one on, "
            "meet the `where` without a break; at most 100.",
            'streak(payments by device.fingerprint.id where status == "declined") >= 3',
        ),
        Aggregate(
            "sum",
            "number or duration",
            "same as the argument",
            ("payment", "window"),
            "The total of the values; 0 when there are none.",
            'sum(payments.amount by user.id, currency over 7d where status == "succeeded")',
        ),
    )
}
