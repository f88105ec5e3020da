"""What a follower of the journal reads from outside the service."""

from __future__ import annotations

import pytest

from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.tail import Amendment, Tail

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * 1_000_000


@pytest.fixture
def tail(journal, place):
    opened = Tail(place.source)
    yield opened
    opened.close()


async def test_what_may_be_amended_follows_in_order(journal, make, tail):
    for place, kind in enumerate((Kind.PAYMENT, Kind.EVENT, Kind.UPDATE, Kind.SHADOW), start=1):
        await journal.append(make(place, kind=kind, id="a"))
    assert [entry.sequence for entry in tail.records(0, 4)] == [1, 2, 3]
    assert [entry.sequence for entry in tail.records(1, 3)] == [2, 3]
    assert tail.last_sequence() == 4


async def test_a_payment_is_known_as_of_a_sequence_number(journal, make, tail):
    await journal.append(make(1, id="a"))
    await journal.append(make(2, id="a", kind=Kind.UPDATE, body=b"second"))
    await journal.append(make(3, id="a", kind=Kind.UPDATE, body=b"third"))
    assert [tail.known(1, place).body for place in (1, 2, 3)] == [b"body", b"second", b"third"]
    assert tail.known(2, 3) is None


async def test_payments_are_found_by_the_beginning_of_their_ids(journal, make, tail):
    for place, id_ in enumerate(("b", "ab", "abc", "a%"), start=1):
        await journal.append(make(place, id=id_))
    assert tail.payments_beginning(1, "ab", 10) == [2, 3]
    assert tail.payments_beginning(1, "a", 1) == [4]
    assert tail.payment_sequence(1, "ab") == 2
    assert tail.payment_sequence(2, "ab") is None


async def test_what_was_rewritten_or_removed_is_told_once_each(journal, make, tail):
    kinds = (Kind.PAYMENT, Kind.UPDATE, Kind.EVENT, Kind.SHADOW, Kind.LABEL)
    for place, kind in enumerate(kinds, start=1):
        await journal.append(make(place, kind=kind, id="a"))
    await journal.rewrite(1, lambda entry: entry._replace(body=b"erased"))
    assert tail.amendments(0, 10) == [
        Amendment(1, 1, Kind.PAYMENT, "a", 1),
        Amendment(2, 1, Kind.UPDATE, "a", 2),
        Amendment(3, 1, Kind.EVENT, "", 3),
        Amendment(4, 1, Kind.LABEL, "", 5),
    ]
    assert await journal.purge(1, make(2).time) == 3
    assert [(each.kind, each.sequence) for each in tail.amendments(4, 10)] == [
        (Kind.PAYMENT, 1),
        (Kind.UPDATE, 2),
        (Kind.LABEL, 5),
    ]


async def test_a_follower_that_slept_too_long_hears_that_amendments_are_gone(journal, make, tail):
    for place in (1, 2):
        await journal.append(make(place))
        await journal.rewrite(1, lambda entry: entry._replace(body=entry.body + b"!"))
    assert tail.last_amendment() == 3
    assert not tail.lacks_amendments(0)
    await journal.expire(4_000_000_000_000_000)
    assert tail.amendments(0, 10) == []
    assert tail.lacks_amendments(2)
    assert not tail.lacks_amendments(3)
