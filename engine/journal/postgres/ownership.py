"""Whose journal it is: one owner at a time, by a lease on the database's clock.

The lease only says when another may take over. What keeps a former owner out is the epoch, which
each taking over raises and each append compares.
"""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from uuid import uuid4

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError, Locked, Unavailable
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE
from tollkeeper.engine.journal.postgres.connection import PostgresConnection, shown_address

LEASE_S = 5.0
"""How long after the owner's last word another may take over."""
_TAKE = (
    "UPDATE shards SET epoch = epoch + 1, owner = ?, purpose = ?, process = ?,"
    f" lease_until = clock_timestamp() + interval '{LEASE_S} seconds'"
    " WHERE shard = 1 AND (lease_until < clock_timestamp() OR owner = ?)"
    " RETURNING epoch, last_place"
)
_TAKE_AGAIN = (
    "UPDATE shards SET epoch = epoch + 1,"
    f" lease_until = clock_timestamp() + interval '{LEASE_S} seconds'"
    " WHERE shard = 1 AND owner = ? RETURNING epoch, last_place"
)
_GIVE_BACK = (
    "UPDATE shards SET lease_until = '-infinity' WHERE shard = 1 AND owner = ? AND epoch = ?"
)
_HOLDER = "SELECT purpose, process, lease_until > clock_timestamp() FROM shards WHERE shard = 1"


@dataclass(slots=True)
class Ownership:
    """`owner` is made anew at each start; `last_place` is the last sequence number that was given
    by an append of whichever owner."""

    owner: str
    epoch: int
    last_place: int


def take(connection: PostgresConnection, url: str, purpose: str, *, moving: str = "") -> Ownership:
    """Takes the journal over. Raises `Locked` while another owner's lease lasts, `JournalError` while
    a journal other than `moving` is only partly moved here, `Unavailable` as long as no standby has
    heard of it."""
    require_moved(connection, url, moving)
    owner = uuid4().hex
    process = f"{os.getpid()} on {socket.gethostname()}"
    row = connection.execute(_TAKE, (owner, purpose, process, owner)).fetchone()
    if row is None:
        purpose, process, _ = connection.execute(_HOLDER).fetchone()
        who = "`toll serve`" if purpose == SERVICE_PURPOSE else "another command"
        raise Locked(f"the database `{shown_address(url)}` is in use by {who}, process {process}")
    if connection.was_warned:
        raise Unavailable("no standby has heard whose journal it is")
    return Ownership(owner, *row)


def take_again(connection: PostgresConnection, ownership: Ownership) -> bool:
    """Begins another epoch of the same owner, so that nothing of the former can still be written;
    False when the journal is another's by now.

    `last_place` is then that of the last append which was kept.
    """
    row = connection.execute(_TAKE_AGAIN, (ownership.owner,)).fetchone()
    if row is None:
        return False
    ownership.epoch, ownership.last_place = row
    return True


def require_moved(connection: PostgresConnection, url: str, moving: str = "") -> None:
    """Raises `JournalError` while a journal other than `moving` is only partly moved here."""
    ((begun,),) = connection.execute("SELECT moving FROM identity").fetchall()
    if begun not in ("", moving):
        raise JournalError(
            f"a data folder is only partly moved into `{shown_address(url)}`: run `toll import`"
            " again"
        )


def nobody(connection: SqlConnection) -> Ownership:
    """An ownership that no append proves."""
    ((last,),) = connection.execute("SELECT last_place FROM shards WHERE shard = 1").fetchall()
    return Ownership("", -1, last)


def give_back(connection: PostgresConnection, ownership: Ownership) -> None:
    """Lets another take over at once."""
    connection.execute(_GIVE_BACK, (ownership.owner, ownership.epoch))


def owner_of(connection: SqlConnection) -> str:
    """Whose journal it is, or was last: the name that the owner made of itself."""
    ((owner,),) = connection.execute("SELECT owner FROM shards WHERE shard = 1").fetchall()
    return str(owner)


def holder_of(connection: SqlConnection) -> str | None:
    """The purpose for which a living process owns the journal, None when none does."""
    if connection.execute("SELECT to_regclass('shards')").fetchone()[0] is None:
        return None
    purpose, _, is_held = connection.execute(_HOLDER).fetchone()
    return str(purpose) if is_held else None
