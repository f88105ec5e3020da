"""Every entry has a checksum, blocks of them a chain; what changes an entry unseen breaks them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollkeeper.engine.journal.checksums import checksum, seals
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.inspect import JournalFault, inspect_journal

pytestmark = pytest.mark.anyio


async def fill(journal, make, count, block=10):
    for sequence in range(1, count + 1):
        await journal.append(make(sequence))
    await journal.seal(at_least=block)


def inspected(place):
    with place.connect() as connection:
        return inspect_journal(connection)


def change(place, statement, *values):
    with place.connect() as connection:
        connection.execute(statement, values)


numbers = st.integers(0, 2**62)
entries = st.builds(
    Entry,
    numbers,
    numbers,
    st.sampled_from(Kind),
    st.text(st.characters(exclude_categories=["Cs"])),
    numbers,
    numbers,
    st.binary(),
    st.binary() | st.none(),
)


@given(entries, st.integers(0, 7), entries)
def test_an_entry_of_which_a_part_changes_always_has_another_checksum(entry, part, other):
    changed = Entry._make([*entry[:part], other[part], *entry[part + 1 :]])
    if changed != entry and (entry[7] or b"", changed[7] or b"") != (b"", b""):
        assert checksum(changed) != checksum(entry)


async def test_a_journal_as_it_was_written_has_no_fault(journal, place, make):
    await fill(journal, make, 25)
    inspection = inspected(place)
    assert inspection.faults == []
    assert (inspection.entries, inspection.sealed, inspection.without_checksum) == (25, 25, 0)


async def test_entries_since_the_last_seal_are_counted_and_wait_for_the_next(journal, place, make):
    await fill(journal, make, 20)
    await journal.append(make(21))
    assert (inspected(place).entries, inspected(place).sealed) == (21, 20)
    await journal.seal()
    assert inspected(place).sealed == 20
    await journal.seal(at_least=1)
    assert inspected(place).sealed == 21


async def test_a_changed_body_is_found_and_named(journal, place, make):
    await fill(journal, make, 5)
    change(place, "UPDATE journal SET body = ? WHERE place = 3", b"\0\xff")
    assert inspected(place).faults == [
        JournalFault(
            3, "entry 3 (payment, account 1) is not as it was written: its checksum differs"
        )
    ]


async def test_a_missing_entry_is_found(journal, place, make):
    await fill(journal, make, 5, block=1)
    change(place, "DELETE FROM journal WHERE place = 3")
    (fault,) = inspected(place).faults
    assert fault.text == (
        "of the entries 1 to 5, sealed together, 4 are there where 5 should be: 1 is missing"
    )


async def test_an_added_entry_is_found(journal, place, make):
    for sequence in (1, 2, 4):
        await journal.append(make(sequence))
    await journal.seal(at_least=1)
    entry = make(3)
    change(
        place,
        "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *entry,
        checksum(entry),
    )
    (fault,) = inspected(place).faults
    assert "4 are there where 3 should be: 1 too many" in fault.text


async def test_an_exchanged_entry_is_found_though_its_checksum_fits(journal, place, make):
    await fill(journal, make, 5, block=1)
    entry = make(3, body=b"another")
    change(
        place,
        "UPDATE journal SET body = ?, checksum = ? WHERE place = 3",
        entry.body,
        checksum(entry),
    )
    (fault,) = inspected(place).faults
    assert (
        fault.text == "of the entries 1 to 5, sealed together, some are not those that were sealed"
    )


async def test_a_missing_seal_breaks_the_chain(journal, place, make):
    for sequence in range(1, 31):
        await journal.append(make(sequence))
        if sequence % 10 == 0:
            await journal.seal(at_least=1)
    assert inspected(place).faults == []
    change(place, "DELETE FROM seals WHERE sequence = 20")
    assert [fault.text for fault in inspected(place).faults] == [
        "the chain is broken at entry 30: a seal before it was changed or is missing",
        "of the entries 11 to 30, sealed together, 20 are there where 10 should be: 10 too many",
    ]


async def test_what_retention_and_erasure_do_is_no_fault(journal, place, make):
    for sequence in range(1, 31):
        await journal.append(make(sequence))
        if sequence % 10 == 0:
            await journal.seal(at_least=1)
    await journal.append(make(31, id="p5", kind=Kind.UPDATE))
    await journal.purge(1, make(15).time)
    await journal.rewrite(1, lambda entry: entry._replace(body=b"redacted"))
    inspection = inspected(place)
    assert inspection.faults == []
    with place.connect() as connection:
        assert [(seal.entries, seal.removed) for seal in seals(connection)] == [
            (10, 10),
            (10, 4),
            (10, 0),
            (1, 1),
        ]


async def test_entries_of_an_earlier_version_have_none_and_are_counted(journal, place, make):
    await fill(journal, make, 5, block=100)
    change(place, "UPDATE journal SET checksum = NULL WHERE place < 4")
    await journal.seal(at_least=1)
    inspection = inspected(place)
    assert (inspection.faults, inspection.without_checksum) == ([], 3)
    await journal.rewrite(1, lambda entry: entry._replace(body=b"redacted"))
    assert (inspected(place).faults, inspected(place).without_checksum) == ([], 0)
