"""An id is called unused only when it surely is, and few queries tell."""

from __future__ import annotations

import asyncio
from itertools import count

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tollkeeper.engine.intake.identifiers import new_identifier
from tollkeeper.engine.journal import appends
from tollkeeper.engine.journal.appends import PREFIX_LENGTH, UnusedIds
from tollkeeper.engine.journal.entries import Kind

NOW = 1_789_000_000_000_000

ids = st.tuples(st.sampled_from([1, 2]), st.text("ab", min_size=1, max_size=4))


@given(before=st.sets(ids), steps=st.lists(st.tuples(ids, st.booleans(), st.booleans())))
def test_an_id_that_was_used_is_never_called_unused(
    before: set[tuple[int, str]], steps: list[tuple[tuple[int, str], bool, bool]]
) -> None:
    used = set(before)

    def answer(account: int, prefix: str) -> None:
        found = any(of == account and each.startswith(prefix) for of, each in used)
        unused.end_look_up(account, prefix, are_unused=not found)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(appends, "PREFIX_LENGTH", 2)
        patched.setattr(appends, "MAX_IDS", 5)
        unused = UnusedIds()
        for (account, name), uses, answer_comes in steps:
            if unused.is_unused(account, name) is None:
                unused.begin_look_up(account, name[:2])
            if answer_comes:
                answer(account, name[:2])
            assert not (unused.is_unused(account, name) and (account, name) in used)
            if uses:
                unused.add_used(account, name)
                used.add((account, name))


def test_ids_made_within_seconds_of_each_other_need_one_query() -> None:
    queries = 0
    unused = UnusedIds()
    for number in range(1_000):
        made = new_identifier(NOW + number)
        if unused.is_unused(1, made) is None:
            queries += 1
            unused.begin_look_up(1, made[:PREFIX_LENGTH])
            unused.end_look_up(1, made[:PREFIX_LENGTH], are_unused=True)
        assert unused.is_unused(1, made)
        unused.add_used(1, made)
        assert not unused.is_unused(1, made)
    assert queries == 1


@pytest.mark.anyio
async def test_the_journal_knows_ids_being_written_and_written_before(journal, make):
    made = [new_identifier(NOW + number) for number in range(3)]
    first = journal.append(make(1, id=made[0]))
    assert await journal.exists(1, Kind.PAYMENT, made[0])
    assert not await journal.exists(1, Kind.PAYMENT, made[1])
    await first
    assert await journal.exists(1, Kind.PAYMENT, made[0])
    assert not await journal.exists(1, Kind.EVENT, made[0])
    await journal.append(make(2, id=made[1]))
    assert await journal.exists(1, Kind.PAYMENT, made[1])
    assert not await journal.exists(2, Kind.PAYMENT, made[1])
    assert not await journal.exists(1, Kind.PAYMENT, made[2])


@pytest.mark.anyio
async def test_of_several_who_use_one_new_id_at_once_all_but_one_hear_of_it_before_they_append(
    journal, make
) -> None:
    # So a query is needed: the journal has an id that begins in the same way.
    await journal.append(make(1, id="order-1001-1"))
    sequences = count(2)

    async def is_first():
        if await journal.exists(1, Kind.PAYMENT, "order-1001-2"):
            return False
        await journal.append(make(next(sequences), id="order-1001-2"))
        return True

    assert (await asyncio.gather(*(is_first() for _ in range(20)))).count(True) == 1
