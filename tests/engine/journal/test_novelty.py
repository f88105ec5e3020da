"""An id is called new only when it surely is, and rarely by asking."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tollkeeper.engine.intake.identifiers import new_identifier
from tollkeeper.engine.journal import novelty
from tollkeeper.engine.journal.entries import Kind
from tollkeeper.engine.journal.novelty import Novelty

NOW = 1_789_000_000_000_000

ids = st.tuples(st.sampled_from([1, 2]), st.text("ab", min_size=1, max_size=4))


@given(before=st.sets(ids), asked=st.lists(st.tuples(ids, st.booleans())))
def test_an_id_that_was_used_is_never_called_new(
    before: set[tuple[int, str]], asked: list[tuple[tuple[int, str], bool]]
) -> None:
    used = set(before)

    def is_unused(account: int, beginning: str) -> bool:
        return not any(of == account and each.startswith(beginning) for of, each in used)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(novelty, "BEGINNING", 2)
        patched.setattr(novelty, "MOST", 5)
        known = Novelty(is_unused)
        for of, uses in asked:
            assert not (known.is_new(*of) and of in used)
            if uses:
                known.note(*of)
                used.add(of)


def test_ids_made_within_seconds_of_each_other_need_one_question() -> None:
    asked = []
    known = Novelty(lambda *beginning: not asked.append(beginning))
    for number in range(1_000):
        made = new_identifier(NOW + number)
        assert known.is_new(1, made)
        known.note(1, made)
        assert not known.is_new(1, made)
    assert len(asked) == 1


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
