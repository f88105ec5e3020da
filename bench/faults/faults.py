"""The faults, each a context: broken at its beginning, repaired at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random
from signal import SIGCONT, SIGSTOP
from typing import TypeAlias

import psycopg

from tollkeeper.bench.faults.cluster import SCHEMAS, Node
from tollkeeper.bench.faults.database import Pair
from tollkeeper.bench.faults.network import disconnect, lost, slow

_LEASE_S = 2.0
_OWNERS = " UNION ".join(f"SELECT address FROM {schema}.shards" for schema in SCHEMAS)
_BACKENDS = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE application_name = 'tollkeeper'"
)


@dataclass(frozen=True)
class Site:
    """Everything that can break."""

    nodes: Sequence[Node]
    pair: Pair
    addresses: dict[str, str]
    random: Random

    def node(self) -> Node:
        """Return a random node, more often one that decides."""
        if self.random.random() < 0.7:
            with suppress(psycopg.Error), self.pair.connected() as connection:
                found = {str(address) for (address,) in connection.execute(_OWNERS)}
                owners = [each for each in self.nodes if f"http://{each.address}:8001" in found]
                if owners:
                    return self.random.choice(owners)
        return self.random.choice(self.nodes)

    def databases(self) -> list[str]:
        return [self.addresses[each] for each in (self.pair.primary, self.pair.standby)]

    def others(self, node: Node) -> list[str]:
        return [each.address for each in self.nodes if each is not node]


Fault: TypeAlias = Callable[[Site], Iterator[None]]


def killed(site: Site) -> Iterator[None]:
    node = site.node()
    node.kill()
    yield
    node.start()


def told_to_end(site: Site) -> Iterator[None]:
    node = site.node()
    node.stop()
    yield
    node.start()


def paused_beyond_the_lease(site: Site) -> Iterator[None]:
    process = site.node().process
    assert process is not None
    process.send_signal(SIGSTOP)
    time.sleep(1.5 * _LEASE_S)
    yield
    process.send_signal(SIGCONT)


def cut_off_from_nodes(site: Site) -> Iterator[None]:
    node = site.node()
    with disconnect(node.address, site.others(node)):
        yield


def unheard_by_nodes(site: Site) -> Iterator[None]:
    node = site.node()
    (one, other) = site.others(node)
    with lost(node.address, one), lost(other, node.address):
        yield


def cut_off_from_the_database(site: Site) -> Iterator[None]:
    with disconnect(site.node().address, site.databases()):
        yield


def deaf_to_the_database(site: Site) -> Iterator[None]:
    """What it commits is stored, but the answer never arrives."""
    with lost(site.databases()[0], site.node().address):
        yield


def unheard_by_the_database(site: Site) -> Iterator[None]:
    with lost(site.node().address, site.databases()[0]):
        yield


def slow_link(site: Site) -> Iterator[None]:
    with slow(site.node().machine):
        yield


def slow_database(site: Site) -> Iterator[None]:
    with slow(site.pair.primary):
        yield


def terminated_backends(site: Site) -> Iterator[None]:
    for _ in range(3):
        with suppress(psycopg.Error), site.pair.connected() as connection:
            connection.execute(_BACKENDS)
        time.sleep(0.3)
    yield


def unheard_standby(site: Site) -> Iterator[None]:
    """Commits wait for the standby, and some backends are terminated meanwhile: their warning says
    that the standby doesn't have the commit.
    """
    with disconnect(*_first_and_rest(site.databases())):
        time.sleep(0.5)
        with suppress(psycopg.Error), site.pair.connected() as connection:
            connection.execute(_BACKENDS)
        yield


def crashed_database(site: Site) -> Iterator[None]:
    site.pair.crash(site.pair.primary)
    yield
    site.pair.start(site.pair.primary)


def failover(site: Site) -> Iterator[None]:
    site.pair.crash(site.pair.primary)
    site.pair.promote()
    yield
    site.pair.copy()


def failover_of_a_standby_that_was_cut_off(site: Site) -> Iterator[None]:
    """What the primary wrote since then was never acknowledged, and is lost."""
    with disconnect(*_first_and_rest(site.databases())):
        time.sleep(1)
        site.pair.crash(site.pair.primary)
    site.pair.promote()
    yield
    site.pair.copy()


def full_disk(site: Site) -> Iterator[None]:
    ballast = site.node().folder / "ballast"
    with suppress(OSError), ballast.open("wb", 0) as file:
        while True:
            file.write(bytes(65_536))
    yield
    ballast.unlink()


def full_database(site: Site) -> Iterator[None]:
    """Statements that need a page fail; every other time the log has no room either, and the server
    ends.
    """
    site.pair.fill()
    if site.random.random() < 0.5:
        site.pair.exhaust_log()
    yield
    site.pair.empty()


def _first_and_rest(addresses: list[str]) -> tuple[str, list[str]]:
    return addresses[0], addresses[1:]


FAULTS: tuple[Fault, ...] = (
    killed,
    deaf_to_the_database,
    paused_beyond_the_lease,
    cut_off_from_nodes,
    crashed_database,
    cut_off_from_the_database,
    unheard_standby,
    failover,
    terminated_backends,
    unheard_by_nodes,
    unheard_by_the_database,
    full_disk,
    full_database,
    failover_of_a_standby_that_was_cut_off,
    slow_link,
    told_to_end,
    slow_database,
)


def name_of(fault: Fault) -> str:
    """Return the fault's name in words."""
    return fault.__name__.replace("_", " ")


@contextmanager
def broken(fault: Fault, site: Site) -> Iterator[None]:
    """Make the fault while the context lasts."""
    going = fault(site)
    next(going)
    try:
        yield
    finally:
        next(going, None)
