"""A payment of the solver is one that a merchant can send."""

from __future__ import annotations

import pytest

from tollkeeper.engine.offline.prove.witness import ImpossibleError, as_sent
from tollkeeper.grammar.types import Number


def test_a_number_with_more_digits_than_json_carries_is_none_that_can_be_sent() -> None:
    assert as_sent(-1_000_000_000_000_000_000, Number(6)) == -1e12
    with pytest.raises(ImpossibleError):
        as_sent(-999_999_999_999_999_999, Number(6))
