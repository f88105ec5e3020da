"""The language's functions in SQL; for rows where SQL differs, by our own function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from sqlglot import exp

from tollkeeper.engine.instants import DAY, HOUR, to_microseconds
from tollkeeper.engine.lists.environment import RATE_SCALE
from tollkeeper.engine.offline.columns.sql import (
    is_ascii,
    is_short,
    or_missing,
    own_call,
    own_unless,
    sql_binary,
    sql_call,
    sql_is_there,
    sql_literal,
    sql_steps,
    sql_texts,
    sql_where,
)
from tollkeeper.engine.offline.columns.sql_numbers import SqlValue
from tollkeeper.engine.programs.compile.functions import WEEKDAYS
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.engine.registry.settings import scaled_rates
from tollkeeper.grammar import types as t

LARGEST_NUMBER = 10 ** (12 + t.METADATA_SCALE)
"""The largest absolute value of a number read from text, metadata or a list, as represented."""
_PLAIN_NUMBER = r"[+-]?[0-9]{1,11}(\.[0-9]{1,6})?"
_PERHAPS_NUMBER = r" *[+-]?[0-9].*"
_ZONES_KNOWN = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC))
"""Between these instants, time zones' offsets are looked up."""


def of_text(function: str, text: exp.Expression) -> exp.Expression:
    """A function from text to text. Only for ASCII by SQL: other letters depend on Unicode's
    version."""
    if function == "email_local":
        pattern = exp.Literal.string("(?s)^(.*)@[^@]*$")
        return or_missing(sql_call("regexp_extract", text, pattern, exp.Literal.number(1)))
    if not is_short(text):
        return own_call(function, text)
    match function:
        case "lower" | "upper":
            found = sql_call(function, text.copy())
        case "email_domain":
            domain = sql_call("regexp_extract", text.copy(), exp.Literal.string("[^@]*$"))
            found = or_missing(sql_call("lower", domain))
        case _:
            return own_call(function, text)
    return own_unless(is_ascii(text), own_call(function, text.copy()), found)


def _matches_whole(text: exp.Expression, pattern: str) -> exp.Expression:
    return sql_call("regexp_full_match", text, exp.Literal.string(pattern), exp.Literal.string("s"))


def number_of_text(text: exp.Expression) -> exp.Expression:
    """`number(text)`: usual notations by SQL, all others by our own function."""
    if not is_short(text):
        return own_call("number", text)
    digits = exp.TryCast(this=text.copy(), to=exp.DataType.build("DECIMAL(18, 6)"))
    plain = exp.If(
        this=_matches_whole(text, _PLAIN_NUMBER),
        true=exp.cast(_at_metadata_scale(digits), "BIGINT"),
    )
    perhaps = exp.If(
        this=_matches_whole(text.copy(), _PERHAPS_NUMBER), true=own_call("number", text.copy())
    )
    return exp.Case(ifs=[plain, perhaps])


def text_matches(text: exp.Expression, pattern: str, ignore_case: bool) -> exp.Expression:
    """`matches`; only for ASCII by SQL, as classes and cases of other letters depend on Unicode's
    version."""
    own = own_call("matches", text.copy(), sql_literal(pattern), sql_literal(ignore_case))
    if not pattern.isascii() or "\\p" in pattern.lower():
        return own
    flags = exp.Literal.string("i" if ignore_case else "c")
    found = sql_call("regexp_matches", text, exp.Literal.string(pattern), flags)
    if not ignore_case:
        return found
    return own_unless(is_ascii(text), own, found) if is_short(text) else own


def number_of_entry(text: exp.Expression) -> exp.Expression:
    """A list entry's text as a number of scale 6; missing for entries of other lists."""
    digits = exp.TryCast(this=text, to=exp.DataType.build("DECIMAL(24, 6)"))
    return exp.cast(_at_metadata_scale(digits), "HUGEINT")


def _at_metadata_scale(digits: exp.Expression) -> exp.Expression:
    # `exp.cast` would drop one of two nested decimal casts.
    wide = exp.Cast(this=digits, to=exp.DataType.build("DECIMAL(38, 6)"))
    return sql_binary(exp.Mul, wide, exp.Literal.number(10**t.METADATA_SCALE))


def metadata_entry(entries: exp.Expression, keys: Sequence[str], kind: t.Type) -> SqlValue:
    """An entry of metadata, missing if it has another type; without a type, whether it exists."""
    steps = ("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
    pointer = sql_literal("".join(steps))
    of_type = sql_call("json_type", entries, pointer)
    text = sql_call("json_extract_string", entries.copy(), pointer.copy())
    match kind:
        case t.String():
            is_text = sql_binary(exp.EQ, of_type, exp.Literal.string("VARCHAR"))
            return SqlValue(sql_where(is_text, text))
        case t.Boolean():
            is_truth = sql_binary(exp.EQ, of_type, exp.Literal.string("BOOLEAN"))
            is_true = sql_binary(exp.EQ, text, exp.Literal.string("true"))
            return SqlValue(sql_where(is_truth, is_true))
        case t.Number():
            found = own_call("metadata_number", entries.copy(), sql_texts(keys))
            return SqlValue(found, LARGEST_NUMBER)
        case _:
            return SqlValue(sql_call("nullif", of_type, exp.Literal.string("NULL")))


def header_of(headers: exp.Expression, name: str) -> exp.Expression:
    """The first header of a name in lower case."""
    own = own_call("header", headers.copy(), sql_literal(name))
    if not name.isascii():
        return own
    keys, key = sql_call("map_keys", headers), exp.to_identifier("key")
    lowered = exp.Lambda(this=sql_call("lower", key), expressions=[key.copy()])
    place = sql_call(
        "list_position", sql_call("list_transform", keys, lowered), exp.Literal.string(name)
    )
    found = sql_call("list_extract", sql_call("map_values", headers.copy()), place)
    joined = sql_call("array_to_string", keys.copy(), exp.Literal.string(""))
    return own_unless(is_ascii(joined), own, sql_where(sql_is_there(place.copy()), found))


def hour_at(instant: exp.Expression, zone: ZoneInfo) -> exp.Expression:
    own = own_call("hour", exp.cast(exp.paren(instant.copy()), "BIGINT"), sql_literal(zone.key))
    if not is_short(instant):
        return own
    return own_unless(_is_near(instant), own, hour_of(local_time(instant, zone)))


def weekday_at(instant: exp.Expression, zone: ZoneInfo) -> exp.Expression:
    own = own_call("weekday", exp.cast(exp.paren(instant.copy()), "BIGINT"), sql_literal(zone.key))
    if not is_short(instant):
        return own
    return own_unless(_is_near(instant), own, weekday_of(local_time(instant, zone)))


def _is_near(instant: exp.Expression) -> exp.Expression:
    first, last = map(to_microseconds, _ZONES_KNOWN)
    return exp.Between(
        this=exp.paren(instant.copy()), low=sql_literal(first), high=sql_literal(last)
    )


def local_time(instant: exp.Expression, zone: ZoneInfo) -> exp.Expression:
    """The local time of an instant (µs) between those of `_ZONES_KNOWN`."""
    bounds, offsets = zone_offsets(zone)
    offset = sql_steps(
        instant.copy(), list(map(sql_literal, bounds)), list(map(sql_literal, offsets))
    )
    return sql_binary(exp.Add, instant.copy(), offset)


@lru_cache(maxsize=64)
def zone_offsets(zone: ZoneInfo) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The instants (µs) at which a zone's offset (µs) changes, and the offsets between them."""
    first, last = (int(each.timestamp()) for each in _ZONES_KNOWN)
    bounds, offsets = [], [_offset(zone, first)]
    for begin, end in pairwise(range(first, last + DAY // 1_000_000, DAY // 1_000_000)):
        if _offset(zone, end) != offsets[-1]:
            while end - begin > 1:
                middle = (begin + end) // 2
                if _offset(zone, middle) == offsets[-1]:
                    begin = middle
                else:
                    end = middle
            bounds.append(end * 1_000_000)
            offsets.append(_offset(zone, end))
    return tuple(bounds), tuple(offsets)


def _offset(zone: ZoneInfo, seconds: int) -> int:
    there = datetime.fromtimestamp(seconds, zone).utcoffset()
    assert there is not None
    return round(there.total_seconds() * 1_000_000)


def hour_of(local: exp.Expression) -> exp.Expression:
    of_day = sql_binary(exp.Mod, local, sql_literal(DAY))
    return sql_binary(exp.IntDiv, of_day, sql_literal(HOUR))


def weekday_of(local: exp.Expression) -> exp.Expression:
    # 1970-01-01 was a Thursday.
    since_monday = sql_binary(
        exp.Add, sql_binary(exp.IntDiv, local, sql_literal(DAY)), sql_literal(3)
    )
    names = exp.Array(expressions=[exp.Literal.string(each) for each in WEEKDAYS])
    place = sql_binary(exp.Add, sql_binary(exp.Mod, since_monday, sql_literal(7)), sql_literal(1))
    return sql_call("list_extract", names, place)


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
    wide = exp.cast(amount, "HUGEINT")
    arms = [
        exp.If(
            this=sql_binary(exp.EQ, currency.copy(), exp.Literal.string(name)),
            true=sql_binary(exp.Mul, wide.copy(), sql_literal(rate)),
        )
        for name, rate in rates.items()
    ]
    return exp.Case(ifs=arms)
