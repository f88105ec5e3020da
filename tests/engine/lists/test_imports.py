from __future__ import annotations

from tollkeeper.engine.journal.entries import ListEntry
from tollkeeper.engine.lists.imports import _BATCH, MAX_REPORTED, BadEntry, import_entries


def test_a_good_file_is_staged_whole_in_batches():
    staged = []
    entries = [ListEntry(str(number)) for number in range(2 * _BATCH + 1)]
    done = import_entries(iter(entries), staged.append)
    assert [len(batch) for batch in staged] == [_BATCH, _BATCH, 1]
    assert [entry for batch in staged for entry in batch] == entries
    assert (done.count, done.bad_count) == (len(entries), 0)


def test_after_a_bad_entry_nothing_more_is_staged_but_all_bad_ones_are_counted():
    staged = []
    bad = [BadEntry(f"line {number}", "wrong") for number in range(2 * MAX_REPORTED)]
    entries = [ListEntry("first"), *bad, *(ListEntry(str(n)) for n in range(2 * _BATCH))]
    done = import_entries(entries, staged.append)
    assert staged == []
    assert done.bad == tuple(bad[:MAX_REPORTED])
    assert done.bad_count == 2 * MAX_REPORTED
