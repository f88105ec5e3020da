"""A data folder with millions of payments and their index, written in bulk.

Some blocks of sequence numbers are generated, and then repeated with later times and other ids. The
journal has every entry; the index is written block by block from the same data, with the terms,
hashes and packing of the product's own writer, which would take an hour.
`tests/bench/test_large_index.py` compares the result with that writer's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from multiprocessing import Process
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from tollkeeper.engine.decision import Action, AppliedRule, Decision
from tollkeeper.engine.instants import DAY, MINUTE, from_microseconds
from tollkeeper.engine.journal import reads, schema
from tollkeeper.engine.journal.entries import Entry, Kind
from tollkeeper.engine.labels.label import Label, LabelSource, Verdict, encode_label
from tollkeeper.engine.search import index_file
from tollkeeper.engine.search.blocks import (
    MOST_LISTED_BYTES,
    SIZE,
    bit_of,
    block_of,
    change_members,
    pack_list,
)
from tollkeeper.engine.search.outcomes import PIECE, PIECE_SHIFT, outcome_digits
from tollkeeper.engine.search.runs import note_runs
from tollkeeper.engine.search.terms import (
    NAMED,
    Facet,
    Hashes,
    Term,
    decided_terms,
    label_terms,
    read_facts,
    reported_terms,
)

ACCOUNT = 1
USERS = 200_000
BINS = 900
MERCHANTS = 40
CONDITIONS = ("card_list", "guessing", "card_again", "night")
MOST_ENTRIES = 3
"""A payment, an update and a label."""
_ENTRIES = 1.203
"""Average journal entries per payment: itself, an update, a label."""
_PAYMENTS_OF_BLOCK = 54_000
_DRAWN_BLOCKS = 16
_SEED = 7
_SOURCE: LabelSource = "chargeback"
_BATCH = 20_000
_INSERT = f"INSERT INTO journal ({reads.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_encode = msgspec.json.Encoder().encode


class GeneratedPayment(NamedTuple):
    """A payment, and its update and label, if any; its entries have consecutive numbers from
    `sequence` on.
    """

    sequence: int
    user: int
    arrived: int
    decision: Decision
    status: str | None
    label: Verdict | None

    @property
    def id(self) -> str:
        return payment_id(self.sequence)

    def entries(self) -> Iterator[Entry]:
        """Yield its entries in the journal."""
        sequence, id_, arrived = self.sequence, self.id, self.arrived
        created = body(id_, self.user, "initiated", arrived)
        yield Entry(
            sequence, ACCOUNT, Kind.PAYMENT, id_, arrived, arrived, created, _encode(self.decision)
        )
        if self.status is not None:
            sequence += 1
            update = body(id_, self.user, self.status, arrived)
            yield Entry(sequence, ACCOUNT, Kind.UPDATE, id_, arrived, arrived, update)
        if self.label is not None:
            label = encode_label(Label(_SOURCE, self.label, arrived, "bench"))
            yield Entry(sequence + 1, ACCOUNT, Kind.LABEL, id_, arrived, arrived, label)


def draw(
    first: int, beyond: int, since: int, until: int, random: Random
) -> Iterator[GeneratedPayment]:
    """Yield payments whose entries have the sequence numbers from `first` to before `beyond`,
    spread over the time from `since` to before `until` (µs).
    """
    sequence = first
    while sequence + MOST_ENTRIES <= beyond:
        is_updated = random.random() < 0.2
        is_labelled = random.random() < 0.003
        yield GeneratedPayment(
            sequence,
            random.randrange(USERS),
            since + (sequence - first) * (until - since) // (beyond - first),
            _DECISIONS[_draw_decision(random)],
            random.choice(("succeeded", "declined", "failed")) if is_updated else None,
            random.choice(("fraud", "fraud", "legitimate")) if is_labelled else None,
        )
        sequence += 1 + is_updated + is_labelled


def payment_id(sequence: int) -> str:
    return f"order-{sequence:09}"


def body(id_: str, user: int, status: str, arrived: int) -> bytes:
    """Return a payment of a user as the journal stores it."""
    last_four = f"{user % 10_000:04}"
    bin_ = f"400{user % BINS:05}"
    payment = {
        "id": id_,
        "type": "purchase",
        "status": status,
        "currency": "EUR",
        "amount": user % 30_000 / 100,
        "timestamp": from_microseconds(arrived),
        "method": {
            "type": "card",
            "card": {
                "network": "visa",
                "presence": "card_not_present",
                "bin": bin_,
                "last_four": last_four,
            },
        },
        "device": {
            "ip_address": f"203.{user % 200}.{user % 113}.{user % 199}",
            "fingerprint": {"id": f"d-{user}", "provider": "basic"},
        },
        "user": {"id": f"u-{user}", "email": f"u-{user}@mail.example"},
        "order": {"id": f"o-{id_}"},
        "merchant": {"id": f"m-{user % MERCHANTS}"},
    }
    return _encode({"payment": payment, "card_fingerprint": f"{bin_}-{last_four}"})


def _draw_decision(random: Random) -> tuple[int, str | None]:
    """Return a score in hundredths, and the condition that was met."""
    score = min(int(random.expovariate(8) * 100), 100)
    met = random.random()
    if met >= 0.04:
        return score, None
    return score, CONDITIONS[0] if met < 0.03 else CONDITIONS[1] if met < 0.039 else CONDITIONS[3]


def _decision(score: int, condition: str | None) -> Decision:
    by_score: Action = "deny" if score >= 85 else "challenge" if score >= 50 else "allow"
    action: Action = by_score if condition is None else "deny"
    return Decision(action, score, AppliedRule("web_checkout", 1, condition))


_DECISIONS = {
    (score, condition): _decision(score, condition)
    for score in range(101)
    for condition in (None, *CONDITIONS)
}


def fill(folder: Path, payments: int, until: int) -> int:
    """Make a folder's journal and index with at least about so many payments, of the 30 days before
    `until` (µs); return their number.
    """
    schema.prepare(folder)
    blocks = -(-payments // _PAYMENTS_OF_BLOCK)
    drawn = min(blocks, _DRAWN_BLOCKS)
    times = -(-blocks // drawn)
    later = 30 * DAY // times // MINUTE * MINUTE
    since = until // MINUTE * MINUTE - times * later
    span = (1, drawn * SIZE, since, since + later)
    repetition = Repetition(drawn, times, later)
    index = Process(target=_fill_index, args=(folder, span, repetition))
    index.start()
    fill_journal(folder, draw(*span, Random(_SEED)))
    repeat_journal(folder, repetition)
    index.join()
    return times * sum(1 for _ in draw(*span, Random(_SEED)))


def _fill_index(folder: Path, span: tuple[int, int, int, int], repetition: Repetition) -> None:
    fill_index(folder, draw(*span, Random(_SEED)))
    repeat_index(folder, repetition)


class Repetition(NamedTuple):
    """Repeats the first `blocks` blocks until there are `times` of them in all, each `later` µs
    after the previous.
    """

    blocks: int
    times: int
    later: int

    def copies(self) -> Iterator[tuple[int, int, int, int]]:
        """For each copied block, yield the number of the repetition, its block, the copy's block,
        and how much later (µs) it is.
        """
        for time in range(1, self.times):
            for block in range(self.blocks):
                yield time, block, time * self.blocks + block, time * self.later


def repeat_journal(folder: Path, repetition: Repetition) -> None:
    """Append the first blocks' entries again; ids end with the number of the repetition."""
    with closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for time, block, copy, later in repetition.copies():
            span = {"first": block * SIZE, "beyond": (block + 1) * SIZE}
            moved = {"more": (copy - block) * SIZE, "later": later, "ending": f"-{time}"}
            connection.execute(_REPEAT_ENTRIES, span | moved)


def repeat_index(folder: Path, repetition: Repetition) -> None:
    """Do to the index what following such a journal would do."""
    with closing(index_file.connect_to_write(folder)) as index:
        for _, block, copy, later in repetition.copies():
            given = {
                "block": block,
                "copy": copy,
                "first": block * SIZE,
                "beyond": (block + 1) * SIZE,
                "more": (copy - block) * SIZE,
                "later": later,
                "minutes": later // MINUTE,
            }
            with index_file.transaction(index):
                for facet in Facet:
                    index.execute(_REPEAT_POSTINGS, given | {"facet": facet})
                for statement in _REPEAT:
                    index.execute(statement, given)
                note_runs(index, [(ACCOUNT, copy)])
        sequence, arrived, amendment, _ = index_file.read_index_place(index)
        again = repetition.times - 1
        sequence += again * repetition.blocks * SIZE
        index_file.note(index, sequence, arrived + again * repetition.later, amendment)


_REPEAT_ENTRIES = f"""
INSERT INTO journal ({reads.COLUMNS})
SELECT place + :more, account, kind, id || :ending, arrived + :later, time + :later, body, outcome
FROM journal WHERE place >= :first AND place < :beyond
"""
_REPEAT_POSTINGS = f"""
INSERT INTO postings SELECT account, facet, :copy, value, members FROM postings
WHERE account = {ACCOUNT} AND facet = :facet AND block = :block
"""
_REPEAT_OUTCOMES = f"""
INSERT INTO outcomes SELECT piece + (:more >> {PIECE_SHIFT}), bytes FROM outcomes
WHERE piece BETWEEN :first >> {PIECE_SHIFT} AND (:beyond - 1) >> {PIECE_SHIFT}
"""
_REPEAT_MINUTES = """
INSERT INTO minutes SELECT minute + :minutes, first + :more
FROM minutes WHERE first >= :first AND first < :beyond
"""
_REPEAT_LABELS = """
INSERT INTO labels SELECT account, payment + :more, source, label, at, sequence + :more
FROM labels WHERE payment >= :first AND payment < :beyond
"""
_REPEAT_CHANGED = """
INSERT INTO changed SELECT account, :copy, sequence + :more FROM changed WHERE block = :block
"""
_REPEAT = _REPEAT_OUTCOMES, _REPEAT_MINUTES, _REPEAT_LABELS, _REPEAT_CHANGED


def fill_journal(folder: Path, drawn: Iterable[GeneratedPayment]) -> None:
    """Put the entries into a prepared journal."""
    with closing(schema.connect(folder)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        batch: list[Entry] = []
        for payment in drawn:
            batch += payment.entries()
            if len(batch) >= _BATCH:
                _insert(connection, batch)
        _insert(connection, batch)


def _insert(connection: Any, batch: list[Entry]) -> None:
    connection.execute("BEGIN")
    connection.executemany(_INSERT, batch)
    connection.execute("COMMIT")
    batch.clear()


def append(folder: Path, payments: int, until: int) -> None:
    """Append about so many payments of the 30 days before `until` (µs) to the journal."""
    with closing(schema.connect_for_reading(folder)) as connection:
        first = reads.last_sequence(connection) + 1
    beyond = first + round(payments * _ENTRIES)
    fill_journal(folder, draw(first, beyond, until - 30 * DAY, until, Random(_SEED)))


def fill_index(folder: Path, drawn: Iterable[GeneratedPayment]) -> None:
    """Make the index of a journal with these payments."""
    with closing(index_file.connect_to_write(folder)) as index:
        with index_file.transaction(index):
            index_file.empty_index(index, 0)
        filling = _Filling(index, Hashes(index_file.read_index_place(index).key))
        for block, payments in groupby(drawn, key=lambda each: block_of(each.sequence)):
            with index_file.transaction(index):
                filling.write_block(block, payments)
        index_file.note(index, *filling.last, amendment=0)


class _Filling:
    def __init__(self, index: Any, hashes: Hashes) -> None:
        self._index = index
        self._hashes = hashes
        self._digits = outcome_digits(hashes, ACCOUNT)
        self._names: set[tuple[Facet, int]] = set()
        self._of_users: dict[int, tuple[tuple[Facet, int], ...]] = {}
        self._of_decisions: dict[Decision, tuple[tuple[Facet, int], ...]] = {}
        self._minute = -1
        self.last = 0, 0

    def write_block(self, block: int, payments: Iterable[GeneratedPayment]) -> None:
        members: defaultdict[tuple[Facet, int], list[int]] = defaultdict(list)
        for payment in payments:
            bit = bit_of(payment.sequence)
            for value in self._of_user(payment):
                members[value].append(bit)
            for value in self._of_decision(payment.decision):
                members[value].append(bit)
            for value in self._values(_own_terms(payment)):
                members[value].append(bit)
            self._note(payment)
        outcomes = bytearray(SIZE)
        for of, bits in members.items():
            digit = self._digits.get(of)
            if digit:
                for bit in bits:
                    outcomes[bit] |= digit
        first = block * SIZE >> PIECE_SHIFT
        self._index.executemany(
            "INSERT INTO outcomes VALUES (?, ?)",
            [
                (first + (begin >> PIECE_SHIFT), outcomes[begin : begin + PIECE])
                for begin in range(0, SIZE, PIECE)
                if any(outcomes[begin : begin + PIECE])
            ],
        )
        rows = [
            (ACCOUNT, facet, block, value, _packed(bits))
            for (facet, value), bits in members.items()
        ]
        self._index.executemany("INSERT INTO postings VALUES (?, ?, ?, ?, ?)", sorted(rows))
        self._index.execute("INSERT INTO changed VALUES (?, ?, ?)", (ACCOUNT, block, self.last[0]))
        note_runs(self._index, [(ACCOUNT, block)])

    def _of_user(self, payment: GeneratedPayment) -> tuple[tuple[Facet, int], ...]:
        """Return the terms that all payments of a user share."""
        found = self._of_users.get(payment.user)
        if found is None:
            terms = reported_terms(read_facts(next(payment.entries())))
            common = [term for term in terms if term[0] not in (Facet.STATUS, Facet.ORDER)]
            found = self._of_users[payment.user] = self._values(common)
        return found

    def _of_decision(self, decision: Decision) -> tuple[tuple[Facet, int], ...]:
        found = self._of_decisions.get(decision)
        if found is None:
            found = self._of_decisions[decision] = self._values(decided_terms(decision))
        return found

    def _values(self, terms: Iterable[Term]) -> tuple[tuple[Facet, int], ...]:
        found = []
        for facet, text in terms:
            value = self._hashes.value(ACCOUNT, facet, text)
            found.append((facet, value))
            if facet in NAMED and (facet, value) not in self._names:
                self._names.add((facet, value))
                self._index.execute(
                    "INSERT INTO names VALUES (?, ?, ?, ?)", (ACCOUNT, facet, value, str(text))
                )
        return tuple(found)

    def _note(self, payment: GeneratedPayment) -> None:
        minute = payment.arrived // MINUTE
        if minute > self._minute:
            self._index.execute("INSERT INTO minutes VALUES (?, ?)", (minute, payment.sequence))
            self._minute = minute
        last = payment.sequence + (payment.status is not None)
        if payment.label is not None:
            last += 1
            self._index.execute(
                "INSERT INTO labels VALUES (?, ?, ?, ?, ?, ?)",
                (ACCOUNT, payment.sequence, _SOURCE, payment.label, payment.arrived, last),
            )
        self.last = last, payment.arrived


def _packed(bits: list[int]) -> bytes:
    """Pack a set as `change_members` does."""
    return pack_list(bits) if 2 * len(bits) <= MOST_LISTED_BYTES else change_members(b"", bits, ())


def _own_terms(payment: GeneratedPayment) -> Iterator[Term]:
    """Yield the terms that payments of a user need not share."""
    yield Facet.PAYMENT, 0
    yield Facet.STATUS, payment.status or "initiated"
    yield Facet.ORDER, f"o-{payment.id}"
    if payment.label is not None:
        yield from label_terms({_SOURCE: payment.label})
