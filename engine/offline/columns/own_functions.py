"""The language's own functions, called by DuckDB over batches of Arrow where SQL says something else.

Values are carried as `grammar/types.py` says, an address as its 16 bytes; NULL among the arguments is
NULL. Each stands in SQL under its name here with `own_` before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from inspect import Parameter, Signature
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.engine.columns.columns import ADDRESS_BYTES
from tollkeeper.engine.programs.compile import functions
from tollkeeper.grammar.regexes import compile_regex

_ARRAYS: Mapping[str, Callable[[list[Any]], Any]] = {
    "BOOLEAN": lambda values: pa.array(values, pa.bool_()),
    "BIGINT": lambda values: pa.array(values, pa.int64()),
    "HUGEINT": lambda values: pa.array(
        [None if each is None else Decimal(each) for each in values], pa.decimal128(38)
    ),
    "DOUBLE": lambda values: pa.array(values, pa.float64()),
    "VARCHAR": lambda values: pa.array(values, pa.string()),
    "BLOB": lambda values: pa.array(values, ADDRESS_BYTES).cast(pa.binary()),
}


class OwnFunction(NamedTuple):
    """The types of SQL that a function takes and gives."""

    given: Sequence[str]
    gives: str
    value_of: Callable[..., Any]


def make_function(tables: Any, name: str, own: OwnFunction) -> None:
    """Makes the function known to a connection and its cursors."""
    array, value_of = _ARRAYS[own.gives], own.value_of

    def call(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return array([None if None in row else value_of(*row) for row in rows])

    # DuckDB counts the parameters.
    names = (f"value_{number}" for number in range(len(own.given)))
    call.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(each, Parameter.POSITIONAL_ONLY) for each in names]
    )
    tables.create_function(
        name, call, list(own.given), own.gives, type="arrow", null_handling="special"
    )


def make_own_functions(tables: Any) -> None:
    for name, own in _OWN.items():
        make_function(tables, f"own_{name}", own)


_decode = msgspec.json.decode
_zone = cache(ZoneInfo)
_pattern = cache(compile_regex)


def _matches(text: str, pattern: str, ignore_case: bool) -> bool:
    return _pattern(pattern, ignore_case).search(text) is not None


def _header(headers: Sequence[tuple[str, str]], name: str) -> str | None:
    return functions.header(dict(headers), name)


def _ip_network(address: bytes, bits: int, bits6: int) -> str:
    return functions.ip_network(int.from_bytes(address), bits, bits6)


def _rounded(value: float, decimals: int) -> int | None:
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


def _among(metadata: str, keys: Sequence[str], wanted: str | bool) -> bool | None:
    entries = _entries(metadata, keys)
    return None if entries is None else functions.among(entries, wanted)


def _decimal_among(metadata: str, keys: Sequence[str], wanted: Decimal, scale: int) -> bool | None:
    entries = _entries(metadata, keys)
    return None if entries is None else functions.number_among(entries, int(wanted), scale)


def _double_among(metadata: str, keys: Sequence[str], wanted: float) -> bool | None:
    entries = _entries(metadata, keys)
    return None if entries is None else functions.number_among(entries, wanted, None)


def _total(values: Sequence[float | None]) -> float | None:
    return functions.total(each for each in values if each is not None)


def _mean(values: Sequence[int | None], scale: int) -> float | None:
    there = [each for each in values if each is not None]
    return sum(there) / (len(there) * 10**scale) if there else None


_TEXT, _METADATA = ("VARCHAR",), ("VARCHAR", "VARCHAR[]")
_OWN: Mapping[str, OwnFunction] = {
    "entropy": OwnFunction(_TEXT, "DOUBLE", functions.entropy),
    "lower": OwnFunction(_TEXT, "VARCHAR", functions.lower),
    "upper": OwnFunction(_TEXT, "VARCHAR", functions.upper),
    "email_domain": OwnFunction(_TEXT, "VARCHAR", functions.email_domain),
    "number": OwnFunction(_TEXT, "BIGINT", functions.number),
    "matches": OwnFunction(("VARCHAR", "VARCHAR", "BOOLEAN"), "BOOLEAN", _matches),
    "header": OwnFunction(("MAP(VARCHAR, VARCHAR)", "VARCHAR"), "VARCHAR", _header),
    "hour": OwnFunction(
        ("BIGINT", "VARCHAR"), "BIGINT", lambda at, zone: functions.hour(at, _zone(zone))
    ),
    "weekday": OwnFunction(
        ("BIGINT", "VARCHAR"), "VARCHAR", lambda at, zone: functions.weekday(at, _zone(zone))
    ),
    "ip_network": OwnFunction(("BLOB", "BIGINT", "BIGINT"), "VARCHAR", _ip_network),
    "rounded": OwnFunction(("DOUBLE", "BIGINT"), "HUGEINT", _rounded),
    "double": OwnFunction(("HUGEINT", "BIGINT"), "DOUBLE", _double),
    "entry": OwnFunction(("DOUBLE",), "BIGINT", _entry),
    "metadata_number": OwnFunction(_METADATA, "BIGINT", _metadata_number),
    "entry_count": OwnFunction(_METADATA, "BIGINT", _entry_count),
    "text_among": OwnFunction((*_METADATA, "VARCHAR"), "BOOLEAN", _among),
    "truth_among": OwnFunction((*_METADATA, "BOOLEAN"), "BOOLEAN", _among),
    "decimal_among": OwnFunction((*_METADATA, "HUGEINT", "BIGINT"), "BOOLEAN", _decimal_among),
    "double_among": OwnFunction((*_METADATA, "DOUBLE"), "BOOLEAN", _double_among),
    "total": OwnFunction(("DOUBLE[]",), "DOUBLE", _total),
    "mean": OwnFunction(("BIGINT[]", "BIGINT"), "DOUBLE", _mean),
}
