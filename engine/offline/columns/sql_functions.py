"""The language's functions in SQL; for rows where SQL differs, by our own function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from zoneinfo import ZoneInfo

from sqlglot import exp

from tollkeeper.engine.instants import DAY, HOUR, to_microseconds
from tollkeeper.engine.lists.environment import RATE_SCALE
from tollkeeper.engine.offline.columns.sql import (
    is_ascii,
    is_short,
    own_call,
    own_unless,
    sql,
    sql_call,
    sql_join,
    sql_literal,
    sql_steps,
    sql_texts,
    sql_where,
)
from tollkeeper.engine.offline.columns.sql_numbers import SqlValue
from tollkeeper.engine.offline.zone_offsets import zone_offsets
from tollkeeper.engine.programs.compile.functions import WEEKDAYS
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.engine.registry.settings import scaled_rates
from tollkeeper.grammar import types as t

LARGEST_NUMBER = 10 ** (12 + t.METADATA_SCALE)
"""The largest absolute value of a number read from text, metadata or a list, as represented."""
_PLAIN_NUMBER = r"[+-]?[0-9]{1,11}(\.[0-9]{1,6})?"
_PERHAPS_NUMBER = r" *[+-]?[0-9].*"
ZONES_KNOWN = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC))
"""Between these instants, time zones' offsets are looked up."""


_ASCII_FUNCTIONS = {
    "lower": "lower(:text)",
    "upper": "upper(:text)",
    "email_domain": "nullif(lower(regexp_extract(:text, '[^@]*$')), '')",
}


def of_text(function: str, text: exp.Expression) -> exp.Expression:
    """A function from text to text. Only for ASCII by SQL: other letters depend on Unicode's
    version."""
    if function == "email_local":
        return sql("nullif(regexp_extract(:text, '(?s)^(.*)@[^@]*$', 1), '')", text=text)
    own = own_call(function, text)
    if function not in _ASCII_FUNCTIONS or not is_short(text):
        return own
    return own_unless(is_ascii(text), own, sql(_ASCII_FUNCTIONS[function], text=text))


def number_of_text(text: exp.Expression) -> exp.Expression:
    """`number(text)`: usual notations by SQL, all others by our own function."""
    if not is_short(text):
        return own_call("number", text)
    return sql(
        f"CASE WHEN regexp_full_match(:text, '{_PLAIN_NUMBER}', 's')"
        " THEN CAST(CAST(TRY_CAST(:text AS DECIMAL(18, 6)) AS DECIMAL(38, 6))"
        f" * {10**t.METADATA_SCALE} AS BIGINT)"
        f" WHEN regexp_full_match(:text, '{_PERHAPS_NUMBER}', 's') THEN own_number(:text) END",
        text=text,
    )


def text_matches(text: exp.Expression, pattern: str, ignore_case: bool) -> exp.Expression:
    """`matches`; only for ASCII by SQL, as classes and cases of other letters depend on Unicode's
    version."""
    own = own_call("matches", text, sql_literal(pattern), sql_literal(ignore_case))
    if not pattern.isascii() or "\\p" in pattern.lower():
        return own
    flags = exp.Literal.string("i" if ignore_case else "c")
    found = sql_call("regexp_matches", text.copy(), exp.Literal.string(pattern), flags)
    if not ignore_case:
        return found
    return own_unless(is_ascii(text), own, found) if is_short(text) else own


def metadata_entry(entries: exp.Expression, keys: Sequence[str], kind: t.Type) -> SqlValue:
    """An entry of metadata, missing if it has another type; without a type, whether it exists."""
    if isinstance(kind, t.Number):
        return SqlValue(own_call("metadata_number", entries, sql_texts(keys)), LARGEST_NUMBER)
    steps = ("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
    *above, pointer = accumulate(steps)
    text = sql_call("json_extract_string", entries, sql_literal(pointer))
    of_type = sql("json_type(:entries, :pointer)", entries=entries, pointer=pointer)
    match kind:
        case t.String():
            found = sql("CASE WHEN :of_type = 'VARCHAR' THEN :text END", of_type=of_type, text=text)
        case t.Boolean():
            found = sql(
                "CASE WHEN :of_type = 'BOOLEAN' THEN :text = 'true' END", of_type=of_type, text=text
            )
        case _:
            found = sql("nullif(:of_type, 'NULL')", of_type=of_type)
    # In a pointer, digits may also be a place in a list.
    objects = [
        sql("json_type(:entries, :holder) = 'OBJECT'", entries=entries, holder=holder)
        for holder, key in zip(above, keys[1:], strict=True)
        if key.isdecimal()
    ]
    return SqlValue(sql_where(sql_join(exp.And, objects), found) if objects else found)


def header_of(headers: exp.Expression, name: str) -> exp.Expression:
    """The first header of a name in lower case."""
    own = own_call("header", headers, sql_literal(name))
    if not name.isascii():
        return own
    place = sql(
        "list_position(list_transform(map_keys(:headers), lambda key: lower(key)), :name)",
        headers=headers,
        name=name,
    )
    found = sql(
        "CASE WHEN NOT :place IS NULL THEN list_extract(map_values(:headers), :place) END",
        headers=headers,
        place=place,
    )
    joined = sql("array_to_string(map_keys(:headers), '')", headers=headers)
    return own_unless(is_ascii(joined), own, found)


def clock_at(function: str, instant: exp.Expression, zone: ZoneInfo) -> exp.Expression:
    """`hour` or `weekday` of an instant (µs) in a time zone."""
    own = own_call(
        function, sql("CAST(:instant AS BIGINT)", instant=instant), sql_literal(zone.key)
    )
    if not is_short(instant):
        return own
    first, last = map(to_microseconds, ZONES_KNOWN)
    is_near = sql(":instant BETWEEN :first AND :last", instant=instant, first=first, last=last)
    of_local = hour_of if function == "hour" else weekday_of
    return own_unless(is_near, own, of_local(local_time(instant, zone)))


def local_time(instant: exp.Expression, zone: ZoneInfo) -> exp.Expression:
    """The local time of an instant (µs) between those of `ZONES_KNOWN`."""
    bounds, offsets = (list(map(sql_literal, each)) for each in zone_offsets(zone, *ZONES_KNOWN))
    return sql(
        ":instant + :offset", instant=instant, offset=sql_steps(instant.copy(), bounds, offsets)
    )


def hour_of(local: exp.Expression) -> exp.Expression:
    return sql("(:local % :day) // :hour", local=local, day=DAY, hour=HOUR)


def weekday_of(local: exp.Expression) -> exp.Expression:
    names = exp.Array(expressions=[exp.Literal.string(each) for each in WEEKDAYS])
    # 1970-01-01 was a Thursday.
    place = "(:local // :day + 3) % 7 + 1"
    return sql(f"list_extract(:names, {place})", names=names, local=local, day=DAY)


def rates_into(wanted: str, settings: AccountSettings) -> Mapping[str, int]:
    """The price of each currency in the wanted one, times 10 ** RATE_SCALE."""
    rates = {
        given: rate for (given, into), rate in scaled_rates(settings).items() if into == wanted
    }
    return {**rates, wanted: 10**RATE_SCALE}


def converted(
    amount: exp.Expression, currency: exp.Expression, rates: Mapping[str, int]
) -> exp.Expression:
    """An amount of scale 2 as one of scale 2 + RATE_SCALE, missing without a rate."""
    arms = [
        exp.If(
            this=sql(":currency = :name", currency=currency, name=name),
            true=sql("CAST(:amount AS HUGEINT) * :rate", amount=amount, rate=rate),
        )
        for name, rate in rates.items()
    ]
    return exp.Case(ifs=arms)
