"""The tables of the journal's file, by numbered migrations."""

from __future__ import annotations

from uuid import uuid4

from sqlite_utils import Database, Migrations

from tollkeeper.engine.journal.entries import AMENDABLE, Kind

migrations = Migrations("tollkeeper")


@migrations(name="1")
def _the_journal(db: Database) -> None:
    db.table("journal").create(
        {
            "place": int,
            "account": int,
            "kind": int,
            "id": str,
            "arrived": int,
            "time": int,
            "body": bytes,
            "outcome": bytes,
        },
        pk="place",
        not_null={"account", "kind", "id", "arrived", "time", "body"},
    )
    # An update has its payment's id: it gets null here, which a unique index allows repeatedly.
    db.execute(
        "CREATE UNIQUE INDEX by_id ON journal"
        f"(account, id, kind, CASE WHEN kind IN ({Kind.PAYMENT:d}, {Kind.EVENT:d}) THEN 0 END)"
    )
    # SQLite ends every index with the place, so each of these is also in order of the sequence.
    db.execute("CREATE INDEX by_account ON journal(account)")
    db.execute(f"CREATE INDEX changes ON journal(kind) WHERE kind = {Kind.CHANGE:d}")
    db.execute(f"CREATE INDEX changes_by_account ON journal(account) WHERE kind = {Kind.CHANGE:d}")


@migrations(name="2")
def _idempotency(db: Database) -> None:
    db.table("idempotency").create(
        {
            "place": int,
            "account": int,
            "key": str,
            "digest": bytes,
            "response": bytes,
            "arrived": int,
        },
        pk="place",
        not_null={"account", "key", "digest", "response", "arrived"},
    ).create_index(["account", "key"], unique=True)


@migrations(name="3")
def _contents_of_lists(db: Database) -> None:
    # A content being staged has no `from_place` yet.
    db.table("list_contents").create(
        {"id": int, "account": int, "list": str, "from_place": int, "to_place": int, "staged": int},
        pk="id",
        not_null={"account", "list", "staged"},
    ).create_index(["account", "list"])
    db.execute(
        "CREATE TABLE list_entries (content INTEGER NOT NULL, value TEXT NOT NULL, columns TEXT,"
        " expires_at INTEGER, note TEXT, by TEXT, from_place INTEGER NOT NULL, to_place INTEGER,"
        " PRIMARY KEY (content, value, from_place)) WITHOUT ROWID"
    )
    db.execute("CREATE INDEX ended ON list_entries(content, to_place) WHERE to_place IS NOT NULL")


@migrations(name="4")
def _requests_of_commands(db: Database) -> None:
    db.table("requests").create(
        {
            "id": int,
            "action": str,
            "author": str,
            "left_at": int,
            "progress": float,
            "answer": str,
            "done": int,
        },
        pk="id",
        not_null={"action", "author", "left_at", "progress", "done"},
        defaults={"progress": 0.0, "done": 0},
    )


@migrations(name="5")
def _amendments(db: Database) -> None:
    # A follower reads here which payments were amended. A number is never used twice, so that it sees
    # that some amendments are missing (`expire` removes them after a day).
    db.execute(
        "CREATE TABLE amendments (number INTEGER PRIMARY KEY AUTOINCREMENT,"
        " account INTEGER NOT NULL, kind INTEGER NOT NULL, id TEXT NOT NULL,"
        " place INTEGER NOT NULL, at INTEGER NOT NULL)"
    )
    for name, event in (("rewritten", "UPDATE OF body, outcome"), ("removed", "DELETE")):
        db.execute(
            f"CREATE TRIGGER {name} AFTER {event} ON journal"  # noqa: S608 - constants alone
            f" WHEN OLD.kind IN ({Kind.PAYMENT:d}, {Kind.UPDATE:d})"
            " BEGIN INSERT INTO amendments(account, kind, id, place, at)"
            " VALUES (OLD.account, OLD.kind, OLD.id, OLD.place, 1000000 * unixepoch()); END"
        )


@migrations(name="6")
def _identity_and_checksums(db: Database) -> None:
    # Older entries get no checksum: they may be damaged already.
    db.execute("ALTER TABLE journal ADD COLUMN checksum INTEGER")
    db.table("seals").create(
        {
            "sequence": int,
            "entries": int,
            "total": int,
            "chain": bytes,
            "removed": int,
            "changed": int,
        },
        pk="sequence",
        not_null={"entries", "total", "chain", "removed", "changed"},
        defaults={"removed": 0, "changed": 0},
    )
    # `clock` is the last moment (µs) at which the clock was found plausible.
    db.table("identity").create({"id": str, "clock": int}, pk="id", not_null={"clock"})
    last = db.execute("SELECT arrived FROM journal ORDER BY place DESC LIMIT 1").fetchone()
    db.execute("INSERT INTO identity VALUES (?, ?)", (uuid4().hex, last[0] if last else 0))


@migrations(name="7")
def _accesses(db: Database) -> None:
    db.execute(f"CREATE INDEX accesses_by_account ON journal(account) WHERE kind = {Kind.ACCESS:d}")


@migrations(name="8")
def _labels(db: Database) -> None:
    db.execute(f"CREATE INDEX labels_by_account ON journal(account) WHERE kind = {Kind.LABEL:d}")


@migrations(name="9")
def _amendments_of_all_kinds(db: Database) -> None:
    # An index finds events, labels and notes as well, and must hear of those that are gone; by their
    # numbers alone, as an id may be of somebody who was deleted.
    kinds = ", ".join(f"{kind:d}" for kind in AMENDABLE)
    for name, event in (("rewritten", "UPDATE OF body, outcome"), ("removed", "DELETE")):
        db.execute(f"DROP TRIGGER {name}")
        db.execute(
            f"CREATE TRIGGER {name} AFTER {event} ON journal"  # noqa: S608 - constants alone
            f" WHEN OLD.kind IN ({kinds})"
            " BEGIN INSERT INTO amendments(account, kind, id, place, at) VALUES (OLD.account, OLD.kind,"
            f" CASE WHEN OLD.kind IN ({Kind.PAYMENT:d}, {Kind.UPDATE:d}) THEN OLD.id ELSE '' END,"
            " OLD.place, 1000000 * unixepoch()); END"
        )


@migrations(name="10")
def _shadows(db: Database) -> None:
    db.execute(f"CREATE INDEX shadows_by_account ON journal(account) WHERE kind = {Kind.SHADOW:d}")
