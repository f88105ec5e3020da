"""Values in JSON are those that programs carry."""

from __future__ import annotations

import pytest

from tollkeeper.engine.programs.json_values import json_value
from tollkeeper.grammar import types as t


@pytest.mark.parametrize(
    ("carried", "kind", "shown"),
    [
        (12_345, t.Number(2), 123.45),
        (12_300, t.Number(2), 123),
        (
            12_345_678_901_234_567_890_123_456_789_012_345_600,
            t.Number(2),
            123456789012345678901234567890123456,
        ),
        (90_500_000, t.Duration(), 90.5),
        (None, t.Number(2), None),
    ],
)
def test_a_whole_number_has_all_its_digits(carried, kind, shown):
    value = json_value(carried, kind)
    assert (type(value), value) == (type(shown), shown)
