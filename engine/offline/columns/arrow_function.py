"""Wrap a function of values as one of Arrow columns, as DuckDB calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from inspect import Parameter, Signature
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.engine.columns.columns import ADDRESS_BYTES
from tollkeeper.engine.offline.columns.own_functions import OwnFunction

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


def arrow_function(own: OwnFunction) -> Callable[..., Any]:
    """The wrapped function; its result is NULL when an argument is."""
    array, value_of = _ARRAYS[own.gives], own.value_of

    def call(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return array([None if None in row else value_of(*row) for row in rows])

    # DuckDB counts the parameters.
    names = (f"value_{number}" for number in range(len(own.given)))
    call.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(each, Parameter.POSITIONAL_ONLY) for each in names]
    )
    return call
