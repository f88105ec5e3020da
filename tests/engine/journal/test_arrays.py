"""Rows that are sent as arrays arrive in the database as they were."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tollkeeper.engine.journal.postgres.arrays import BYTEA, INT2, INT8, encode_columns
from tollkeeper.engine.journal.postgres.connection import PostgresConnection, connect

_QUERY = "SELECT * FROM unnest(%b::bigint[], %b::smallint[], %b::bytea[], %b::bytea[])"
_TYPES = (INT8, INT2, BYTEA, BYTEA)


@pytest.fixture(scope="module")
def connection(shared_database: str):
    with closing(connect(shared_database)) as opened:
        yield opened


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(integers(64), integers(16), st.binary(), st.binary() | st.none()), max_size=9
    )
)
def test_what_the_database_reads_is_what_was_sent(
    connection: PostgresConnection, rows: list[tuple[int, int, bytes, bytes | None]]
) -> None:
    arrays = encode_columns(rows, _TYPES)
    assert connection.raw.execute(_QUERY, arrays, binary=True).fetchall() == rows


@pytest.mark.parametrize("row", [(2**63, 0), (-(2**63) - 1, 0), (0, 2**15)])
def test_a_number_that_its_column_cannot_hold_is_refused(row: tuple[int, int]) -> None:
    with pytest.raises(OverflowError):
        encode_columns([row], (INT8, INT2))
