"""Update the index from the journal, one stretch of sequence numbers per transaction.

A stretch adds the terms that payments have gained and removes those they have lost. Entries that
were rewritten or removed in the journal are removed from the index and added again as they now are.
"""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from tollkeeper.engine.decision import Decision
from tollkeeper.engine.instants import MINUTE
from tollkeeper.engine.journal.damage import UNREADABLE
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.journal.source import JournalSource, folder_of
from tollkeeper.engine.journal.tail import Amendment, Tail
from tollkeeper.engine.labels.label import decode_label
from tollkeeper.engine.search import index_file
from tollkeeper.engine.search.blocks import (
    MOST_LISTED,
    MOST_LISTED_BYTES,
    SHIFT,
    bit_of,
    block_of,
    by_block,
    change_members,
    descending,
    pack_list,
    remove_members,
    unpack,
)
from tollkeeper.engine.search.outcomes import (
    PIECE,
    PIECE_SHIFT,
    OutcomeDigits,
    outcome_digits,
    place_in_piece,
)
from tollkeeper.engine.search.reading import AccountIndex
from tollkeeper.engine.search.runs import RunChanges, extend_run, note_runs, unmade_run
from tollkeeper.engine.search.terms import (
    ENTITIES,
    NAMED,
    NO_VALUE,
    Facet,
    Hashes,
    Term,
    common_terms,
    decided_terms,
    entity_terms,
    erasure_terms,
    label_terms,
    read_decision,
    read_facts,
    reported_terms,
    text_term,
)
from tollkeeper.engine.search.totals import drop_totals, keep_totals, left_alone

TAKEN_AT_ONCE = 8192
"""The number of sequence numbers that one transaction takes in."""
_AMENDMENTS = 5_000
"""The most amendments that one transaction takes in."""

T = TypeVar("T")

_HashedTerms = frozenset[tuple[Facet, int]]
_SetKey = tuple[int, int, int, int]
"""What a set of payments is stored under: account, facet, block and value."""
_Moved = defaultdict[_SetKey, tuple[list[int], list[int]]]
"""For each set, the positions to add and those to remove."""
_OF_EVERY: tuple[Term, ...] = ((Facet.PAYMENT, 0),)
_DAMAGED = (Facet.DAMAGED, NO_VALUE)


class _New:
    """Positions of a block's new payments, by their terms."""

    def __init__(self) -> None:
        self.alike: defaultdict[tuple[Term, ...], list[int]] = defaultdict(list)
        self.entities: defaultdict[tuple[Facet, str], list[int]] = defaultdict(list)


class Follower:
    """Writes the index of a journal. If several run at once, each does what the others have not
    done.
    """

    def __init__(self, source: JournalSource) -> None:
        """Raises `sqlite3.Error` for a folder or an index that can't be used."""
        self._tail = Tail(source)
        self._hashes: Hashes | None = None
        folder = self._folder = folder_of(source)
        # Before the file is opened: a file that then takes its place is not the one that is written.
        self._made = index_file.inode_of(folder)
        try:
            self._open(folder)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            # The index is damaged. It is derived from the journal, so it is made again.
            index_file.remove_index(folder)
            self._made = None
            self._open(folder)
        self._made = self._made or index_file.inode_of(folder)

    def close(self) -> None:
        self._index.close()
        self._tail.close()

    def is_there(self) -> bool:
        """Whether the folder still has the file that is written, and no other in its place."""
        return index_file.is_in_place(self._folder, self._made)

    def catch_up(self) -> None:
        """Index everything in the journal."""
        while self.step():
            pass

    def step(
        self, at_once: int = TAKEN_AT_ONCE, give_way: Callable[[], None] = lambda: None
    ) -> int:
        """Index one stretch of at most `at_once` sequence numbers. Returns the number of sequence
        numbers and amendments that it covered, 0 if there was nothing to do.

        `give_way` is called before each entry and each set that is written, and may wait.
        """
        if not self._is_behind():
            return 0
        with index_file.transaction(self._index):
            followed = index_file.read_index_place(self._index)
            if self._tail.lacks_amendments(followed.amendment):
                index_file.empty_index(self._index, self._tail.last_amendment())
                return TAKEN_AT_ONCE
            last = min(self._tail.last_sequence(), followed.sequence + at_once)
            hashes = self._hashes_by(followed.key)
            changes = _Changes(self._index, self._tail, hashes, give_way)
            for entry in self._tail.records(followed.sequence, last):
                give_way()
                try:
                    changes.take(entry)
                except UNREADABLE:
                    changes.take_damaged(entry)
            changes.write(last)
            amendments = self._tail.amendments(followed.amendment, _AMENDMENTS)
            # Retention may have removed the journal's last entries, so `last` may lie before what
            # was taken in already.
            changes.renew(amendments, max(last, followed.sequence))
            amendment = amendments[-1].number if amendments else followed.amendment
            index_file.note(self._index, last, self._tail.arrival_of(last), amendment)
        return max(last - followed.sequence, 0) + len(amendments)

    def keep_totals(self, give_way: Callable[[], None] = lambda: None) -> bool:
        """Count a block that has not changed for long; returns whether there was one. `give_way` is
        called again and again, and may wait.
        """
        if left_alone(self._index) is None:
            return False
        with index_file.transaction(self._index):
            unchanged = left_alone(self._index)
            if unchanged is not None:
                account, block = unchanged
                keep_totals(AccountIndex(self._index, self._tail, account), block, give_way)
        return True

    def extend_run(self, give_way: Callable[[], None] = lambda: None) -> bool:
        """Add the next payments to a run; returns whether there were any. `give_way` is called again and
        again, and may wait.
        """
        if unmade_run(self._index) is None:
            return False
        with index_file.transaction(self._index):
            unmade = unmade_run(self._index)
            if unmade is not None:
                index = AccountIndex(self._index, self._tail, unmade.account)
                extend_run(index, unmade.run, unmade.through, give_way)
        return True

    def _hashes_by(self, key: bytes) -> Hashes:
        """Return the hashes of the previous stretch, which are cached, unless the key has changed."""
        if self._hashes is None or self._hashes.key != key:
            self._hashes = Hashes(key)
        return self._hashes

    def _open(self, folder: Path) -> None:
        self._index = index_file.connect_to_write(folder)
        self._index.create_function("grown", 2, _grown, deterministic=True)
        with index_file.transaction(self._index):
            if not (index_file.is_current(self._index) and self._is_of_this_journal()):
                index_file.empty_index(self._index, self._tail.last_amendment())

    def _is_of_this_journal(self) -> bool:
        return index_file.is_of(index_file.read_index_place(self._index), self._tail)

    def _is_behind(self) -> bool:
        followed = index_file.read_index_place(self._index)
        return (
            followed.sequence < self._tail.last_sequence()
            or followed.amendment < self._tail.last_amendment()
        )


class _Changes:
    """The changes of a stretch, until they are written."""

    def __init__(
        self,
        index: sqlite3.Connection,
        tail: Tail,
        hashes: Hashes,
        give_way: Callable[[], None],
    ) -> None:
        self._give_way = give_way
        self._index = index
        self._tail = tail
        self._hashes = hashes
        self._hash = hashes.hash
        self._digits: dict[int, OutcomeDigits] = {}
        self._outcomes: dict[int, bytearray] = {}
        # By account and block, positions of new payments: those that share common terms once for
        # all these terms, and for each entity.
        self._new: defaultdict[tuple[int, int], _New] = defaultdict(_New)
        # The terms that changed payments have gained, and those they have lost.
        self._gained: defaultdict[tuple[int, int], set[tuple[Facet, int]]] = defaultdict(set)
        self._lost: defaultdict[tuple[int, int], set[tuple[Facet, int]]] = defaultdict(set)
        # Accounts and blocks whose totals are no longer true.
        self._changed: set[tuple[int, int]] = set()
        # By account and id, the sequence number and the facts as last reported of the stretch's
        # payments.
        self._reported: dict[tuple[int, str], tuple[int, Any]] = {}
        self._names: dict[tuple[int, Facet, int], str] = {}
        self._minute = -1
        self._runs = RunChanges(index)

    def take(self, entry: Entry) -> None:
        """Add an entry of a kind in `AMENDABLE`, in journal order."""
        self._tell(entry)
        match entry.kind:
            case Kind.PAYMENT:
                self._take_payment(entry)
            case Kind.UPDATE:
                self._take_update(entry)
            case Kind.LABEL:
                self._take_label(entry)

    def take_damaged(self, entry: Entry) -> None:
        """Add an entry that can't be read: only an erasure looks for it."""
        self._new_in(entry).entities[_DAMAGED].append(bit_of(entry.sequence))

    def renew(self, amendments: Iterable[Amendment], last: int) -> None:
        """Remove amended entries, and add them again as the journal has them up to `last`."""
        again = {
            (each.account, sequence)
            for each in amendments
            for sequence in (each.sequence, self._payment_of(each))
        }
        entries = sorted((account, sequence) for account, sequence in again if 0 < sequence <= last)
        for account in {account for account, _ in entries}:
            own = [sequence for number, sequence in entries if number == account]
            for block, members in by_block(own).items():
                self._clear(account, block, members)
        for account, sequence in entries:
            entry = self._tail.entry(sequence)
            if entry is None:
                self._index.execute(
                    "DELETE FROM labels WHERE account = ? AND payment = ?", (account, sequence)
                )
            else:
                self._change(account, sequence, frozenset(), self._terms_to_find(entry, last))
        self.write(last)
        for account in {account for account, _ in entries}:
            self._index.execute(_FORGET_NAMES, {"account": account})

    def write(self, last: int) -> None:
        """Write the changes up to sequence number `last`."""
        self._changed.update(self._new)
        drop_totals(self._index, self._changed, last)
        note_runs(self._index, self._new)
        moved: _Moved = defaultdict(lambda: ([], []))
        for position, changed in enumerate((self._gained, self._lost)):
            for (account, sequence), terms in changed.items():
                block, bit = block_of(sequence), bit_of(sequence)
                for facet, value in terms:
                    moved[account, facet, block, value][position].append(bit)
        appended: list[tuple[int, int, int, int, bytes]] = []
        for (account, block), new in self._new.items():
            self._write_new(account, block, new, moved, appended)
        self._write_outcomes(last)
        # In the table's order, so that each of its pages is visited once.
        appended.sort()
        self._index.executemany(_APPEND, self._giving_way(appended))
        for key in self._giving_way(sorted(moved)):
            added, removed = moved[key]
            row = self._index.execute(_MEMBERS, key).fetchone()
            self._put(key, change_members(row[0] if row else b"", added, removed))
        self._runs.write()
        self._index.executemany(
            "INSERT OR IGNORE INTO names VALUES (?, ?, ?, ?)",
            [(*key, name) for key, name in self._names.items()],
        )
        self._changed.clear()
        for held in (self._new, self._gained, self._lost, self._reported, self._names):
            held.clear()

    def _giving_way(self, each: Iterable[T]) -> Iterator[T]:
        for one in each:
            self._give_way()
            yield one

    def _write_new(
        self,
        account: int,
        block: int,
        new: _New,
        moved: _Moved,
        appended: list[tuple[int, int, int, int, bytes]],
    ) -> None:
        """Split new payments: those appended to a set without reading it, and those merged into a
        set.
        """
        digits, base = self._digits_of(account), block << SHIFT
        for terms, bits in new.alike.items():
            digit = 0
            for facet, value in self._values(account, terms):
                moved[account, facet, block, value][0].extend(bits)
                digit += digits.get((facet, value), 0)
            if digit:
                for bit in bits:
                    self._piece_of(base + bit)[place_in_piece(bit)] |= digit
        for (facet, text), bits in new.entities.items():
            # `int`, since SQLite's module is slow to bind subclasses of it, such as `Facet`.
            key = account, int(facet), block, self._hash(account, facet, text)
            if key in moved or len(bits) > MOST_LISTED:
                moved[key][0].extend(bits)
            else:
                appended.append((*key, pack_list(bits)))

    def _write_outcomes(self, last: int) -> None:
        for (account, sequence), terms in self._lost.items():
            lost = self._digits_in(account, terms)
            if lost:
                self._piece_of(sequence)[place_in_piece(sequence)] &= ~lost
        for (account, sequence), terms in self._gained.items():
            gained = self._digits_in(account, terms)
            if gained:
                self._piece_of(sequence)[place_in_piece(sequence)] |= gained
        self._note_runs(last)
        self._index.executemany(
            "INSERT OR REPLACE INTO outcomes VALUES (?, ?)", list(self._outcomes.items())
        )
        self._outcomes.clear()

    def _note_runs(self, last: int) -> None:
        """Record, for payments in runs, their entities and their outcomes up to sequence number
        `last`.
        """
        for (account, block), new in self._new.items():
            if self._runs.concern(account, block << SHIFT):
                for term, bits in new.entities.items():
                    entities = self._values(account, (term,))
                    for bit in bits:
                        self._put_in_run(account, (block << SHIFT) + bit, entities)
        for account, sequence in self._gained.keys() | self._lost.keys():
            if not self._runs.concern(account, sequence):
                continue
            lost = filter(_is_entity, self._lost.get((account, sequence), ()))
            self._runs.put(account, sequence, lost, None)
            known = self._tail.known(sequence, last)
            if known is not None:
                entities = self._values(account, entity_terms(read_facts(known)))
                self._put_in_run(account, sequence, entities)

    def _put_in_run(self, account: int, sequence: int, entities: _HashedTerms) -> None:
        outcome = self._piece_of(sequence)[place_in_piece(sequence)]
        self._runs.put(account, sequence, entities, outcome)

    def _digits_of(self, account: int) -> OutcomeDigits:
        if account not in self._digits:
            self._digits[account] = outcome_digits(self._hashes, account)
        return self._digits[account]

    def _digits_in(self, account: int, terms: Iterable[tuple[Facet, int]]) -> int:
        digits = self._digits_of(account)
        return sum(digits.get(term, 0) for term in terms)

    def _piece_of(self, sequence: int) -> bytearray:
        piece = sequence >> PIECE_SHIFT
        outcomes = self._outcomes.get(piece)
        if outcomes is None:
            row = self._index.execute(_OUTCOMES, (piece,)).fetchone()
            outcomes = self._outcomes[piece] = bytearray(row[0] if row else PIECE)
        return outcomes

    def _tell(self, entry: Entry) -> None:
        for term in erasure_terms(entry):
            self._new_in(entry).entities[term].append(bit_of(entry.sequence))

    def _new_in(self, entry: Entry) -> _New:
        return self._new[entry.account, block_of(entry.sequence)]

    def _take_payment(self, entry: Entry) -> None:
        account, sequence = entry.account, entry.sequence
        facts, decision = read_facts(entry), _decision_of(entry)
        self._reported[account, entry.id] = sequence, facts
        new, bit = self._new_in(entry), bit_of(sequence)
        new.alike[_OF_EVERY].append(bit)
        new.alike[common_terms(facts)].append(bit)
        new.alike[decided_terms(decision)].append(bit)
        for term in entity_terms(facts):
            new.entities[term].append(bit)
        minute = entry.arrived // MINUTE
        if minute > self._minute:
            self._index.execute(_MINUTE, (minute, sequence, minute))
            self._minute = minute

    def _terms_to_find(self, entry: Entry, last: int) -> _HashedTerms:
        """All terms of an entry, as of the sequence number `last`."""
        try:
            return self._terms_up_to(entry, last)
        except UNREADABLE:
            return self._values(entry.account, [_DAMAGED])

    def _terms_up_to(self, entry: Entry, last: int) -> _HashedTerms:
        terms = self._values(entry.account, erasure_terms(entry))
        known = self._tail.known(entry.sequence, last)
        if known is None:
            return terms
        first, now = entity_terms(read_facts(entry)), entity_terms(read_facts(known))
        terms |= self._values(entry.account, _former_names(frozenset(first) - frozenset(now)))
        return terms | self._terms_of(known) | self._read_labels(entry.account, entry.sequence)

    def _terms_of(self, payment: Entry) -> _HashedTerms:
        facts = read_facts(payment)
        self._reported[payment.account, payment.id] = payment.sequence, facts
        decided = decided_terms(_decision_of(payment))
        return self._values(payment.account, chain(_OF_EVERY, reported_terms(facts), decided))

    def _take_update(self, entry: Entry) -> None:
        payment = entry.account, entry.id
        if payment not in self._reported:
            sequence = self._tail.payment_sequence(*payment)
            known = None if sequence is None else self._tail.known(sequence, entry.sequence - 1)
            if known is None:
                return
            self._reported[payment] = known.sequence, read_facts(known)
        sequence, before = self._reported[payment]
        after = read_facts(entry)
        had, has = frozenset(reported_terms(before)), frozenset(reported_terms(after))
        lost = self._values(entry.account, had - has)
        gained = self._values(entry.account, chain(has - had, _former_names(had - has)))
        self._change(entry.account, sequence, lost, gained)
        self._reported[payment] = sequence, after

    def _take_label(self, entry: Entry) -> None:
        label = decode_label(entry.body)
        payment = entry.account, entry.id
        sequence = (
            self._reported[payment][0]
            if payment in self._reported
            else self._tail.payment_sequence(*payment)
        )
        if sequence is None:
            return
        before = self._read_labels(entry.account, sequence)
        if label.label is None:
            self._index.execute(
                "DELETE FROM labels WHERE account = ? AND payment = ? AND source = ?",
                (entry.account, sequence, label.source),
            )
        else:
            self._index.execute(
                "INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?, ?)",
                (entry.account, sequence, label.source, label.label, label.at, entry.sequence),
            )
        after = self._read_labels(entry.account, sequence)
        self._change(entry.account, sequence, before - after, after - before)

    def _read_labels(self, account: int, sequence: int) -> _HashedTerms:
        rows = self._index.execute(
            "SELECT source, label FROM labels WHERE account = ? AND payment = ?",
            (account, sequence),
        )
        return self._values(account, label_terms(dict(rows.fetchall())))

    def _change(
        self, account: int, sequence: int, lost: _HashedTerms, gained: _HashedTerms
    ) -> None:
        """Add to the stretch's changes that a payment has lost terms, then gained others."""
        self._changed.add((account, block_of(sequence)))
        all_gained, all_lost = self._gained[account, sequence], self._lost[account, sequence]
        all_lost |= lost - all_gained
        all_gained -= lost
        all_gained |= gained - all_lost
        all_lost -= gained

    def _values(self, account: int, terms: Iterable[Term]) -> _HashedTerms:
        hashed = []
        for facet, text in terms:
            value = text if isinstance(text, int) else self._hash(account, facet, text)
            hashed.append((facet, value))
            if facet in NAMED:
                self._names[account, facet, value] = str(text)
        return frozenset(hashed)

    def _clear(self, account: int, block: int, removed: int) -> None:
        """Remove payments, given as a bitmap, from every set of their block."""
        self._changed.add((account, block))
        for sequence in descending(block, removed):
            self._piece_of(sequence)[place_in_piece(sequence)] = 0
        for facet in Facet:
            rows = self._index.execute(_OF_BLOCK, (account, facet, block)).fetchall()
            for value, stored in rows:
                members = unpack(stored)
                if members & removed:
                    self._put((account, facet, block, value), remove_members(members, removed))
                    if facet in ENTITIES:
                        for sequence in descending(block, members & removed):
                            self._runs.put(account, sequence, ((facet, value),), None)

    def _put(self, key: _SetKey, stored: bytes) -> None:
        if stored:
            self._index.execute(
                "INSERT OR REPLACE INTO postings VALUES (?, ?, ?, ?, ?)", (*key, stored)
            )
        else:
            self._index.execute(_DELETE, key)

    def _payment_of(self, amendment: Amendment) -> int:
        """Return the sequence number of the payment that an update belongs to; 0 if there is none."""
        if amendment.kind != Kind.UPDATE:
            return 0
        return self._tail.payment_sequence(amendment.account, amendment.id) or 0


def _former_names(lost: Iterable[Term]) -> Iterator[Term]:
    """The erasure terms of names that an update replaced. The payment's earlier entries still hold
    the name, even after the update itself is erased.
    """
    for facet, text in lost:
        if facet in (Facet.USER, Facet.EMAIL):
            yield text_term(str(text))


def _grown(stored: bytes, added: bytes) -> bytes:
    return change_members(stored, array("H", added), ())


def _is_entity(term: tuple[Facet, int]) -> bool:
    return term[0] in ENTITIES


def _decision_of(payment: Entry) -> Decision:
    return read_decision(payment.outcome) if payment.outcome else Decision()


# An account without payments needs no names.
_FORGET_NAMES = (
    "DELETE FROM names WHERE account = :account"
    " AND NOT EXISTS (SELECT 1 FROM postings WHERE account = :account)"
)
_OF = "account = ? AND facet = ? AND block = ? AND value = ?"
_MEMBERS = f"SELECT members FROM postings WHERE {_OF}"
# Positions appended later are higher, so a list is extended in place; `grown` does what makes it a
# bitmap.
_APPEND = (
    "INSERT INTO postings VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET members ="
    f" CASE WHEN length(members) + length(excluded.members) <= {MOST_LISTED_BYTES}"
    " THEN CAST(members || excluded.members AS BLOB) ELSE grown(members, excluded.members) END"
)
_OUTCOMES = "SELECT bytes FROM outcomes WHERE piece = ?"
_DELETE = f"DELETE FROM postings WHERE {_OF}"
_OF_BLOCK = "SELECT value, members FROM postings WHERE account = ? AND facet = ? AND block = ?"
# A minute's range begins with its first payment, even if the clock went back later.
_MINUTE = (
    "INSERT INTO minutes SELECT ?, ? WHERE ? > (SELECT coalesce(max(minute), -1) FROM minutes)"
)
