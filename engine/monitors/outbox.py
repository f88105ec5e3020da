"""Alerts as they are listed, and the outbox of their deliveries: the tables and their queries.

All of it follows from the journal's transitions: `noted` says up to which sequence number that is
done, and the next start lists the rest. Listing an alert twice changes nothing.
"""

# ruff: noqa: S608 - only constants of this module are put into the queries

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlite_utils import Database, Migrations

from tollkeeper.engine.instants import show_instant
from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.monitors.alerts import Transition
from tollkeeper.engine.monitors.watch import NEVER, MonitorKey, Standing
from tollkeeper.engine.programs.json_values import JsonValue

# How many rows a purge removes in one step: a few milliseconds.
_STEP = 500
_LAST = 2**63 - 1
_KEYS = {
    "deliveries": "id",
    "alerts": "account, place, number",
    "standings": "account, type, monitor, key",
}
"""Each table that holds something of an account, and its key."""

# The sequence number of the last of so many rows that a page shows.
_FLOOR = (
    "SELECT coalesce(min(place), 0) FROM (SELECT place FROM {} WHERE account = ? AND place < ?"
    " ORDER BY place DESC LIMIT ?) AS page"
)

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


class Alert(Struct, frozen=True):
    """One alert: the transition at `sequence` of the account's journal, `number` among those of its
    record.
    """

    account: int
    sequence: int
    number: int
    transition: Transition

    @property
    def id(self) -> str:
        return f"{self.sequence}-{self.number}"

    @property
    def of(self) -> tuple[int, int, int]:
        return self.account, self.sequence, self.number


class Delivery(Struct, frozen=True):
    """One alert on its way to one address; times in µs.

    `state` is `pending`, `delivered`, or `dropped` once the webhook is gone; `status` and `error`
    are those of the last attempt.
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


_encode = msgspec.json.Encoder().encode
_decode_transition = msgspec.json.Decoder(Transition).decode
_key = msgspec.json.Decoder(tuple[JsonValue, ...]).decode
_COLUMNS = "id, account, place, number, url, state, attempts, next_at, status, error, delivered_at"


def create_tables(connection: sqlite3.Connection) -> None:
    """Brings the tables up to date."""
    _migrations.apply(Database(connection))


def listed_up_to(connection: SqlConnection) -> int:
    """The sequence number up to which all alerts are listed."""
    (sequence,) = connection.execute("SELECT place FROM noted").fetchone()
    return int(sequence)


def standings(connection: SqlConnection) -> list[tuple[MonitorKey, Standing]]:
    """How every monitor stood at the sequence number up to which alerts are listed, or later."""
    rows = connection.execute(
        "SELECT account, type, monitor, key, place, met, alerted FROM standings"
    )
    return [
        ((account, type_, monitor, _key(key)), Standing(sequence, bool(met), alerted))
        for account, type_, monitor, key, sequence, met, alerted in rows
    ]


def standings_of(
    connection: SqlConnection, account: int, beyond: MonitorKey | None, limit: int
) -> list[tuple[MonitorKey, Standing]]:
    """How an account's monitors stand, in an order that `beyond` continues."""
    after = ("", "", "") if beyond is None else (*beyond[1:3], _encode(beyond[3]).decode())
    rows = connection.execute(
        "SELECT type, monitor, key, place, met, alerted FROM standings"
        " WHERE account = ? AND (type, monitor, key) > (?, ?, ?) ORDER BY type, monitor, key"
        " LIMIT ?",
        (account, *after, limit),
    )
    return [
        ((account, type_, monitor, _key(key)), Standing(sequence, bool(met), alerted))
        for type_, monitor, key, sequence, met, alerted in rows
    ]


def forget_standings(connection: SqlConnection, gone: Iterable[MonitorKey]) -> None:
    """The monitors know nothing of these keys any more."""
    connection.executemany(
        "DELETE FROM standings WHERE account = ? AND type = ? AND monitor = ? AND key = ?",
        [(*of[:3], _encode(of[3]).decode()) for of in gone],
    )


def set_alerts(connection: SqlConnection, changed: Iterable[Alert]) -> None:
    """Alerts that show something else than before."""
    connection.executemany(
        "UPDATE alerts SET turn = ? WHERE account = ? AND place = ? AND number = ?",
        [(_encode(each.transition).decode(), *each.of) for each in changed],
    )


def add_alerts(
    connection: SqlConnection,
    account: int,
    sequence: int,
    transitions: Sequence[Transition],
    urls: Iterable[str],
    now: int,
) -> None:
    """Lists the alerts among the transitions and puts a delivery of each to each address in the outbox."""
    targets = list(urls)
    for number, transition in enumerate(transitions):
        connection.execute(
            "INSERT INTO standings VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (account, type, monitor, key) DO UPDATE SET place = excluded.place,"
            " met = excluded.met, alerted = CASE WHEN excluded.met = 1 THEN excluded.alerted"
            " ELSE standings.alerted END WHERE standings.place < excluded.place",
            (
                account,
                transition.type,
                transition.monitor,
                _encode(transition.key).decode(),
                sequence,
                int(transition.met),
                transition.at if transition.met else NEVER,
            ),
        )
        if transition.met:
            connection.execute(
                "INSERT INTO alerts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (account, sequence, number, transition.at, _encode(transition).decode()),
            )
            connection.executemany(
                f"INSERT INTO deliveries ({_COLUMNS})"
                " VALUES (?, ?, ?, ?, ?, 'pending', 0, ?, NULL, NULL, NULL) ON CONFLICT DO NOTHING",
                [
                    (_delivery_id(sequence, number, url), account, sequence, number, url, now)
                    for url in targets
                ],
            )


def set_listed(connection: SqlConnection, sequence: int) -> None:
    """All alerts up to `sequence` are listed."""
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
    connection: SqlConnection, account: int, before: int | None, limit: int
) -> list[Delivery]:
    """The account's deliveries of alerts before a sequence number, newest first, about `limit` of
    them.

    All deliveries of the last record are among them.
    """
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM deliveries INDEXED BY listed WHERE account = ? AND place < ?"
        f" AND place >= ({_FLOOR.format('deliveries')}) ORDER BY place DESC, number, url",
        2 * (account, _LAST if before is None else before) + (limit,),
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
    """A delivery to an address that is due again, whatever became of it; None when none has the id."""
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
    """The accounts and addresses that have something due."""
    return connection.execute(
        "SELECT DISTINCT account, url FROM deliveries INDEXED BY due"
        " WHERE state = 'pending' AND next_at <= ?",
        (now,),
    ).fetchall()


def next_due(connection: SqlConnection, account: int, url: str, now: int) -> Delivery | None:
    """What is to be sent next to an address."""
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


def set_delivery(connection: SqlConnection, changed: Delivery) -> None:
    """What became of a delivery."""
    connection.execute(
        "UPDATE deliveries SET state = ?, attempts = ?, next_at = ?, status = ?, error = ?,"
        " delivered_at = ? WHERE id = ?",
        (
            changed.state,
            changed.attempts,
            changed.next_at,
            changed.status,
            changed.error,
            changed.delivered_at,
            changed.id,
        ),
    )


def purge_alerts_step(connection: SqlConnection, account: int, before: int) -> bool:
    """Removes some alerts of event times before `before` with their deliveries; False when none."""
    old = connection.execute(
        "SELECT account, place, number FROM alerts WHERE account = ? AND at < ? LIMIT ?",
        (account, before, _STEP),
    ).fetchall()
    for table in ("deliveries", "alerts"):
        connection.executemany(
            f"DELETE FROM {table} WHERE account = ? AND place = ? AND number = ?", old
        )
    return bool(old)


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


def _delivery_id(sequence: int, number: int, url: str) -> str:
    return f"{sequence}-{number}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"


def show_alert(alert: Alert) -> dict[str, Any]:
    """An alert as the list and the webhooks show it."""
    transition = alert.transition
    return {
        "id": alert.id,
        "type": transition.type,
        "monitor": transition.monitor,
        "title": transition.title,
        "key": list(transition.key),
        "at": show_instant(transition.at),
        "values": transition.values,
    }
