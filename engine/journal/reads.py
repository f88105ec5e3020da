"""The journal's queries: each uses an index and reads at most one batch at a time."""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from tollkeeper.engine.instants import DAY, HOUR
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.entries import Entry, Idempotency, Kind, Page, Stretch

COLUMNS = "place, account, kind, id, arrived, time, body, outcome"
ALL_COLUMNS = f"{COLUMNS}, checksum"
# Each names its index: left to choose, SQLite would walk a whole account to spare a sort.
EXISTS = "SELECT 1 FROM journal INDEXED BY by_id WHERE account = ? AND id = ? AND kind = ? LIMIT 1"
STATES = (
    f"SELECT {COLUMNS} FROM journal WHERE place IN ("
    "SELECT place FROM journal INDEXED BY by_id WHERE account = ? AND id = ?"
    f" AND kind IN ({Kind.PAYMENT:d}, {Kind.UPDATE:d})) ORDER BY place"
)
OF_RECORD = (
    f"SELECT {COLUMNS} FROM journal WHERE place IN ("
    "SELECT place FROM journal INDEXED BY by_id WHERE account = ? AND id = ? AND kind = ?)"
    " ORDER BY place"
)
FIRST_AND_LAST = (
    f"SELECT {COLUMNS} FROM journal WHERE place IN ("
    "SELECT place FROM journal INDEXED BY by_id"
    f" WHERE account = ? AND id = ? AND kind = {Kind.PAYMENT:d}"
    " UNION ALL SELECT max(place) FROM journal INDEXED BY by_id"
    f" WHERE account = ? AND id = ? AND kind = {Kind.UPDATE:d}) ORDER BY place"
)
COUNT_UPDATES = (
    "SELECT count(*) FROM (SELECT 1 FROM journal INDEXED BY by_id"
    f" WHERE account = ? AND id = ? AND kind = {Kind.UPDATE:d} LIMIT ?) AS updates"
)
HAS_PREFIX = (
    "SELECT 1 FROM journal INDEXED BY by_id WHERE account = ? AND id >= ? AND id < ? LIMIT 1"
)
LAST_CHARACTER = chr(0x10FFFF)
"""Texts from `prefix` up to but not including `prefix + LAST_CHARACTER` start with the prefix."""
# A payment's body is that of its last update up to a sequence number, where it has one.
KNOWN_COLUMNS = (
    "place, account, kind, id, arrived, time, coalesce((SELECT last.body FROM journal AS last"
    " WHERE last.place = (SELECT max(later.place) FROM journal AS later INDEXED BY by_id"
    " WHERE later.account = journal.account AND later.id = journal.id"
    f" AND later.kind = {Kind.UPDATE:d} AND journal.kind = {Kind.PAYMENT:d} AND later.place <= ?)),"
    " body), outcome"
)
KNOWN_BETWEEN = (
    f"SELECT {KNOWN_COLUMNS} FROM journal INDEXED BY by_account"
    " WHERE account = ? AND place BETWEEN ? AND ? AND time BETWEEN ? AND ?"
    f" AND kind IN ({Kind.PAYMENT:d}, {Kind.EVENT:d}) ORDER BY place"
)
FIRST_ARRIVAL = (
    "SELECT arrived FROM journal INDEXED BY by_account"
    f" WHERE account = ? AND kind = {Kind.PAYMENT:d} ORDER BY place LIMIT 1"
)
LAST_ARRIVAL = FIRST_ARRIVAL.replace("ORDER BY place", "ORDER BY place DESC")
IDEMPOTENT = (
    "SELECT key, digest, response FROM idempotency WHERE account = ? AND key = ? AND arrived > ?"
)
_INDEXES = {
    Kind.CHANGE: "changes_by_account",
    Kind.ACCESS: "accesses_by_account",
    Kind.LABEL: "labels_by_account",
    Kind.SHADOW: "shadows_by_account",
}
"""Kinds that have a partial index of their own."""
_OF_ALL = "by_account"
BATCH = 5_000
# How many entries a stretch has at most: most updates come soon enough to be in that of their payment.
STRETCH = 20_000
# How many bytes of bodies a stretch has before it ends.
STRETCH_BYTES = 32 * 1024 * 1024
# How many entries a query fetches where nobody knows how many are wanted.
PART = 250
# How many payments a query looks up by their ids.
KNOWN_AT_ONCE = 100
# How many entries are looked at for one page at most.
PAGE_SCAN = 5_000
# How many sequence numbers one query looks through for texts: a long one would hold back the log.
TEXT_SCAN = 100_000
# An event time is at most a day older than its arrival (docs/api.md, "Validation"), and an hour more
# where the request waited until it was put in order (appends.py); it is at most `SKEW` newer by the
# clocks' skew (registry/settings.py).
TIME_TO_ARRIVAL = DAY + HOUR
SKEW = 60_000_000


def exists(connection: SqlConnection, account: int, kind: Kind, record_id: str) -> bool:
    """Whether the account has an entry of this kind and id."""
    return connection.execute(EXISTS, (account, record_id, kind)).fetchone() is not None


def has_prefix(connection: SqlConnection, account: int, prefix: str) -> bool:
    """Whether the account has an entry, of any kind, with an id that starts with `prefix`."""
    ids = (account, prefix, prefix + LAST_CHARACTER)
    return connection.execute(HAS_PREFIX, ids).fetchone() is not None


def states(connection: SqlConnection, account: int, record_id: str) -> list[Entry]:
    """A payment's creation and updates, oldest first."""
    return list(map(Entry._make, connection.execute(STATES, (account, record_id))))


def of_record(connection: SqlConnection, account: int, kind: Kind, record_id: str) -> list[Entry]:
    """The account's entries of this kind and id, oldest first."""
    return list(map(Entry._make, connection.execute(OF_RECORD, (account, record_id, kind))))


def first_and_last(connection: SqlConnection, account: int, record_id: str) -> list[Entry]:
    """A payment's creation and its last update, one of them, or none."""
    return list(map(Entry._make, connection.execute(FIRST_AND_LAST, 2 * (account, record_id))))


def count_updates(connection: SqlConnection, account: int, record_id: str, most: int) -> int:
    """How many updates of a payment there are, counted up to `most`."""
    (found,) = connection.execute(COUNT_UPDATES, (account, record_id, most)).fetchone()
    return int(found)


def entry_at(connection: SqlConnection, sequence: int) -> Entry | None:
    """The entry at a sequence number."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM journal WHERE place = ?", (sequence,)
    ).fetchone()
    return None if row is None else Entry._make(row)


def first_arrival(connection: SqlConnection, account: int) -> int | None:
    """When (µs) the first payment that is still kept arrived; None when there is none."""
    first = connection.execute(FIRST_ARRIVAL, (account,)).fetchone()
    return None if first is None else int(first[0])


def last_arrival(connection: SqlConnection, account: int) -> int | None:
    """When (µs) the last payment arrived; None when there is none."""
    last = connection.execute(LAST_ARRIVAL, (account,)).fetchone()
    return None if last is None else int(last[0])


def find_idempotency(
    connection: SqlConnection, account: int, key: str, now: int
) -> Idempotency | None:
    """What the key was used for in the 24 hours before `now`, in microseconds."""
    row = connection.execute(IDEMPOTENT, (account, key, now - DAY)).fetchone()
    return None if row is None else Idempotency(*row)


def latest(
    connection: SqlConnection,
    account: int,
    kind: Kind,
    since: int,
    wanted: Callable[[Entry], bool],
    cursor: int | None,
    limit: int,
) -> Page:
    """One page of `Journal.latest`. The cursor is the sequence number of the last entry that was
    read.
    """
    found: list[Entry] = []
    for looked_at, candidate in enumerate(back(connection, account, kind, cursor), start=1):
        if candidate.arrived < since:
            break
        if wanted(candidate):
            found.append(candidate)
        if len(found) == limit or looked_at == PAGE_SCAN:
            return Page(found, candidate.sequence)
    return Page(found, None)


def back(
    connection: SqlConnection, account: int, kind: Kind, cursor: int | None
) -> Iterator[Entry]:
    """The account's entries of a kind with sequence numbers below `cursor`, newest first."""
    query = (
        f"SELECT {COLUMNS} FROM journal INDEXED BY {index_of([kind])}"
        f" WHERE account = ? AND place < ? AND kind = {kind:d} ORDER BY place DESC LIMIT {PART}"
    )
    before = 2**63 - 1 if cursor is None else cursor
    while rows := connection.execute(query, (account, before)).fetchall():
        yield from map(Entry._make, rows)
        before = rows[-1][0]
        if len(rows) < PART:
            return


def changes(connection: SqlConnection, after: int) -> Iterator[Entry]:
    """Every account's configuration changes after a sequence number, oldest first."""
    query = (
        f"SELECT {COLUMNS} FROM journal INDEXED BY changes"
        f" WHERE kind = {Kind.CHANGE:d} AND place > ? ORDER BY place LIMIT {BATCH}"
    )
    while rows := connection.execute(query, (after,)).fetchall():
        yield from map(Entry._make, rows)
        after = rows[-1][0]


def last_sequence(connection: SqlConnection) -> int:
    """The highest sequence number in the journal or in a seal, 0 in an empty journal.

    The seals count so that the number of a last entry that retention removed is not reused.
    """
    (sequence,) = connection.execute(
        "SELECT coalesce(max(last), 0) FROM (SELECT max(place) AS last FROM journal"
        " UNION ALL SELECT max(sequence) FROM seals) AS ends"
    ).fetchone()
    return int(sequence)


def arrival_of(connection: SqlConnection, sequence: int) -> int:
    """When the entry at a sequence number arrived (µs), 0 for one that isn't there."""
    # Without the body, which may be long: a search needs the arrivals of many payments.
    row = connection.execute("SELECT arrived FROM journal WHERE place = ?", (sequence,)).fetchone()
    return 0 if row is None else int(row[0])


def trusted_clock(connection: SqlConnection) -> int:
    """The last time (µs) at which the clock was trusted."""
    (found,) = connection.execute("SELECT clock FROM identity").fetchone()
    return int(found)


def claim_key(connection: SqlConnection, mark: str) -> bool:
    """Whether the journal belongs to the key with this mark; the first key that claims it does."""
    connection.execute("UPDATE identity SET key_mark = ? WHERE key_mark = ''", (mark,))
    return key_mark(connection) == mark


def key_mark(connection: SqlConnection) -> str:
    """The mark of the key that the journal's secrets are sealed with, empty before the first."""
    (found,) = connection.execute("SELECT key_mark FROM identity").fetchone()
    return str(found)


def identity(connection: SqlConnection) -> str:
    """The journal's identity."""
    (found,) = connection.execute("SELECT id FROM identity").fetchone()
    return str(found)


def replay_entries(
    connection: SqlConnection,
    account: int | None,
    since: int,
    after: int,
    up_to: int | None,
    kinds: Collection[Kind],
    containing: Collection[str] = (),
) -> Iterator[list[Entry]]:
    """Batches of entries by sequence number: numbers in (after, up_to], event times from `since`
    on; only those with one of the texts `containing`, if there are any.
    """
    last = last_sequence(connection) if up_to is None else up_to
    after = _before(connection, since, after)
    source = f"journal {'NOT INDEXED' if account is None else f'INDEXED BY {index_of(kinds)}'}"
    chosen = " OR ".join(f"kind = {kind:d}" for kind in sorted(kinds)) or "FALSE"
    query = (
        f"SELECT {COLUMNS} FROM {source} WHERE place > ? AND place <= ? AND time >= ?"
        f" AND ({chosen}) {'' if account is None else 'AND account = ?'}"
        f" AND {contains(containing)} ORDER BY place LIMIT {BATCH}"
    )
    chosen_by = [*([] if account is None else [account]), *twice(containing)]
    while after < last:
        end = min(last, after + TEXT_SCAN) if containing else last
        rows = connection.execute(query, (after, end, since, *chosen_by)).fetchall()
        if rows:
            yield list(map(Entry._make, rows))
        after = rows[-1][0] if len(rows) == BATCH else end


def entries_at(
    connection: SqlConnection, account: int, sequences: Collection[int], kinds: Collection[Kind]
) -> list[Entry]:
    """The account's entries of these kinds at these sequence numbers, a few hundred at most, in
    order.
    """
    chosen = ", ".join(f"{kind:d}" for kind in sorted(kinds))
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM journal WHERE place IN ({', '.join('?' * len(sequences))})"
        f" AND account = ? AND kind IN ({chosen}) ORDER BY place",
        (*sequences, account),
    )
    return list(map(Entry._make, rows))


def index_of(kinds: Collection[Kind]) -> str:
    """The hint for the index that has an account's entries of these kinds in order; SQLite uses an
    index of a single kind only when the query names it.
    """
    return _INDEXES.get(next(iter(kinds)), _OF_ALL) if len({*kinds}) == 1 else _OF_ALL


def contains(texts: Collection[str]) -> str:
    """The SQL condition that a body or outcome contains one of the texts, which are in lower case,
    regardless of the case of ASCII letters; always true without texts. It takes each text twice.

    The search runs in the database, which leaves the interpreter to other threads.
    """
    found = "instr(lower(body), ?) > 0 OR instr(lower(outcome), ?) > 0"
    return f"({' OR '.join([found] * len(texts))})" if texts else "TRUE"


def twice(texts: Collection[str]) -> list[str]:
    """The parameters of `contains`."""
    return [text for text in texts for _ in ("body", "outcome")]


def replay_latest(
    connection: SqlConnection,
    account: int,
    since: int,
    after: int,
    up_to: int,
    kinds: Collection[Kind],
) -> Iterator[Stretch]:
    """Stretches by sequence number: numbers in (after, up_to], event times from `since` on."""
    after = _before(connection, since, after)
    of_payments = {Kind.PAYMENT, Kind.UPDATE} if Kind.PAYMENT in kinds else set[Kind]()
    wanted = sorted(of_payments | ({Kind.EVENT} & {*kinds}))
    chosen = ", ".join(f"{kind:d}" for kind in wanted)
    query = (
        f"SELECT {COLUMNS} FROM journal INDEXED BY by_account"
        " WHERE place > ? AND place <= ? AND time >= ? AND account = ?"
        f" AND kind IN ({chosen}) ORDER BY place LIMIT {PART}"
    )

    def part(after: int) -> list[Any]:
        return connection.execute(query, (after, up_to, since, account)).fetchall()

    while rows := _stretch(part, after):
        yield stretch_of(connection, account, after, list(map(Entry._make, rows)))
        after = rows[-1][0]


def _stretch(part: Callable[[int], list[Any]], after: int) -> list[Any]:
    rows: list[Any] = []
    size = 0
    while more := part(after):
        for row in more:
            rows.append(row)
            size += len(row[6])
            if size > STRETCH_BYTES or len(rows) == STRETCH:
                return rows
        after = more[-1][0]
        if len(more) < PART:
            break
    return rows


def stretch_of(
    connection: SqlConnection, account: int, after: int, entries: Sequence[Entry]
) -> Stretch:
    """The stretch of these entries, which are all payments, updates and events of the account, or all
    of some of these kinds, that come next after a sequence number.
    """
    latest = {each.id: each.body for each in entries if each.kind == Kind.UPDATE}
    if not latest:
        return Stretch(list(entries), [], after, entries[-1].sequence)
    fresh = []
    for entry in entries:
        if entry.kind != Kind.UPDATE:
            body = latest.pop(entry.id, None) if entry.kind == Kind.PAYMENT else None
            fresh.append(entry if body is None else entry._replace(body=body))
    ids = list(latest)
    amended = [
        (known, known._replace(body=latest[known.id]))
        for begin in range(0, len(ids), KNOWN_AT_ONCE)
        for known in _as_known(connection, account, after, ids[begin : begin + KNOWN_AT_ONCE])
    ]
    return Stretch(fresh, amended, after, entries[-1].sequence)


def _as_known(
    connection: SqlConnection, account: int, up_to: int, ids: Sequence[str]
) -> Iterator[Entry]:
    """The payments with these ids, as of a sequence number."""
    wanted = ", ".join(["(?)"] * len(ids))
    # Each id is looked up by itself: without statistics PostgreSQL would read the account's whole index.
    rows = connection.execute(
        f"SELECT {KNOWN_COLUMNS} FROM journal WHERE place IN (SELECT (SELECT place FROM journal"
        " INDEXED BY by_id WHERE account = ? AND id = wanted.column1"
        f" AND kind = {Kind.PAYMENT:d}) FROM (VALUES {wanted}) AS wanted) ORDER BY place",
        (up_to, account, *ids),
    )
    return map(Entry._make, rows)


def entries_between(
    connection: SqlConnection, account: int, times: tuple[int, int], up_to: int, most: int
) -> list[Entry] | None:
    """Payments as of `up_to`, and events, with event times in `times`; None when too many."""
    first, last = times
    begin = sequence_at(connection, first - SKEW)
    end = min(up_to, sequence_at(connection, last + TIME_TO_ARRIVAL + SKEW))
    (passed,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM journal INDEXED BY by_account"
        " WHERE account = ? AND place BETWEEN ? AND ? LIMIT ?) AS passed",
        (account, begin, end, most + 1),
    ).fetchone()
    if passed > most:
        return None
    rows = connection.execute(KNOWN_BETWEEN, (up_to, account, begin, end, first, last))
    return list(map(Entry._make, rows))


def entries_back(
    connection: SqlConnection,
    account: int,
    times: tuple[int, int],
    up_to: int,
    before: int,
    most: int,
) -> list[Entry]:
    """As `entries_between`, with sequence numbers below `before`, newest first, at most `most`."""
    first, last = times
    begin = sequence_at(connection, first - SKEW)
    end = min(up_to, before - 1, sequence_at(connection, last + TIME_TO_ARRIVAL + SKEW))
    rows = connection.execute(
        f"{KNOWN_BETWEEN} DESC LIMIT ?", (up_to, account, begin, end, first, last, most)
    )
    return list(map(Entry._make, rows))


def count_entries(connection: SqlConnection, account: int | None, since: int, after: int) -> int:
    """How many entries there are after a sequence number and from a time on; reads an index alone."""
    after = _before(connection, since, after)
    own = "" if account is None else "AND account = ?"
    (number,) = connection.execute(
        f"SELECT count(*) FROM journal INDEXED BY by_account WHERE place > ? {own}",
        (after,) if account is None else (after, account),
    ).fetchone()
    return int(number)


def last_amendment(connection: SqlConnection) -> int:
    """The number of the last amendment ever made, 0 before the first."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'amendments'").fetchone()
    return 0 if row is None else int(row[0])


def lacks_amendments(connection: SqlConnection, after: int) -> bool:
    """Whether some amendments after the number `after` have been removed."""
    (first,) = connection.execute("SELECT min(number) FROM amendments").fetchone()
    return bool((last_amendment(connection) + 1 if first is None else first) > after + 1)


def _before(connection: SqlConnection, since: int, after: int) -> int:
    """The sequence number after which all entries are that come after `after` and whose event times
    are `since` or later."""
    # Whoever reads all of it, a follower at each step, needs no search for its start.
    if since <= TIME_TO_ARRIVAL:
        return after
    return max(after, sequence_at(connection, since - TIME_TO_ARRIVAL) - 1)


def sequence_at(connection: SqlConnection, time: int) -> int:
    """The sequence number of the first entry that arrived at `time` or later; without one, the last
    entry's plus one.

    Arrivals grow with sequence numbers (appends.py), so a binary search finds it without an index on
    time.
    """
    (low,) = connection.execute("SELECT coalesce(min(place), 1) FROM journal").fetchone()
    high = last_sequence(connection) + 1
    while low < high:
        middle = (low + high) // 2
        found = connection.execute(
            "SELECT place, arrived FROM journal WHERE place >= ? ORDER BY place LIMIT 1", (middle,)
        ).fetchone()
        # The last numbers may be those of entries that were removed.
        if found is not None and found[1] < time:
            low = found[0] + 1
        else:
            high = middle
    return int(low)
