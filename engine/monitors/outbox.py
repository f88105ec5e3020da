"""The tables of alerts and of notices to webhooks (the outbox), and their queries.

All of it is derived from the journal. `noted` is the sequence number up to which monitors'
transitions have been entered here; the next start enters the rest. `followed` is the same for an
account's other notices. Entering an alert twice changes nothing.
"""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct
from sqlite_utils import Database, Migrations

from tollkeeper.engine.folder_key import FolderKey, NameUse, Spot
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.states import NEVER, MonitorKey, MonitorState
from tollkeeper.engine.programs.json_values import JsonValue
from tollkeeper.engine.registry.changes import NoticeKind
from tollkeeper.engine.registry.webhooks import webhook_id

T = TypeVar("T")

# How many rows a purge removes in one step: a few milliseconds.
_STEP = 500
_LAST = 2**63 - 1
MAX_WAITING = 10_000
"""The most notices that wait for one webhook; beyond that the oldest are dropped."""
MAX_SETTLED = 10_000
"""How many finished deliveries to one webhook are kept, the newest."""
_GIVEN_UP = f"more than {MAX_WAITING:,} waited"
_KEYS = {
    "deliveries": "id",
    "alerts": "account, place, number",
    "standings": "account, type, monitor, key",
    "given_up": "account, url",
    "followed": "account",
}
"""Each table with rows of an account, and its primary key."""

# The sequence number of the last of so many rows that a page shows.
_FLOOR = (
    "SELECT coalesce(min(place), 0) FROM (SELECT place FROM {} WHERE account = ? AND place < ?"
    " ORDER BY place DESC LIMIT ?) AS page"
)

# Two statements: the databases have different constraints to name in `ON CONFLICT DO UPDATE`.
_ADVANCE = (
    "UPDATE standings SET place = ?, met = ?, alerted = CASE WHEN ? = 1 THEN ? ELSE alerted END"
    " WHERE account = ? AND type = ? AND monitor = ? AND key = ? AND place < ?"
)
_BEGIN = "INSERT INTO standings VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

_migrations = Migrations("alerts")


@_migrations(name="1")
def _alerts_and_deliveries(db: Database) -> None:
    db.execute(
        "CREATE TABLE alerts (account INTEGER NOT NULL, place INTEGER NOT NULL,"
        " number INTEGER NOT NULL, at INTEGER NOT NULL, turn TEXT NOT NULL,"
        " PRIMARY KEY (account, place, number)) WITHOUT ROWID"
    )
    db.execute(
        "CREATE TABLE standings (account INTEGER NOT NULL, type TEXT NOT NULL,"
        " monitor TEXT NOT NULL, key TEXT NOT NULL, place INTEGER NOT NULL, met INTEGER NOT NULL,"
        " alerted INTEGER NOT NULL, PRIMARY KEY (account, type, monitor, key)) WITHOUT ROWID"
    )
    db.execute(
        "CREATE TABLE deliveries (id TEXT PRIMARY KEY, account INTEGER NOT NULL,"
        " place INTEGER NOT NULL, number INTEGER NOT NULL, url TEXT NOT NULL, state TEXT NOT NULL,"
        " attempts INTEGER NOT NULL, next_at INTEGER NOT NULL, status INTEGER, error TEXT,"
        " delivered_at INTEGER)"
    )
    db.execute("CREATE INDEX listed ON deliveries(account, place)")
    db.execute("CREATE INDEX due ON deliveries(account, url, next_at) WHERE state = 'pending'")
    db.execute("CREATE TABLE noted (place INTEGER NOT NULL)")
    db.execute("INSERT INTO noted VALUES (0)")


@_migrations(name="2")
def _notices_of_other_kinds(db: Database) -> None:
    # `subject` is the payment's id or the rule's name; an alert has its own.
    db.execute("ALTER TABLE deliveries ADD COLUMN kind TEXT NOT NULL DEFAULT 'alert.raised'")
    db.execute("ALTER TABLE deliveries ADD COLUMN subject TEXT NOT NULL DEFAULT ''")
    db.execute("CREATE INDEX of_webhook ON deliveries(account, url, place)")
    db.execute(
        "CREATE TABLE given_up (account INTEGER NOT NULL, url TEXT NOT NULL,"
        " count INTEGER NOT NULL, PRIMARY KEY (account, url)) WITHOUT ROWID"
    )
    db.execute("CREATE TABLE followed (account INTEGER PRIMARY KEY, place INTEGER NOT NULL)")


class Outbox(Protocol):
    """The store of these tables. Its methods raise `Unavailable` when it can't be used."""

    async def read(self, query: Callable[[SqlConnection], T]) -> T:
        """The result of a short query."""

    async def write(self, work: Callable[[SqlConnection], T]) -> T:
        """Run `work` in a transaction of its own; returns once it is committed."""

    async def empty_log(self) -> None:
        """Make sure that overwritten bytes are gone from the disk. Raises `JournalError`."""


class Alert(Struct, frozen=True):
    """One alert: the transition at `sequence` of the account's journal, `number` among those of its
    record.
    """

    account: int
    sequence: int
    number: int
    transition: Transition

    @property
    def key(self) -> tuple[int, int, int]:
        """What tells it apart from all other alerts."""
        return self.account, self.sequence, self.number


class Notice(Struct, frozen=True):
    """A notice about the journal's entry at `sequence`, to be sent to one address.

    `number` tells alerts of one record apart; `subject` is the payment's id or the rule's name.
    """

    account: int
    url: str
    kind: NoticeKind
    sequence: int
    number: int = 0
    subject: str = ""


class Delivery(Struct, frozen=True):
    """One notice on its way to one address; times in µs.

    `state` is `pending`, `delivered`, or `dropped`: when the webhook or the subject was removed, or
    too many waited. `status` and `error` are those of the last attempt.
    """

    id: str
    account: int
    sequence: int
    number: int
    url: str
    state: str
    attempts: int
    next_at: int
    status: int | None
    error: str | None
    delivered_at: int | None
    kind: NoticeKind
    subject: str


class Backlog(Struct, frozen=True):
    """How many notices wait for a webhook, and how many were dropped since it was set."""

    waiting: int
    given_up: int


_encode = msgspec.json.Encoder().encode
_decode_transition = msgspec.json.Decoder(Transition).decode
_key = msgspec.json.Decoder(tuple[JsonValue, ...]).decode
_STATE = "account, type, monitor, key, place, met, alerted"
_COLUMNS = (
    "id, account, place, number, url, state, attempts, next_at, status, error, delivered_at,"
    " kind, subject"
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, or migrate them to this release's."""
    _migrations.apply(Database(connection))


def entered_up_to(connection: SqlConnection) -> int:
    """The sequence number up to which all alerts have been entered."""
    (sequence,) = connection.execute("SELECT place FROM noted").fetchone()
    return int(sequence)


def monitor_states(connection: SqlConnection) -> list[tuple[MonitorKey, MonitorState]]:
    """Every monitor's state, as of the sequence number up to which alerts are entered, or later;
    what changed last comes last."""
    rows = connection.execute(f"SELECT {_STATE} FROM standings ORDER BY place")
    return [_monitor_state(*row) for row in rows]


def monitor_states_of(
    connection: SqlConnection, account: int, beyond: MonitorKey | None, limit: int
) -> list[tuple[MonitorKey, MonitorState]]:
    """The states of an account's monitors, in the order of their keys, from after `beyond` on."""
    after = ("", "", "") if beyond is None else (*beyond[1:3], _encode(beyond[3]).decode())
    rows = connection.execute(
        f"SELECT {_STATE} FROM standings WHERE account = ? AND (type, monitor, key) > (?, ?, ?) ORDER BY type, monitor, key"
        " LIMIT ?",
        (account, *after, limit),
    )
    return [_monitor_state(*row) for row in rows]


def _monitor_state(
    account: int, type_: str, monitor: str, key: str, sequence: int, met: int, alerted: int
) -> tuple[MonitorKey, MonitorState]:
    return (account, type_, monitor, _key(key)), MonitorState(sequence, bool(met), alerted)


def forget_monitor_states(connection: SqlConnection, gone: Iterable[MonitorKey]) -> None:
    """Delete the states for these keys."""
    connection.executemany(
        "DELETE FROM standings WHERE account = ? AND type = ? AND monitor = ? AND key = ?",
        [(*monitor, _encode(key).decode()) for *monitor, key in gone],
    )


def set_alerts(connection: SqlConnection, changed: Iterable[Alert]) -> None:
    """Overwrite the contents of alerts."""
    connection.executemany(
        "UPDATE alerts SET turn = ? WHERE account = ? AND place = ? AND number = ?",
        [(_encode(each.transition).decode(), *each.key) for each in changed],
    )


def add_alerts(
    connection: SqlConnection,
    account: int,
    sequence: int,
    transitions: Sequence[Transition],
    urls: Iterable[str],
    key: FolderKey,
    now: int,
) -> None:
    """Enter the alerts among the transitions, and a notice of each alert to each address."""
    targets = list(urls)
    for number, transition in enumerate(transitions):
        standing = account, transition.type, transition.monitor, _encode(transition.key).decode()
        met, at = int(transition.met), transition.at
        connection.execute(_ADVANCE, (sequence, met, met, at, *standing, sequence))
        alerted = at if transition.met else NEVER
        connection.execute(_BEGIN, (*standing, sequence, met, alerted))
        if transition.met:
            connection.execute(
                "INSERT INTO alerts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (account, sequence, number, transition.at, _encode(transition).decode()),
            )
            notices = [Notice(account, url, "alert.raised", sequence, number) for url in targets]
            add_notices(connection, notices, key, now)


def add_notices(
    connection: SqlConnection, notices: Iterable[Notice], key: FolderKey, now: int
) -> None:
    """Put notices into the outbox, due at once; one that is there already stays as it is."""
    connection.executemany(
        f"INSERT INTO deliveries ({_COLUMNS})"
        " VALUES (?, ?, ?, ?, ?, 'pending', 0, ?, NULL, NULL, NULL, ?, ?) ON CONFLICT DO NOTHING",
        [
            (
                _delivery_id(key, each),
                each.account,
                each.sequence,
                each.number,
                each.url,
                now,
                each.kind,
                each.subject,
            )
            for each in notices
        ],
    )


def followed_up_to(connection: SqlConnection, account: int) -> int:
    """The sequence number up to which the account's notices, except alerts, are in the outbox."""
    row = connection.execute("SELECT place FROM followed WHERE account = ?", (account,)).fetchone()
    return 0 if row is None else int(row[0])


def set_followed(connection: SqlConnection, account: int, sequence: int) -> None:
    """Record that the account's notices up to `sequence`, except alerts, are in the outbox."""
    connection.execute(
        "INSERT INTO followed VALUES (?, ?) ON CONFLICT (account) DO UPDATE SET place = excluded.place",
        (account, sequence),
    )


def trim(connection: SqlConnection, account: int, url: str) -> int:
    """Keep a webhook's rows within their bounds; returns how many notices were dropped."""
    waiting = backlog(connection, account, url).waiting
    excess = max(0, waiting - MAX_WAITING)
    if excess:
        connection.execute(
            "UPDATE deliveries SET state = 'dropped', error = ? WHERE id IN"
            " (SELECT id FROM deliveries INDEXED BY of_webhook WHERE account = ? AND url = ?"
            " AND state = 'pending' ORDER BY place LIMIT ?)",
            (_GIVEN_UP, account, url, excess),
        )
        connection.execute(
            "INSERT INTO given_up VALUES (?, ?, ?) ON CONFLICT (account, url)"
            " DO UPDATE SET count = given_up.count + excluded.count",
            (account, url, excess),
        )
    connection.execute(
        "DELETE FROM deliveries WHERE id IN"
        " (SELECT id FROM deliveries INDEXED BY of_webhook WHERE account = ? AND url = ?"
        " AND state != 'pending' ORDER BY place DESC LIMIT ? OFFSET ?)",
        (account, url, _LAST, MAX_SETTLED),
    )
    return excess


def is_full(connection: SqlConnection, account: int, url: str) -> bool:
    """Whether a webhook's rows may exceed their bounds."""
    (count,) = connection.execute(
        "SELECT count(*) FROM deliveries INDEXED BY of_webhook WHERE account = ? AND url = ?",
        (account, url),
    ).fetchone()
    return bool(count > min(MAX_WAITING, MAX_SETTLED))


def backlog(connection: SqlConnection, account: int, url: str) -> Backlog:
    """The webhook's backlog."""
    (waiting,) = connection.execute(
        "SELECT count(*) FROM deliveries INDEXED BY due"
        " WHERE state = 'pending' AND account = ? AND url = ?",
        (account, url),
    ).fetchone()
    given_up = connection.execute(
        "SELECT count FROM given_up WHERE account = ? AND url = ?", (account, url)
    ).fetchone()
    return Backlog(waiting, 0 if given_up is None else given_up[0])


def forget_webhook(connection: SqlConnection, account: int, url: str) -> None:
    """Drop the notices that wait for an address whose webhook was removed."""
    connection.execute(
        "UPDATE deliveries SET state = 'dropped' WHERE state = 'pending' AND account = ? AND url = ?",
        (account, url),
    )
    connection.execute("DELETE FROM given_up WHERE account = ? AND url = ?", (account, url))


def set_entered(connection: SqlConnection, sequence: int) -> None:
    """Record that all alerts up to `sequence` have been entered."""
    connection.execute("UPDATE noted SET place = ? WHERE place < ?", (sequence, sequence))


def alerts(
    connection: SqlConnection, account: int, before: int | None, limit: int
) -> Iterator[Alert]:
    """The account's alerts of sequence numbers before `before`, newest first, about `limit` of
    them.

    All alerts of the last record are among them.
    """
    last = None
    rows = connection.execute(
        "SELECT place, number, turn FROM alerts WHERE account = ? AND place < ? AND place >="
        f" ({_FLOOR.format('alerts')}) ORDER BY place DESC, number DESC",
        2 * (account, _LAST if before is None else before) + (limit,),
    )
    for count, (sequence, number, transition) in enumerate(rows):
        if count >= limit and sequence != last:
            return
        last = sequence
        yield Alert(account, sequence, number, _decode_transition(transition))


def alert(connection: SqlConnection, account: int, sequence: int, number: int) -> Alert | None:
    row = connection.execute(
        "SELECT turn FROM alerts WHERE account = ? AND place = ? AND number = ?",
        (account, sequence, number),
    ).fetchone()
    return None if row is None else Alert(account, sequence, number, _decode_transition(row[0]))


def deliveries(
    connection: SqlConnection,
    account: int,
    before: int | None,
    limit: int,
    url: str | None = None,
) -> list[Delivery]:
    """The account's deliveries, to one address or all, of what stands before a sequence number,
    newest first, about `limit` of them.

    All deliveries of the last record are among them.
    """
    wanted = "account = ? AND place < ?" + ("" if url is None else " AND url = ?")
    index = "listed" if url is None else "of_webhook"
    within = (account, _LAST if before is None else before, *([] if url is None else [url]))
    source = f"deliveries INDEXED BY {index} WHERE {wanted}"
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM {source} AND place >= (SELECT coalesce(min(place), 0) FROM"
        f" (SELECT place FROM {source} ORDER BY place DESC LIMIT ?) AS page)"
        " ORDER BY place DESC, number, url",
        (*within, *within, limit),
    )
    found: list[Delivery] = []
    for row in rows:
        each = Delivery(*row)
        if len(found) >= limit and each.sequence != found[-1].sequence:
            break
        found.append(each)
    return found


def redeliver(
    connection: SqlConnection, account: int, url: str, id_: str, now: int
) -> Delivery | None:
    """Make a delivery due again, whatever its state; None when no delivery has the id."""
    connection.execute(
        "UPDATE deliveries SET state = 'pending', attempts = 0, next_at = ?, delivered_at = NULL"
        " WHERE id = ? AND account = ? AND url = ?",
        (now, id_, account, url),
    )
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM deliveries WHERE id = ? AND account = ? AND url = ?",
        (id_, account, url),
    ).fetchone()
    return None if row is None else Delivery(*row)


def due_addresses(connection: SqlConnection, now: int) -> list[tuple[int, str]]:
    """The accounts and addresses with a delivery that is due.

    It skips from one address to the next, so the number of notices waiting for one costs nothing.
    """
    found: list[tuple[int, str]] = []
    account, url = -1, ""
    pending_of = "SELECT account, url FROM deliveries INDEXED BY due WHERE state = 'pending' AND"
    # One query comparing both columns at once would make SQLite visit every row in between.
    while row := (
        connection.execute(
            f"{pending_of} account = ? AND url > ? ORDER BY url LIMIT 1", (account, url)
        ).fetchone()
        or connection.execute(
            f"{pending_of} account > ? ORDER BY account, url LIMIT 1", (account,)
        ).fetchone()
    ):
        account, url = row
        if next_due(connection, account, url, now) is not None:
            found.append((account, url))
    return found


def next_due(connection: SqlConnection, account: int, url: str, now: int) -> Delivery | None:
    """The next delivery that is due to an address."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM deliveries INDEXED BY due WHERE state = 'pending'"
        " AND account = ? AND url = ? AND next_at <= ? ORDER BY next_at LIMIT 1",
        (account, url, now),
    ).fetchone()
    return None if row is None else Delivery(*row)


def pending(connection: SqlConnection) -> int:
    """How many deliveries are still to be made."""
    query = "SELECT count(*) FROM deliveries INDEXED BY due WHERE state = 'pending'"
    count: int = connection.execute(query).fetchone()[0]
    return count


def set_delivery(connection: SqlConnection, sent: Delivery, changed: Delivery) -> None:
    """Write what became of a delivery that was sent, unless it was made due again meanwhile."""
    connection.execute(
        "UPDATE deliveries SET state = ?, attempts = ?, next_at = ?, status = ?, error = ?,"
        " delivered_at = ? WHERE id = ? AND next_at = ?",
        (
            changed.state,
            changed.attempts,
            changed.next_at,
            changed.status,
            changed.error,
            changed.delivered_at,
            sent.id,
            sent.next_at,
        ),
    )


def purge_alerts_step(connection: SqlConnection, account: int, before: int) -> bool:
    """Remove some alerts with event times before `before`, their deliveries, and deliveries
    finished before it; False when there were none."""
    old = connection.execute(
        "SELECT account, place, number FROM alerts WHERE account = ? AND at < ? LIMIT ?",
        (account, before, _STEP),
    ).fetchall()
    for table in ("deliveries", "alerts"):
        connection.executemany(
            f"DELETE FROM {table} WHERE account = ? AND place = ? AND number = ?", old
        )
    settled = connection.execute(
        "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries INDEXED BY listed"
        " WHERE account = ? AND state != 'pending' AND next_at < ? LIMIT ?)",
        (account, before, _STEP),
    ).rowcount
    return bool(old) or settled > 0


def forget_account_step(connection: SqlConnection, account: int) -> bool:
    """Removes some of an account's alerts, deliveries and standings; False when none."""
    removed = [
        connection.execute(
            f"DELETE FROM {table} WHERE ({key}) IN"
            f" (SELECT {key} FROM {table} WHERE account = ? LIMIT ?)",
            (account, _STEP),
        ).rowcount
        for table, key in _KEYS.items()
    ]
    return any(removed)


def _delivery_id(key: FolderKey, notice: Notice) -> str:
    """The notice's id: the same each time, and it reveals nothing about other notices."""
    # An entry may raise an alert and be told of itself.
    is_alert = notice.kind == "alert.raised"
    use = NameUse.ALERT_DELIVERY if is_alert else NameUse.ENTRY_DELIVERY
    name = key.name_of(use, notice.account, Spot(notice.sequence, notice.number))
    return f"{name}-{webhook_id(notice.url)[3:15]}"
