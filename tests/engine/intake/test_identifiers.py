"""Identifiers are UUIDs of version 7, in C and in Python."""

from __future__ import annotations

from typing import Any
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.intake import identifiers
from tollkeeper.tests.builds import both_builds

BUILDS = both_builds(identifiers.__name__, "tollkeeper.engine.intake._identifiers")


@pytest.mark.parametrize("build", BUILDS, ids=["in use", "in Python"])
@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_an_identifier_is_its_time_and_all_the_chance_that_a_uuid_has_room_for(
    build: Any, time: int, chance: bytes
) -> None:
    text = build.write_identifier(time, chance)
    written, drawn = UUID(text), int.from_bytes(chance)
    assert str(written) == text
    assert (written.version, written.variant) == (7, RFC_4122)
    assert written.int >> 80 == time
    free = 2**80 - 1 & ~(0xF << 76 | 0b11 << 62)
    assert written.int & free == drawn & free
