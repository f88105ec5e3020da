"""What the language's functions do, in SQL; some come with a guard (`translate.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from sqlglot import exp

from tollkeeper.engine.instants import DAY, HOUR, to_microseconds
from tollkeeper.engine.lists.environment import RATE_SCALE
from tollkeeper.engine.offline.columns.sql import (
    NotExactError,
    is_ascii,
    or_missing,
    sql_binary,
    sql_call,
    sql_is_there,
    sql_join,
    sql_literal,
    sql_not,
    sql_steps,
    sql_where,
)
from tollkeeper.engine.programs.compile.functions import WEEKDAYS
from tollkeeper.engine.registry.changes import AccountSettings
from tollkeeper.engine.registry.settings import scaled_rates
from tollkeeper.grammar import types as t

Guarded = tuple[exp.Expression, exp.Expression]
"""A value, and its guard."""

LARGEST_NUMBER = 10 ** (12 + t.METADATA_SCALE)
_PLAIN_NUMBER = r"[+-]?[0-9]{1,11}(\.[0-9]{1,6})?"
_PERHAPS_NUMBER = r" *[+-]?[0-9].*"
_KNOWN = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2050, 1, 1, tzinfo=UTC))
"""Between these the offsets of time zones are looked up."""


OF_TEXT: Mapping[str, Callable[[exp.Expression], exp.Expression]] = {
    "lower": lambda text: sql_call("lower", text),
    "upper": lambda text: sql_call("upper", text),
    "email_domain": lambda text: or_missing(
        sql_call("lower", sql_call("regexp_extract", text, exp.Literal.string("[^@]*$")))
    ),
    "email_local": lambda text: or_missing(
        sql_call(
            "regexp_extract",
            text,
            exp.Literal.string("(?s)^(.*)@[^@]*$"),
            exp.Literal.number(1),
        )
    ),
}


def _matches_whole(text: exp.Expression, pattern: str) -> exp.Expression:
    return sql_call("regexp_full_match", text, exp.Literal.string(pattern), exp.Literal.string("s"))


def number_of_text(text: exp.Expression) -> Guarded:
    """Numbers as most write them; the guard refuses all else that may be one."""
    is_plain = _matches_whole(text, _PLAIN_NUMBER)
    digits = exp.TryCast(this=text.copy(), to=exp.DataType.build("DECIMAL(18, 6)"))
    scaled = exp.cast(_scaled(digits), "BIGINT")
    is_none = sql_not(_matches_whole(text.copy(), _PERHAPS_NUMBER))
    return sql_where(is_plain, scaled), sql_join(exp.Or, (is_plain.copy(), is_none))


def number_of_entry(text: exp.Expression) -> exp.Expression:
    """The text of a list's entry as a number of scale 6; missing for entries of other lists."""
    digits = exp.TryCast(this=text, to=exp.DataType.build("DECIMAL(24, 6)"))
    return exp.cast(_scaled(digits), "HUGEINT")


def _scaled(digits: exp.Expression) -> exp.Expression:
    # `exp.cast` would leave one decimal of two away.
    wide = exp.Cast(this=digits, to=exp.DataType.build("DECIMAL(38, 6)"))
    return sql_binary(exp.Mul, wide, exp.Literal.number(10**t.METADATA_SCALE))


def metadata_entry(
    entries: exp.Expression, keys: Sequence[str], kind: t.Type
) -> tuple[exp.Expression, exp.Expression | None]:
    """An entry of metadata, missing where it is of another type."""
    steps = ("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
    pointer = sql_literal("".join(steps))
    of_type = sql_call("json_type", entries, pointer)
    match kind:
        case t.String():
            is_text = sql_binary(exp.EQ, of_type, exp.Literal.string("VARCHAR"))
            found = sql_call("json_extract_string", entries.copy(), pointer.copy())
            return sql_where(is_text, found), None
        case t.Boolean():
            is_truth = sql_binary(exp.EQ, of_type, exp.Literal.string("BOOLEAN"))
            found = sql_call("json_extract_string", entries.copy(), pointer.copy())
            is_true = sql_binary(exp.EQ, found, exp.Literal.string("true"))
            return sql_where(is_truth, is_true), None
        case _:
            raise NotExactError("metadata but for texts and truth values")


def header_of(headers: exp.Expression, name: str) -> Guarded:
    """The first header of a name in lower case; names beyond ASCII are refused."""
    if not name.isascii():
        raise NotExactError("a header's name beyond ASCII")
    keys, key = sql_call("map_keys", headers), exp.to_identifier("key")
    lowered = exp.Lambda(this=sql_call("lower", key), expressions=[key.copy()])
    place = sql_call(
        "list_position", sql_call("list_transform", keys, lowered), exp.Literal.string(name)
    )
    found = sql_call("list_extract", sql_call("map_values", headers.copy()), place)
    joined = sql_call("array_to_string", keys.copy(), exp.Literal.string(""))
    return sql_where(sql_is_there(place.copy()), found), is_ascii(joined)


def local_time(instant: exp.Expression, zone: ZoneInfo) -> Guarded:
    """An instant (µs) as the clocks of a zone show it; the guard refuses what is far away."""
    bounds, offsets = zone_offsets(zone)
    first, last = map(to_microseconds, _KNOWN)
    is_near = exp.Between(
        this=exp.paren(instant.copy()), low=sql_literal(first), high=sql_literal(last)
    )
    offset = sql_steps(
        instant.copy(), list(map(sql_literal, bounds)), list(map(sql_literal, offsets))
    )
    return sql_binary(exp.Add, instant, offset), is_near


@lru_cache(maxsize=64)
def zone_offsets(zone: ZoneInfo) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The instants (µs) at which a zone's offset (µs) changes, and the offsets between them."""
    first, last = (int(each.timestamp()) for each in _KNOWN)
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
    # The epoch began on a Thursday.
    since_monday = sql_binary(
        exp.Add, sql_binary(exp.IntDiv, local, sql_literal(DAY)), sql_literal(3)
    )
    names = exp.Array(expressions=[exp.Literal.string(each) for each in WEEKDAYS])
    place = sql_binary(exp.Add, sql_binary(exp.Mod, since_monday, sql_literal(7)), sql_literal(1))
    return sql_call("list_extract", names, place)


def rates_into(wanted: str, settings: AccountSettings) -> Mapping[str, int]:
    """What a unit of each currency is in the wanted one, times 10 ** RATE_SCALE."""
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
