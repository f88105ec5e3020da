"""Whoever watches a record or a key hears when an append of it is settled."""

from __future__ import annotations

import pytest

from tollkeeper.engine.journal.appends import Append, InFlight, UncancellableFuture
from tollkeeper.engine.journal.entries import Entry, Kind

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("first_to_leave", [0, 1])
async def test_of_two_who_watch_one_payment_at_once_each_hears_while_it_watches(
    first_to_leave: int,
) -> None:
    in_flight = InFlight()
    entry = Entry(1, 1, Kind.PAYMENT, "p-1", 1, 1, b"{}")
    append = Append(entry, None, (), 0, UncancellableFuture())
    in_flight.add(append)
    both = [in_flight.watch(1, "p-1") for _ in range(2)]
    watches = [each.__enter__() for each in both]
    both[first_to_leave].__exit__(None, None, None)
    in_flight.remove(append)
    both[1 - first_to_leave].__exit__(None, None, None)
    assert watches[1 - first_to_leave].is_touched
    assert not watches[first_to_leave].is_touched
