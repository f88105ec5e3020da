"""Which process owns the journal: one at a time, by a lease on the database's clock.

The lease only says when another process may take over. What stops a former owner is the epoch:
each takeover raises it, and each append compares it in its own transaction.
"""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.contract import JournalError, Locked, Unavailable
from tollkeeper.engine.journal.lock import SERVICE_PURPOSE
from tollkeeper.engine.journal.postgres.connection import PostgresConnection, shown_address

LEASE_S = 2.0
"""How long after the owner's last transaction another process may take over."""
LONGEST_LEASE_S = 60
"""A lease that ends later was given by another clock, of a database that failed over, and is over."""
HANDED_S = 1.0
"""How long only the node that a journal was handed to may take it over."""
IS_HELD = (
    "(lease_until BETWEEN clock_timestamp()"
    f" AND clock_timestamp() + interval '{LONGEST_LEASE_S} seconds')"
)
_UNTIL = f"clock_timestamp() + interval '{LEASE_S} seconds'"
_TAKE = (
    "UPDATE shards SET epoch = epoch + 1, owner = ?, purpose = ?, process = ?, address = ?,"
    f" taken_at = clock_timestamp(), lease_until = {_UNTIL}"
    f" WHERE shard = 1 AND (NOT {IS_HELD} OR owner = ?)"
    " RETURNING epoch, last_place"
)
_BEGIN_EPOCH = (
    f"UPDATE shards SET epoch = epoch + 1, lease_until = {_UNTIL}"
    " WHERE shard = 1 AND owner = ? RETURNING epoch, last_place"
)
_RELEASE = "UPDATE shards SET lease_until = '-infinity' WHERE shard = 1 AND owner = ? AND epoch = ?"
_HAND_TO = (
    "UPDATE shards SET owner = ?, address = '', lease_until = clock_timestamp()"
    f" + interval '{HANDED_S} seconds' WHERE shard = 1 AND owner = ? AND epoch = ?"
)
_SHUT_OUT = (
    "UPDATE shards SET epoch = epoch + 1, owner = ''"
    f" WHERE shard = 1 AND NOT {IS_HELD} RETURNING epoch"
)
_HOLDER = f"SELECT purpose, process, {IS_HELD} FROM shards WHERE shard = 1"
_STANDING = f"SELECT owner, address, {IS_HELD}, last_place, safe_place FROM shards WHERE shard = 1"


@dataclass(slots=True)
class Ownership:
    """This process's claim to the journal. `owner` is its name, new at each start; `epoch` is -1 while
    another process owns the journal; `last_place` is the last sequence number that any owner wrote."""

    owner: str
    epoch: int
    last_place: int


class JournalStanding(NamedTuple):
    """Who owns the journal at a moment: the owner's name, the address where other nodes reach it,
    whether its lease lasts, the last sequence number, and the last one that the standby has too."""

    owner: str
    address: str
    is_held: bool
    last: int
    safe: int


def standing_of(connection: SqlConnection) -> JournalStanding:
    """The journal's standing now."""
    return JournalStanding(*connection.execute(_STANDING).fetchone())


def take(connection: PostgresConnection, url: str, purpose: str, *, moving: str = "") -> Ownership:
    """Take the journal over. Raises `Locked` while another owner's lease lasts, `JournalError` while
    a journal other than `moving` is only partly moved here, `Unavailable` while no standby confirms
    it."""
    require_moved(connection, url, moving)
    ownership = not_owned(connection)
    if not try_to_take(connection, ownership, purpose):
        purpose, process, _ = connection.execute(_HOLDER).fetchone()
        who = "`toll serve`" if purpose == SERVICE_PURPOSE else "another command"
        raise Locked(f"the database `{shown_address(url)}` is in use by {who}, process {process}")
    return ownership


def try_to_take(
    connection: PostgresConnection, ownership: Ownership, purpose: str, address: str = ""
) -> bool:
    """Take the journal over, if no other owner's lease lasts; whether it was taken. Raises
    `Unavailable` when no standby confirms it."""
    owner, connection.was_warned = ownership.owner, False
    row = connection.execute(_TAKE, (owner, purpose, process_name(), address, owner)).fetchone()
    if row is None:
        return False
    if connection.was_warned:
        raise Unavailable("no standby has confirmed the takeover")
    ownership.epoch, ownership.last_place = row
    return True


def process_name() -> str:
    """This process's id and machine, for people."""
    return f"{os.getpid()} on {socket.gethostname()}"


def begin_epoch(connection: PostgresConnection, ownership: Ownership) -> bool:
    """Begin another epoch of the same owner, so that no transaction of the former epoch can still be
    committed, and read `last_place` again; False when another process owns the journal.
    """
    row = connection.execute(_BEGIN_EPOCH, (ownership.owner,)).fetchone()
    if row is None:
        return False
    ownership.epoch, ownership.last_place = row
    return True


def shut_out(connection: PostgresConnection) -> bool:
    """Begin an epoch without an owner, so that no former owner can write any more; False while an
    owner's lease lasts."""
    return connection.execute(_SHUT_OUT).fetchone() is not None


def require_moved(connection: PostgresConnection, url: str, moving: str = "") -> None:
    """Raises `JournalError` while a journal other than `moving` is only partly moved here."""
    ((begun,),) = connection.execute("SELECT moving FROM identity").fetchall()
    if begun not in ("", moving):
        raise JournalError(
            f"a data folder is only partly moved into `{shown_address(url)}`: run `toll import`"
            " again"
        )


def not_owned(connection: SqlConnection) -> Ownership:
    """The claim of a process that does not own the journal: every append with it fails."""
    return Ownership(uuid4().hex, -1, standing_of(connection).last)


def release(connection: PostgresConnection, ownership: Ownership) -> None:
    """Let any process take over at once."""
    connection.execute(_RELEASE, (ownership.owner, ownership.epoch))


def hand_to(connection: PostgresConnection, ownership: Ownership, node: str) -> None:
    """Let another node take over at once, and no other process for `HANDED_S` seconds."""
    connection.execute(_HAND_TO, (node, ownership.owner, ownership.epoch))


def holder_of(connection: SqlConnection) -> str | None:
    """The purpose for which a process owns the journal, None when no lease lasts."""
    if connection.execute("SELECT to_regclass('shards')").fetchone()[0] is None:
        return None
    purpose, _, is_held = connection.execute(_HOLDER).fetchone()
    return str(purpose) if is_held else None
