"""Give DuckDB a function of values, wrapped as one of the Arrow columns that it calls functions with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]

from tollkeeper.engine.columns.columns import ADDRESS_BYTES


class OwnFunction(NamedTuple):
    """A function with the SQL types of its arguments and of its result, which is NULL when an
    argument is."""

    given: Sequence[str]
    gives: str
    value_of: Callable[..., Any]


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


def make_function(tables: Any, name: str, own: OwnFunction) -> None:
    """Register the function at a connection and its cursors."""
    tables.create_function(
        name,
        _arrow_function(own),
        list(own.given),
        own.gives,
        type="arrow",
        null_handling="special",
    )


def _arrow_function(own: OwnFunction) -> Callable[..., Any]:
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
