"""Whose journal it is: one owner at a time, by a lease on the database's clock.

The lease only says when another may take over. What keeps a former owner out is the epoch, which
each taking over raises and each append compares.
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
"""How long after the owner's last word another may take over."""
GIVEN_S = 1.0
"""How long a node that was given a journal has for taking it, before any other may."""
_UNTIL = f"clock_timestamp() + interval '{LEASE_S} seconds'"
_TAKE = (
    "UPDATE shards SET epoch = epoch + 1, owner = ?, purpose = ?, process = ?, address = ?,"
    f" taken_at = clock_timestamp(), lease_until = {_UNTIL}"
    " WHERE shard = 1 AND (lease_until < clock_timestamp() OR owner = ?)"
    " RETURNING epoch, last_place"
)
_TAKE_AGAIN = (
    f"UPDATE shards SET epoch = epoch + 1, lease_until = {_UNTIL}"
    " WHERE shard = 1 AND owner = ? RETURNING epoch, last_place"
)
_GIVE_BACK = (
    "UPDATE shards SET lease_until = '-infinity' WHERE shard = 1 AND owner = ? AND epoch = ?"
)
_GIVE_TO = (
    "UPDATE shards SET owner = ?, address = '', lease_until = clock_timestamp()"
    f" + interval '{GIVEN_S} seconds' WHERE shard = 1 AND owner = ? AND epoch = ?"
)
_SHUT_OUT = (
    "UPDATE shards SET epoch = epoch + 1, owner = ''"
    " WHERE shard = 1 AND lease_until < clock_timestamp() RETURNING epoch"
)
_HOLDER = "SELECT purpose, process, lease_until > clock_timestamp() FROM shards WHERE shard = 1"
_STANDING = (
    "SELECT owner, address, lease_until > clock_timestamp(), last_place, safe_place"
    " FROM shards WHERE shard = 1"
)


@dataclass(slots=True)
class Ownership:
    """`owner` is made anew at each start; `epoch` is -1 while the journal is not its own. `last_place`
    is the last sequence number that was given by an append of whichever owner."""

    owner: str
    epoch: int
    last_place: int


class JournalStanding(NamedTuple):
    """Whose journal it is at a moment: where its owner is reached by other nodes, whether the lease
    lasts, the last sequence number and the one up to which the standby has it too."""

    owner: str
    address: str
    is_held: bool
    last: int
    safe: int


def standing_of(connection: SqlConnection) -> JournalStanding:
    """How it stands now."""
    return JournalStanding(*connection.execute(_STANDING).fetchone())


def take(connection: PostgresConnection, url: str, purpose: str, *, moving: str = "") -> Ownership:
    """Takes the journal over. Raises `Locked` while another owner's lease lasts, `JournalError` while
    a journal other than `moving` is only partly moved here, `Unavailable` as long as no standby has
    heard of it."""
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
    """Makes the journal its own; False while another's lease lasts. Raises `Unavailable` as long as
    no standby has heard of it."""
    owner, connection.was_warned = ownership.owner, False
    row = connection.execute(_TAKE, (owner, purpose, process_name(), address, owner)).fetchone()
    if row is None:
        return False
    if connection.was_warned:
        raise Unavailable("no standby has heard whose journal it is")
    ownership.epoch, ownership.last_place = row
    return True


def process_name() -> str:
    """This process, as a person finds it."""
    return f"{os.getpid()} on {socket.gethostname()}"


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


def shut_out(connection: PostgresConnection) -> bool:
    """Begins an epoch of nobody, so that nobody who owned the journal before can still write; False
    while an owner's lease lasts."""
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
    """Of a process whose journal it is not: no append can prove it."""
    return Ownership(uuid4().hex, -1, standing_of(connection).last)


def release(connection: PostgresConnection, ownership: Ownership) -> None:
    """Lets another take over at once."""
    connection.execute(_GIVE_BACK, (ownership.owner, ownership.epoch))


def hand_to(connection: PostgresConnection, ownership: Ownership, node: str) -> None:
    """Lets another node, and for a moment nobody else, take over at once."""
    connection.execute(_GIVE_TO, (node, ownership.owner, ownership.epoch))


def holder_of(connection: SqlConnection) -> str | None:
    """The purpose for which a living process owns the journal, None when none does."""
    if connection.execute("SELECT to_regclass('shards')").fetchone()[0] is None:
        return None
    purpose, _, is_held = connection.execute(_HOLDER).fetchone()
    return str(purpose) if is_held else None
