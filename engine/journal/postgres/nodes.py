"""The nodes that share a journal, by the heartbeats that each of them writes about once a second."""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.postgres.ownership import IS_HELD, process_name

SILENT_S = 5.0
"""A node without a heartbeat for this long counts as gone."""
PRESENT_S = 2.5
"""A journal is handed to a node only when its last heartbeat is at most this old."""
FORGOTTEN_S = 86_400
# A later heartbeat was written by another clock, of a database that failed over.
_SILENCE_S = "abs(extract(epoch FROM clock_timestamp() - seen_at))::float8"
_RECENT = f"{_SILENCE_S} < {SILENT_S}"
_HEARTBEAT = (
    "INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, clock_timestamp())"
    " ON CONFLICT (node) DO UPDATE SET place = excluded.place, is_whole = excluded.is_whole,"
    " seen_at = excluded.seen_at"
)
_HAS_SUCCESSOR = f"SELECT EXISTS (SELECT 1 FROM nodes WHERE node <> ? AND is_whole AND {_RECENT})"
_ANYBODY = f"SELECT EXISTS (SELECT 1 FROM nodes WHERE {_RECENT})"
_SUCCESSORS = f"SELECT node, address FROM nodes WHERE is_whole AND {_SILENCE_S} < {PRESENT_S}"
_NODES = (
    f"SELECT nodes.process, nodes.address, release, coalesce(owner = node AND {IS_HELD},"
    f" FALSE), is_whole, greatest(0, last_place - place), {_SILENCE_S},"
    " CASE WHEN owner = node THEN (1000000 * extract(epoch FROM taken_at))::bigint END,"
    " CASE WHEN owner = node THEN epoch END"
    " FROM nodes CROSS JOIN shards WHERE shard = 1 ORDER BY nodes.process, node"
)


class Heartbeat(NamedTuple):
    """A node's name, the address where other nodes reach it, its release, the last sequence number
    that its windows count, and whether they are whole, so that it could take over."""

    node: str
    address: str
    release: str
    counted: int
    is_whole: bool


class SeenNode(NamedTuple):
    """A node by its last heartbeat, `silent_s` seconds ago: its windows are `behind` the journal by
    this many sequence numbers; `owner_since` (µs since 1970) and `epoch` are None but for the owner."""

    process: str
    address: str
    release: str
    is_owner: bool
    is_whole: bool
    behind: int
    silent_s: float
    owner_since: int | None
    epoch: int | None = None


def write_heartbeat(connection: SqlConnection, heartbeat: Heartbeat) -> None:
    """Write a node's heartbeat, and remove nodes without one for a day."""
    node, address, release, counted, is_whole = heartbeat
    connection.execute(_HEARTBEAT, (node, process_name(), address, release, counted, is_whole))
    connection.execute(f"DELETE FROM nodes WHERE {_SILENCE_S} > {FORGOTTEN_S}")


def remove_node(connection: SqlConnection, node: str) -> None:
    """Remove a node that ends."""
    connection.execute("DELETE FROM nodes WHERE node = ?", (node,))


def is_followed(connection: SqlConnection) -> bool:
    """Whether any node is there."""
    if connection.execute("SELECT to_regclass('nodes')").fetchone()[0] is None:
        return False
    return bool(connection.execute(_ANYBODY).fetchone()[0])


def has_successor(connection: SqlConnection, node: str) -> bool:
    """Whether another node could take over at once."""
    return bool(connection.execute(_HAS_SUCCESSOR, (node,)).fetchone()[0])


def successors(connection: SqlConnection) -> dict[str, str]:
    """The nodes that could take over at once, by the address where other nodes reach them."""
    return {address: node for node, address in connection.execute(_SUCCESSORS)}


def nodes_of(connection: SqlConnection) -> list[SeenNode]:
    """All nodes with a heartbeat within a day."""
    return [SeenNode(*row) for row in connection.execute(_NODES)]


def is_loopback(address: str) -> bool:
    """Whether an address leads each machine to itself: loopback addresses, and unspecified ones."""
    host = (urlsplit(address).hostname or "").removesuffix(".")
    try:
        number = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    found = getattr(number, "ipv4_mapped", None) or number
    return found.is_loopback or found.is_unspecified


def out_of_reach(nodes: Collection[SeenNode]) -> list[SeenNode]:
    """The present nodes that nodes on other machines can't reach: they announce a loopback address,
    and the present nodes are on several machines."""
    present = [each for each in nodes if each.silent_s <= SILENT_S]
    machines = {_machine(each) for each in present}
    return [each for each in present if len(machines) > 1 and is_loopback(each.address)]


def _machine(node: SeenNode) -> str:
    return node.process.partition(" on ")[2]
