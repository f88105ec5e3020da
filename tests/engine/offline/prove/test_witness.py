"""A payment of the solver is one that a merchant can send."""

from __future__ import annotations

import pytest

from tollkeeper.engine.offline.prove.witness import ImpossibleError, as_sent
from tollkeeper.grammar.types import Number


def test_a_number_with_more_digits_than_json_carries_is_none_that_can_be_sent() -> None:
    assert as_sent(-1_000_000_000_000_000_000, Number(6)) == -1e12
    with pytest.raises(ImpossibleError):
        as_sent(-999_999_999_999_999_999, Number(6))


def test_a_number_is_sent_by_the_shortest_digits_that_are_read_back() -> None:
    with pytest.raises(ImpossibleError):
        as_sent(100_000_000_000_008_774, Number(6))
    assert as_sent(100_000_000_000_008_770, Number(6)) == 100_000_000_000.00877
