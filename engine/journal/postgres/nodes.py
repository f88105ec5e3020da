"""The services that share a journal, as each of them tells it again and again."""

# ruff: noqa: S608 - only constants of this package are put into the queries

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from tollkeeper.engine.journal.connection import SqlConnection
from tollkeeper.engine.journal.postgres.ownership import process_name

SILENT_S = 5.0
"""A node that has not told anything for so long is taken for gone."""
PRESENT_S = 2.5
"""A node that has told something since then is given a journal: it will be there to take it."""
FORGOTTEN_S = 86_400
_RECENT = f"seen_at > clock_timestamp() - interval '{SILENT_S} seconds'"
_TELL = (
    "INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, clock_timestamp())"
    " ON CONFLICT (node) DO UPDATE SET place = excluded.place, is_whole = excluded.is_whole,"
    " seen_at = excluded.seen_at"
)
_ANOTHER = f"SELECT EXISTS (SELECT 1 FROM nodes WHERE node <> ? AND is_whole AND {_RECENT})"
_ANYBODY = f"SELECT EXISTS (SELECT 1 FROM nodes WHERE {_RECENT})"
_PRESENT = (
    "SELECT node, address FROM nodes WHERE is_whole"
    f" AND seen_at > clock_timestamp() - interval '{PRESENT_S} seconds'"
)
_NODES = (
    "SELECT nodes.process, nodes.address, release, coalesce(owner = node AND lease_until >"
    " clock_timestamp(), FALSE), is_whole, greatest(0, last_place - place),"
    " extract(epoch FROM clock_timestamp() - seen_at)::float8,"
    " CASE WHEN owner = node THEN (1000000 * extract(epoch FROM taken_at))::bigint END,"
    " CASE WHEN owner = node THEN epoch END"
    " FROM nodes CROSS JOIN shards WHERE shard = 1 ORDER BY nodes.process, node"
)


class Heartbeat(NamedTuple):
    """What a node says of itself: its name, where others reach it, its release, the sequence number
    up to which its windows are, and whether they are whole."""

    node: str
    address: str
    release: str
    counted: int
    is_whole: bool


class SeenNode(NamedTuple):
    """A node as the others see it: `behind` the journal by so many sequence numbers, heard of
    `silent_s` seconds ago; `owner_since` (µs since 1970) and `epoch` where the journal is its own."""

    process: str
    address: str
    release: str
    is_owner: bool
    is_whole: bool
    behind: int
    silent_s: float
    owner_since: int | None
    epoch: int | None = None


def tell(connection: SqlConnection, heartbeat: Heartbeat) -> None:
    """Says that a node is there; those that were not for a day are forgotten."""
    node, address, release, counted, is_whole = heartbeat
    connection.execute(_TELL, (node, process_name(), address, release, counted, is_whole))
    connection.execute(
        f"DELETE FROM nodes WHERE seen_at < clock_timestamp() - interval '{FORGOTTEN_S} seconds'"
    )


def leave(connection: SqlConnection, node: str) -> None:
    """Says that a node has ended."""
    connection.execute("DELETE FROM nodes WHERE node = ?", (node,))


def is_followed(connection: SqlConnection) -> bool:
    """Whether any node is there."""
    if connection.execute("SELECT to_regclass('nodes')").fetchone()[0] is None:
        return False
    return bool(connection.execute(_ANYBODY).fetchone()[0])


def has_successor(connection: SqlConnection, node: str) -> bool:
    """Whether another node could take over at once."""
    return bool(connection.execute(_ANOTHER, (node,)).fetchone()[0])


def successors(connection: SqlConnection) -> dict[str, str]:
    """The nodes that could take over at once, by the address where others reach them."""
    return {address: node for node, address in connection.execute(_PRESENT)}


def nodes_of(connection: SqlConnection) -> list[SeenNode]:
    """All that were heard of within a day."""
    return [SeenNode(*row) for row in connection.execute(_NODES)]


def is_loopback(address: str) -> bool:
    """Whether an address means another machine on each machine: an unspecified one leads there too."""
    host = (urlsplit(address).hostname or "").removesuffix(".")
    try:
        number = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    found = getattr(number, "ipv4_mapped", None) or number
    return found.is_loopback or found.is_unspecified


def out_of_reach(nodes: Collection[SeenNode]) -> list[SeenNode]:
    """Those of the nodes that are there which a node on another machine can't reach: it would reach
    itself at their addresses."""
    present = [each for each in nodes if each.silent_s <= SILENT_S]
    machines = {_machine(each) for each in present}
    return [each for each in present if len(machines) > 1 and is_loopback(each.address)]


def _machine(node: SeenNode) -> str:
    return node.process.partition(" on ")[2]
