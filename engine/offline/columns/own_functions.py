"""The language's functions for DuckDB, called on batches of Arrow where SQL's own differ.

Values are represented as `grammar/types.py` says, an address as its 16 bytes; the result is NULL
when an argument is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from tollkeeper.engine.offline.columns.arrow_function import OwnFunction, make_function
from tollkeeper.engine.programs.compile import functions
from tollkeeper.grammar.regexes import compile_regex


def make_own_functions(tables: Any) -> None:
    """Register all at a connection and its cursors."""
    for name, own in _FUNCTIONS.items():
        make_function(tables, name, own)


_decode = msgspec.json.decode
_zone = cache(ZoneInfo)
_pattern = cache(compile_regex)


def _matches(text: str, pattern: str, ignore_case: bool) -> bool:
    return _pattern(pattern, ignore_case).search(text) is not None


def _header(headers: Sequence[tuple[str, str]], name: str) -> str | None:
    return functions.header(dict(headers), name)


def _ip_network(address: bytes, bits: int, bits6: int) -> str:
    return functions.ip_network(int.from_bytes(address), bits, bits6)


def _round(value: float, decimals: int) -> int | None:
    whole = functions.rounded(value, decimals)
    return whole if abs(whole) < functions.LIMIT else None


def _double(whole: Decimal, scale: int) -> float:
    quotient: float = int(whole) / 10**scale
    return quotient


def _entry(value: float) -> int | None:
    return functions.as_entry(value, None)


def _metadata_entry(metadata: str, keys: Sequence[str]) -> Any:
    return functions.nested_entry(_decode(metadata), keys)


def _metadata_number(metadata: str, keys: Sequence[str]) -> int | None:
    return functions.metadata_number(_metadata_entry(metadata, keys))


def _entries(metadata: str, keys: Sequence[str]) -> list[Any] | None:
    return functions.listed_entries(_metadata_entry(metadata, keys))


def _entry_count(metadata: str, keys: Sequence[str]) -> int | None:
    entries = _entries(metadata, keys)
    return None if entries is None else len(entries)


def _is_among(metadata: str, keys: Sequence[str], wanted: str | bool) -> bool | None:
    entries = _entries(metadata, keys)
    return None if entries is None else functions.among({}, (), entries, wanted)


def _decimal_among(metadata: str, keys: Sequence[str], wanted: Decimal, scale: int) -> bool | None:
    entries = _entries(metadata, keys)
    return None if entries is None else functions.number_among({}, (), entries, int(wanted), scale)


def _double_among(metadata: str, keys: Sequence[str], wanted: float) -> bool | None:
    entries = _entries(metadata, keys)
    return None if entries is None else functions.number_among({}, (), entries, wanted, None)


def _total(values: Sequence[float | None]) -> float | None:
    return functions.total(each for each in values if each is not None)


def _mean(values: Sequence[int | None], scale: int) -> float | None:
    there = [each for each in values if each is not None]
    return sum(there) / (len(there) * 10**scale) if there else None


_TEXT, _METADATA = ("VARCHAR",), ("VARCHAR", "VARCHAR[]")
_FUNCTIONS: Mapping[str, OwnFunction] = {
    "own_entropy": OwnFunction(_TEXT, "DOUBLE", functions.entropy),
    "own_lower": OwnFunction(_TEXT, "VARCHAR", functions.lower),
    "own_upper": OwnFunction(_TEXT, "VARCHAR", functions.upper),
    "own_email_domain": OwnFunction(_TEXT, "VARCHAR", functions.email_domain),
    "own_number": OwnFunction(_TEXT, "BIGINT", functions.number),
    "own_matches": OwnFunction(("VARCHAR", "VARCHAR", "BOOLEAN"), "BOOLEAN", _matches),
    "own_header": OwnFunction(("MAP(VARCHAR, VARCHAR)", "VARCHAR"), "VARCHAR", _header),
    "own_hour": OwnFunction(
        ("BIGINT", "VARCHAR"), "BIGINT", lambda at, zone: functions.hour(at, _zone(zone))
    ),
    "own_weekday": OwnFunction(
        ("BIGINT", "VARCHAR"), "VARCHAR", lambda at, zone: functions.weekday(at, _zone(zone))
    ),
    "own_ip_network": OwnFunction(("BLOB", "BIGINT", "BIGINT"), "VARCHAR", _ip_network),
    "own_rounded": OwnFunction(("DOUBLE", "BIGINT"), "HUGEINT", _round),
    "own_double": OwnFunction(("HUGEINT", "BIGINT"), "DOUBLE", _double),
    "own_entry": OwnFunction(("DOUBLE",), "BIGINT", _entry),
    "own_metadata_number": OwnFunction(_METADATA, "BIGINT", _metadata_number),
    "own_entry_count": OwnFunction(_METADATA, "BIGINT", _entry_count),
    "own_text_among": OwnFunction((*_METADATA, "VARCHAR"), "BOOLEAN", _is_among),
    "own_truth_among": OwnFunction((*_METADATA, "BOOLEAN"), "BOOLEAN", _is_among),
    "own_decimal_among": OwnFunction((*_METADATA, "HUGEINT", "BIGINT"), "BOOLEAN", _decimal_among),
    "own_double_among": OwnFunction((*_METADATA, "DOUBLE"), "BOOLEAN", _double_among),
    "own_total": OwnFunction(("DOUBLE[]",), "DOUBLE", _total),
    "own_mean": OwnFunction(("BIGINT[]", "BIGINT"), "DOUBLE", _mean),
}
